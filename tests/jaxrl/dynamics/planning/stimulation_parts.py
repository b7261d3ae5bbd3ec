"""A small field and what is known of it; costs of plans in plain float64 NumPy."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxrl.dynamics import rbf
from jaxrl.dynamics.planning import icem
from jaxrl.dynamics.planning.predictive_model import PredictiveModel
from jaxrl.dynamics.planning.stimulation import Config

GRID = rbf.Grid(per_axis=4, half_width=2.0)
CENTRES, WIDTH = np.asarray(GRID.centres(), np.float64), GRID.width
DT, BLUR, D, P = 0.3, 0.7, 2, 16
LOW, HIGH = jnp.array([-1.0, -2.0]), jnp.array([1.0, 2.0])
PLANNER = icem.Config(horizon=4, candidates=12, iterations=2, elites=3)
PLANNED = Config(planner=PLANNER, replan_steps=3)
single = partial(jnp.asarray, dtype=jnp.float32)


class Knowledge(NamedTuple):
    """The numbers of a field, `[p, d]` weights of bumps or `[p]` of a family."""

    numbers: jax.Array
    covariance: jax.Array


def family(z, e):
    """A field of three numbers, nonlinear in one of them; NumPy and JAX."""
    x, y = z[0], z[1]
    return [e[0] * y - x**3, e[1] * x + y * e[2] ** 2]


def information_matrix(z):
    return [[1.5 + z[0] ** 2, 0.3], [0.3, 0.8]]


def predictive_model(knowledge: Knowledge) -> PredictiveModel:
    numbers, covariance = knowledge
    if numbers.ndim == 2:
        velocity = lambda z: rbf.features(GRID, z) @ numbers
        design = lambda z: DT * rbf.features(GRID, z)
    else:
        velocity = lambda z: jnp.stack(family(z, numbers))
        design = lambda z: DT * jax.jacfwd(lambda e: jnp.stack(family(z, e)))(numbers)
    return PredictiveModel(
        step=lambda z, u: z + DT * (velocity(z) + u),
        design=design,
        root=jnp.linalg.cholesky(covariance),
        relative_noise=jnp.array(BLUR),
        observation_information=lambda z: jnp.stack(
            [jnp.stack([jnp.asarray(x) for x in row]) for row in information_matrix(z)]
        ),
        predictive_variance=lambda z: (
            rbf.features(GRID, z) @ covariance[:P, :P] @ rbf.features(GRID, z)
        ),
        novelty=lambda z: z[0] ** 2 + 0.1 * z[1] ** 4,
        place=lambda z: jnp.stack([z[0] + z[1], z[0] * z[1], z[1]]),
    )


def bumps(z: np.ndarray) -> np.ndarray:
    return np.exp(-np.sum((z - CENTRES) ** 2, axis=1) / (2 * WIDTH**2))


def next_state(z: np.ndarray, u: np.ndarray, flat: np.ndarray) -> np.ndarray:
    """The next state; `flat` are all the numbers of the field in a row."""
    velocity = bumps(z) @ flat.reshape(P, D) if len(flat) == P * D else family(z, flat)
    return z + DT * (np.asarray(velocity) + u)


def slopes(function, flat: np.ndarray) -> np.ndarray:
    """Central differences by every number, as the last axis."""
    changes = 1e-5 * np.eye(len(flat))
    return np.stack([(function(flat + c) - function(flat - c)) / 2e-5 for c in changes], axis=-1)


def knowledge_of(*shape: int) -> Knowledge:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(shape[0], shape[0] + 2))
    numbers = 0.5 * rng.normal(size=shape)
    return Knowledge(single(numbers), single(rows @ rows.T / shape[0]))


KNOWN, FAMILY = knowledge_of(P, D), knowledge_of(3)


def flatten(knowledge: Knowledge) -> tuple[np.ndarray, np.ndarray]:
    """All numbers in a row, and their covariance, both float64."""
    numbers, covariance = (np.asarray(x, np.float64) for x in knowledge)
    outputs = numbers.shape[1] if numbers.ndim == 2 else 1
    return numbers.ravel(), np.kron(covariance, np.eye(outputs))


def expected_cost(config: Config, knowledge: Knowledge, z: np.ndarray, plan: np.ndarray) -> float:
    """From the definition, with matrices of all parameters."""
    flat, covariance = flatten(knowledge)

    def path(flat: np.ndarray) -> np.ndarray:
        states = [z]
        for u in plan:
            states.append(next_state(states[-1], u, flat))
        return np.array(states)

    states, price = path(flat), config.action_cost * np.sum(plan**2)
    if config.objective == "disagreement":
        own = np.asarray(knowledge.covariance, np.float64)
        return price - sum(bumps(state) @ own @ bumps(state) for state in states[1:])
    information = np.zeros_like(covariance)
    if config.propagate:
        for state, change in zip(states[1:], slopes(path, flat)[1:], strict=True):
            information += change.T @ np.array(information_matrix(state)) @ change
    else:
        for state in states[config.every :: config.every]:
            change = slopes(lambda flat, at=state: next_state(at, np.zeros(D), flat), flat)
            information += change.T @ change / BLUR
    after = np.linalg.inv(np.linalg.inv(covariance) + information)
    if config.objective == "a_optimal":
        return price - (np.trace(covariance) - np.trace(after))
    return price - (np.linalg.slogdet(covariance)[1] - np.linalg.slogdet(after)[1])


def plans(number: int, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    box = rng.uniform(np.asarray(LOW), np.asarray(HIGH), (number, PLANNER.horizon, D))
    return box.astype(np.float32)
