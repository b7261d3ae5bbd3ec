"""A trained policy that acts, for programs of one's own: NumPy arrays in, NumPy arrays out.

    import train

    policy = train.load("snake-10x10")
    action, memory = policy.act(obs, memory)

Axis letters: B batch.
"""

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jaxrl.numerics.precision import in_float32
from jaxrl.types import PyTree, fresh_memory, where_tree
from train.host import abilities
from train.host.errors import UsageError, in_one_line
from train.host.files import policy_files
from train.host.files.run_directory import RunDirectory
from train.host.inputs import InputSpec
from train.host.player import Player
from train.host.program import Run
from train.host.running import saved_policies
from train.host.running.used_inputs import used_inputs
from train.policies import dependence, export


class Policy:
    """An agent that acts as it was trained to, and does not learn.

    Normalisation, and all else between an observation and a decision, is inside.
    """

    def __init__(self, name: str, run: Run, player: Player, member: int, metadata: dict[str, Any]):
        self.name, self.metadata = name, metadata
        """What is known of its training, as its file has it: "entry_point", the program, "preset",
        "updates" and "scores", None where there are none."""
        self._run, self._agent_state = run, run.agents[member]
        self._player = player
        self._observation = InputSpec("observation", self._player.observation())
        self._calls = 0

    @property
    def env(self) -> Any:
        """The environment that it is evaluated in, on its own interface, `reset` and `step`."""
        return self._player.env

    @property
    def params(self) -> Any:
        """The parameters of the environment, as `reset` and `step` take them."""
        return self._player.env_params

    @in_float32
    def memory(self, batch: int | None = None) -> PyTree:
        """What it remembers at the start of an episode, or of B of them; `()`: nothing, ever."""
        return start_memory(self._player, batch)

    @in_float32
    def act(
        self,
        obs: Any,
        memory: PyTree | None = None,
        begins: Any = None,
        key: int | jax.Array | None = None,
    ) -> tuple[Any, PyTree]:
        """`(action, memory)`: what it does, as the environment takes it, and remembers.

        `obs` is one observation or a batch of them, which its shape tells. `memory` is the one that
        the call before returned; None begins an episode. In a batch, `begins` bool `[B]` says which
        observations are the first of an episode: there the memory is forgotten.

        It acts greedily. With `key`, an integer or a key of JAX, its actions are drawn as while it
        learned; equal keys draw equal actions. What it explores with may remember more, so a memory
        goes on with a key or without one, as it began.

        Raises ValueError, in one line, for what does not fit the environment; UsageError for a key
        where a file lacks what the exploration reads.
        """
        obs, batch = self._observation.arrays(obs)
        first = self._beginnings(begins, batch)
        words = self._next_words() if key is None else words_of(key)
        player = self._player if key is None else self._sampling_player
        if key is not None and not jax.tree.leaves(memory):  # it may explore with more
            memory = None
        memory = self._episode_memory(memory, batch, player)
        decider = self._greedy_decider if key is None else self._sampling_decider
        decide = decider(batch is not None)
        return jax.device_get(decide(self._agent_state, memory, first, obs, words))

    def _episode_memory(self, memory: PyTree | None, batch: int | None, player: Player) -> PyTree:
        """A memory for so many episodes. Raises ValueError for another one."""
        if memory is None:
            return start_memory(player, batch)
        template = jax.eval_shape(player.agent.memory)
        memory_arrays, count = InputSpec("memory", template, is_finite=False).arrays(memory)
        if jax.tree.leaves(memory_arrays) and count != batch:
            sizes = ["one" if n is None else f"a batch of {n}" for n in (count, batch)]
            raise ValueError(f"memory is of {sizes[0]}; expected that of {sizes[1]}, as obs is")
        return memory_arrays

    def _beginnings(self, begins: Any, batch: int | None) -> np.ndarray:
        """`begins` as bool, or bool `[B]`. Raises ValueError for another shape or dtype."""
        shape = () if batch is None else (batch,)
        first = np.zeros(shape, bool) if begins is None else np.asarray(begins)
        if first.shape != shape or first.dtype != bool:
            raise ValueError(
                f"begins is {first.dtype} of shape {first.shape}; expected bool of {shape}"
            )
        return first

    def _next_words(self) -> np.ndarray:
        """The words of a key: always the same, unless the agent draws even in an evaluation."""
        if not self._is_stochastic:
            return self._words
        self._calls += 1
        return words_of(jax.random.fold_in(jax.random.key(0), self._calls))

    @cached_property
    def _words(self) -> np.ndarray:
        return words_of(0)

    @cached_property
    def _is_stochastic(self) -> bool:
        return is_stochastic(self._player, self._agent_state)

    @cached_property
    def _greedy_decider(self) -> Callable[[bool], Callable]:
        return deciders(self._player)

    @cached_property
    def _sampling_decider(self) -> Callable[[bool], Callable]:
        return deciders(self._sampling_player)

    @cached_property
    def _sampling_player(self) -> Player:
        """Raises UsageError for a policy without what its exploration needs."""
        if self._run.state is None:  # only its parameters are known
            advice = "act without a key, or load its run"
            dependence.refuse_sampling(self._run, self._agent_state, self.name, advice)
        return abilities.player_of(self._run, greedy=False)


