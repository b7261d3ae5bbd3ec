"""What is measured: each case is a function that returns a record, ready to be written."""

import statistics
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bench.peers import replays
from bench.peers.timing import Contender, Timing, ratio, time_in_turns
from bench.peers.training import (
    DQN_ENVS,
    Record,
    Size,
    Train,
    our_dqn,
    our_ppo,
    their_dqn,
    their_ppo,
)
from train.host.machine import devices, members

PEER = "PureJaxRL"
NARROW, WIDE = Size(4, 128, 976), Size(256, 128, 61)
"""PureJaxRL's own sizes over half a million steps, and many environments over two million."""
DQN_UPDATES = 50_000
BLOCKS = 2  # of a training that cores share
POINTS = 50  # of a curve
LAST = 0.1  # the share of a training over which its score is averaged


class Peers(NamedTuple):
    """PureJaxRL's modules; `dqn` needs flashbax."""

    ppo: ModuleType
    dqn: ModuleType | None


Case = Callable[[Peers, float], dict[str, Any]]
"""`(peers, seconds) -> record`."""


def ppo(
    peers: Peers, size: Size, groups: Sequence[int], microbatches: Sequence[int] = ()
) -> dict[str, Train]:
    """Their PPO, and ours with each `shuffle_group`; with the last also each `microbatch_size`."""
    ours = {f"ours, groups of {group}": our_ppo(size, group) for group in groups}
    for part in microbatches:
        name = f"ours, groups of {groups[-1]}, microbatches of {part}"
        ours[name] = our_ppo(size, groups[-1], part)
    return {PEER: their_ppo(peers.ppo, size), **ours}


def ppo_speed(peers: Peers, seconds: float) -> dict[str, Any]:
    """The speed of PPO; of ours also as one training on several cores."""
    size = WIDE._replace(updates=20)
    trains = ppo(peers, size, (1, 16, 64), (256,))
    if jax.device_count() >= BLOCKS:
        spread = our_ppo(size, 64, 256, BLOCKS, cores=BLOCKS)
        trains[f"ours, the same in {BLOCKS} blocks on {BLOCKS} cores"] = spread
    timings = time_in_turns(contenders(trains), seconds)
    return {**size._asdict(), **summarise_timings(timings, size.steps)}


def seeds_speed(
    size: Size, groups: Sequence[int], microbatches: Sequence[int] = (), seeds: int = 20
) -> Case:
    """The speed of many seeds side by side."""

    def case(peers: Peers, seconds: float) -> dict[str, Any]:
        return time_seeds(ppo(peers, size, groups, microbatches), size, seeds, seconds)

    return case


