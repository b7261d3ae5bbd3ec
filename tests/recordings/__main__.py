"""Writes a simulated recording, and what is true of it, for `train.vector_field --data`.

python -m tests.recordings NAME [--seed 0] [--out NAME.npz] [--small]

NAME.npz holds y [E, T, n], u [E, T, m] and lengths [E]; NAME_truth.npz the states z [E, T, d], the
channels' matrix [n, d], offset [n], deviation [n] and is_count [n], and the state's noise [d].
"""

import argparse
from pathlib import Path

import numpy as np

from tests.recordings.simulation import Recording
from tests.recordings.systems import SYSTEMS, record


def write(recording: Recording, path: Path) -> Path:
    """Writes both files; returns the path of the second."""
    np.savez_compressed(
        path,
        y=recording.y.astype(np.float32),
        u=recording.u.astype(np.float32),
        lengths=recording.lengths,
    )
    truth = path.with_name(f"{path.stem}_truth.npz")
    channels = recording.model.channels._asdict()
    np.savez_compressed(truth, z=recording.z, noise=recording.model.noise, **channels)
    return truth


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.recordings",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", choices=list(SYSTEMS), metavar="NAME", help=", ".join(SYSTEMS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="NAME.npz unless given")
    parser.add_argument("--small", action="store_true", help="as small as in tests")
    options = parser.parse_args(arguments)
    path = options.out or Path(f"{options.name}.npz")
    if path.suffix != ".npz":
        parser.error(f"--out is {path}: give a name that ends in .npz")
    truth = write(record(options.name, options.seed, options.small), path)
    print(f"{path} and {truth} written")


if __name__ == "__main__":
    main()
