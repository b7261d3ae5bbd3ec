"""Bayesian learning of an unknown vector field, with experiment design.

The state moves by z' = z + dt (f(z) + g(u, z)) + √(q dt) ε. The effect g of inputs and the
observation model are known; f is a weighted sum of the functions of a basis, whose weights have an
exact Gaussian posterior, or a family of fields with few parameters, linearised. Several bases may
learn side by side; the one of the largest marginal likelihood so far plans and is shown. The state
is observed as it is, or filtered. Components may be angles: then the basis sees sine and cosine.

Axes: d latent dimensions, m inputs, n channels, p parameters, T steps, N environments.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Literal, NamedTuple

import jax
import jax.numpy as jnp
from flax import struct

from jaxrl import checks
from jaxrl.checks import Positive, Span
from jaxrl.dependent_fields import unless
from jaxrl.dynamics import bases, kalman, model_choice, posterior, rbf
from jaxrl.dynamics.bases import Basis
from jaxrl.dynamics.kalman import Belief
from jaxrl.dynamics.latent_scores import forecasts
from jaxrl.dynamics.planning import distillation, stimulation
from jaxrl.dynamics.planning.stimulation import Constants, Extras, PredictiveModel, Stimulus
from jaxrl.dynamics.posterior import Posterior
from jaxrl.numerics.linalg import matmul
from jaxrl.types import Agent, Metrics, PyTree, Transition

MOST_GRID_DIMS = 2
"""In more dimensions auto leaves the bumps out: 15 along each axis are 3,375 in three."""


@struct.dataclass
class Config:
    """The prior, and how inputs are chosen."""

    grid: rbf.Grid = rbf.Grid()
    """bumps: their centres, which must cover all reachable states."""
    basis: Literal["auto", bases.Kind] = struct.field(pytree_node=False, default="bumps")
    """What the field is a sum of: Gaussian bumps on a grid, for two or three dimensions; random
    waves (fourier) in any; or polynomials. auto: all that suit, the likeliest so far counts."""
    linear: bool = struct.field(pytree_node=False, default=False)
    """Whether there is a linear part beside the functions; auto tries waves with and without."""
    prior_linear: Positive = 1.0
    """Prior standard deviation of the entries of a linear part, per unit of time."""
    fourier: bases.Fourier = bases.Fourier()
    """fourier: the waves."""
    polynomial: bases.Polynomial = bases.Polynomial()
    """polynomial: their degree."""
    prior_speed: Positive = 0.5
    """Prior root mean square of a component of the field, or of a family's parameter."""
    process_noise: Positive = 0.01
    """q, variance per unit of time: known, or a first guess."""
    noise_strength: Span = float("inf")
    """Weight of that guess, as a number of observed outputs; infinite: it is known."""
    belief: Literal["exact", "filtered"] = struct.field(pytree_node=False, default="exact")
    """Whether the observation is the state, or the state is filtered from it."""
    first_variance: Annotated[
        Positive, unless("belief", "exact", why="the first state is observed")
    ] = 1.0
    """Variance of each component of the first state, whose mean is 0."""
    policy: stimulation.Config = stimulation.Config()
    """How inputs are chosen."""

    @property
    def functions(self) -> Basis:
        """The basis; of several candidates that of the first one."""
        by_kind = {"bumps": self.grid, "fourier": self.fourier, "polynomial": self.polynomial}
        return by_kind[candidates(self)[0].basis if self.basis == "auto" else self.basis]

    @property
    def num_features(self) -> int:
        """C, those of the linear part included; of several candidates the most that one has."""
        if self.basis == "auto":
            return max(each.num_features for each in candidates(self))
        return self.functions.num_features + self.linear * (self.functions.dims + 1)


def candidates(config: Config) -> tuple[Config, ...]:
    """The settings of each basis that is considered: one, or for auto all that suit."""
    if config.basis != "auto":
        return (config,)
    kinds: list[tuple[bases.Kind, bool]] = [("fourier", False), ("fourier", True)]
    kinds.append(("polynomial", False))
    if config.grid.dims <= MOST_GRID_DIMS:
        kinds.insert(0, ("bumps", False))
    return tuple(replace(config, basis=kind, linear=linear) for kind, linear in kinds)


