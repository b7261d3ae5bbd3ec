"""The tables of ALLO: accuracy with exact and sampled expectations, speed."""

import re
import statistics

import numpy as np

from bench import allo_barrier
from bench.allo_accuracy import OWN, STANDARD
from bench.tables.markdown import latest, mean_and_ends, records, table

PAPER = {  # mean |cos| over 60 seeds, from coordinates; Gomez, Bowling & Machado (2024), table 1
    "GridMaze-7": 0.9996,
    "GridMaze-9": 0.9989,
    "GridMaze-17": 0.9994,
    "GridRoom-1": 0.9912,
    "GridRoom-4": 0.9965,
    "GridRoomSym-4": 0.8411,
    "GridRoom-16": 0.9990,
}


def chosen_records(preset: str, policy: str, *keys: str) -> dict:
    """The latest record of each maze, or of each other key, of a preset and a policy of walks."""
    kind = lambda record: (record["preset"], record.get("policy", "uniform"))
    chosen = (r for r in records("allo_accuracy") if kind(r) == (preset, policy))
    return latest(chosen, *keys)


def exploring_accuracy() -> str:
    """A row for each maze: the walk that explores beside the uniform one, on as much data."""
    exploring = chosen_records("allo", "exploring", "maze")
    uniform = chosen_records("allo", "uniform", "transitions", "maze")
    in_order = [exploring[maze] for maze in (*STANDARD, *OWN) if maze in exploring]
    rows = []
    for record in in_order:
        maze = record["maze"]
        beside = uniform.get((record["transitions"], maze))
        rows.append(
            (
                f"{maze} ({record['states']})",
                f"{record['transitions'] / 1e6:g} M",
                mean_and_ends(np.array(record["similarity"])),
                f"{min(record['similarity']):.4f}",
                f"{np.mean(record['ceiling']):.4f}",
                f"{np.mean(beside['similarity']):.4f}" if beside else "",
                f"{min(beside['similarity']):.4f}" if beside else "",
            )
        )
    head = (
        "maze (states) | transitions | similarity (95 % interval) | worst seed | ceiling "
        "| uniform walk | its worst seed"
    )
    return table(head, rows, in_order)


def accuracy() -> str:
    chosen = chosen_records("allo", "uniform", "transitions", "maze")
    rows, used_records = [], []
    for transitions in (3_000_000, 1_000_000):
        for maze in (*STANDARD, *OWN):
            if (record := chosen.get((transitions, maze))) is None:
                continue
            used_records.append(record)
            arrays = {k: np.array(v) for k, v in record.items() if isinstance(v, list)}
            rows.append(
                (
                    f"{maze} ({record['states']})",
                    f"{transitions / 1e6:g} M",
                    mean_and_ends(arrays["similarity"]),
                    f"{arrays['ceiling'].mean():.4f}",
                    f"{np.max(arrays['ceiling'] - arrays['similarity']):.4f}",
                    f"{arrays['near_similarity'].mean():.4f}",
                    f"{np.sum(arrays['eigenvalues_within'] == 11)} of {record['seeds']}",
                    f"{record['gradient_steps']:,}",
                    f"{PAPER[maze]:.4f}"[1:] if maze in PAPER else "",
                )
            )
    head = (
        "maze (states) | transitions | similarity (95 % interval) | ceiling | largest gap "
        "| near ties as one | seeds with all λ right | steps at most | paper"
    )
    return table(head, rows, used_records)


def barrier() -> str:
    """A row for each case and first weight of the barrier, a column for each growth."""
    by_case, rows = latest(records("allo_barrier"), "case"), []
    for case in (case for case in allo_barrier.CASES if case.name in by_case):
        record = by_case[case.name]
        cells = {(row["start"], row["step"]): row["similarity"] for row in record["rows"]}
        steps = record.get("steps", case.steps)
        for start in allo_barrier.STARTS:
            texts = (format_seeds(cells[start, step]) for step in allo_barrier.STEPS)
            rows.append((f"`{case.preset}` {case.maze}", f"{steps:,}", f"{start:g}", *texts))
    growths = " | ".join(f"growth {step:g}" for step in allo_barrier.STEPS)
    return table(f"preset, maze | steps | b at the start | {growths}", rows, by_case.values())


