"""`python -m train.vector_field advise RUN`: what to try next, of what the rig allows.

From where the record ended it searches for the inputs of the largest expected information about
the learned field, and says how much that is beside no input, or as little as is allowed, and random
ones. Writes `advice.json`, `advice.npz` and `advice.png`.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import tyro
from rich.console import Console
from rich.table import Table

from jaxrl.checks import Count, Positive, Range, Seed, Span
from jaxrl.dynamics.planning import icem, input_limits, next_inputs
from jaxrl.dynamics.planning.next_inputs import Question
from jaxrl.dynamics.planning.predictive_model import design_of
from jaxrl.numerics.linalg import matmul
from jaxrl.numerics.precision import in_float32
from train.host.command_line.command import command
from train.host.command_line.flags import parse_flags
from train.host.errors import UsageError
from train.host.files.whole_files import (
    refuse_existing,
    refuse_unwritable,
    write_arrays,
    write_whole,
)
from train.host.machine.progress import show_activity
from train.host.plain_config import check_options
from train.vector_field import fitted, rig
from train.vector_field.data.step_time import StepTime
from train.vector_field.fitted_models.fitted_model import FittedModel
from train.vector_field.pictures.advice_picture import draw
from train.vector_field.rig import MOST_STEPS, LimitFlags

COMMAND = "python -m train.vector_field advise"
RANDOM = 256
"""Random plans that the advice is compared with."""
SEARCH = icem.Config(candidates=96, iterations=8, elites=12, initial_std=1.0, colour=1.0)


@dataclass(frozen=True)
class Options:
    """Says which inputs would teach a model most, and draws them.

    RUN is a fit to recorded data or a run with experiments.
    """

    run: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")] = ""
    """Run directory."""
    steps: Annotated[int, Range(least=1, most=MOST_STEPS)] = 30
    """Steps that are planned."""
    hold: Count = 5
    """Steps for which each input is held."""
    bound: tuple[Positive, ...] = ()
    """Largest input, and without --low its largest size: one number, or one for each component;
    default: the largest size in the record, or what a stream was told."""
    low: tuple[float, ...] = ()
    """Smallest input, such as 0 for light; default: minus the bound, or 0 if the record has nothing
    below; of a stream, unless --bound is given, its own."""
    rate: Span = math.inf
    """Largest change of a component from one step to the next; counts from the last input. Default:
    none, of a stream its own."""
    charge: Span = math.inf
    """Largest sum of |input| times the time of a step, over all steps and components; of data whose
    time is not known, of |input| alone. Default: none, of a stream its own in any --window samples,
    those before the plan included."""
    inputs: str = ""
    """An npz file with u [H, m] or [N, H, m]: choose among these inputs instead of searching."""
    state: tuple[float, ...] = ()
    """The state to begin from; default: the last one that was filtered."""
    seed: int | None = None
    """Seed of the run whose model is asked; None: the first."""
    policy: str = ""
    """Policy whose learner is asked, of a run with experiments; default: the first."""
    field: str = ""
    """Field whose learner is asked, of a run with experiments; default: the first."""
    key: Seed = 0
    """Root of the random numbers."""
    out: str = ""
    """Directory to write to; default: the run's."""
    overwrite: bool = False
    """Replace an earlier advice there."""


class Advice(NamedTuple):
    """Plans `[..., H, m]` and what each is expected to teach, in nats."""

    plan: np.ndarray  # [H, m]
    gain: float
    random: np.ndarray  # [N, H, m]
    random_gains: np.ndarray  # [N]
    quiet: np.ndarray  # [H, m] as little input as the limits allow: none, if 0 is allowed
    quiet_gain: float
    candidate: int | None  # which of the given inputs was chosen


def main(arguments: Sequence[str]) -> int:
    def advise(arguments: list[str]) -> None:
        options = parse_flags(COMMAND, Options, arguments)
        check_options(options)
        if not options.run:
            raise UsageError("expected a run directory: give RUN")
        directory = Path(options.out or options.run)
        for path in files_in(directory):
            refuse_existing(path, options.overwrite)
        refuse_unwritable(directory, "name a folder that can with --out")
        model = fitted.load(options.run, options.seed, options.policy, options.field)
        with show_activity("searching for informative inputs"):
            question, advice = choose_inputs(model, options)
        for path in write(directory, model, question, advice, options):
            print(path)
        Console().print(table(advice, model.time))

    return command(advise, arguments)


