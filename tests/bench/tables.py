"""Writes the tables of the documentation from the measurements in `tests/bench/results/`.

It also writes which modules the pages of the API show: all that there are.

python -m tests.bench.tables [--check]

A page in `docs/` marks where a table stands, and what is between the marks is replaced:

    <!-- table: snake_speed -->
    <!-- end -->

With `--check` nothing is written, and the exit code is 1 if a page differs from the measurements.
Of several measurements of the same thing the latest counts.
"""

import argparse
import json
import re
import statistics
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from tests.bench import snake_scores
from tests.bench.allo_accuracy import OWN, STANDARD
from train.host.pictures import interval

ROOT = Path(__file__).resolve().parents[2]
RESULTS = Path(__file__).parent / "results"
MARKED = re.compile(r"(<!-- table: (\w+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
PAPER = {  # mean |cos| over 60 seeds, from coordinates; Gomez, Bowling & Machado (2024), table 1
    "GridMaze-7": 0.9996,
    "GridMaze-9": 0.9989,
    "GridMaze-17": 0.9994,
    "GridRoom-1": 0.9912,
    "GridRoom-4": 0.9965,
    "GridRoomSym-4": 0.8411,
    "GridRoom-16": 0.9990,
}
PROGRAMS = ("snake", "two_snake", "allo", "durotaxis", "vector_field")
SHOWN = {"train.host.command": "train.host.command.main"}
"""What the API shows in the place of a module whose usage line Markdown takes for a link."""
FIELDS = ("limit_cycle", "double_limit_cycle", "multi_attractor")
POLICIES = ("d_optimal", "myopic", "bang50", "hold20", "random")
Record = dict[str, Any]


def records(name: str) -> list[Record]:
    """The measurements of one file, oldest first."""
    return sorted(json.loads((RESULTS / f"{name}.json").read_text()), key=lambda r: r["date"])


def latest(found: Iterable[Record], *names: str) -> dict[Any, Record]:
    """The latest record for each value of these fields, a tuple where they are several."""
    key = lambda record: tuple(record.get(name) for name in names)
    chosen = {key(record): record for record in found}
    return {k[0] if len(names) == 1 else k: record for k, record in chosen.items()}


def markdown(head: str, rows: Iterable[Iterable[str]], measured: Iterable[Record] = ()) -> str:
    """A table, and below it on what and when it was measured."""
    columns = head.split(" | ")
    lines = [f"| {head} |", "|---" * len(columns) + "|"]
    for row in rows:
        cells = list(row)
        assert len(cells) == len(columns), (head, cells)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, "", f"{provenance(measured)}"])


def provenance(measured: Iterable[Record]) -> str:
    """Machines, versions and days of measurements."""
    measured = list(measured)
    machines = {
        f"{r['cores']} virtual cores of an {hardware(r['cpu'])}, {accelerator(r['device'])}, "
        f"Python {r['python']}, JAX {r['versions']['jax']}"
        for r in measured
    }
    days = sorted({r["date"][:10] for r in measured})
    return f"*{'; '.join(sorted(machines))}; {' to '.join(sorted({days[0], days[-1]}))}.*"


def accelerator(device: str) -> str:
    """What computed beside the cores."""
    return "no GPU" if device == "cpu" else device


def hardware(cpu: str) -> str:
    """The processor's name without trademarks."""
    return cpu.replace("(R)", "").replace(" Processor", "")


def thousands(rate: float) -> str:
    """A rate, rounded to thousands, or to hundreds below ten thousand."""
    return f"{round(rate, -3 if rate >= 10_000 else -2):,.0f}"


def mean_and_interval(values: Iterable[float], digits: int) -> str:
    """Mean ± half of the 95 % Student interval, which takes three values."""
    array = np.array(list(values), float)
    half = float(interval(array)) if len(array) > 2 else float("nan")
    return f"{array.mean():.{digits}f}" + (f" ± {half:.{digits}f}" if np.isfinite(half) else "")


def snake_speed() -> str:
    record = records("snake_speed")[-1]
    rows = []
    for name, runs in record["steps_per_second"].items():
        millions = [run / 1e6 for run in runs]
        rows.append(
            (
                name,
                f"{statistics.median(millions):.2f}",
                f"{min(millions):.2f} to {max(millions):.2f}",
                f"{record['compile_seconds'][name]:.1f}",
            )
        )
    return markdown("Snake | M steps/s, median | least to most | compile, s", rows, [record])


def snake_speed_ratios() -> str:
    record = records("snake_speed")[-1]
    rows = [(name, f"{times:.1f}") for name, times in record["ratios"].items()]
    return markdown("ratio | times", rows, [record])


