"""Self-play around an agent of two lines: who answers, who is in the pool, what is learned from."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrl.types import Agent, Transition
from jaxrl.wrappers import self_play

T, N = 3, 5


class Counter(NamedTuple):
    """An agent whose only parameter is how often it has learned."""

    params: jax.Array


def counter() -> Agent:
    """Acts with parameter + observation, remembers its steps, and learns to count.

    Its metrics tell what it was given to learn from.
    """

    def update(state: Counter, rollout: Transition, key: jax.Array):
        inputs = {"obs": rollout.obs, "next_obs": rollout.next_obs, "action": rollout.action}
        return Counter(state.params + 1), {name: jnp.sum(x) for name, x in inputs.items()}

    return Agent(
        init=lambda key, obs: Counter(jnp.zeros(()) + 0 * obs),
        memory=lambda: jnp.zeros(()),
        act=lambda state, memory, obs, key: (state.params + obs, memory + 1, {"seen": obs}),
        update=update,
    )


def respond(params: jax.Array, obs: jax.Array, key: jax.Array) -> jax.Array:
    return 100 * params + obs


def observations(*shape: int) -> dict[str, jax.Array]:
    own = jnp.arange(np.prod(shape), dtype=jnp.float32).reshape(shape)
    rival = jnp.asarray(np.random.default_rng(0).integers(0, 2**32, shape), jnp.uint32)
    return {"own": own, "other": own + 0.5, "rival": rival}


def rollout() -> Transition:
    obs, next_obs = observations(T, N), observations(T, N)
    next_obs["own"] = next_obs["own"] + 1000
    ended = jnp.zeros((T, N), bool)
    action = jnp.stack([obs["own"] * 2, obs["own"] * 0 + 7], axis=-1)  # [T, N, 2]
    return Transition(obs, action, jnp.ones((T, N)), next_obs, ended, ended, ())


def test_members_enter_in_a_ring_and_the_one_that_is_picked_answers():
    """Against a list: it starts with the untrained learner, and holds the last three snapshots."""
    agent = self_play.make(counter(), respond, self_play.Config(snapshot_updates=2, pool_size=3))
    obs = observations(N)
    update = jax.jit(agent.update)
    act = jax.jit(jax.vmap(agent.act, in_axes=(None, 0, 0, 0)))
    keys = jax.random.split(jax.random.key(1), N)
    state = agent.init(jax.random.key(0), jax.tree.map(lambda x: x[0], obs))
    entered = [0]
    for num_updates in range(1, 12):
        state, metrics = update(state, rollout(), jax.random.key(2))
        if num_updates % 2 == 0 and num_updates != 8:  # the eighth finds the pool frozen
            entered.append(num_updates)
        state = state._replace(is_frozen=jnp.bool_(num_updates == 7))
        assert metrics["snapshots"] == len(entered)
        ring = {i % 3: member for i, member in enumerate(entered)}  # the later ones win
        filled = [ring[place] for place in sorted(ring)]
        action, memory, extras = act(state, jnp.zeros(N), obs, jax.random.clone(keys))
        own, other, numbers = (np.asarray(obs[name]) for name in ("own", "other", "rival"))
        members = np.array([filled[number % len(filled)] for number in numbers.tolist()])
        np.testing.assert_array_equal(
            action, np.stack([num_updates + own, 100 * members + other], -1)
        )
        np.testing.assert_array_equal(memory, np.ones(N))
        np.testing.assert_array_equal(extras["seen"], own)
        assert len(set(members)) == len(filled)  # all of them were asked


def test_the_learner_is_shown_its_own_side_alone():
    agent = self_play.make(counter(), respond, self_play.Config())
    transitions = rollout()
    first = jax.tree.map(lambda x: x[0, 0], transitions.obs)
    _, metrics = agent.update(agent.init(jax.random.key(0), first), transitions, jax.random.key(1))
    own = np.arange(T * N)
    assert metrics["obs"] == own.sum()
    assert metrics["next_obs"] == (own + 1000).sum()
    assert metrics["action"] == (own * 2).sum()


def test_a_guest_plays_where_the_observation_says_so():
    """Beside a pool, and without one."""
    guest = lambda obs, key: -obs
    obs = observations(N) | {"guest": jnp.arange(N) % 2 == 0}
    first, keys = jax.tree.map(lambda x: x[0], obs), jax.random.split(jax.random.key(1), N)
    for rivals in (respond, None):
        agent = self_play.make(counter(), rivals, self_play.Config(snapshot_updates=1), guest)
        state = agent.init(jax.random.key(0), first)
        for _ in range(2):
            state, metrics = agent.update(state, rollout(), jax.random.key(2))
        state = state._replace(pool=jax.tree.map(jnp.zeros_like, state.pool))
        assert metrics["snapshots"] == (0 if rivals is None else 3)
        assert (jax.tree.leaves(state.pool) == []) == (rivals is None)
        assert self_play.snapshot(state).learner.params == state.learner.params == 2
        act = jax.vmap(agent.act, in_axes=(None, 0, 0, 0))
        action, *_ = act(state, jnp.zeros(N), obs, jax.random.clone(keys))
        own, other = np.asarray(obs["own"]), np.asarray(obs["other"])
        answers = np.where(np.asarray(obs["guest"]) | (rivals is None), -other, other)
        np.testing.assert_array_equal(action, np.stack([2 + own, answers], -1))


def test_self_play_without_an_opponent_is_refused():
    with pytest.raises(ValueError, match="self-play without an opponent"):
        self_play.make(counter(), None, self_play.Config())


def test_a_pool_without_room_is_refused():
    with pytest.raises(ValueError, match="pool_size is 0, expected a number at least 1"):
        self_play.make(counter(), respond, self_play.Config(pool_size=0))
