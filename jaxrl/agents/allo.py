"""Laplacian eigenvectors of a random walk, learned from transitions alone, without rewards.

The augmented-Lagrangian learner of Gomez, Bowling & Machado (ICLR 2024, arXiv 2310.10833), and by
`method` the graph drawing objectives it is compared with (see `jaxrl.spectral`). The agent walks at
random, remembers its transitions and learns from pairs of states a geometric time apart.

On S numbered states (`inputs` given) the expectation over pairs is exact, or sampled; on any other
observations it is sampled. Three things help it beyond the paper, each a switch: exact
expectations, orthogonalised steps (Muon, Jordan et al. 2024) and turns of the linear head to the
best eigenpairs within the span of the features (Rayleigh-Ritz), with spare features to turn with.
"""

from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import optax
from flax import struct
from optax import contrib

from jaxrl import checks, pair_replay, pairs, spectral
from jaxrl.networks import encoder
from jaxrl.spectral import Method, Moments, Multipliers
from jaxrl.types import Agent, Metrics, PyTree, Transition

NEVER = 2**31 - 1


@struct.dataclass
class Config:
    """How eigenvectors are learned."""

    num_features: int = struct.field(pytree_node=False, default=11)
    """d, eigenvectors to learn, the constant one included."""
    spare_features: int = struct.field(pytree_node=False, default=5)
    """Features learned beyond d and not reported: the last of all learns slowest."""
    discount: float = 0.9
    """γ: a pair is k transitions apart with a probability that falls as γ^(k-1)."""
    expectation: Literal["exact", "sampled"] = struct.field(pytree_node=False, default="exact")
    """Over all pairs that the recorded transitions make likely, or over sampled minibatches."""
    batch_size: int = struct.field(pytree_node=False, default=1024)
    """Pairs in a minibatch, where the expectation is sampled."""
    capacity: int = struct.field(pytree_node=False, default=1_000_000)
    """Transitions remembered, in whole rollouts, where the expectation is sampled; a run of
    `train.allo` sets it to what it records."""
    method: Method = struct.field(pytree_node=False, default="allo")
    """allo; no_duals, its ablation; ggdo and gdo, which neither order nor multipliers guide."""
    graph_weight: float = 1.0
    """Scale of the graph term: 1 as in the code of the paper, 0.5 as in its text."""
    optimizer: Literal["muon", "adam"] = struct.field(pytree_node=False, default="muon")
    """muon needs far fewer steps; adam is cheaper for each."""
    learning_rate: float = 5e-3
    """First step size."""
    schedule: Literal["measured", "budget", "constant"] = struct.field(
        pytree_node=False, default="measured"
    )
    """How the step size falls to 0: budget, along a cosine over the budget; measured, also faster
    once the turns find that eigenvectors err by less than `found_within`; constant, not at all."""
    found_within: float = 0.3
    """Angle between learned and exact eigenvectors, as the residual bounds it, in radians."""
    fall_steps: int = 500
    """Gradient steps in which the step size falls once they are found."""
    gradient_steps: int = 5_000
    """Budget, after which the step size is 0; a run of `train.allo` sets it to its own."""
    steps_per_update: int = struct.field(pytree_node=False, default=50)
    """Gradient steps after each rollout."""
    turn_every: int = struct.field(pytree_node=False, default=50)
    """Gradient steps between two turns of the head to the best eigenpairs; 0: never."""
    turn_pairs: int = struct.field(pytree_node=False, default=32_768)
    """Pairs that a turn is estimated from, where the expectation is sampled."""
    dual_start: float = 0.0
    """First value of the diagonal duals."""
    dual_step: float = 0.04
    """Step size of the duals."""
    dual_limit: float = 100.0
    """Largest size of a dual."""
    barrier_start: float = 2.0
    """First weight of squared errors; more than 2 is enough for sorted order (in its units)."""
    barrier_step: float = 0.01
    """Growth of that weight, per mean squared error and gradient step."""
    barrier_limit: float = 4.0
    """Largest such weight; the duals lag the longer the larger it is."""
    row_threshold: float | None = struct.field(pytree_node=False, default=None)
    """Features learn once all constraints before them err by less than this; None: all at once."""


