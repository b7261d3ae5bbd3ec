"""Eigenvectors of recorded trajectories."""
