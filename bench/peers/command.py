"""Our PPO, DQN and replay beside PureJaxRL's and flashbax's, on gymnax's CartPole.

python -m bench.peers --purejaxrl PATH [--only CASE ...] [--seconds 120]

PATH is a checkout of https://github.com/luchris429/purejaxrl. Its DQN and the replay need flashbax;
distrax is used where it is installed. Each case is written as soon as it is done, and left out
where --out already has it from the same versions; --again measures it once more. Ratios are of
times in the same round, theirs over ours, so above 1 ours is faster.
"""

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

import jax

from bench.peers import shim
from bench.peers.cases import CASES, Peers
from bench.peers.report import table
from bench.snake_speed import append, machine, version_of

RESULTS = Path(__file__).parents[1] / "results" / "peers.json"


def main() -> int:
    options = parse_options()
    jax.config.update("jax_enable_compilation_cache", False)  # seconds of compiling are measured
    checkout = options.purejaxrl.expanduser()
    try:
        peers = Peers(*shim.load(checkout))
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    failed = 0
    for name in options.only or CASES:
        summary, case = CASES[name]
        current = conditions(name, checkout)
        if not options.again and any(matches(current, saved) for saved in records(options.out)):
            print(f"{name}: in {options.out} already; --again measures it once more")
            continue
        print(f"## {name}: {summary}", flush=True)
        try:
            record = {**current, "load": os.getloadavg()[0], **case(peers, options.seconds)}
        except (ValueError, ImportError) as error:
            print(f"{name}: {error}", file=sys.stderr)
            failed += 1
            continue
        append(options.out, record)
        print(table(record), flush=True)
    return int(failed > 0)


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.peers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="cases: " + "; ".join(f"{name}, {what}" for name, (what, _) in CASES.items()),
    )
    parser.add_argument("--purejaxrl", type=Path, required=True, metavar="PATH", help="a checkout")
    parser.add_argument("--only", nargs="+", choices=CASES, metavar="CASE", help="default: all")
    parser.add_argument("--seconds", type=float, default=120.0, help="of timed rounds, each case")
    parser.add_argument("--again", action="store_true", help="also what has been measured before")
    parser.add_argument("--out", type=Path, default=RESULTS, help="JSON list to append to")
    return parser.parse_args()


def conditions(case: str, checkout: Path) -> dict[str, Any]:
    """What a measurement depends on besides our own code."""
    machine_info = machine()
    peers = {package: version_of(package) for package in ("flashbax", "distrax")}
    versions = machine_info["versions"] | peers | {"purejaxrl": shim.digest(checkout)}
    return {"case": case, **machine_info, "versions": versions}


def matches(current: dict[str, Any], saved: dict[str, Any]) -> bool:
    return all(current[name] == saved[name] for name in current if name != "date")


def records(path: Path) -> list[dict[str, Any]]:
    return json.loads(path.read_bytes()) if path.exists() else []
