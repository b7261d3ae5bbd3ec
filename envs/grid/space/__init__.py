"""Mazes without cells: a point that moves between walls, and pictures of it."""
