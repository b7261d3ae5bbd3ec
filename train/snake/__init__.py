"""An agent learns Snake: `python -m train.snake`."""
