"""The table of what programs become when they are compiled for accelerators."""

from bench.accelerators import model
from bench.accelerators.chips import CHIPS
from bench.tables.markdown import Record, latest, records, table


def compilations() -> str:
    """A row for each program and chip: what one update is, on one device."""
    head = (
        "program | chip | compiled in | memory | kernels a step | loops of unknown length an update"
        " | steps/s by the model"
    )
    rows = [row for row in records("accelerators") if row["devices"] == 1]
    newest = latest(rows, "case", "chip")
    return table(head, (cells(newest[key]) for key in sorted(newest)), rows)


def cells(row: Record) -> list[str]:
    """The columns of one row."""
    first = [f"`{row['case']}`", CHIPS[row["chip"]].title]
    update = row.get("update", row)
    if "failed" in update:
        return [*first, f"fails: {update['failed']}", "", "", "", ""]
    counts = update["counts"]
    memory = update["argument_bytes"] + update["temporary_bytes"]
    rate = row["steps"] / model.seconds(row["chip"], counts)
    return [
        *first,
        f"{update['compile_seconds']:.0f} s",
        f"{memory / 1e6:,.1f} MB",
        f"{counts['kernels'] / row['steps']:.3g}",
        f"{counts['open_loops']:.0f}",
        f"{float(f'{rate:.2g}'):,.0f}",
    ]
