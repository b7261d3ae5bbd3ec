"""The summary of a sweep as a table in the terminal."""

import textwrap
from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table

from train.host.numbers import quantity
from train.sweep.results.labels import cut, short_label, text_of
from train.sweep.results.summary import TOO_MANY, Configuration, varied_names

COLUMNS = 3
"""Varied numbers with a column each; more than these share one."""
SHARED = "varied"
"""The heading of that column."""
ENOUGH = 5
"""Seeds below which the table says that intervals are too narrow."""
LUCK = 8
"""Configurations from which it says that the best one was also lucky."""


def table(
    configurations: Sequence[Configuration], score: str = "score", most: int = 20, width: int = 80
) -> Table:
    """The best `most` of configurations, as `summarise` orders them, and the default in any case.

    Varied numbers share a column where the table would have more than `width` characters. Raises
    ValueError without any.
    """
    if not configurations:
        raise ValueError("there is no configuration to show; give those of `summarise`")
    names = varied_names(configurations)
    selection = [x for i, x in enumerate(configurations) if i < most or x.is_default]
    caption = _caption(configurations, len(configurations) - len(selection))
    if len(names) <= COLUMNS:
        rich_table = _make_table(configurations, selection, score, caption, names, is_shared=False)
        if width_of(rich_table) <= width:
            return rich_table
    return _make_table(configurations, selection, score, caption, names, is_shared=True)


def width_of(rich_table: Table) -> int:
    """Characters of a line of a table that nothing makes narrower."""
    endless = Console(width=10_000)
    return Measurement.get(endless, endless.options, rich_table).maximum


def _make_table(
    configurations: Sequence[Configuration],
    selection: Sequence[Configuration],
    score: str,
    caption: str,
    names: dict[str, str],
    is_shared: bool,
) -> Table:
    """The table, whose varied numbers have a column each, or share one."""
    has_seeds = any(len(x.seeds) > 1 for x in configurations)
    has_improvements = any(x.improvement for x in configurations)
    has_failures = any(x.failed for x in configurations)
    title = f"{score}: {'interquartile mean of the seeds' if has_seeds else 'of one seed each'}"
    headings = ["rank", "#", *headings_of(names, is_shared)]
    headings += ["IQM", "95 % interval", "seeds"] if has_seeds else [score]
    headings += ["failed"] * has_failures + ["better than\ndefault, %"] * has_improvements
    rich_table = empty(title, caption, headings)
    for x in selection:
        cells = [str(x.rank or "–"), str(x.index), *values_of(x, names, is_shared)]
        cells += ["–" if x.iqm is None else text_of(x.iqm)]
        if has_seeds:
            ends = "" if x.interval is None else " to ".join(map(text_of, x.interval))
            cells += [ends, str(len(x.seeds))]
        cells += [str(x.failed or "")] * has_failures + [_improvement(x)] * has_improvements
        rich_table.add_row(*map(escape, cells), style="bold" if x.is_default else None)
    return rich_table


def empty(title: str, caption: str, headings: Sequence[str]) -> Table:
    """A table without rows."""
    rich_table = Table(
        title=title, caption=caption, box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0)
    )
    for heading in headings:  # only sentences may be broken into lines
        rich_table.add_column(
            heading,
            justify="left" if heading == SHARED else "right",
            vertical="bottom",
            no_wrap=heading != SHARED,
        )
    return rich_table


def headings_of(names: dict[str, str], is_shared: bool) -> list[str]:
    """The headings of the varied numbers."""
    if is_shared:
        return [SHARED]
    return [textwrap.fill(x, 10, break_long_words=False) for x in names.values()]


def values_of(configuration: Configuration, names: dict[str, str], is_shared: bool) -> list[str]:
    """A cell for each number that was varied, or one for all."""
    values = configuration.values
    if is_shared:
        return [cut(short_label(values, names), 120)]
    return [text_of(values[name]) if name in values else "" for name in names]


def _improvement(configuration: Configuration) -> str:
    if configuration.is_default:
        return "default"
    if configuration.improvement is None:
        return ""
    probability, low, high = (round(100 * x) for x in configuration.improvement)
    return f"{probability} ({low}–{high})"


def _caption(configurations: Sequence[Configuration], left_out: int) -> str:
    """What to know before believing the table."""
    sentences = [f"Not shown: {left_out} more."] if left_out else []
    seeds = [len(x.seeds) for x in configurations]
    if max(seeds) == 1 and len(seeds) > 1:
        sentences.append("One seed each: differences may be chance; run the best with more seeds.")
    elif max(seeds) > 1 and min(seeds) < ENOUGH:
        sentences.append(f"Intervals of fewer than {ENOUGH} seeds are too narrow.")
    if max(seeds) > 1 and len(seeds) >= LUCK:
        sentences.append(f"The best of {len(seeds)} was also lucky: run it again with new seeds.")
    if any(x.failed for x in configurations):
        sentences.append(
            "Failed seeds are not in the mean; a configuration with more than "
            f"{TOO_MANY:.0%} of them ranks behind all others.".replace("%", " %")
        )
    if missing := sum(x.num_unscored for x in configurations):
        sentences.append(
            f"Without a score, as no game came to its end: {quantity(missing, 'members')}, not in "
            "the mean, and ranked as failed."
        )
    return " ".join(sentences)
