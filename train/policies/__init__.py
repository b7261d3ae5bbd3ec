"""Trained policies as files: `python -m train.policies`."""
