"""The contracts: what an environment, a transition and an agent are.

Axis letters used everywhere: T time, N environments, B batch, L window, A actions, D features.
"""

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp

PARTS = {"environment": ("reset", "step"), "agent": ("init", "memory", "act", "update")}
"""The functions that each has."""
SOURCES = {"environment": "an instance of its class", "agent": "what `make` of its module returns"}

PyTree = Any
Observation = PyTree
Action = PyTree
Memory = PyTree
AgentState = PyTree
Metrics = dict[str, jax.Array]


class Environment(Protocol):
    """An environment with the step signature of gymnax 1.0, for one instance; `vmap` makes many.

    `step` resets automatically: where `terminated | truncated`, the returned observation and state
    are the first of the next episode, and `info["final_observation"]` is the true successor. It is
    there on every step, so that the structure of `info` never changes. `info["outcome"]` (optional)
    is a flat dict of scalars that describe the episode so far (a score, say); the loop averages
    them over finished episodes. Those that describe a step alone become sums or means over the
    episode where `outcome_kinds` (optional) says so, `{"food": "sum"}`: see `jaxrl.outcomes`.
    `info["components"]` (optional) is the reward in K parts, `[K]`,
    which add up to the reward.
    """

    def reset(self, key: jax.Array, params: PyTree) -> tuple[Observation, PyTree]: ...

    def step(
        self, key: jax.Array, state: PyTree, action: Action, params: PyTree
    ) -> tuple[Observation, PyTree, jax.Array, jax.Array, jax.Array, dict[str, Any]]: ...


class Transition(NamedTuple):
    """One step of one environment; `[T, N]` from a rollout, `[L, B]` from replay.

    The memory is not in it. An agent that learns through its memory puts the one it was given into
    its extras.
    """

    obs: Observation
    action: Action
    reward: jax.Array  # float32; with a last axis K where the environment has components
    next_obs: Observation  # the true successor, never the observation after a reset
    terminated: jax.Array  # bool; a terminal state: the future is worth nothing
    truncated: jax.Array  # bool; a time limit: the future is worth V(next_obs)
    extras: Any  # what `Agent.act` returned for `Agent.update`: log-probabilities, values

    @property
    def total_reward(self) -> jax.Array:
        """The reward in one number a step, for agents that learn one value: `[T, N]`."""
        has_components = self.reward.ndim > self.terminated.ndim
        return jnp.sum(self.reward, axis=-1) if has_components else self.reward


def nothing_to_explain(state: AgentState, memory: Memory, obs: Observation) -> Metrics:
    """`Agent.explain` of an agent that has nothing to show."""
    del state, memory, obs
    return {}


class Agent(NamedTuple):
    """An algorithm: four pure functions, the first three for one environment, and one for people.

    Off-policy agents keep their replay in their state, so one loop serves on- and off-policy
    agents. Everything that `act` reads of the state is below fields named `params`, at any depth: a
    policy keeps these and nothing else. Where `act` explores by other state (a counter for epsilon,
    say), its policy can only act greedily. `update` keeps structure, shapes and dtypes of the
    state, `act` those of the memory; `jaxrl.agent_checker` says where they do not.
    """

    init: Callable[[jax.Array, Observation], AgentState]
    """`(key, obs) -> state`: parameters, optimizer state, replay; `obs` is one observation."""
    memory: Callable[[], Memory]
    """`() -> memory`: makes the initial memory, what one environment's `act` remembers at the start
    of an episode, such as a recurrent state. The loop keeps it between steps and takes a fresh one
    where an episode ended; `()`: nothing is remembered."""
    act: Callable[[AgentState, Memory, Observation, jax.Array], tuple[Action, Memory, Any]]
    """`(state, memory, obs, key) -> (action, memory, extras)`, for one environment."""
    update: Callable[[AgentState, Transition, jax.Array], tuple[AgentState, Metrics]]
    """`(state, rollout [T, N], key) -> (state, metrics)`: learn from the newest rollout."""
    explain: Callable[[AgentState, Memory, Observation], Metrics] = nothing_to_explain
    """`(state, memory, obs) -> what the agent makes of one observation`, to be looked at: "value"
    `[]`, or `[K]` of the components of a reward; "q" `[A]`, values of actions; and of a policy what
    `Distribution.describe` returns. `act` is given the same three."""
    blocks: int | None = None
    """Groups of environments that `update` draws within (`jaxrl.blocks`); the loop must have as
    many. None: it draws nothing, or its replay says so."""


