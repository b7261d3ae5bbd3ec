"""The tables of what programs become when they are compiled for accelerators."""

from bench.accelerators import model
from bench.accelerators.chips import CHIPS
from bench.tables.markdown import Record, latest, records, table
from train.host.program import find
from train.sweep.batches import SHARE


def compilations() -> str:
    """A row for each program and chip: what one update is, on one device."""
    head = (
        "program | chip | compiled in | memory | kernels a step | loops of unknown length an update"
        " | steps/s by the model | by XLA's own estimate"
    )
    rows = [row for row in records("accelerators") if row["devices"] == 1]
    newest = latest(rows, "case", "chip")
    return table(head, (cells(newest[key]) for key in sorted(newest)), rows)


def cells(row: Record) -> list[str]:
    """The columns of one row."""
    first = [f"`{row['case']}`", CHIPS[row["chip"]].title]
    update = row.get("update", row)
    if "failed" in update:
        return [*first, f"fails: {update['failed']}", *[""] * 5]
    counts = update["counts"]
    memory = update["argument_bytes"] + update["temporary_bytes"]
    rate = row["steps"] / model.seconds(row["chip"], counts)
    return [
        *first,
        f"{update['compile_seconds']:.0f} s",
        f"{memory / 1e6:,.1f} MB",
        f"{counts['kernels'] / row['steps']:.3g}",
        f"{counts['open_loops']:.0f}",
        two_digits(rate),
        own_estimate(row["steps"], update["estimate"]),
    ]


def own_estimate(steps: int, estimate: dict[str, float]) -> str:
    """Steps/s by XLA's seconds of a TPU; empty where it has none, as of custom calls."""
    seconds = estimate.get("optimal_seconds", 0.0)
    return two_digits(steps / seconds) if seconds > 0 else ""


def two_digits(rate: float) -> str:
    """A rate with its first two digits, also of one below 1."""
    rounded = float(f"{rate:.2g}")
    return f"{rounded:,.0f}" if rounded >= 10 else f"{rounded:g}"


def several_devices() -> str:
    """A row for each default and wide preset and chip that was compiled for eight devices, too."""
    head = (
        "program | chip | exchanged an update | steps/s by the model on 1 device"
        " | on 8, with 8 times the environments | on 64"
    )
    newest = latest(records("accelerators"), "case", "chip", "devices")
    pairs = [(newest.get((case, chip, 1)), newest[case, chip, 8]) for case, chip in both(newest)]
    pairs = [(one, many) for one, many in pairs if one and "update" in one and "update" in many]
    return table(head, (device_cells(*pair) for pair in pairs), [many for _, many in pairs])


def both(newest: dict[tuple[str, str, int], Record]) -> list[tuple[str, str]]:
    """The defaults and wide presets, and the chips, that were compiled for eight devices."""
    return sorted(
        (case, chip) for case, chip, devices in newest if devices == 8 and is_for_accelerators(case)
    )


def is_for_accelerators(case: str) -> bool:
    """Whether a preset is what its program takes where none is named, on a CPU or elsewhere."""
    name, preset = case.split(":")
    default = next(iter(find(name, "the command line").presets))
    return preset == default or preset.endswith("_wide")


def device_cells(one: Record, many: Record) -> list[str]:
    """The columns of a program on one device and on eight."""
    chip, counts, sizes = many["chip"], many["update"]["counts"], many["update"]["exchanged_bytes"]
    exchanged = ", ".join(f"{kind}: {size / 1e6:.2g} MB" for kind, size in sizes.items())
    alone = model.seconds(chip, one["update"]["counts"])
    rates = [one["steps"] / alone]
    for devices in (8, 64):
        waiting = model.exchange_seconds(chip, devices, counts["exchanges"], sum(sizes.values()))
        rates.append(devices * one["steps"] / (alone + waiting))
    rounded = list(map(two_digits, rates))
    first = [f"`{many['case']}`", CHIPS[chip].title]
    how_often = f"{counts['exchanges']:.0f} times, {exchanged}" if sizes else "nothing"
    return [*first, how_often, *rounded]


def members() -> str:
    """A row for each program of which eight members were compiled side by side."""
    head = (
        "program | chip | kernels an update of 1 member | of 8 | memory a member"
        " | members that fit | steps/s by the model of 1 member | of all that fit"
    )
    newest = latest(records("accelerators"), "case", "chip", "devices")
    rows = [newest[key] for key in sorted(newest) if "counts" in newest[key].get("members", {})]
    return table(head, map(member_cells, rows), rows)


def member_cells(row: Record) -> list[str]:
    """The columns of a program with one member and with as many as a chip holds.

    Memory and bytes grow with each member as from the first to the eighth.
    """
    one, eight, chip = row["update"], row["members"], row["chip"]
    sizes = [x["argument_bytes"] + x["temporary_bytes"] for x in (one, eight)]
    each = max(1, (sizes[1] - sizes[0]) / (model.MEMBERS - 1))
    fitting = int(1 + (SHARE * CHIPS[chip].memory - sizes[0]) / each)
    moved = one["counts"]["bytes"] + (fitting - 1) * (
        eight["counts"]["bytes"] - one["counts"]["bytes"]
    ) / (model.MEMBERS - 1)
    together = fitting * row["steps"] / model.seconds(chip, eight["counts"] | {"bytes": moved})
    alone = row["steps"] / model.seconds(chip, one["counts"])
    return [
        f"`{row['case']}`",
        CHIPS[chip].title,
        f"{one['counts']['kernels']:,.0f}",
        f"{eight['counts']['kernels']:,.0f}",
        f"{each / 1e6:,.1f} MB",
        f"{fitting:,}",
        two_digits(alone),
        two_digits(together),
    ]
