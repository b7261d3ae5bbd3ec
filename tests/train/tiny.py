"""A training of a few milliseconds that uses all a run must keep: replay, memory, keys, counters.

It is a program as one has it in a file of one's own: `python -m tests.train.tiny [PRESET] ...`.
"""

import sys
from dataclasses import dataclass, field
from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp
from flax import struct

from jaxrl import checks, evaluate, loop
from jaxrl.checks import Count, CountOrZero, NonNegative, Range
from jaxrl.types import Agent, PyTree, where_tree
from train.host.command_line import command
from train.host.player import Player
from train.host.program import Preset, Program
from train.host.scoring import games
from train.host.training import PlayConfig, Score, Training

NUM_ENVS, NUM_STEPS = 3, 5
PER_UPDATE = NUM_ENVS * NUM_STEPS


class Walk:
    """A random walk whose steps the action biases; ends at -4 or 4, or after 20 steps."""

    def reset(self, key, params):
        position = jax.random.uniform(key, (), minval=-1.0)
        return jnp.stack([position, 0.0]), (position, jnp.zeros((), jnp.int32))

    def step(self, key, state, action, params):
        noise_key, reset_key = jax.random.split(key)
        position = state[0] + action + jax.random.uniform(noise_key, minval=-2.0, maxval=2.0)
        after = (position, state[1] + 1)
        terminated, truncated = jnp.abs(position) > 4, after[1] >= 20
        obs = jnp.stack([position, after[1].astype(float)])
        info = {"final_observation": obs, "outcome": {"right": position > 0}}
        fresh = self.reset(reset_key, params)
        obs, after = where_tree(terminated | truncated, fresh, (obs, after))
        return obs, after, position, terminated, truncated, info


@struct.dataclass
class AgentConfig:
    """What the tiny agent does."""

    learning_rate: NonNegative = 0.01
    """Step size."""
    poison: Annotated[float, Range(finite=False)] = -1.0
    """The update whose metric `bits` has this value yields NaN; inf: every one."""
    burn: CountOrZero = 0
    """Rounds of idle work per update, to make it last."""
    replay: Count = struct.field(pytree_node=False, default=7)
    """Rollouts kept."""


@dataclass(frozen=True)
class Config:
    """Trains nothing of use."""

    agent: AgentConfig = field(default_factory=AgentConfig)
    run: PlayConfig = field(
        default_factory=lambda: PlayConfig(
            total_steps=20 * PER_UPDATE,
            chunk_steps=2 * PER_UPDATE,
            checkpoint_every=3,
            evaluation_games=6,
        )
    )


class State(NamedTuple):
    params: PyTree
    replay: jax.Array  # [capacity, N]
    updates: jax.Array


def make_agent(config: AgentConfig) -> Agent:
    def init(key, obs):
        params = {"w": jax.random.normal(key, obs.shape), "b": jnp.zeros(())}
        capacity = config.replay * NUM_STEPS
        return State(params, jnp.zeros((capacity, NUM_ENVS)), jnp.zeros((), jnp.int32))

    def act(state, memory, obs, key):
        policy = jnp.tanh(obs @ state.params["w"] + state.params["b"])
        return policy + 0.1 * jax.random.uniform(key) + 0.01 * memory, memory + 1, ()

    def update(state, rollout, key):
        start = (state.updates % config.replay) * NUM_STEPS
        replay = jax.lax.dynamic_update_slice(state.replay, rollout.reward, (start, 0))
        bits = jax.random.bits(key) >> 8  # 24 of them are exact in float32
        row = bits % replay.shape[0]

        def loss_of(params):
            return jnp.mean((rollout.obs @ params["w"] + params["b"] - replay[row].mean()) ** 2)

        loss, grad = jax.value_and_grad(loss_of)(state.params)
        idle = jax.lax.fori_loop(0, config.burn, lambda _, x: jnp.cos(x), loss)
        bits = bits.astype(jnp.float32)
        is_poisoned = (bits == config.poison) | (config.poison == jnp.inf)
        loss = jnp.where(is_poisoned, jnp.nan, loss + 0 * idle)
        rate = jnp.where(is_poisoned, jnp.nan, config.learning_rate)
        params = jax.tree.map(lambda p, g: p - rate * g, state.params, grad)
        return State(params, replay, state.updates + 1), {"loss": loss, "bits": bits}

    return Agent(init, lambda: jnp.zeros(()), act, update)


def make_training(config: Config) -> Training:
    checks.config(config)
    agent = make_agent(config.agent)
    tiny_loop = loop.make_loop(Walk(), (), agent, loop.Config(NUM_ENVS, NUM_STEPS))
    number = config.run.evaluation_games
    episodes_of = lambda state, key: evaluate.evaluate(Walk(), (), agent, state, key, number, 1, 50)
    games_of = lambda count: (
        lambda state, key: evaluate.evaluate(Walk(), (), agent, state, key, count, 1, 50)
    )
    evaluation = games.of_episodes(episodes_of, Score("right"))
    return Training(
        init=tiny_loop.init,
        update=tiny_loop.update,
        evaluate=evaluation,
        steps_per_update=PER_UPDATE,
        games=games_of,
        player=Player(Walk(), (), agent),
        score=evaluation.score,
    )


PRESETS = {
    "plain": Preset(Config()),
    "slow": Preset(Config(agent=AgentConfig(burn=1_000_000))),
    "endless": Preset(Config(agent=AgentConfig(burn=2_000_000_000))),
}
PROGRAM = Program(name="tiny", presets=PRESETS, training=make_training, module="tests.train.tiny")


if __name__ == "__main__":
    sys.exit(command.main(PROGRAM))
