"""PureJaxRL, from a checkout of its own, on the environments of gymnax 1.0.

It was written for an older gymnax, whose step returns one `done`, and imports packages that these
benchmarks do not use. Here its files are loaded as they are, and what they import is made to look
as they expect. Nothing of it is part of this repository.
"""

import hashlib
import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import gymnax
import jax
import jax.numpy as jnp
from flax import struct

from jaxrl.losses.distributions.discrete import Categorical
from jaxrl.numerics import linalg

UNUSED = ("brax", "brax.envs", "brax.envs.wrappers", "brax.envs.wrappers.training", "navix")
"""Imported for environments that no case uses; stand-ins unless installed."""
FILES = ("ppo.py", "dqn.py", "wrappers.py")


class OneDone:
    """An environment of gymnax 1.0 whose step returns five values, its `done` for both endings.

    Of `info` only what the environment itself reports is left, as it was in older versions.
    """

    def __init__(self, env: Any):
        self._env = env

    def __getattr__(self, name: str) -> Any:
        return getattr(self._env, name)

    def step(self, key: jax.Array, state: Any, action: Any, params: Any = None):
        obs, state, reward, terminated, truncated, info = self._env.step(key, state, action, params)
        added = ("terminated", "truncated", "final_observation")
        info = {name: value for name, value in info.items() if name not in added}
        return obs, state, reward, terminated | truncated, info


class DistraxStandIn(SimpleNamespace):
    """The part of distrax that PureJaxRL's PPO uses, where distrax is not installed."""

    @staticmethod
    def Categorical(logits: jax.Array) -> "DistraxStandIn":
        policy = Categorical(logits)
        sample = lambda seed: policy.sample(seed)
        return DistraxStandIn(sample=sample, log_prob=policy.log_prob, entropy=policy.entropy)


def load(checkout: Path) -> tuple[ModuleType, ModuleType | None]:
    """The modules `ppo` and `dqn` of a checkout; no `dqn` where flashbax is not installed.

    Raises ValueError where the path holds no such files.
    """
    folder = checkout / "purejaxrl"
    if missing := [name for name in FILES if not (folder / name).is_file()]:
        raise ValueError(f"{folder} has no {', '.join(missing)}: give the path of a checkout")
    if not hasattr(jax, "tree_map"):
        jax.tree_map = jax.tree.map  # pyright: ignore[reportAttributeAccessIssue]
    with stand_ins(folder):
        ppo = module(folder, "ppo")
        # The same weights; those of flax for many seeds may hang on two cores: see
        # `jaxrl.numerics.linalg`.
        ppo.orthogonal = linalg.orthogonal_start  # pyright: ignore[reportAttributeAccessIssue]
        if not is_installed("flashbax"):
            return ppo, None
        dqn = module(folder, "dqn")
        dqn.LogWrapper = with_ended_episodes(dqn.LogWrapper)  # pyright: ignore[reportAttributeAccessIssue]
        return ppo, dqn


@struct.dataclass
class EndedEpisodes:
    """Episodes that ended in one step, and the sum of their returns."""

    episodes: jax.Array  # [] or [N]
    returns: jax.Array  # [] or [N]

    def mean(self) -> "EndedEpisodes":
        """What PureJaxRL's DQN calls on the returns of its environments: here their sum."""
        return jax.tree.map(jnp.sum, self)


def with_ended_episodes(log_wrapper: type) -> type:
    """Its LogWrapper, with the returns of the episodes that end, which are counted once each.

    The latest return of every environment, which its DQN reports, counts a long episode for as many
    steps as the next one lasts: short ones weigh less than in the mean over episodes.
    """

    class Log(log_wrapper):
        def step(self, *arguments: Any):
            *others, info = super().step(*arguments)
            ended = info["returned_episode"]
            returns = jnp.where(ended, info["returned_episode_returns"], 0.0)
            return *others, info | {"returned_episode_returns": EndedEpisodes(ended, returns)}

    return Log


@contextmanager
def stand_ins(folder: Path) -> Iterator[None]:
    """While its files are imported: their neighbours, one `done`, and what is not installed."""
    before = dict(sys.modules)
    for name in (*UNUSED, "wandb"):
        if not is_installed(name):
            sys.modules[name] = Anything(name)
    if not is_installed("distrax"):
        sys.modules["distrax"] = DistraxStandIn()  # pyright: ignore[reportArgumentType]
    try:
        sys.modules["wrappers"] = wrappers = module(folder, "wrappers")
        old_gymnax = ModuleType("gymnax")
        old_gymnax.make = lambda name: make_one_done(name)  # pyright: ignore[reportAttributeAccessIssue]
        sys.modules["gymnax"] = old_gymnax
        sys.modules["gymnax.wrappers.purerl"] = wrappers
        yield
    finally:
        for name in (*UNUSED, "wandb", "distrax", "wrappers", "gymnax", "gymnax.wrappers.purerl"):
            sys.modules.pop(name, None)
            if name in before:
                sys.modules[name] = before[name]


class Anything(ModuleType):
    """A module in which every name is found."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return None


def make_one_done(name: str) -> tuple[OneDone, Any]:
    env, params = gymnax.make(name)
    return OneDone(env), params


def module(folder: Path, name: str) -> ModuleType:
    """A file of the checkout as a module, which is not kept in `sys.modules`."""
    spec = importlib.util.spec_from_file_location(f"purejaxrl_{name}", folder / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = loaded  # dataclasses look their module up
    spec.loader.exec_module(loaded)
    return loaded


def is_installed(package: str) -> bool:
    try:
        import_module(package)
    except ImportError:
        return False
    return True


def digest(checkout: Path) -> str:
    """Which version was measured, also where the checkout has no history: a hash of its files."""
    text = b"".join((checkout / "purejaxrl" / name).read_bytes() for name in FILES)
    return hashlib.sha256(text).hexdigest()[:12]
