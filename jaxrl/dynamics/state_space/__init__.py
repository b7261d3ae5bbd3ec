"""Nonlinear state-space models: a filter that is computed, and a fit of all the rest by it."""
