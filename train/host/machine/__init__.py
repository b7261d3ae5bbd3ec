"""The machine that a run has: devices, processes, memory, signals, compiled programs."""
