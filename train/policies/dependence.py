"""What of an agent's state its games depend on: a policy keeps the parameters and nothing else."""

from typing import Any

import jax
from jax.extend.core import Jaxpr, JaxprEqn, Literal

from jaxrl.types import AgentState, below_params
from train.host.games import GamesEvaluation
from train.host.program import Program
from train.host.runs import with_evaluation


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
    evaluate = program.training(with_evaluation(config, **games)).evaluate
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


def used_inputs(jaxpr: Jaxpr) -> list[bool]:
    """For each input of a traced function, whether its outputs may depend on it.

    Liveness, backwards through the equations; within loops every output counts as wanted.
    """
    live = {x for x in jaxpr.outvars if not isinstance(x, Literal)}
    for equation in reversed(jaxpr.eqns):
        if equation.effects or not live.isdisjoint(equation.outvars):
            used = zip(equation.invars, _used_by(equation), strict=True)
            live |= {x for x, is_used in used if is_used and not isinstance(x, Literal)}
    return [x in live for x in jaxpr.invars]


def _used_by(equation: JaxprEqn) -> list[bool]:
    """`used_inputs` of one equation, which may hold functions of its own."""
    params = equation.params
    if equation.primitive.name == "cond":  # the index, then the operands of all branches
        branches = zip(*(used_inputs(x.jaxpr) for x in params["branches"]), strict=True)
        return [True, *(any(used) for used in branches)]
    if equation.primitive.name == "while":  # constants of the condition, those of the body, carry
        condition, body = (used_inputs(params[f"{x}_jaxpr"].jaxpr) for x in ("cond", "body"))
        first, second = params["cond_nconsts"], params["body_nconsts"]
        carry = zip(condition[first:], body[second:], strict=True)
        return [*condition[:first], *body[:second], *(any(used) for used in carry)]
    for name in ("jaxpr", "call_jaxpr"):  # of jit, scan, checkpoint, custom derivatives
        inner = getattr(params.get(name), "jaxpr", params.get(name))
        if isinstance(inner, Jaxpr) and len(inner.invars) == len(equation.invars):
            return used_inputs(inner)
    return [True] * len(equation.invars)
