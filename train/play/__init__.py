"""A policy live in a browser, to watch, to disturb and to play against: `python -m train.play`."""