class Candidate(NamedTuple):
    """A basis that is considered."""

    posterior: Posterior
    log_evidence: jax.Array  # log p(samples), up to a constant that all candidates share


class World(NamedTuple):
    """The known parts of an experiment; each function takes its numbers last."""

    effect: Callable[[jax.Array, jax.Array, PyTree], jax.Array]
    """`(u [m], z [d], numbers) -> [d]`: what an input adds to the velocity."""
    emission: Callable[[jax.Array, PyTree], tuple[jax.Array, jax.Array]]
    """`(z [d], numbers) -> (mean [n], variance [n])` of an observation."""
    family: Callable[[jax.Array, jax.Array], jax.Array] | None = None
    """`(z [d], e [p]) -> velocity [d]`: a family of fields with few parameters; None: bumps."""
    family_start: tuple[float, ...] = ()
    """Prior mean of the family's parameters e."""
    circular: tuple[int, ...] = ()
    """Components of the state that are angles within ±π, in rad; the basis sees the others as they
    are, and then the sines and the cosines of these."""


class State(NamedTuple):
    posterior: Posterior  # of the likeliest candidate, with zeros up to the size of the largest
    known: Constants
    relative_noise: jax.Array  # variance of the last state's observation, in units of its noise
    distilled: distillation.State | tuple[()] = ()  # only for the objective rnd
    candidates: tuple[Candidate, ...] = ()  # only if there are several
    place: jax.Array | tuple[()] = ()  # int32, of the likeliest


Datum = tuple[Belief, jax.Array, jax.Array]
"""A transition: the belief of a state, the action in it and the next observation."""


class Memory(NamedTuple):
    expected: Belief  # of the state that is observed next
    stimulus: Stimulus


def make(config: Config, world: World, constants: Constants) -> Agent:
    """An agent whose actions are inputs and which learns the field from each transition.

    Raises:
      ValueError: settings that do not fit together, before anything is compiled.
    """
    check_config(config, world)
    policy = stimulation.make(
        config.policy, partial(predictive_model, config, world), constants.low, constants.high
    )

    seeks_novelty = "rnd" in config.policy.objectives

    # What an agent begins with: the prior of the field, and that of the state of each stream.
    def init(key: jax.Array, obs: jax.Array) -> State:
        del obs
        distilled = ()
        if seeks_novelty:
            distilled = distillation.init(key, config.policy.rnd, dims_of(config, world))
        return first_state(config, world, constants)._replace(distilled=distilled)

    def memory() -> Memory:
        return Memory(first_belief(config, world), policy.init())

    # Acting filters the state, asks the policy, and predicts the next state.
    def act(state: State, memory: Memory, obs: jax.Array, key: jax.Array):
        belief = perceive(config, world, state, memory.expected, obs)
        action, stimulus = policy.act(state, belief.mean, memory.stimulus, key)
        after = Memory(expect(config, world, state, belief, action), stimulus)
        return action, after, Extras(belief, stimulus.plan.invalid)

    # Learning takes transitions one by one: the field first, then the networks of novelty.
    def update(state: State, rollout: Transition, key: jax.Array) -> tuple[State, Metrics]:
        transitions = jax.tree.map(
            lambda x: x.reshape(-1, *x.shape[2:]),
            (rollout.extras.belief, rollout.action, rollout.next_obs),
        )

        def step(state: State, datum: Datum):
            return learn(config, world, state, datum), None

        state, _ = jax.lax.scan(step, state, transitions)
        if isinstance(state.distilled, distillation.State):
            path = transitions[0].mean
            distilled = distillation.learn_path(config.policy.rnd, state.distilled, path, key)
            state = state._replace(distilled=distilled)
        noise = posterior.noise_variance(state.posterior) / constants.dt
        metrics = {
            "information": state.posterior.information,
            "process_noise": noise,
            "invalid_plans": jnp.max(rollout.extras.invalid_plans),
        }
        if state.candidates:
            metrics["kind"] = jnp.asarray(state.place, jnp.float32)
        return state, metrics

    return Agent(init, memory, act, update)


