"""Mazes. `grid.reset(key)` and `grid.step(key, state, action)` walk the default one, jitted."""

from envs.grid.env import Grid, Params

env = Grid()
reset = env.reset
step = env.step

__all__ = ["Grid", "Params", "env", "reset", "step"]
