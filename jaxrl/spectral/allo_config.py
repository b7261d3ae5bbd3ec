"""The configuration of `jaxrl.agents.allo`, and what follows from it alone."""

from typing import Literal

import jax
import jax.numpy as jnp
import optax
from flax import struct
from optax import contrib

from jaxrl import checks
from jaxrl.spectral.objectives import Method


@struct.dataclass
class Config:
    """How eigenvectors are learned."""

    num_features: int = struct.field(pytree_node=False, default=11)
    """d, eigenvectors to learn, the constant one included."""
    spare_features: int = struct.field(pytree_node=False, default=5)
    """Features learned beyond d and not reported: the last ones learn slowest."""
    discount: float = 0.9
    """γ: the probability that a pair is k transitions apart is proportional to γ^(k-1)."""
    expectation: Literal["exact", "sampled"] = struct.field(pytree_node=False, default="exact")
    """Over the estimated distribution of all pairs, or over sampled minibatches."""
    batch_size: int = struct.field(pytree_node=False, default=1024)
    """Pairs in a minibatch, where the expectation is sampled."""
    capacity: int = struct.field(pytree_node=False, default=1_000_000)
    """Transitions remembered, in whole rollouts, where the expectation is sampled; a run of
    `train.allo` sets it to what it records."""
    method: Method = struct.field(pytree_node=False, default="allo")
    """allo; no_duals, its ablation; ggdo and gdo, without ordering and multipliers."""
    graph_weight: float = 1.0
    """Scale of the graph term: 1 as in the code of the paper, 0.5 as in its text."""
    optimizer: Literal["muon", "adam"] = struct.field(pytree_node=False, default="muon")
    """muon needs far fewer steps; adam is cheaper for each."""
    learning_rate: float = 5e-3
    """Initial step size."""
    schedule: Literal["measured", "budget", "constant"] = struct.field(
        pytree_node=False, default="measured"
    )
    """How the step size falls to 0: budget, by a cosine over the budget; measured, faster once the
    rotations measure errors below `found_within`; constant, not at all."""
    found_within: float = 0.3
    """Eigenvectors are found once their angles to the exact ones are below this, in radians."""
    fall_steps: int = 500
    """Gradient steps in which the step size falls once eigenvectors are found."""
    gradient_steps: int = 5_000
    """Budget, after which the step size is 0; a run of `train.allo` sets it to its own."""
    steps_per_update: int = struct.field(pytree_node=False, default=50)
    """Gradient steps after each rollout."""
    turn_every: int = struct.field(pytree_node=False, default=50)
    """Gradient steps between two rotations of the head to the Ritz vectors; 0: never."""
    turn_pairs: int = struct.field(pytree_node=False, default=32_768)
    """Pairs from which a rotation is estimated, where the expectation is sampled."""
    dual_start: float = 0.0
    """Initial value of the diagonal duals."""
    dual_step: float = 0.04
    """Step size of the duals."""
    dual_limit: float = 100.0
    """Largest size of a dual."""
    barrier_start: float = 2.0
    """Initial weight of squared errors; above 2 is enough for only sorted order to be stable."""
    barrier_step: float = 0.01
    """Growth of that weight, per mean squared error and gradient step."""
    barrier_limit: float = 4.0
    """Largest such weight; the larger it is, the more slowly the duals converge."""
    row_threshold: float | None = struct.field(pytree_node=False, default=None)
    """Features learn once all constraints before them err by less than this; None: all at once."""


def outputs(config: Config, num_states: int = 0) -> int:
    """Outputs of the network: d features and the spare ones, but at most one for each of S states.

    `num_states` is 0 where states are not numbered.
    """
    wanted = config.num_features + config.spare_features
    return min(wanted, num_states) if num_states else wanted


def step_size(config: Config, steps: jax.Array, found_at: jax.Array) -> jax.Array:
    """Step size of the next gradient step, after `steps` of them."""
    if config.schedule == "constant":
        return jnp.asarray(config.learning_rate)
    fallen = lambda share: (1 + jnp.cos(jnp.pi * jnp.clip(share, 0.0, 1.0))) / 2
    since = jnp.maximum(steps, found_at) - found_at
    over_budget = fallen(steps / config.gradient_steps)
    return config.learning_rate * over_budget * fallen(since / config.fall_steps)


def make_optimizer(config: Config) -> optax.GradientTransformation:
    """Muon or Adam with a step size of 1."""
    return contrib.muon(1.0) if config.optimizer == "muon" else optax.adam(1.0)


def check_config(config: Config, num_states: int = 0) -> None:
    """Raises ValueError for out-of-range or inconsistent settings; S = `num_states` if numbered."""
    sizes = ("num_features", "batch_size", "capacity", "steps_per_update", "turn_pairs")
    checks.fields("allo ", config, *sizes, "gradient_steps", "fall_steps", least=1)
    checks.fields("allo ", config, "spare_features", "turn_every", least=0)
    if config.turn_every and config.steps_per_update % config.turn_every:
        raise ValueError(
            f"allo steps_per_update is {config.steps_per_update}, expected a multiple of "
            f"turn_every={config.turn_every}: change one of them"
        )
    if config.schedule == "measured" and not (config.turn_every and config.expectation == "exact"):
        raise ValueError(
            "schedule measured needs rotations (turn_every above 0) and an exact expectation: "
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
