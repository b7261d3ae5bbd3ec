"""A sequence VAE that learns online from one stream, with inputs chosen to learn its field soon.

Each sample is filtered, remembered and followed by gradient steps on the newest window and on
older ones (`jaxrl.networks.latent`). What the policies know is the Fisher information of the
field's parameters along the filtered path, as if the latent states were seen. Since the latent
space turns while it is learned, that information is counted anew every `recount_steps`, from the
states as they are filtered then.

Axes: d latent dimensions, m inputs, n channels, p parameters of the field, T steps, B
windows, W steps of a window, R steps of the count.
"""

from dataclasses import replace
from functools import partial
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import optax
from flax import struct
from jax.flatten_util import ravel_pytree

from jaxrl import checks, kalman, linalg, posterior, rbf, replay, sequence_elbo, stimulation
from jaxrl.due import when
from jaxrl.kalman import Belief
from jaxrl.latent_scores import forecasts
from jaxrl.networks.fields import RBFField
from jaxrl.networks.latent import SequenceVAE, Window
from jaxrl.posterior import Posterior
from jaxrl.replay import Places, Replay
from jaxrl.stimulation import Extras, Known, Outlook, Stimulus
from jaxrl.types import Agent, Metrics, PyTree, Transition


@struct.dataclass
class Config:
    """How the model learns, and how inputs are chosen."""

    elbo: sequence_elbo.Config = sequence_elbo.Config(samples=1)
    """The bound; its dt is that of the experiment. One sample of more windows beats more of one."""
    window: int = struct.field(pytree_node=False, default=20)
    """W, steps of a window."""
    older_windows: int = struct.field(pytree_node=False, default=3)
    """Windows from the past in each gradient step, beside the newest; 0: the past is forgotten."""
    capacity: int = struct.field(pytree_node=False, default=10_000)
    """Steps of each stream that are remembered."""
    gradient_steps: int = struct.field(pytree_node=False, default=1)
    """Gradient steps after each rollout."""
    learning_rate: float = 3e-3
    """Step size of Adam."""
    field_decay: float = 0.5
    """Share of the field's weights that is lost per gradient step, times the step size."""
    max_norm: float = 10.0
    """Gradients are clipped to this norm."""
    schedule: sequence_elbo.Schedule = struct.field(pytree_node=False, default="none")
    """How the weight of the divergences comes to `beta`; see `sequence_elbo.beta_schedule`."""
    beta: float = struct.field(pytree_node=False, default=1.0)
    """Weight of the divergences."""
    warmup: int = struct.field(pytree_node=False, default=0)
    """Gradient steps with weight 0, before the schedule begins."""
    period: int = struct.field(pytree_node=False, default=1_000)
    """Gradient steps of the schedule's ramp, or of a cycle."""
    state: Literal["carry", "window", "predict"] = struct.field(pytree_node=False, default="carry")
    """How the state is known while acting: by the filter's carry; by filtering the newest window
    again; or, for comparison, by the dynamics alone after the first observation."""
    prior_speed: float = 0.5
    """Root mean square of a component of the field, as policies expect it before any data."""
    noise: float = 0.01
    """Process noise per unit of time as it is before any data; later the model's own counts."""
    recount_steps: int = 500
    """Rollouts after which the information is counted anew."""
    recount_over: int = struct.field(pytree_node=False, default=1_000)
    """R, newest steps that count then."""
    policy: stimulation.Config = stimulation.Config()
    """How inputs are chosen."""


class Step(NamedTuple):
    """What is remembered of a step."""

    y: jax.Array  # [n]
    before: jax.Array  # [m] the input before it


class Knowledge(NamedTuple):
    """What a policy sees."""

    params: PyTree
    information: Posterior  # of the field's parameters; only its covariance counts
    known: Known


class State(NamedTuple):
    params: PyTree
    opt_state: PyTree
    memory: Replay  # of Step
    information: Posterior
    updates: jax.Array  # int32
    known: Known


class Memory(NamedTuple):
    """Of one stream."""

    filter: Any  # the filter's carry; the newest steps; or the expected state
    before: jax.Array  # [m] the last input
    stimulus: Stimulus


