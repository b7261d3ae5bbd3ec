"""Learning: pure functions on pytrees. Knows no environment; import each name from its own file.

`jaxrl.train` is the front door, for programs of your own.
"""

from typing import TYPE_CHECKING, Annotated, Any

if TYPE_CHECKING:
    from jaxrl.loop import Config, LoopMetrics
    from jaxrl.types import Agent, Environment


def train(
    env: "Environment", params: Any, agent: "Agent", config: "Config", steps: int, seed: int = 0
) -> tuple[Any, "LoopMetrics"]:
    """Trains an agent in an environment, in one compiled program.

    `steps` are those of all N environments together, rounded up to U whole updates. Returns the
    state of the agent and the metrics of each update, `[U]` and `[U, ...]`; the mean return of the
    episodes that ended in each is `metrics.finished["return"] / metrics.episodes`. `vmap` it over
    seeds for many runs side by side. `jaxrl.agent_checker` checks an agent of your own first, and
    `envs.checker` an environment.

    Raises ValueError for what is no environment, agent or `Config`, for a step of an environment
    that breaks its contract, and for sizes that are out of range or do not fit together; and
    FloatingPointError for rollouts or parameters that are not finite. Under `vmap` it cannot know
    of these: where a rollout was not finite, `metrics.origin` says so.
    """
    import jax

    # whoever needs a part of the library alone starts without these
    from jaxrl import checks, loop
    from jaxrl.numerics import nonfinite

    training = loop.make_loop(env, params, agent, config)
    most_steps = checks.INT32 * config.steps_per_update  # updates are counted in int32
    checks.value("steps", Annotated[float, checks.Range(least=1, most=most_steps)], steps)
    checks.value("seed", checks.Seed, seed)
    chunk = loop.make_chunk(training.update, int(-(-steps // config.steps_per_update)))
    state, metrics = jax.jit(lambda key: chunk(training.init(key)))(jax.random.key(seed))
    nonfinite.refuse(state.agent, metrics.origin)
    return state.agent, metrics