class RunState(Protocol):
    """What the commands need of the state of a run: a NamedTuple with these two fields.

    A run resumed from it continues bit for bit. `loop.TrainState` is one; programs without an
    environment define their own.
    """

    @property
    def agent(self) -> AgentState: ...

    @property
    def key(self) -> jax.Array: ...

    def _replace(self, **changes: Any) -> Any: ...


def below_params(path: tuple) -> bool:
    """Whether a leaf, by its path in `jax.tree_util`, is below a field named `params`."""
    return any(getattr(key, "name", None) == "params" for key in path)


def parameters(agent_state: AgentState) -> list[Any]:
    """The leaves below a field or key `params` of the state of an agent; all leaves without one.

    It avoids checking the whole of a replay where numbers are to be finite.
    """
    leaves = jax.tree_util.tree_leaves_with_path(agent_state)
    is_below = lambda path: any(getattr(key, "key", None) == "params" for key in path)
    named = [x for path, x in leaves if below_params(path) or is_below(path)]
    return named or [x for _, x in leaves]


def where_tree(condition: jax.Array, on_true: PyTree, on_false: PyTree) -> PyTree:
    """`jnp.where` leaf by leaf, `condition [N]` broadcast over each leaf's trailing axes."""

    def choose(a, b):
        shape = condition.shape + (1,) * (max(a.ndim, b.ndim) - condition.ndim)
        return jnp.where(condition.reshape(shape), a, b)

    return jax.tree.map(choose, on_true, on_false)


def fresh_memory(agent: Agent, num_envs: int) -> PyTree:
    """The initial memory of `num_envs` episodes: `[N, ...]`."""
    return jax.tree.map(lambda x: jnp.broadcast_to(x, (num_envs, *jnp.shape(x))), agent.memory())


def check_parts(env: Any, agent: Any) -> None:
    """Raises ValueError unless both have the functions of their contracts."""
    for (what, names), x in zip(PARTS.items(), (env, agent), strict=True):
        check_functions(what, x, names, SOURCES[what])


def as_agent(agent: Any) -> Agent:
    """The functions of an agent, with those that it may leave out as an `Agent` has them.

    Raises ValueError unless it has the others.
    """
    check_functions("agent", agent, PARTS["agent"], SOURCES["agent"])
    return Agent(**{x: getattr(agent, x) for x in Agent._fields if hasattr(agent, x)})


def check_network(
    what: str,
    network: Any,
    inputs: tuple[str, ...],
    source: str,
    names: tuple[str, ...] = ("init", "apply"),
) -> None:
    """Raises ValueError unless a network has functions of these names, and takes the inputs.

    The inputs are those of a Flax module; of other objects they are not known. `source` is where
    a fitting one is from.
    """
    check_functions(what, network, names, source)
    if not callable(network):
        return
    signature = inspect.signature(network)
    try:
        signature.bind(*inputs)
    except TypeError:
        raise ValueError(
            f"the {what} {kind_of(network)} takes ({', '.join(signature.parameters)}), expected "
            f"({', '.join(inputs)}): give {source}"
        ) from None


def check_functions(what: str, x: Any, names: tuple[str, ...], source: str) -> None:
    """Raises ValueError unless `x` is an object with functions of these names."""
    kind = f"the class {x.__name__}" if isinstance(x, type) else f"a {kind_of(x)}"
    if isinstance(x, type) or not all(callable(getattr(x, name, None)) for name in names):
        raise ValueError(
            f"the {what} is {kind}, expected an object with {', '.join(names)}: give {source}"
        )


