"""Which inputs to try next: those of the largest expected information, within limits.

Axes: d latent dimensions, m inputs, H steps of a plan, B blocks in which an input is held, N plans.
"""

from functools import partial
from typing import NamedTuple

import jax

from jaxrl.dynamics.planning import fisher, icem, input_limits, plan_objectives
from jaxrl.dynamics.planning.input_limits import Limits
from jaxrl.dynamics.planning.predictive_model import PredictiveModel, design_of
from jaxrl.numerics.linalg import matmul

MOST_NUMBERS = 2**22
"""Numbers of the designs of all plans that are in memory at once."""


class Question(NamedTuple):
    """Where one stands, and what may be done."""

    model: PredictiveModel
    z: jax.Array  # [d] the state now
    before: jax.Array  # [m] the input just given, from which the first may differ by `change`
    limits: Limits


def nats(model: PredictiveModel, z: jax.Array, plan: jax.Array) -> jax.Array:
    """Expected information about the field's parameters, from the transitions of a plan `[H, m]`.

    Half the decrease of the log-determinant of their covariance (D-optimality), along the path that
    the model expects from `z` `[d]`; at least 0. The matrix that is factorised has a row for each
    number of the plan's states, or for each parameter, whichever are fewer.
    """
    states = plan_objectives.path(model, z, plan)[:-1]
    design = jax.vmap(partial(design_of, model))(states, plan)
    outputs = len(z) if design.ndim == 2 else 1
    rows = matmul(design.reshape(-1, design.shape[-1]), model.root)
    rows = rows.T if len(rows) > rows.shape[1] else rows  # det(I + A B) = det(I + B A)
    return fisher.d_gain(matmul(rows, rows.T), 1 / model.relative_noise, outputs) / 2


def nats_of_all(model: PredictiveModel, z: jax.Array, plans: jax.Array) -> jax.Array:
    """`nats` `[N]` of plans `[N, H, m]`, as many at once as fit into memory."""
    numbers = plans.shape[1] * len(z) * len(model.root)
    if len(plans) * numbers <= MOST_NUMBERS:
        return jax.vmap(partial(nats, model, z))(plans)
    return jax.lax.map(partial(nats, model, z), plans, batch_size=max(1, MOST_NUMBERS // numbers))


def best(
    question: Question, config: icem.Config, hold: int, steps: int, key: jax.Array
) -> jax.Array:
    """The plan `[H, m]` of the largest expected information that a search finds; consumes `key`.

    The search of `config` is over B = `config.horizon` blocks, each held for `hold` steps.
    """
    model, z, before, limits = question
    plan_of = lambda blocks: input_limits.enforce(limits, before, blocks, hold, steps)

    def cost(candidates: jax.Array) -> jax.Array:
        return -nats_of_all(model, z, jax.vmap(plan_of)(candidates))

    start = icem.first_plan(config, limits.low, limits.high)
    blocks, *_ = icem.icem(cost, config, start, limits.low, limits.high, key)
    return plan_of(blocks)


def random(question: Question, count: int, hold: int, steps: int, key: jax.Array) -> jax.Array:
    """N = `count` plans `[N, H, m]` of inputs drawn uniformly from the box; consumes `key`."""
    limits, blocks = question.limits, -(-steps // hold)
    share = jax.random.uniform(key, (count, blocks, len(limits.low)))
    targets = limits.low[None, None] + share * (limits.high - limits.low)[None, None]
    enforce_limits = partial(input_limits.enforce, limits, question.before, hold=hold, steps=steps)
    return jax.vmap(enforce_limits)(targets)
