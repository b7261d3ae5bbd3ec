"""Models that the tests of state-space models share, in double precision where they need it."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxrl.dynamics.bases import Grid, Polynomial
from jaxrl.dynamics.state_space.filter import Record
from jaxrl.dynamics.state_space.model import Field, Params, StateSpace, layers


def random_model(
    field: Field = None, counts: tuple[bool, ...] = (False,) * 5, dims: int = 2, **parts: Any
) -> tuple[StateSpace, Params]:
    """A stable model with two inputs and random parameters."""
    rng = np.random.default_rng(3)
    n = len(counts)
    model = StateSpace(jnp.asarray(counts), dims, 2, field, **parts)
    turn = np.eye(dims) * -0.05 + 0.2 * np.triu(np.ones((dims, dims)), 1)
    numbers = {
        "transition": turn - np.triu(turn, 1).T,
        "drift": rng.normal(0, 0.02, dims),
        "effect": rng.normal(0, 0.3, (dims, 2)),
        "log_process": np.log(rng.uniform(0.1, 0.2, dims)),
        "matrix": rng.normal(0, 0.7, (n, dims)),
        "offset": rng.normal(0, 0.3, n) + 1.0,
        "log_noise": np.log(rng.uniform(0.3, 0.6, n)),
        "first_mean": rng.normal(0, 0.5, dims),
        "first_log_deviation": np.log(rng.uniform(0.5, 0.9, dims)),
    }
    start = layers(model, jax.random.key(0))
    start["weights"] = rng.normal(0, 0.3, start["weights"].shape)
    params = Params(**{name: jnp.asarray(x) for name, x in numbers.items()}, **start)
    wide = jax.tree.map(lambda x: jnp.asarray(x, jnp.result_type(float)), params)
    return model, wide


def simulate(
    model: StateSpace, params: Params, steps: int, missing: float = 0.0, seed: int = 1
) -> Record:
    """A record drawn from a model in NumPy, by `move` below; some numbers are missing."""
    rng = np.random.default_rng(seed)
    p = jax.tree.map(np.asarray, params)
    u, counts = rng.normal(size=(steps, 2)), np.asarray(model.is_count)
    y = np.zeros((steps, len(counts)))
    z = p.first_mean + np.exp(p.first_log_deviation) * rng.normal(size=model.dims)
    for t in range(steps):
        eta = p.matrix @ z + p.offset
        numbers = eta + np.exp(p.log_noise) * rng.normal(size=len(counts))
        y[t] = np.where(counts, rng.poisson(np.exp(np.minimum(eta, 5))), numbers)
        z = move(model, p, z, u[t]) + np.exp(p.log_process) * rng.normal(size=model.dims)
    observed = rng.uniform(size=y.shape) >= missing
    arrays = (np.where(observed, y, 7.0), u, observed, np.ones(steps, bool))
    return Record(*map(jnp.asarray, arrays))


def move(model: StateSpace, p: Params, z: np.ndarray, u: np.ndarray) -> np.ndarray:
    """The expected next states `[..., d]` in NumPy, for fields without networks."""
    after = z + z @ p.transition.T + p.drift + u @ p.effect.T
    if model.field is None:
        return after
    if isinstance(model.field, Grid):
        axis = np.linspace(-1, 1, model.field.per_axis) * model.field.half_width
        width = model.field.overlap * (axis[1] - axis[0])
        centres = np.stack(np.meshgrid(*[axis] * model.dims, indexing="ij"), -1)
        centres = centres.reshape(-1, model.dims)
        bump = lambda x: np.exp(-0.5 * ((x[..., None, :] - centres) ** 2).sum(-1) / width**2)
        size = (bump(np.zeros(model.dims)) ** 2).sum()
        return after + model.scale * bump(z) @ p.weights / np.sqrt(size)
    assert isinstance(model.field, Polynomial)
    assert model.field.degree == 2
    x = z / model.field.half_width
    first, second = np.sqrt(3) * x, np.sqrt(5) * (1.5 * x**2 - 0.5)
    one, (a, b), (c, d) = (
        np.ones(z.shape[:-1]),
        np.moveaxis(first, -1, 0),
        np.moveaxis(second, -1, 0),
    )
    features = np.stack([one, b, d, a, a * b, c], -1)  # powers 00 01 02 10 11 20
    return after + model.scale * features @ p.weights / np.sqrt(6)
