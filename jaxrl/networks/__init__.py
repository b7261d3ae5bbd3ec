"""Flax modules written for one example; they work on any leading axes."""
