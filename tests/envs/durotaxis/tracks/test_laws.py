"""Laws of recorded colonies against plain NumPy, numerical integration, and the environment."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, special, stats

from envs.durotaxis import rules
from envs.durotaxis.substrate import Law
from envs.durotaxis.tracks import events, simulation, spawning
from envs.durotaxis.tracks.bessel import log_i0e
from envs.durotaxis.tracks.events import Events
from envs.durotaxis.tracks.simulation import Ground, Laws
from envs.durotaxis.tracks.spawning import Displacements, Spawning

LAW = Spawning(gamma=6.0, alpha=2.0, noise=0.5, theta=0.3, kappa=3.0, error=0.4, scatter=0.3)
DATA = Displacements(
    distance=np.array([2.0, 4.1, 0.1], np.float32),
    angle=np.array([0.5, -2.9, 1.0], np.float32),
    stiffness=np.array([1.0, 3.0, 0.2], np.float32),
    variance=np.array([0.5, 2.0, 1.1], np.float32),
    weight=np.array([1.0, 1.0, 0.0], np.float32),
    squares=np.float32(5.0),
    freedom=np.float32(30.0),
)
GROUND = Ground(
    Law(np.bool_(False), jnp.float32(0.05), jnp.float32(0.5)),
    np.zeros((0, 0), np.float32),
    jnp.float32(100),
    jnp.float32(80),
)


def fitted_parameters(law: str) -> np.ndarray:
    numbers = LAW._asdict()
    for name in spawning.POSITIVE:
        numbers[name] = np.log(numbers[name])
    for name in spawning.SQUARED[law]:
        numbers[name] = numbers[name] ** 2
    return np.array([*numbers.values()], np.float32)


def hill(stiffness: float) -> float:
    return LAW.gamma / (1 + (LAW.alpha / stiffness) ** 2)


def directed_density(distance: float, angle: float, stiffness: float, variance: float) -> float:
    """The integral over the direction, by quadrature."""
    radius, s2 = hill(stiffness) + LAW.noise, LAW.error**2 * variance + LAW.scatter**2
    x, y = distance * np.cos(angle), distance * np.sin(angle)

    def integrand(turn: float) -> float:
        square = (x - radius * np.cos(turn)) ** 2 + (y - radius * np.sin(turn)) ** 2
        prior = np.exp(LAW.kappa * np.cos(turn - LAW.theta)) / (
            2 * np.pi * special.iv(0, LAW.kappa)
        )
        return np.exp(-square / (2 * s2)) / (2 * np.pi * s2) * prior

    return integrate.quad(integrand, angle - np.pi, angle + np.pi, points=[angle], limit=200)[0]


def isotropic_density(distance: float, _: float, stiffness: float, variance: float) -> float:
    def integrand(normal: float) -> float:
        spread = 1 + 2 * max(hill(stiffness) + LAW.noise * normal, 0.0)
        s2 = spread**2 + LAW.error**2 * variance
        return np.exp(-(distance**2) / (2 * s2)) / (2 * np.pi * s2) * stats.norm.pdf(normal)

    return integrate.quad(integrand, -8, 8, points=[-hill(stiffness) / LAW.noise], limit=200)[0]


@pytest.mark.parametrize(
    ("law", "density"), [("directed", directed_density), ("isotropic", isotropic_density)]
)
def test_the_likelihood_of_displacements_is_an_integral(law, density):
    terms = jax.jit(spawning.TERMS[law])(fitted_parameters(law), DATA)
    rows = zip(*(x.astype(float) for x in DATA[:4]), strict=True)
    expected = [np.log(density(*row)) for row in rows]
    np.testing.assert_allclose(terms[:2], expected[:2], rtol=1e-3)
    assert terms[2] == 0  # padding
    chi2 = -30 * np.log(LAW.error) - 5 / (2 * LAW.error**2)
    assert terms[3] == pytest.approx(chi2, rel=1e-5)


def test_the_second_derivative_of_log_i0_is_right_where_float32_is_coarse():
    z = np.array([1e-4, 0.5, 5.0, 29.0, 31.0, 1e3])
    ratio = special.i1e(z) / special.i0e(z)
    values = jnp.asarray(z, jnp.float32)
    first = jax.jit(jax.vmap(jax.grad(log_i0e)))(values)
    second = jax.jit(jax.vmap(jax.hessian(log_i0e)))(values)
    np.testing.assert_allclose(first, ratio - 1, rtol=1e-4)
    np.testing.assert_allclose(second, 1 - ratio / z - ratio**2, rtol=1e-3)


def test_the_likelihood_of_events_is_that_of_coins():
    rng = np.random.default_rng(0)
    covariates = rng.normal(size=(30, 5)).astype(np.float32)
    beta, happened = rng.normal(size=5).astype(np.float32), rng.random(30) < 0.4
    weight = np.ones(30, np.float32)
    terms = jax.jit(events.terms)(beta, Events(covariates, happened.astype(np.float32), weight))
    p = special.expit(covariates.astype(float) @ beta)
    np.testing.assert_allclose(terms, stats.bernoulli.logpmf(happened, p), rtol=1e-4, atol=1e-5)


def test_covariates_are_those_of_a_plain_loop():
    alive = np.array([True, False, True, True])
    place = np.array([5.0, 0.0, 1.0, 9.0], np.float32)
    stiffness = np.array([2.0, 1.0, 4.0, 0.5], np.float32)
    age = np.array([0, 3, 10, 5])
    covariates = jax.jit(events.covariates)
    rows = np.asarray(covariates(alive, place, stiffness, age))[alive]
    crowding = np.log2(3 / events.CROWD)
    expected = [[1, 0, 0, crowding, 1], [1, 0.5, 1, crowding, 2], [1, -0.5, 0.5, crowding, -1]]
    np.testing.assert_allclose(rows, expected, rtol=1e-6)
    alone = np.array([True, False, False, False])
    assert covariates(alone, place, stiffness, age)[0, 1] == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("degrees", "expected"), [(0, 10), (90, 30 - 12), (180, 40 - 10), (270, 12), (-45, 22 / 2**0.5)]
)
def test_the_way_to_the_goal_begins_at_the_far_end_of_the_ground(degrees, expected):
    law, direction = Law(exponential=False, slope=1.0, base=1.0), np.deg2rad(-degrees)
    ground = Ground(law, np.zeros((0, 0)), 40.0, 30.0, direction)
    np.testing.assert_allclose(ground.place(10.0, 12.0), expected, rtol=1e-5)


def test_certain_births_grow_as_the_environment_does():
    """All laws but chance: every cell has its child where `rules` has it, in every frame."""
    certain, never = np.zeros(5, np.float32), np.zeros(5, np.float32)
    certain[0], never[0] = 60.0, -60.0
    law = Spawning(6.0, 2.0, 0.5, theta=0.2, kappa=1e12)
    x, y = (np.zeros(32, np.float32) for _ in range(2))
    x[:3], y[:3] = [5.0, 20.0, 90.0], [40.0, 30.0, 70.0]
    run = jax.jit(simulation.simulate, static_argnames=("frames", "law"))
    register = run(
        jax.random.key(0), Laws(law, never, certain), GROUND, x, y, jnp.int32(3), frames=4
    )
    colony = rules.Colony(
        jnp.asarray(x), jnp.asarray(y), jnp.full(32, -1), jnp.zeros(32, jnp.int32), jnp.int32(3)
    )
    nobody = jnp.zeros(32, bool)

    @jax.jit
    def step(colony: rules.Colony, time: jax.Array) -> rules.Colony:
        stiffness = GROUND.stiffness(colony.x, colony.y)
        sides = (GROUND.width, GROUND.height)
        child = rules.directed_children(colony, stiffness, 6.0, 2.0, 0.5, 0.2, *sides)
        return rules.next_colony(rules.grow(colony, nobody, *child), time)

    for time in (1, 2, 3):
        colony = step(colony, jnp.int32(time))
    assert register.count == colony.num_nodes == 24
    for own, other in ((register.x, colony.x), (register.y, colony.y)):
        np.testing.assert_allclose(own[:24], other[:24], atol=1e-4)
    np.testing.assert_array_equal(register.parent[:24], colony.parent[:24])
    np.testing.assert_array_equal(register.first[:24], colony.birth[:24])


von_mises = jax.jit(lambda key, kappa: spawning.von_mises(key, 0.5, kappa, 4000))


@pytest.mark.parametrize("kappa", [0.3, 30.0, 3000.0])
def test_angles_are_those_of_von_mises(kappa, key):
    angles = np.asarray(von_mises(key, jnp.float32(kappa)))
    assert stats.kstest(angles, stats.vonmises(kappa, loc=0.5).cdf).pvalue > 1e-3
