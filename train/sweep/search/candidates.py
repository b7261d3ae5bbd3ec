"""The candidates of a search, as its record tells of them."""

import csv
import io
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from rich.table import Table

from train.host.files.rows import Counters, scalars
from train.host.files.whole_files import write_whole
from train.host.numbers import quantity
from train.host.showing.pictures import Row
from train.sweep.results import tables
from train.sweep.results.labels import text_of
from train.sweep.results.summary import Configuration, Member, summarise, varied_names
from train.sweep.search.judge import FAILED, FINISHED, GOES_ON

TABLE = "candidates.csv"
UNFINISHED = "unfinished"
MOST = 20
"""Candidates in the table of the terminal, at most."""


class Candidate(NamedTuple):
    """A configuration that was tried, with one seed."""

    index: int
    slot: int
    seed: int
    values: dict[str, float]
    parent: int | None  # of which it was a copy
    start_age: int  # steps of the slot before its first chunk, or the age at which it was copied
    age: int  # steps that it was trained
    score: float | None  # of its last chunk in which an episode ended
    fate: str  # finished: trained to the end; dropped, failed, unfinished


def candidates(rows: Sequence[Row], score: str) -> list[Candidate]:
    """All candidates with a row, by their index; `rows` are in the order of the record."""
    by_index: dict[int, Candidate] = {}
    last = max((row["updates"] for row in rows), default=0)
    steps_before: dict[int, int] = {}  # steps of each slot
    for row in rows:
        index, previous = row["candidate"], by_index.get(row["candidate"])
        last_score = scalars(row).get(score)
        if last_score is None and previous is not None:
            last_score = previous.score
        fate = row["fate"]
        if fate == GOES_ON:
            fate = UNFINISHED if row["updates"] == last else fate
        start_age = row["age"] - (row["steps"] - steps_before.get(row["member"], 0))
        by_index[index] = Candidate(
            index,
            row["member"],
            row["seed"],
            row["numbers"],
            row["parent"],
            start_age if previous is None else previous.start_age,
            row["age"],
            last_score,
            fate,
        )
        steps_before[row["member"]] = row["steps"]
    return [by_index[index] for index in sorted(by_index)]


def configurations(pool: Sequence[Candidate], better: str) -> list[Configuration]:
    """Candidates trained to the end with their ranks, the best one first; then the others, without
    a rank, those that were trained longest first."""
    finished = [member_of(x) for x in pool if x.fate == FINISHED and x.score is not None]
    unfinished = [x for x in pool if x.fate != FINISHED or x.score is None]
    sign = -1.0 if better == "higher" else 1.0
    unfinished.sort(key=lambda x: (-x.age, x.score is None, sign * (x.score or 0.0), x.index))
    others = (
        {x.index: x for x in summarise(list(map(member_of, unfinished)), better)}
        if unfinished
        else {}
    )
    ranked = summarise(finished, better) if finished else []
    unranked = [others[x.index]._replace(rank=None) for x in unfinished]
    return [x._replace(is_default=x.index == 0) for x in [*ranked, *unranked]]


def member_of(candidate: Candidate) -> Member:
    """A candidate as the only member of a configuration."""
    state = {FINISHED: "done", FAILED: "failed"}.get(candidate.fate, "stopped")
    score = None if state == "failed" else candidate.score
    if state == "done" and score is None:
        state = "unfinished"
    return Member(candidate.index, candidate.index, candidate.seed, candidate.values, score, state)


def history(rows: Sequence[Row], chosen: Candidate, pool: Sequence[Candidate]) -> list[Row]:
    """The rows of a candidate and, before it was copied, of those it comes from, by age.

    Their counts are those of one run: of the training that led to the candidate.
    """
    by_index, previous_rows = {x.index: x for x in pool}, {}
    for slot in {row["member"] for row in rows}:
        own_rows = [None, *(row for row in rows if row["member"] == slot)]
        previous_rows |= {id(row): last for last, row in pairwise(own_rows)}
    parts, candidate, end_age = [], chosen, chosen.age
    while True:
        own_rows = [x for x in rows if x["candidate"] == candidate.index and x["age"] <= end_age]
        parts = [*own_rows, *parts]
        if candidate.parent is None:
            break
        end_age, candidate = candidate.start_age, by_index[candidate.parent]
    history_rows, counts = [], {"episodes": 0, "skipped": 0, "seconds": 0.0}
    for row in parts:
        last = previous_rows[id(row)]
        for name in counts:
            counts[name] += row[name] - (last[name] if last else 0)
        per_update = row["steps"] // row["updates"]
        age = {"updates": row["age"] // per_update, "steps": row["age"]}
        history_rows.append({**row, **counts, **age, "seconds": round(counts["seconds"], 3)})
    return history_rows


def counters(rows: Sequence[Row]) -> Counters:
    """How far the run of `history` is."""
    last = rows[-1]
    return Counters(
        last["updates"], [last["episodes"]], [last["skipped"]], 0, last["seconds"], len(rows)
    )


def write_table(directory: Path, pool: Sequence[Candidate], score: str) -> None:
    """Writes `candidates.csv`."""
    text = io.StringIO()
    heads = ["candidate", "slot", "seed", *pool[0].values, "parent", "fate", "steps", score]
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(heads)
    for x in pool:
        row = [x.index, x.slot, x.seed, *x.values.values(), x.parent, x.fate, x.age, x.score]
        writer.writerow("" if value is None else value for value in row)
    write_whole(directory / TABLE, text.getvalue())


def table(
    ordered: Sequence[Configuration],
    pool: Sequence[Candidate],
    score: str,
    unit: str,
    width: int = 80,
) -> Table:
    """The first of the candidates in the order of `configurations`, and the default.

    Numbers share a column where the table would have more than `width` characters.
    """
    by_index, names = {x.index: x for x in pool}, varied_names(ordered)
    selection = [x for i, x in enumerate(ordered) if i < MOST or x.is_default]
    title = f"{score} of the last chunk of training"
    caption_text = caption(pool, len(ordered) - len(selection), unit)

    def make_table(is_shared: bool) -> Table:
        headings = ["rank", "#", *tables.headings_of(names, is_shared), "steps", score, "fate"]
        rich_table = tables.empty(title, caption_text, headings)
        for x in selection:
            candidate = by_index[x.index]
            score_text = "–" if candidate.score is None else text_of(candidate.score)
            cells = [str(x.rank or "–"), str(x.index), *tables.values_of(x, names, is_shared)]
            cells += [f"{candidate.age:,}", score_text, candidate.fate]
            rich_table.add_row(*cells, style="bold" if x.is_default else None)
        return rich_table

    wide_table = make_table(is_shared=False)
    is_wide = len(names) > tables.COLUMNS or tables.width_of(wide_table) > width
    return make_table(is_shared=True) if is_wide else wide_table


def caption(pool: Sequence[Candidate], left_out: int, unit: str) -> str:
    """What to know before believing the table."""
    fates = Counter(x.fate for x in pool)
    sentences = [f"Not shown: {left_out} more."] if left_out else []
    sentences.append(
        f"{quantity(len(pool), 'candidates')}: {', '.join(f'{n} {x}' for x, n in fates.items())}."
    )
    sentences.append(
        f"Steps are {unit}. Scores are of one seed each, and chosen: see the fresh seeds."
    )
    return " ".join(sentences)
