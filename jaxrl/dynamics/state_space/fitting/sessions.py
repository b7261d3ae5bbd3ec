"""Where a fit to sessions of different channels begins: readouts of one field that agree.

The same system seen on other days, by other channels: the field is shared, and each session has a
readout C, b, r of its own. A session alone knows its states up to an affine map. So the field is
first fitted to one session, and the states of each other one, its principal components, are turned
until that field foretells its observations: rotations and reflections are tried, and from the best
of them the readout alone is fitted. From there all sessions are fitted together, as one record in
which an episode lacks the channels of the others.

Letters: n channels of all sessions, d dimensions, K rotations, B windows.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxrl.dynamics.state_space.filter import Record, filter_states
from jaxrl.dynamics.state_space.fitting import fit as fits
from jaxrl.dynamics.state_space.fitting.fit import sample_windows
from jaxrl.dynamics.state_space.fitting.initial_guess import initial_guess
from jaxrl.dynamics.state_space.fitting.objective import loss
from jaxrl.dynamics.state_space.model import Params, StateSpace
from jaxrl.numerics import linalg
from jaxrl.numerics.linalg import matmul

READOUT = ("matrix", "offset", "log_noise")
"""What each session has of its own, by channel."""
FIELD_STEPS, READOUT_STEPS, WINDOWS = 150, 60, 32
"""Gradient steps of the field in the first session, and of the readout in each other one; B."""
ROTATIONS, BEST = 48, 3
"""K, and how many of them are fitted."""
LEAST = 1e-4
"""Variance of states added in each direction, in units of the largest."""


class Session(NamedTuple):
    """What was recorded in one session."""

    record: Record  # [E, T], with its own channels alone
    channels: np.ndarray  # int, their places among all n; not traced


def session_model(model: StateSpace, channels: np.ndarray) -> StateSpace:
    """The model of these channels alone."""
    return model.replace(is_count=model.is_count[channels])  # pyright: ignore


def session_params(params: Params, channels: np.ndarray) -> Params:
    """The parameters of these channels alone, with the same field and the same states."""
    return params._replace(**{name: getattr(params, name)[channels] for name in READOUT})


def aligned_guess(
    config: fits.Config,
    model: StateSpace,
    sessions: Sequence[Session],
    guess: Params,
    key: jax.Array,
) -> Params:
    """Parameters `[n]` of all channels; `guess` is one of the first session alone.

    Pure but for the channels; consumes `key`.
    """
    first, *others = sessions
    config = config.replace(windows=min(WINDOWS, config.windows))  # pyright: ignore
    field_key, *keys = jax.random.split(key, len(sessions))
    first_model = session_model(model, first.channels)
    params = run_steps(config, first_model, guess, first.record, FIELD_STEPS, field_key)
    centre, root = moments_of_states(config, first_model, params, first.record)
    readouts = [params]
    for session, session_key in zip(others, keys, strict=True):
        own_model = session_model(model, session.channels)
        readouts.append(fit_readout(config, own_model, session, params, centre, root, session_key))
    order = np.argsort(np.concatenate([x.channels for x in sessions]))
    rows = {name: jnp.concatenate([getattr(x, name) for x in readouts])[order] for name in READOUT}
    return params._replace(**rows)


def moments_of_states(
    config: fits.Config, model: StateSpace, params: Params, record: Record
) -> tuple[jax.Array, jax.Array]:
    """The mean `[d]` and a root `[d, d]` of the covariance of filtered states."""
    run = lambda record: filter_states(model, params, record, config.objective.prediction).belief
    beliefs = jax.vmap(run)(record)
    weight = record.valid / jnp.maximum(jnp.sum(record.valid), 1)
    centre = jnp.sum(weight[..., None] * beliefs.mean, axis=(0, 1))
    deviation = (beliefs.mean - centre[None, None]) * jnp.sqrt(weight)[..., None]
    flat = deviation.reshape(-1, model.dims)
    covariance = matmul(flat.T, flat)
    covariance = covariance + jnp.sum(weight[..., None, None] * beliefs.covariance, axis=(0, 1))
    return centre, linalg.root(covariance + LEAST * jnp.trace(covariance) * jnp.eye(model.dims))


def fit_readout(
    config: fits.Config,
    model: StateSpace,
    session: Session,
    params: Params,
    centre: jax.Array,
    root: jax.Array,
    key: jax.Array,
) -> Params:
    """The field of `params`, with the readout by which it foretells this session best.

    States of the field have the mean `centre` and the root `root` of their covariance.
    """
    rotation_key, window_key, loss_key, fit_key, guess_key = jax.random.split(key, 5)
    own = initial_guess(model, session.record, guess_key)
    whiten = linalg.inverse(root)
    windows = sample_windows(session.record, config.window, config.windows, window_key)
    total = jnp.sum(session.record.observed)

    def turn(rotation: jax.Array) -> Params:
        # Own states are Rᵀ root⁻¹ (z - centre) for states z of the field.
        matrix = matmul(own.matrix, matmul(rotation.T, whiten))
        offset = own.offset - matmul(matrix, centre)
        return params._replace(matrix=matrix, offset=offset, log_noise=own.log_noise)

    def cost(candidate: Params) -> jax.Array:
        value = loss(config.objective, model, candidate, windows, total, jax.random.clone(loss_key))
        return jnp.nan_to_num(value, nan=jnp.inf)

    turned = jax.vmap(turn)(rotations(model.dims, rotation_key))
    costs = jax.lax.map(cost, turned)
    best = jnp.argsort(costs)[:BEST]
    candidates = jax.tree.map(lambda x: x[best], turned)
    of_field = tuple(name for name in Params._fields if name not in READOUT)
    readout_config = config.replace(known=of_field)  # pyright: ignore
    # One after the other: XLA's products of many batch axes are slow on CPUs, and may crash there.
    improve = lambda candidate: run_steps(
        readout_config, model, candidate, session.record, READOUT_STEPS, jax.random.clone(fit_key)
    )
    fitted = jax.lax.map(improve, candidates)
    chosen = jnp.argmin(jax.lax.map(cost, fitted))
    return jax.tree.map(lambda x: x[chosen], fitted)


def rotations(dims: int, key: jax.Array) -> jax.Array:
    """K rotations and reflections `[K, d, d]`: even angles in the plane, random ones in more.

    Of one dimension there are only two, 1 and -1. Consumes `key`.
    """
    if dims == 1:
        return jnp.array([[[1.0]], [[-1.0]]])
    if dims == 2:
        angles = 2 * jnp.pi * jnp.arange(ROTATIONS // 2) / (ROTATIONS // 2)
        cos, sin = jnp.cos(angles), jnp.sin(angles)
        turns = jnp.stack([jnp.stack([cos, -sin], -1), jnp.stack([sin, cos], -1)], -2)
        return jnp.concatenate([turns, turns * jnp.array([1.0, -1.0])[None, None]])
    q, r = jnp.linalg.qr(jax.random.normal(key, (ROTATIONS, dims, dims)))
    # With these signs they are uniform (Mezzadri 2007), of both determinants.
    return q * jnp.sign(jnp.diagonal(r, axis1=1, axis2=2))[:, None]


def run_steps(
    config: fits.Config,
    model: StateSpace,
    start: Params,
    record: Record,
    steps: int,
    key: jax.Array,
) -> Params:
    """Parameters after so many gradient steps; consumes `key`."""
    config = config.replace(steps=steps)  # pyright: ignore

    def step(i: jax.Array, fit: fits.Fit) -> fits.Fit:
        return fits.gradient_step(config, model, fit, record, jax.random.fold_in(key, i))[0]

    return jax.lax.fori_loop(0, steps, step, fits.init(config, start)).params
