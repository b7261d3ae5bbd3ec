"""Runs whose agents have learned nothing yet: enough to see how they are shown."""

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import jax

from train.durotaxis.program import PROGRAM as DUROTAXIS
from train.gymnax.program import PROGRAM as GYMNAX
from train.host.environments.environments import Game
from train.host.program import Program, Run
from train.snake.program import PROGRAM as SNAKE
from train.two_snake.config import Game as Duel
from train.two_snake.program import PROGRAM as TWO_SNAKE


def untrained_run(program: Program, config: Any) -> Run:
    """One agent as it begins; the games around it are not compiled."""
    init = program.training(config).init
    agent = jax.jit(lambda key: init(key).agent)(jax.random.key(0))
    return Run(Path(f"runs/{program.name}"), program, config, 0, [agent])


@cache
def snake() -> Run:
    config = SNAKE.presets["ppo"].config
    small = replace(config, env=replace(config.env, rows=6, cols=7))
    return untrained_run(SNAKE, replace(small, network=replace(config.network, hidden=(8,))))


@cache
def two_snakes() -> Run:
    config = TWO_SNAKE.presets["greedy"].config
    small = replace(config, env=Duel(rows=6, cols=9), network=replace(config.network, hidden=(8,)))
    return untrained_run(TWO_SNAKE, small)


@cache
def colony(preset: str = "linear") -> Run:
    config = DUROTAXIS.presets[preset].config
    small = {"width": 60, "height": 40, "max_steps_in_episode": 30}
    env = replace(config.env, observation="local", **small)  # the whole takes long to compile
    return untrained_run(
        DUROTAXIS, replace(config, env=env, network=replace(config.network, width=8, layers=1))
    )


@cache
def cart_pole() -> Run:
    return untrained_run(GYMNAX, replace(GYMNAX.presets["ppo"].config, env=Game("CartPole-v1")))


RUNS = {"snake": snake, "two_snake": two_snakes, "durotaxis": colony, "gymnax": cart_pole}
"""One of each program whose games are watched step by step."""