def dqn_seeds_speed(peers: Peers, seconds: float) -> dict[str, Any]:
    """The speed of ten seeds over a tenth of the budget: the replay is full and all learn."""
    size = Size(DQN_ENVS, 1, DQN_UPDATES // 10)
    return time_seeds(dqn(peers, size.updates), size, 10, seconds)


def time_seeds(trains: dict[str, Train], size: Size, seeds: int, seconds: float) -> dict[str, Any]:
    """Many seeds of each side by side, and of ours also as the library trains them."""
    ours_on_cores = {
        f"{name}, on {jax.device_count()} cores": train_on_cores(train, seeds)
        for name, train in trains.items()
        if name != PEER
    }
    trains = {name: vmap_seeds(train, seeds) for name, train in trains.items()} | ours_on_cores
    timings = time_in_turns(contenders(trains), seconds)
    return {**size._asdict(), "seeds": seeds, **summarise_timings(timings, size.steps * seeds)}


def dqn(peers: Peers, updates: int) -> dict[str, Train]:
    """Their DQN and ours."""
    return {PEER: their_dqn(require_dqn(peers), updates), "ours": our_dqn(updates)}


def require_dqn(peers: Peers) -> ModuleType:
    """PureJaxRL's DQN. Raises ValueError where it could not be loaded."""
    if peers.dqn is None:
        raise ValueError("PureJaxRL's DQN imports flashbax, which is not installed: install it")
    return peers.dqn


def dqn_speed(peers: Peers, seconds: float) -> dict[str, Any]:
    """Every round trains another seed to the end, so that there are scores as well."""
    trains = dqn(peers, DQN_UPDATES)
    timings = time_in_turns(contenders(trains), seconds)
    record = summarise_timings(timings, DQN_UPDATES * DQN_ENVS)
    for row, timing in zip(record["rows"], timings, strict=True):
        row |= summarise_learning(timing.results)
    return {"num_envs": DQN_ENVS, "num_steps": 1, "updates": DQN_UPDATES, **record}


def curves(
    size: Size, groups: Sequence[int], microbatches: Sequence[int] = (), seeds: int = 10
) -> Case:
    """What each has learned after the same steps; of microbatches also in blocks."""

    def case(peers: Peers, seconds: float) -> dict[str, Any]:
        del seconds  # as long as it takes
        rows = []
        trains = ppo(peers, size, groups, microbatches)
        for part in microbatches:
            name = f"ours, the same in {BLOCKS} blocks"
            trains[name] = our_ppo(size, groups[-1], part, BLOCKS)
        for name, train in trains.items():
            rows.append({"name": name, **summarise_learning(train_records(train, seeds))})
        return {**size._asdict(), "seeds": seeds, "rows": rows}

    return case


def replay(size: replays.Size) -> Case:
    """Ours beside flashbax, for each operation."""

    def case(peers: Peers, seconds: float) -> dict[str, Any]:
        del peers
        rows, ratios = [], {}
        for competitors in replays.comparisons(size):
            timings = time_in_turns(competitors, seconds / len(replays.OPERATIONS))
            record = summarise_timings(timings, size.calls)
            rows += record["rows"]
            ratios |= record["ratios"]
        return {**size._asdict(), "rows": rows, "ratios": ratios}

    return case


CASES: dict[str, tuple[str, Case]] = {
    "ppo_speed": ("PPO, 256 environments of 128 steps, one seed", ppo_speed),
    "ppo_curves": ("what PPO learns of 500,000 steps, ten seeds", curves(NARROW, (1, 4))),
    "ppo_curves_wide": ("likewise of 2 M steps of 256 environments", curves(WIDE, (1, 64), (256,))),
    "seeds": (
        "PPO, twenty seeds at once, 4 environments",
        seeds_speed(NARROW._replace(updates=100), (1, 4)),
    ),
    "seeds_wide": (
        "PPO, twenty seeds at once, 256 environments",
        seeds_speed(WIDE._replace(updates=1), (1, 64), (256,)),
    ),
    "dqn_speed": ("DQN, 500,000 steps, speed and score", dqn_speed),
    "dqn_seeds": ("DQN, ten seeds at once", dqn_seeds_speed),
    "replay_small": ("add and sample, beside flashbax", replay(replays.SIZES["small"])),
    "replay_large": ("likewise, a replay of 0.5 GB", replay(replays.SIZES["large"])),
}


def contenders(trains: dict[str, Train]) -> list[Contender]:
    """Whole trainings, each from its start."""
    return [
        Contender(name, lambda carry, key, train=train: (carry, *train(key)))
        for name, train in trains.items()
    ]


def vmap_seeds(train: Train, seeds: int) -> Train:
    """The training of so many seeds, from one key."""
    return lambda key: jax.vmap(train)(jax.random.split(key, seeds))


def train_records(train: Train, seeds: int) -> list[Record]:
    """What each of so many seeds has learned; the learners are left out."""
    record, _ = jax.jit(train_on_cores(lambda key: (train(key)[0], ()), seeds))(jax.random.key(0))
    return [Record(*of_seed) for of_seed in zip(*jax.device_get(record), strict=True)]


def train_on_cores(train: Train, seeds: int) -> Train:
    """The same as the library trains them: shared among the cores, in turns on each."""
    mesh = devices.mesh_of("auto", seeds, blocks=1)
    if mesh is None:
        return vmap_seeds(train, seeds)
    train_all = members.shard_members(lambda key, count: (key, train(key)), mesh)
    return lambda key: train_all(jax.random.split(key, seeds), jnp.int32(1))[1]


def summarise_timings(timings: Sequence[Timing], steps: int) -> dict[str, Any]:
    """Rows with rates, and the ratios of all to the first, by the wall clock and by CPU time."""
    first, *others = timings
    rows = [
        {
            "name": t.name,
            "compile_s": round(t.compile_s, 2),
            "wall_s": [float(f"{s:.4g}") for s in t.wall_s],
            "cpu_s": [float(f"{s:.4g}") for s in t.cpu_s],
            "per_second": steps / statistics.median(t.wall_s),
        }
        for t in timings
    ]
    ratios = {
        t.name: {
            "wall": ratio(first.wall_s, t.wall_s)._asdict(),
            "cpu": ratio(first.cpu_s, t.cpu_s)._asdict(),
        }
        for t in others
    }
    return {"rows": rows, "ratios": ratios}


def summarise_learning(records: Sequence[Record]) -> dict[str, Any]:
    """The mean return of each seed over the last tenth of updates, and the curve of all seeds."""
    points = np.array([curve(one, POINTS) for one in records])  # [S, P]
    scores = [curve(one, round(1 / LAST))[-1] for one in records]
    finite_columns = [column[~np.isnan(column)] for column in points.T]
    mean = [float(column.mean()) if column.size else None for column in finite_columns]
    return {"scores": [round(float(s), 1) for s in scores], "curve": mean}


def curve(record: Record, points: int) -> np.ndarray:
    """Mean return of the episodes that ended in each of so many equal parts; nan for none."""
    parts = np.array_split(np.arange(len(record.episodes)), points)
    total = lambda values: np.array([float(np.sum(values[part])) for part in parts])
    episodes = total(record.episodes)
    return np.where(episodes > 0, total(record.returns) / np.maximum(episodes, 1), np.nan)
