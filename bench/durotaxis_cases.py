"""Programs of Durotaxis whose speed is measured: the environment alone, and a training.

`hold` lets a colony double until it is large, then deletes half on every step, which leaves N = 5/8
C; `small` deletes 55 per cent from the start, which leaves N = 6. Children of `directed` colonies
go far, at a random angle drawn beforehand, so an episode lasts about 40 steps.
"""

import dataclasses
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

from envs.durotaxis.env import Durotaxis, Params
from train.durotaxis.config import Config
from train.durotaxis.training import make_training
from train.host.compilation import compiled

SEEN = {"unseen": "local", "local": "local", "full": "full"}
"""What is read of a step, and the `observation` of the environment."""


class Policy(NamedTuple):
    """Numbers, so that both policies are one compilation."""

    grow_below: np.float32  # share of the capacity; with fewer nodes nobody is deleted
    ratio: np.float32  # share of the nodes to delete, otherwise


POLICIES = {
    "hold": Policy(np.float32(50 / 128), np.float32(0.5)),
    "small": Policy(np.float32(0), np.float32(0.55)),
}


class Case(NamedTuple):
    """One row: a compiled program that is run over and over on its own state."""

    name: str
    colonies: int
    capacity: int
    steps: int  # environment steps of all colonies in one call
    compile_s: float
    run: Callable[[], Any]  # blocks until done; gives the mean number of nodes, or nothing


class Colonies(NamedTuple):
    """The colonies of one core, stepped side by side."""

    env: Durotaxis
    params: Params
    count: int
    steps: int  # of each in one call
    is_read: (
        bool  # whether anything reads the observations; the compiler leaves out what nobody does
    )

    def start(self, key: jax.Array) -> tuple:
        """New colonies, a key, and the sum of what was seen."""
        place_key, key = jax.random.split(key)
        keys = jax.random.split(place_key, self.count)
        return jax.vmap(self.env.reset, (0, None))(keys, self.params)[1], key, jnp.zeros(())

    def act(self, policy: Policy, state: Any, theta: jax.Array) -> jax.Array:
        """Young colonies grow until they reach the size of the policy, then it deletes a share."""
        is_young = state.colony.num_nodes < policy.grow_below * self.env.capacity
        ratio = jnp.where(is_young, 0.0, policy.ratio)
        is_global = self.env.action == "global"
        return jnp.stack([ratio, 15.0, 0.5, 0.5, theta] if is_global else [ratio])

    def step(self, policy: Policy, carry: tuple, theta: jax.Array) -> tuple[tuple, jax.Array]:
        """One step of every colony. The sum keeps the compiler from leaving anything out."""
        state, key, total = carry
        key, step_key = jax.random.split(key)
        action = jax.vmap(self.act, (None, 0, 0))(policy, state, theta)
        obs, state, reward, terminated, _, _ = jax.vmap(self.env.step, (0, 0, 0, None))(
            jax.random.split(step_key, self.count), state, action, self.params
        )
        total += jnp.mean(reward + terminated)
        if self.is_read:
            total += checksum(jax.lax.optimization_barrier(obs)) / self.count
        return (state, key, total), jnp.mean(state.colony.num_nodes.astype(jnp.float32))

    def scan(self, policy: Policy, carry: tuple) -> tuple[tuple, jax.Array]:
        """All steps of one call, and the mean number of nodes."""
        state, key, total = carry
        key, angle_key = jax.random.split(key)
        angles = jax.random.uniform(angle_key, (self.steps, self.count), minval=-0.5, maxval=0.5)
        carry, nodes = jax.lax.scan(partial(self.step, policy), (state, key, total), angles)
        return carry, jnp.mean(nodes)


def step_cases(
    observation: str,
    colonies: int,
    capacity: int,
    spawning: str,
    steps: int,
    policies: list[str],
    cores: int = 1,
) -> list[Case]:
    """The environment alone, under each of the policies; `cores` share the colonies equally."""
    share, remainder = divmod(colonies, cores)
    if remainder:
        raise ValueError(f"{cores} cores cannot share {colonies} colonies equally")
    form = "global" if spawning == "directed" else "ratio"
    env = Durotaxis(capacity, spawning=spawning, action=form, observation=SEEN[observation])
    params = dataclasses.replace(env.default_params, threshold_nodes=100 * capacity / 128)
    of_core = Colonies(env, params, share, steps, observation != "unseen")

    # one compilation serves all policies, which are numbers
    carry = on_cores(cores, of_core.start)(jax.random.split(jax.random.key(0), cores))
    started = time.perf_counter()
    program = on_cores(cores, of_core.scan, P()).lower(POLICIES["hold"], carry).compile()
    compile_s = time.perf_counter() - started

    # each case goes on with a state of its own
    def case(name: str) -> Case:
        latest_carry = [carry]

        def run() -> Any:
            latest_carry[0], nodes = jax.block_until_ready(program(POLICIES[name], latest_carry[0]))
            return jnp.mean(nodes)

        title = f"{spawning} {observation}, {name}" + (f", {cores} cores" if cores > 1 else "")
        return Case(title, colonies, capacity, steps * colonies, compile_s, run)

    return [case(name) for name in policies]


def on_cores(cores: int, function: Callable, *whole: P) -> Any:
    """Maps a function of one core's share to one of all shares, which the first axis counts."""
    mesh = jax.make_mesh((cores,), ("core",), axis_types=(AxisType.Auto,))
    first = lambda tree: jax.tree.map(lambda x: x[0], tree)
    one = lambda *arguments: jax.tree.map(
        lambda x: x[None], function(*arguments[:-1], first(arguments[-1]))
    )
    specs = {"in_specs": (*whole, P("core")), "out_specs": P("core")}
    return jax.jit(jax.shard_map(one, mesh=mesh, check_vma=False, **specs))


def checksum(tree: Any) -> jax.Array:
    """The sum of all numbers of a tree."""
    return sum((jnp.sum(leaf.astype(jnp.float32)) for leaf in jax.tree.leaves(tree)), jnp.zeros(()))


def training_case(torso: str, updates: int) -> Case:
    """The default configuration of `train.durotaxis`, with this torso."""
    config = Config()
    config = dataclasses.replace(config, network=dataclasses.replace(config.network, torso=torso))
    training = make_training(config)
    started = time.perf_counter()
    start = compiled.trace_init(training.init, jnp.asarray(0))
    traced = compiled.trace(start, training.update, updates, skip=False)
    program = traced.compile()
    compile_s = time.perf_counter() - started
    latest_state = [program.init(jnp.asarray(0))]

    def run() -> None:
        latest_state[0], report = program.chunk(latest_state[0], np.int32(updates))
        jax.block_until_ready(report)

    loop = config.loop
    steps = updates * training.steps_per_update
    return Case(f"training, {torso}", loop.num_envs, config.env.capacity, steps, compile_s, run)
