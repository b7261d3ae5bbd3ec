"""A snake learns to beat another one on the same board: `python -m train.two_snake`."""
