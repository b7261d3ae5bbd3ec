"""Walks in open space: positions between walls, and pictures of them."""