@in_float32
def load(source: str | Path, best: bool = False, seed: int | None = None) -> Policy:
    """What `train.load` returns."""
    run = saved_policies.load_source(source, best)
    player = abilities.player_of(run)
    is_file = run.state is None and not best
    if is_file and seed not in (None, *run.seeds):
        raise UsageError(f"{source} holds one policy, of seed {run.seeds[0]}: leave seed out")
    seed = saved_policies.one_seed(run, seed, "seed")
    if is_file:
        content = policy_files.read_metadata(policy_files.file_of(source))
        metadata = {name: content[name] for name in export.FACTS}
    else:
        metadata = export.facts(run, RunDirectory(Path(source)), seed, best)
    return Policy(str(source), run, player, run.seeds.index(seed), metadata)


def start_memory(player: Player, batch: int | None) -> PyTree:
    """What a player remembers at the start of an episode, or of so many, as arrays of NumPy."""
    agent = player.agent
    return jax.device_get(agent.memory() if batch is None else fresh_memory(agent, batch))


def deciders(player: Player) -> Callable[[bool], Callable]:
    """`is_batch -> decide`, compiled when it is first called.

    `decide(agent_state, memory, begins, obs, words)` returns the action and the memory; the words
    are those of a key.
    """
    agent = player.agent

    def decide(state: Any, memory: PyTree, begins: jax.Array, obs: PyTree, key: jax.Array):
        memory = where_tree(begins, agent.memory(), memory)
        action, memory, _ = agent.act(player.acting_state(state), memory, obs, key)
        return action, memory

    def decide_alone(state: Any, memory: PyTree, begins: jax.Array, obs: PyTree, words: jax.Array):
        return decide(state, memory, begins, obs, jax.random.wrap_key_data(words))

    def decide_all(state: Any, memory: PyTree, begins: jax.Array, obs: PyTree, words: jax.Array):
        keys = jax.random.split(jax.random.wrap_key_data(words), begins.shape[0])
        return jax.vmap(decide, (None, 0, 0, 0, 0))(state, memory, begins, obs, keys)

    alone, together = jax.jit(decide_alone), jax.jit(decide_all)
    return lambda is_batch: together if is_batch else alone


def is_stochastic(player: Player, agent_state: Any) -> bool:
    """Whether the actions of a player depend on its key: whether it explores, or is sampled."""
    state = jax.eval_shape(player.acting_state, agent_state)
    arguments = state, jax.eval_shape(player.agent.memory), player.observation()
    act = lambda key, state, memory, obs: player.agent.act(state, memory, obs, key)[:2]
    return used_inputs(jax.make_jaxpr(act)(jax.random.key(0), *arguments).jaxpr)[0]


def words_of(key: Any) -> np.ndarray:
    """The words of a key of JAX, of either kind, or of an integer's.

    Raises ValueError for anything else.
    """
    if isinstance(key, int | np.integer) and not isinstance(key, bool):
        key = jax.random.key(np.uint32(int(key) % 2**32))
    default = jax.random.key(0)
    words = jax.random.key_data(default)
    is_words = isinstance(key, jax.Array) and (key.shape, key.dtype) == (words.shape, words.dtype)
    if is_words:
        return np.asarray(key)
    if not isinstance(key, jax.Array) or (key.shape, key.dtype) != ((), default.dtype):
        what = in_one_line(Exception(key))[:80]
        kind = jax.random.key_impl(default)
        raise ValueError(f"key is {what}; expected an integer or a key of JAX, one of {kind}")
    return np.asarray(jax.random.key_data(key))
