"""How long a rig waits for its input: a simulated one, its stream and the learner, each a process.

python -m bench.rig_latency [--samples 2000] [--intervals 0.02 0.01] [--policies d_optimal myopic]

20 Gaussian channels, two inputs, two models side by side, a plan at every fifth sample, all limits
on; fits go on beside. A time is that from the sample's line to the input's in the rig's process.
Nothing else should run on the machine.
"""

import argparse
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from bench.snake_speed import append, machine

RESULTS = Path(__file__).parent / "results" / "rig_latency.json"
LIMITS = "--bound 1 --rate 0.5 --charge 60 --window 100 --step-time 1"
GOAL_MS = 5.0
FIRST_FIT = 100
"""As by default: until then inputs are random, though plans are made."""


def measure(policy: str, interval: float, samples: int, folder: Path) -> dict[str, Any]:
    """A row of results, in milliseconds."""
    program = [sys.executable, "-m", "train.vector_field"]
    flags = [*LIMITS.split(), "--policy", policy, "--port", "0", "--directory", str(folder / "run")]
    stream = subprocess.Popen(
        [*program, "stream", *flags], stdout=subprocess.PIPE, encoding="utf-8"
    )
    assert stream.stdout is not None
    try:
        ready = re.search(r"ready on [\d.]+:(\d+)", stream.stdout.readline())
        assert ready, "the stream did not start"
        played = folder / "played.npz"
        rig = [sys.executable, "-m", "train.vector_field.stream.simulated_rig", "--port", ready[1]]
        rig += ["--samples", str(samples), "--interval", str(interval), "--out", str(played)]
        subprocess.run(rig, check=True)
        stream.send_signal(signal.SIGTERM)
        output, _ = stream.communicate()
    finally:
        stream.kill()
        stream.wait()
    fits = re.findall(r"([\d,]+) fits?\b", output)
    with np.load(played) as arrays:
        times = 1e3 * arrays["seconds"]
    median, most, nearly_all, worst = np.quantile(times, [0.5, 0.99, 0.999, 1.0]).round(3).tolist()
    return {
        "policy": policy,
        "interval_s": interval,
        "samples": samples,
        "fits": int(fits[-1].replace(",", "")) if fits else 0,
        "median_ms": median,
        "ms_99": most,
        "ms_999": nearly_all,
        "worst_ms": worst,
        "share_within_goal": round(float(np.mean(times <= GOAL_MS)), 5),
        "ms_99_before_the_first_fit": round(float(np.quantile(times[:FIRST_FIT], 0.99)), 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=2_000)
    parser.add_argument("--intervals", type=float, nargs="+", default=[0.02, 0.01])
    parser.add_argument("--policies", nargs="+", default=["d_optimal", "myopic"])
    parser.add_argument("--note", default="", help="what else must be known of the measurement")
    parser.add_argument("--out", type=Path, default=RESULTS, help="JSON list to append to")
    options = parser.parse_args()
    rows = []
    print(
        "| policy | a sample every | median | 99 % within | 99.9 % | worst | within 5 ms | fits |"
    )
    print("|---" * 8 + "|")
    for policy in options.policies:
        for interval in options.intervals:
            with tempfile.TemporaryDirectory() as folder:
                row = measure(policy, interval, options.samples, Path(folder))
            rows.append(row)
            print(
                f"| {policy} | {1e3 * interval:g} ms | {row['median_ms']:.2f} ms "
                f"| {row['ms_99']:.2f} ms | {row['ms_999']:.2f} ms | {row['worst_ms']:.1f} ms "
                f"| {100 * row['share_within_goal']:.2f} % | {row['fits']} |",
                flush=True,
            )
    append(options.out, {**machine(), "note": options.note, "rows": rows})


if __name__ == "__main__":
    main()
