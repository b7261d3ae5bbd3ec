"""What a compiled program exchanges between devices, and what its products take to compute.

Both by walking a program with the number of rounds of its loops, which neither `cost_analysis` nor
a look at the largest collective knows of.
"""

import math
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax.extend.core

KINDS = "all-reduce|all-gather|all-to-all|reduce-scatter|collective-permute|collective-broadcast"
HEAD = re.compile(r"(ENTRY )?%?([\w.\-]+) \(.*\{$")
EXCHANGE = re.compile(rf" = (.*?) (ragged-all-to-all|{KINDS})(?:-start)?\(")
ARRAY = re.compile(r"\b(pred|[a-z]+?)(\d*)\[([\d,]*)\]")
LOOP = re.compile(r" while\(.*condition=%?([\w.\-]+), body=%?([\w.\-]+)")
ROUNDS = re.compile(r'known_trip_count":\{"n":"(\d+)"')
CALL = re.compile(r" call\(.*to_apply=%?([\w.\-]+)")
BRANCHES = re.compile(
    r"(?:branch_computations=\{([^}]*)\}|(?:true|false)_computation=%?([\w.\-]+))"
)


class Exchange(NamedTuple):
    """A collective operation of a program."""

    kind: str
    arrays: int  # bytes of all its results that have axes
    scalars: int  # bytes of those that have none
    times: int  # how often the program does it
    is_open: bool  # in a loop whose rounds the data decides; counted as if it went round once


def exchanges(text: str) -> list[Exchange]:
    """The collective operations of a compiled program, as its text tells them.

    All branches of a conditional are counted. Raises ValueError for a text without an entry.
    """
    bodies, entry = computations(text)
    if not entry:
        raise ValueError("the text of a compiled program names its ENTRY; this one does not")
    return list(_walk(bodies, entry, 1, False))


def computations(text: str) -> tuple[dict[str, list[str]], str]:
    """`({name: lines}, name of the entry)`."""
    bodies: dict[str, list[str]] = {}
    entry, lines = "", []
    for line in text.splitlines():
        if head := HEAD.match(line):
            lines = bodies.setdefault(head[2], [])
            entry = head[2] if head[1] else entry
        else:
            lines.append(line)
    return bodies, entry


def _walk(bodies: dict[str, list[str]], name: str, times: int, is_open: bool) -> Iterator[Exchange]:
    for line in bodies[name]:
        if exchange := EXCHANGE.search(line):
            yield Exchange(exchange[2], *sizes(exchange[1]), times, is_open)
        if loop := LOOP.search(line):
            trip_count = ROUNDS.search(line)
            rounds, within = (int(trip_count[1]), is_open) if trip_count else (1, True)
            yield from _walk(bodies, loop[1], times * (rounds + 1 if trip_count else 1), within)
            yield from _walk(bodies, loop[2], times * rounds, within)
        if call := CALL.search(line):
            yield from _walk(bodies, call[1], times, is_open)
        for branch in branches(line):
            yield from _walk(bodies, branch, times, is_open)


def branches(line: str) -> list[str]:
    """The computations that a conditional chooses from; none for another instruction."""
    if " conditional(" not in line:
        return []
    names = [several or one for several, one in BRANCHES.findall(line)]
    return [name.strip().lstrip("%") for name in ",".join(names).split(",")]


def sizes(result: str) -> tuple[int, int]:
    """`(bytes of arrays, bytes of scalars)` of a result such as `(f32[4,2]{1,0}, pred[])`."""
    arrays = scalars = 0
    for _, bits, axes in ARRAY.findall(result):
        bytes_ = max(int(bits or 8) // 8, 1)
        if axes:
            arrays += bytes_ * math.prod(map(int, axes.split(",")))
        else:
            scalars += bytes_
    return arrays, scalars


def products(program: Any) -> int:
    """Floating-point operations of the matrix products of a jaxpr, two for each multiplication.

    Loops whose rounds the data decides count once; of branches the largest. Raises ValueError for
    a convolution, which is not counted.
    """
    total = 0
    for equation in program.eqns:
        name, params = equation.primitive.name, equation.params
        if name == "conv_general_dilated":
            raise ValueError("convolutions are not counted: choose a program without them")
        if name == "dot_general":
            (contracted, _), _ = params["dimension_numbers"]
            left = equation.invars[0].aval.shape
            out = math.prod(equation.outvars[0].aval.shape)
            total += 2 * out * math.prod(left[axis] for axis in contracted)
            continue
        inner = [products(x) for x in jax.extend.core.jaxprs_in_params(params)]
        if inner:
            each = max(inner) if name == "cond" else sum(inner)
            total += each * (params["length"] if name == "scan" else 1)
    return total