def format_seeds(scores: list[float | None]) -> str:
    """Mean of the seeds and the least of them; how many of them diverged."""
    finite_scores = [score for score in scores if score is not None]
    lost = f", {len(scores) - len(finite_scores)} diverged" * (len(finite_scores) < len(scores))
    return (
        f"{np.mean(finite_scores):.3f} (least {min(finite_scores):.3f}){lost}"
        if finite_scores
        else "all diverged"
    )


def sampled_accuracy() -> str:
    chosen = chosen_records("sampled", "uniform", "maze")
    rows = []
    for maze, record in chosen.items():
        arrays = {k: np.array(v) for k, v in record.items() if isinstance(v, list)}
        right = sorted({f"{x:.0f}" for x in arrays["eigenvalues_within"]})
        rows.append(
            (
                maze,
                mean_and_ends(arrays["similarity"]),
                f"{arrays['ceiling'].mean():.4f}",
                f"{arrays['near_similarity'].mean():.4f}",
                f"{arrays['near_ceiling'].mean():.4f}",
                " to ".join(right),
            )
        )
    head = (
        "maze | similarity (95 % interval) | ceiling | near ties as one | its ceiling "
        "| λ right, of 11"
    )
    return table(head, rows, chosen.values())


def directed_accuracy() -> str:
    chosen = latest(records("allo_directed"), "walk")
    rows = []
    for walk, record in chosen.items():
        arrays = {name: np.array(x) for name, x in record["scores"].items()}
        maze, _, wind = walk.partition(":")
        share = arrays["similarity"] / arrays["ceiling_similarity"]
        rows.append(
            (
                f"{maze}, wind {wind}" if wind else maze,
                mean_and_ends(arrays["right"]),
                mean_and_ends(arrays["left"]),
                f"{arrays['ceiling_right'].mean():.4f}, {arrays['ceiling_left'].mean():.4f}",
                f"{share.min():.4f}",
                f"{arrays['near_similarity'].mean():.4f}",
                f"{arrays['eigenvalue_error'].mean():.4f}",
                mean_and_ends(arrays["rank_goals"]),
                mean_and_ends(arrays["rank_sources"]),
                f"{arrays['symmetric_rank_goals'].mean():.3f}, "
                f"{arrays['symmetric_rank_sources'].mean():.3f}",
            )
        )
    head = (
        "walk | right (95 % interval) | left | ceilings | least share of the ceiling "
        "| near ties as one | largest error of μ | ranks by goal | ranks by source "
        "| ranks of commute times"
    )
    return table(head, rows, chosen.values())


def directed_mazes() -> str:
    chosen = latest(records("allo_directed_mazes"), "walk")
    rows = []
    for maze, record in sorted(chosen.items(), key=lambda item: item[1]["states"]):
        arrays = {name: np.array(x) for name, x in record["scores"].items()}
        score, ceiling = arrays["similarity"], arrays["ceiling_similarity"]
        rows.append(
            (
                f"{maze} ({record['states']})",
                f"{score.mean():.4f}",
                f"{score.min():.4f}",
                f"{ceiling.mean():.4f}, {ceiling[score.argmin()]:.4f}",
                f"{np.max(ceiling - score):.4f}",
                f"{arrays['eigenpair_angle'].max():.4f}",
                f"{record['seconds']:.0f}",
            )
        )
    head = (
        "maze (states) | similarity, mean | of the worst seed | their ceilings "
        "| largest gap below a ceiling | largest angle | seconds"
    )
    return table(head, rows, chosen.values())


def speed() -> str:
    record = records("allo_speed")[-1]
    rows = []
    for row in record["rows"]:
        seconds = row["seconds"]
        median = statistics.median(seconds)
        seeds = int(match[1]) if (match := re.search(r", (\d+) seeds$", row["name"])) else 1
        rows.append(
            (
                row["name"],
                f"{1e3 * median:.2f}",
                f"{1e3 * min(seconds):.2f} to {1e3 * max(seconds):.2f}",
                f"{seeds / median:,.0f}",
                f"{row['share_of_limit']:.0%}" if row["share_of_limit"] else "",
            )
        )
    head = (
        "GridRoom-4 | ms a gradient step, median | least to most | gradient steps/s, all seeds "
        "| of the matrix-product limit"
    )
    return table(head, rows, [record])