def snake_training_speed() -> str:
    rows, chosen = [], {}
    for record in records("snake_training_speed"):
        chosen |= {row["name"]: (record, row) for row in record["rows"]}
    for name, (_, row) in chosen.items():
        rates = row["steps_per_second"]
        rows.append(
            (
                f"`{name}`",
                thousands(statistics.median(rates)),
                f"{thousands(min(rates))} to {thousands(max(rates))}",
                f"{row['share_of_limit']:.0%}" if "share_of_limit" in row else "",
                f"{row['compile_s']:.1f}",
            )
        )
    head = "algorithm | steps/s, median | least to most | of the matrix-product limit | compile, s"
    return markdown(head, rows, [record for record, _ in chosen.values()])


def snake_scores_of(budget: str) -> str:
    """Every algorithm and observation after one budget, as `snake_scores.md` has them."""
    found = [r for r in records("snake_scores") if r["budget"] == budget]
    table = snake_scores.table(found, budget).split("\n\n", 1)[1].strip()
    return f"{table}\n\n{provenance(found)}"


def snake_scores_summary() -> str:
    found = [r for r in records("snake_scores") if r["budget"] == "steps"]
    chosen = latest(found, "algorithm", "observation")
    names = [name for name in snake_scores.ALGORITHMS if (name, "tail") in chosen]
    rows = []
    for name in names:
        means = [
            np.array([seed["mean"] for seed in chosen[name, observation]["greedy"]])
            for observation in snake_scores.OBSERVATIONS
        ]
        rows.append([f"`{name}`", *(f"{snake_scores.interquartile_mean(x):.1f}" for x in means)])
    head = f"algorithm | {' | '.join(f'`{x}`' for x in snake_scores.OBSERVATIONS)}"
    return markdown(head, rows, found)


def allo_accuracy() -> str:
    chosen = latest(
        (r for r in records("allo_accuracy") if r["preset"] == "allo"), "transitions", "maze"
    )
    rows, used = [], []
    for transitions in (3_000_000, 1_000_000):
        for maze in (*STANDARD, *OWN):
            if (record := chosen.get((transitions, maze))) is None:
                continue
            used.append(record)
            of = {k: np.array(v) for k, v in record.items() if isinstance(v, list)}
            rows.append(
                (
                    f"{maze} ({record['states']})",
                    f"{transitions / 1e6:g} M",
                    around(of["similarity"]),
                    f"{of['ceiling'].mean():.4f}",
                    f"{np.max(of['ceiling'] - of['similarity']):.4f}",
                    f"{of['near_similarity'].mean():.4f}",
                    f"{np.sum(of['eigenvalues_within'] == 11)} of {record['seeds']}",
                    f"{record['gradient_steps']:,}",
                    f"{PAPER[maze]:.4f}"[1:] if maze in PAPER else "",
                )
            )
    head = (
        "maze (states) | transitions | similarity (95 % interval) | ceiling | largest gap "
        "| near ties as one | seeds with all λ right | steps at most | paper"
    )
    return markdown(head, rows, used)


def around(values: np.ndarray) -> str:
    """A mean with the ends of its 95 % interval, at most 1."""
    mean, half = values.mean(), float(interval(values))
    return f"{mean:.4f} ({mean - half:.4f} to {min(mean + half, 1.0):.4f})"


def allo_sampled() -> str:
    chosen = latest((r for r in records("allo_accuracy") if r["preset"] == "sampled"), "maze")
    rows = []
    for maze, record in chosen.items():
        of = {k: np.array(v) for k, v in record.items() if isinstance(v, list)}
        right = sorted({f"{x:.0f}" for x in of["eigenvalues_within"]})
        rows.append(
            (
                maze,
                around(of["similarity"]),
                f"{of['ceiling'].mean():.4f}",
                f"{of['near_similarity'].mean():.4f}",
                f"{of['near_ceiling'].mean():.4f}",
                " to ".join(right),
            )
        )
    head = (
        "maze | similarity (95 % interval) | ceiling | near ties as one | its ceiling "
        "| λ right, of 11"
    )
    return markdown(head, rows, chosen.values())


def allo_speed() -> str:
    record = records("allo_speed")[-1]
    rows = []
    for row in record["rows"]:
        seconds = row["seconds"]
        median = statistics.median(seconds)
        seeds = int(found[1]) if (found := re.search(r", (\d+) seeds$", row["name"])) else 1
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
    return markdown(head, rows, [record])


