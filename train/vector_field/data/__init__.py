"""Recorded data: files, what is refused of them, episodes, and how long a step lasts."""
