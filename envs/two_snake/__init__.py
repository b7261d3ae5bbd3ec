"""Two snakes, one food. `two_snake.reset(key)` and `two_snake.step(key, state, action)` play it."""

from envs.two_snake.env import Params, TwoSnake

env = TwoSnake()
reset = env.reset
step = env.step

__all__ = ["Params", "TwoSnake", "env", "reset", "step"]
