"""The sequence VAE's agent, against plain lists, sums, filters and optimizers in NumPy."""

from dataclasses import replace
from functools import cache, partial
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from jaxrl import loop
from jaxrl.dynamics import sequence_elbo
from jaxrl.dynamics.bases import Fourier
from jaxrl.dynamics.latent_scores import k_step_r2
from jaxrl.dynamics.learners import sequence_vae
from jaxrl.dynamics.learners.sequence_vae import Config, Step
from jaxrl.dynamics.networks import latent_filter, latent_information
from jaxrl.dynamics.networks.decoder import Decoder
from jaxrl.dynamics.networks.fields import (
    ActionEffect,
    FourierField,
    LinearField,
    MLPField,
    RBFField,
)
from jaxrl.dynamics.networks.latent import SequenceVAE
from jaxrl.dynamics.networks.recognition import GRURecognition
from jaxrl.dynamics.planning import icem, stimulation
from jaxrl.dynamics.planning.stimulation import Constants
from jaxrl.dynamics.rbf import Grid
from jaxrl.replay import uniform
from jaxrl.types import Transition

D, CHANNELS, DT, W = 2, 4, 0.1, 5
GRID = Grid(per_axis=4)
MODEL = SequenceVAE(
    GRURecognition(D, hidden=6, features=(4,)),
    RBFField(GRID),
    ActionEffect(D, "linear"),
    Decoder(D, CHANNELS),
)
ELBO = sequence_elbo.Config(samples=2, k_steps=2)
PLANNER = icem.Config(horizon=4, candidates=8, iterations=1, elites=2)
CONFIG = Config(
    elbo=ELBO,
    window=W,
    older_windows=2,
    capacity=20,
    gradient_steps=2,
    learning_rate=0.02,
    max_norm=0.5,
    field_decay=0.3,
    schedule="linear",
    warmup=1,
    period=4,
    recount_steps=4,
    recount_over=6,
    policy=stimulation.Config(planner=PLANNER, replan_steps=3),
)
KNOWN = Constants(jnp.array(DT), -jnp.ones(D), jnp.ones(D), ())
single = partial(jnp.asarray, dtype=jnp.float32)


@partial(jax.jit, static_argnums=0)
def new(model: SequenceVAE):
    """Parameters, away from the zeros and the small numbers that some start with."""
    params_key, key = jax.random.split(jax.random.key(0))
    flat, restore = ravel_pytree(model.init(params_key, D))
    return restore(flat + 0.3 * jax.random.normal(key, flat.shape))


PARAMS = new(MODEL)


# How the state is known.

SEEN = np.random.default_rng(1).normal(size=(9, CHANNELS))


@partial(jax.jit, static_argnums=0)
def beliefs(manager: str, observations: jax.Array):
    """`(mean [T, d], variance [T, d], actions [T, m])` while nothing is learned."""
    policy = stimulation.Config(kind="hold")
    config = replace(CONFIG, state=manager, policy=policy)  # type: ignore
    agent = sequence_vae.make(config, MODEL, KNOWN)
    state = agent.init(jax.random.key(1), observations[0])._replace(params=PARAMS)

    def step(carry, obs):
        memory, key = carry
        key, act_key = jax.random.split(key)
        action, memory, (belief, _) = agent.act(state, memory, obs, act_key)
        return (memory, key), (belief.mean, jnp.diagonal(belief.covariance), action)

    return jax.lax.scan(step, (agent.memory(), jax.random.key(2)), observations)[1]


def test_the_filter_goes_on_as_a_window_would_that_holds_everything():
    carried, recomputed = (beliefs(manager, single(SEEN)) for manager in ("carry", "window"))
    np.testing.assert_array_equal(carried[2], recomputed[2])  # the actions
    for expected, window in zip(carried[:2], recomputed[:2], strict=True):
        np.testing.assert_allclose(expected[:W], window[:W], atol=1e-6)
    assert (np.abs(carried[0][W:] - recomputed[0][W:]).max(axis=1) > 1e-4).all()
    first = np.zeros_like(SEEN)
    first[0] = 1.0
    unchanged, changed = (beliefs("window", single(SEEN + d)) for d in (0.0, first))
    assert np.abs(unchanged[0][:W] - changed[0][:W]).max() > 1e-3
    np.testing.assert_array_equal(unchanged[0][W:], changed[0][W:])  # the first is forgotten


