"""What somebody meant who named a flag, preset or environment that does not exist.

Names of other libraries come first, as nothing in their letters tells what they are called here;
then names that share whole words; then those that are spelled alike.
"""

import difflib
import re
from collections.abc import Iterable

MOST = 3
"""Names that a message suggests, at most."""
ALIKE = 0.65
"""Ratio (of difflib) from which on two names are spelled alike."""
NEARLY = 0.1
"""As much less alike than the likeliest may be what is suggested beside it."""
OTHER_NAMES = {
    "learning-rate": "lr step-size alpha",
    "discount": "gamma discount-factor",
    "gae-lambda": "lam lambda gae",
    "lambda-": "lam lambda td-lambda trace-decay",
    "entropy-weight": "ent-coef entropy-coef ent-coeff entropy-coeff entropy-cost entropy beta",
    "value-weight": "vf-coef vf-coeff value-coef value-coeff value-loss-coef critic-coef",
    "clip": "clip-range clip-eps clip-epsilon clip-coef clip-ratio",
    "max-grad-norm": "grad-clip clip-grad clip-grad-norm gradient-clip max-gradient-norm grad-norm",
    "num-envs": "n-envs envs parallel-envs num-workers n-workers num-actors",
    "num-steps": "n-steps nsteps rollout-length unroll-length rollout-steps t-max",
    "epochs": "n-epochs num-epochs update-epochs ppo-epochs k-epochs",
    "minibatches": "num-minibatches n-minibatches nminibatches batch-size minibatch-size",
    "batch-size": "minibatch-size batch",
    "capacity": "buffer-size buffer replay-size replay-capacity replay-buffer-size memory-size",
    "warmup": "learning-starts warmup-steps start-steps burn-in prefill",
    "target-period": "target-update target-update-interval target-update-freq target-frequency",
    "tau": "polyak soft-update",
    "initial-temperature": "alpha temperature ent-coef",
    "epsilon-start": "epsilon eps eps-start initial-epsilon exploration-initial-eps start-e",
    "epsilon-end": "epsilon eps eps-end final-epsilon min-epsilon exploration-final-eps end-e",
    "epsilon-transitions": "epsilon-decay eps-decay exploration-fraction exploration-steps",
    "explore-share": "epsilon-decay eps-decay exploration-fraction",
    "n-step": "nstep multi-step n-steps",
    "prioritised": "per prioritized prioritized-replay",
    "observations": "normalize-observations normalize-obs norm-obs obs-norm",
    "rewards": "normalize-rewards normalize-reward norm-reward reward-norm",
    "hidden": "hidden-size hidden-sizes hidden-dim hidden-dims hidden-units net-arch layer-sizes",
    "total-steps": "total-timesteps timesteps num-timesteps total-env-steps max-steps budget steps",
    "seed": "random-seed rng rng-seed",
    "num-seeds": "n-seeds seeds",
    "evaluate-every": "eval-every eval-freq eval-interval evaluation-interval",
    "evaluate-games": "eval-games eval-episodes n-eval-episodes",
    "evaluation-games": "eval-games eval-episodes n-eval-episodes test-episodes",
    "patience": "early-stopping early-stop",
    "checkpoint-every": "save-every save-freq save-interval checkpoint-interval",
    "directory": "log-dir logdir save-dir output-dir output outdir out run-dir",
    "resume": "load checkpoint resume-from restore",
    "devices": "device gpu gpus cuda num-devices",
    "log": "wandb tensorboard track logger use-wandb",
    "id": "env env-id env-name environment game",
    "max-steps-in-episode": "time-limit max-episode-steps episode-length horizon",
    "games": "episodes n-episodes num-episodes",
    "policy": "model checkpoint weights",
}
"""What is called otherwise in other libraries, by the last part of its flag here."""


def closest_names(name: str, candidates: Iterable[str]) -> list[str]:
    """The candidates that are likely meant by `name`, the likeliest first; perhaps none.

    Names may be flags or others, with dots between their parts: where some are of the same part as
    `name`, only these.
    """
    likeness = {x: similarity(normalize(name), normalize(x)) for x in candidates}
    names = sorted(likeness, key=lambda x: -likeness[x])
    for is_meant in (is_synonym, shares_words, is_spelled_alike):
        if matches := [x for x in names if is_meant(normalize(name), normalize(x))]:
            beside = [x for x in matches if part_of(x) == part_of(name)] or matches
            return [x for x in beside if likeness[x] > likeness[beside[0]] - NEARLY][:MOST]
    return []


def suggestion_text(name: str, candidates: Iterable[str]) -> str:
    """` (perhaps A or B)`, for a message; empty where nothing is likely."""
    names = closest_names(name, candidates)
    return f" (perhaps {' or '.join(names)})" if names else ""


def normalize(name: str) -> str:
    """A name in lower case, with hyphens, without those before a flag."""
    return re.sub(r"[_\s]", "-", name.lower()).removeprefix("--")


def part_of(name: str) -> str:
    return normalize(name).rpartition(".")[0]


def last_part(name: str) -> str:
    return name.rpartition(".")[2]


def words(name: str) -> set[str]:
    """The words of the last part, without those that say nothing alone."""
    return set(last_part(name).split("-")) - {
        "",
        "num",
        "n",
        "max",
        "min",
        "no",
        "steps",
        "size",
        "of",
    }


def is_synonym(name: str, candidate: str) -> bool:
    part = last_part(name)
    return part == last_part(candidate) or part in OTHER_NAMES.get(last_part(candidate), "").split()


def shares_words(name: str, candidate: str) -> bool:
    own_words, other_words = words(name), words(candidate)
    return bool(own_words and other_words) and (
        own_words <= other_words or other_words <= own_words
    )


def is_spelled_alike(name: str, candidate: str) -> bool:
    return (
        max(similarity(name, candidate), similarity(last_part(name), last_part(candidate))) >= ALIKE
    )


def similarity(name: str, candidate: str) -> float:
    """How much of two names is equal, 0 to 1."""
    return difflib.SequenceMatcher(None, name, candidate).ratio()
