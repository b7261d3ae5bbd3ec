"""The tables of environments that everybody knows, and of runs that were killed."""

from bench import common_ground
from bench.peers import report
from bench.tables.markdown import Record, latest, provenance, records, table

CLEANRL = {  # docs/rl-algorithms of github.com/vwxyzjn/cleanrl at fe8d8a0: 0.5 M steps, 3 seeds
    "ppo CartPole-v1": "490.0 ± 6.1",
    "ppo Acrobot-v1": "-86.4 ± 1.3",
    "ppo MountainCar-v0": "-200.0 ± 0.0",
    "dqn CartPole-v1": "488.7 ± 16.1",
    "dqn Acrobot-v1": "-91.5 ± 7.2",
    "dqn MountainCar-v0": "-195.0 ± 8.5",
}
GYMNAX = {  # README of gymnax 1.0.1: its own agents of github.com/RobertTLange/gymnax-blines
    "CartPole-v1": "500",
    "Acrobot-v1": "-80",
    "MountainCar-v0": "-118",
    "Pendulum-v1": "-130",
    "MountainCarContinuous-v0": "92",
    "BernoulliBandit-misc": "90",
    "Breakout-MinAtar": "28",
    "Asterix-MinAtar": "15",
    "SpaceInvaders-MinAtar": "131",
    "Freeway-MinAtar": "58",
}
TITLES = {
    "ppo_speed": "PPO in CartPole, 256 × 128 steps, 4 epochs of 4 minibatches: steps/s",
    "ppo_curves": "What PPO learns of half a million steps, PureJaxRL's own sizes, ten seeds",
    "ppo_curves_wide": "The same of two million steps of 256 environments",
    "seeds": "Twenty seeds at once, 4 environments each: steps/s",
    "seeds_wide": "Twenty seeds at once, 256 environments each: steps/s",
    "dqn_speed": "DQN in CartPole, equal settings, half a million steps: steps/s",
    "dqn_seeds": "DQN in CartPole, ten seeds at once: steps/s",
    "replay_small": "A small replay beside flashbax's: calls/s",
    "replay_large": "A replay of half a gigabyte: calls/s",
}
"""The cases of `bench.peers`, in the order of the page."""


def scores() -> str:
    """A row for each case that has been measured, in the order in which they are."""
    by_case = latest(records("common_ground"), "case")
    chosen = [by_case[case.name] for case in common_ground.cases() if case.name in by_case]
    head = (
        "environment | preset | steps | return, greedy | lowest to highest seed | "
        "while it explores, last tenth | PureJaxRL, the same | CleanRL | gymnax | seconds a seed"
    )
    peers = latest(records("peer_scores"), "case")
    return table(head, [row(x, peers) for x in chosen], [*chosen, *peers.values()])


def row(record: Record, peers: dict[str, Record]) -> list[str]:
    mean, low, high = common_ground.summary(record["returns"])
    name = record["env"] + "".join(f", {x}" for x in record["flags"] if "=" in x)
    return [
        name,
        f"`{record['preset']}`",
        f"{record['steps'] / 1e6:g} M",
        f"{mean:.4g} ({low:.4g} to {high:.4g}){seed_count_note(record['returns'])}",
        f"{min(record['returns']):.4g} to {max(record['returns']):.4g}",
        format_late_return(record),
        format_late_return(peers.get(record["case"].replace("_minatar", ""))),
        CLEANRL.get(record["case"], ""),
        GYMNAX.get(record["env"], ""),
        f"{record['seconds'] / record['seeds']:.0f}",
    ]


def format_late_return(record: Record | None) -> str:
    """What agents reached while they explored, and of how many seeds if not of ten."""
    returns = [x for x in record["late"] if x is not None] if record else []
    if not record or not returns:
        return ""
    mean, low, high = common_ground.summary(returns)
    return f"{mean:.4g} ({low:.4g} to {high:.4g}){seed_count_note(returns)}"


def seed_count_note(returns: list[float]) -> str:
    """How many seeds there are, if not ten."""
    return "" if len(returns) == 10 else f", {len(returns)} seeds"


def peers() -> str:
    """A table for each case that has been measured beside PureJaxRL and flashbax."""
    by_case = latest(records("peers"), "case")
    parts = [
        f"**{TITLES[name]}**\n\n{report.table(by_case[name])}" for name in TITLES if name in by_case
    ]
    return "\n\n".join([*parts, provenance(by_case.values())])


def faults() -> str:
    """What befell the runs of each program when it was last tried, and what was lost."""
    newest = {name: record for record in records("faults") for name in record["programs"]}
    rows = [
        [
            f"`{name}`",
            *(str(counts[x]) for x in ("runs", "kill", "term", "disk")),
            str(counts["other_arrays"]),
            str(counts["other_rows"]),
        ]
        for name, record in newest.items()
        for counts in [record["programs"][name]]
    ]
    head = (
        "program | runs | SIGKILL | SIGTERM | full disk | final arrays that differ | "
        "records that differ"
    )
    return table(head, rows, newest.values())
