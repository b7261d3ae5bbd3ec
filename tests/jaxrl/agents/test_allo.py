"""ALLO in small mazes, against the exact eigenvectors of the pairs it learned from."""

from dataclasses import replace
from functools import cache, partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn
from scipy import stats

from envs.grid.env import Grid
from envs.grid.layouts import Layout, parse
from envs.grid.observations import coordinates
from jaxrl import loop
from jaxrl.agents import allo
from jaxrl.networks import encoder
from jaxrl.networks.encoder import Encoder, Fourier
from jaxrl.networks.mlp import MLP
from jaxrl.spectral import laplacian, objectives, pairs, subspace
from jaxrl.types import Transition

N, T = 100, 50
SMALL = allo.Config(
    num_features=4,
    spare_features=2,
    optimizer="adam",
    schedule="budget",
    gradient_steps=100,
    steps_per_update=20,
    turn_every=10,
    batch_size=64,
    turn_pairs=256,
)


class Training(NamedTuple):
    """What a test needs of an agent in a maze."""

    network: Any
    agent: Any
    train: loop.Loop
    inputs: jax.Array


def training(
    config: allo.Config,
    maze: str | Layout,
    widths: tuple[int, ...] = (64,),
    num_envs: int = N,
    num_steps: int = T,
    numbered: bool = True,
) -> Training:
    env = Grid(maze, "index" if numbered else "coordinates")
    inputs = jnp.asarray(coordinates(env.layout))
    d = allo.outputs(config, env.num_states if numbered else 0)
    network = Encoder(nn.Sequential((Fourier(8), MLP(widths))), d)
    known = inputs if numbered else None
    agent = allo.make(network, config, 4, known, num_envs, num_steps)
    train = loop.make_loop(env, env.default_params, agent, loop.Config(num_envs, num_steps))
    return Training(network, agent, train, inputs)


def similarity(features: jax.Array, truth: laplacian.Eigensystem) -> float:
    d = features.shape[1]
    group = laplacian.groups(truth.values, absolute=1e-6)
    column_group = np.where(group <= group[d - 1], group, -1)
    vectors, weight = (jnp.asarray(x, jnp.float32) for x in (truth.vectors, truth.weight))
    groups = jnp.asarray(group[:d]), jnp.asarray(column_group)
    return float(jax.jit(subspace.similarity)(features, vectors, weight, *groups))


def truth_of(config: allo.Config, state: allo.State) -> laplacian.Eigensystem:
    return laplacian.eigensystem(np.asarray(allo.pair_law(config, state), float))


def numbers_of(obs: jax.Array, inputs: jax.Array) -> jax.Array:
    """Which of the states each observation `[T, N, 2]` shows, int32 `[T, N]`."""
    same = np.all(np.asarray(obs)[:, :, None] == np.asarray(inputs), axis=-1)
    assert (same.sum(axis=-1) == 1).all()
    return jnp.asarray(same.argmax(axis=-1), jnp.int32)


def rollout_of(state: np.ndarray, next_state: np.ndarray, done: np.ndarray) -> Transition:
    """Steps `[T, N]` of which only states and endings are of interest."""
    nothing, arrays = jnp.zeros(done.shape), map(jnp.asarray, (state, next_state, done))
    obs, next_obs, ended = arrays
    return Transition(obs, nothing, nothing, next_obs, ended, jnp.zeros_like(ended), ())


def random_walks(seed: int, steps: int, num_envs: int, num_states: int, ending: float = 0.1):
    """A rollout of uneven walks round a ring; those that end begin anew anywhere."""
    rng = np.random.default_rng(seed)
    state, next_state = np.zeros((2, steps, num_envs), np.int32)
    done = rng.random((steps, num_envs)) < ending
    at = rng.integers(0, num_states, num_envs)
    for t in range(steps):
        state[t], next_state[t] = at, (at + rng.integers(0, 3, num_envs)) % num_states
        at = np.where(done[t], rng.integers(0, num_states, num_envs), next_state[t])
    return rollout_of(state, next_state, done)


# Full trainings.

EXACT = replace(
    SMALL, optimizer="muon", spare_features=3, gradient_steps=1000, steps_per_update=100
)


