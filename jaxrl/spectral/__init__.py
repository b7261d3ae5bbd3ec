"""Eigenvectors of graph Laplacians, learned from pairs of states; options and potentials."""
