"""A colony of cells learns to climb a gradient of stiffness: `python -m train.durotaxis`."""
