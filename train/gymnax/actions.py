"""Spaces of actions: which policy suits each, and which algorithms take it."""

from typing import Any

import numpy as np
from flax import linen as nn
from gymnax.environments import spaces

from jaxrl.networks.heads import BoxHead, DiscreteHead, JointHead, MultiDiscreteHead
from train.host.environments.environments import Task
from train.host.environments.joined import is_image

UNBOUNDED = 1e30
"""Bounds of actions from here on mean that there is none: the largest float32 is often written."""


def box(action: Any) -> dict[str, Any]:
    """Size and bounds of continuous actions, as networks are given them; infinite: none."""
    if len(action.shape) != 1:
        raise ValueError(f"actions have the shape {list(action.shape)}, expected vectors")
    low, high = (
        np.broadcast_to(np.asarray(x, float), action.shape) for x in (action.low, action.high)
    )
    low, high = np.where(low <= -UNBOUNDED, -np.inf, low), np.where(high >= UNBOUNDED, np.inf, high)
    if not np.any(np.isfinite([low, high])):
        return {"action_size": action.shape[0]}
    return {
        "action_size": action.shape[0],
        "low": tuple(low.tolist()),
        "high": tuple(high.tolist()),
    }


def head(action: Any) -> nn.Module:
    """What turns the output of a torso into a policy over a space of actions.

    Raises ValueError, which names the space, for one that is none of those of gymnax.
    """
    if isinstance(action, spaces.Dict):
        names = tuple(sorted(action.spaces))
        return JointHead(tuple(head(action.spaces[name]) for name in names), names)
    if isinstance(action, spaces.Tuple):
        return JointHead(tuple(head(part) for part in action.spaces))
    if (choices := num_choices(action)) is not None:
        return MultiDiscreteHead(choices)
    if isinstance(action, spaces.Discrete):
        return DiscreteHead(action.n)
    if isinstance(action, spaces.Box):
        return BoxHead(**box(action))
    raise ValueError(
        f"actions are a {type(action).__name__}, expected Discrete, Box, Tuple or Dict of gymnax"
    )


MOST_CHOICES = 10_000
"""Actions of all choices together that a network has an output for."""


def num_choices(action: Any) -> tuple[int, ...] | None:
    """How many actions each choice has of a vector of integers from 0 on; None: it is not one.

    It is a space with `nvec`, as MultiDiscrete of Gymnasium has, or a Box of integers. Raises
    ValueError for too many choices.
    """
    choices = getattr(action, "nvec", None)
    if isinstance(action, spaces.Box) and np.issubdtype(np.dtype(action.dtype), np.integer):
        choices = np.broadcast_to(np.asarray(action.high, float), action.shape) + 1
    if choices is None:
        return None
    if np.ndim(choices) != 1 or np.sum(choices) > MOST_CHOICES:
        raise ValueError(
            f"actions are {action}: expected a vector of {MOST_CHOICES:,} choices in all at most"
        )
    return tuple(int(n) for n in np.asarray(choices))


def has_parts(action: Any) -> bool:
    """Whether actions are more than one number of a Discrete or one vector of a Box."""
    return not isinstance(action, spaces.Discrete | spaces.Box) or num_choices(action) is not None


def family(task: Task) -> str:
    """Whose defaults suit an environment: those of classic control, MinAtar, continuous actions."""
    if isinstance(task.action, spaces.Box) and not has_parts(task.action):
        return "continuous"
    return "minatar" if is_image(task.observation) else "classic"


def algorithms_for(action: Any) -> str:
    """The algorithms that take a space of actions."""
    if has_parts(action):
        return "ppo or recurrent"
    return "ppo or sac" if isinstance(action, spaces.Box) else "ppo, dqn or pqn"
