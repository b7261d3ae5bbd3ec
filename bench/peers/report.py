"""A record of one case as Markdown."""

import statistics
from typing import Any

Row = dict[str, Any]


def table(record: dict[str, Any]) -> str:
    """A row for each contender: speed where it was timed, scores where it learned something."""
    columns = []
    if "wall_s" in record["rows"][0]:
        columns += [
            ("per second, median", lambda row: f"{row['per_second']:,.0f}"),
            ("compile, s", lambda row: f"{row['compile_s']:.1f}"),
            ("times the peer, wall clock", lambda row: times(record, row, "wall")),
            ("times the peer, CPU time", lambda row: times(record, row, "cpu")),
        ]
    if "scores" in record["rows"][0]:
        columns += [
            ("score, each seed", lambda row: " ".join(f"{s:.0f}" for s in row["scores"])),
            ("median", lambda row: f"{statistics.median(row['scores']):.0f}"),
            ("curve", curve),
        ]
    heads = ["", *(head for head, _ in columns)]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for row in record["rows"]:
        cells = [row["name"], *(cell(row) for _, cell in columns)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def times(record: dict[str, Any], row: Row, clock: str) -> str:
    """The median ratio with least and most; nothing for the peer itself."""
    if (ratios := record["ratios"].get(row["name"])) is None:
        return ""
    ratio = ratios[clock]
    return f"{ratio['median']:.2f} ({ratio['least']:.2f} to {ratio['most']:.2f})"


def curve(row: Row) -> str:
    """Ten points of the curve, mean of all seeds."""
    return " ".join("–" if x is None else f"{x:.0f}" for x in row["curve"][4::5])