class Law(NamedTuple):
    """The law of pairs, as the loss needs it."""

    graph: jax.Array  # [S, S], see spectral.graph_of
    weight: jax.Array  # [S] ρ


class Learner(NamedTuple):
    """What learning changes."""

    params: PyTree
    opt_state: PyTree
    multipliers: Multipliers
    found_at: jax.Array  # int32; the step after which eigenvectors were found, NEVER before
    steps: jax.Array  # int32; gradient steps so far


class State(NamedTuple):
    """Everything the agent knows."""

    learner: Learner
    walk: Any  # pairs.Walk, or a replay of pair_replay.Step
    law: Any  # Law of all that was recorded, or () where the expectation is sampled
    inputs: Any  # [S, ...] what the network sees of each state, or () where it sees observations


def make(
    network: Any,
    config: Config,
    num_actions: int,
    inputs: jax.Array | None = None,
    num_envs: int = 1,
    num_steps: int = 50,
) -> Agent:
    """ALLO for experience that comes as rollouts of `num_steps` from `num_envs` environments.

    Trajectories end where an episode does, and with the rollout.

    Args:
      network: `init(key, obs)` and `apply(params, obs [..., D]) -> [..., d]`, as
        `networks.encoder.Encoder`, whose head turns; d as `outputs` says.
      config: its number leaves may be traced.
      num_actions: A of the random walk.
      inputs: `[S, ...]`, where observations are indices 0..S-1 of states.

    Raises:
      ValueError: what does not fit together, before anything is compiled.
    """
    num_states = 0 if inputs is None else len(inputs)
    check_config(config, num_states)
    if inputs is None and config.expectation == "exact":
        raise ValueError("an exact expectation needs numbered states: choose expectation sampled")

    def init(key: jax.Array, obs: PyTree) -> State:
        params = network.init(key, obs if inputs is None else inputs[0])
        learner = Learner(
            params,
            make_optimizer(config).init(params),
            first_multipliers(config, num_states),
            jnp.asarray(NEVER, jnp.int32),
            jnp.zeros((), jnp.int32),
        )
        if config.expectation == "exact":
            walk = pairs.no_walk(num_states, num_steps)
            none = jnp.zeros((num_states, num_states))
            return State(learner, walk, Law(none, none[0]), inputs)
        ring = pair_replay.init(obs, config.capacity, num_envs, num_steps)
        return State(learner, ring, (), () if inputs is None else inputs)

    def act(state: State, memory: tuple, obs: PyTree, key: jax.Array):
        return jax.random.randint(key, (), 0, num_actions), memory, ()

    def update(state: State, rollout: Transition, key: jax.Array) -> tuple[State, Metrics]:
        return learn(network, config, recorded(config, state, rollout), key)

    return Agent(init, lambda: (), act, update)


def recorded(config: Config, state: State, rollout: Transition) -> State:
    """`state` after remembering a rollout `[T, N]`; nothing is learned yet."""
    done = rollout.terminated | rollout.truncated
    if config.expectation == "exact":
        walk = pairs.record(state.walk, rollout.obs, rollout.next_obs, done)
        law = Law(*spectral.graph_of(pairs.expected(walk, config.discount)))
        return state._replace(walk=walk, law=law)
    walk = pair_replay.add(state.walk, rollout.obs, rollout.next_obs, done)
    return state._replace(walk=walk)