@cache
def trained() -> tuple[Training, Any, loop.TrainState, loop.Metrics]:
    """`(training, run, state, metrics)` with exact expectations in a maze of 13 states."""
    learner = training(EXACT, "GridMaze-9", (64, 64))
    chunk = loop.make_chunk(learner.train.update, 10)
    run = jax.jit(lambda key: chunk(learner.train.init(key)))
    return learner, run, *run(jax.random.key(0))


def test_exact_training_reaches_eigenvectors_and_eigenvalues():
    learner, _, state, metrics = trained()
    truth = truth_of(EXACT, state.agent)
    features = allo.features(learner.network, EXACT, state.agent)
    assert features.shape == (13, 4)
    assert similarity(features, truth) > 0.99
    values = allo.eigenvalues(EXACT, state.agent)
    assert subspace.within(values, jnp.asarray(truth.values[:4], jnp.float32)).all()
    weight = jnp.asarray(truth.weight, jnp.float32)
    np.testing.assert_allclose((features**2 * weight[:, None]).sum(axis=0), 1, atol=0.05)
    one = allo.features(learner.network, EXACT, state.agent, learner.inputs[3])
    np.testing.assert_allclose(one, features[3], rtol=1e-4, atol=1e-5)
    names = {"loss", "spread", "constraint_error", "barrier", "grad_norm", "angle"}
    assert set(metrics.agent) == names
    for metric in metrics.agent.values():
        assert metric.shape == (10,)
        assert np.isfinite(metric).all()
    assert int(state.agent.learner.steps) == 1000
    # Σ E[(u - u')²] = 2 Σ λ, of the spare features too.
    np.testing.assert_allclose(metrics.agent["spread"][-1], 2 * truth.values[:7].sum(), rtol=0.05)


def test_what_an_exact_training_remembers():
    """Ten rollouts: every transition is counted, and the law is that of the chain they make."""
    _, _, state, _ = trained()
    walk, law = state.agent.walk, state.agent.law
    assert int(walk.steps.sum()) == int(walk.begins.sum()) == 10 * N * T
    np.testing.assert_array_equal(allo.visits(EXACT, state.agent), walk.begins.sum(axis=1))
    M = np.asarray(pairs.expected(walk, 0.9), float)
    np.testing.assert_allclose(allo.pair_law(EXACT, state.agent), M, atol=1e-7)
    np.testing.assert_allclose(law.weight, M.sum(axis=1), atol=1e-6)
    graph = np.diag(M.sum(axis=0) + M.sum(axis=1)) - M - M.T
    np.testing.assert_allclose(law.graph, graph, atol=1e-6)


def test_the_same_key_gives_the_same_bits():
    _, run, state, metrics = trained()
    again, same_metrics = run(jax.random.key(0))
    chex.assert_trees_all_equal(again.agent, state.agent)
    chex.assert_trees_all_equal(same_metrics, metrics)
    other, _ = run(jax.random.key(1))
    assert not np.array_equal(other.agent.walk.steps, state.agent.walk.steps)


@pytest.mark.slow
@pytest.mark.parametrize("numbered", [True, False])
def test_sampled_training_reaches_eigenvectors(numbered):
    """Of the pairs in the ring; by index, or from coordinates alone, of which none is known."""
    config = replace(
        SMALL,
        expectation="sampled",
        gradient_steps=600,
        steps_per_update=100,
        turn_every=100,
        batch_size=256,
        turn_pairs=4096,
        learning_rate=1e-2,
        capacity=6 * N * T,
    )
    learner = training(config, "GridMaze-9", numbered=numbered)
    chunk = loop.make_chunk(learner.train.update, 6)
    end, metrics = jax.jit(lambda key: chunk(learner.train.init(key)))(jax.random.key(0))
    agent = end.agent
    features = allo.features(learner.network, config, agent, learner.inputs)
    if not numbered:  # the law of pairs is told by numbers
        data = agent.walk.data
        state, next_state = (
            numbers_of(obs, learner.inputs) for obs in (data.state, data.next_state)
        )
        known = agent.walk._replace(data=data._replace(state=state, next_state=next_state))
        agent = agent._replace(walk=known, inputs=learner.inputs)
    assert similarity(features, truth_of(config, agent)) > 0.98
    assert all(np.isfinite(metric).all() for metric in metrics.agent.values())
    np.testing.assert_allclose(allo.visits(config, agent).sum(), 6 * N * T)


