"""The files of runs and policies."""
