"""Searches that learn from results while they train."""
