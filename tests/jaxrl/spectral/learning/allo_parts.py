"""What the tests of ALLO share: agents in small mazes, random walks, scores."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from envs.grid.env import Grid
from envs.grid.layouts import Layout
from envs.grid.observations import coordinates
from jaxrl import loop
from jaxrl.networks.mlp import MLP
from jaxrl.spectral import laplacian, subspace
from jaxrl.spectral.learning import allo, allo_state, allo_walks
from jaxrl.spectral.learning.allo_config import outputs
from jaxrl.spectral.learning.encoder import Encoder, Fourier
from jaxrl.types import Transition

N, T = 100, 50
SMALL = allo.Config(
    num_features=4,
    spare_features=2,
    optimizer="adam",
    schedule="budget",
    gradient_steps=100,
    steps_per_update=20,
    turn_every=10,
    batch_size=64,
    turn_pairs=256,
)


class Training(NamedTuple):
    """What a test needs of an agent in a maze."""

    network: Any
    agent: Any
    train: loop.Loop
    inputs: jax.Array


def training(
    config: allo.Config,
    maze: str | Layout,
    widths: tuple[int, ...] = (64,),
    num_envs: int = N,
    num_steps: int = T,
    numbered: bool = True,
) -> Training:
    env = Grid(maze, "index" if numbered else "coordinates")
    inputs = jnp.asarray(coordinates(env.layout))
    d = outputs(config, env.num_states if numbered else 0)
    network = Encoder(nn.Sequential((Fourier(8), MLP(widths))), d)
    known_inputs = inputs if numbered else None
    agent = allo.make(network, config, 4, known_inputs, num_envs, num_steps)
    train = loop.make_loop(env, env.default_params, agent, loop.Config(num_envs, num_steps))
    return Training(network, agent, train, inputs)


def similarity(features: jax.Array, truth: laplacian.Eigensystem) -> float:
    d = features.shape[1]
    group = laplacian.groups(truth.values, absolute=1e-6)
    column_group = np.where(group <= group[d - 1], group, -1)
    vectors, weight = (jnp.asarray(x, jnp.float32) for x in (truth.vectors, truth.weight))
    groups = jnp.asarray(group[:d]), jnp.asarray(column_group)
    return float(jax.jit(subspace.similarity)(features, vectors, weight, *groups))


def truth_of(config: allo.Config, state: allo_state.State) -> laplacian.Eigensystem:
    return laplacian.eigensystem(np.asarray(allo_walks.pair_law(config, state), float))


def rollout_of(state: np.ndarray, next_state: np.ndarray, done: np.ndarray) -> Transition:
    """Steps `[T, N]` of which only states and endings are of interest."""
    zeros, arrays = jnp.zeros(done.shape), map(jnp.asarray, (state, next_state, done))
    obs, next_obs, ended = arrays
    return Transition(obs, zeros, zeros, next_obs, ended, jnp.zeros_like(ended), ())


def random_walks(seed: int, steps: int, num_envs: int, num_states: int, ending: float = 0.1):
    """A rollout of uneven walks round a ring; those that end begin anew anywhere."""
    rng = np.random.default_rng(seed)
    state, next_state = np.zeros((2, steps, num_envs), np.int32)
    done = rng.random((steps, num_envs)) < ending
    at = rng.integers(0, num_states, num_envs)
    for t in range(steps):
        state[t], next_state[t] = at, (at + rng.integers(0, 3, num_envs)) % num_states
        at = np.where(done[t], rng.integers(0, num_states, num_envs), next_state[t])
    return rollout_of(state, next_state, done)
