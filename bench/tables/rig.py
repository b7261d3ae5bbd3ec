"""The table of a rig in a closed loop: how long it waits for its input."""

from bench.tables.markdown import records, table


def latency() -> str:
    """Times of answers, of the newest of the measurements with the most samples."""
    record = max(reversed(records("rig_latency")), key=lambda x: x["rows"][0]["samples"])
    rows = [
        (
            f"`{row['policy']}`",
            f"{1e3 * row['interval_s']:g} ms",
            f"{row['median_ms']:.1f} ms",
            f"{row['ms_99']:.1f} ms",
            f"{row['ms_999']:.1f} ms",
            f"{100 * row['share_within_goal']:.1f} %",
            f"{row['samples']:,}",
            f"{row['fits']}",
        )
        for row in record["rows"]
    ]
    head = (
        "policy | a sample every | median | 99 % within | 99.9 % within | within 5 ms | samples "
        "| fits beside"
    )
    text = table(head, rows, [record])
    return text + f"\n\n{record['note']}." if record["note"] else text
