"""Durotaxis. `durotaxis.reset(key)` and `durotaxis.step(key, state, action)`, jitted."""

from envs.durotaxis.env import Durotaxis, Params

env = Durotaxis()
reset = env.reset
step = env.step

__all__ = ["Durotaxis", "Params", "env", "reset", "step"]
