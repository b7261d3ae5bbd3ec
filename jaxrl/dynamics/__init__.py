"""Latent dynamics: vector fields, filters, Fisher information, experiment design."""
