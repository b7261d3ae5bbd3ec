"""The machine that a run has: devices, processes, signals, settings."""
