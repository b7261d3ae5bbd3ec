"""The same training twice: PPO and DQN on CartPole, ours and PureJaxRL's, as functions of a key.

Both get their numbers from one place. What is left different: PureJaxRL treats the time limit as a
death, and starts its Q-network from other random weights.
"""

from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple
from unittest import mock

import gymnax
import jax
import jax.numpy as jnp
from flax import linen as nn

from jaxrl import loop, sharding
from jaxrl.agents import dqn, ppo
from jaxrl.networks.mlp import MLP, ActorCritic, dense
from jaxrl.types import Agent
from train.host.machine import devices

ENV = "CartPole-v1"
DISCOUNT, GAE_LAMBDA, CLIP = 0.99, 0.95, 0.2
LEARNING_RATE, ENTROPY_WEIGHT, VALUE_WEIGHT, MAX_GRAD_NORM = 2.5e-4, 0.01, 0.5, 0.5
EPOCHS, MINIBATCHES = 4, 4

DQN_ENVS, DQN_CAPACITY, DQN_BATCH = 10, 10_000, 128
DQN_WARMUP, DQN_TARGET_STEPS = 10_000, 500
DQN_EPSILON_END, DQN_EPSILON_STEPS = 0.05, 250_000


class Size(NamedTuple):
    """Environments, steps of each in a rollout, and rollouts of one training."""

    num_envs: int
    num_steps: int
    updates: int

    @property
    def steps(self) -> int:
        return self.num_envs * self.num_steps * self.updates


class Record(NamedTuple):
    """For each update the episodes that ended in it; `[S, U]` of many seeds."""

    episodes: jax.Array  # [U]
    returns: jax.Array  # [U] sum over them


Train = Callable[[jax.Array], tuple[Record, Any]]
"""`key -> (record, learner)`, the learner as a user would keep it."""


def our_ppo(
    size: Size,
    shuffle_group: int,
    microbatch_size: int | None = None,
    blocks: int = 1,
    cores: int = 1,
) -> Train:
    config = ppo.Config(
        learning_rate=LEARNING_RATE,
        anneal_updates=size.updates,
        entropy_updates=float("inf"),
        discount=DISCOUNT,
        gae_lambda=GAE_LAMBDA,
        clip=CLIP,
        value_clip=CLIP,
        value_weight=VALUE_WEIGHT,
        entropy_weight=ENTROPY_WEIGHT,
        max_grad_norm=MAX_GRAD_NORM,
        epochs=EPOCHS,
        minibatches=MINIBATCHES,
        shuffle_group=shuffle_group,
        microbatch_size=microbatch_size,
    )
    network = ActorCritic(MLP((64, 64), "tanh"), 2)
    return our_training(ppo.make(network, config, blocks=blocks), size, blocks, cores)


def our_dqn(updates: int) -> Train:
    """Our DQN: one step of each environment, then one gradient step."""
    config = dqn.Config(
        learning_rate=LEARNING_RATE,
        discount=DISCOUNT,
        batch_size=DQN_BATCH,
        updates_per_rollout=1,
        capacity=DQN_CAPACITY,
        warmup=DQN_WARMUP,
        target_period=DQN_TARGET_STEPS // DQN_ENVS,
        double=False,
        loss="squared",
        max_grad_norm=None,  # PureJaxRL does not clip
        epsilon_end=DQN_EPSILON_END,
        epsilon_transitions=DQN_EPSILON_STEPS,
    )
    network = nn.Sequential((MLP((120, 84)), dense(2, 1.0)))
    return our_training(dqn.make(network, config, num_envs=DQN_ENVS), Size(DQN_ENVS, 1, updates))


def our_training(agent: Agent, size: Size, blocks: int = 1, cores: int = 1) -> Train:
    """Our training, shared among so many cores, or whatever devices JAX has."""
    env, params = gymnax.make(ENV)
    runs = loop.make_loop(env, params, agent, loop.Config(size.num_envs, size.num_steps, blocks))
    mesh = devices.mesh_of(str(cores), 1, blocks)

    def train(key: jax.Array) -> tuple[Record, Any]:
        state = runs.init(key)
        if mesh is not None:
            state = jax.lax.with_sharding_constraint(state, sharding.shardings(mesh, state))
        state, metrics = loop.make_chunk(runs.update, size.updates)(state)
        return Record(metrics.episodes, metrics.finished["return"]), state.agent

    return train


def their_ppo(module: ModuleType, size: Size, **changes: Any) -> Train:
    config: dict[str, Any] = {
        "LR": LEARNING_RATE,
        "NUM_ENVS": size.num_envs,
        "NUM_STEPS": size.num_steps,
        "TOTAL_TIMESTEPS": size.steps,
        "UPDATE_EPOCHS": EPOCHS,
        "NUM_MINIBATCHES": MINIBATCHES,
        "GAMMA": DISCOUNT,
        "GAE_LAMBDA": GAE_LAMBDA,
        "CLIP_EPS": CLIP,
        "ENT_COEF": ENTROPY_WEIGHT,
        "VF_COEF": VALUE_WEIGHT,
        "MAX_GRAD_NORM": MAX_GRAD_NORM,
        "ACTIVATION": "tanh",
        "ENV_NAME": ENV,
        "ANNEAL_LR": True,
        **changes,
    }
    train_it = module.make_train(config)

    def train(key: jax.Array) -> tuple[Record, Any]:
        out = train_it(jax.random.key_data(key))
        ended = out["metrics"]["returned_episode"]  # [U, T, N]
        returns = jnp.where(ended, out["metrics"]["returned_episode_returns"], 0.0)
        return Record(ended.sum((1, 2)), returns.sum((1, 2))), out["runner_state"][0]

    return train


def their_dqn(module: ModuleType, updates: int, **changes: Any) -> Train:
    config: dict[str, Any] = {
        "NUM_ENVS": DQN_ENVS,
        "BUFFER_SIZE": DQN_CAPACITY,
        "BUFFER_BATCH_SIZE": DQN_BATCH,
        "TOTAL_TIMESTEPS": updates * DQN_ENVS,
        "EPSILON_START": 1.0,
        "EPSILON_FINISH": DQN_EPSILON_END,
        "EPSILON_ANNEAL_TIME": DQN_EPSILON_STEPS,
        "TARGET_UPDATE_INTERVAL": DQN_TARGET_STEPS,
        "LR": LEARNING_RATE,
        "LEARNING_STARTS": DQN_WARMUP,
        "TRAINING_INTERVAL": DQN_ENVS,
        "LR_LINEAR_DECAY": False,
        "GAMMA": DISCOUNT,
        "TAU": 1.0,
        "ENV_NAME": ENV,
        **changes,
    }
    train_it = module.make_train(config)

    def train(key: jax.Array) -> tuple[Record, Any]:
        # It draws all but the first reset from PRNGKey(0), so that its seeds would be alike.
        own_key = jax.random.key_data(jax.random.fold_in(key, 0))
        with mock.patch.object(jax.random, "PRNGKey", return_value=own_key):
            out = train_it(jax.random.key_data(key))
        ended = out["metrics"]["returns"]  # [U]; `shim.EndedEpisodes` of each step
        return Record(ended.episodes, ended.returns), out["runner_state"][0]

    return train
