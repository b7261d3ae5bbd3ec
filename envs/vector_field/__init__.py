"""Vector fields to learn. `vector_field.reset(key)`, `vector_field.step(key, state, action)`."""

from envs.vector_field.cart_pole import CircularCartPole
from envs.vector_field.env import VectorField
from envs.vector_field.params import Params

env = VectorField()
reset = env.reset
step = env.step

__all__ = ["CircularCartPole", "Params", "VectorField", "env", "reset", "step"]
