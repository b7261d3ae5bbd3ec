"""Any environment on gymnax's interface: `python -m train.gymnax`."""
