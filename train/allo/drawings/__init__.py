"""Curves and maps of eigenvectors, from arrays."""
