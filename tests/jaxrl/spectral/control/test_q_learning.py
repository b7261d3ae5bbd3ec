"""Tabular Q-learning against the textbook in plain Python, and shaping against theorems."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs.grid.env import Grid
from envs.grid.layouts import parse
from jaxrl import acting, loop
from jaxrl.spectral.control import q_learning
from jaxrl.spectral.control.options import Options
from jaxrl.types import Transition

S, A = 7, 3
CONFIG = q_learning.Config(learning_rate=0.3, discount=0.9, shaping_weight=0.5)


def random_rollout(seed: int, length: int, num_envs: int = 1) -> Transition:
    """Steps `[T, N]` between random states; a third end, one way or the other."""
    random = np.random.default_rng(seed)
    shape = (length, num_envs)
    ending = random.random(shape)
    states = partial(random.integers, 0, S, shape)
    return Transition(
        obs=jnp.asarray(states(), jnp.int32),
        action=jnp.asarray(random.integers(0, A, shape), jnp.int32),
        reward=jnp.asarray(random.normal(size=shape), jnp.float32),
        next_obs=jnp.asarray(states(), jnp.int32),
        terminated=jnp.asarray(ending < 0.2),
        truncated=jnp.asarray(ending > 0.85),
        extras=(),
    )


def random_table(seed: int, *shape: int) -> jax.Array:
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape), jnp.float32)


def textbook_update(q: np.ndarray, potential, rollout: Transition, config: q_learning.Config):
    """One update after the other, as Sutton & Barto (2018, section 6.5) print it."""
    q = np.array(q, np.float64)
    steps = zip(*(np.asarray(x)[:, 0] for x in rollout[:5]), strict=True)
    for state, action, reward, after, terminated in steps:
        future = 0.0 if terminated else config.discount * q[after].max()
        next_potential = 0.0 if terminated else config.discount * potential[after]
        reward = reward + config.shaping_weight * (next_potential - potential[state])
        q[state, action] += config.learning_rate * (reward + future - q[state, action])
    return q


# The rule.


def test_one_environment_learns_as_the_textbook_does():
    q, potential, rollout = random_table(0, S, A), random_table(1, S), random_rollout(2, 300)
    agent = q_learning.make(CONFIG, S, A, potential)
    state = q_learning.State(q, potential, agent.init(jax.random.key(0), jnp.int32(0)).options)
    state, metrics = jax.jit(agent.update)(state, rollout, jax.random.key(1))
    expected = textbook_update(np.asarray(q), np.asarray(potential), rollout, CONFIG)
    np.testing.assert_allclose(state.q, expected, atol=1e-5)
    assert float(metrics["td_error"]) > 0


def test_a_walk_in_a_maze_learns_as_the_textbook_does(key: jax.Array):
    env = Grid(parse("...#\n.#.G\n...."), "index")
    config = q_learning.Config(learning_rate=0.5, epsilon=0.2, initial_value=0.1)
    agent = q_learning.make(config, env.num_states, 4)
    run = loop.make_loop(env, env.default_params, agent, loop.Config(1, 1))

    def step(state: loop.TrainState, _):
        world = loop.world_of(state)
        world, (transition, _) = acting.step(env, env.default_params, agent, state.agent, world)
        rollout = jax.tree.map(lambda x: x[None], transition)
        agent_state, _ = agent.update(state.agent, rollout, jax.random.key(0))
        return state._replace(agent=agent_state, **world._asdict()), transition

    state, walk = jax.jit(lambda state: jax.lax.scan(step, state, length=2000))(run.init(key))
    assert np.sum(walk.terminated) > 50
    start = np.full((env.num_states, 4), 0.1)
    expected = textbook_update(start, np.zeros(env.num_states), walk, config)
    np.testing.assert_allclose(state.agent.q, expected, atol=1e-5)


def test_equal_steps_of_a_moment_are_averaged_and_others_are_not():
    q = jnp.zeros((S, A))
    rollout = Transition(
        obs=jnp.array([[3, 3, 3, 4]]),
        action=jnp.array([[1, 1, 2, 1]]),
        reward=jnp.array([[1.0, 3.0, 5.0, 7.0]]),
        next_obs=jnp.zeros((1, 4), jnp.int32),
        terminated=jnp.ones((1, 4), bool),
        truncated=jnp.zeros((1, 4), bool),
        extras=(),
    )
    learned_q, error = q_learning.learn(q, jnp.zeros(S), rollout, CONFIG)
    expected = np.zeros((S, A))
    expected[3, 1], expected[3, 2], expected[4, 1] = 0.3 * 2, 0.3 * 5, 0.3 * 7
    np.testing.assert_allclose(learned_q, expected, rtol=1e-6)
    assert float(error) == 4.0


def test_copies_of_one_environment_learn_as_one():
    q, potential, rollout = random_table(0, S, A), random_table(1, S), random_rollout(3, 50)
    copies = jax.tree.map(lambda x: jnp.repeat(x, 5, axis=1), rollout)
    one, _ = q_learning.learn(q, potential, rollout, CONFIG)
    five, _ = q_learning.learn(q, potential, copies, CONFIG)
    np.testing.assert_allclose(one, five, atol=1e-5)


# Shaping.


def test_shaping_telescopes_over_an_episode():
    potential, path = random_table(0, S), jnp.array([2, 5, 5, 0, 6])
    ends = jnp.array([False, False, False, True])
    extra = q_learning.shaping(potential, path[:-1], path[1:], ends, 0.9)
    assert float(jnp.sum(extra * 0.9 ** jnp.arange(4))) == pytest.approx(
        -float(potential[2]), abs=1e-6
    )
    cut = q_learning.shaping(potential, path[:-1], path[1:], jnp.zeros(4, bool), 0.9)
    expected = float(0.9**4 * potential[6] - potential[2])
    assert float(jnp.sum(cut * 0.9 ** jnp.arange(4))) == pytest.approx(expected, abs=1e-6)


def test_shaping_is_another_initial_value():
    """Wiewiora (2003): Q shaped + w Φ = Q plain, if it is so at first."""
    potential, rollout = random_table(1, S), random_rollout(4, 200, num_envs=3)
    start = random_table(2, S, A)
    lift = CONFIG.shaping_weight * potential[:, None] * jnp.ones((1, A))
    shaped, _ = q_learning.learn(start, potential, rollout, CONFIG)
    plain, _ = q_learning.learn(start + lift, jnp.zeros(S), rollout, CONFIG)
    np.testing.assert_allclose(shaped + lift, plain, atol=1e-5)


def test_shaped_values_are_optimal_for_the_same_policy():
    """All steps of a random deterministic world, again and again, against value iteration."""
    random = np.random.default_rng(5)
    after, reward = random.integers(0, S, (S, A)), random.normal(size=(S, A))
    ends = np.arange(S * A).reshape(S, A) % 4 == 0
    best = np.zeros((S, A))
    for _ in range(400):
        best = reward + 0.9 * np.where(ends, 0, best.max(1)[after])
    state, action = np.indices((S, A))
    row = lambda table: jnp.asarray(table).ravel()
    transitions = Transition(
        row(state), row(action), row(reward), row(after), row(ends), row(ends & False), ()
    )
    rounds = jax.tree.map(lambda x: jnp.broadcast_to(x, (400, *x.shape)), transitions)
    potential = random_table(6, S)
    learned_q, _ = q_learning.learn(jnp.zeros((S, A)), potential, rounds, CONFIG)
    lift = CONFIG.shaping_weight * np.asarray(potential)[:, None]
    np.testing.assert_allclose(learned_q + lift, best, atol=1e-4)
    np.testing.assert_array_equal(np.argmax(learned_q, 1), best.argmax(1))


# Acting.


def first_actions(agent, q: jax.Array, count: int = 4000, options: Options | None = None):
    """Shares `[A]` of the actions that `count` agents without memory take in state 0."""
    state = agent.init(jax.random.key(0), jnp.int32(0))._replace(q=q)
    state = state if options is None else state._replace(options=options)
    act = lambda key: agent.act(state, agent.memory(), jnp.int32(0), key)[0]
    actions = jax.jit(jax.vmap(act))(jax.random.split(jax.random.key(1), count))
    return np.bincount(np.asarray(actions), minlength=A) / count


def test_ties_are_broken_evenly_and_exploration_reaches_all():
    q = jnp.zeros((S, A)).at[0].set(jnp.array([2.0, 1.0, 2.0]))
    greedy = q_learning.make(CONFIG, S, A, greedy=True)
    np.testing.assert_allclose(first_actions(greedy, q), [0.5, 0, 0.5], atol=0.03)
    curious = q_learning.make(q_learning.Config(epsilon=0.6), S, A)
    np.testing.assert_allclose(first_actions(curious, q), [0.4, 0.2, 0.4], atol=0.03)


def test_pick_covers_what_is_allowed_and_nothing_else():
    allowed = jnp.array([False, True, False, True, True])
    which = jnp.array([0.0, 0.33, 0.34, 0.66, 0.67, 1 - 2.0**-23])
    actions = jax.vmap(q_learning.sample_allowed, in_axes=(None, 0))(allowed, which)
    np.testing.assert_array_equal(actions, [1, 1, 3, 3, 4, 4])


# Two options on a line of 7 states, where action 1 leads to the right and action 2 to the left:
# to the right end, and to the left as far as state 2.
ENDS = jnp.array([[False] * 6 + [True], [True] * 3 + [False] * 4])
LINE = Options(jnp.array([[1] * S, [2] * S]), ENDS)
POLICY_OF, ENDS_OF = np.asarray(LINE.policy), np.asarray(LINE.terminates)
MOVES = np.array([0, 1, -1])


def test_an_option_is_followed_until_it_ends_and_only_then():
    config = q_learning.Config(epsilon=0.3, option_share=1.0)
    agent = q_learning.make(config, S, A, options=LINE)
    state = agent.init(jax.random.key(0), jnp.int32(0))
    state = state._replace(q=state.q.at[:, 0].set(1.0))  # greedy is to stay
    act, place, memory, visited = jax.jit(agent.act), 3, agent.memory(), set()
    for key in jax.random.split(jax.random.key(2), 300):
        action, after, _ = act(state, memory, jnp.int32(place), key)
        before, option = int(memory), int(after)
        if before != q_learning.NO_OPTION and not ENDS_OF[before, place]:
            assert option == before
        if option == q_learning.NO_OPTION:
            assert int(action) == 0
        else:
            assert not ENDS_OF[option, place]
            assert int(action) == POLICY_OF[option, place]
        visited.add((before, option, place))
        place, memory = int(np.clip(place + MOVES[int(action)], 0, S - 1)), after
    assert {(0, 0, 5), (1, 1, 3), (-1, -1, 6), (-1, 1, 6), (-1, 0, 2)} <= visited


def test_options_start_as_often_as_configured_and_one_of_those_that_run():
    q = jnp.zeros((S, A)).at[:, 0].set(1.0)
    config = q_learning.Config(epsilon=0.6, option_share=0.5)
    half = q_learning.make(config, S, A, options=LINE)  # in state 0 only the first can run
    np.testing.assert_allclose(first_actions(half, q), [0.5, 0.4, 0.1], atol=0.03)
    blocked_options = LINE._replace(terminates=jnp.ones_like(ENDS))
    np.testing.assert_allclose(
        first_actions(half, q, options=blocked_options), [0.6, 0.2, 0.2], atol=0.03
    )
    greedy = q_learning.make(config, S, A, options=LINE, greedy=True)
    np.testing.assert_array_equal(first_actions(greedy, q), [1, 0, 0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_states": 0}, "num_states is 0"),
        ({"potential": jnp.zeros(S + 1)}, "potential has shape"),
        ({"options": Options(LINE.policy[:1], LINE.terminates)}, "options have shapes"),
    ],
)
def test_what_does_not_suit_is_refused(arguments: dict, message: str):
    with pytest.raises(ValueError, match=message):
        q_learning.make(CONFIG, **{"num_states": S, "num_actions": A, **arguments})


def test_an_observation_must_be_an_index():
    agent = q_learning.make(CONFIG, S, A)
    for obs in (jnp.zeros(2), jnp.zeros(()), jnp.zeros(1, jnp.int32)):
        with pytest.raises(ValueError, match="expected the index of a state"):
            agent.init(jax.random.key(0), obs)
