"""Walks that explore, and the chain that is estimated action by action, beside plain counts."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxrl.spectral import exploration

S, A, T = 4, 3, 5


def random_walk(rng: np.random.Generator, size: int) -> list[tuple[int, int, int, int]]:
    """`(state, action, next state, transitions left)`; state 3 is never left, action 2 rare."""
    most = (3, 2, S, T)
    rows = [tuple(int(rng.integers(x)) for x in most) for _ in range(size)]
    return [(state, action, end, left + 1) for state, action, end, left in rows] + [(1, 2, 0, 1)]


def test_counts_and_the_chain_of_equally_likely_actions():
    transitions = random_walk(np.random.default_rng(0), 500)
    walk = exploration.empty_walk(S, A, T)
    for part in (transitions[:100], transitions[100:]):
        walk = exploration.record(walk, *map(jnp.asarray, zip(*part, strict=True)))

    counts, left_counts = np.zeros((S, A, S)), np.zeros(T)
    for state, action, next_state, left in transitions:
        counts[state, action, next_state] += 1
        left_counts[left - 1] += 1
    np.testing.assert_array_equal(walk.steps, counts)
    np.testing.assert_array_equal(walk.left, left_counts)
    visits = counts.sum(axis=(1, 2))
    np.testing.assert_array_equal(walk.visits, visits)

    P = np.zeros((S, S))
    for state in range(S):
        tried = [action for action in range(A) if counts[state, action].sum()]
        for action in tried:
            P[state] += counts[state, action] / counts[state, action].sum() / len(tried)
    P[3, 3] = 1.0  # never left
    np.testing.assert_allclose(exploration.chain(walk), P, atol=1e-6)
    # pairs one step apart, and all pairs of trajectories whose first transition is drawn
    law = exploration.pair_distribution(walk, 0.0)
    np.testing.assert_allclose(law, visits[:, None] / visits.sum() * P, atol=1e-6)
    M = np.zeros((S, S))
    for state, left in np.ndindex(S, T):
        weight = visits[state] / visits.sum() * left_counts[left] / left_counts.sum()
        offsets = 0.7 ** np.arange(left + 1)
        powers = [np.linalg.matrix_power(P, k + 1)[state] for k in range(left + 1)]
        M[state] += weight * offsets / offsets.sum() @ powers
    np.testing.assert_allclose(exploration.pair_distribution(walk, 0.7), M, atol=1e-6)


def test_an_untried_action_goes_first_and_then_the_least_visited_successor():
    walk = exploration.empty_walk(S, A, T)
    record = lambda walk, *transition: exploration.record(walk, *map(jnp.asarray, transition))
    choose = jax.jit(jax.vmap(exploration.least_visited, in_axes=(None, None, 0)))
    actions_of = lambda walk: np.asarray(choose(walk, 0, jax.random.split(jax.random.key(0), 600)))

    # nothing is known: all are as likely
    np.testing.assert_allclose(np.bincount(actions_of(walk), minlength=A) / 600, 1 / A, atol=0.08)
    walk = record(walk, 0, 1, 2, T)
    assert {*actions_of(walk).tolist()} == {0, 2}
    walk = record(record(walk, 0, 0, 1, T), 0, 2, 3, T)
    for state in (1, 1, 3):  # visited twice, never and once
        walk = record(walk, state, 0, 0, T)
    assert {*actions_of(walk).tolist()} == {1}
    walk = record(record(walk, 2, 0, 0, T), 0, 0, 3, T)  # action 0 led elsewhere the last time
    assert {*actions_of(walk).tolist()} == {0, 1, 2}
