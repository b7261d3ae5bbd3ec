"""A run from its configuration to its end, and how others load it."""
