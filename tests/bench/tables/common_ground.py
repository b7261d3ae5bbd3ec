"""The tables of environments that everybody knows, and of runs that were killed."""

from tests.bench import common_ground
from tests.bench.tables.markdown import Record, latest, records, table

CLEANRL = {  # docs/rl-algorithms of github.com/vwxyzjn/cleanrl at fe8d8a0: 0.5 M steps, 3 seeds
    "ppo CartPole-v1": "490.0 ± 6.1",
    "ppo Acrobot-v1": "-86.4 ± 1.3",
    "ppo MountainCar-v0": "-200.0 ± 0.0",
    "dqn CartPole-v1": "488.7 ± 16.1",
    "dqn Acrobot-v1": "-91.5 ± 7.2",
    "dqn MountainCar-v0": "-195.0 ± 8.5",
}
PAGE = "https://github.com/vwxyzjn/cleanrl/tree/fe8d8a0/docs/rl-algorithms"


def scores() -> str:
    """A row for each case that has been measured, in the order in which they are."""
    found = latest(records("common_ground"), "case")
    chosen = [found[case.name] for case in common_ground.cases() if case.name in found]
    head = (
        "environment | preset | steps | return, greedy | lowest to highest seed | "
        "while it explores, last tenth | CleanRL | seconds a seed"
    )
    return table(head, map(row, chosen), chosen)


def row(record: Record) -> list[str]:
    mean, low, high = common_ground.summary(record["returns"])
    late = [x for x in record["late"] if x is not None]
    name = record["env"] + "".join(f", {x}" for x in record["flags"] if "=" in x)
    return [
        name,
        f"`{record['preset']}`",
        f"{record['steps'] / 1e6:g} M",
        f"{mean:.4g} ({low:.4g} to {high:.4g})",
        f"{min(record['returns']):.4g} to {max(record['returns']):.4g}",
        f"{sum(late) / len(late):.4g}" if late else "",
        CLEANRL.get(record["case"], ""),
        f"{record['seconds'] / record['seeds']:.0f}",
    ]


def faults() -> str:
    """What befell the runs of each program, and what was lost."""
    record = records("faults")[-1]
    rows = [
        [
            f"`{name}`",
            *(str(found[x]) for x in ("runs", "kill", "term", "disk")),
            str(found["other_arrays"]),
            str(found["other_rows"]),
        ]
        for name, found in record["programs"].items()
    ]
    head = (
        "program | runs | SIGKILL | SIGTERM | full disk | final arrays that differ | "
        "records that differ"
    )
    return table(head, rows, [record])
