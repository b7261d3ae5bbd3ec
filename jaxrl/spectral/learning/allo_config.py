"""The configuration of `jaxrl.spectral.learning.allo`, and what follows from it alone."""

from typing import Annotated, Literal

import jax
import jax.numpy as jnp
import optax
from flax import struct

from jaxrl import checks
from jaxrl.checks import Count, CountOrZero, NonNegative, Positive, Range
from jaxrl.dependent_fields import needs
from jaxrl.spectral.learning.muon import muon
from jaxrl.spectral.learning.objectives import Method

TURN_AT_ONCE = 32_768
"""Pairs of a rotation that the network sees at once."""
OF_TURNS = "it needs {}expectation sampled and {}turn_every"
OF_DUALS = needs("method", "allo")
"""The duals of other methods only tell λ."""


@struct.dataclass
class Config:
    """How eigenvectors are learned."""

    num_features: Count = struct.field(pytree_node=False, default=11)
    """d, eigenvectors to learn, the constant one included."""
    spare_features: CountOrZero = struct.field(pytree_node=False, default=5)
    """Features learned beyond d and not reported: the last ones learn slowest."""
    discount: Annotated[float, Range(least=0.0, below=1.0)] = 0.9
    """γ: the probability that a pair is k transitions apart is proportional to γ^(k-1)."""
    expectation: Literal["exact", "sampled"] = struct.field(pytree_node=False, default="exact")
    """Over the estimated distribution of all pairs, or over sampled minibatches."""
    estimate: Annotated[Literal["chain", "actions", "pairs"], needs("expectation", "exact")] = (
        struct.field(pytree_node=False, default="chain")
    )
    """Of an exact expectation: from the frequencies of single transitions, taken as a Markov chain;
    from those of each action, the chain in which all actions are as likely, whatever policy took
    them; or from the recorded pairs alone, which needs more data but no chain."""
    importance: bool = struct.field(pytree_node=False, default=False)
    """Weigh what another policy recorded by the ratio of probabilities, so that the eigenvectors
    are those of the uniform walk."""
    batch_size: Annotated[Count, needs("expectation", "sampled")] = struct.field(
        pytree_node=False, default=1024
    )
    """Pairs in a minibatch, where the expectation is sampled."""
    capacity: Count = struct.field(pytree_node=False, default=1_000_000)
    """Transitions remembered, in whole rollouts, where the expectation is sampled; a run of
    `train.allo` sets it to what it records."""
    method: Method = struct.field(pytree_node=False, default="allo")
    """allo; no_duals, its ablation; ggdo and gdo, without ordering and duals."""
    graph_weight: Positive = 1.0
    """Scale of the graph term: 1 as in the code of the paper, 0.5 as in its text."""
    directed: bool = struct.field(pytree_node=False, default=False)
    """Learn left and right eigenvectors of the walk as it is, complex where it goes round, instead
    of those of its self-adjoint part; see `jaxrl.spectral.directed`."""
    optimizer: Literal["muon", "adam"] = struct.field(pytree_node=False, default="muon")
    """muon needs far fewer steps; adam is cheaper for each."""
    learning_rate: Positive = 5e-3
    """Initial step size."""
    schedule: Literal["measured", "budget", "constant"] = struct.field(
        pytree_node=False, default="measured"
    )
    """How the step size falls to 0: budget, by a cosine over the budget; measured, faster once the
    rotations measure errors below `found_within`; constant, not at all."""
    found_within: Annotated[Positive, needs("schedule", "measured")] = 0.3
    """Eigenvectors are found once their angles to the exact ones are below this, in radians."""
    fall_steps: Annotated[Count, needs("schedule", "measured")] = 500
    """Gradient steps in which the step size falls once eigenvectors are found."""
    gradient_steps: Count = 5_000
    """Budget, after which a step size that is not constant is 0; a run of `train.allo` sets it to
    its own."""
    steps_per_update: Count = struct.field(pytree_node=False, default=50)
    """Gradient steps after each rollout."""
    turn_every: CountOrZero = struct.field(pytree_node=False, default=50)
    """Gradient steps between two rotations of the head to the Ritz vectors; 0: never."""
    turn_pairs: Annotated[
        Count, needs("expectation", "sampled", why=OF_TURNS), needs("turn_every", why=OF_TURNS)
    ] = struct.field(pytree_node=False, default=32_768)
    """Pairs from which a rotation is estimated, where the expectation is sampled; eigenvectors are
    told apart where the relative difference of their λ is well above 1 / √ of it."""
    blocks: Annotated[Count, needs("expectation", "sampled")] = struct.field(
        pytree_node=False, default=1
    )
    """Equal groups of walks which minibatches are drawn within, each an equal part of them, where
    the expectation is sampled; like a seed, it changes what is drawn."""
    dual_start: Annotated[float, OF_DUALS] = 0.0
    """Initial value of the diagonal duals."""
    dual_step: Annotated[NonNegative, OF_DUALS] = 0.04
    """Step size of the duals."""
    dual_limit: Annotated[NonNegative, OF_DUALS] = 100.0
    """Largest size of a dual."""
    barrier_start: NonNegative = 2.0
    """Initial weight b of squared errors. Only sorted order is stable, and that above twice the
    largest λ that is learned, times graph_weight; in mazes λ is hardly above 1 for γ of 0.9."""
    barrier_step: NonNegative = 0.01
    """Growth of that weight, per mean squared error and gradient step."""
    barrier_limit: NonNegative = 4.0
    """Largest such weight; the larger it is, the more slowly the duals converge."""
    row_threshold: Annotated[Positive | None, needs("method", "allo", "no_duals")] = struct.field(
        pytree_node=False, default=None
    )
    """Features learn once all constraints before them err by less than this; None: all at once."""

    @property
    def turn_parts(self) -> int:
        """Equal parts in which `turn_pairs` are seen, one by one; weighted ones at once."""
        parts = -(-self.turn_pairs // TURN_AT_ONCE)
        is_even = self.turn_pairs % (parts * self.blocks) == 0
        return parts if is_even and not self.importance else 1


def outputs(config: Config, num_states: int = 0) -> int:
    """Outputs of the network: d features and the spare ones, but at most one for each of S states.

    `num_states` is 0 where states are not numbered.
    """
    num_outputs = config.num_features + config.spare_features
    return min(num_outputs, num_states) if num_states else num_outputs


def step_size(config: Config, steps: jax.Array, found_at: jax.Array) -> jax.Array:
    """Step size of the next gradient step, after `steps` of them."""
    if config.schedule == "constant":
        return jnp.asarray(config.learning_rate)
    cosine_decay = lambda share: (1 + jnp.cos(jnp.pi * jnp.clip(share, 0.0, 1.0))) / 2
    steps_since = jnp.maximum(steps, found_at) - found_at
    over_budget = cosine_decay(steps / config.gradient_steps)
    return config.learning_rate * over_budget * cosine_decay(steps_since / config.fall_steps)


def make_optimizer(config: Config) -> optax.GradientTransformation:
    """Muon or Adam with a step size of 1."""
    return muon() if config.optimizer == "muon" else optax.adam(1.0)


def check_config(config: Config, num_states: int = 0) -> None:
    """Raises ValueError for out-of-range or inconsistent settings; S = `num_states` if numbered."""
    checks.config_of(Config, config)
    # Numbers that must be multiples of others.
    if config.turn_every and config.steps_per_update % config.turn_every:
        raise ValueError(
            f"steps_per_update is {config.steps_per_update}, expected a multiple of "
            f"turn_every={config.turn_every}: change one of them"
        )
    for name in ("batch_size", "turn_pairs") if config.turn_every else ("batch_size",):
        if config.expectation == "sampled" and getattr(config, name) % config.blocks:
            raise ValueError(
                f"{name} is {getattr(config, name)}, expected a multiple of "
                f"blocks={config.blocks}: change one of them"
            )
    # Options that need or exclude others.
    if config.directed and config.expectation != "exact":
        raise ValueError(
            f"agent.directed needs agent.expectation exact, found {config.expectation}: choose it, "
            "or leave out agent.directed"
        )
    if config.directed and (config.estimate != "chain" or config.importance):
        raise ValueError(
            "agent.directed needs agent.estimate chain, without agent.importance: its eigenvectors "
            "are those of a recorded chain"
        )
    if config.importance and config.expectation == "exact" and config.estimate != "chain":
        raise ValueError("importance weights of an exact expectation need estimate chain")
    if config.schedule == "measured" and not (config.turn_every and config.expectation == "exact"):
        raise ValueError(
            "schedule measured needs rotations (turn_every above 0) and an exact expectation: "
            "choose schedule budget or constant"
        )
    # Limits that depend on the number of states or on another number.
    if 0 < num_states < config.num_features:
        raise ValueError(
            f"num_features is {config.num_features}, but there are {num_states} states, and no "
            f"more eigenvectors: ask for {num_states} or fewer"
        )
    start, limit = config.barrier_start, config.barrier_limit
    if isinstance(start, int | float) and isinstance(limit, int | float) and start > limit:
        raise ValueError(f"barrier_start is {start}, expected at most barrier_limit={limit}")