def dims_of(config: Config, world: World) -> int:
    """d, dimensions of the state: those of the basis, but that an angle has two there."""
    return config.functions.dims - len(world.circular)


def embed(config: Config, world: World, z: jax.Array) -> jax.Array:
    """What the basis sees of states `[..., d]`, `[..., d + angles]`; see `World.circular`.

    Circles have the radius 1, but for polynomials that of their box, so that they fill it as the
    other components do.
    """
    if not world.circular:
        return z
    others = [i for i in range(z.shape[-1]) if i not in world.circular]
    angles = z[..., jnp.array(world.circular)]
    radius = config.polynomial.half_width if config.basis == "polynomial" else 1.0
    circles = [radius * jnp.sin(angles), radius * jnp.cos(angles)]
    return jnp.concatenate([z[..., jnp.array(others)], *circles], axis=-1)


def wrap(world: World, z: jax.Array) -> jax.Array:
    """States, or differences of states, `[..., d]` with their angles within ±π."""
    if not world.circular:
        return z
    angles = jnp.array(world.circular)
    return z.at[..., angles].set((z[..., angles] + math.pi) % (2 * math.pi) - math.pi)


def first_belief(config: Config, world: World) -> Belief:
    """The prior belief of the state, before anything is observed."""
    d = dims_of(config, world)
    return Belief(jnp.zeros(d), config.first_variance * jnp.eye(d))


def first_state(config: Config, world: World, constants: Constants) -> State:
    """Before any data."""
    each = [first_posterior(x, world, constants) for x in candidates(config)]
    state = State(each[0], constants, jnp.ones(()))
    if len(each) == 1 or world.family is not None:
        return state
    return choose_likeliest(config, state, [Candidate(x, jnp.zeros(())) for x in each])


def choose_likeliest(config: Config, state: State, each: Sequence[Candidate]) -> State:
    """The state with these candidates; the likeliest one counts."""
    place = model_choice.likeliest_index([x.log_evidence for x in each])
    padded = [posterior.pad(x.posterior, config.num_features) for x in each]
    likeliest = model_choice.select(place, padded)
    return state._replace(posterior=likeliest, candidates=tuple(each), place=place)


def weight_variance(config: Config) -> jax.Array:
    """Prior variance of a function's weight, of which the field has the prior speed."""
    return config.prior_speed**2 / bases.mean_square(config.functions)


def first_posterior(config: Config, world: World, constants: Constants) -> Posterior:
    """Independent parameters, scaled so that the field has the prior speed."""
    noise = config.process_noise * constants.dt
    if world.family is not None:
        variance = config.prior_speed**2 / noise
        belief = posterior.prior(
            len(world.family_start),
            config.functions.dims,
            variance,
            noise,
            config.noise_strength,
            shared=False,
        )
        return belief._replace(mean=jnp.array(world.family_start))
    variance = weight_variance(config) / noise
    size, dims = config.num_features, dims_of(config, world)
    return posterior.prior(size, dims, variance, noise, config.noise_strength)


def features(config: Config, world: World, place: jax.Array | tuple[()], z: jax.Array) -> jax.Array:
    """Functions of `z` `[..., d]` that the field is a sum of: `[..., C]`.

    A linear part is in units in which its weights have the prior of the others.
    """
    if config.basis == "auto":
        each = [features(x, world, (), z) for x in candidates(config)]
        size = config.num_features
        padded = [jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, size - x.shape[-1])]) for x in each]
        assert not isinstance(place, tuple)  # which it is where there is one candidate
        return model_choice.select(place, padded)
    embedding = embed(config, world, z)
    functions = bases.features(config.functions, embedding)
    if not config.linear:
        return functions
    unit = config.prior_linear / jnp.sqrt(weight_variance(config))
    one = jnp.ones_like(embedding[..., :1])
    return jnp.concatenate([functions, unit * embedding, unit * one], axis=-1)