PAPER = replace(
    SMALL,
    num_features=11,
    spare_features=0,
    turn_every=0,
    dual_step=0.01,
    learning_rate=3e-3,
    gradient_steps=8_000,
    steps_per_update=1_000,
)


def eight_updates(config: allo.Config):
    """`(training, run, state)`, all 11 vectors of 11 states, without turns."""
    learner = training(config, "GridMaze-7")
    run = jax.jit(loop.make_chunk(learner.train.update, 8))
    return learner, run, run(jax.jit(learner.train.init)(jax.random.key(0)))[0]


def score_of(config: allo.Config, network: Any, state: allo.State) -> float:
    return similarity(allo.features(network, config, state), truth_of(config, state))


@pytest.mark.slow
def test_without_turns_the_order_is_stable_and_the_duals_are_exact():
    """After a permutation of the outputs, the same training sorts them again."""
    learner, run, end = eight_updates(PAPER)
    score = partial(score_of, PAPER, learner.network)
    assert score(end.agent) > 0.99
    values = jnp.asarray(truth_of(PAPER, end.agent).values, jnp.float32)
    assert subspace.within(allo.eigenvalues(PAPER, end.agent), values).all()
    mixed = allo.permuted(end.agent.learner, jax.random.key(1), jnp.array(True))
    fresh = jax.tree.map(jnp.zeros_like, mixed.opt_state)  # with the first, large step size again
    mixed = mixed._replace(opt_state=fresh, steps=jnp.int32(0))
    mixed = end.agent._replace(learner=mixed)
    assert score(mixed) < 0.5
    sorted_again, _ = run(end._replace(agent=mixed))
    assert score(sorted_again.agent) > 0.99


@pytest.mark.slow
def test_graph_drawing_does_not_reach_them():
    """Its weights let features of large eigenvalues collapse, see the tabular case."""
    config = replace(PAPER, method="ggdo", barrier_step=0.0)
    learner, _, end = eight_updates(config)
    assert score_of(config, learner.network, end.agent) < 0.9


# One compilation for mazes and seeds.

MAZES = (parse("....\n.##.\n...."), parse(".....\n#.#.#\n..#.#"))


@cache
def compiled():
    """`learn(config, state, key)` and `record(config, state, rollout)`, each traced only once."""
    network = training(SMALL, MAZES[0], (16,), 20, 10).network

    def learn(config, state, key):
        return allo.learn(network, config, state, key)

    traced_once = chex.assert_max_traces(n=1)
    return jax.jit(traced_once(learn)), jax.jit(traced_once(allo.recorded))


def test_one_trace_learns_in_two_mazes_as_their_own_agents_do():
    """And serves other numbers in the configuration."""
    learners = [training(SMALL, maze, (16,), 20, 10) for maze in MAZES]
    assert {len(learner.inputs) for learner in learners} == {10}

    learn, record = compiled()
    for seed, learner in enumerate(learners):
        state = jax.jit(learner.agent.init)(jax.random.key(seed), jnp.int32(0))
        rollout = random_walks(seed, 10, 20, 10)
        recorded = record(SMALL, state, rollout)
        chex.assert_trees_all_equal(recorded.learner, state.learner)
        found = learn(SMALL, recorded, jax.random.key(9))
        assert int(found[0].learner.steps) == 20
    own = jax.jit(learner.agent.update)(state, rollout, jax.random.key(9))  # of the second maze
    chex.assert_trees_all_close(found, own, rtol=1e-3, atol=1e-4)
    still = replace(SMALL, learning_rate=0.0)
    idle = learn(still, recorded, jax.random.key(9))[0].learner
    chex.assert_trees_all_equal(
        idle.params["params"]["torso"], recorded.learner.params["params"]["torso"]
    )
    nearest = record(replace(SMALL, discount=0.0), state, rollout)
    steps = np.asarray(nearest.walk.steps, float)  # pairs of neighbours in time, at discount 0
    np.testing.assert_allclose(nearest.law.weight, steps.sum(axis=1) / steps.sum(), atol=1e-6)
    off_diagonal = ~np.eye(10, dtype=bool)
    expected = -(steps + steps.T) / steps.sum()
    np.testing.assert_allclose(nearest.law.graph[off_diagonal], expected[off_diagonal], atol=1e-6)


