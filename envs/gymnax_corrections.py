"""Where environments of gymnax are not what they say: the right spaces, and data without a network.

Some leave the space of observations that they declare, or its dtype, and one asks the network for
its data when it is made. The environments themselves stay as they are.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnax
import jax.numpy as jnp
import numpy as np
from gymnax.environments import spaces
from gymnax.environments.bsuite.catch import Catch
from gymnax.environments.bsuite.memory_chain import MemoryChain
from gymnax.environments.bsuite.mnist import MNISTBandit
from gymnax.environments.misc.bernoulli_bandit import BernoulliBandit
from gymnax.environments.misc.gaussian_bandit import GaussianBandit
from gymnax.environments.misc.meta_maze import MetaMaze

MNIST = Path("/tmp/mnist")
"""Where gymnax keeps the data."""
SOURCE = "https://storage.googleapis.com/cvdf-datasets/mnist/"
"""Where gymnax would take them from."""
MNIST_FILES = tuple(
    f"{part}-{kind}-ubyte.gz"
    for part in ("train", "t10k")
    for kind in ("images-idx3", "labels-idx1")
)


def make(env_id: str, **arguments: Any) -> tuple[Any, Any]:
    """`gymnax.make`, without the network. Raises ValueError where data are missing."""
    missing = [name for name in MNIST_FILES if not (MNIST / name).is_file()]
    if env_id == "MNISTBandit-bsuite" and missing:
        raise ValueError(
            f"{env_id} needs the data of MNIST, but there is no {MNIST / missing[0]}: put "
            f"{', '.join(MNIST_FILES)} of {SOURCE} there"
        )
    return gymnax.make(env_id, **arguments)


def space_of(env: Any, name: str, params: Any) -> Any:
    """The space that the method `name` of an environment gives, corrected where it is wrong."""
    correct = CORRECTIONS.get(getattr(type(env), name, None))
    return getattr(env, name)(params) if correct is None else correct(env, params)


def observation_space(env: Any, params: Any) -> Any:
    """The space of what an environment shows."""
    return space_of(env, "observation_space", params)


def memory_chain(env: MemoryChain, params: Any) -> spaces.Box:
    """The share of the time that is left; the query; and bits, which are -1 or 1 if shown."""
    bits = np.ones(env.num_bits)
    low, high = np.array([-1, 0, *-bits]), np.array([1, env.num_bits, *bits])
    return box(low, high)


def gaussian_bandit(env: GaussianBandit, params: Any) -> spaces.Box:
    """A reward without bounds; the last action, one-hot; and the time, from -1 on or from 0 on."""
    return box([-np.inf, 0, 0, -1], [np.inf, 1, 1, params.max_steps_in_episode])


def bernoulli_bandit(env: BernoulliBandit, params: Any) -> spaces.Box:
    """A reward; the last action, one-hot; and the time, which may go on after `t_max`."""
    steps, first, last = params.max_steps_in_episode, params.min_lim, params.max_lim
    end = first + (last - first) * steps / params.t_max
    first, end = (jnp.where(params.normalize_time, x, y) for x, y in ((first, 0), (end, steps)))
    return box([0, 0, 0, jnp.minimum(first, end)], [1, 1, 1, jnp.maximum(first, end)])


def meta_maze(env: MetaMaze, params: Any) -> spaces.Box:
    """Walls in sight; the last action, one-hot; the last reward; and the time, as in bandits."""
    rewards = jnp.array([0, params.reward, params.punishment, params.reward + params.punishment])
    count = env.rf_size**2 + env.num_actions
    low, high = [0] * count, [1] * count
    ends = jnp.max(rewards), params.max_steps_in_episode
    return box([*low, jnp.min(rewards), -1], [*high, *ends])


def catch(env: Catch, params: Any) -> spaces.Box:
    """Zeros and ones, which gymnax declares as integers and shows as real numbers."""
    return spaces.Box(0.0, 1.0, (env.rows, env.columns), jnp.float32)


def mnist_bandit(env: MNISTBandit, params: Any) -> spaces.Box:
    """Grey values from 0 to 255 by 255, of which gymnax takes the upper half less 256."""
    return spaces.Box(-1.0, 1.0, env.image_shape, jnp.float32)


def box(low: Any, high: Any) -> spaces.Box:
    """A vector between two others."""
    low, high = (jnp.asarray(end, jnp.float32) for end in (low, high))
    return spaces.Box(low, high, low.shape, jnp.float32)


CORRECTIONS: dict[Any, Callable[[Any, Any], Any]] = {
    MemoryChain.observation_space: memory_chain,
    GaussianBandit.observation_space: gaussian_bandit,
    BernoulliBandit.observation_space: bernoulli_bandit,
    MetaMaze.observation_space: meta_maze,
    Catch.observation_space: catch,
    MNISTBandit.observation_space: mnist_bandit,
}
"""What to ask instead of a method of gymnax."""
