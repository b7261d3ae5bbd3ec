"""Tracks from a microscope: files, tables of what happened, fits, checks of fit, pictures."""
