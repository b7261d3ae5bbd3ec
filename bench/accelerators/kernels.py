"""What a compiled program makes a device do, counted in its text: kernels, loops, bytes.

A computation's counts are those of its instructions, with those of the computations it calls: of a
loop as often as it goes round, of a conditional those of its largest branch.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from bench import traffic

INSTRUCTION = re.compile(r"^\s*(?:ROOT )?%?([\w.\-]+) = (.*?) ([a-z][\w\-]*)\((.*)$")
OPERANDS = re.compile(r"%([\w.\-]+)")
COMPARISON = re.compile(r"ROOT .* compare\(%[\w.\-]+, %([\w.\-]+)\), direction=LT")
CONSTANT = re.compile(r"%([\w.\-]+) = [su]\d+\[\]\S* constant\((\d+)\)")
FUSED = re.compile(r"calls=%?([\w.\-]+)")
PARAMETER = re.compile(r"\bparameter\((\d+)\)")
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
    return Computations(bodies).counts(entry)


class Instruction(NamedTuple):
    """A line of a computation, taken apart."""

    line: str
    name: str
    kind: str
    operands: list[str]
    written: int  # bytes of the result


class Computations:
    """The computations of a compiled program, of which each is counted once."""

    def __init__(self, bodies: dict[str, list[str]]):
        self.bodies = bodies
        self.counts = cache(self._counts)
        self.sliced_parameters = cache(self._sliced_parameters)

    def instructions(self, name: str) -> Iterator[Instruction]:
        """Takes the lines of a computation apart, in order."""
        for line in self.bodies[name]:
            if parts := INSTRUCTION.match(line):
                operands = OPERANDS.findall(parts[4].split("), ")[0])
                yield Instruction(line, parts[1], parts[3], operands, sum(traffic.sizes(parts[2])))

    def _counts(self, name: str) -> Counts:
        """Counts of one execution of a computation."""
        total, sizes = Counts(), {}
        for instruction in self.instructions(name):
            sizes[instruction.name] = instruction.written
            total += self.counts_of_instruction(instruction, sizes)
        return total

    def counts_of_instruction(self, instruction: Instruction, sizes: dict[str, int]) -> Counts:
        """Counts of one instruction; `sizes` are the bytes of the results before it."""
        line, kind = instruction.line, instruction.kind
        if kind == "while":
            return self.counts_of_loop(line)
        if kind == "conditional":
            counts = sorted(map(self.counts, traffic.branches(line)), key=lambda x: x.kernels)
            others = sum(x.kernels + x.branches for x in counts[:-1])
            return counts[-1] + Counts(branches=others)
        if kind == "call" and (call := traffic.CALL.search(line)):
            return self.counts(call[1])
        if traffic.EXCHANGE.search(line):
            return Counts(exchanges=1)
        if not LAUNCHES.fullmatch(kind) or ALLOCATIONS in line:
            return Counts()
        return Counts(kernels=1, bytes=instruction.written + self.read_bytes(instruction, sizes))

    def counts_of_loop(self, line: str) -> Counts:
        """Counts of all rounds of a loop, or of one where their number is not known."""
        condition, body = traffic.LOOP.search(line).groups()  # pyright: ignore
        rounds = known_rounds(line, self.bodies[condition])
        if rounds is None:
            return self.counts(body) + self.counts(condition) + Counts(open_loops=1)
        return self.counts(body).times(rounds) + Counts(rounds=rounds)  # nothing is compared

    def read_bytes(self, instruction: Instruction, sizes: dict[str, int]) -> int:
        """Bytes that a kernel reads: of what it slices or gathers no more than it writes."""
        call = FUSED.search(instruction.line)
        sliced = self.sliced_parameters(call[1]) if call and call[1] in self.bodies else frozenset()
        is_partial = instruction.kind in PARTIAL
        read = 0
        for i, name in enumerate(instruction.operands):
            size = sizes.get(name, 0)
            read += min(size, instruction.written) if is_partial or i in sliced else size
        return read

    def _sliced_parameters(self, name: str) -> frozenset[int]:
        """Parameters of a fused computation that only slices and gathers use, of which they read
        no more than they need."""
        numbers, users = {}, {}
        for instruction in self.instructions(name):
            if instruction.kind == "parameter":
                numbers[instruction.name] = int(PARAMETER.search(instruction.line)[1])  # pyright: ignore
            for operand in instruction.operands:
                users.setdefault(operand, set()).add(instruction.kind)
        return frozenset(i for x, i in numbers.items() if users.get(x, {""}) <= PARTIAL)


def known_rounds(line: str, condition: list[str]) -> int | None:
    """Rounds of a loop: as the compiler says or, where its condition compares a counter from 0 with
    a constant, that constant; None if the data decides."""
    if trip_count := traffic.ROUNDS.search(line):
        return int(trip_count[1])
    constants = {x[1]: x[2] for x in map(CONSTANT.search, condition) if x}
    comparison = next((x for x in map(COMPARISON.search, condition) if x), None)
    rounds = constants.get(comparison[1]) if comparison else None
    return int(rounds) if rounds is not None else None
