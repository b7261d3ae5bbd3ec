"""Runs of every agent, sharded over eight devices: `python -m tests.jaxrl.sharded_runs`.

A program of its own, since the number of devices is chosen before JAX starts. Its arguments are
questions, `TASK:AGENT`; it prints their answers as JSON, `{question: answer}`.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import gymnax
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType

from jaxrl import loop, sharding
from jaxrl.agents import dqn, ppo, pqn, recurrent_ppo, sac
from jaxrl.networks.continuous import GaussianActor, QFunctions
from jaxrl.networks.dueling import QNetwork
from jaxrl.networks.mlp import MLP, ActorCritic
from jaxrl.networks.recurrent import RecurrentActorCritic
from jaxrl.spectral.learning import allo
from jaxrl.spectral.learning.encoder import Encoder
from jaxrl.types import below_params
from jaxrl.wrappers import normalisation
from tests.jaxrl import toy_environments as toy

N, T, K = 16, 16, 8
BATCH, CAPACITY, LARGE = 256, 1024, 2**17
REPLAY: dict[str, Any] = {"batch_size": BATCH, "warmup": N, "updates_per_rollout": 2}
PRIORITISED = {"prioritised": True, "n_step": 2}
ALLO: dict[str, Any] = {
    "num_features": 2,
    "spare_features": 1,
    "expectation": "sampled",
    "capacity": 1024,
    "optimizer": "adam",
    "schedule": "constant",
    "steps_per_update": 4,
    "turn_every": 2,
}
RAINBOW = {"categorical": True, "value_low": 0.0, "value_high": 20.0, **PRIORITISED}


def make_agent(name: str, blocks: int, capacity: int) -> Any:
    """A small agent of each kind, for CartPole or, of continuous actions, for a toy."""
    torso = MLP((8,))
    if name == "sac":
        actor, critic = GaussianActor(torso, 1, -1.0, 1.0), QFunctions(torso)
        config = sac.Config(**REPLAY, capacity=capacity)
        return sac.make(actor, critic, config, num_envs=N, blocks=blocks)
    if name == "allo":
        config = allo.Config(**ALLO, batch_size=BATCH, turn_pairs=BATCH, blocks=blocks)
        return allo.make(Encoder(torso, 3), config, 2, num_envs=N, num_steps=T)
    if name == "recurrent_ppo":
        config = recurrent_ppo.Config(epochs=1, minibatches=2)
        return recurrent_ppo.make(
            RecurrentActorCritic(torso, ActorCritic(MLP(()), 2), 8), config, blocks=blocks
        )
    if name == "pqn":
        return pqn.make(QNetwork(torso, 2), pqn.Config(minibatches=2), blocks=blocks)
    if name.startswith("dqn"):
        kind = name.removeprefix("dqn_")
        changes = {"n_step": {"n_step": 3}, "prioritised": PRIORITISED, "rainbow": RAINBOW}
        network = QNetwork(torso, 2)
        if kind == "rainbow":
            network = QNetwork(MLP((8,), noisy=True), 2, dueling=True, noisy=True, atoms=11)
        config = dqn.Config(**REPLAY, capacity=capacity, **changes.get(kind, {}))
        return dqn.make(network, config, num_envs=N, blocks=blocks)
    group, part = 2 if name == "ppo_grouped" else 1, 2 if name == "ppo_microbatches" else None
    config = ppo.Config(minibatches=2, shuffle_group=group, microbatch_size=part)
    agent = ppo.make(ActorCritic(torso, 2), config, blocks=blocks)
    if name == "ppo_normalised":
        config = normalisation.Config(observations=True, rewards=True)
        return normalisation.make(agent, config, N)
    return agent


def make_run(name: str, blocks: int = K, capacity: int = CAPACITY) -> loop.Loop:
    env, params = (toy.TargetAction(), ()) if name == "sac" else gymnax.make("CartPole-v1")
    agent = make_agent(name, blocks, capacity)
    return loop.make_loop(env, params, agent, loop.Config(N, T, blocks))


class ShardedRun:
    """The initial state and the compiled chunk of a run on some of the devices."""

    def __init__(self, run: Any, shape: tuple[int, int], updates: int):
        members, devices = shape[0] > 1, shape[0] * shape[1]
        mesh = jax.make_mesh(
            shape,
            ("member", "block"),
            axis_types=(AxisType.Auto,) * 2,
            devices=jax.devices()[:devices],
        )
        map_members: Callable = jax.vmap if members else lambda f: f
        key = jax.random.key(0)
        key = jax.random.split(key, shape[0]) if members else key
        state_shapes = jax.eval_shape(map_members(run.init), key)
        shardings = sharding.shardings(mesh, state_shapes, members)
        self.state = jax.jit(map_members(run.init), out_shardings=shardings)(key)
        chunk = jax.jit(
            map_members(loop.make_chunk(run.update, updates)),
            in_shardings=(shardings,),
            out_shardings=(shardings, None),
            donate_argnums=0,
        )
        self.chunk = chunk.lower(state_shapes).compile()


def collectives(text: str) -> dict[str, int]:
    """Bytes of the largest collective of each kind in a compiled program, by its result."""
    kinds = (
        "all-gather|all-to-all|all-reduce|collective-permute|collective-broadcast|reduce-scatter"
    )
    largest: dict[str, int] = {}
    for result, kind in re.findall(rf" = (.*?) ({kinds}|ragged-all-to-all)(?:-start)?\(", text):
        sizes = re.findall(r"([a-z]+)(\d*)\[([\d,]*)\]", result)
        bytes_ = sum(
            max(int(bits or 8) // 8, 1) * int(np.prod([int(x) for x in dims.split(",") if x]))
            for _, bits, dims in sizes
        )
        largest[kind] = max(largest.get(kind, 0), bytes_)
    return largest


def largest_collectives(name: str) -> Any:
    """`[collectives of the chunk, bytes of the agent's parameters]`."""
    if name.endswith("_members"):
        run, shape, blocks = name.removesuffix("_members"), (2, 4), K
    elif name.endswith("_one_block"):
        run, shape, blocks = name.removesuffix("_one_block"), (1, 4), 1
    else:
        run, shape, blocks = name, (1, 4), K
    sharded_run = ShardedRun(make_run(run, blocks), shape, 2)
    return collectives(sharded_run.chunk.as_text() or ""), params_bytes(sharded_run.state.agent)


def params_bytes(agent: Any) -> int:
    """Bytes of all that is below fields named `params`."""
    flat = jax.tree.leaves_with_path(agent)
    return sum(x.nbytes for path, x in flat if below_params(path))


def numbers(tree: Any) -> list[np.ndarray]:
    is_key = lambda x: jnp.issubdtype(x.dtype, jax.dtypes.prng_key)
    plain = [jax.random.key_data(x) if is_key(x) else x for x in jax.tree.leaves(tree)]
    return [np.asarray(x, np.float64) for x in plain]


def differences(name: str, updates: int) -> dict[int, float]:
    """Largest difference of any number of state and metrics from the run on one device."""
    results = {}
    for devices in (1, 2, 4, 8):
        sharded_run = ShardedRun(make_run(name), (1, devices), updates)
        results[devices] = numbers(sharded_run.chunk(sharded_run.state))
    difference = lambda a, b: float(np.max(np.abs(a - b) / (1 + np.abs(a)), initial=0.0))
    return {
        devices: max(difference(a, b) for a, b in zip(results[1], values, strict=True))
        for devices, values in results.items()
        if devices > 1
    }


def memory(name: str) -> dict[str, dict[str, int]]:
    """Bytes on each device of `{blocks, devices}`: aliased, temporary, and of the replay."""
    answer = {}
    for blocks, devices in ((1, 1), (K, 1), (K, 4)):
        sharded_run = ShardedRun(make_run(name, blocks, LARGE), (1, devices), 2)
        memory_stats: Any = sharded_run.chunk.memory_analysis()
        ring = (
            sum(x.nbytes for x in jax.tree.leaves(sharded_run.state.agent.replay.data)) // devices
        )
        answer[f"{blocks} blocks on {devices}"] = {
            "aliased": memory_stats.alias_size_in_bytes,
            "temporary": memory_stats.temp_size_in_bytes,
            "replay": ring,
        }
    return answer


TASKS: dict[str, Callable[[str], Any]] = {
    "collectives": largest_collectives,
    "differences": lambda name: differences(name, 3),
    "long_differences": lambda name: differences(name, 50),
    "memory": memory,
}


def answers(*questions: str, module: str = "tests.jaxrl.sharded_runs") -> dict[str, Any]:
    """What a module answers in a process of its own, with eight devices."""
    command = [sys.executable, "-m", module, *questions]
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8"
    environment = {**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    run = subprocess.run(command, capture_output=True, text=True, timeout=900, env=environment)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def assert_only_sums(collectives: dict[str, int], params: int) -> None:
    """Nothing but all-reduces, none larger than a gradient and a few metrics."""
    assert set(collectives) == {"all-reduce"}
    assert collectives["all-reduce"] <= params + 64


if __name__ == "__main__":
    ask = lambda task, name: TASKS[task](name)
    print(json.dumps({question: ask(*question.split(":")) for question in sys.argv[1:]}))