def make(config: Config, model: SequenceVAE, known: Known) -> Agent:
    """An agent whose actions are inputs, and which learns a latent model of what they do.

    Raises:
      ValueError: what does not fit together, before anything is compiled.
    """
    check(config)
    config = replace(config, elbo=replace(config.elbo, dt=known.dt))
    policy = stimulation.make(
        config.policy, partial(look_ahead, config, model), known.low, known.high
    )
    num_inputs = len(known.low)

    def init(key: jax.Array, obs: jax.Array) -> State:
        params = model.init(key, num_inputs)
        example = Step(jnp.zeros(model.decoder.channels), jnp.zeros(num_inputs))
        return State(
            params,
            optimizer(config).init(params),
            replay.init(example, config.capacity, 1),
            first_information(config, model, known, params),
            jnp.zeros((), jnp.int32),
            known,
        )

    def memory() -> Memory:
        return Memory(nothing_seen(config, model, num_inputs), jnp.zeros(num_inputs), policy.init())

    def act(state: State, memory: Memory, obs: jax.Array, key: jax.Array):
        filtered, belief = perceive(config, model, state, memory, obs)
        knowledge = Knowledge(state.params, state.information, state.known)
        action, stimulus = policy.act(knowledge, belief.mean, memory.stimulus, key)
        extras = Extras(belief, stimulus.plan.invalid)
        return action, Memory(filtered, action, stimulus), extras

    def update(state: State, rollout: Transition, key: jax.Array) -> tuple[State, Metrics]:
        return learn(config, model, state, rollout, key)

    return Agent(init, memory, act, update)


def nothing_seen(config: Config, model: SequenceVAE, num_inputs: int) -> Any:
    """What the state manager remembers before the first observation."""
    if config.state == "window":
        w, n = config.window, model.decoder.channels
        return Window(jnp.zeros((w, n)), jnp.zeros((w, num_inputs)), jnp.zeros(w, bool))
    if config.state == "predict":
        return jnp.zeros(model.latent), jnp.zeros((), bool)
    return model.initial()


def perceive(
    config: Config, model: SequenceVAE, state: State, memory: Memory, obs: jax.Array
) -> tuple[Any, Belief]:
    """The state manager's memory after an observation `[n]`, and what it believes of the state."""
    params, before = state.params, memory.before
    if config.state == "window":
        seen = Step(obs, before)
        y, u = (
            jnp.concatenate([x[1:], new[None]])
            for x, new in zip(memory.filter[:2], seen, strict=True)
        )
        window = Window(y, u, jnp.append(memory.filter.valid[1:], True))
        _, belief = model.encode(params, model.initial(), window)
        return window, diagonal(belief.mean[-1], belief.variance[-1])
    if config.state == "predict":
        z, started = memory.filter
        _, first, variance = model.step(params, model.initial(), obs, before)
        z = jnp.where(started, moved(model, params, state.known, before, z), first)
        return (z, jnp.ones((), bool)), diagonal(z, variance)
    carry, mean, variance = model.step(params, memory.filter, obs, before)
    return carry, diagonal(mean, variance)


def diagonal(mean: jax.Array, variance: jax.Array) -> Belief:
    return Belief(mean, jnp.diag(variance))


def moved(
    model: SequenceVAE, params: PyTree, known: Known, u: jax.Array, z: jax.Array
) -> jax.Array:
    """The expected next state `[d]`."""
    return z + known.dt * (model.velocity(params, z) + model.push(params, u))


def learn(
    config: Config, model: SequenceVAE, state: State, rollout: Transition, key: jax.Array
) -> tuple[State, Metrics]:
    """Remembers a rollout `[T, 1]`, learns from windows of memory, and counts what was told."""
    memory = replay.add(state.memory, Step(rollout.next_obs, rollout.action))
    beta = sequence_elbo.beta_schedule(config.schedule, config.beta, config.warmup, config.period)

    def step(carry: tuple, index: jax.Array):
        params, opt_state, key = carry
        key, window_key, loss_key = jax.random.split(key, 3)
        windows = newest_and_older(config, memory, window_key)
        weight = beta(state.updates * config.gradient_steps + index)
        params, opt_state, metrics = gradient_step(
            config, model, params, opt_state, windows, loss_key, weight
        )
        return (params, opt_state, key), metrics

    start = (state.params, state.opt_state, key)
    steps = jnp.arange(config.gradient_steps)
    (params, opt_state, _), metrics = jax.lax.scan(step, start, steps)
    updates = state.updates + 1
    means = rollout.extras.belief.mean.reshape(-1, model.latent)
    information = told(config, model, params, state.known, state.information, means)
    recount = partial(counted_anew, config, model)
    information = when(
        updates % config.recount_steps == 0, recount, (params, state.known, memory), information
    )
    state = State(params, opt_state, memory, information, updates, state.known)
    metrics = jax.tree.map(jnp.mean, metrics)
    metrics["invalid_plans"] = jnp.max(rollout.extras.invalid_plans)
    return state, metrics


