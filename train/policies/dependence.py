"""What of an agent's state its games depend on: a policy keeps the parameters and nothing else."""

from typing import Any

import jax

from jaxrl.types import AgentState, below_params
from train.host.errors import UsageError
from train.host.program import Program, Run
from train.host.running.saved_runs import with_run_fields
from train.host.running.used_inputs import used_inputs
from train.host.scoring.games import GamesEvaluation


def read_outside_params(
    program: Program, config: Any, agent_state: AgentState, greedy: bool
) -> list[str]:
    """The names of what the games of an agent depend on, but a policy would not keep.

    Found by tracing, without playing. Empty for programs that do not evaluate by
    `games.of_player` or `games.of_episodes`: what their agents read is not known.
    """
    games = {"evaluation_games": 1, "evaluation_greedy": greedy}
    if not all(hasattr(config.run, name) for name in games):
        return []
    evaluate = program.training(with_run_fields(config, **games)).evaluate
    if not isinstance(evaluate, GamesEvaluation):
        return []
    leaves, structure = jax.tree_util.tree_flatten_with_path(agent_state)
    of_leaves = lambda *x: evaluate.match(structure.unflatten(x), jax.random.key(0))
    jaxpr = jax.make_jaxpr(of_leaves)(*(x for _, x in leaves)).jaxpr
    return [
        jax.tree_util.keystr(path, simple=True, separator=".")
        for (path, _), is_read in zip(leaves, used_inputs(jaxpr), strict=True)
        if is_read and not below_params(path)
    ]


def refuse_sampling(run: Run, agent_state: AgentState, source: str, advice: str) -> None:
    """Raises UsageError if a policy, drawing its actions, needs more than its parameters."""
    if names := read_outside_params(run.program, run.config, agent_state, greedy=False):
        raise UsageError(
            f"{source} has no exploration, which needs {', '.join(names)} of the agent's state: "
            f"{advice}"
        )