@pytest.mark.slow
def test_three_seeds_at_once_as_one_by_one():
    """Each has its own maze, too, and its own experience."""
    learners = [training(SMALL, MAZES[seed % 2], (16,), 20, 10) for seed in range(3)]
    learn, record = compiled()
    states = [
        record(
            SMALL,
            jax.jit(learner.agent.init)(jax.random.key(seed), jnp.int32(0)),
            random_walks(seed, 10, 20, 10),
        )
        for seed, learner in enumerate(learners)
    ]
    stacked = jax.tree.map(lambda *x: jnp.stack(x), *states)
    keys = jax.vmap(jax.random.key)(np.arange(3))
    network = learners[0].network
    together, _ = jax.jit(jax.vmap(partial(allo.learn, network, SMALL)))(stacked, keys)
    for seed, state in enumerate(states):
        alone, _ = learn(SMALL, state, jax.random.key(seed))
        same = jax.tree.map(lambda x, seed=seed: x[seed], together)
        chex.assert_trees_all_close(same, alone, rtol=1e-2, atol=1e-3)


# Parts.


def sampled_state(
    config: allo.Config, rollouts: list[Transition], num_states: int, network: Any = None
) -> allo.State:
    """An agent that remembers these rollouts; the network sees states one-hot."""
    steps, num_envs = rollouts[0].reward.shape
    network = network or Encoder(MLP((8,)), allo.outputs(config, num_states))
    inputs = jnp.eye(num_states)
    agent = allo.make(network, config, 4, inputs, num_envs, steps)

    def remember(rollouts):
        state = agent.init(jax.random.key(3), jnp.int32(0))
        for rollout in rollouts:
            state = allo.recorded(config, state, rollout)
        return state

    return jax.jit(remember)(rollouts)


def test_minibatches_measure_the_law_without_bias():
    """The mean of 4,000 minibatches lies within five standard errors of the exact moments."""
    config = replace(SMALL, expectation="sampled", batch_size=16, capacity=240)
    network: Any = Encoder(MLP((8,)), 6)
    state = sampled_state(config, [random_walks(s, 6, 20, 6) for s in (0, 1)], 6, network)
    features = network.apply(state.learner.params, state.inputs)
    graph, weight = objectives.graph_of(allo.pair_law(config, state))
    exact = objectives.exact_moments(features, graph, weight, True)

    def measure(key):
        found = allo.measure(network, config, state, state.learner.params, key)
        return *found, found.error * found.other_error

    keys = jax.random.split(jax.random.key(0), 4_000)
    found = jax.device_get(jax.jit(jax.vmap(measure))(keys))
    for rows, true in zip(found, (*exact, exact.error**2), strict=True):
        error = rows.std(axis=0) / np.sqrt(len(rows))
        assert (np.abs(rows.mean(axis=0) - true) < 5 * error + 1e-6).all()


def test_features_of_all_states_or_of_a_batch_are_the_same():
    """With 9 states, 8 rows go through the network one by one, 9 are looked up."""
    network: Any = Encoder(MLP((8,)), 3)
    inputs = jax.random.normal(jax.random.key(0), (9, 2))
    params = network.init(jax.random.key(1), inputs[0])

    def squares(features):
        return jnp.sum(features**2 * jnp.arange(1.0, 4.0)[None]), features

    def encoded(params, state):
        return squares(encoder.encode(network, params, inputs, state))

    def observed(params, state):
        return squares(encoder.encode(network, params, (), inputs[state]))

    def expected(params, state):
        return squares(network.apply(params, inputs[state]))

    for batch in (8, 9):
        state = jnp.asarray(np.random.default_rng(batch).integers(0, 9, batch), jnp.int32)
        found, given, true = (
            jax.jit(jax.grad(function, has_aux=True))(params, state)
            for function in (encoded, observed, expected)
        )
        chex.assert_trees_all_close(found, true, rtol=1e-4, atol=1e-4)
        chex.assert_trees_all_close(given, true, rtol=1e-4, atol=1e-4)