def test_prediction_alone_knows_the_first_observation_and_the_inputs():
    mean, _, actions = beliefs("predict", single(SEEN))
    other = beliefs("predict", single(np.concatenate([SEEN[:1], SEEN[1:] + 3])))
    chex.assert_trees_all_equal(other[0], mean)
    np.testing.assert_allclose(mean[0], beliefs("carry", single(SEEN))[0][0], atol=1e-6)
    effect = PARAMS["effect"]["params"]["velocity"]
    z = np.asarray(mean[0], np.float64)
    for t in range(8):
        push = actions[t] @ effect["kernel"] + effect["bias"]
        z = z + DT * (bumps(z) @ PARAMS["field"]["params"]["weights"][0] + push)
        np.testing.assert_allclose(mean[t + 1], z, rtol=1e-4, atol=1e-5)


def bumps(z: np.ndarray) -> np.ndarray:
    """`[..., C]`."""
    distance = np.sum((np.asarray(z)[..., None, :] - np.asarray(GRID.centres())) ** 2, axis=-1)
    return np.exp(-distance / (2 * GRID.width**2))


# What is remembered.


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("steps", [3, 9, 27])  # less than a window; some; more than the capacity
def test_windows_of_memory_are_the_newest_and_any_older_ones(steps):
    config = replace(CONFIG, older_windows=40)
    memory = uniform.init(Step(jnp.zeros(1), jnp.zeros(1)), config.capacity, 1)
    number = jnp.arange(1.0, steps + 1)
    for row in number:
        row = row.reshape(1, 1, 1)
        memory = uniform.add(memory, Step(row, 100 + row))
    windows = jax.jit(partial(sequence_vae.draw_windows, config))(memory, jax.random.key(0))
    assert windows.y.shape == windows.before.shape == (41, W, 1)
    listed = list(range(1, steps + 1))[-config.capacity :]
    valid = np.asarray(windows.valid)
    newest = np.asarray(windows.y[0, valid[0], 0]).tolist()
    assert newest == listed[-W:]
    np.testing.assert_array_equal(valid[0], [False] * (W - len(newest)) + [True] * len(newest))
    starts = set()
    for y, before, counts in zip(
        windows.y[1:, :, 0], windows.before[1:, :, 0], valid[1:], strict=True
    ):
        y, before = np.asarray(y[counts]), np.asarray(before[counts])
        begin = listed.index(int(y[0]))
        assert y.tolist() == listed[begin : begin + W]
        assert len(y) == min(W, steps)
        np.testing.assert_array_equal(before, y + 100)
        starts.add(begin)
    assert len(starts) >= min(len(listed) - W + 1, 8)


# What was told.


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("steps", [4, 9])
def test_the_count_is_a_sum_over_the_newest_steps(steps):
    """Along the states as one filter, begun anew with the oldest of them, sees them.

    In units of the noise that was expected, though what a step tells is blurred by the model's.
    """
    rng = np.random.default_rng(3)
    y, u = rng.normal(size=(steps, 1, CHANNELS)), rng.normal(size=(steps, 1, D))
    example = Step(jnp.zeros(CHANNELS), jnp.zeros(D))
    memory = uniform.init(example, CONFIG.capacity, 1)
    memory = uniform.add(memory, Step(single(y), single(u)))
    count = jax.jit(partial(sequence_vae.recompute_information, CONFIG, MODEL))
    information = count((PARAMS, KNOWN, memory))
    first = latent_information.prior(MODEL, PARAMS, KNOWN, CONFIG.prior_speed, CONFIG.noise)
    at_centre = bumps(np.zeros(D))
    variance = 0.5**2 / np.sum(at_centre**2) / (CONFIG.noise * DT)
    np.testing.assert_allclose(first.covariance, variance * np.eye(16), rtol=1e-5)
    precision, carry, step = np.eye(16) / variance, MODEL.initial_carry(), jax.jit(MODEL.step)
    blur = np.mean(np.logaddexp(PARAMS["process"], 0)) / CONFIG.noise
    for obs, before in zip(y[-6:, 0], u[-6:, 0], strict=True):
        carry, mean, _ = step(PARAMS, carry, single(obs), single(before))
        precision = precision + np.outer(bumps(mean), bumps(mean)) * DT**2 / blur
    np.testing.assert_allclose(
        information.covariance, np.linalg.inv(precision), rtol=1e-3, atol=1e-4 * variance
    )
    np.testing.assert_array_equal(information.mean, first.mean)
    assert information.rate / information.shape == pytest.approx(CONFIG.noise * DT)


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize(
    "field",
    [RBFField(GRID), FourierField(Fourier(9, D)), MLPField(D, hidden=(5,)), LinearField(D)],
    ids=["rbf", "fourier", "mlp", "linear"],
)
def test_designs_are_finite_differences_by_the_parameters(field):
    model = replace(MODEL, field=field, members=2)
    z, keys = jnp.array([0.4, -0.7]), jax.random.split(jax.random.key(4), 2)
    params = {"field": jax.jit(jax.vmap(field.init, (0, None)))(keys, z)}
    params["effect"] = PARAMS["effect"]
    design = np.asarray(jax.jit(partial(latent_information.design, model))(params, KNOWN, z))
    flat, restore = ravel_pytree(jax.tree.map(lambda x: x[0], params["field"]))

    @jax.jit
    @jax.vmap
    def next_state(change):
        member_field = restore(flat + change)
        fields = jax.tree.map(
            lambda x, all_: jnp.stack([x, all_[1]]), member_field, params["field"]
        )
        changed = {**params, "field": fields}
        return latent_filter.next_state(model, changed, KNOWN, jnp.ones(D), z)

    changes = 0.01 * jnp.eye(len(flat))
    slopes = np.asarray(next_state(changes) - next_state(-changes)).T / 0.02  # [d, p]
    if design.ndim == 1:  # each output has parameters of its own
        design = np.stack([np.ravel(np.outer(design, unit)) for unit in np.eye(D)])
    np.testing.assert_allclose(design, slopes, atol=1e-4)
    assert np.abs(slopes).max() > 0.02


