"""Batches, rollouts and small trainings for PPO."""

from typing import Any

import jax
import jax.numpy as jnp

from jaxrl import acting, loop
from jaxrl.agents import ppo
from jaxrl.losses.policy_gradient import Batch
from jaxrl.networks.mlp import MLP, ActorCritic
from tests.jaxrl import toy_environments as toy

DISCOUNT = 0.8
NETWORK: Any = ActorCritic(MLP((8,), activation="tanh"), num_actions=3)


def make_train(env, network, config, num_updates, num_envs=32, num_steps=8, env_params=()):
    train_loop = loop.make_loop(
        env, env_params, ppo.make(network, config), loop.Config(num_envs, num_steps)
    )
    chunk = loop.make_chunk(train_loop.update, num_updates)
    return lambda key: chunk(train_loop.init(key))


def batch_of(key, size, network=NETWORK, features=5):
    keys = jax.random.split(key, 6)
    obs = jax.random.normal(keys[0], (size, features))
    params = network.init(keys[1], obs[0])
    action = jax.random.randint(keys[2], (size,), 0, 3)
    old = network.apply(params, obs)[0].log_prob(action)
    batch = Batch(
        obs=obs,
        action=action,
        log_prob=old + 0.3 * jax.random.normal(keys[3], (size,)),
        value=jnp.zeros(size),
        advantage=3.0 * jax.random.normal(keys[4], (size,)) + 1.0,
        target=jax.random.normal(keys[5], (size,)),
    )
    return params, batch


def rollout_of(agent, state, key, steps=6, envs=4, env: Any = None):
    env = env or toy.ActionReward()
    train_loop = loop.make_loop(env, (), agent, loop.Config(envs, steps))
    _, (rollout, _) = jax.lax.scan(
        lambda world, _: acting.step(env, (), agent, state, world),
        loop.world_of(train_loop.init(key)),
        length=steps,
    )
    return rollout
