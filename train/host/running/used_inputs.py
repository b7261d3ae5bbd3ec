"""Which inputs of a traced function its outputs depend on."""

from jax.extend.core import Jaxpr, JaxprEqn, Literal


def used_inputs(jaxpr: Jaxpr) -> list[bool]:
    """Whether the outputs of a traced function may depend on each of its inputs.

    Liveness, backwards through the equations; within loops every output counts as wanted.
    """
    live = {x for x in jaxpr.outvars if not isinstance(x, Literal)}
    for equation in reversed(jaxpr.eqns):
        if equation.effects or not live.isdisjoint(equation.outvars):
            used = zip(equation.invars, _used_operands(equation), strict=True)
            live |= {x for x, is_used in used if is_used and not isinstance(x, Literal)}
    return [x in live for x in jaxpr.invars]


def _used_operands(equation: JaxprEqn) -> list[bool]:
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