# Learning.


@jax.jit
@jax.grad
def slope(params, window, key, beta):
    """The gradient of the loss of one window."""
    return LEARNER.loss(params, window, LEARNER.initial_carry(), key, ELBO, beta)[0]


class TurningWorld:
    """A linear world: z' = z + dt (A z + u) + noise, y = C z + noise; its states are z alone."""

    matrix = np.array([[-0.3, -1.5], [1.5, -0.3]])
    emission_matrix = np.array([[1.0, 0.0], [0.0, 1.0], [0.8, -0.6], [0.5, 0.9]])

    def observe(self, key, z):
        return self.emission_matrix @ z + 0.1 * jax.random.normal(key, (CHANNELS,))

    def reset(self, key, params):
        return self.observe(key, jnp.ones(D)), jnp.ones(D)

    def step(self, key, state, action, params):
        move_key, key = jax.random.split(key)
        noise = 0.05 * jax.random.normal(move_key, (D,))
        z = state + DT * (self.matrix @ state + action) + noise
        obs, never = self.observe(key, z), jnp.zeros((), bool)
        return obs, z, jnp.zeros(()), never, never, {"final_observation": obs}


LEARNER = replace(MODEL, field=LinearField(D))
BOUND = 2 * jnp.ones(D)


def make_agent(**changes):
    """One that learns a linear field from inputs that are held."""
    config = replace(CONFIG, policy=stimulation.Config(kind="hold", hold_steps=5), **changes)
    return sequence_vae.make(
        config, LEARNER, Constants(jnp.array(DT), -BOUND, BOUND, (), jnp.array(9.0))
    )


AGENT = make_agent()


def run_experiment(steps: jax.Array | int, key: jax.Array, agent=AGENT) -> loop.TrainState:
    """An experiment."""
    run = loop.make_loop(TurningWorld(), (), agent, loop.Config(1, 1))
    return jax.lax.fori_loop(0, steps, lambda _, state: run.update(state)[0], run.init(key))


class OneByOne(NamedTuple):
    """An experiment step by step."""

    end: sequence_vae.State
    z: jax.Array  # the true state
    states: list  # before each update
    keys: list  # of each update


@cache
def stepwise_run() -> OneByOne:
    """A run of six steps, one after the other."""
    act, update, step = jax.jit(AGENT.act), jax.jit(AGENT.update), jax.jit(TurningWorld().step)
    first_key = lambda key: jax.random.split(key, 1)[0]
    env_key, agent_key, key = jax.random.split(jax.random.key(1), 3)
    obs, env = TurningWorld().reset(first_key(env_key), ())
    state, memory, states, keys = jax.jit(AGENT.init)(agent_key, obs), AGENT.memory(), [], []
    for _ in range(6):
        key, act_key, env_key = jax.random.split(key, 3)
        action, memory, extras = act(state, memory, obs, first_key(act_key))
        before = obs
        obs, env, reward, *ends, _ = step(first_key(env_key), env, action, ())
        transition = Transition(before, action, reward, obs, ends[0], ends[1], extras)
        key, update_key = jax.random.split(key)
        states.append(state)
        keys.append(jax.random.clone(update_key))
        state, _ = update(state, jax.tree.map(lambda x: x[None, None], transition), update_key)
    return OneByOne(state, env, states, keys)


@pytest.mark.slow
def test_a_whole_experiment_is_what_its_steps_are_one_by_one():
    """Counting anew after the fourth step."""
    end, stepwise = jax.jit(run_experiment)(6, jax.random.key(1)), stepwise_run()
    chex.assert_trees_all_close((end.agent, end.env[0]), (stepwise.end, stepwise.z), atol=1e-3)
    assert int(stepwise.end.updates) == int(stepwise.end.memory.size) == 6


