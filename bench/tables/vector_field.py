"""The tables of active dynamics: errors for each policy, ratios of samples, speed."""

import statistics
from collections.abc import Iterable

from bench.tables.markdown import Record, largest_last, latest, records, round_rate, table

FIELDS = ("limit_cycle", "double_limit_cycle", "multi_attractor")
POLICIES = ("d_optimal", "myopic", "bang50", "hold20", "random")


def cases() -> dict[str, Record]:
    """The latest measurement of each case of the vector fields, of those with the most steps and of
    these with the most seeds."""
    return latest(largest_last(records("vector_field_learning"), "steps", "seeds"), "case")


def scores_of(record: Record) -> dict[tuple[str, str], Record]:
    """The scores of a case by field and policy."""
    return {(x["field"], x["policy"]): x for x in record["scores"]}


def seen_state() -> str:
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
    return table(head, rows, [record])


def chosen_basis() -> str:
    """The error after 1,000 and 2,000 samples where the basis is chosen, and of each alone."""
    by_case, rows = cases(), []
    alone = [by_case[f"seen, {name}"] for name in ("bumps", "fourier", "polynomial")]
    chosen = [by_case["seen, basis chosen"], *alone]
    columns = [scores_of(record) for record in chosen]
    for field, policy in scores_of(alone[0]):  # fewer policies than where the basis is chosen
        each = [column[field, policy] for column in columns]
        cells = (f"{x['error@1000'][0]:.3f} · {x['error@2000'][0]:.3f}" for x in each)
        rows.append((field.replace("_", " "), f"`{policy}`", *cells))
    head = f"field | policy | {' | '.join(x['case'].removeprefix('seen, ') for x in chosen)}"
    return table(head, rows, chosen)


def unknown_observation() -> str:
    """The error after 1,000 and 2,000 samples where the state is seen, and where nothing is known
    of how it is observed."""
    by_case, rows = cases(), []
    seen_records = [by_case["seen, bumps and a linear part"], by_case["seen, basis chosen"]]
    latent_records = [by_case[name] for name in by_case if name.startswith("latent, ")]
    for record in latent_records:
        channels = "30 counts" if "counts" in record["case"] else "20 numbers"
        columns = [scores_of(x) for x in (*seen_records, record)]
        for field, policy in columns[-1]:
            of_columns = (column.get((field, policy)) for column in columns)
            cells = (
                f"{x['error@1000'][0]:.2f} · {x['error@2000'][0]:.2f}" if x else ""
                for x in of_columns
            )
            rows.append((field.replace("_", " "), channels, f"`{policy}`", *cells))
    head = (
        "field | channels | policy | state seen, bumps and a linear part "
        "| state seen, basis chosen | unknown observation"
    )
    return table(head, rows, [*seen_records, *latent_records])


def ratios() -> str:
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
    return table(head, rows, [record])


def space() -> str:
    """The errors in more than two dimensions."""
    by_case, rows = cases(), []
    chosen = [by_case[name] for name in ("lorenz, fourier", "oscillators, polynomial", "cart_pole")]
    for record in chosen:
        for score in record["scores"]:
            measures = ("error@500", "error@2000", "error@5000", "reachable_error@5000")
            cells = (f"{score[x][0]:.3f} ± {score[x][1]:.3f}" for x in measures)
            rows.append((score["field"].replace("_", " "), f"`{score['policy']}`", *cells))
    head = "field | policy | error at 500 | at 2,000 | at 5,000 samples | within reach at 5,000"
    return table(head, rows, chosen)


def errors_at_2000(names: Iterable[str], policies: Iterable[str]) -> str:
    """The error after 2,000 samples on each of a case's fields, for each policy."""
    by_case, rows = cases(), []
    chosen = [by_case[name] for name in names]
    for record in chosen:
        scores = scores_of(record)
        fields = [field for field in FIELDS if (field, "d_optimal") in scores]
        errors = lambda policy, scores=scores, fields=fields: ", ".join(
            f"{scores[field, policy]['error@2000'][0]:.3f}" for field in fields
        )
        rows.append((f"`{record['case']}`", *map(errors, policies)))
    return table(f"case | {' | '.join(f'`{x}`' for x in policies)}", rows, chosen)


