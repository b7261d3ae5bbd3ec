"""Laplacian eigenvectors of a random walk, learned from transitions alone, without rewards.

The augmented-Lagrangian learner of Gomez, Bowling & Machado (ICLR 2024, arXiv 2310.10833), and by
`method` the graph drawing objectives it is compared with (see `jaxrl.spectral`). The agent walks at
random, remembers its transitions and learns from pairs of states a geometric time apart.

On S numbered states (`inputs` given) the expectation over pairs is exact, or sampled; on any other
observations it is sampled. Three things help it beyond the paper, each a switch: exact
expectations, orthogonalised steps (Muon, Jordan et al. 2024) and turns of the linear head to the
best eigenpairs within the span of the features (Rayleigh-Ritz), with spare features to turn with.
"""

import math
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import optax
from flax import struct
from optax import contrib

from jaxrl import linalg, pairs, replay, spectral
from jaxrl.spectral import Method, Moments, Multipliers
from jaxrl.types import Agent, Metrics, PyTree, Transition


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
    constant_rate: bool = struct.field(pytree_node=False, default=False)
    """Keep that step size, instead of letting it fall to 0 along a cosine."""
    gradient_steps: int = 2_000
    """Gradient steps until the step size is 0; a run of `train.allo` sets it to its budget."""
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


class Memory(NamedTuple):
    """One transition in the replay, where the expectation is sampled."""

    state: Any  # an index, or an observation
    next_state: Any
    left: jax.Array  # int32, transitions left in the trajectory, this one included


class Learner(NamedTuple):
    """What a gradient step changes."""

    params: PyTree
    opt_state: PyTree
    multipliers: Multipliers
    steps: jax.Array  # int32; gradient steps so far