def learn(network: Any, config: Config, state: State, key: jax.Array) -> tuple[State, Metrics]:
    """`steps_per_update` gradient steps on what was recorded. Depends on no maze but by `state`."""
    optimizer = make_optimizer(config)
    between = config.turn_every or config.steps_per_update

    def step(carry: tuple[Learner, jax.Array], _):
        learner, key = carry
        key, step_key = jax.random.split(key)
        learner, metrics = gradient_step(network, optimizer, config, state, learner, step_key)
        return (learner, key), metrics

    def stretch(carry: tuple[Learner, jax.Array], _):
        (learner, key), metrics = jax.lax.scan(step, carry, length=between)
        metrics = jax.tree.map(jnp.mean, metrics)
        if config.turn_every:
            key, turn_key = jax.random.split(key)
            learner, error = turned(network, config, state, learner, turn_key)
            metrics["angle"] = jnp.max(error[: config.num_features])
            if config.schedule == "measured":
                found = metrics["angle"] < config.found_within
                at = jnp.where(found, learner.steps, NEVER)
                learner = learner._replace(found_at=jnp.minimum(learner.found_at, at))
        return (learner, key), metrics

    stretches = config.steps_per_update // between
    (learner, _), metrics = jax.lax.scan(stretch, (state.learner, key), length=stretches)
    return state._replace(learner=learner), jax.tree.map(jnp.mean, metrics)


def gradient_step(
    network: Any,
    optimizer: optax.GradientTransformation,
    config: Config,
    state: State,
    learner: Learner,
    key: jax.Array,
) -> tuple[Learner, Metrics]:
    """Features descend the loss, multipliers ascend it (Gomez et al. 2024, algorithm 1)."""

    def objective(params: PyTree) -> tuple[jax.Array, tuple[Moments, jax.Array]]:
        moments = measure(network, config, state, params, key)
        value, mask = loss(config, moments, learner.multipliers)
        return value, (moments, mask)

    (value, (moments, mask)), grads = jax.value_and_grad(objective, has_aux=True)(learner.params)
    changes, opt_state = optimizer.update(grads, learner.opt_state, learner.params)
    size = step_size(config, learner.steps, learner.found_at)
    params = jax.tree.map(lambda p, change: p + size * change, learner.params, changes)
    multipliers = ascended(config, learner.multipliers, moments, mask)
    metrics = {
        "loss": value,
        "spread": jnp.sum(moments.spread),
        "constraint_error": jnp.sum(jnp.tril(moments.error) ** 2),
        "barrier": multipliers.barrier,
        "grad_norm": optax.tree.norm(grads),
    }
    learner = Learner(params, opt_state, multipliers, learner.found_at, learner.steps + 1)
    return learner, metrics


def measure(network: Any, config: Config, state: State, params: PyTree, key: jax.Array) -> Moments:
    """The moments of the features, exact or from a fresh minibatch."""
    ordered = config.method in ("allo", "no_duals")
    if config.expectation == "exact":
        features = network.apply(params, state.inputs)  # [S, d]
        return spectral.exact_moments(features, state.law.graph, state.law.weight, ordered)
    pair_key, other_key = jax.random.split(key)
    first, second = pair_replay.sample_pairs(
        state.walk, pair_key, config.batch_size, config.discount
    )
    others = pair_replay.sample_states(state.walk, other_key, 2 * config.batch_size)
    together = jax.tree.map(lambda *x: jnp.concatenate(x), first, second, others)
    u, u_next, u_a, u_b = jnp.split(encode(network, params, state.inputs, together), 4)
    return spectral.sampled_moments(u, u_next, u_a, u_b, ordered)


def encode(network: Any, params: PyTree, inputs: Any, state: PyTree) -> jax.Array:
    """Features `[B, d]` of states `[B, ...]`: by index, of all S at once where that is less."""
    if isinstance(inputs, tuple):
        return network.apply(params, state)
    if len(inputs) <= len(state):
        return network.apply(params, inputs)[state]
    return network.apply(params, inputs[state])


