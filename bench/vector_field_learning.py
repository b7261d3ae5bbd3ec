"""How few samples teach a vector field: every case, with intervals over its three to ten seeds.

python -m bench.vector_field_learning [CASE ...] [--seeds 10] [--steps 2000]
"""

import argparse
import dataclasses
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np

from bench.snake_speed import append, machine
from jaxrl.dynamics import bases, rbf
from jaxrl.dynamics.planning import icem
from jaxrl.dynamics.planning.stimulation import Config as Policy
from jaxrl.dynamics.planning.stimulation_config import Weights
from train.host.files.metrics_file import read_metrics
from train.host.running.run import run
from train.host.showing.pictures import interval
from train.vector_field.config import Config, World
from train.vector_field.experiment.comparisons import comparisons
from train.vector_field.experiment.run_record import error_curves, stops
from train.vector_field.presets import EVERY_FIELD, PRESETS
from train.vector_field.training import make_training

RESULTS = Path(__file__).parent / "results" / "vector_field_learning.json"
AT = 2_000  # samples at which baselines are caught up with
SCORED_AT = (250, 500, 1_000, 2_000, 5_000, 10_000)
POLICIES = ("d_optimal", "myopic", "bang50", "bang20", "hold20", "random", "off")
FEW = ("d_optimal", "myopic", "bang50", "hold20", "random")


def with_bumps(config: Config) -> Config:
    """`config` with bumps alone, as most cases were measured."""
    return replace(config, bayesian=replace(config.bayesian, basis="bumps"))


SEEN, FILTERED = with_bumps(PRESETS["seen"].config), with_bumps(PRESETS["vector_field"].config)
LINEAR = replace(SEEN, bayesian=replace(SEEN.bayesian, linear=True))
THREE = SEEN.env.fields
TWO = ("limit_cycle", "multi_attractor")


def case(base: Config, steps: int, policies: tuple[str, ...] = FEW, **world: Any) -> Config:
    """`base` with another budget and another world."""
    env = replace(base.env, **world)
    return replace(base, policies=policies, env=env, run=replace(base.run, total_steps=steps))


def with_policy(base: Config, **changes: Any) -> Config:
    """`base` with other settings of its policies, those of the search among them."""
    ours = base.bayesian.policy
    search_fields = {field.name for field in dataclasses.fields(icem.Config)}
    search = {name: x for name, x in changes.items() if name in search_fields}
    policy_changes = {name: x for name, x in changes.items() if name not in search_fields}
    policy: Policy = replace(ours, planner=replace(ours.planner, **search), **policy_changes)
    return replace(base, bayesian=replace(base.bayesian, policy=policy))


def with_unknown_noise(config: Config) -> Config:
    """`config` whose process noise is a guess, three times too large."""
    return replace(config, noise_is_known=False)


def with_basis(config: Config, basis: bases.Kind) -> Config:
    """`config` with another basis for its field."""
    grid = CUBE if config.env.dimension == 3 else config.bayesian.grid
    return replace(config, bayesian=replace(config.bayesian, basis=basis, grid=grid))