def files_in(directory: Path) -> list[Path]:
    """What an advice is written to."""
    return [directory / f"advice.{ending}" for ending in ("json", "npz", "png")]


def choose_inputs(model: FittedModel, options: Options) -> tuple[Question, Advice]:
    """Searches for inputs, or chooses among those of a file.

    Raises UsageError, in one line, for limits that cannot be kept and inputs beyond them.
    """
    flags = LimitFlags(options.bound, options.low, options.rate, options.charge)
    question = rig.question(model, options.state, flags)
    candidates = rig.read_inputs(options.inputs, question) if options.inputs else None
    steps = options.steps if candidates is None else candidates.shape[1]
    hold = min(options.hold, steps)
    blocks = -(-steps // hold)
    rig.check_charge(question, blocks, hold, steps)
    search_key, random_key = jax.random.split(jax.random.key(options.key))
    gains = jax.jit(partial(next_inputs.nats_of_all, question.model, question.z))
    random = jax.jit(lambda key: next_inputs.random(question, RANDOM, hold, steps, key))(random_key)
    quiet = input_limits.quiet_blocks(question.limits, question.before, blocks)
    quiet = input_limits.hold_blocks(quiet, hold, steps)
    if candidates is None:
        config = SEARCH.replace(horizon=blocks)  # pyright: ignore[reportAttributeAccessIssue]
        search = partial(next_inputs.best, question, config, hold, steps)
        plan, chosen = jax.jit(search)(search_key), None
    else:
        chosen = int(np.argmax(gains(candidates)))
        plan = candidates[chosen]
    nats = [np.asarray(gains(x)) for x in (plan[None], random, quiet[None])]
    plans = (np.asarray(x) for x in (plan, random, quiet))
    plan, random, quiet = plans
    return question, Advice(
        plan, float(nats[0][0]), random, nats[1], quiet, float(nats[2][0]), chosen
    )


def write(
    directory: Path, model: FittedModel, question: Question, advice: Advice, options: Options
) -> list[Path]:
    """Writes `advice.json`, `advice.npz` and `advice.png`."""
    directory.mkdir(parents=True, exist_ok=True)
    paths = files_in(directory)
    content = content_of(model, question, advice, options)
    write_whole(paths[0], json.dumps(content, indent=1) + "\n")
    arrays = arrays_of(model, question, advice)
    write_arrays(paths[1], arrays)
    box = np.stack([question.limits.low, question.limits.high])
    draw(paths[2], arrays, advice.gain, advice.quiet_gain, model, box)
    return paths


def content_of(
    model: FittedModel, question: Question, advice: Advice, options: Options
) -> dict[str, Any]:
    """What the advice is and what it is expected to teach, beside other inputs; plain data."""
    spent = question.limits.spent
    return {
        "run": str(options.run),
        "state": np.asarray(question.z).tolist(),
        "last_input": np.asarray(question.before).tolist(),
        "limits": {
            "low": np.asarray(question.limits.low).tolist(),
            "high": np.asarray(question.limits.high).tolist(),
            "rate": [_finite_or_none(float(x)) for x in np.asarray(question.limits.change)],
            "charge": _finite_or_none(float(question.limits.charge)),
            "window": None if spent is None else len(spent) + 1,
            "hold": options.hold,
        },
        "candidate": advice.candidate,
        "step_time": model.time.length,
        "time_unit": model.time.unit,
        "nats": {
            "advised": advice.gain,
            "random": {
                "mean": float(advice.random_gains.mean()),
                "deviation": float(advice.random_gains.std(ddof=1)),
                "best": float(advice.random_gains.max()),
                "plans": len(advice.random),
            },
            "zero": advice.quiet_gain,
        },
        "charge": float(input_limits.charge(question.limits, jnp.asarray(advice.plan))),
        "inputs": advice.plan.tolist(),
    }


def arrays_of(model: FittedModel, question: Question, advice: Advice) -> dict[str, np.ndarray]:
    """The predicted paths with the learned field around them, by name: what the picture shows."""
    states, expected = model.predict(question.z, advice.plan)
    states_without, _ = model.predict(question.z, advice.quiet)
    return {
        "inputs": advice.plan,
        "states": np.asarray(states),
        "observations": np.asarray(expected),
        "random_inputs": advice.random,
        "random_nats": advice.random_gains,
        "inputs_without": advice.quiet,
        "states_without": np.asarray(states_without),
        **information_map(model, np.asarray(states), advice.quiet[-1]),
    }


def _finite_or_none(number: float) -> float | None:
    return number if math.isfinite(number) else None


def information_map(
    model: FittedModel, states: np.ndarray, quiet: np.ndarray
) -> dict[str, np.ndarray]:
    """`field` `[25, 25, d]` and its standard deviation `deviation` `[25, 25]` on `axis` × `axis`.

    In the first two latent dimensions, the others as they are now; as far as states went or will.
    Of a single dimension `[25, 1]` and `[25]`. Both are with the input `quiet` `[m]`.
    """
    all_states = np.concatenate([states, model.trail]) if len(model.trail) else states
    reach = 1.1 * max(float(np.abs(all_states[:, :2]).max()), 1e-3)
    axis = np.linspace(-reach, reach, 25, dtype=np.float32)
    plane = np.meshgrid(*[axis] * min(states.shape[1], 2), indexing="ij")
    others = [np.full_like(plane[0], x) for x in states[0, 2:]]
    points = np.stack([*plane, *others], -1)
    field, deviation = velocity_with(model, points, quiet), deviation_with(model, points, quiet)
    return {"axis": axis, "field": field, "deviation": deviation}


def velocity_with(model: FittedModel, points: np.ndarray, u: np.ndarray) -> np.ndarray:
    """The field at `points` `[..., d]` with what the input `u` `[m]` adds to it."""
    if not u.any():
        return np.asarray(model.velocity(points))
    after = jax.vmap(lambda z: model.predict(z, u[None])[0][1])(points.reshape(-1, model.dims))
    return (np.asarray(after).reshape(points.shape) - points) / model.dt


def deviation_with(model: FittedModel, points: np.ndarray, u: np.ndarray) -> np.ndarray:
    """The standard deviation of the field at `points` `[..., d]` with what the input `u` adds.

    Where the effect of inputs is uncertain, the field without any is that far from all inputs that
    were given, as of a temperature of 290.
    """
    without = np.asarray(model.deviation(points))
    planning = model.planning if u.any() else None
    if planning is None or planning.input_design is None:
        return without

    @in_float32
    @jax.jit
    @partial(jnp.vectorize, signature="(d)->()")
    def share(z: jax.Array) -> jax.Array:
        size = lambda design: jnp.sum(matmul(design, planning.root) ** 2)
        return jnp.sqrt(size(design_of(planning, z, jnp.asarray(u))) / size(planning.design(z)))

    return without * np.asarray(share(points))


def table(advice: Advice, time: StepTime) -> Table:
    """What each kind of input is expected to teach."""
    caption = f"in nats, of inputs for {time.text(len(advice.plan))}; more is better"
    gain_table = Table(title="expected information about the field", caption=caption)
    for heading in ("inputs", "nats"):
        gain_table.add_column(heading, justify="left" if heading == "inputs" else "right")
    name = "advised" if advice.candidate is None else f"candidate {advice.candidate}, advised"
    gain_table.add_row(name, f"{advice.gain:.3f}")
    gain_table.add_row(f"best of {len(advice.random)} random", f"{advice.random_gains.max():.3f}")
    spread = f"{advice.random_gains.mean():.3f} ± {advice.random_gains.std(ddof=1):.3f}"
    gain_table.add_row("random, mean ± sd", spread)
    least = "as little as allowed" if advice.quiet.any() else "none"
    gain_table.add_row(least, f"{advice.quiet_gain:.3f}")
    return gain_table
