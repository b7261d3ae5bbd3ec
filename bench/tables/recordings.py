"""The tables of simulated recordings: shares of what the true model foresees, sessions."""

from collections.abc import Iterable
from itertools import product

import numpy as np

from bench.sessions import STEPS as GRADIENT_STEPS
from bench.tables.markdown import Record, latest, records, table
from tests.recordings.systems import SYSTEMS

LABELS = {
    "state_space": "state-space model",
    "linear_gaussian": "linear-Gaussian",
    "arx": "ARX",
    "persistence": "persistence",
}
"""Models beside `true`, in the order of the columns; those without records are left out."""
TRUE = "true"
PEERS = {
    TRUE: "the system itself",
    "state_space": "state-space model",
    "linear_gaussian": "linear-Gaussian, here",
    "ipsid": "IPSID",
    "dynamax_em": "dynamax, EM",
    "dynamax_field": "field in dynamax' filter",
    "sindy": "SINDYc",
}
"""Models of the table with other groups' methods, in the order of its rows."""
STEPS = ("1", "10", "30")
LEAST_R2 = 0.02
"""Where the true model foresees less, a share of it says nothing."""


def cases() -> dict[tuple[str, str], list[Record]]:
    """By system and model, the latest records of each seed, of whole recordings."""
    newest = latest((x for x in records("recordings") if not x["small"]), "system", "model", "seed")
    by_case: dict[tuple[str, str], list[Record]] = {}
    for (system, model, _), record in newest.items():
        by_case.setdefault((system, model), []).append(record)
    return by_case


def mean(own: Iterable[Record], measure: str, step: str) -> float:
    """The mean of a measure over seeds; NaN where one has none."""
    values = [record[measure][step] for record in own]
    return float(np.mean([np.nan if x is None else x for x in values]))


def systems_and_models(by_case: dict[tuple[str, str], list[Record]]) -> tuple[list[str], list[str]]:
    """Systems and models with records, the true model left out."""
    systems = [x for x in SYSTEMS if (x, TRUE) in by_case]
    models = [x for x in LABELS if any((system, x) in by_case for system in systems)]
    return systems, models


def with_seeds_of(records: list[Record], others: list[Record]) -> list[Record]:
    """The records of the seeds that both have."""
    seeds = {x["seed"] for x in others}
    return [x for x in records if x["seed"] in seeds]


def shares() -> str:
    """R² of the true model, and of every other the share of that, in percent; means over seeds."""
    by_case = cases()
    systems, models = systems_and_models(by_case)
    models = [x for x in models if x != "persistence"]  # far below 0 everywhere
    rows = []
    for system in systems:
        true = by_case[system, TRUE]
        cells = [" · ".join(f"{mean(true, 'r2', k):.3f}" for k in STEPS)]
        for model in models:
            own = with_seeds_of(by_case.get((system, model), []), true)
            cells.append(share(own, with_seeds_of(true, own)) if own else "")
        rows.append((system.replace("_", " "), str(len(true)), *cells))
    heads = ["recording", "seeds", "R² of the true model at +1 · +10 · +30"]
    heads += [f"{LABELS[model]}, share" for model in models]
    return table(" | ".join(heads), rows, [x for of_case in by_case.values() for x in of_case])


def share(own: list[Record], true: list[Record]) -> str:
    """Percent of the true model's R²; R² itself where that is nearly nothing."""
    cells, is_share = [], mean(true, "r2", STEPS[0]) > LEAST_R2
    for k in STEPS:
        r2, best = mean(own, "r2", k), mean(true, "r2", k)
        cells.append(f"{100 * r2 / best:.0f}" if is_share else f"{r2:.3f}")
    return " · ".join(cells) + (" %" if is_share else " (R²)")


def calibration() -> str:
    """Coverage of 90 % intervals, and nats gained per observed value one step ahead."""
    by_case = cases()
    systems, models = systems_and_models(by_case)
    rows = []
    for system in systems:
        cells = []
        for model in (TRUE, *models):
            own = by_case.get((system, model), [])
            cells.append(held_and_gained(own) if own else "")
        rows.append((system.replace("_", " "), *cells))
    heads = ["recording", "true model", *(LABELS[model] for model in models)]
    return table(" | ".join(heads), rows, [x for of_case in by_case.values() for x in of_case])


DIVISIONS = {"even": "4 and 4", "short": "7, and 150 bins"}
FITS = {"all": "all channels in every episode", "sessions": "sessions", "alone": "each alone"}


def sessions() -> str:
    """R² of each of two sessions by fits to both, to all channels at once, and to it alone."""
    chosen = (x for x in records("sessions") if not x["small"] and x["steps"] == GRADIENT_STEPS)
    newest = latest(chosen, "system", "division", "fit", "seed")
    by_case: dict[tuple[str, str, str], list[Record]] = {}
    for (system, division, fit, _), record in newest.items():
        by_case.setdefault((system, division, fit), []).append(record)
    rows = []
    for system in dict.fromkeys(system for system, *_ in by_case):
        for division, fit in product(DIVISIONS, FITS):
            own = by_case.get((system, division, fit), [])
            cells = [
                " · ".join(
                    f"{mean([x['sessions'][name] for x in own], 'r2', k):.3f}" for k in STEPS
                )
                for name in ("first", "second")
            ]
            label = system.replace("_", " ")
            rows.append((label, DIVISIONS[division], FITS[fit], str(len(own)), *cells))
    head = "recording | episodes to learn from | fitted | seeds | R² of the first | of the second"
    return table(head, rows, newest.values())


def held_and_gained(own: list[Record]) -> str:
    """Coverage of 90 % intervals, and nats gained per observed value one step ahead."""
    held = " · ".join(f"{100 * mean(own, 'coverage', k):.0f}" for k in STEPS)
    return f"{held} %, {np.mean([x['gain'] for x in own]):.4f}"


def peers() -> str:
    """R² beside methods of other groups, its share of what the system itself has on the same seeds,
    intervals and nats; of the seeds that both the state-space model and some other method have.
    """
    by_case, rows, used = cases(), [], []
    for system in SYSTEMS:
        by_model = {model: by_case.get((system, model), []) for model in PEERS}
        others = [x for own in by_model.values() for x in own if "package" in x]
        common = with_seeds_of(by_model["state_space"] or by_model[TRUE], others)
        for model, label in PEERS.items():
            own = with_seeds_of(by_model[model], common)
            if not own:
                continue
            place = system.replace("_", " ") if model == TRUE else ""
            seeds = ", ".join(str(x) for x in sorted(x["seed"] for x in own))
            package = own[0].get("package")
            name = f"{label} ({package})" if package else label
            r2 = " · ".join(f"{mean(own, 'r2', k):.3f}" for k in ("0", *STEPS))
            part = "" if model == TRUE else share(own, with_seeds_of(by_model[TRUE], own))
            rows.append((place, seeds, name, r2, part, held_and_gained(own)))
            used += own
    heads = ("recording", "seeds", "model", "R² now · +1 · +10 · +30", "share", "within 90 %, nats")
    return table(" | ".join(heads), rows, used)