def durotaxis_learning() -> str:
    found = [r for r in records("durotaxis_learning") if "learnt_at" in r]
    chosen = latest(found, "name")
    names = ("linear", "pooled", "normal", "three_part", "state_machine")
    rows = []
    for record in (chosen[name] for name in names):
        when = [steps for steps in record["learnt_at"] if steps is not None]
        rows.append(
            (
                f"`{record['name']}`",
                mean_and_interval(record["arrived"], 3),
                mean_and_interval(record["length"], 1),
                f"{np.median(when):,.0f} ({len(when)} of {record['seeds']})" if when else "never",
            )
        )
    head = "run | arrived | steps to the end | steps of training until 90 % arrive"
    return markdown(head, rows, [chosen[name] for name in names])


def durotaxis_speed() -> str:
    record = records("durotaxis_speed")[-1]
    best = {
        (row["name"], row["colonies"], row["capacity"]): max(row["steps_per_second"])
        for row in record["rows"]
    }
    words = {"unseen": "unseen", "local": "without hull and centrality", "full": "all features"}
    rows = [
        (
            f"{colonies:,}",
            words[seen],
            *(
                thousands(best[f"directed {seen}, {policy}", colonies, 128])
                for policy in ("hold", "small")
            ),
        )
        for colonies in (2048, 256)
        for seen in words
    ]
    return markdown("colonies | observation | 75 cells, steps/s | 6 cells, steps/s", rows, [record])


def durotaxis_training_speed() -> str:
    record = records("durotaxis_speed")[-1]
    rows = [
        (row["name"].removeprefix("training, "), f"{coarse(max(row['steps_per_second'])):,.0f}")
        for row in record["rows"]
        if row["name"].startswith("training")
    ]
    return markdown("network | training, steps/s", rows, [record])


def cases() -> dict[str, Record]:
    """The latest measurement of each case of the vector fields."""
    return latest(records("vector_field_learning"), "case")


def scores_of(record: Record) -> dict[tuple[str, str], Record]:
    """By field and policy."""
    return {(x["field"], x["policy"]): x for x in record["scores"]}


def vector_field_seen() -> str:
    record = cases()["seen"]
    scores, rows = scores_of(record), []
    for field in FIELDS:
        for policy in POLICIES:
            score = scores[field, policy]
            measures = ("error@500", "error@2000", "error@5000", "reachable_error@5000")
            rows.append(
                (
                    field.replace("_", " "),
                    f"`{policy}`",
                    *(f"{score[x][0]:.3f} ± {score[x][1]:.3f}" for x in measures),
                    f"{100 * score['coverage@5000'][0]:.0f} %",
                )
            )
    head = (
        "field | policy | error at 500 | at 2,000 | at 5,000 samples | within reach at 5,000 "
        "| visited"
    )
    return markdown(head, rows, [record])


def vector_field_ratios() -> str:
    record = cases()["seen"]
    ratios = {(x["field"], x["policy"], x["baseline"]): x for x in record["ratios"]}
    scores, rows = scores_of(record), []
    for field in FIELDS:
        for policy in ("d_optimal", "myopic"):
            cells = []
            for baseline in ("random", "hold20", "bang50"):
                mean, margin = scores[field, baseline]["error@2000"]
                if mean + margin >= 1:  # as good as to know nothing: there is nothing to reach
                    cells.append(f"`{baseline}` learns nothing")
                    continue
                x = ratios[field, policy, baseline]
                cells.append(f"{x['ratio']:.1f} ({x['low']:.1f} to {x['high']:.1f})")
            rows.append((field.replace("_", " "), f"`{policy}`", *cells))
    head = "field | policy | than `random` | than `hold20` | than `bang50`"
    return markdown(head, rows, [record])


def errors_at_2000(names: Iterable[str], policies: Iterable[str]) -> str:
    """The error after 2,000 samples on each of a case's fields, for each policy."""
    found, rows = cases(), []
    chosen = [found[name] for name in names]
    for record in chosen:
        scores = scores_of(record)
        fields = [field for field in FIELDS if (field, "d_optimal") in scores]
        of = lambda policy, scores=scores, fields=fields: ", ".join(
            f"{scores[field, policy]['error@2000'][0]:.3f}" for field in fields
        )
        rows.append((f"`{record['case']}`", *map(of, policies)))
    return markdown(f"case | {' | '.join(f'`{x}`' for x in policies)}", rows, chosen)


def vector_field_filtered() -> str:
    names = ("filtered", "filtered, noise 0.1", "filtered, noise 1")
    names = (*names, "filtered, unknown process noise", "spikes")
    return errors_at_2000(names, POLICIES[:3])


def vector_field_authority() -> str:
    names = ("authority 0.3", "seen", "authority 2", "process noise 0.1", "unknown process noise")
    return errors_at_2000(names, POLICIES)


