"""Pairs of states of trajectories: their offsets, probabilities and expected counts.

Trajectories are arrays `[T, N]`: T consecutive transitions of N environments; `done`
ends a trajectory, and so does the last row. A pair begins at any transition, all equally likely,
and ends k transitions later in the same trajectory, 1 <= k <= n with n transitions left:
p(k | n) = (1-g) g^(k-1) / (1 - g^n) at discount g; always 1 at g = 0, uniform at g = 1
(Gomez, Bowling & Machado 2024, whose pairs are these).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxrl.numerics import batched_cond
from jaxrl.numerics.linalg import matmul

CELLS = 2**20  # largest size of the table into which pairs are counted, unless S × S is larger
COPIES = 256  # largest number of copies of that table
PREDECESSORS = 8  # of a state at most, where products by a chain are sums over predecessors
MANY_STATES = 256  # from which on these are looked for: of fewer, products are as quick


def transitions_left(done: jax.Array) -> jax.Array:
    """Transitions left in the trajectory, this one included: int32 `[T, N]` from bool `[T, N]`."""

    def step(next_left, done):
        left = jnp.where(done, 1, next_left + 1)
        return left, left

    return jax.lax.scan(step, jnp.zeros(done.shape[1:], jnp.int32), done, reverse=True)[1]


def geometric(key: jax.Array, remaining: jax.Array, discount: float | jax.Array) -> jax.Array:
    """Offsets k, int32 `[B]`, each from p(k | n) with n = `remaining` int32 `[B]` >= 1.

    Consumes `key`. `discount` is a number from 0 to 1, which may be traced.
    """
    return quantile(jax.random.uniform(key, remaining.shape), remaining, discount)


def quantile(uniform: jax.Array, n: jax.Array, discount: float | jax.Array) -> jax.Array:
    """The inverse of the distribution function: the offset k, int32 `[B]`, at `uniform` in [0, 1].

    k = 1 + floor(log(1 - (1 - g^n) U) / log g), kept within 1..n whatever rounding does.
    """
    log = _log(discount)
    share = -jnp.expm1(n * log) * uniform  # (1 - g^n) U, also where g^n is close to 1
    steps = jnp.floor(jnp.log1p(-share) / log)  # infinite if share rounds to 1
    return 1 + jnp.clip(steps, 0, n - 1).astype(jnp.int32)


def offset_law(n: jax.Array, k: jax.Array, discount: float | jax.Array) -> jax.Array:
    """p(k | n), float32, elementwise for integers of one shape; 0 outside 1 <= k <= n."""
    log = _log(discount)
    inside = (k >= 1) & (k <= n)
    first = jnp.expm1(log) / jnp.expm1(jnp.maximum(n, 1) * log)  # p(1 | n)
    return jnp.where(inside, first * jnp.exp(jnp.maximum(k - 1, 0) * log), 0.0)


def count(
    state: jax.Array,
    next_state: jax.Array,
    done: jax.Array,
    discount: float | jax.Array,
    num_states: int,
) -> jax.Array:
    """Expected counts `[S, S]` of pairs when each transition of a rollout begins one.

    Cell (s, s') is Σ p(k | n) over all pairs of times in one trajectory that begin at s and end at
    s'; the sum is T N. Rounding stays below 1e-5 of a cell, since the sums are spread over copies
    of the table and over the steps of a scan. States must be in 0..S-1.

    Args:
      state: int32 `[T, N]`, before each transition.
      next_state: int32 `[T, N]`, its true successor, never a reset state.
      done: bool `[T, N]`, whether the transition ended its trajectory.
      discount: g, 0 to 1.
      num_states: S.

    Raises ValueError if the three arrays differ in shape or are not `[T, N]`.
    """
    _check_rollout(state, next_state, done)
    (length, num_envs), left = state.shape, transitions_left(done)
    time = jnp.arange(length)[:, None]  # [T, 1]
    cells = num_states * num_states
    copies = min(max(CELLS // cells, 1), COPIES, num_envs)
    copy = cells * (jnp.arange(num_envs) % copies)[None]  # [1, N] start of each one's copy

    def add(total, shift):
        # Times t and t + shift modulo T: over all shifts up to T/2 every pair of times occurs once,
        # which halves the work of all offsets of all starts.
        is_forward = time + shift < length
        others = [jnp.roll(x, -shift, axis=0) for x in (state, next_state, left)]
        first = jnp.where(is_forward, state, others[0])
        last = jnp.where(is_forward, others[1], next_state)
        n = jnp.where(is_forward, left, others[2])
        k = jnp.where(is_forward, shift, length - shift) + 1
        is_duplicate = (2 * shift == length) & ~is_forward  # this pair has been counted already
        weight = jnp.where(is_duplicate, 0.0, offset_law(n, jnp.broadcast_to(k, n.shape), discount))
        table = jnp.zeros(copies * cells).at[copy + first * num_states + last].add(weight)
        return total + table.reshape(copies, cells).sum(axis=0), None

    total, _ = jax.lax.scan(add, jnp.zeros(cells), jnp.arange(length // 2 + 1))
    return total.reshape(num_states, num_states)


class Walk(NamedTuple):
    """Counts of trajectories on S states, from which a Markov chain can be estimated."""

    steps: jax.Array  # int32 [S, S] transitions from s to s'
    begins: jax.Array  # int32 [S, T] visits to s with 1..T transitions left


def empty_walk(num_states: int, length: int) -> Walk:
    """Counts of 0, for trajectories of at most `length` transitions."""
    empty = lambda size: jnp.zeros((num_states, size), jnp.int32)
    return Walk(empty(num_states), empty(length))


def record(walk: Walk, state: jax.Array, next_state: jax.Array, done: jax.Array) -> Walk:
    """Adds a rollout, all `[T, N]` as for `count`.

    Raises ValueError where T exceeds the length of `empty_walk`.
    """
    length = walk.begins.shape[1]
    if state.shape[0] > length:
        raise ValueError(
            f"a rollout has {state.shape[0]} steps, the walk was made for {length}: "
            "begin with empty_walk of that length"
        )
    left = transitions_left(done)
    add = lambda table, column: (
        table.reshape(-1).at[(state * table.shape[1] + column).reshape(-1)].add(1)
    ).reshape(table.shape)
    return Walk(add(walk.steps, next_state), add(walk.begins, left - 1))


class Counts(NamedTuple):
    """Recorded pairs on S states."""

    table: jax.Array  # float32 [S, S], the expected counts of `count`
    visits: jax.Array  # int32 [S] transitions that begin in s


def empty_counts(num_states: int) -> Counts:
    """No pairs of S = `num_states` states yet."""
    return Counts(jnp.zeros((num_states, num_states)), jnp.zeros(num_states, jnp.int32))


def add_counts(
    counts: Counts,
    state: jax.Array,
    next_state: jax.Array,
    done: jax.Array,
    discount: float | jax.Array,
) -> Counts:
    """Adds the pairs of a rollout, all `[T, N]` as for `count`."""
    table = count(state, next_state, done, discount, len(counts.visits))
    return Counts(counts.table + table, counts.visits.at[state].add(1))


def pair_distribution(walk: Walk, discount: float | jax.Array) -> jax.Array:
    """The distribution of pairs, M `[S, S]` with sum 1, of the maximum-likelihood chain of `walk`.

    Pairs start as recorded, with as many transitions left, and continue by the recorded transition
    frequencies. This has much less variance than `count`, which uses recorded pairs of times only.
    Valid if the length of trajectories does not depend on their path: ended by a time limit, not by
    a goal. A state without recorded transitions is taken to be absorbing.
    """
    return chain_distribution(walk.begins.astype(jnp.float32), estimate_chain(walk), discount)


def chain_distribution(
    begins: jax.Array, chain: jax.Array, discount: float | jax.Array
) -> jax.Array:
    """The distribution of pairs `[S, S]` of a Markov chain P `[S, S]`.

    `begins` `[S, T]` says how often a pair begins at s with 1..T transitions left, in any unit.
    It takes T S² operations where S is at least `MANY_STATES` and no state has more than
    `PREDECESSORS`, as in mazes, and else T S³.
    """
    length = begins.shape[1]
    n, k = (x + 1 for x in jnp.meshgrid(*2 * (jnp.arange(length),), indexing="ij"))
    law = offset_law(n, k, discount)
    begins = matmul(begins, law)  # [S, K]
    if len(chain) < MANY_STATES:
        pairs = _sum_of_products((begins, chain))
    else:
        has_more = jnp.max(jnp.sum(chain > 0, axis=0)) > PREDECESSORS
        ways = (_sum_over_predecessors, _sum_of_products)
        pairs = batched_cond.switch_max(has_more.astype(jnp.int32), ways, (begins, chain))
    return pairs / pairs.sum()


def _sum_of_products(operands: tuple[jax.Array, jax.Array]) -> jax.Array:
    """Σ diag(b_k) P^k `[S, S]` by Horner's rule, for columns b_k of `[S, K]`, and P `[S, S]`."""
    begins, chain = operands

    def horner_step(pairs: jax.Array, begin: jax.Array) -> tuple[jax.Array, None]:
        return matmul(pairs + jnp.diag(begin), chain), None

    return jax.lax.scan(horner_step, jnp.zeros_like(chain), begins.T[::-1])[0]


def _sum_over_predecessors(operands: tuple[jax.Array, jax.Array]) -> jax.Array:
    """The same, where P has at most `PREDECESSORS` entries in each column."""
    begins, chain = operands
    # [S, PREDECESSORS], with probability 0 where there is none
    probability, predecessor = jax.lax.top_k(chain.T, PREDECESSORS)

    # The transpose, so that what is gathered are rows.
    def horner_step(pairs: jax.Array, begin: jax.Array) -> tuple[jax.Array, None]:
        pairs = pairs + jnp.diag(begin)
        terms = (probability[:, i, None] * pairs[predecessor[:, i]] for i in range(PREDECESSORS))
        return sum(terms, start=jnp.zeros_like(pairs)), None

    return jax.lax.scan(horner_step, jnp.zeros_like(chain), begins.T[::-1])[0].T


def estimate_chain(walk: Walk) -> jax.Array:
    """The maximum-likelihood chain P `[S, S]`; a state that `walk` never leaves is absorbing."""
    visits = walk.steps.sum(axis=1, keepdims=True)
    return jnp.where(visits > 0, walk.steps / jnp.maximum(visits, 1), jnp.eye(len(walk.steps)))


def _log(discount: float | jax.Array) -> jax.Array:
    """log g, clipped so that in float32 the limits at 0 and 1 are right and no quotient is 0/0.

    exp(-120) is 0, so that only k = 1 is left; at -1e-12 every formula here is the uniform law.
    """
    return jnp.clip(jnp.log(jnp.asarray(discount, jnp.float32)), -120.0, -1e-12)


def _check_rollout(state: jax.Array, next_state: jax.Array, done: jax.Array) -> None:
    if not state.shape == next_state.shape == done.shape or state.ndim != 2:
        raise ValueError(
            f"state, next_state and done have shapes {state.shape}, {next_state.shape} and "
            f"{done.shape}, expected one shape [T, N]: give the rows of one rollout"
        )
