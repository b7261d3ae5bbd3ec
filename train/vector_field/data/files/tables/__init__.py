"""CSV files: their text, which column holds what, and what channels, inputs or spikes are in it."""
