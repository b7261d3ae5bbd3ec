"""Phase portraits in words, and as plain data for JSON."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jaxrl.dynamics.phase_portrait.cycles import Cycle
from jaxrl.dynamics.phase_portrait.fixed_points import FixedPoint
from jaxrl.dynamics.phase_portrait.influence import Attractors, Influence
from jaxrl.dynamics.phase_portrait.portrait import MOST, Portrait

NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
PLURALS = {"saddle-focus": "saddle-foci"}
Duration = Callable[[float], str]


def format_steps(steps: float) -> str:
    """So many steps."""
    return f"{number(steps)} steps"


def number(value: float) -> str:
    """Three digits, as people write them: 0.83, 16.6, 1,340."""
    digits = f"{value:.3g}"
    return f"{float(digits):,.0f}" if abs(float(digits)) >= 1000 else digits


def percentage(share: float, digits: int = 2) -> str:
    """The share in percent: 0.5 %, 21 %, 100 %; with more digits where these would say all."""
    percent = 100 * share
    write = lambda digits: np.format_float_positional(percent, digits, fractional=False, trim="-")
    text = write(digits)
    while text == "100" and percent < 100 and digits < 5:
        digits += 1
        text = write(digits)
    return f"{text} %"


def words(portrait: Portrait, duration: Duration = format_steps) -> str:
    """What was found, in a line: "one limit cycle, period 16.6 steps; one unstable spiral".

    `duration` says how long so many steps are.
    """
    parts = []
    if portrait.cycles:
        periods = " and ".join(duration(cycle.period) for cycle in portrait.cycles[:3])
        more = " and others" * (len(portrait.cycles) > 3)
        name = "period" if len(portrait.cycles) == 1 else "periods"
        parts.append(f"{count(len(portrait.cycles), 'limit cycle')}, {name} {periods}{more}")
    if portrait.aperiodic is not None:
        exponent = f"{portrait.aperiodic.exponents[0]:.2g}"
        parts.append(f"aperiodic motion, largest Lyapunov exponent {exponent} per step")
    if portrait.neutral > 0:
        parts.append("closed orbits that do not attract")
    kinds = [point.kind for point in portrait.fixed_points]
    all_counted = len(kinds) < MOST  # a line of neutral points has any number
    parts += [count(kinds.count(kind), kind, all_counted) for kind in dict.fromkeys(kinds)]
    if portrait.escaping > 0:
        parts.append(f"{percentage(portrait.escaping)} of visited states leave the region")
    if portrait.unsettled > 0:
        parts.append(f"{percentage(portrait.unsettled)} do not settle in the time computed")
    return "; ".join(parts) or "no fixed point in the region that data visited"


def count(amount: int, noun: str, is_exact: bool = True) -> str:
    """So many things: "one saddle", "two saddles"; "two or more saddles" unless all are counted."""
    amount_in_words = NUMBERS[amount] if amount < len(NUMBERS) else f"{amount:,}"
    is_one = amount == 1 and is_exact
    noun = noun if is_one else PLURALS.get(noun, f"{noun}s")
    return f"{amount_in_words} {noun if is_exact else f'or more {noun}'}"


def attractors_in_words(counts: Attractors) -> str:
    """Such as "one stable point, one limit cycle"."""
    names = ("stable point", "limit cycle")
    parts = [count(n, name) for n, name in zip(counts[:2], names, strict=True) if n]
    return ", ".join([*parts, *["aperiodic motion"] * counts.aperiodic]) or "no attractor"


def summary(
    portrait: Portrait,
    influences: Sequence[Influence] = (),
    step_time: float | None = None,
    duration: Duration = format_steps,
) -> dict[str, Any]:
    """Plain data for JSON, of finite numbers, None where there is none.

    Times are in steps; with the time of a step, `step_time`, also in its unit, by names that end in
    `_time`. `influences` are what inputs move.
    """
    aperiodic = portrait.aperiodic
    return {
        "words": words(portrait, duration),
        "inputs": to_floats(portrait.inputs),
        "fixed_points": [_fixed_point(point, step_time) for point in portrait.fixed_points],
        "cycles": [_cycle(cycle, step_time) for cycle in portrait.cycles],
        "aperiodic": aperiodic
        and {
            "lyapunov_exponents": to_floats(aperiodic.exponents),
            "low": to_floats(aperiodic.low),
            "high": to_floats(aperiodic.high),
            "share": aperiodic.share,
        }
        | _time("exponents_per", aperiodic.exponents, step_time and 1 / step_time),
        "neutral_share": portrait.neutral,
        "unsettled_share": portrait.unsettled,
        "escaping_share": portrait.escaping,
        "influences": [_influence(influence, step_time, duration) for influence in influences],
    }


def _fixed_point(point: FixedPoint, step_time: float | None) -> dict[str, Any]:
    turns = point.rotation_periods[np.isfinite(point.rotation_periods)]
    period = turns[0] if len(turns) else np.nan
    return {
        "kind": point.kind,
        "state": to_floats(point.state),
        "eigenvalues": [[to_floats(x.real), to_floats(x.imag)] for x in point.eigenvalues],
        "rotation_period": to_floats(period),
        "time_constants": to_floats(point.time_constants),
        "sensitivity": to_floats(point.sensitivity),
        "beyond": point.beyond,
        "nearest": point.nearest,
        "share": point.share,
        **_time("rotation_period", period, step_time),
        **_time("time_constants", point.time_constants, step_time),
    }


def _cycle(cycle: Cycle, step_time: float | None) -> dict[str, Any]:
    return {
        "period": to_floats(cycle.period),
        "extent": to_floats(cycle.extent),
        "mean": to_floats(cycle.mean),
        "multiplier": to_floats(cycle.multiplier),
        "share": cycle.share,
        **_time("period", cycle.period, step_time),
    }


def _time(name: str, steps: Any, step_time: float | None) -> dict[str, Any]:
    return {} if step_time is None else {f"{name}_time": to_floats(np.asarray(steps) * step_time)}


def _influence(influence: Influence, step_time: float | None, duration: Duration) -> dict[str, Any]:
    ends = (influence.portraits[0], influence.portraits[-1])
    low, high = (summary(portrait, (), step_time, duration) for portrait in ends)
    for content in (low, high):
        del content["influences"]
    changes = [
        {
            "between": [to_floats(change.low), to_floats(change.high)],
            "before": attractors_in_words(change.before),
            "after": attractors_in_words(change.after),
        }
        for change in influence.changes
    ]
    return {"component": influence.component, "low": low, "high": high, "bifurcations": changes}


def to_floats(value: Any) -> Any:
    """Numbers as lists of floats, None where they are not finite."""
    array = np.asarray(value, float)
    if array.ndim:
        return [to_floats(x) for x in array]
    return float(array) if np.isfinite(array) else None
