"""Drawings of environments that gymnax has."""