def filtered_state() -> str:
    names = ("filtered", "filtered, noise 0.1", "filtered, noise 1")
    names = (*names, "filtered, unknown process noise", "spikes")
    return errors_at_2000(names, POLICIES[:3])


def authority() -> str:
    names = ("authority 0.3", "seen", "authority 2", "process noise 0.1", "unknown process noise")
    return errors_at_2000(names, POLICIES)


def vae() -> str:
    record = cases()["sequence_vae"]
    scores, rows = scores_of(record), []
    for policy in POLICIES:
        score = scores["limit_cycle", policy]
        error_keys = (f"error@{steps}" for steps in (2_000, 5_000, 10_000))
        errors = (f"{score[x][0]:.3f} ± {score[x][1]:.3f}" for x in error_keys)
        rows.append((f"`{policy}`", *errors, f"{record['r2_10'][policy][0]:.3f}"))
    head = "policy | error at 2,000 | at 5,000 | at 10,000 | R² of the channels 10 steps ahead"
    return table(head, rows, [record])


def baselines() -> str:
    baseline_records = largest_last(records("vector_field_baselines"), "steps", "seeds")
    names = {"persistence": "persistence", "arx": "ARX", "linear_gaussian": "linear-Gaussian"}
    newest = {policy: record for record in baseline_records for policy in record["r2"]["arx"]}
    rows = [
        (
            f"`{policy}`",
            *(f"{newest[policy]['r2'][x][policy][k]:.3f}" for k in ("10", "30") for x in names),
        )
        for policy in POLICIES
        if policy in newest
    ]
    heads = [f"{label}, {k} steps" for k in ("10", "30") for label in names.values()]
    return table(f"recorded by | {' | '.join(heads)}", rows, newest.values())


def vae_others() -> str:
    """The sequence VAE in three latent dimensions, and with another filter."""
    kinds = ("gru", "lstm", "lorenz, gru", "lorenz, lstm")
    by_case = cases()
    chosen = [by_case[name] for kind in kinds if (name := f"sequence_vae, {kind}") in by_case]
    measures = ("error@2000", "error@10000", "reachable_error@10000")
    rows = [
        (
            f"`{record['case']}`",
            f"`{score['policy']}`",
            *(f"{score[x][0]:.3f} ± {score[x][1]:.3f}" for x in measures),
            f"{record['cosine'][score['policy']][0]:.3f}",
            *(f"{record['r2'][score['policy']][k][0]:.3f}" for k in ("1", "10", "30")),
        )
        for record in chosen
        for score in record["scores"]
    ]
    head = (
        "case | policy | error at 2,000 | at 10,000 | within reach at 10,000 | cosine "
        "| R² 1 step ahead | 10 | 30"
    )
    return table(head, rows, chosen)


def speed() -> str:
    record = records("vector_field_speed")[-1]
    median = {
        (row["name"], row["experiments"]): statistics.median(row["steps_per_second"])
        for row in record["rows"]
    }
    words = {
        "state seen": "the state observed",
        "filtered": "the state filtered from 20 channels",
        "sequence VAE": "sequence VAE, a gradient step each, 25 × 25 centres",
    }
    columns = (("random", 1), ("random", 20), ("myopic", 1), ("d_optimal", 1), ("d_optimal", 20))
    rows = [
        (
            words[kind],
            *(
                f"{round_rate(median[f'{kind}, {policy}', number]):,.0f}"
                for policy, number in columns
            ),
        )
        for kind in words
    ]
    head = " | random, one | random, 20 side by side | myopic, one | d_optimal, one | d_optimal, 20"
    return table(head, rows, [record])
