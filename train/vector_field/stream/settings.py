"""What a closed loop is told: sizes, limits, how it learns and plans.

Letters: n channels, m inputs, d dimensions of the state.
"""

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import jax.numpy as jnp
import yaml

from jaxrl import checkpoint
from jaxrl.checks import Count, Positive, Range, Seed, Span
from jaxrl.dynamics.learners import state_space_learner
from jaxrl.dynamics.planning.stimulation import Constants
from jaxrl.dynamics.state_space.model import StateSpace
from train.host.errors import UsageError, in_one_line
from train.host.files.run_directory import RunDirectory, resume_flag
from train.host.files.whole_files import write_whole
from train.host.numbers import one_or_each, quantity
from train.host.plain_config import check_options, flag, plain, rebuild
from train.vector_field.config import Config, Online, OnlineField, World
from train.vector_field.factories import make_models, policy
from train.vector_field.stream.guard import Input, RigLimits
from train.vector_field.stream.journal import Journal

FILE = "stream.yaml"
"""Of the settings, in the directory of a stream."""
PORT = 5959


@dataclass(frozen=True)
class Options:
    """Learns a rig's dynamics while it runs: observations in, inputs out, on 127.0.0.1.

    A client sends a line for each sample and gets the input for it, within the limits given here;
    docs/rig.md has the protocol. Ctrl-C ends it, --resume goes on.
    """

    channels: Annotated[int, Range(least=1, most=1_000)] = 20
    """Numbers in an observation."""
    inputs: Annotated[int, Range(least=1, most=100)] = 2
    """Numbers in an input."""
    bound: tuple[Positive, ...] = (1.0,)
    """Largest input, and without --low its largest size: one number, or one for each."""
    low: tuple[float, ...] = ()
    """Smallest input, such as 0 for light, one number or one for each; default: minus the bound."""
    rate: tuple[Span, ...] = (math.inf,)
    """Largest change of an input from one sample to the next: one number, or one for each."""
    charge: Span = math.inf
    """Largest sum of |input| times --step-time over all inputs, in any --window samples."""
    window: Annotated[int, Range(least=1, most=100_000)] = 100
    """Samples over which the charge is counted."""
    step_time: Positive = 1.0
    """Time from one sample to the next, in the unit of the charge."""
    noise: Literal["gaussian", "poisson"] = "gaussian"
    """Noise of the channels; poisson: they are counts."""
    dims: Annotated[int, Range(least=1, most=8)] = 2
    """Dimensions of the state."""
    fields: tuple[OnlineField, ...] = ("rbf", "polynomial")
    """Kinds of fields that learn side by side: rbf, fourier, polynomial, mlp or linear; inputs are
    planned with the likeliest."""
    policy: str = "d_optimal"
    """Which inputs are asked for: off, random, hold20, bang50, myopic, d_optimal, a_optimal,
    disagreement, goal, or several of the last four joined by +."""
    goal: tuple[float, ...] = (0.0,)
    """Of the policy goal: what the channels should show, one number or one for each."""
    plan_every: Count = 5
    """Samples from one plan to the next."""
    first_fit: Count = 100
    """Samples before the first fit; until then inputs are random ones at their bounds, each held
    for 20 samples, but those of off, random, hold20 and bang50."""
    capacity: Count = 2_000
    """Samples, from the first on, that fits go through again and again; from each later one the
    field learns once, as it comes."""
    save_every: Count = 500
    """Samples between two checkpoints of the learner; samples themselves are saved at once."""
    silence: Span = 5.0
    """Seconds after which a client that says nothing may be replaced by another one."""
    port: Annotated[int, Range(least=0, most=65535)] = PORT
    """Port on 127.0.0.1 that the client connects to; 0: any free port, which is printed."""
    seed: Seed = 0
    """Root of the random numbers."""
    directory: str = ""
    """Where everything is saved; default: runs/vector_field-stream-DATE."""
    resume: str = ""
    """Directory of a stream that goes on with its settings, but for --port and --silence."""


class Problem(NamedTuple):
    """What is learned, and from which inputs; for the learner their sizes are at most 1."""

    config: state_space_learner.Config
    models: tuple[StateSpace, ...]
    constants: Constants
    unit: Input  # [m] what the learner's inputs are multiplied by


def learning(options: Options) -> Options:
    """Only what decides what is compiled: the rest as by default."""
    others = ("save_every", "silence", "port", "directory", "resume")
    return replace(options, **{name: getattr(Options(), name) for name in others})


def rig_limits(options: Options) -> RigLimits:
    """The limits. Raises UsageError, in one line, for what no input could keep to."""
    high = _per_input(options, "bound", options.bound)
    low = _per_input(options, "low", options.low) if options.low else tuple(-x for x in high)
    rate = _per_input(options, "rate", options.rate)
    try:
        return RigLimits(low, high, rate, options.charge, options.window, options.step_time)
    except ValueError as error:
        raise UsageError(in_one_line(error)) from error


