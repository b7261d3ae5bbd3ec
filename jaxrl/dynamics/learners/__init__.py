"""Agents that learn a vector field while they experiment on it."""
