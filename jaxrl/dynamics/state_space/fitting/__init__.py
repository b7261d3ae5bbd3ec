"""Fits of a state-space model to recordings, by gradients."""