def velocity(config: Config, world: World, state: State, z: jax.Array) -> jax.Array:
    """The posterior mean of the field, `[..., d]` at `z` `[..., d]`."""
    family, mean = world.family, state.posterior.mean
    if family is not None:
        return jnp.vectorize(lambda z: family(z, mean), signature="(d)->(d)")(z)
    if config.basis == "auto" or config.linear:
        return matmul(features(config, world, state.place, z), mean)
    return bases.weighted_sum(config.functions, mean, embed(config, world, z))


def design(config: Config, world: World, state: State, z: jax.Array) -> jax.Array:
    """Derivative of the next state after `z` `[d]` by the parameters: `[p]` shared, or `[d, p]`.

    0 at a wall, where the cause of a movement cannot be identified.
    """
    dt, family = state.known.dt * is_free(world, state.known, z), world.family
    if family is None:
        return dt * features(config, world, state.place, z)
    return dt * jax.jacfwd(lambda e: family(z, e))(state.posterior.mean)


def is_free(world: World, constants: Constants, z: jax.Array) -> jax.Array:
    """Whether the state `[d]` touches no wall; angles never do."""
    inside = jnp.abs(z) < 0.999 * constants.reach
    return jnp.all(inside.at[jnp.array(world.circular)].set(True) if world.circular else inside)


def next_state(config: Config, world: World, state: State, u: jax.Array, z: jax.Array) -> jax.Array:
    """The expected next state `[d]`."""
    constants = state.known
    push = world.effect(u, z, constants.numbers)
    after = z + constants.dt * (velocity(config, world, state, z) + push)
    clipped = jnp.clip(after, -constants.reach, constants.reach)
    if not world.circular:
        return clipped
    angles = jnp.array(world.circular)  # which know no walls
    return clipped.at[angles].set(wrap(world, after)[angles])


def uncertainty(config: Config, world: World, state: State, z: jax.Array) -> jax.Array:
    """Posterior variance of a component of the velocity at `z` `[d]`."""
    relative = posterior.predictive_variance(state.posterior, design(config, world, state, z))
    return jnp.mean(relative) * posterior.noise_variance(state.posterior) / state.known.dt**2


def perceive(
    config: Config,
    world: World,
    state: State,
    expected: Belief,
    obs: jax.Array,
    observed: jax.Array | None = None,
) -> Belief:
    """Measurement update: the belief of the state after its observation.

    Of `obs` `[n]` what is not `observed`, bool `[n]`, does not count; None: all is. Raises
    ValueError if some is missing where the observation is the state.
    """
    if config.belief == "exact":
        if observed is not None:
            raise ValueError("a learner that sees the state itself cannot miss any of it")
        return Belief(obs, jnp.zeros_like(expected.covariance))

    def emission(z: jax.Array) -> tuple[jax.Array, jax.Array]:
        mean, variance = world.emission(z, state.known.numbers)
        return mean, variance if observed is None else jnp.where(observed, variance, jnp.inf)

    belief = kalman.correct(expected, obs, emission)
    return belief._replace(mean=wrap(world, belief.mean))


def expect(config: Config, world: World, state: State, belief: Belief, action: jax.Array) -> Belief:
    """Time update: the belief of the next state, including the uncertainty of the field."""
    if config.belief == "exact":
        return belief  # the next observation is exact
    noise = posterior.noise_variance(state.posterior)
    from_field = uncertainty(config, world, state, belief.mean) * state.known.dt**2
    step = partial(next_state, config, world, state, action)
    return kalman.predict(belief, step, noise + from_field)


def learn(config: Config, world: World, state: State, datum: Datum) -> State:
    """The state after learning from a transition."""
    if not state.candidates:
        return learn_one(config, world, state, datum)[0]
    each, noises = [], []
    for candidate_config, candidate in zip(candidates(config), state.candidates, strict=True):
        candidate_state = state._replace(posterior=candidate.posterior, candidates=(), place=())
        after, log_density = learn_one(candidate_config, world, candidate_state, datum)
        each.append(Candidate(after.posterior, candidate.log_evidence + log_density))
        noises.append(after.relative_noise)
    likeliest = choose_likeliest(config, state, each)
    assert not isinstance(likeliest.place, tuple)
    return likeliest._replace(relative_noise=model_choice.select(likeliest.place, noises))