def gradient_step(
    config: Config,
    model: SequenceVAE,
    params: PyTree,
    opt_state: PyTree,
    windows: Window,
    key: jax.Array,
    beta: jax.Array,
) -> tuple[PyTree, PyTree, Metrics]:
    """`(params, opt_state, metrics)` after one step on windows `[B, W]`."""
    grads, metrics = jax.grad(mean_loss, has_aux=True)(params, config, model, windows, key, beta)
    changes, opt_state = optimizer(config).update(grads, opt_state, params)
    return optax.apply_updates(params, changes), opt_state, metrics


def mean_loss(
    params: PyTree,
    config: Config,
    model: SequenceVAE,
    windows: Window,
    key: jax.Array,
    beta: jax.Array,
) -> tuple[jax.Array, Metrics]:
    """Of windows `[B, W]`, each with chance of its own."""
    keys = jax.random.split(key, len(windows.y))
    loss = lambda window, key: model.loss(params, window, model.initial(), key, config.elbo, beta)
    losses, metrics = jax.vmap(loss)(windows, keys)
    return jnp.mean(losses), jax.tree.map(jnp.mean, metrics)


def newest_and_older(config: Config, memory: Replay, key: jax.Array) -> Window:
    """The newest window of memory, then `older_windows` from anywhere in it: `[B, W]`."""
    age = memory.size - config.window + jnp.arange(config.window)  # [W]
    newest = replay.row_of(memory, jnp.maximum(age, 0))
    places = Places(newest[:, None], jnp.zeros(1, jnp.int32), (age >= 0)[:, None])
    if config.older_windows:
        older = replay.draw(memory, key, config.older_windows, config.window, cross_episodes=True)
        places = jax.tree.map(lambda a, b: jnp.concatenate([a, b], axis=-1), places, older)
    steps = replay.take(memory.data, places.row, places.env)
    by_window = lambda x: jnp.swapaxes(x, 0, 1)
    return Window(by_window(steps.y), by_window(steps.before), by_window(places.mask))


def design(model: SequenceVAE, params: PyTree, known: Known, z: jax.Array) -> jax.Array:
    """Derivative of the next state after `z` `[d]` by the field's parameters: `[p]` or `[d, p]`."""
    if isinstance(model.field, RBFField):
        return known.dt * rbf.features(model.field.grid, z)
    flat, restore = ravel_pytree(jax.tree.map(lambda x: x[0], params["field"]))
    return known.dt * jax.jacrev(lambda w: model.field.apply(restore(w), z))(flat)


def first_information(
    config: Config, model: SequenceVAE, known: Known, params: PyTree
) -> Posterior:
    """Before any data: such that the field is expected to be as fast as the config says."""
    at_centre = design(model, params, known, jnp.zeros(model.latent)) / known.dt
    shared = at_centre.ndim == 1
    squares = jnp.sum(at_centre**2) / (1 if shared else model.latent)
    noise = config.noise * known.dt
    relative = config.prior_speed**2 / squares / noise
    return posterior.prior(at_centre.shape[-1], model.latent, relative, noise, shared=shared)


def told(
    config: Config,
    model: SequenceVAE,
    params: PyTree,
    known: Known,
    information: Posterior,
    means: jax.Array,
) -> Posterior:
    """After transitions from the states `means` `[T, d]`; what they told of the mean is ignored."""
    noise = blur(config, model, params)

    def step(information: Posterior, z: jax.Array):
        after = posterior.observed(
            information, design(model, params, known, z), jnp.zeros(model.latent), noise
        )
        return after._replace(shape=information.shape, rate=information.rate), None

    return jax.lax.scan(step, information, means)[0]


def blur(config: Config, model: SequenceVAE, params: PyTree) -> jax.Array:
    """Variance with which the next state becomes known, in units of that before any data.

    It is what the model takes for process noise: the error of its filter is among it.
    """
    return jnp.mean(model.noise(params)) / config.noise


