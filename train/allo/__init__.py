"""Laplacian eigenvectors of a maze, learned from a random walk: `python -m train.allo`."""