def test_outputs_are_permuted_only_where_due(key):
    network: Any = Encoder(MLP((8,)), 6)
    inputs = jnp.eye(9)
    agent = allo.make(network, SMALL, 4, inputs, 1, 5)
    state = agent.init(key, jnp.int32(0))
    before = allo.features(network, replace(SMALL, num_features=6), state)
    for seed, due in ((0, False), (1, True), (2, True)):
        learner = allo.permuted(state.learner, jax.random.key(seed), jnp.array(due))
        after = np.asarray(network.apply(learner.params, inputs))
        order = [int(np.argmin(np.abs(before - after[:, [i]]).sum(axis=0))) for i in range(6)]
        assert sorted(order) == list(range(6))
        assert (order != list(range(6))) == due
        np.testing.assert_allclose(after, np.asarray(before)[:, order], rtol=1e-5, atol=1e-6)
        chex.assert_trees_all_equal(learner._replace(params=()), state.learner._replace(params=()))


def test_a_policy_of_chance(key):
    agent = allo.make(Encoder(MLP((8,)), 6), SMALL, 3, jnp.eye(9), 1, 5)
    act = lambda key: agent.act(None, agent.memory(), jnp.int32(0), key)[0]
    actions = np.asarray(jax.vmap(act)(jax.random.split(key, 3_000)))
    assert stats.chisquare(np.bincount(actions, minlength=3)).pvalue > 1e-3


@pytest.mark.parametrize("schedule", ["budget", "constant", "measured"])
def test_the_step_size_falls_along_a_cosine_or_stays(schedule):
    config = replace(SMALL, learning_rate=0.1, gradient_steps=8, fall_steps=4, schedule=schedule)
    found_at = 2 if schedule == "measured" else allo.NEVER
    size = lambda t: float(allo.step_size(config, jnp.int32(t), jnp.int32(found_at)))
    fallen = lambda share: 0.5 * (1 + np.cos(np.pi * np.clip(share, 0, 1)))
    expected = {
        "budget": [0.1 * fallen(t / 8) for t in range(10)],
        "constant": [0.1] * 10,
        "measured": [0.1 * fallen(t / 8) * fallen((t - 2) / 4) for t in range(10)],
    }[schedule]
    np.testing.assert_allclose([size(t) for t in range(10)], expected, rtol=1e-4, atol=1e-7)
    state: Any = SimpleNamespace(learner=SimpleNamespace(found_at=jnp.int32(found_at)))
    settled = []
    for t in range(10):
        state.learner.steps = jnp.int32(t)
        settled.append(bool(allo.is_settled(config, state)))
    assert settled.index(True) == (6 if schedule == "measured" else 8)


def test_training_settles_as_soon_as_eigenvectors_are_found():
    """Long before its budget ends, and nothing changes any more."""
    config = replace(EXACT, schedule="measured", gradient_steps=10_000, fall_steps=200)
    learner = training(config, "GridMaze-9", (64, 64))
    chunk = jax.jit(loop.make_chunk(learner.train.update, 1))
    state, angles = jax.jit(learner.train.init)(jax.random.key(0)), []
    while not allo.is_settled(config, state.agent):
        state, metrics = chunk(state)
        angles.append(float(metrics.agent["angle"][0]))
        assert len(angles) <= 20
    features = allo.features(learner.network, config, state.agent)
    truth = truth_of(config, state.agent)
    assert similarity(features, truth) > 0.999
    values = jnp.asarray(truth.values[:4], jnp.float32)
    assert subspace.within(allo.eigenvalues(config, state.agent), values).all()
    found_at, steps = state.agent.learner[-2:]
    assert float(allo.step_size(config, steps, found_at)) == 0
    assert angles[-1] < config.found_within


