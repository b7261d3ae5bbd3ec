"""Laplacian eigenvectors of a random walk, learned from transitions alone, without rewards.

ALLO, the augmented-Lagrangian method of Gomez, Bowling & Machado (ICLR 2024, arXiv 2310.10833), and
the graph drawing objectives it is compared with (`method`; see `jaxrl.spectral.objectives`). The
agent walks at random and learns from recorded pairs of states a geometric time apart.

On S numbered states (`inputs` given) the expectation over pairs is exact or sampled; otherwise it
is sampled. Three extensions of the paper are switches: exact expectations, orthogonalised steps
(Muon, Jordan et al. 2024) and rotations of the linear head, with spare features, to the best
eigenpairs within the span of the features (Rayleigh-Ritz).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from jaxrl import blocks as in_blocks
from jaxrl.networks import encoder
from jaxrl.spectral import directed, objectives, pair_replay, pairs, reweighted
from jaxrl.spectral.allo_config import Config, check_config, make_optimizer, outputs, step_size
from jaxrl.spectral.objectives import Moments, Multipliers
from jaxrl.types import Agent, Metrics, PyTree, Transition

NEVER = 2**31 - 1


class Law(NamedTuple):
    """The distribution of pairs, as the loss needs it."""

    graph: jax.Array  # [S, S], from objectives.graph_of
    weight: jax.Array  # [S] ρ


class Learner(NamedTuple):
    """What gradient steps change."""

    params: PyTree
    opt_state: PyTree
    multipliers: Multipliers
    found_at: jax.Array  # int32; the step at which eigenvectors were found, NEVER until then
    steps: jax.Array  # int32; gradient steps so far


class State(NamedTuple):
    """The whole state of the agent."""

    learner: Learner
    walk: Any  # pairs.Walk, pairs.Counts or reweighted.Walk, or a replay of pair_replay.Step
    law: Any  # Law of all recorded pairs; the visit ratio [S, T] of weighted samples; else ()
    inputs: Any  # [S, ...] the network's input for each state, or () where that is the observation
    readout: Any = ()  # Readout, where the walk is directed


class Readout(NamedTuple):
    """How left and right eigenvectors are made of the features; kept with a policy, as `params`."""

    params: directed.Ritz


def make(
    network: Any,
    config: Config,
    num_actions: int,
    inputs: jax.Array | None = None,
    num_envs: int = 1,
    num_steps: int = 50,
    walk: Callable[[PyTree, jax.Array], tuple[PyTree, Any]] | None = None,
) -> Agent:
    """ALLO for rollouts of `num_steps` from `num_envs` environments.

    Trajectories end with an episode and with the rollout.

    Args:
      network: `init(key, obs)` and `apply(params, obs [..., D]) -> [..., d]`, an
        `networks.encoder.Encoder` with d from `outputs`.
      config: its number leaves may be traced.
      num_actions: A of the random walk.
      inputs: `[S, ...]`, where observations are indices 0..S-1 of states.
      walk: `(obs, key) -> (action, log ratio)`, another policy than the uniform one of actions
        0..A-1, and log(1 / A) less the logarithm of its probability. With `config.importance` the
        recorded states are weighted by it.

    Raises ValueError for inconsistent or out-of-range settings.
    """
    num_states = 0 if inputs is None else len(inputs)
    check_config(config, num_states)
    if inputs is None and config.expectation == "exact":
        raise ValueError("an exact expectation needs numbered states: choose expectation sampled")
    if config.importance and (walk is None or inputs is None):
        raise ValueError("importance weights need numbered states, and a walk of another policy")
    if config.expectation == "sampled":
        in_blocks.check(num_envs, config.blocks)

    def init(key: jax.Array, obs: PyTree) -> State:
        params = network.init(key, obs if inputs is None else inputs[0])
        learner = first_learner(config, params, num_states)
        if config.expectation == "exact":
            none = jnp.zeros((num_states, num_states))
            law, readout = _law(config, none), _first_readout(config, num_states)
            return State(learner, empty(config, num_states, num_steps), law, inputs, readout)
        ring = pair_replay.init(obs, config.capacity, num_envs, num_steps, config.importance)
        ratio = jnp.zeros((num_states, num_steps)) if config.importance else ()
        return State(learner, ring, ratio, () if inputs is None else inputs)

    def act(state: State, memory: tuple, obs: PyTree, key: jax.Array):
        if walk is None:
            return jax.random.randint(key, (), 0, num_actions), memory, ()
        action, ratio = walk(obs, key)
        return action, memory, ratio

    update = lambda state, rollout, key: learn(
        network, config, recorded(config, state, rollout), key
    )
    return Agent(init, lambda: (), act, update)


def recorded(config: Config, state: State, rollout: Transition) -> State:
    """`state` after remembering a rollout `[T, N]`; nothing is learned yet."""
    done = rollout.terminated | rollout.truncated
    seen = (rollout.obs, rollout.next_obs, done)
    if config.importance:
        seen = (*seen, rollout.extras)
    if config.expectation == "exact":
        walk = record(config, state.walk, *seen)
        law = _law(config, expected(config, walk))
        return state._replace(walk=walk, law=law)
    walk = pair_replay.add(state.walk, *seen)
    if config.importance:
        known = reweighted.record(reweighted.empty_walk(*state.law.shape), *seen)
        return state._replace(walk=walk, law=reweighted.visit_ratio(known))
    return state._replace(walk=walk)


def empty(config: Config, num_states: int, num_steps: int) -> Any:
    """Counts of nothing, for an exact expectation."""
    if config.estimate == "pairs":
        return pairs.no_counts(num_states)
    module = reweighted if config.importance else pairs
    return module.empty_walk(num_states, num_steps)


def record(config: Config, walk: Any, *seen: jax.Array) -> Any:
    """`walk` with a rollout: states, successors and endings, and ratios of weighted walks."""
    if config.importance:
        return reweighted.record(walk, *seen)
    if config.estimate == "pairs":
        return pairs.add_counts(walk, *seen, discount=config.discount)
    return pairs.record(walk, *seen)


def expected(config: Config, walk: Any) -> jax.Array:
    """The distribution of pairs `[S, S]` of a recorded walk."""
    if config.estimate == "pairs":
        return walk.table / walk.table.sum()
    return (reweighted if config.importance else pairs).expected(walk, config.discount)


def learn(network: Any, config: Config, state: State, key: jax.Array) -> tuple[State, Metrics]:
    """`steps_per_update` gradient steps on the recorded pairs; the maze enters by `state` alone."""
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
            key, rotation_key = jax.random.split(key)
            learner, error = rotated(network, config, state, learner, rotation_key)
            metrics["angle"] = jnp.max(error[: config.num_features])
            if config.schedule == "measured":
                found = metrics["angle"] < config.found_within
                at = jnp.where(found, learner.steps, NEVER)
                learner = learner._replace(found_at=jnp.minimum(learner.found_at, at))
        return (learner, key), metrics

    stretches = config.steps_per_update // between
    (learner, _), metrics = jax.lax.scan(stretch, (state.learner, key), length=stretches)
    state = state._replace(learner=learner)
    if config.directed:
        state = state._replace(readout=Readout(ritz(network, config, state)))
    return state, jax.tree.map(jnp.mean, metrics)


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
    multipliers = dual_update(config, learner.multipliers, moments, mask)
    metrics = {
        "loss": value,
        "spread": jnp.sum(moments.spread),
        "constraint_error": jnp.sum(jnp.tril(moments.error) ** 2),
        "barrier": multipliers.barrier,
        "grad_norm": optax.tree.norm(grads),
    }
    if config.importance and config.expectation == "sampled":
        metrics["effective_share"] = moments.effective_share
    learner = Learner(params, opt_state, multipliers, learner.found_at, learner.steps + 1)
    return learner, metrics


def measure(network: Any, config: Config, state: State, params: PyTree, key: jax.Array) -> Moments:
    """The moments of the features, exact or from a fresh minibatch."""
    ordered = config.method in ("allo", "no_duals")
    if config.expectation == "exact":
        features = all_features(network, config, params, state.inputs)
        return objectives.exact_moments(features, state.law.graph, state.law.weight, ordered)
    pair_key, other_key = jax.random.split(key)
    size, blocks = config.batch_size, config.blocks
    first, second, weight = sampled_pairs(config, state, pair_key, size)
    if config.importance:
        others, of_others = pair_replay.weighted_states(
            state.walk, other_key, 2 * size, state.law, blocks
        )
    else:
        others = pair_replay.sample_states(state.walk, other_key, 2 * size, blocks)
    together = in_blocks.join((first, second, others), blocks)
    features = encoder.encode(network, params, state.inputs, together)
    u, u_next, u_a, u_b = in_blocks.deal(features, 4, blocks)
    if config.importance:
        weights = (weight, *in_blocks.deal(of_others, 2, blocks))
        return objectives.weighted_moments((u, u_next), (u_a, u_b), weights, ordered)
    return objectives.sampled_moments(u, u_next, u_a, u_b, ordered)


def sampled_pairs(
    config: Config, state: State, key: jax.Array, size: int
) -> tuple[PyTree, PyTree, Any]:
    """`(s, s', weight)` of recorded pairs, each `[size, ...]`; () where all weigh the same."""
    sample = (state.walk, key, size, config.discount)
    if config.importance:
        return pair_replay.weighted_pairs(*sample, state.law, config.blocks)
    return (*pair_replay.sample_pairs(*sample, config.blocks), ())


def loss(config: Config, moments: Moments, multipliers: Multipliers) -> tuple[jax.Array, jax.Array]:
    """`(loss, mask [d])` of the method."""
    if config.method in ("ggdo", "gdo"):
        weights = objectives.drawing_weights(config.method, len(moments.spread))
        value = objectives.graph_drawing_loss(
            moments, multipliers.barrier, weights, config.graph_weight
        )
        return value, jnp.ones_like(weights)
    mask = objectives.previous_rows_mask(moments.error, config.row_threshold)
    return objectives.allo_loss(moments, multipliers, mask, config.graph_weight), mask


def dual_update(
    config: Config, multipliers: Multipliers, moments: Moments, mask: jax.Array
) -> Multipliers:
    """The multipliers after a step with the configured sizes; only ALLO moves its duals."""
    return objectives.dual_update(
        multipliers,
        moments,
        mask,
        config.dual_step if config.method == "allo" else 0.0,
        config.dual_limit,
        config.barrier_step,
        config.barrier_limit,
    )


def rotated(
    network: Any, config: Config, state: State, learner: Learner, key: jax.Array
) -> tuple[Learner, jax.Array]:
    """Rotates the head so that the features are the Ritz vectors of their span.

    The duals become those of the Ritz values, diagonal since the features are orthogonal. Also
    returns `objectives.eigenvector_errors`, the angle by which each feature may still be wrong.
    """
    if config.expectation == "exact":
        u = all_features(network, config, learner.params, state.inputs)
        rotation, values, error = objectives.exact_eigenpairs(u, *state.law)
    else:
        first, second, weight = sampled_pairs(config, state, key, config.turn_pairs)
        u = encoder.encode(network, learner.params, state.inputs, first)
        u_next = encoder.encode(network, learner.params, state.inputs, second)
        rotation, values, error = objectives.sampled_eigenpairs(u, u_next, weight)
    params, opt_state = encoder.rotated(learner.params, learner.opt_state, rotation)
    duals = jnp.diag(-4 * config.graph_weight * values)
    multipliers = learner.multipliers._replace(duals=duals)
    return learner._replace(params=params, opt_state=opt_state, multipliers=multipliers), error


def is_settled(config: Config, state: State) -> jax.Array:
    """Whether the step size has fallen to 0."""
    steps, found_at = state.learner.steps, state.learner.found_at
    last = jnp.minimum(found_at, config.gradient_steps - config.fall_steps) + config.fall_steps
    return steps >= last


def eigenvalues(config: Config, state: State) -> jax.Array:
    """λ `[num_features]` from the duals."""
    duals = jnp.diag(state.learner.multipliers.duals)[: config.num_features]
    return -duals / (4 * config.graph_weight)


def features(network: Any, config: Config, state: State, obs: PyTree | None = None) -> jax.Array:
    """The learned eigenvectors `[..., num_features]` at `obs`, by default at all S states."""
    obs = state.inputs if obs is None else obs
    return network.apply(state.learner.params, obs)[..., : config.num_features]


def ritz(network: Any, config: Config, state: State) -> directed.Ritz:
    """Left and right eigenvectors of the recorded walk, within the span of the features."""
    num_states = len(state.inputs)
    arrivals = 2 * state.law.weight[num_states:]
    features = network.apply(state.learner.params, state.inputs)  # [S, 2, d]
    return directed.ritz(features, pairs.chain_of(state.walk), arrivals, config.discount)


def eigenpairs(
    network: Any, state: State, obs: PyTree | None = None
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """μ `[m]`, right and left eigenvectors `[..., m]` of a directed walk, all complex, at `obs`.

    m is the number of all features, the spare ones included. Left vectors are densities relative to
    the law of states that end a pair.
    """
    features = network.apply(state.learner.params, state.inputs if obs is None else obs)
    found = state.readout.params
    return found.values, *directed.read(features, found)


def pair_law(config: Config, state: State) -> jax.Array:
    """The distribution of pairs `[S, S]` that the agent learns from, on S numbered states."""
    if config.expectation == "exact":
        return expected(config, state.walk)
    return pair_replay.law(state.walk, config.discount, len(state.inputs))


def visits(config: Config, state: State) -> jax.Array:
    """How many recorded transitions start in each of S numbered states, int32 `[S]`."""
    if config.expectation == "exact":
        if config.estimate == "pairs" or config.importance:
            return state.walk.visits.reshape(len(state.inputs), -1).sum(axis=1)
        return state.walk.steps.sum(axis=1)
    return pair_replay.visits(state.walk, len(state.inputs))


def all_features(network: Any, config: Config, params: PyTree, inputs: jax.Array) -> jax.Array:
    """Of all S states, `[S, d]`; of a directed walk those of beginnings and ends, `[2 S, d]`."""
    features = network.apply(params, inputs)
    return directed.stacked(features) if config.directed else features


def permuted(learner: Learner, key: jax.Array, due: jax.Array) -> Learner:
    """Permutes the outputs at random where `due`; multipliers stay. Only sorted order is stable.

    The experiment of figure 8 in Gomez et al. (2024).
    """
    num_outputs = len(learner.params["params"]["head"]["bias"])
    order = jax.random.permutation(key, num_outputs)
    change = lambda x: jnp.where(due, x[..., order], x)
    return learner._replace(params=encoder.with_head(learner.params, change))


def first_learner(config: Config, params: PyTree, num_states: int) -> Learner:
    """Before the first gradient step."""
    return Learner(
        params,
        make_optimizer(config).init(params),
        first_multipliers(config, num_states),
        jnp.asarray(NEVER, jnp.int32),
        jnp.zeros((), jnp.int32),
    )


def _law(config: Config, law: jax.Array) -> Law:
    """From the law of pairs of states `[S, S]`."""
    return Law(*objectives.graph_of(directed.bipartite(law) if config.directed else law))


def _first_readout(config: Config, num_states: int) -> Readout | tuple:
    """Nothing has been found yet."""
    if not config.directed:
        return ()
    d = outputs(config, num_states)
    none = jnp.zeros((d, d), jnp.complex64)
    return Readout(directed.Ritz(none[0], none, none))


def first_multipliers(config: Config, num_states: int) -> Multipliers:
    d = outputs(config, num_states)
    start = config.dual_start * jnp.eye(d)
    return Multipliers(start, jnp.asarray(config.barrier_start, jnp.float32), jnp.zeros((d, d)))
