"""What an environment promises of itself and its parameters, and how a breach is told."""

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

MOST_STEPS = 2**31 - 1
"""Of an episode: they are counted in int32."""
OUTCOME_KINDS = ("last", "sum", "mean")
"""What an episode reports of an entry of `info["outcome"]`."""
EPISODE_NAMES = frozenset({"return", "length", "terminated", "truncated"})
REPORT_NAMES = frozenset({"seed", "games", "incomplete", "nonfinite", "steps"})
OUTCOME_RESERVED = EPISODE_NAMES | REPORT_NAMES
"""Names that the report of an episode, or of many, has for something else: a training refuses an
entry that would be reported under one of them, as it does two of one name."""

RETURNED = {
    "reset": ("observation", "state"),
    "step_env": ("observation", "state", "reward", "terminated", "info"),
    "step": ("observation", "state", "reward", "terminated", "truncated", "info"),
}
"""What each method of an environment returns."""
NO_ARRAY = re.compile(
    r"a value of type <class '(\S+)'>(?: at output component (\S+))?, which is not a valid JAX type"
)
"""What JAX says of something else than an array."""
PLACE = re.compile(r"\[(\d+)\](.*)")
"""Of a value in a tuple, and within that."""


class ContractError(AssertionError):
    """An environment that breaks the contract; the message says how, in one line."""


def require(condition: bool, message: str) -> None:
    """Raises ContractError with the message unless the condition holds."""
    if not condition:
        raise ContractError(message)


def description(x: Any) -> str:
    """The dtype and shape of an array, or the kind of anything else."""
    if isinstance(x, Mapping):
        return f"a dict of {', '.join(map(str, x))}"
    if isinstance(x, tuple | list):
        return f"a {type(x).__name__} of {len(x)}"
    if isinstance(x, bool | int | float):
        x = jnp.asarray(x)
    return f"{x.dtype}{list(x.shape)}" if hasattr(x, "dtype") else f"a {type(x).__name__}"


def shapes_of(method: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """The shapes of what a method returns. Raises ContractError where that is no array, as a text.

    What else is raised passes through, with the line of the environment.
    """
    try:
        return jax.eval_shape(function, *arguments)
    except TypeError as error:
        complaint = NO_ARRAY.search(str(error))
        if complaint is None:
            raise
        kind, component = complaint.groups(default="")
        names, place = RETURNED[method], PLACE.fullmatch(component)
        if place and int(place[1]) < len(names):
            component = f" as {names[int(place[1])]}{place[2]}"
        raise ContractError(f"{method} returns a {kind}{component}; expected arrays") from error


def check_hash(env: Any) -> None:
    """Raises ContractError unless an environment can be hashed: `step` is jitted with it static."""
    try:
        hash(env)
    except TypeError as error:
        raise ContractError(str(error)) from error


def check_params(params: Any) -> None:
    """Raises ContractError unless all leaves of the parameters are numbers.

    The time limit, if they have one, must be one of steps (`time_limit`).
    """
    for path, x in jax.tree_util.tree_leaves_with_path(params):
        if not (isinstance(x, jax.Array | np.ndarray | np.generic | bool | int | float)):
            name = jax.tree_util.keystr(path)
            raise ContractError(
                f"params{name} is a {type(x).__name__}; expected numbers in a flax.struct.dataclass"
                f"{', others with struct.field(pytree_node=False)' if name else ''}"
            )
    time_limit(params)


def fields_of(params: Any) -> dict[str, Any]:
    """The fields of parameters by name; none of what is no dataclass or named tuple."""
    return params._asdict() if hasattr(params, "_asdict") else dict(getattr(params, "__dict__", {}))


def with_fields(params: Any, **values: Any) -> Any:
    """Parameters with other values in some fields."""
    replace = getattr(params, "_replace", None) or params.replace
    return replace(**values)


def time_limit(params: Any) -> int | None:
    """The steps after which an episode is truncated; None: never, or not known.

    Raises ContractError unless it is infinite, or a number of steps from 1 to `MOST_STEPS`.
    """
    limit = getattr(params, "max_steps_in_episode", None)
    if limit is None:
        return None
    number = np.asarray(limit)
    is_number = number.shape == () and number.dtype.kind in "iuf"
    if is_number and number == np.inf:
        return None
    require(
        is_number and bool(1 <= number <= MOST_STEPS),
        f"max_steps_in_episode is {limit}; expected steps from 1 to {MOST_STEPS:,}, or inf",
    )
    return math.ceil(number)


def check_same_structure(what: str, after: Any, before: Any) -> None:
    """Both trees have the same leaves, shapes and dtypes; scan and auto-reset need it."""
    same = jax.tree.structure(after) == jax.tree.structure(before)
    require(same, f"{what} has another structure after step than after reset")
    for (path, a), b in zip(
        jax.tree_util.tree_leaves_with_path(after), jax.tree.leaves(before), strict=True
    ):
        name, new, old = f"{what}{jax.tree_util.keystr(path)}", description(a), description(b)
        require(new == old, f"{name} is {new} after step, but {old} after reset")


def check_outcome(outcome: Any, kinds: Any) -> None:
    """`info["outcome"]` is a dict of scalars, and `outcome_kinds` names some of them."""
    is_dict = isinstance(outcome, Mapping)
    require(is_dict, f"info['outcome'] is {description(outcome)}; expected a dict of scalars")
    for name, value in outcome.items():
        require(jnp.shape(value) == (), f"info['outcome'][{name!r}] is not a scalar")
    is_dict = isinstance(kinds, Mapping)
    require(is_dict, f"outcome_kinds is {description(kinds)}; expected a dict of names")
    for name, kind in kinds.items():
        require(
            kind in OUTCOME_KINDS,
            f"outcome_kinds[{name!r}] is {kind!r}; expected one of {', '.join(OUTCOME_KINDS)}",
        )
        require(
            name in outcome,
            f"outcome_kinds has {name!r}, which info['outcome'] has not; it has "
            f"{', '.join(outcome) or 'nothing'}",
        )
    check_outcome_names(outcome, kinds)


def check_components(components: Any) -> None:
    """`info["components"]` is the reward in parts, real numbers `[K]`."""
    kinds = (jnp.bool_, jnp.integer, jnp.floating)
    is_real = hasattr(components, "dtype") and any(
        jnp.issubdtype(components.dtype, kind) for kind in kinds
    )
    require(
        is_real and len(jnp.shape(components)) == 1,
        f"info['components'] is {description(components)}; expected the parts of the reward, real "
        "numbers [K]",
    )


def check_outcome_names(outcome: Mapping[str, Any], kinds: Mapping[str, str]) -> None:
    """No entry is reported under a name that means something else, or that another one has."""
    report_name = lambda name, kind: name if kind == "last" else f"{name}_{kind}"
    reported = [report_name(name, kinds.get(name, "last")) for name in outcome]
    for name, report in zip(outcome, reported, strict=True):
        require(
            report not in OUTCOME_RESERVED and reported.count(report) == 1,
            f"info['outcome'] has {name!r}, reported as {report!r}, a name that is taken: choose "
            "another",
        )
