"""Eigenvectors of walks in any environment on gymnax's interface."""