@pytest.mark.slow
def test_updates_are_those_of_one_adam_that_goes_on():
    """Three updates of two gradient steps each, clipped, with divergences that come slowly."""
    path = stepwise_run()
    draw = jax.jit(partial(sequence_vae.draw_windows, CONFIG))
    flat, restore = ravel_pytree(path.states[0].params)
    flat = np.asarray(flat, np.float64)
    is_field = lambda path, x: jnp.full(x.shape, float(path[0].key == "field"))
    field_mask = jax.tree.map_with_path(is_field, path.states[0].params)
    decayed = np.asarray(ravel_pytree(field_mask)[0])
    mean, square, count, clipped = np.zeros_like(flat), np.zeros_like(flat), 0, 0
    memories = [state.memory for state in path.states[1:4]]
    for memory, key in zip(memories, path.keys[:3], strict=True):
        for _ in range(2):
            key, window_key, loss_key = jax.random.split(jax.random.clone(key), 3)
            beta = 0.0 if count < 1 else min((count - 1) / 4, 1.0)
            windows = draw(memory, window_key)
            loss_keys, params = jax.random.split(loss_key, 3), restore(single(flat))
            gradient = np.zeros_like(flat)
            for i in range(3):
                window = jax.tree.map(lambda x, i=i: x[i], windows)
                gradient += ravel_pytree(slope(params, window, loss_keys[i], beta))[0] / 3
            size = np.linalg.norm(gradient)
            clipped += size > 0.5
            gradient = gradient * min(1.0, 0.5 / size)
            count += 1
            mean = 0.9 * mean + 0.1 * gradient
            square = 0.999 * square + 0.001 * gradient**2
            step = (mean / (1 - 0.9**count)) / (np.sqrt(square / (1 - 0.999**count)) + 1e-8)
            flat = flat - 0.02 * (step + 0.3 * decayed * flat)
    np.testing.assert_allclose(ravel_pytree(path.states[3].params)[0], flat, atol=2e-3)
    assert clipped > 0
    distance = np.abs(flat - ravel_pytree(path.states[0].params)[0])
    assert distance.max() > 0.05


@pytest.mark.slow
@pytest.mark.usefixtures("compiled_with_care")
def test_a_linear_world_is_learned():
    """Forecasts five steps ahead, with inputs that are held, of an episode in NumPy.

    The middle one of three experiments, as now and then one does not get away from its beginning.
    """
    rng, z, held = np.random.default_rng(5), np.ones(D), np.zeros(D)
    observations, inputs = [], []
    for t in range(100):
        held = rng.uniform(-2, 2, D) if t % 8 == 0 else held
        observations.append(TurningWorld.emission_matrix @ z + 0.1 * rng.normal(size=CHANNELS))
        inputs.append(held)
        z = z + DT * (TurningWorld.matrix @ z + held) + 0.05 * rng.normal(size=D)
    obs, actions = single(np.array(observations)), single(np.array(inputs))
    ahead = jnp.arange(10, 90)[:, None] + jnp.arange(6)[None]
    agent = make_agent(learning_rate=0.005, capacity=400)

    @jax.jit
    def score(steps, key):
        agent_state = run_experiment(steps, key, agent).agent
        forecasts = latent_filter.forecast(
            LEARNER, agent_state.params, agent_state.known, obs, actions, 5
        )
        return k_step_r2(forecasts[10:90], obs[ahead])[5]

    keys = [jax.random.key(seed) for seed in range(3)]
    assert np.median([score(0, jax.random.clone(key)) for key in keys]) < 0.1
    assert np.median([score(2500, key) for key in keys]) > 0.8


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"window": 2}, "window is 2, expected more than elbo.k_steps=2"),
        ({"capacity": 4}, "capacity is 4, expected at least window=5 steps"),
        ({"older_windows": -1}, "older_windows is -1, expected a number at least 0"),
        ({"gradient_steps": 0}, "gradient_steps is 0, expected a number at least 1"),
        ({"learning_rate": 0.0}, "learning_rate is 0.0, expected a number above 0.0"),
        ({"recount_steps": 0}, "recount_steps is 0, expected a number at least 1"),
        ({"schedule": "sudden"}, "schedule is sudden, expected none or linear or cyclic"),
        ({"elbo": replace(ELBO, samples=0)}, "samples"),
        ({"state": "memory"}, "state"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_what_does_not_fit_together_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        sequence_vae.make(replace(CONFIG, **changes), MODEL, KNOWN)
