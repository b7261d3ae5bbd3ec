"""What PureJaxRL's PPO and DQN learn in the environments of `bench.common_ground`.

python -m bench.peers scores --purejaxrl PATH [CASE ...] [--seeds 10]

With its own numbers: those of `ppo.py` and `dqn.py`, and for MinAtar those of its notebook. A score
is the mean return of the last tenth of training, as its agents explore. Cases that --out already
has of the same files of PureJaxRL, with as many seeds and steps, are passed over.
"""

import argparse
import json
import math
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench.common_ground import MINATAR, summary
from bench.peers import shim
from bench.peers.cases import DQN_UPDATES, LAST, NARROW, Peers, curve, require_dqn, train_records
from bench.peers.training import Size, Train, their_dqn, their_ppo
from bench.snake_speed import append, machine

RESULTS = Path(__file__).parents[1] / "results" / "peer_scores.json"
CLASSIC = ("CartPole-v1", "Acrobot-v1", "MountainCar-v0")
IN_MINATAR = {"LR": 5e-3, "NUM_MINIBATCHES": 8, "ACTIVATION": "relu"}
OF_MINATAR = Size(64, 128, 1_220)


class Case(NamedTuple):
    """One of its algorithms in an environment."""

    algorithm: str
    env_id: str
    steps: int

    @property
    def name(self) -> str:
        return f"{self.algorithm} {self.env_id}"


CASES = [
    *(Case("ppo", env_id, 500_000) for env_id in CLASSIC),
    *(Case("dqn", env_id, 500_000) for env_id in CLASSIC),
    *(Case("ppo", f"{game}-MinAtar", 10_000_000) for game in MINATAR),
]


def train_of(peers: Peers, case: Case) -> Train:
    """Its training, with the numbers it comes with."""
    if case.algorithm == "dqn":
        return their_dqn(require_dqn(peers), DQN_UPDATES, ENV_NAME=case.env_id)
    if case.env_id.endswith("MinAtar"):
        return their_ppo(peers.ppo, OF_MINATAR, ENV_NAME=case.env_id, **IN_MINATAR)
    return their_ppo(peers.ppo, NARROW, ENV_NAME=case.env_id)


def key_of(case: Case, seeds: int, peer: str) -> dict[str, Any]:
    """What a measurement is known by; `peer` is the digest of PureJaxRL's files."""
    return {"case": case.name, "steps": case.steps, "seeds": seeds, "purejaxrl": peer}


def measure(peers: Peers, case: Case, seeds: int, peer: str) -> dict[str, Any]:
    """Trains all seeds and returns their late returns; None for one that ended no episode."""
    started = time.perf_counter()
    seed_records = train_records(train_of(peers, case), seeds)
    late_returns = [float(curve(one, round(1 / LAST))[-1]) for one in seed_records]
    return {
        **machine(),
        **key_of(case, seeds, peer),
        "late": [None if math.isnan(x) else x for x in late_returns],
        "seconds": time.perf_counter() - started,
    }


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.peers scores", description=__doc__)
    parser.add_argument("cases", nargs="*", help="such as 'ppo CartPole-v1'; default: all")
    parser.add_argument("--purejaxrl", type=Path, required=True, help="a checkout")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    checkout = options.purejaxrl.expanduser()
    try:
        peers, peer = Peers(*shim.load(checkout)), shim.digest(checkout)
    except ValueError as error:
        parser.error(str(error))
    for case in CASES:
        saved_records = json.loads(options.out.read_bytes()) if options.out.is_file() else []
        key = key_of(case, options.seeds, peer)
        # old records do not say of which files they are, and count as of these
        done = any(key.items() <= {"purejaxrl": peer, **x}.items() for x in saved_records)
        if done or (options.cases and case.name not in options.cases):
            continue
        record = measure(peers, case, options.seeds, peer)
        append(options.out, record)
        finished = [x for x in record["late"] if x is not None]
        mean, low, high = summary(finished) if finished else (np.nan,) * 3
        print(f"{case.name}: {mean:.4g} ({low:.4g} to {high:.4g}), {record['seconds']:.0f} s")
