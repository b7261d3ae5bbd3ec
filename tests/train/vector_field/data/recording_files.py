"""Arrays of recordings, and files of them."""

import numpy as np

RNG = np.random.default_rng(0)
Y, U = RNG.normal(size=(3, 50, 4)), RNG.normal(size=(3, 50, 2))
LENGTHS = np.array([50, 20, 33])


def save_arrays(path, **arrays) -> str:
    np.savez(path, **arrays)
    return str(path)


SPIKES = {"spike_times": [0.5, 2.0], "spike_units": [0, 1], "u": np.ones((3, 1))}