CUBE = rbf.Grid(per_axis=8)
FIVE = replace(SEEN.run, total_steps=5_000, num_seeds=5)
PLANS = case(SEEN, 2_000, ("d_optimal",), fields=TWO)
WEAK = case(SEEN, 5_000, ("d_optimal", "myopic", "bang50"), fields=TWO, authority=0.3)
ALL = ("d_optimal", "a_optimal", "disagreement", "myopic")
LORENZ = replace(case(PRESETS["lorenz"].config, 5_000), run=FIVE)
EIGHT = replace(case(PRESETS["oscillators"].config, 5_000), run=FIVE)
NETWORK = replace(EIGHT, env=replace(EIGHT.env, fields=("network",)))
BEHIND = replace(PRESETS["cart_pole"].config.bayesian, belief="filtered")
OTHERS = ("d_optimal", "rnd", "disagreement", "d_optimal+rnd", "hold20")
TOWARDS = replace(SEEN.bayesian.policy, goal=(1.5, 0.0), weights=Weights(goal=0.3))
VAE = replace(
    PRESETS["sequence_vae"].config,
    policies=FEW,
    run=replace(PRESETS["sequence_vae"].config.run, num_seeds=10),
)
THRICE = replace(VAE.run, num_seeds=3)
TRIO = ("d_optimal", "bang50", "random")
VAE_SPACE = replace(  # 15 bumps along each of three axes would be 3,375: waves instead
    VAE,
    env=World(("lorenz",), 3, num_inputs=3),
    model=replace(VAE.model, field="fourier", grid=replace(VAE.model.grid, dims=3)),
    plane=(0, 2),
)
SIX = (*EVERY_FIELD, "duffing", "snowman", "van_der_pol")
COUNTS = {"observation": "loglinear", "noise": "poisson", "channels": 30}
SPACE = replace(PRESETS["latent"].config, plane=(0, 2))
LATENT = {
    **{
        f"latent, {prefix}{field}": case(
            PRESETS["latent"].config, 2_000, ("myopic", "bang50"), fields=(field,), **channels
        )
        for prefix, channels in (("", {}), ("counts, ", COUNTS))
        for field in SIX
    },
    "latent, lorenz": case(
        SPACE, 2_000, ("myopic", "bang50"), fields=("lorenz",), dimension=3, num_inputs=3
    ),
}
CASES: dict[str, Config] = {
    "seen, basis chosen": case(PRESETS["seen"].config, 2_000, FEW, fields=SIX),
    **{
        f"seen, {kind}": with_basis(
            case(PRESETS["seen"].config, 2_000, ("myopic", "bang50"), fields=SIX), kind
        )
        for kind in get_args(bases.Kind)
    },
    "seen, bumps and a linear part": case(LINEAR, 2_000, ("myopic", "bang50"), fields=SIX),
    **LATENT,
    "seen": case(SEEN, 5_000, POLICIES),
    "duffing": case(with_bumps(PRESETS["duffing"].config), 5_000, POLICIES),
    "duffing weaker": case(with_bumps(PRESETS["duffing"].config), 5_000, FEW, authority=0.5),
    "authority 0.3": case(SEEN, 5_000, FEW, authority=0.3),
    "authority 2": case(SEEN, 2_000, FEW, authority=2.0),
    "process noise 0.1": case(SEEN, 2_000, FEW, process_noise=0.1),
    "unknown process noise": with_unknown_noise(case(SEEN, 2_000, FEW)),
    "filtered": case(FILTERED, 2_000, FEW, fields=THREE),
    "filtered, noise 0.1": case(FILTERED, 2_000, FEW, fields=THREE, observation_noise=0.1),
    "filtered, noise 1": case(FILTERED, 2_000, FEW, fields=THREE, observation_noise=1.0),
    "filtered, unknown process noise": with_unknown_noise(case(FILTERED, 2_000, FEW, fields=THREE)),
    "spikes": case(with_bumps(PRESETS["spikes"].config), 2_000, FEW),
    "family": case(PRESETS["family"].config, 500, ("d_optimal", "a_optimal", *FEW[1:])),
    "objectives": case(SEEN, 2_000, ALL, fields=THREE),
    "objectives, propagated": with_policy(
        case(FILTERED, 2_000, ("d_optimal", "a_optimal"), fields=THREE, observation_noise=0.1),
        propagate=True,
    ),
    "plans of 10, 2 draws": with_policy(PLANS, iterations=2),
    "plans of 10": PLANS,
    "plans of 30": with_policy(PLANS, horizon=30, every=5),
    "plans of 30, 8 draws": with_policy(case(SEEN, 2_000, FEW), horizon=30, every=5, iterations=8),
    "plans of 30, authority 0.3": with_policy(WEAK, horizon=30, every=5),
    **{f"lorenz, {kind}": with_basis(LORENZ, kind) for kind in get_args(bases.Kind)},
    **{f"oscillators, {kind}": with_basis(EIGHT, kind) for kind in ("fourier", "polynomial")},
    **{f"network, {kind}": with_basis(NETWORK, kind) for kind in ("fourier", "polynomial")},
    "cart_pole": case(PRESETS["cart_pole"].config, 5_000),
    "cart_pole, filtered": case(
        replace(PRESETS["cart_pole"].config, bayesian=BEHIND),
        5_000,
        observation="full",
        noise="gaussian",
    ),
    "objectives, others": case(SEEN, 2_000, OTHERS, fields=THREE),
    "goal": replace(
        case(SEEN, 2_000, ("d_optimal+goal", "goal", "d_optimal", "off"), fields=TWO),
        bayesian=replace(SEEN.bayesian, policy=TOWARDS),
    ),
    "stopping": replace(case(SEEN, 5_000, ("d_optimal", "hold20"), fields=THREE), stop_gain=0.02),
    "sequence_vae": VAE,
    **{
        f"sequence_vae, {where}{kind}": replace(
            base, policies=TRIO, model=replace(base.model, recognition=kind), run=THRICE
        )
        for where, base in (("", VAE), ("lorenz, ", VAE_SPACE))
        for kind in ("gru", "lstm")
    },
}


def measure(name: str, config: Config) -> dict[str, Any]:
    """A case: final scores, what they were on the way, and how policies compare."""
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as directory:
        config = replace(config, run=replace(config.run, directory=f"{directory}/run"))
        result = run(make_training(config), config, "vector_field", name)
        rows = read_metrics(result.directory)
    assert result.evaluation
    at, of_seeds = min(AT, config.run.total_steps), result.evaluation.content["seeds"]
    r2 = {name: forecast(of_seeds, name) for name in config.policies}
    return {
        "case": name,
        "seeds": config.run.num_seeds,
        "steps": config.run.total_steps,
        "compared_at": at,
        "scores": [
            score
            for f in range(len(config.env.fields))
            for score in interim_scores(rows, config, f)
        ],
        "ratios": comparisons(rows, config, at),
        "r2_10": {name: r2[name]["10"] for name in config.policies},
        "r2": r2,
        "cosine": {
            name: np.mean([seed[name]["cosine"] for seed in of_seeds], axis=0).tolist()
            for name in config.policies
        },
        "seconds": time.perf_counter() - started,  # all: compilation, experiments, evaluation
    }


