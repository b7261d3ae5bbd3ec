"""Watching a policy live, interfering with it, and playing against it, in a browser."""