# What does not fit together.


def test_spare_features_are_no_more_than_states():
    assert allo.outputs(SMALL) == 6
    assert allo.outputs(SMALL, 5) == 5
    assert allo.outputs(SMALL, 50) == 6


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_features": 10}, "10 features of 9 states: .* ask for 9 or fewer"),
        ({"num_features": 0}, "num_features is 0, expected a number at least 1"),
        ({"spare_features": -1}, "spare_features is -1, expected a number at least 0"),
        ({"batch_size": 0}, "batch_size is 0, expected a number at least 1"),
        ({"capacity": 0}, "capacity is 0, expected a number at least 1"),
        ({"steps_per_update": 0}, "steps_per_update is 0, expected a number at least 1"),
        ({"turn_every": -1}, "turn_every is -1, expected a number at least 0"),
        ({"turn_pairs": 0}, "turn_pairs is 0, expected a number at least 1"),
        ({"schedule": "measured", "turn_every": 0}, "schedule measured needs turns .* choose"),
        ({"turn_every": 15}, "20 steps_per_update cannot be cut .* turn_every=15: make one"),
        ({"turn_every": 40}, "20 steps_per_update cannot be cut .* turn_every=40: make one"),
        ({"discount": 1}, "discount is 1, expected a number at least 0.0 and below 1.0"),
        ({"discount": -0.1}, "discount is -0.1, expected a number at least 0.0 and below 1"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(change, message):
    config = replace(SMALL, **change)
    with pytest.raises(ValueError, match=message) as error:
        allo.make(Encoder(MLP((8,)), 6), config, 4, jnp.eye(9))
    assert "\n" not in str(error.value)


def test_exact_expectations_need_numbered_states():
    with pytest.raises(ValueError, match="needs numbered states: choose expectation sampled"):
        allo.make(Encoder(MLP((8,)), 6), SMALL, 4)


def test_states_that_were_never_left_do_not_end_a_run():
    """Two walks in the left of a corridor: one cell is only ever entered, and four are never seen.

    What the turned features miss is that of float64, over the states that were left.
    """
    config = replace(SMALL, steps_per_update=10, schedule="measured")
    state = jnp.array([[0, 4], [1, 3], [0, 4], [1, 3]])
    next_state = jnp.array([[1, 3], [0, 4], [1, 3], [2, 2]])
    no = jnp.zeros((4, 2), bool)
    ends = no.at[-1].set(True)
    nothing = jnp.zeros((4, 2), jnp.int32)
    rollout = Transition(state, nothing, jnp.zeros((4, 2)), next_state, no, ends, ())
    corridor = training(config, parse("........."), (8,), 2, 4)
    start = corridor.agent.init(jax.random.key(0), jnp.int32(0))
    network = corridor.network

    @jax.jit
    def learned(start, rollout):
        recorded = allo.recorded(config, start, rollout)
        return recorded, *allo.rotated(
            network, config, recorded, recorded.learner, jax.random.key(1)
        )

    after, learner, error = learned(start, rollout)
    law = np.asarray(allo.pair_law(config, after), float)
    weight = law.sum(axis=1)
    np.testing.assert_array_equal(weight > 0, [True, True, False, True, True] + 4 * [False])
    np.testing.assert_array_equal(allo.visits(config, after) > 0, weight > 0)
    u = np.asarray(network.apply(learner.params, after.inputs), float)
    left = weight > 0
    product = ((weight + law.sum(axis=0))[:, None] * u - (law + law.T) @ u)[left] / 2
    values = -np.diag(learner.multipliers.duals) / 4
    miss = product / weight[left, None] - values * u[left]
    residual = np.sqrt(np.sum(weight[left, None] * miss**2, axis=0))
    expected = objectives.eigenvector_errors(jnp.asarray(residual), jnp.asarray(values))
    np.testing.assert_allclose(error, expected, rtol=0.05, atol=1e-3)
    final, metrics = jax.jit(partial(corridor.agent.update, key=jax.random.key(2)))(start, rollout)
    assert all(np.isfinite(x).all() for x in jax.tree.leaves((final.learner, metrics)))
