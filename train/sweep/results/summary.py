"""What came out of a sweep: scores by configuration, their intervals and ranks.

A sweep has M members, each a configuration (the numbers it varied) and a seed.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from jaxrl.numerics import comparison, statistics
from train.host.files.whole_files import finite_or_text
from train.sweep.results.labels import distinct_values, plain_names

STATES = ("done", "failed", "unfinished")
BETTER = ("higher", "lower")
UNCHANGED = "unchanged"
TOO_MANY = 0.25
"""Share of seeds without a score beyond which a configuration ranks behind all others: those that
the interquartile mean would leave out at the lower end, if they were its worst ones."""


class Member(NamedTuple):
    """A configuration with a seed, and how it ended."""

    member: int  # index from 0
    configuration: int  # index from 0
    seed: int
    values: dict[str, Any]  # dotted name -> what this configuration varied; empty: nothing
    score: float | None  # of the evaluation after training; None: failed, or unfinished
    state: str  # one of STATES; of an unfinished one no game came to its end


class Improvement(NamedTuple):
    """Probability of scoring better than the default configuration, with its 95 % interval."""

    probability: float
    low: float
    high: float


class Configuration(NamedTuple):
    """All members of one configuration."""

    index: int
    values: dict[str, Any]
    seeds: list[int]
    scores: list[float]  # of those seeds that have one
    failed: int  # seeds
    iqm: float | None  # interquartile mean of the scores; None without any
    interval: tuple[float, float] | None  # its 95 % interval; None below two scores
    improvement: Improvement | None  # None for the default, below two seeds of either
    rank: int | None  # from 1, the best; equal ones share it; None without a score
    is_default: bool

    @property
    def num_unscored(self) -> int:
        """Seeds that did not fail and have no score, as no game came to its end."""
        return len(self.seeds) - len(self.scores) - self.failed


def summarise(
    members: Sequence[Member], better: str = "higher", default: int | None = None
) -> list[Configuration]:
    """Each configuration's scores over its seeds, the best one first.

    `default` is the index of the configuration that changes nothing, if the sweep has it. The
    interquartile mean is that of the seeds with a score; configurations in which more than
    `TOO_MANY` have none rank behind all others. In the probability of improvement a failed seed is
    worse than any score. Raises ValueError for an empty sweep and for members that contradict each
    other.
    """
    groups = _group_by_configuration(members)
    if better not in BETTER:
        raise ValueError(f"better is {better!r}; give 'higher' or 'lower'")
    if default is not None and default not in groups:
        raise ValueError(
            f"default configuration {default} is not in the sweep; it has {sorted(groups)}"
        )
    sign = 1.0 if better == "higher" else -1.0
    reference = None if default is None else _runs(groups[default], sign)
    configurations = [
        _summarise_group(group, index == default)._replace(
            improvement=None if index == default else _improvement(_runs(group, sign), reference)
        )
        for index, group in groups.items()
    ]
    configurations.sort(key=lambda x: (*_sort_key(x, sign), x.index))
    return _assign_ranks(configurations, sign)


def content(
    configurations: Sequence[Configuration], score: str, better: str = "higher"
) -> dict[str, Any]:
    """The summary as plain data for JSON: `{"score", "better", "default", "configurations"}`."""
    default = next((x.index for x in configurations if x.is_default), None)
    rows = []
    for configuration in configurations:
        row = configuration._asdict()
        del row["is_default"]
        if configuration.improvement is not None:
            row["improvement"] = configuration.improvement._asdict()
        if configuration.interval is not None:
            row["interval"] = list(configuration.interval)
        row["values"] = values_content(configuration.values)
        rows.append(row)
    return {"score": score, "better": better, "default": default, "configurations": rows}


def values_content(values: Mapping[str, Any]) -> dict[str, Any]:
    """What a configuration varied as plain data for JSON, infinity as the text "inf"."""
    return {
        name: finite_or_text(value.item() if hasattr(value, "item") else value)
        for name, value in values.items()
    }


def has_failed(member: Member) -> bool:
    """Whether NaN or infinity ended it; one whose games did not end has not failed."""
    if member.score is None:
        return member.state != "unfinished"
    return member.state == "failed" or not np.isfinite(member.score)


def varied_names(configurations: Sequence[Configuration]) -> dict[str, str]:
    """Plain names, by the dotted ones, of what has two values at least; not given is a value."""
    names = dict.fromkeys(name for x in configurations for name in x.values)
    columns = {name: [x.values.get(name, UNCHANGED) for x in configurations] for name in names}
    return plain_names(name for name, values in columns.items() if len(distinct_values(values)) > 1)


def find_identical(members: Sequence[Member], fingerprints: Mapping[int, str]) -> list[list[int]]:
    """Groups of two or more members that came out identical: those of equal fingerprint.

    `fingerprints` are by the member's index. Failed members are left out, as NaN equals NaN.
    """
    groups: dict[str, list[int]] = {}
    for member in sorted(members, key=lambda x: x.member):
        if member.member in fingerprints and not has_failed(member):
            groups.setdefault(fingerprints[member.member], []).append(member.member)
    return [group for group in groups.values() if len(group) > 1]


def no_effect_message(members: Sequence[Member], group: Sequence[int], most: int = 6) -> str:
    """One line about a group of `find_identical`: what differs between them had no effect.

    They are named by their configurations, as in the table, and seeds. Of members and of values at
    most `most` are named.
    """
    chosen = [member for member in members if member.member in set(group)]
    names = dict.fromkeys(name for member in chosen for name in member.values)
    kinds = {
        name: list(distinct_values(x.values.get(name, UNCHANGED) for x in chosen)) for name in names
    }
    kinds["the seed"] = [str(seed) for seed in dict.fromkeys(x.seed for x in chosen)]
    differing = [
        f"{name} ({_join(values, most, ', ')})" for name, values in kinds.items() if values[1:]
    ]
    start = f"{_places(chosen, most)} came out identical"
    if not differing:
        return f"{start}: they have the same values and the same seed"
    return f"{start}: {_join(differing, len(differing), ' and ')} had no effect there"


def _places(members: Sequence[Member], most: int) -> str:
    """Configuration and seed of each of the members; a seed that they share is said once."""
    if len({x.seed for x in members}) > 1:
        return _join([f"#{x.configuration} with seed {x.seed}" for x in members], most, " and ")
    names = _join([f"#{x.configuration}" for x in members], most, " and ")
    return f"{names} with seed {members[0].seed}"


def _join(items: Sequence[str], most: int, last: str) -> str:
    if len(items) > most:
        return f"{', '.join(items[:most])} and {len(items) - most} more"
    return last.join([", ".join(items[:-1]), items[-1]]) if items[1:] else items[0]


def _group_by_configuration(members: Sequence[Member]) -> dict[int, list[Member]]:
    """The members of each configuration by seed; checked."""
    if not members:
        raise ValueError("the sweep has no members; give at least one")
    groups: dict[int, list[Member]] = {}
    for member in sorted(members, key=lambda x: (x.configuration, x.seed)):
        if member.state not in STATES:
            raise ValueError(
                f"member {member.member} is {member.state!r}; a state is one of {', '.join(STATES)}"
            )
        group = groups.setdefault(member.configuration, [])
        if group and group[0].values != member.values:
            raise ValueError(
                f"members {group[0].member} and {member.member} are of configuration "
                f"{member.configuration}, but differ in values; give every set of values its own"
            )
        group.append(member)
    if len({member.member for member in members}) < len(members):
        raise ValueError("two members have the same index; give each its own")
    return groups


def _summarise_group(group: Sequence[Member], is_default: bool) -> Configuration:
    """A configuration that has not been compared with others yet."""
    scores = [float(x.score) for x in group if x.score is not None and not has_failed(x)]
    column = np.array(scores)[:, None]  # [S, 1]
    return Configuration(
        index=group[0].configuration,
        values=dict(group[0].values),
        seeds=[x.seed for x in group],
        scores=scores,
        failed=sum(map(has_failed, group)),
        iqm=statistics.interquartile_mean(column) if scores else None,
        interval=statistics.stratified_interval(column) if len(scores) > 1 else None,
        improvement=None,
        rank=None,
        is_default=is_default,
    )


def _runs(group: Sequence[Member], sign: float) -> np.ndarray:
    """Scores `[S, 1]`, higher is better, -inf for failed ones."""
    finished = [x for x in group if has_failed(x) or x.score is not None]
    return np.array([[-np.inf if has_failed(x) else sign * float(x.score or 0)] for x in finished])


def _improvement(runs: np.ndarray, reference: np.ndarray | None) -> Improvement | None:
    if reference is None or min(len(runs), len(reference)) < 2:
        return None
    if np.isinf(runs).all() and np.isinf(reference).all():  # nothing to compare
        return None
    return Improvement(
        comparison.probability_of_improvement(runs, reference),
        *comparison.improvement_interval(runs, reference),
    )


def _sort_key(configuration: Configuration, sign: float) -> tuple[int, float]:
    """What configurations are ranked by, ascending."""
    if configuration.iqm is None:
        return 2, 0.0
    missing = configuration.failed + configuration.num_unscored
    too_many = missing > TOO_MANY * len(configuration.seeds)
    return int(too_many), -sign * configuration.iqm


def _assign_ranks(ordered: Sequence[Configuration], sign: float) -> list[Configuration]:
    ranked: list[Configuration] = []
    for place, configuration in enumerate(ordered, start=1):
        if configuration.iqm is None:
            ranked.append(configuration)
            continue
        is_tied = ranked and _sort_key(ranked[-1], sign) == _sort_key(configuration, sign)
        ranked.append(configuration._replace(rank=ranked[-1].rank if is_tied else place))
    return ranked