def forecast(of_seeds: list[dict[str, Any]], policy: str) -> dict[str, list[float]]:
    """R² of forecasts 1, 10 and 30 steps ahead on each field, means over the seeds."""
    mean = np.mean([seed[policy]["r2"] for seed in of_seeds], axis=0)  # [F, K + 1]
    return {str(k): mean[:, k].tolist() for k in (1, 10, 30)}


def interim_scores(rows: list[dict[str, Any]], config: Config, f: int) -> list[dict[str, Any]]:
    """Mean and 95 % margin over the seeds of each policy's measures on field `f`, on the way."""
    field_scores = []
    for p, policy in enumerate(config.policies):
        score: dict[str, Any] = {"field": config.env.fields[f], "policy": policy}
        if config.stop_gain:
            counts = stops(rows, config)[:, p, f]
            score["samples"] = [float(counts.mean()), float(interval(counts))]
        for metric in ("error", "reachable_error", "coverage"):
            steps, values = error_curves(rows, config, metric)
            for at in SCORED_AT:
                if at <= config.run.total_steps:
                    now = values[:, np.searchsorted(steps, at), f, p]
                    score[f"{metric}@{at}"] = [float(now.mean()), float(interval(now))]
        field_scores.append(score)
    return field_scores


def tables(row: dict[str, Any]) -> str:
    """A case in Markdown."""
    # errors of each policy on each field, at each number of samples
    error_keys = [key for key in row["scores"][0] if key.startswith("error@")]
    last = error_keys[-1].split("@")[1]
    samples_heading = " samples taken |" if "samples" in row["scores"][0] else ""
    heads = [f"at {x.split('@')[1]}" for x in error_keys]
    lines = [
        f"\n### {row['case']} ({row['seeds']} seeds)\n",
        f"| field | policy | field error {' | '.join(heads)} | within reach | visited | "
        f"R² 10 |{samples_heading}",
        "|---" * (5 + len(error_keys) + bool(samples_heading)) + "|",
    ]
    place = {field: i for i, field in enumerate(dict.fromkeys(x["field"] for x in row["scores"]))}
    for score in row["scores"]:
        numbers = [f"{score[x][0]:.3f} ± {score[x][1]:.3f}" for x in error_keys]
        reach = score[f"reachable_error@{last}"]
        numbers += [f"{reach[0]:.3f} ± {reach[1]:.3f}", f"{score[f'coverage@{last}'][0]:.2f}"]
        numbers.append(f"{row['r2_10'][score['policy']][place[score['field']]]:.3f}")
        if samples_heading:
            numbers.append(f"{score['samples'][0]:,.0f} ± {score['samples'][1]:,.0f}")
        lines.append(f"| {score['field']} | {score['policy']} | {' | '.join(numbers)} |")
    # how much sooner each policy reaches the error of each other one
    policies = list(row["r2_10"])
    lines += [
        f"\nTimes fewer samples than the column's {row['compared_at']:,}: median (interval)\n",
        f"| field | policy | {' | '.join(policies)} |",
        "|---" * (2 + len(policies)) + "|",
    ]
    for field in place:
        for policy in policies:
            ratio = {
                x["baseline"]: x
                for x in row["ratios"]
                if (x["field"], x["policy"]) == (field, policy)
            }
            cells = (
                f"{x['ratio']:.1f} ({x['low']:.1f} to {x['high']:.1f})" if x else ""
                for x in map(ratio.get, policies)
            )
            lines.append(f"| {field} | {policy} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--seeds", type=int, default=0, help="0: those of the case")
    parser.add_argument("--steps", type=int, default=0, help="0: those of the case")
    parser.add_argument("--out", type=Path, default=RESULTS, help="JSON list to append to")
    options = parser.parse_args()
    unknown_names = set(options.cases) - set(CASES)
    if unknown_names:
        parser.error(f"unknown: {', '.join(unknown_names)}; choose from {', '.join(CASES)}")
    if 0 < options.steps < SCORED_AT[0]:
        parser.error(f"--steps {options.steps} ends before the first score: {SCORED_AT[0]} or more")
    for name in options.cases or CASES:
        settings = CASES[name].run
        settings = replace(
            settings,
            num_seeds=options.seeds or settings.num_seeds,
            total_steps=options.steps or settings.total_steps,
        )
        row = measure(name, replace(CASES[name], run=settings))
        append(options.out, {**machine(), **row})
        print(tables(row), flush=True)


if __name__ == "__main__":
    main()
