"""Eigenvectors of graph Laplacians by gradients: the ALLO agent, its data and objectives."""
