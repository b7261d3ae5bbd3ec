"""Snake. `snake.reset(key)` and `snake.step(key, state, action)` play the default game, jitted."""

from envs.snake.env import Params, Snake

env = Snake()
reset = env.reset
step = env.step

__all__ = ["Params", "Snake", "env", "reset", "step"]
