"""How likely a policy is to delete each node: exact, for all three kinds of action. NumPy."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import ndtr

from jaxrl.losses.distributions.continuous import PartlyFixedPolicy, SquashedNormal
from jaxrl.types import Agent
from train.durotaxis.episodes.record import Episode


def explain_share(agent: Agent, network: Any) -> Agent:
    """An agent that also explains the distribution of the share it deletes, as "share" [4].

    These are mean and deviation before the squash, and the ends of the box. `network` is that of
    the agent, with the share as the first number of its action.
    """

    def explain(state: Any, memory: tuple, obs: Any) -> dict[str, jax.Array]:
        policy, _ = network.apply(state.params, obs)
        share: SquashedNormal = policy.policy if isinstance(policy, PartlyFixedPolicy) else policy
        numbers = share.raw.mean, share.raw.scale, share.low, share.high
        return agent.explain(state, memory, obs) | {"share": jnp.stack([x[0] for x in numbers])}

    return agent._replace(explain=explain)


def with_delete_chances(episode: Episode) -> Episode:
    """An episode as it was played, in which x leads to the goal, with its `delete_chances`."""
    return replace(episode, delete_chances=episode_probabilities(episode))


def episode_probabilities(episode: Episode) -> np.ndarray | None:
    """The `delete_chances` of an episode that has not been turned."""
    colony: Any = episode.colony
    moments = len(episode.deleted) - 1
    probabilities = np.full(episode.alive.shape, np.nan, np.float32)
    for s in range(moments):
        explanation = {name: x[s] for name, x in episode.explained.items()}
        step_probabilities = node_probabilities(explanation, colony.x[s], int(colony.num_nodes[s]))
        if step_probabilities is None:
            return None
        probabilities[s, : len(step_probabilities)] = step_probabilities
    return probabilities


def node_probabilities(
    explanation: Mapping[str, np.ndarray], x: np.ndarray, count: int
) -> np.ndarray | None:
    """The same of the `count` nodes `[N]` at `x` [slots], px, from `Agent.explain` of one step."""
    if "node_probabilities" in explanation:
        return np.asarray(explanation["node_probabilities"])[:count, 1]
    if "share" not in explanation:
        return None
    return leftmost_probabilities(
        np.asarray(x)[:count], *np.asarray(explanation["share"], np.float64)
    )


def leftmost_probabilities(
    x: np.ndarray, mean: float, deviation: float, low: float, high: float
) -> np.ndarray:
    """The probability of each of N nodes at `x` [N] to be among the leftmost ⌊r N⌋, `[N]`.

    The share r is a squashed normal variate, see `distributions.SquashedNormal`. The node of
    rank j, from 0 at the left (of equal x the lower slot first), is deleted if and only if
    r ≥ (j + 1) / N.
    """
    rank = np.empty(len(x))
    rank[np.argsort(x, kind="stable")] = np.arange(len(x))
    part = ((rank + 1) / max(len(x), 1) - low) / (high - low)  # of the box, below which it is kept
    inside = np.clip(part, np.finfo(float).tiny, 1 - 2.0**-25)
    raw = 0.5 * (np.log(inside) - np.log1p(-inside))
    chance = ndtr((mean - raw) / deviation)
    return np.where(part <= 0, 1.0, np.where(part > 1, 0.0, chance))