def learn_one(config: Config, world: World, state: State, datum: Datum) -> tuple[State, jax.Array]:
    """`learn` with one basis, and the logarithm of the density of what was observed."""
    belief, action, next_obs = datum
    constants, regressors = state.known, design(config, world, state, belief.mean)
    step = partial(next_state, config, world, state, action)
    if config.belief == "exact":
        error, relative_noise = next_obs - step(belief.mean), jnp.ones(())
    else:
        noise = posterior.noise_variance(state.posterior)
        expected = kalman.predict(belief, step, noise)
        emission = lambda z: world.emission(z, constants.numbers)
        evidence = kalman.evidence(expected, next_obs, emission)
        error, relative_noise = evidence.displacement, 1 / (evidence.weight * noise)
    error = wrap(world, error)
    free = is_free(world, constants, step(belief.mean) + error)
    counted = jnp.where(free, relative_noise, jnp.inf)
    explained = matmul(regressors, state.posterior.mean)
    row = regressors, explained + error, counted
    after = state._replace(
        posterior=posterior.update(state.posterior, *row), relative_noise=relative_noise
    )
    if world.family is not None:
        return after, jnp.zeros(())
    return after, posterior.log_density(state.posterior, *row)


def forecast(
    config: Config,
    world: World,
    state: State,
    obs: jax.Array,
    actions: jax.Array,
    steps: int,
    observed: jax.Array | None = None,
) -> jax.Array:
    """Expected observations `[T, K + 1, n]` now and up to K = `steps` steps later.

    The state is filtered along `obs` `[T, n]`, each followed by an action of `actions` `[T, m]`,
    without learning. After the last action inputs are 0. `observed`, bool `[T, n]`, is false where
    `obs` is missing; None: everything was observed.
    """
    means = beliefs(config, world, state, obs, actions, observed).mean
    step = lambda z, u: next_state(config, world, state, u, z)
    emission_mean = jax.vmap(lambda z: world.emission(z, state.known.numbers)[0])
    return forecasts(step, emission_mean, means, actions, steps)


def beliefs(
    config: Config,
    world: World,
    state: State,
    obs: jax.Array,
    actions: jax.Array,
    observed: jax.Array | None = None,
) -> Belief:
    """The filtered states, `[T, d]` and `[T, d, d]`, along `obs`; arguments as of `forecast`."""

    def filter_step(expected: Belief, datum: tuple):
        obs, action, observed = datum
        belief = perceive(config, world, state, expected, obs, observed)
        return expect(config, world, state, belief, action), belief

    return jax.lax.scan(filter_step, first_belief(config, world), (obs, actions, observed))[1]


def predictive_model(config: Config, world: World, state: State) -> PredictiveModel:
    """The model that policies plan with."""
    noise = posterior.noise_variance(state.posterior)
    emission = lambda z: world.emission(z, state.known.numbers)

    def observation_information(z: jax.Array) -> jax.Array:
        return kalman.information(Belief(z, jnp.zeros((len(z), len(z)))), emission) * noise

    return PredictiveModel(
        step=lambda z, u: next_state(config, world, state, u, z),
        design=partial(design, config, world, state),
        root=state.posterior.root,
        relative_noise=state.relative_noise,
        observation_information=observation_information,
        predictive_variance=partial(uncertainty, config, world, state),
        novelty=distillation.novelty_of(state.distilled),
    )


def check_config(config: Config, world: World) -> None:
    """Raises ValueError for out-of-range or inconsistent settings."""
    checks.config(config)
    for each in candidates(config):
        bases.check(each.functions)
    stimulation.check_config(config.policy)
    stimulation.check_goal(config.policy, dims_of(config, world))
    if world.family is not None and not world.family_start:
        raise ValueError("a family of fields needs the prior mean of its parameters: family_start")
