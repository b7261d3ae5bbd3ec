"""Learning: pure functions on pytrees. Knows no environment; import each name from its own file."""
