"""Environments to adapt: small ones, one of two snakes, and one that takes two arrays."""

from typing import Any

import gymnax
from gymnax.environments import spaces as ours

from envs.gymnasium_adapter import AutoresetMode
from envs.snake import Snake
from envs.two_snake import TwoSnake
from tests.envs.recorder import Parts

N, T = 5, 30
NEXT_STEP, SAME_STEP, DISABLED = AutoresetMode
SNAKE = Snake(5, 5, "features", rules="modern")
CARTPOLE = gymnax.make("CartPole-v1")[0]
DUEL = TwoSnake(5, 9, opponents=("rival",), rival=True)


class PartsAndTuple(Parts):
    """Takes two arrays; every step is told by the sum of its numbers."""

    def transition(self, chance, state, action, params):
        choice, size = action
        return super().transition(chance, state, choice + size.sum(), params)

    def action_space(self, params=None):
        return ours.Tuple([ours.Discrete(3), ours.Box(0.0, 1.0, (2,))])

    @property
    def name(self) -> str:
        return "Parts-v0"


TUPLE = PartsAndTuple()


def short(env: Any, steps: int = 12) -> Any:
    return env.default_params.replace(max_steps_in_episode=steps)
