"""What a rig allows, and from where: the limits and candidates of `advise`, checked.

Axes: H steps, m inputs, N candidates, d latent dimensions.
"""

import math
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxrl.dynamics.planning import input_limits
from jaxrl.dynamics.planning.input_limits import Limits
from jaxrl.dynamics.planning.next_inputs import Question
from train.host.errors import UsageError
from train.host.files import array_files
from train.host.numbers import one_or_each, quantity
from train.vector_field.fitted_models.fitted_model import Allowance, FittedModel

MOST_STEPS = 1_000
"""Of a plan."""


class LimitFlags(NamedTuple):
    """The flags that say what is allowed; see `advice.Options`."""

    bound: tuple[float, ...]
    low: tuple[float, ...]
    rate: float
    charge: float


def question(model: FittedModel, state: tuple[float, ...], flags: LimitFlags) -> Question:
    """From where, and within which limits. Raises UsageError, in one line, for what cannot be."""
    refuse_unknown_field(model)
    low, high = box(model, flags)
    z, before = start(model, state)
    allowed = allowance(model, state, flags)
    near = np.clip(before, low, high)
    if (np.abs(near - before) > allowed.rate * (1 + 1e-6)).any():
        raise UsageError(
            f"the last input {_format_numbers(before)} is farther outside of the bounds than "
            f"--rate {_format_numbers(np.unique(allowed.rate))}: allow more of either, or give "
            "--state to begin afresh"
        )
    single = lambda x: jnp.asarray(x, jnp.float32)
    has_window = math.isfinite(allowed.charge) and math.isinf(flags.charge)  # else it is the plan
    spent = single(allowed.spent) if has_window else None
    further = single(allowed.rate), allowed.charge, model.time.length, spent
    return Question(
        model.planning, single(z), single(before), Limits(single(low), single(high), *further)
    )


def allowance(model: FittedModel, state: tuple[float, ...], flags: LimitFlags) -> Allowance:
    """What flags allow, else what the rig of a stream does; with a `state` nothing is spent."""
    unlimited = Allowance(np.full(len(model.high), np.inf), math.inf, np.zeros(0))
    own = model.allowance or unlimited
    rate = own.rate if math.isinf(flags.rate) else np.full(len(model.high), flags.rate)
    spent = 0 * own.spent if state else own.spent
    return Allowance(rate, own.charge if math.isinf(flags.charge) else flags.charge, spent)


def refuse_unknown_field(model: FittedModel) -> None:
    """Raises UsageError for a model whose velocities are no numbers."""
    velocity = np.asarray(model.velocity(np.zeros(model.dims, np.float32)))
    if not np.isfinite(velocity).all():
        raise UsageError(
            f"the model's velocities are {_format_numbers(velocity)}, expected finite ones: its "
            "fit has failed; look at its data with --look, and fit them again"
        )


def box(model: FittedModel, flags: LimitFlags) -> tuple[np.ndarray, np.ndarray]:
    """The smallest and largest inputs, `[m]` each: those of the model, unless flags say others."""
    inputs = len(model.high)
    high = _per_input("bound", flags.bound, inputs) if flags.bound else model.high
    if not (high > 0).all():
        raise UsageError("the record has no inputs but 0: say what is allowed with --bound")
    low = np.where(model.low < 0, -high, model.low) if flags.bound else model.low
    if flags.low:
        low = _per_input("low", flags.low, inputs)
    if not (low <= high).all():
        raise UsageError("--low is above --bound: give the smallest input and the largest")
    return low, high


def start(model: FittedModel, state: tuple[float, ...]) -> tuple[np.ndarray, np.ndarray]:
    """The state `[d]` and the input before it `[m]`: as asked, after no input, or the last ones."""
    if state:
        z = np.array(state)
        if len(z) != model.dims:
            count = quantity(len(z), "numbers")
            raise UsageError(f"--state has {count}, expected {model.dims}")
        return z, np.zeros(len(model.high))
    if model.now is None or not np.isfinite(model.now.z).all():
        raise UsageError("the run keeps no record of its last state: give --state")
    return model.now


def _per_input(name: str, values: tuple[float, ...], inputs: int) -> np.ndarray:
    if len(values) not in (1, inputs):
        count, expected = quantity(len(values), "numbers"), one_or_each(inputs)
        raise UsageError(f"--{name} has {count}, expected {expected}")
    return np.broadcast_to(np.array(values, float), (inputs,))


def _format_numbers(x: Any) -> str:
    return ", ".join(f"{number:g}" for number in np.asarray(x))


def check_charge(question: Question, blocks: int, hold: int, steps: int) -> None:
    """Raises UsageError unless some plan keeps to the charge."""
    limits = question.limits
    quiet = input_limits.hold_blocks(
        input_limits.quiet_blocks(limits, question.before, blocks), hold, steps
    )
    least = float(input_limits.window_charges(limits, quiet).max())
    if least <= limits.charge * (1 + 1e-6):
        return
    if limits.spent is not None:
        raise UsageError(
            f"{least:g} would be spent in {len(limits.spent) + 1} samples at least, with those "
            f"before the plan, and the stream was told --charge {limits.charge:g}: say what is "
            "allowed with --charge, hold inputs for fewer steps, or give --state to begin afresh"
        )
    raise UsageError(
        f"--charge {limits.charge:g} is less than {least:g}, the least that --low and --rate "
        "allow: give more, or plan fewer steps"
    )


def read_inputs(path: str, question: Question) -> jax.Array:
    """The candidates of a file `[N, H, m]`. Raises UsageError for one that is beyond a limit."""
    expected_format = "expected an npz file with u [H, m] or [N, H, m]"
    try:
        u = array_files.read_npz(path, ("u",)).get("u")
    except FileNotFoundError:
        raise UsageError(f"there is no file {path}; {expected_format}") from None
    except ValueError as error:
        raise UsageError(f"{path} cannot be read ({error}); {expected_format}") from None
    inputs = len(question.limits.low)
    if u is not None and inputs == 1 and u.shape[-1:] != (1,):
        u = u[..., None]  # one input needs no axis
    if u is None or u.ndim not in (2, 3) or u.shape[-1] != inputs or not u.size:
        shape = "no array u" if u is None else f"u of shape {u.shape}"
        raise UsageError(f"{path} has {shape}; {expected_format}, with m = {inputs}")
    u = u.astype(np.float32).reshape(-1, *u.shape[-2:])
    if not np.isfinite(u).all() or u.shape[1] > MOST_STEPS:
        raise UsageError(f"{path} has inputs that are not finite, or over {MOST_STEPS:,} steps")
    beyond = partial(input_limits.violations, question.limits, question.before)
    flags = {"box": "--bound or --low", "change": "--rate", "charge": "--charge"}
    for name, excess in jax.vmap(beyond)(jnp.asarray(u)).items():
        scale = {"charge": question.limits.charge, "change": question.limits.change}
        size = np.min(scale.get(name, jnp.max(jnp.abs(question.limits.high))))
        wrong = np.flatnonzero(np.asarray(excess) > 1e-5 * min(float(size), 1e30))
        if len(wrong):
            raise UsageError(
                f"{len(wrong)} of the {len(u)} inputs in {path}, first number {wrong[0]}, are "
                f"beyond {flags[name]}: take them out, or allow more"
            )
    return jnp.asarray(u)
