"""How long a game for a score may last: every one ends, also where the environment ends none."""

from jaxrl.types import PyTree

LIMIT, MOST = 10_000, 100_000
"""Steps of such a game, at most: in an environment without a time limit, and with one."""
NEVER = 2**30
"""A time limit from which on there is none."""


def time_limit(env_params: PyTree) -> float | None:
    """`max_steps_in_episode` of an environment, also of one in wrappers; None: it has none."""
    while env_params is not None:
        if (limit := getattr(env_params, "max_steps_in_episode", None)) is not None:
            return limit
        env_params = getattr(env_params, "env", None)
    return None


def most_steps(own: float | None, chosen: int | None = None) -> int:
    """The steps of a game for a score, at most, where an environment has the time limit `own`.

    `chosen` is `PlayConfig.evaluation_steps`.
    """
    if own is None or not own < NEVER:
        return chosen or LIMIT
    return int(min(own, chosen or MOST))