def problem(options: Options) -> Problem:
    """The models and how they learn. Raises UsageError, in one line, for what does not fit."""
    limits = rig_limits(options)
    observation = "loglinear" if options.noise == "poisson" else "linear"
    world = World(
        observation=observation,
        noise=options.noise,
        channels=options.channels,
        num_inputs=options.inputs,
        dimension=options.dims,
    )
    config = Config(learner="state_space", env=world, online=Online(fields=options.fields))
    try:
        chosen = replace(policy(config, options.policy), goal=options.goal)
        if "rnd" in chosen.objectives:
            raise ValueError("policy rnd learns from more than samples: choose another one")
        agent = replace(
            config.online.agent,
            capacity=options.capacity,
            first_fit=options.first_fit,
            policy=replace(chosen, replan_steps=options.plan_every),
        )
        if len(set(options.fields)) < max(len(options.fields), 1):
            raise ValueError("fields are given twice, or not at all: give each once")
        if options.dims > options.channels:
            raise ValueError(f"--dims {options.dims} is more than {options.channels} channels")
        if options.first_fit > options.capacity:
            raise ValueError(
                f"--first-fit {options.first_fit} is more than --capacity {options.capacity}: "
                "there would be no fit, and nothing learned"
            )
        models = make_models(config)
        state_space_learner.check_config(agent, models)
    except ValueError as error:
        raise UsageError(in_one_line(error)) from error
    unit = tuple(max(abs(x), abs(y)) or 1.0 for x, y in zip(limits.low, limits.high, strict=True))
    low, high = (
        jnp.asarray([x / size for x, size in zip(side, unit, strict=True)], jnp.float32)
        for side in (limits.low, limits.high)
    )
    dt = jnp.asarray(options.step_time, jnp.float32)
    constants = Constants(dt, low, high, (), jnp.asarray(jnp.inf, jnp.float32))
    return Problem(agent, models, constants, unit)


def refuse_idle(options: Options, problem: Problem) -> None:
    """Raises UsageError, in one line, for a flag that has no effect with the others."""
    chosen, default = problem.config.policy, Options()
    needed = {
        "goal": ("goal" in chosen.objectives, "--policy goal"),
        "plan_every": (chosen.kind == "planned", "a --policy that plans, such as d_optimal"),
        "window": (math.isfinite(options.charge), "--charge"),
    }
    for name, (has_effect, what) in needed.items():
        if not has_effect and getattr(options, name) != getattr(default, name):
            raise UsageError(f"{flag(name)} has no effect: it needs {what}")


def begin(options: Options) -> tuple[Options, Path]:
    """Checked options and a directory of theirs: a new one, or the one that goes on.

    Raises UsageError, in one line, also for samples there that would not be taken now.
    """
    check_options(options)
    if options.resume:
        address = {"port": options.port, "silence": options.silence}
        saved = replace(read(options.resume), **address)
        if options != replace(Options(), **address, resume=options.resume):
            raise UsageError(
                f"{resume_flag(options.resume)} has settings of its own: of other flags only "
                "--port and --silence may be given"
            )
        journal = Journal(Path(options.resume), saved.channels, saved.inputs)
        journal.refuse_huge()
        refuse_lost(journal, RunDirectory(Path(options.resume)).checkpoints)
        return saved, Path(options.resume)
    refuse_idle(options, problem(options))
    directory = RunDirectory.create(options.directory, "vector_field-stream").path
    write_whole(directory / FILE, yaml.safe_dump(plain(options), sort_keys=False))
    return options, directory


def refuse_lost(journal: Journal, checkpoints: Path) -> None:
    """Raises UsageError where no checkpoint can be read, or one knows samples that are not there.

    The learner would go on beside the samples to come, without a word.
    """
    if not (steps := checkpoint.steps(checkpoints)):
        return
    advice = f"delete {checkpoints} to learn again from the samples that are there"
    try:
        checkpoint.read_meta(checkpoints)
    except checkpoint.CheckpointError as error:
        raise UsageError(f"{error}: {advice}") from error
    if steps[-1] > journal.count:
        raise UsageError(
            f"{journal.path} holds {journal.count:,} of the {steps[-1]:,} samples that the newest "
            f"checkpoint has learned from: put it back, or {advice}"
        )


def is_stream(directory: str | Path) -> bool:
    """Whether a directory is one of a stream."""
    return (Path(directory) / FILE).is_file()


def read(directory: str | Path) -> Options:
    """The settings of a stream. Raises UsageError where there is none."""
    path = Path(directory) / FILE
    try:
        saved = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise UsageError(
            f"{directory} is no directory of a stream ({in_one_line(error)}): expected {FILE} in it"
        ) from error
    options = rebuild(Options(), saved)
    check_options(options, str(path))
    return options


def _per_input(options: Options, name: str, values: tuple[float, ...]) -> Input:
    if len(values) not in (1, options.inputs):
        count, expected = quantity(len(values), "numbers"), one_or_each(options.inputs)
        raise UsageError(f"--{name} has {count}, expected {expected}")
    return tuple(map(float, values)) * (options.inputs if len(values) == 1 else 1)
