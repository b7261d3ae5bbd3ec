"""Command lines: flags, presets, help, and mistakes in one line."""