def vector_field_vae() -> str:
    record = cases()["sequence_vae"]
    scores, rows = scores_of(record), []
    for policy in POLICIES:
        score = scores["limit_cycle", policy]
        at = (f"error@{steps}" for steps in (2_000, 5_000, 10_000))
        errors = (f"{score[x][0]:.3f} ± {score[x][1]:.3f}" for x in at)
        rows.append((f"`{policy}`", *errors, f"{record['r2_10'][policy][0]:.3f}"))
    head = "policy | error at 2,000 | at 5,000 | at 10,000 | R² of the channels 10 steps ahead"
    return markdown(head, rows, [record])


def vector_field_speed() -> str:
    record = records("vector_field_speed")[-1]
    median = {
        (row["name"], row["experiments"]): statistics.median(row["steps_per_second"])
        for row in record["rows"]
    }
    words = {
        "state seen": "the state observed, 15 × 15 centres",
        "filtered": "the state filtered from 20 channels",
        "sequence VAE": "sequence VAE, a gradient step each, 25 × 25 centres",
    }
    shown = (("random", 1), ("random", 20), ("myopic", 1), ("d_optimal", 1), ("d_optimal", 20))
    rows = [
        (
            words[kind],
            *(f"{coarse(median[f'{kind}, {policy}', number]):,.0f}" for policy, number in shown),
        )
        for kind in words
    ]
    head = " | random, one | random, 20 side by side | myopic, one | d_optimal, one | d_optimal, 20"
    return markdown(head, rows, [record])


def coarse(rate: float) -> float:
    """A rate rounded to hundreds, or to tens below two thousand."""
    return round(rate, -2 if rate >= 2_000 else -1)


def modules(folder: str, inner: bool = False) -> str:
    """The modules of a folder, of inner folders too if wanted, as mkdocstrings is told of them."""
    paths = sorted((ROOT / folder).glob("**/*.py" if inner else "*.py"))
    names = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in paths
        if not path.name.startswith("__")
    ]
    return shown(names)


def shown(names: Iterable[str]) -> str:
    """Names of modules as mkdocstrings is told of them."""
    return "\n\n".join(f"::: {SHOWN.get(name, name)}" for name in names)


TABLES: dict[str, Callable[[], str]] = {
    "allo_accuracy": allo_accuracy,
    "allo_sampled": allo_sampled,
    "allo_speed": allo_speed,
    "durotaxis_learning": durotaxis_learning,
    "durotaxis_speed": durotaxis_speed,
    "durotaxis_training_speed": durotaxis_training_speed,
    "modules_agents": lambda: modules("jaxrl/agents"),
    "modules_dynamics": lambda: modules("jaxrl/dynamics"),
    "modules_envs": lambda: modules("envs", inner=True),
    "modules_host": lambda: modules("train/host"),
    "modules_jaxrl": lambda: modules("jaxrl"),
    "modules_networks": lambda: modules("jaxrl/networks"),
    "modules_programs": lambda: shown(f"train.{name}.config" for name in PROGRAMS),
    "modules_spectral": lambda: modules("jaxrl/spectral"),
    "snake_scores_episodes": lambda: snake_scores_of("episodes"),
    "snake_scores_steps": lambda: snake_scores_of("steps"),
    "snake_scores_summary": snake_scores_summary,
    "snake_speed": snake_speed,
    "snake_speed_ratios": snake_speed_ratios,
    "snake_training_speed": snake_training_speed,
    "vector_field_authority": vector_field_authority,
    "vector_field_filtered": vector_field_filtered,
    "vector_field_ratios": vector_field_ratios,
    "vector_field_seen": vector_field_seen,
    "vector_field_speed": vector_field_speed,
    "vector_field_vae": vector_field_vae,
}


def pages() -> list[Path]:
    """Every page that may hold tables."""
    return sorted((ROOT / "docs").rglob("*.md"))


def filled(text: str) -> str:
    """A page with all its tables as they are now. Raises KeyError for a table that is unknown."""

    def fill(found: re.Match[str]) -> str:
        return f"{found[1]}\n{TABLES[found[2]]()}\n\n{found[4]}"

    return MARKED.sub(fill, text)


def differing() -> dict[Path, str]:
    """Pages that are not as the measurements say, and what they should be."""
    texts = {path: path.read_text() for path in pages()}
    return {path: new for path, text in texts.items() if (new := filled(text)) != text}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="write nothing; 1 if pages differ")
    options = parser.parse_args(arguments)
    found = differing()
    for path, text in found.items():
        print(f"{path.relative_to(ROOT)} {'differs' if options.check else 'written'}")
        if not options.check:
            path.write_text(text)
    return 1 if options.check and found else 0


if __name__ == "__main__":
    sys.exit(main())
