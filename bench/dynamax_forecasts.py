"""Forecasts of dynamax's linear Gaussian state-space model: `PYTHON dynamax_forecasts.py IN OUT`.

PYTHON is one that has dynamax; nothing of this project is imported. IN holds `training` `[E, T, n]`
and `inputs` `[E, T, m]`, in pieces of one length, `held_out` `[F, S, n]` and `held_out_inputs`
`[F, S, m]`, padded with 0, `dims`, `ahead` and `iterations`; OUT gets `forecasts`
`[F, S, ahead + 1, n]`. An input moves the state from its step to the next, as in the library.
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np
from dynamax.linear_gaussian_ssm import (  # pyright: ignore[reportMissingImports]
    LinearGaussianSSM,
    lgssm_filter,
)


def main(source: str, target: str) -> None:
    jax.config.update("jax_enable_x64", True)  # in 32 bits its covariances become indefinite
    with np.load(source) as file:
        arrays = {name: jnp.asarray(file[name], float) for name in file.files}
    dims, ahead, iterations = (int(arrays[x]) for x in ("dims", "ahead", "iterations"))
    y, u = arrays["training"], arrays["inputs"]
    before = lambda u: jnp.pad(u, ((1, 0), (0, 0)))[
        :-1
    ]  # dynamax's input moves the state to its step
    model = LinearGaussianSSM(dims, y.shape[-1], u.shape[-1])
    params, properties = model.initialize(jax.random.key(0), **first_guess(np.asarray(y), dims))
    params, _ = model.fit_em(
        params, properties, y, jax.vmap(before)(u), num_iters=iterations, verbose=False
    )

    @jax.jit
    def forecast(y: jax.Array, u: jax.Array) -> jax.Array:
        states = lgssm_filter(params, y, before(u)).filtered_means
        later = jnp.pad(u, ((0, ahead), (0, 0)))
        dynamics, emissions = params.dynamics, params.emissions

        def observe(z: jax.Array, u: jax.Array) -> jax.Array:
            return z @ emissions.weights.T + u @ emissions.input_weights.T + emissions.bias

        rows = [observe(states, before(u))]
        for k in range(ahead):
            now = later[k : k + len(u)]
            states = states @ dynamics.weights.T + now @ dynamics.input_weights.T + dynamics.bias
            rows.append(observe(states, now))
        return jnp.stack(rows, axis=1)

    expected = jax.vmap(forecast)(arrays["held_out"], arrays["held_out_inputs"])
    np.savez(target, forecasts=np.asarray(expected))


def first_guess(y: np.ndarray, dims: int) -> dict[str, jax.Array]:
    """Principal components as states: from dynamax's own random start EM ends far below."""
    flat = y.reshape(-1, y.shape[-1])
    mean = flat.mean(0)
    _, _, rows = np.linalg.svd(flat - mean, full_matrices=False)
    basis = rows[:dims]
    states = (y - mean) @ basis.T
    scale = states.std((0, 1))
    z, after = (states[:, s].reshape(-1, dims) / scale for s in (slice(-1), slice(1, None)))
    weights = np.linalg.lstsq(z, after, rcond=None)[0].T
    return {
        "dynamics_weights": jnp.asarray(weights),
        "emission_weights": jnp.asarray(basis.T * scale),
        "emission_bias": jnp.asarray(mean),
    }


if __name__ == "__main__":
    main(*sys.argv[1:])