class State(NamedTuple):
    """Everything the agent knows."""

    learner: Learner
    walk: Any  # pairs.Walk, or a replay of Memory
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
            jnp.zeros((), jnp.int32),
        )
        if config.expectation == "exact":
            walk = pairs.no_walk(num_states, num_steps)
            none = jnp.zeros((num_states, num_states))
            return State(learner, walk, Law(none, none[0]), inputs)
        rollouts = -(-config.capacity // (num_envs * num_steps))
        example = Memory(obs, obs, jnp.zeros((), jnp.int32))
        ring = replay.init(example, rollouts * num_steps, num_envs)
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
    rows = Memory(rollout.obs, rollout.next_obs, pairs.remaining(done))
    return state._replace(walk=replay.add(state.walk, rows))


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
        if config.turn_every:
            key, turn_key = jax.random.split(key)
            learner = turned(network, config, state, learner, turn_key)
        return (learner, key), jax.tree.map(jnp.mean, metrics)

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
    params = optax.apply_updates(learner.params, changes)
    multipliers = ascended(config, learner.multipliers, moments, mask)
    metrics = {
        "loss": value,
        "spread": jnp.sum(moments.spread),
        "constraint_error": jnp.sum(jnp.tril(moments.error) ** 2),
        "barrier": multipliers.barrier,
        "grad_norm": optax.tree.norm(grads),
    }
    return Learner(params, opt_state, multipliers, learner.steps + 1), metrics


def measure(network: Any, config: Config, state: State, params: PyTree, key: jax.Array) -> Moments:
    """The moments of the features, exact or from a fresh minibatch."""
    ordered = config.method in ("allo", "no_duals")
    if config.expectation == "exact":
        features = network.apply(params, state.inputs)  # [S, d]
        return spectral.exact_moments(features, state.law.graph, state.law.weight, ordered)
    pair_key, other_key = jax.random.split(key)
    first, second = sample_pairs(state.walk, pair_key, config.batch_size, config.discount)
    places = replay.draw(state.walk, other_key, 2 * config.batch_size)
    others = replay.take(state.walk.data.state, places.row[0], places.env)
    together = jax.tree.map(lambda *x: jnp.concatenate(x), first, second, others)
    u, u_next, u_a, u_b = jnp.split(encode(network, params, state.inputs, together), 4)
    return spectral.sampled_moments(u, u_next, u_a, u_b, ordered)


def sample_pairs(
    ring: replay.Replay, key: jax.Array, batch: int, discount: float | jax.Array
) -> tuple[PyTree, PyTree]:
    """`(s, s')`, each `[batch, ...]`: s of any recorded transition, s' k transitions on."""
    start_key, offset_key = jax.random.split(key)
    places = replay.draw(ring, start_key, batch)
    row, env = places.row[0], places.env
    state, left = replay.take((ring.data.state, ring.data.left), row, env)
    offset = pairs.geometric(offset_key, left, discount)
    last = (row + offset - 1) % replay.ring_shape(ring)[0]
    return state, replay.take(ring.data.next_state, last, env)


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


def turned(network: Any, config: Config, state: State, learner: Learner, key: jax.Array) -> Learner:
    """The head turned so that each feature is the best eigenvector within the span of all."""
    params = learner.params["params"]
    if config.expectation == "exact":
        features = network.apply(learner.params, state.inputs)
        energy = spectral.product(features.T, spectral.product(state.law.graph, features)) / 2
        gram = spectral.product((features * state.law.weight[:, None]).T, features)
    else:
        first, second = sample_pairs(state.walk, key, config.turn_pairs, config.discount)
        u = encode(network, learner.params, state.inputs, first)
        difference = u - encode(network, learner.params, state.inputs, second)
        energy = spectral.product(difference.T, difference) / (2 * len(u))
        gram = spectral.product(u.T, u) / len(u)
    turn, values = spectral.rayleigh_ritz(energy, gram)
    multipliers = learner.multipliers
    length = spectral.balanced_length(values, multipliers, config.graph_weight)
    turn = turn * length[None, :]
    head = {name: spectral.product(x, turn) for name, x in params["head"].items()}
    duals = jnp.diag(jnp.diag(multipliers.duals))  # what is orthogonal needs no others
    return learner._replace(
        params={**learner.params, "params": {**params, "head": head}},
        opt_state=turned_momentum(learner.opt_state, turn),
        multipliers=multipliers._replace(duals=duals),
    )


def turned_momentum(opt_state: PyTree, turn: jax.Array) -> PyTree:
    """The momentum of the head in the coordinates of the turned head.

    With W' = W turn the slope by W' is the slope by W times turn⁻ᵀ. Without it, steps go on for a
    while in directions that mean something else by now.
    """
    back = linalg.inverse(turn).T

    def turned(path: tuple, x: jax.Array) -> jax.Array:
        names = {getattr(entry, "name", getattr(entry, "key", None)) for entry in path}
        return spectral.product(x, back) if {"mu", "head"} <= names else x

    return jax.tree_util.tree_map_with_path(turned, opt_state)


def eigenvalues(config: Config, state: State) -> jax.Array:
    """λ `[num_features]` as the duals tell it; it follows them with a lag of 2 b / dual_step."""
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
    data, unseen = state.walk.data, len(state.inputs)
    is_written = data.left > 0  # rows that nothing was written to hold zeros
    first, last = (jnp.where(is_written, x, unseen) for x in (data.state, data.next_state))
    counts = pairs.count(first, last, data.left == 1, config.discount, unseen + 1)
    counts = counts[:unseen, :unseen]
    return counts / counts.sum()


def visits(config: Config, state: State) -> jax.Array:
    """How often each of S numbered states was left, int32 `[S]`."""
    if config.expectation == "exact":
        return state.walk.steps.sum(axis=1)
    data = state.walk.data
    is_written = (data.left > 0).astype(jnp.int32)
    return jnp.zeros(len(state.inputs), jnp.int32).at[data.state].add(is_written)


def permuted(learner: Learner, key: jax.Array, due: jax.Array) -> Learner:
    """The outputs in random order where `due`; only the sorted order is stable, so they return.

    The test of figure 8 in Gomez et al. (2024); multipliers stay.
    """
    params = learner.params["params"]
    order = jax.random.permutation(key, len(params["head"]["bias"]))
    head = {name: jnp.where(due, x[..., order], x) for name, x in params["head"].items()}
    return learner._replace(params={**learner.params, "params": {**params, "head": head}})


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
    """Muon or Adam; the step size falls to 0 along half a cosine, or is constant."""

    def schedule(count: jax.Array) -> jax.Array | float:
        if config.constant_rate:
            return config.learning_rate
        done = jnp.minimum(count / config.gradient_steps, 1.0)
        return config.learning_rate * (1 + jnp.cos(jnp.pi * done)) / 2

    make: dict[str, Callable] = {"muon": contrib.muon, "adam": optax.adam}
    return make[config.optimizer](schedule)


def check_config(config: Config, num_states: int = 0) -> None:
    """Raises unless the sizes fit together and, on S numbered states, fit S."""
    least = {"num_features": 1, "spare_features": 0, "batch_size": 1, "capacity": 1}
    least |= {"steps_per_update": 1, "turn_every": 0, "turn_pairs": 1}
    for name, bound in least.items():
        if (size := getattr(config, name)) < bound:
            raise ValueError(f"allo {name} is {size}, expected at least {bound}: raise it")
    if config.turn_every and config.steps_per_update % config.turn_every:
        raise ValueError(
            f"{config.steps_per_update} steps_per_update cannot be cut into stretches of "
            f"turn_every={config.turn_every}: make one a multiple of the other"
        )
    if 0 < num_states < config.num_features:
        raise ValueError(
            f"{config.num_features} features of {num_states} states: there are no more "
            f"eigenvectors than states, ask for {num_states} or fewer"
        )
    discount = config.discount
    if isinstance(discount, int | float) and not 0 <= discount < 1:
        raise ValueError(f"discount is {discount}, expected 0 <= discount < 1: lower it")
    for name in ("learning_rate", "graph_weight"):
        check_number(name, getattr(config, name), above=0.0)
    for name in ("dual_step", "dual_limit", "barrier_start", "barrier_step", "barrier_limit"):
        check_number(name, getattr(config, name))
    check_number("dual_start", config.dual_start, least=-math.inf)
    start, limit = config.barrier_start, config.barrier_limit
    if isinstance(start, int | float) and isinstance(limit, int | float) and start > limit:
        raise ValueError(f"allo barrier_start is {start}, expected at most barrier_limit={limit}")
    if config.row_threshold is not None:
        check_number("row_threshold", config.row_threshold, above=0.0)


def check_number(name: str, number: Any, least: float = 0.0, above: float = -math.inf) -> None:
    """Raises unless a number that is known already is finite, at least `least`, and above `above`.

    What is traced, as under `vmap` over configurations, cannot be looked at.
    """
    if not isinstance(number, int | float):
        return
    if not (math.isfinite(number) and number >= least and number > above):
        bound = "above 0" if above == 0 else "of at least 0" if least == 0 else "that is finite"
        raise ValueError(f"allo {name} is {number}, expected a number {bound}: change it")
