"""Laplacian eigenvectors of a random walk, learned from transitions alone, without rewards.

ALLO, the augmented-Lagrangian method of Gomez, Bowling & Machado (ICLR 2024, arXiv 2310.10833), and
the graph drawing objectives it is compared with (`method`; see
`jaxrl.spectral.learning.objectives`). The agent walks at random and learns from recorded pairs of
states a geometric time apart.

On S numbered states (`inputs` given) the expectation over pairs is exact or sampled; otherwise it
is sampled. Three extensions of the paper are switches: exact expectations, orthogonalised steps
(Muon, Jordan et al. 2024) and rotations of the linear head, with spare features, to the best
eigenpairs within the span of the features (Rayleigh-Ritz).
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax

from jaxrl import blocks as in_blocks
from jaxrl.blocks import BlockBatch
from jaxrl.spectral import directed
from jaxrl.spectral.learning import allo_state, allo_walks, encoder, objectives
from jaxrl.spectral.learning.allo_config import Config, check_config, make_optimizer, step_size
from jaxrl.spectral.learning.allo_state import Learner, State, first_learner, first_readout
from jaxrl.spectral.learning.objectives import Moments, Multipliers
from jaxrl.types import Agent, Metrics, PyTree


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
      network: `init(key, obs)` and `apply(params, obs [..., D]) -> [..., d]`, of the module
        `encoder` an `Encoder` or, where `config.directed`, a `TwoSided` `-> [..., 2, d]`, with d
        from `allo_config.outputs`.
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
        sizes = (num_states, num_actions, num_envs, num_steps)
        recording, law = allo_walks.first_walk(config, obs, *sizes)
        state_inputs = () if inputs is None else inputs
        return State(learner, recording, law, state_inputs, first_readout(config, num_states))

    def act(state: State, memory: tuple, obs: PyTree, key: jax.Array):
        if walk is None:
            return jax.random.randint(key, (), 0, num_actions), memory, ()
        action, ratio = walk(obs, key)
        return action, memory, ratio

    update = lambda state, rollout, key: learn(
        network, config, allo_walks.record_rollout(config, state, rollout), key
    )
    return Agent(init, lambda: (), act, update)


def learn(network: Any, config: Config, state: State, key: jax.Array) -> tuple[State, Metrics]:
    """`steps_per_update` gradient steps on the recorded pairs; the maze enters by `state` alone."""
    optimizer = make_optimizer(config)
    steps_between = config.turn_every or config.steps_per_update

    def step(carry: tuple[Learner, jax.Array], _):
        learner, key = carry
        key, step_key = jax.random.split(key)
        learner, metrics = gradient_step(network, optimizer, config, state, learner, step_key)
        return (learner, key), metrics

    def stretch(carry: tuple[Learner, Any, jax.Array], _):
        learner, readout, key = carry
        (learner, key), metrics = jax.lax.scan(step, (learner, key), length=steps_between)
        metrics, is_found = jax.tree.map(jnp.mean, metrics), jnp.asarray(True)
        if config.turn_every:
            key, rotation_key = jax.random.split(key)
            learner, error = rotate_to_ritz(network, config, state, learner, rotation_key)
            metrics["angle"] = jnp.max(error[: config.num_features])
            is_found = metrics["angle"] < config.found_within
        if config.directed:
            readout, error = allo_state.read_out(network, config, state, learner)
            metrics["eigenpair_angle"] = jnp.max(error[: config.num_features])
            is_found &= metrics["eigenpair_angle"] < directed.CONVERGED
        if config.schedule == "measured":
            step_found = jnp.where(is_found, learner.steps, allo_state.NEVER)
            learner = learner._replace(found_at=jnp.minimum(learner.found_at, step_found))
        return (learner, readout, key), metrics

    stretches = config.steps_per_update // steps_between
    start = (state.learner, state.readout, key)
    (learner, readout, _), metrics = jax.lax.scan(stretch, start, length=stretches)
    state = state._replace(learner=learner, readout=readout)
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
    size, blocks = config.batch_size, state.walk.blocks
    first, second, weight = allo_walks.sampled_pairs(config, state, pair_key, size)
    others, other_weights = allo_walks.sampled_states(config, state, other_key, 2 * size)
    all_states = in_blocks.join((first, second, others), blocks)
    features = encoder.encode(network, params, state.inputs, all_states.data)
    u, u_next, u_a, u_b = in_blocks.deal(BlockBatch(features, blocks), 4)
    if config.importance:
        weights = (weight, *in_blocks.deal(BlockBatch(other_weights, blocks), 2))
        return objectives.weighted_moments((u, u_next), (u_a, u_b), weights, ordered)
    return objectives.sampled_moments(u, u_next, u_a, u_b, ordered)


def loss(config: Config, moments: Moments, multipliers: Multipliers) -> tuple[jax.Array, jax.Array]:
    """`(loss, mask [d])` of the method."""
    if config.method in ("ggdo", "gdo"):
        weights = objectives.drawing_weights(config.method, len(moments.spread))
        value = objectives.graph_drawing_loss(
            moments, multipliers.barrier, weights, config.graph_weight
        )
        return value, jnp.ones_like(weights)
    if config.method == "no_duals":  # those that there are only tell λ
        multipliers = multipliers._replace(duals=jnp.zeros_like(multipliers.duals))
    mask = objectives.previous_rows_mask(moments.error, config.row_threshold)
    return objectives.allo_loss(moments, multipliers, mask, config.graph_weight), mask


def dual_update(
    config: Config, multipliers: Multipliers, moments: Moments, mask: jax.Array
) -> Multipliers:
    """The multipliers after a step with the configured sizes; only ALLO learns by its duals."""
    changed = objectives.dual_update(
        multipliers,
        moments,
        mask,
        config.dual_step if config.method == "allo" else 0.0,
        config.dual_limit,
        config.barrier_step,
        config.barrier_limit,
    )
    if config.method == "allo":
        return changed
    duals = objectives.measured_duals(multipliers, moments, config.graph_weight)
    return changed._replace(duals=duals)


def rotate_to_ritz(
    network: Any, config: Config, state: State, learner: Learner, key: jax.Array
) -> tuple[Learner, jax.Array]:
    """Rotates the head so that the features are the Ritz vectors of their span.

    The duals become those of the Ritz values, diagonal since the features are orthogonal. Also
    returns `objectives.eigenvector_errors`, the angle by which each feature may still be wrong.
    """
    if config.expectation == "exact":
        u = all_features(network, config, learner.params, state.inputs)
        rotation, values, error = objectives.exact_eigenpairs(u, *state.law)
    elif (parts := config.turn_parts) > 1:
        keys = jax.random.split(key, parts)
        energy, gram = mean_moments(network, config, state, learner.params, keys)
        rotation, values = objectives.rayleigh_ritz(energy, gram)
        error = jnp.full(values.shape, jnp.pi / 2)  # unknown
    else:
        first, second, weight = allo_walks.sampled_pairs(config, state, key, config.turn_pairs)
        u = encoder.encode(network, learner.params, state.inputs, first)
        u_next = encoder.encode(network, learner.params, state.inputs, second)
        rotation, values, error = objectives.sampled_eigenpairs(u, u_next, weight)
    params, opt_state = encoder.rotate_head(learner.params, learner.opt_state, rotation)
    duals = jnp.diag(-4 * config.graph_weight * values)
    multipliers = learner.multipliers._replace(duals=duals)
    return learner._replace(params=params, opt_state=opt_state, multipliers=multipliers), error


def mean_moments(
    network: Any, config: Config, state: State, params: PyTree, keys: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """`objectives.pair_moments` of `turn_pairs` pairs, an equal part of them for each of the keys.

    The parts follow one another, so that only one takes memory.
    """

    def of_part(key: jax.Array) -> tuple[jax.Array, jax.Array]:
        size = config.turn_pairs // config.turn_parts
        first, second, _ = allo_walks.sampled_pairs(config, state, key, size)
        u, u_next = (
            encoder.encode(network, params, state.inputs, states) for states in (first, second)
        )
        return objectives.pair_moments(u, u_next)

    return jax.tree.map(lambda x: jnp.mean(x, axis=0), jax.lax.map(of_part, keys))


def all_features(network: Any, config: Config, params: PyTree, inputs: jax.Array) -> jax.Array:
    """Features of all S states, `[S, d]`; of a directed walk those of both sides, `[2 S, d]`."""
    features = network.apply(params, inputs)
    return directed.stack_sides(features) if config.directed else features


def permute_outputs(learner: Learner, key: jax.Array, due: jax.Array) -> Learner:
    """Permutes the outputs at random where `due`; multipliers stay. Only sorted order is stable.

    The experiment of figure 8 in Gomez et al. (2024).
    """
    num_outputs = len(learner.params["params"]["head"]["bias"])
    order = jax.random.permutation(key, num_outputs)
    permute = lambda x: jnp.where(due, x[..., order], x)
    return learner._replace(params=encoder.with_head(learner.params, permute))
