"""Many configurations and seeds at once: `python -m train.sweep`."""
