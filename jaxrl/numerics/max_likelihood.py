"""Maximum likelihood of a few parameters, with intervals by profile likelihood.

The interval of a parameter holds every value that the data do not reject: those at which twice the
log-likelihood, maximised over all other parameters, is less than the 95 % quantile of χ²₁ below its
maximum (Wilks 1938; Venzon & Moolgavkar 1988). Unlike one from the curvature it need not be
symmetric, and where data leave a parameter open it has no end, which a curvature cannot say.

All functions are pure and can be mapped over data. Axes: P parameters, n terms, S starts, G points
of a profile.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxrl.numerics import linalg

Terms = Callable[[Any, Any], jax.Array]
"""`(theta [P], data) -> [n]`, the terms of a log-likelihood."""

DROP = 1.920729
"""Half of the 95 % quantile of χ²₁."""
MOST_STEPS, SMALL_GAIN = 60, 1e-4
"""Newton steps of a search, at most, and the gain of a step below which it has arrived."""
REFINEMENTS = 6
"""Halvings of the bracket of an end."""
OUTWARD = 0.4 * 1.35 ** np.arange(16, dtype=np.float32)
"""Points of a profile on each side, in standard errors."""
SIGNS = np.array([-1.0, 1.0], np.float32)
"""The two sides of a profile."""
STEEPEST = 20.0
"""The largest change of another parameter for one of the parameter that a profile is of."""
LONGEST = 2.0
"""The largest change of a parameter in a Newton step."""


class Bounds(NamedTuple):
    """Where parameters are sought, float32 `[P]` each; those that are not `free` stay."""

    low: Any
    high: Any
    free: Any  # bool


class Profile(NamedTuple):
    """How far the log-likelihood falls as one parameter leaves its estimate, on both sides."""

    value: Any  # [2 G + 1], rising
    drop: Any  # [2 G + 1]
    theta: Any  # [2 G + 1, P], all parameters there


class Estimate(NamedTuple):
    """The estimates of parameters, and what the data say of each."""

    theta: Any  # [P]
    low: Any  # [P] ends of the 95 % intervals; -inf where there is none
    high: Any  # [P] inf where there is none
    information: Any  # [P, P] the negative Hessian; identity rows where not free
    log_likelihood: Any
    gradient: Any  # [P], nearly 0 but at bounds
    profile: Profile  # of each parameter: leaves [P, ...]


def fit(terms: Terms, data: Any, starts: Any, bounds: Bounds) -> Estimate:
    """The estimates from the best of several `starts` `[S, P]`, and their profiles."""
    bounds = Bounds(*map(jnp.asarray, bounds))
    climb = lambda start: maximise(terms, data, start, bounds)
    candidates = jax.vmap(climb)(starts)
    heights = jax.vmap(lambda theta: jnp.sum(terms(theta, data)))(candidates)
    best = jnp.argmax(jnp.where(jnp.isfinite(heights), heights, -jnp.inf))
    theta = candidates[best]
    gradient, information = derivatives(terms, data, theta, bounds.free)
    _, inner = hold(presses(theta, gradient, bounds), gradient, information)
    profile, low, high = profiles(terms, data, theta, inner, bounds)
    height = jnp.sum(terms(theta, data))
    return Estimate(theta, low, high, information, height, gradient, profile)


def maximise(terms: Terms, data: Any, start: jax.Array, bounds: Bounds) -> jax.Array:
    """The parameters `[P]` after damped Newton steps (Levenberg 1944), none of which goes down.

    It ends once an undamped step gains next to nothing. Gains are sums of differences of terms:
    differences of sums would be lost to rounding in float32.
    """

    def step(climb: Climb) -> Climb:
        theta, damping = climb.theta, climb.damping
        gradient, information = derivatives(terms, data, theta, bounds.free)
        # What would leave the box stays, as if it were not free.
        pressed = presses(theta, gradient, bounds)
        gradient, information = hold(pressed, gradient, information)
        scale = jnp.maximum(jnp.abs(jnp.diagonal(information)), 1e-3)
        damped = information + damping * jnp.diag(scale)
        direction = linalg.solve_positive(damped, gradient[:, None])[:, 0]
        candidate = theta + jnp.clip(direction, -LONGEST, LONGEST)
        candidate = jnp.where(bounds.free, jnp.clip(candidate, bounds.low, bounds.high), theta)
        gain = jnp.sum(terms(candidate, data) - terms(theta, data))
        is_better = gain > 0  # false for NaN
        # Where the log-likelihood bends upwards the step goes down, and at a bound nowhere.
        is_ascent = jnp.sum(gradient * direction) > -SMALL_GAIN
        is_done = (jnp.abs(gain) < SMALL_GAIN) & (damping < 0.1) & is_ascent
        damping = jnp.clip(jnp.where(is_better, damping / 5, damping * 8), 1e-6, 1e8)
        theta = jnp.where(is_better, candidate, theta)
        return Climb(theta, damping, climb.steps + 1, is_done)

    start = jnp.where(bounds.free, jnp.clip(start, bounds.low, bounds.high), start)
    climb = Climb(start, jnp.float32(1e-2), jnp.int32(0), jnp.bool_(False))
    goes_on = lambda climb: ~climb.is_done & (climb.steps < MOST_STEPS) & (climb.damping < 1e8)
    return jax.lax.while_loop(goes_on, step, climb).theta


class Climb(NamedTuple):
    """The state of a search."""

    theta: jax.Array  # [P]
    damping: jax.Array
    steps: jax.Array
    is_done: jax.Array


def derivatives(
    terms: Terms, data: Any, theta: jax.Array, free: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Gradient `[P]` and negative Hessian `[P, P]` in the free parameters.

    The others have a gradient of 0 and rows of the identity.
    """
    log_likelihood = lambda x: jnp.sum(terms(x, data))
    gradient = jax.grad(log_likelihood)(theta)
    return hold(~free, gradient, -jax.hessian(log_likelihood)(theta))


