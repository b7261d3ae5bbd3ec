"""What a compiled program makes a device do, counted in its text: kernels, loops, bytes.

A computation's counts are those of its instructions, with those of the computations it calls: of a
loop as often as it goes round, of a conditional those of its largest branch.
"""

import re
from functools import cache
from typing import NamedTuple

from bench import traffic

INSTRUCTION = re.compile(r"^\s*(?:ROOT )?%?([\w.\-]+) = (.*?) ([a-z][\w\-]*)\((.*)$")
OPERANDS = re.compile(r"%([\w.\-]+)")
COMPARISON = re.compile(r"ROOT .* compare\(%[\w.\-]+, %([\w.\-]+)\), direction=LT")
CONSTANT = re.compile(r"%([\w.\-]+) = [su]\d+\[\]\S* constant\((\d+)\)")
FUSED = re.compile(r"calls=%?([\w.\-]+)")
LAUNCHES = re.compile(
    "fusion|custom-call|copy|sort|convolution|dot|reduce|scatter|gather|rng-bit-generator|"
    "dynamic-update-slice|dynamic-slice|concatenate|transpose|pad|select-and-scatter|"
    "reduce-window|cholesky|triangular-solve"
)
PARTIAL = frozenset(("dynamic-slice", "gather", "dynamic-update-slice"))  # read some of an operand
ALLOCATIONS = "AllocateBuffer"  # a custom call that only reserves memory


class Counts(NamedTuple):
    """What an execution does."""

    kernels: float = 0  # of conditionals the branch with the most
    branches: float = 0  # kernels of all other branches of conditionals
    rounds: float = 0  # of loops whose number is known
    open_loops: float = 0  # executions of loops of unknown length; their bodies count once
    exchanges: float = 0  # collective operations
    bytes: float = 0  # read and written by kernels

    def __add__(self, other: tuple) -> "Counts":
        return Counts(*(a + b for a, b in zip(self, other, strict=True)))

    def times(self, count: int) -> "Counts":
        """The counts of so many executions."""
        return Counts(*(count * x for x in self))


def count(text: str) -> Counts:
    """Counts of one execution of a compiled program, from its text.

    Raises ValueError for a text without an entry.
    """
    bodies, entry = traffic.computations(text)
    if not entry:
        raise ValueError("the text of a compiled program names its ENTRY; this one does not")

    @cache
    def of_computation(name: str) -> Counts:
        total, sizes = Counts(), {}
        for line in bodies[name]:
            if not (instruction := INSTRUCTION.match(line)):
                continue
            result, kind, rest = instruction[2], instruction[3], instruction[4]
            sizes[instruction[1]] = sum(traffic.sizes(result))
            total += of_instruction(line, kind, rest, sizes, sizes[instruction[1]])
        return total

    def of_instruction(
        line: str, kind: str, rest: str, sizes: dict[str, int], written: int
    ) -> Counts:
        if kind == "while":
            return of_loop(line)
        if kind == "conditional":
            counts = sorted(map(of_computation, traffic.branches(line)), key=lambda x: x.kernels)
            others = sum(x.kernels + x.branches for x in counts[:-1])
            return counts[-1] + Counts(branches=others)
        if kind == "call" and (call := traffic.CALL.search(line)):
            return of_computation(call[1])
        if traffic.EXCHANGE.search(line):
            return Counts(exchanges=1)
        if not LAUNCHES.fullmatch(kind) or ALLOCATIONS in line:
            return Counts()
        return Counts(kernels=1, bytes=written + read_bytes(line, kind, rest, sizes, written))

    def of_loop(line: str) -> Counts:
        condition, body = traffic.LOOP.search(line).groups()  # pyright: ignore
        rounds = known_rounds(line, bodies[condition])
        if rounds is None:
            return of_computation(body) + of_computation(condition) + Counts(open_loops=1)
        return of_computation(body).times(rounds) + Counts(rounds=rounds)  # nothing is compared

    def read_bytes(line: str, kind: str, rest: str, sizes: dict[str, int], written: int) -> int:
        operands = OPERANDS.findall(rest.split("), ")[0])
        call = FUSED.search(line)
        sliced = sliced_parameters(call[1]) if call and call[1] in bodies else frozenset()
        whole = kind not in PARTIAL
        read = 0
        for i, name in enumerate(operands):
            size = sizes.get(name, 0)
            read += size if whole and i not in sliced else min(size, written)
        return read

    @cache
    def sliced_parameters(name: str) -> frozenset[int]:
        """Parameters of a fused computation that only slices and gathers use, of which they read
        no more than they need."""
        numbers, users = {}, {}
        for line in bodies[name]:
            if not (instruction := INSTRUCTION.match(line)):
                continue
            if instruction[3] == "parameter":
                numbers[instruction[1]] = int(instruction[4].split(")")[0])
            for operand in OPERANDS.findall(instruction[4].split("), ")[0]):
                users.setdefault(operand, set()).add(instruction[3])
        return frozenset(i for x, i in numbers.items() if users.get(x, {""}) <= PARTIAL)

    return of_computation(entry)


def known_rounds(line: str, condition: list[str]) -> int | None:
    """Rounds of a loop: as the compiler says or, where its condition compares a counter from 0 with
    a constant, that constant; None if the data decides."""
    if trip_count := traffic.ROUNDS.search(line):
        return int(trip_count[1])
    constants = {x[1]: x[2] for x in map(CONSTANT.search, condition) if x}
    comparison = next((x for x in map(COMPARISON.search, condition) if x), None)
    rounds = constants.get(comparison[1]) if comparison else None
    return int(rounds) if rounds is not None else None
