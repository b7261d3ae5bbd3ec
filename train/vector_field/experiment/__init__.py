"""Experiments on vector fields: learners, policies, scores."""