def counted_anew(config: Config, model: SequenceVAE, operands: tuple) -> Posterior:
    """The information of the newest R steps, at the states as they are filtered now."""
    params, known, memory = operands
    length = min(config.recount_over, config.capacity)
    age = memory.size - length + jnp.arange(length)
    row = replay.row_of(memory, jnp.maximum(age, 0))
    steps = replay.take(memory.data, row, jnp.zeros(length, jnp.int32))
    window = Window(steps.y, steps.before, age >= 0)
    _, belief = model.encode(params, model.initial(), window)
    rows = jax.vmap(partial(design, model, params, known))(belief.mean)  # [R, p] or [R, d, p]
    weight = window.valid.reshape(-1, *[1] * (rows.ndim - 1)).astype(rows.dtype)
    rows = (rows * weight).reshape(-1, rows.shape[-1])
    before = first_information(config, model, known, params)
    precision = jnp.diag(1 / jnp.diag(before.root) ** 2)
    seen = jnp.matmul(rows.T, rows, precision="highest")
    precision = precision + seen / blur(config, model, params)
    return before._replace(root=linalg.inverse_root(precision))


def uncertainty(
    config: Config,
    model: SequenceVAE,
    params: PyTree,
    information: Posterior,
    known: Known,
    z: jax.Array,
) -> jax.Array:
    """Variance of a component of the velocity at `z` `[d]`, as the field's parameters vary."""
    relative = posterior.predictive(information, design(model, params, known, z))
    return jnp.mean(relative) * config.noise / known.dt


def look_ahead(config: Config, model: SequenceVAE, knowledge: Knowledge) -> Outlook:
    """What a policy may ask of the model."""
    params, information, known = knowledge
    at = partial(design, model, params, known)

    def told_of_state(z: jax.Array) -> jax.Array:
        exact = Belief(z, jnp.zeros((len(z), len(z))))
        seen = kalman.information(exact, partial(model.emission, params))
        return seen * config.noise * known.dt

    def spread(z: jax.Array) -> jax.Array:
        if model.members > 1 and config.policy.objective == "disagreement":
            return jnp.mean(jnp.var(model.velocities(params, z), axis=0, ddof=1))
        return uncertainty(config, model, params, information, known, z)

    return Outlook(
        step=lambda z, u: moved(model, params, known, u, z),
        design=at,
        root=information.root,
        blur=blur(config, model, params),
        told=told_of_state,
        spread=spread,
    )


def forecast(
    model: SequenceVAE,
    params: PyTree,
    known: Known,
    obs: jax.Array,
    actions: jax.Array,
    steps: int,
) -> jax.Array:
    """What is expected to be observed `[T, K + 1, n]` now and up to K = `steps` steps later.

    The state is filtered along `obs` `[T, n]`, to which `actions` `[T, m]` were the answers;
    nothing is learned. Beyond the last action there is none.
    """
    step = lambda z, u: moved(model, params, known, u, z)
    shown = lambda z: model.emission(params, z)[0]
    return forecasts(step, shown, filtered(model, params, obs, actions), actions, steps)


def filtered(model: SequenceVAE, params: PyTree, obs: jax.Array, actions: jax.Array) -> jax.Array:
    """The states `[T, d]` along `obs` `[T, n]`, to which `actions` `[T, m]` were the answers."""
    before = jnp.concatenate([jnp.zeros((1, actions.shape[1])), actions[:-1]])
    window = Window(obs, before, jnp.ones(len(obs), bool))
    _, belief = model.encode(params, model.initial(), window)
    return belief.mean


def optimizer(config: Config) -> optax.GradientTransformation:
    """Adam, with a decay of the field's weights: where nothing was seen, it comes to rest."""
    only_field = lambda params: {name: name == "field" for name in params}
    return optax.chain(
        optax.clip_by_global_norm(config.max_norm),
        optax.adamw(config.learning_rate, weight_decay=config.field_decay, mask=only_field),
    )


def check(config: Config) -> None:
    """Raises ValueError for what does not fit together."""
    stimulation.check(config.policy)
    sequence_elbo.beta_schedule(config.schedule, config.beta, config.warmup, config.period)
    if config.state not in ("carry", "window", "predict"):
        raise ValueError(f"state {config.state!r} is unknown: use carry, window or predict")
    checks.fields("elbo.", config.elbo, "samples", "k_steps", least=1)
    checks.number("window", config.window, least=2)
    checks.number("older_windows", config.older_windows, least=0)
    checks.fields("", config, "gradient_steps", "recount_steps", "recount_over", least=1)
    checks.fields("", config, "learning_rate", "max_norm", "prior_speed", "noise", above=0.0)
    if config.window <= config.elbo.k_steps:
        raise ValueError(
            f"window is {config.window}, expected more than elbo.k_steps={config.elbo.k_steps}: "
            "a window must hold what is K steps ahead"
        )
    if config.capacity < config.window:
        raise ValueError(
            f"capacity is {config.capacity}, expected at least window={config.window} steps"
        )