def presses(theta: jax.Array, gradient: jax.Array, bounds: Bounds) -> jax.Array:
    """Which parameters lie at a bound that the gradient leads beyond, bool `[P]`."""
    return (theta <= bounds.low) & (gradient < 0) | (theta >= bounds.high) & (gradient > 0)


def hold(
    which: jax.Array, gradient: jax.Array, information: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Gradient and information with 0 and rows of the identity where `which` `[P]`."""
    moves = ~which[:, None] & ~which[None]
    identity = jnp.diag(which.astype(information.dtype))
    return jnp.where(which, 0.0, gradient), jnp.where(moves, information, identity)


def profiles(
    terms: Terms, data: Any, theta: jax.Array, information: jax.Array, bounds: Bounds
) -> tuple[Profile, jax.Array, jax.Array]:
    """`(profile, low, high)` of every parameter: leaves `[P, ...]`, `[P]`, `[P]`."""
    size = theta.size
    steps, tangents = curvature(information)
    follow_side = lambda which, sign: follow(
        terms, data, theta, steps[which], tangents[which], which, sign, bounds
    )
    sides = jax.vmap(lambda which: jax.vmap(lambda sign: follow_side(which, sign))(SIGNS))
    value, drop, paths, ends = sides(jnp.arange(size))  # [P, 2, G], ..., [P, 2]
    middle = theta[:, None], jnp.zeros((size, 1)), jnp.broadcast_to(theta, (size, 1, size))
    joined = (
        jnp.concatenate([side[:, 0, ::-1], centre, side[:, 1]], axis=1)
        for side, centre in zip((value, drop, paths), middle, strict=True)
    )
    low, high = (jnp.where(bounds.free, ends[:, i], theta) for i in (0, 1))
    return Profile(*joined), low, high


def curvature(information: jax.Array) -> tuple[jax.Array, jax.Array]:
    """First steps `[P]` of profiles, and how the other parameters go along `[P, P]`.

    The steps are standard errors where there are any, within 1e-3 and 2.
    """
    size = len(information)
    covariance = linalg.solve_positive(information, jnp.eye(size, dtype=information.dtype))
    variance = jnp.diagonal(covariance)
    has_one = jnp.all(jnp.isfinite(covariance), axis=1) & (variance > 0)
    alone = 1 / jnp.maximum(jnp.diagonal(information), 1e-6)  # with the others fixed
    steps = jnp.clip(jnp.sqrt(jnp.maximum(jnp.where(has_one, variance, 0.0), alone)), 1e-3, 2.0)
    tangents = covariance / jnp.where(has_one, variance, 1.0)[:, None]
    return steps, jnp.where(has_one[:, None], jnp.clip(tangents, -STEEPEST, STEEPEST), 0.0)


class Bracket(NamedTuple):
    """Where an interval ends, between two maxima `[P]`, and the last two points of the path."""

    inside: jax.Array  # the farthest within the interval
    outside: jax.Array  # the nearest beyond it
    is_closed: jax.Array  # whether there is one beyond
    path: jax.Array
    before: jax.Array


def follow(
    terms: Terms,
    data: Any,
    theta: jax.Array,
    step: jax.Array,
    tangent: jax.Array,
    which: jax.Array,
    sign: jax.Array,
    bounds: Bounds,
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """One side of a profile: values `[G]`, drops `[G]`, parameters `[G, P]` and the interval's end.

    The end is infinite if the log-likelihood has not dropped by `DROP` at the last point, which is
    the bound or 36 times `step` away. Each search starts where the last two points lead: along a
    ridge the other parameters have to move, too.
    """
    is_own = jnp.arange(theta.size) == which
    others = bounds._replace(free=bounds.free & ~is_own)
    reference = terms(theta, data)
    height = lambda x: jnp.sum(terms(x, data) - reference)
    offsets = jnp.append(step * OUTWARD, jnp.zeros(REFINEMENTS))

    def predict(bracket: Bracket, offset: jax.Array) -> jax.Array:
        """The start of a search: farther out or, for no offset, in the middle of the bracket."""
        value = jnp.clip(theta[which] + sign * offset, bounds.low[which], bounds.high[which])
        length = (bracket.path - bracket.before)[which]
        secant = (bracket.path - bracket.before) / jnp.where(length == 0, 1.0, length)
        slope = jnp.where(length == 0, tangent, jnp.clip(secant, -STEEPEST, STEEPEST))
        ahead = bracket.path + slope * (value - bracket.path[which])
        ahead = jnp.where(is_own, value, jnp.where(bounds.free, ahead, theta))
        ahead = jnp.where(bounds.free, jnp.clip(ahead, bounds.low, bounds.high), theta)
        still = jnp.where(is_own, value, bracket.path)
        is_better = height(ahead) > height(still)  # false for NaN
        middle = (bracket.inside + bracket.outside) / 2
        return jnp.where(offset > 0, jnp.where(is_better, ahead, still), middle)

    def move(bracket: Bracket, offset: jax.Array):
        best = maximise(terms, data, predict(bracket, offset), others)
        drop = -height(best)
        drop = jnp.where(jnp.isfinite(drop), drop, jnp.inf)
        counts = (offset == 0) | ~bracket.is_closed  # not once a profile goes on beyond the end
        is_inside = drop <= DROP
        moved = Bracket(
            inside=jnp.where(counts & is_inside, best, bracket.inside),
            outside=jnp.where(counts & ~is_inside, best, bracket.outside),
            is_closed=bracket.is_closed | ~is_inside,
            path=best,
            before=bracket.path,
        )
        return moved, (best[which], drop, best)

    start = Bracket(theta, theta, jnp.bool_(False), theta, theta)
    bracket, (value, drop, path) = jax.lax.scan(move, start, offsets)
    count = len(OUTWARD)
    end = jnp.where(bracket.is_closed, bracket.outside[which], sign * jnp.inf)
    return value[:count], drop[:count], path[:count], end
