"""The tables on scale: what devices exchange and when it pays, blocks, memory, how costs grow."""

from typing import NamedTuple

import numpy as np

from bench import memory as used
from bench.accelerators.chips import CHIPS, SLOW_NETWORK, Link
from bench.common_ground import summary
from bench.cost_curves import CURVES, Curve
from bench.tables.markdown import Record, format_rate, latest, records, table
from jaxrl.numerics import comparison
from train.host.program import find

TITLES = {
    "gymnax:ppo": "PPO, CartPole",
    "gymnax:recurrent": "recurrent PPO, MemoryChain",
    "gymnax:pqn": "PQN, CartPole",
    "gymnax:sac": "SAC, Pendulum",
    "snake:ppo": "PPO, Snake",
    "snake:dqn:agent.prioritised=true": "DQN, prioritised, Snake",
    "snake:rainbow": "Rainbow, Snake",
    "allo:sampled": "ALLO, sampled",
}
STATES = {  # a row for each kind of state
    "gymnax": ("ppo", "recurrent", "ppo_minatar", "dqn", "dqn_minatar", "sac"),
    "snake": ("ppo", "dqn", "rainbow", "board", "fill"),
    "two_snake": ("curriculum",),
    "durotaxis": ("linear", "state_machine"),
    "allo": ("sampled",),
}


class Joined(NamedTuple):
    """Eight devices, by what they are joined and how fast they compute."""

    link: Link
    rate: float  # floating-point operations a second of a device, its peak


LINKS = {
    "NVLink": Joined(CHIPS["h100"].links[8], 67e12),
    "Ethernet": Joined(SLOW_NETWORK, 67e12),
    "ICI": Joined(CHIPS["v5e"].links[8], 197e12),
}


def wire_bytes(row: Record, devices: int) -> float:
    """Bytes that each device sends in an update: in a ring, 2 (D - 1) / D of what is summed."""
    return (row["arrays"] + row["scalars"]) * 2 * (devices - 1) / devices


def exchange_seconds(row: Record, devices: int, link: Link) -> float:
    """Time that the exchanges of an update take, if nothing is computed meanwhile."""
    count = row["exchanges"] + row["open_exchanges"]
    return count * link.latency + wire_bytes(row, devices) / link.bandwidth


def paying_batch(row: Record, devices: int, joined: Joined) -> float:
    """Transitions of a minibatch with which a device computes for as long as it exchanges."""
    computing = row["products"] / devices / joined.rate
    return row["batch"] * exchange_seconds(row, devices, joined.link) / computing


def communication() -> str:
    """A row for each agent: what an update exchanges, and what it computes."""
    record = records("communication")[-1]
    rows = []
    for row in record["rows"]:
        wire = wire_bytes(row, record["devices"])
        rounds = f" + {row['open_exchanges']} loops" if row["open_exchanges"] else ""
        rows.append(
            (
                TITLES[row["case"]],
                f"{row['parameters']:,}",
                f"{row['gradient_steps']} × {row['batch']:,}",
                f"{row['exchanges']:,}{rounds}",
                f"{row['closed_form'] / 1e3:,.1f}",
                f"{(row['arrays'] + row['scalars']) / 1e3:,.1f}",
                f"{wire / 1e3:,.1f}",
                f"{row['products'] / 1e6:,.0f}",
                f"{row['products'] / wire:,.0f}",
            )
        )
    head = (
        "agent | parameters | gradient steps × minibatch | exchanges | gradients, kB "
        "| compiled, kB | each device sends, kB | products, Mflop | flop a byte sent"
    )
    return table(head, rows, [record])


def cores() -> str:
    """A row for each program: members on cores, beside all of them on one device."""
    by_case = latest(records("cores"), "case")
    rows = []
    for name, row in by_case.items():
        program, preset, seeds = name.split()
        middle, least, most = row["ratio"]
        rates = (format_rate(row["steps_per_second"][x]) for x in ("one", "cores"))
        rows.append(
            (
                f"`{program} {preset}`",
                seeds,
                *rates,
                f"{middle:.2f} ({least:.2f} to {most:.2f})",
            )
        )
    head = "program | seeds | on one device, steps/s of all | on the cores | times as fast"
    return table(head, rows, by_case.values())


