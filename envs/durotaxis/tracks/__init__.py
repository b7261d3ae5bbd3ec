"""Colonies as a microscope records them: laws of spawning and of events, and their likelihood."""