def kind_of(x: Any) -> str:
    """The name of the class of an object, and where it is from."""
    kind = type(x)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def act_parts(output: Any, memory: Memory) -> tuple[Action, Memory, PyTree]:
    """The action, memory and extras that `act` returned, which was given `memory`.

    Raises ValueError for anything else than three, and for another kind of memory.
    """
    if not has_parts(output, 3):
        raise ValueError(f"act returns {describe(output)}; expected (action, memory, extras)")
    check_same("memory", "act", output[1], memory)
    return output


def step_parts(output: Any, obs: Observation, env_state: PyTree) -> tuple[Any, ...]:
    """The six parts that `step` of N environments returned, which showed `obs` and had that state.

    Raises ValueError for anything else: another kind of observation or state, a reward with axes,
    flags that are not bool, and an `info` without the true successor.
    """
    if not has_parts(output, 6):
        raise ValueError(
            f"the environment's step returns {describe(output)}; expected (observation, state, "
            "reward, terminated, truncated, info)"
        )
    next_obs, next_state, reward, *flags, info = output
    for name, flag in zip(("terminated", "truncated"), flags, strict=True):
        _check_number_of_step(name, flag, is_flag=True)
    _check_number_of_step("reward", reward, is_flag=False)
    check_same("observation", "the environment's step", next_obs, obs)
    check_same("environment's state", "its step", next_state, env_state)
    if not isinstance(info, dict) or "final_observation" not in info:
        raise ValueError("the environment's info has no final_observation, the true successor")
    check_same("final_observation", "the environment's step", info["final_observation"], obs)
    return output


def _check_number_of_step(name: str, x: Any, is_flag: bool) -> None:
    """Raises ValueError unless a part `[N]` of a step is a number of each, or a bool."""
    shape = getattr(x, "shape", None)
    if shape is not None and len(shape) == 1 and (x.dtype == bool or not is_flag):
        return
    expected = "a bool" if is_flag else "a number"
    returned = describe(x) if shape is None else f"{x.dtype}{list(shape[1:])}"
    raise ValueError(f"the environment's step returns {returned} as {name}; expected {expected}")


def update_parts(output: Any, state: AgentState) -> tuple[AgentState, Metrics]:
    """The state and metrics that `update` returned, which was given `state`.

    Raises ValueError for anything else than two, for another kind of state, and for metrics that
    are no dict.
    """
    is_state = hasattr(output, "_fields") and type(output) is type(state)  # a tuple, perhaps of two
    if is_state or not has_parts(output, 2):
        raise ValueError(f"update returns {describe(output)}; expected (state, metrics)")
    check_same("state", "update", output[0], state)
    if not isinstance(output[1], dict):
        raise ValueError(
            f"the metrics that update returns are {describe(output[1])}; expected a dict of arrays"
        )
    return output


def check_metrics(metrics: Metrics) -> None:
    """Raises ValueError for a metric that is no array, or its shape: a record has numbers."""
    for name, value in metrics.items():
        if not hasattr(value, "shape"):
            raise ValueError(
                f"the metric {name!r} that update returns is {describe(value)}; expected an array"
            )


def has_parts(value: Any, count: int) -> bool:
    """Whether a value can be taken apart into so many."""
    return isinstance(value, tuple | list) and len(value) == count


def check_same(what: str, function: str, actual: PyTree, expected: PyTree) -> None:
    """Raises ValueError unless trees have the same leaves, shapes and dtypes: a scan needs that."""
    if jax.tree.structure(actual) != jax.tree.structure(expected):
        raise ValueError(f"{function} changes the structure of the {what}; expected the same")
    leaves = jax.tree_util.tree_leaves_with_path(actual)
    for (path, a), b in zip(leaves, jax.tree.leaves(expected), strict=True):
        after, before = (f"{jnp.result_type(x)}{list(jnp.shape(x))}" for x in (a, b))
        if after != before:
            name = f"{what}{jax.tree_util.keystr(path)}"
            raise ValueError(f"{name} is {after} after {function}, but {before} before")


def describe(value: Any) -> str:
    """A value in words: its type, of an array its shape, and of a tuple how many parts it has."""
    if hasattr(value, "dtype"):
        return f"{value.dtype}{list(value.shape)}"
    kind = type(value).__name__
    return f"{len(value)} values" if type(value) is tuple else f"a {kind}"