def links() -> str:
    """The exchanges on three kinds of links: milliseconds, and the minibatch that pays."""
    record = records("communication")[-1]
    rows = []
    for row in record["rows"]:
        cells = [TITLES[row["case"]], f"{row['batch']:,}"]
        for joined in LINKS.values():
            cells.append(f"{1e3 * exchange_seconds(row, record['devices'], joined.link):.2g}")
            cells.append(format_count(paying_batch(row, record["devices"], joined)))
        rows.append(cells)
    head = " | ".join(
        ("agent", "minibatch", *(x for name in LINKS for x in (f"{name}, ms", "pays from")))
    )
    return table(head, rows, [record])


def format_count(count: float) -> str:
    """Two digits, in thousands or millions."""
    for size, unit in ((1e6, " M"), (1e3, " k")):
        if count >= 0.995 * size:
            return f"{float(f'{count / size:.2g}'):g}{unit}"
    return f"{float(f'{count:.2g}'):g}"


def blocks() -> str:
    """Score with eight blocks beside score with one."""
    chosen = latest(records("blocks"), "case", "budget", "seeds", "blocks")
    rows, used_records = [], []
    for key in dict.fromkeys(key[:-1] for key in chosen):
        pair = [chosen[*key, k] for k in (1, 8) if (*key, k) in chosen]
        if len(pair) < 2:  # not measured yet
            continue
        used_records += pair
        one, eight = (np.array(x["scores"])[:, None] for x in pair)
        better = comparison.probability_of_improvement(eight, one)
        low, high = comparison.improvement_interval(eight, one)
        note = f"; {pair[0]['note']}" if pair[0]["note"] else ""
        rows.append(
            (
                f"`{key[0]}`{note}",
                f"{key[1] / 1e6:.2g} M",
                f"{key[2]}",
                pair[0]["score"],
                *(format_score(x["scores"]) for x in pair),
                f"{better:.2f} ({low:.2f} to {high:.2f})",
            )
        )
    head = "program | steps | seeds | score | one block | eight blocks | eight are better"
    return table(head, rows, used_records)


def format_score(scores: list[float]) -> str:
    mean, low, high = summary(scores)
    return f"{mean:.4g} ({low:.4g} to {high:.4g})"


def memory() -> str:
    """Bytes by system, from the shapes of the initial state."""
    lines = [
        "| program | bytes an environment | bytes a transition | times the least | replay, MiB |",
        "|---" * 5 + "|",
    ]
    for name, presets in STATES.items():
        program = find(name, "the tables")
        for preset in presets:
            usage = used.use(program, program.presets[preset].config)
            cells = [f"`{name} {preset}`", f"{usage.environment:,.0f}" if usage.num_envs else ""]
            if usage.transitions:
                whole = usage.transition * usage.transitions / used.MIB
                times = f"{usage.transition / usage.least:.2f}"
                cells += [f"{usage.transition:,.0f}", times, f"{whole:,.1f}"]
            else:
                cells += ["", "", ""]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def growth() -> str:
    """A row for each size of an experiment: what an update costs, and how steeply that grows."""
    by_curve = latest(records("cost_curves"), "curve")
    rows = []
    for name, curve in CURVES.items():
        if name not in by_curve:  # not measured yet
            continue
        points = by_curve[name]["points"]
        several = lambda key, points=points: " · ".join(format_three(x[key]) for x in points)
        rows.append(
            (
                name,
                " · ".join(f"{x['size'] ** curve.power:,}" for x in points),
                *(several(key) for key in ("ms", "MiB", "compile_s")),
                f"{steepest(curve, points):.2f}",
                f"{curve.least}",
            )
        )
    head = "what grows | from, to | ms an update | MiB | compile, s | steepest exponent | least"
    return table(head, rows, by_curve.values())


def steepest(curve: Curve, points: list[Record]) -> float:
    """The largest x of time ~ n^x from one point to the next, n the number of things."""
    times, sizes = (np.log([x[key] for x in points]) for key in ("ms", "size"))
    return float(np.max(np.diff(times) / (curve.power * np.diff(sizes))))


def format_three(number: float) -> str:
    """Three digits."""
    return f"{float(f'{number:.3g}'):,g}"
