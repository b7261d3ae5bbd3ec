"""A page to look into runs: `python -m train.report`."""