def loss(config: Config, moments: Moments, multipliers: Multipliers) -> tuple[jax.Array, jax.Array]:
    """`(loss, mask [d])` of the method."""
    if config.method in ("ggdo", "gdo"):
        weights = spectral.drawing_weights(config.method, len(moments.spread))
        value = spectral.graph_drawing_loss(
            moments, multipliers.barrier, weights, config.graph_weight
        )
        return value, jnp.ones_like(weights)
    mask = spectral.previous_rows_mask(moments.error, config.row_threshold)
    return spectral.allo_loss(moments, multipliers, mask, config.graph_weight), mask


def ascended(
    config: Config, multipliers: Multipliers, moments: Moments, mask: jax.Array
) -> Multipliers:
    """The multipliers after a step with the configured sizes; only ALLO moves its duals."""
    return spectral.ascended(
        multipliers,
        moments,
        mask,
        config.dual_step if config.method == "allo" else 0.0,
        config.dual_limit,
        config.barrier_step,
        config.barrier_limit,
    )


def turned(
    network: Any, config: Config, state: State, learner: Learner, key: jax.Array
) -> tuple[Learner, jax.Array]:
    """The head turned so that each feature is the best eigenvector within the span of all.

    The duals move to the eigenvalues there; what is orthogonal needs none beside the diagonal.
    Also returns by which angle each feature may still err, `spectral.eigenvector_errors`.
    """
    if config.expectation == "exact":
        u, weight = network.apply(learner.params, state.inputs), state.law.weight[:, None]
        slope = spectral.product(state.law.graph, u) / 2  # ρ L u
        energy, gram = spectral.product(u.T, slope), spectral.product((u * weight).T, u)
        turn, values = spectral.rayleigh_ritz(energy, gram)
        # States that no recorded pair begins in have no weight, and no part in L2(ρ).
        laplacian = slope / jnp.where(weight > 0, weight, 1.0)  # L u
        miss = spectral.product(laplacian, turn) - values[None, :] * spectral.product(u, turn)
        residual = jnp.sqrt(jnp.sum(weight * miss**2, axis=0))
        is_whole = len(values) == len(u)  # nothing lies beyond the span of as many features
        error = spectral.eigenvector_errors(residual, values, is_whole)
    else:
        first, second = pair_replay.sample_pairs(
            state.walk, key, config.turn_pairs, config.discount
        )
        u = encode(network, learner.params, state.inputs, first)
        difference = u - encode(network, learner.params, state.inputs, second)
        energy = spectral.product(difference.T, difference) / (2 * len(u))
        turn, values = spectral.rayleigh_ritz(energy, spectral.product(u.T, u) / len(u))
        error = jnp.full(values.shape, jnp.pi / 2)  # a sample does not tell
    params, opt_state = encoder.turned(learner.params, learner.opt_state, turn)
    duals = jnp.diag(-4 * config.graph_weight * values)
    multipliers = learner.multipliers._replace(duals=duals)
    return learner._replace(params=params, opt_state=opt_state, multipliers=multipliers), error


def step_size(config: Config, steps: jax.Array, found_at: jax.Array) -> jax.Array:
    """Of the next gradient step, after `steps` of them."""
    if config.schedule == "constant":
        return jnp.asarray(config.learning_rate)
    fallen = lambda share: (1 + jnp.cos(jnp.pi * jnp.clip(share, 0.0, 1.0))) / 2
    since = jnp.maximum(steps, found_at) - found_at
    over_budget = fallen(steps / config.gradient_steps)
    return config.learning_rate * over_budget * fallen(since / config.fall_steps)


def is_settled(config: Config, state: State) -> jax.Array:
    """Whether the step size has fallen to 0, so that nothing more would be learned."""
    steps, found_at = state.learner.steps, state.learner.found_at
    last = jnp.minimum(found_at, config.gradient_steps - config.fall_steps) + config.fall_steps
    return steps >= last


def eigenvalues(config: Config, state: State) -> jax.Array:
    """λ `[num_features]` as the duals tell it."""
    duals = jnp.diag(state.learner.multipliers.duals)[: config.num_features]
    return -duals / (4 * config.graph_weight)


