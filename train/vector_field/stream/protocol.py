"""Lines of JSON, as docs/rig.md describes them: messages of a client, and answers.

Letters: n channels, m inputs.
"""

import json
import math
from typing import Any, NamedTuple

from train.host.errors import in_one_line
from train.vector_field.stream.guard import Input, RigLimits
from train.vector_field.stream.loop import BadSample

LONGEST_LINE = 2**16
"""Bytes; of more than a thousand channels more is needed, but so many are refused before."""


class Sample(NamedTuple):
    """What a client says of one sample."""

    y: list[float]  # [n], NaN where missing
    number: int | None  # None: the next one


def parse(line: bytes) -> Sample:
    """A message. Raises `BadSample` for what is none."""
    try:
        content = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadSample(f"this line is no JSON ({in_one_line(error)})") from error
    if not isinstance(content, dict) or "y" not in content or content.keys() - {"n", "y"}:
        raise BadSample('expected a line such as {"n": 0, "y": [0.1, null]}')
    number, y = content.get("n"), content["y"]
    if number is not None and (isinstance(number, bool) or not isinstance(number, int)):
        if not (isinstance(number, float) and number.is_integer()):
            raise BadSample(f"n is {json.dumps(number)[:40]}, expected a whole number")
        number = int(number)
    y = y if isinstance(y, list) else [y]  # one channel needs no brackets
    for x in y:
        if x is not None and (isinstance(x, bool) or not isinstance(x, int | float)):
            raise BadSample(f"y holds {json.dumps(x)[:40]}, expected numbers, null if missing")
    return Sample([math.nan if x is None else x for x in y], number)


def greeting(limits: RigLimits, channels: int, number: int, u: Input) -> bytes:
    """What a client is told first; the numbers are those that count from now on."""
    finite = lambda numbers: [x if math.isfinite(x) else None for x in numbers]
    return _line(
        {
            "channels": channels,
            "inputs": len(limits.low),
            "next": number,
            "u": list(u),
            "low": list(limits.low),
            "high": list(limits.high),
            "rate": finite(limits.rate),
            "charge": finite([limits.charge])[0],
            "window": limits.window,
            "step_time": limits.dt,
        }
    )


def answer(number: int, u: Input) -> bytes:
    """The input for a sample."""
    return _line({"n": number, "u": list(u)})


def error(message: str, number: int) -> bytes:
    """What was wrong with a message, and the number that is expected next."""
    return _line({"error": message, "next": number})


def _line(content: dict[str, Any]) -> bytes:
    return json.dumps(content).encode() + b"\n"