def features(network: Any, config: Config, state: State, obs: PyTree | None = None) -> jax.Array:
    """The learned eigenvectors `[..., num_features]` at `obs`, by default at all S states."""
    obs = state.inputs if obs is None else obs
    return network.apply(state.learner.params, obs)[..., : config.num_features]


def pair_law(config: Config, state: State) -> jax.Array:
    """The law of pairs `[S, S]` that the agent learns from, on S numbered states."""
    if config.expectation == "exact":
        return pairs.expected(state.walk, config.discount)
    return pair_replay.law(state.walk, config.discount, len(state.inputs))


def visits(config: Config, state: State) -> jax.Array:
    """How often each of S numbered states was left, int32 `[S]`."""
    if config.expectation == "exact":
        return state.walk.steps.sum(axis=1)
    return pair_replay.visits(state.walk, len(state.inputs))


def permuted(learner: Learner, key: jax.Array, due: jax.Array) -> Learner:
    """The outputs in random order where `due`; only the sorted order is stable, so they return.

    The test of figure 8 in Gomez et al. (2024); multipliers stay.
    """
    num_outputs = len(learner.params["params"]["head"]["bias"])
    order = jax.random.permutation(key, num_outputs)
    change = lambda x: jnp.where(due, x[..., order], x)
    return learner._replace(params=encoder.with_head(learner.params, change))


def outputs(config: Config, num_states: int = 0) -> int:
    """Features that the network must have: spare ones too, but at most one for each of S states.

    `num_states` is 0 where states are not numbered.
    """
    wanted = config.num_features + config.spare_features
    return min(wanted, num_states) if num_states else wanted


def first_multipliers(config: Config, num_states: int) -> Multipliers:
    d = outputs(config, num_states)
    start = config.dual_start * jnp.eye(d)
    return Multipliers(start, jnp.asarray(config.barrier_start, jnp.float32), jnp.zeros((d, d)))


def make_optimizer(config: Config) -> optax.GradientTransformation:
    """Muon or Adam with a step size of 1."""
    return contrib.muon(1.0) if config.optimizer == "muon" else optax.adam(1.0)


def check_config(config: Config, num_states: int = 0) -> None:
    """Raises unless the sizes fit together and, on S numbered states, fit S."""
    sizes = ("num_features", "batch_size", "capacity", "steps_per_update", "turn_pairs")
    checks.fields("allo ", config, *sizes, "gradient_steps", "fall_steps", least=1)
    checks.fields("allo ", config, "spare_features", "turn_every", least=0)
    if config.turn_every and config.steps_per_update % config.turn_every:
        raise ValueError(
            f"{config.steps_per_update} steps_per_update cannot be cut into stretches of "
            f"turn_every={config.turn_every}: make one a multiple of the other"
        )
    if config.schedule == "measured" and not (config.turn_every and config.expectation == "exact"):
        raise ValueError(
            "schedule measured needs turns with an exact expectation to measure with: "
            "choose schedule budget or constant"
        )
    if 0 < num_states < config.num_features:
        raise ValueError(
            f"{config.num_features} features of {num_states} states: there are no more "
            f"eigenvectors than states, ask for {num_states} or fewer"
        )
    checks.number("allo discount", config.discount, least=0.0, below=1.0)
    checks.fields("allo ", config, "learning_rate", "graph_weight", "found_within", above=0.0)
    weights = ("dual_step", "dual_limit", "barrier_start", "barrier_step", "barrier_limit")
    checks.fields("allo ", config, *weights, least=0.0)
    checks.number("allo dual_start", config.dual_start)
    start, limit = config.barrier_start, config.barrier_limit
    if isinstance(start, int | float) and isinstance(limit, int | float) and start > limit:
        raise ValueError(f"allo barrier_start is {start}, expected at most barrier_limit={limit}")
    if config.row_threshold is not None:
        checks.number("allo row_threshold", config.row_threshold, above=0.0)
