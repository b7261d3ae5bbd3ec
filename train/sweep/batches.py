"""The members of a sweep, trained side by side in batches that fit into memory, and scored."""

import hashlib
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxrl import checkpoint
from jaxrl.evaluate import EvaluationState, Watch
from jaxrl.numerics.trees import take
from jaxrl.types import AgentState, PyTree
from train.host.compilation import compiled, memory
from train.host.errors import Interrupted, UsageError
from train.host.files import metrics_file
from train.host.files.provenance import files_of, provenance
from train.host.files.run_directory import RunDirectory, resume_flag
from train.host.machine import devices
from train.host.machine.members import Members, make_member_functions, unpack_state
from train.host.machine.progress import Display
from train.host.machine.signals import StopRequest
from train.host.numbers import quantity
from train.host.plain_config import plain
from train.host.program import Program
from train.host.running.preparation import compile_within_memory, policy_for, trace
from train.host.running.saved_runs import with_run_fields
from train.host.running.session import Session
from train.host.scoring.games import GamesEvaluation
from train.host.scoring.matches import Match
from train.host.training import Training
from train.sweep.plan import Group, config_of

SHARE = 0.8
"""Of the memory that is free, for a batch."""


class TrainedMember(NamedTuple):
    """A member after its training."""

    member: int
    state: Any  # of the training; NumPy arrays
    updates: int
    finite: bool  # whether all its parameters are
    fingerprint: str  # equal for members with equal parameters


def training_of(program: Program, group: Group) -> Training:
    """The training of the members of a group; its states are `members.MemberState`."""
    base = program.training(config_of(group.config, group.trials[0].values))
    make = lambda numbers: program.training(config_of(group.config, numbers))
    init, update = make_member_functions(make, kind_of(base))
    return base._replace(init=init, update=update, blocks=1)  # devices share members alone


def policy_of(program: Program, group: Group) -> dict[str, np.ndarray] | None:
    """The parameters that all members of a group start from; None: random ones.

    Raises UsageError unless the policy of `run.policy` is of this program and has their network.
    """
    if not group.config.run.initial_policy:
        return None  # no need to make a training, which may look at data for long
    base = program.training(config_of(group.config, group.trials[0].values))
    return policy_for(base, group.config.run, program.address)


def kind_of(training: Training) -> type:
    """The type of the states of a training."""
    return type(jax.eval_shape(training.init, jax.random.key(0)))


def batches(program: Program, group: Group) -> Iterator[Group]:
    """A group in parts of about equal size that fit into memory."""
    count = len(group.trials)
    parts = -(-count // min(count, max_members(program, group)))
    for indices in np.array_split(np.arange(count), parts):
        yield group._replace(trials=[group.trials[i] for i in indices])


def max_members(program: Program, group: Group) -> int:
    """How many members fit into memory side by side, at least 1.

    All arrays of one member's program together are more than it needs. If so much fits for every
    member, that is enough; otherwise the compiler is asked what one member needs.
    """
    free, config = memory.free_bytes(), on_shared_devices(group.config, 1)
    if free is None or len(group.trials) == 1:
        return len(group.trials)
    one = group._replace(trials=group.trials[:1])
    traced = trace(training_of(program, one), config, members_of(one))
    upper_bound = sum(map(memory.size_of, jax.tree.leaves(traced.like)))
    upper_bound += sum(map(memory.size_of, memory.arrays(traced.chunk.jaxpr.jaxpr)))
    if upper_bound * len(group.trials) <= SHARE * free:
        return len(group.trials)
    needed_bytes = memory.program_bytes(traced.compile().chunk) or upper_bound
    return max(1, int(SHARE * free // needed_bytes))


def on_shared_devices(config: Any, members: int) -> Any:
    """`config` with as many of `--devices N` as can share so many members equally.

    How many members a batch has depends on the memory, and of the confirmation on its seeds. A
    sweep that is resumed takes no flags, so where there are fewer than N it has those there are.
    """
    request = config.run.devices
    if not request.isdecimal():
        return config
    count, _ = devices.mesh_shape(min(int(request), len(jax.devices())), members, 1)
    return with_run_fields(config, devices=str(count))


def members_of(group: Group) -> Members:
    """The members of a group, for a `Session`."""
    seeds = [trial.seed for trial in group.trials]
    return Members(seeds, group.numbers(), [trial.member for trial in group.trials])


def train(
    program: Program, group: Group, directory: Path, sweep: Path, title: str
) -> list[TrainedMember]:
    """Trains the members of a batch, or goes on, in a directory of its own.

    Raises Interrupted after a signal, once all is saved.
    """
    training, members = training_of(program, group), members_of(group)
    config = on_shared_devices(group.config, len(members.seeds))
    directory.mkdir(parents=True, exist_ok=True)
    started = time.perf_counter()
    traced = trace(training, config, members)
    with metrics_file.MetricsFile(directory) as record, Display(title) as display:
        display.say(f"{title}: compiling for {quantity(len(members.seeds), 'members')}")
        programs = compile_within_memory(traced, config)
        display.say(f"{title}: compiled in {time.perf_counter() - started:.1f}s")
        used = {"files": files_of(config), "devices": devices.count_of(traced.like)}
        sources = provenance() | used
        meta = {"name": title, "config": plain(config), **sources}
        batch = RunDirectory(directory)
        has_begun = checkpoint.steps(batch.checkpoints)
        policy = None if has_begun else policy_of(program, group)
        session_parts = training, config.run, members, batch, programs, policy
        session_options = {"members_are_trials": True, "resume_path": sweep}
        with StopRequest(display.say) as stop:
            session = Session(*session_parts, record, display, stop, meta, **session_options)
            with checkpoint_errors(directory):
                state, counters = session.train()
        if stop.requested:  # during the last chunk
            raise Interrupted(f"stopped after training a batch: {resume_flag(sweep)}")
    base = program.training(config_of(config, group.trials[0].values))
    state = devices.move_to_one_device(state)
    return split(state, last_updates(directory, counters.updates), group, kind_of(base))


def last_updates(directory: Path, updates: int) -> Mapping[int, int]:
    """The updates of each member of a batch after `updates`: one may have ended before others."""
    rows = metrics_file.read_metrics(directory)
    return defaultdict(lambda: updates, {row["member"]: row["updates"] for row in rows})


@contextmanager
def checkpoint_errors(directory: Path) -> Iterator[None]:
    """Turns an error of the checkpoints of a batch into a UsageError that says what to do."""
    try:
        yield
    except checkpoint.CheckpointError as error:
        raise UsageError(f"{error}: delete {directory} to train this batch again") from error


def split(
    state: PyTree, updates: Mapping[int, int], group: Group, kind: type
) -> list[TrainedMember]:
    """The members of a trained batch, one by one; `updates` are those of each by its index."""
    members = []
    for i, trial in enumerate(group.trials):
        member = take(state, i)
        arrays = [np.asarray(x) for x in compiled.parameters(member.agent)]
        members.append(
            TrainedMember(
                trial.member,
                unpack_state(member, kind),
                updates[trial.member],
                all(np.isfinite(x).all() for x in arrays if x.dtype.kind == "f"),
                hashlib.sha256(b"".join(x.tobytes() for x in arrays)).hexdigest(),
            )
        )
    return members


def score(
    program: Program, group: Group, trained: list[TrainedMember]
) -> dict[int, dict[str, Any]]:
    """Scores each finite member: the rows of its evaluation, by the index of the member.

    The key of each depends on its seed alone, as after an ordinary run. Games are compiled once.
    """
    finite_pairs = [(trial, x) for trial, x in zip(group.trials, trained, strict=True) if x.finite]
    if not finite_pairs:
        return {}
    seeds = [trial.seed for trial, _ in finite_pairs]
    keys = [compiled.keys_of(seed)[1] for seed in seeds]
    base = program.training(config_of(group.config, finite_pairs[0][0].values))
    if isinstance(base.evaluate, GamesEvaluation):
        match = match_of(program, group.config, base.evaluate.match.limit)
        games = GamesEvaluation(match, score=base.score, place=base.evaluate.place)
        numbers = [{name: trial.values[name] for name in group.names} for trial, _ in finite_pairs]
        players = [(x.state.agent, n) for (_, x), n in zip(finite_pairs, numbers, strict=True)]
        rows = games(players, seeds, keys).content["seeds"]
    else:
        rows = [
            program.training(config_of(group.config, trial.values))
            .evaluate([x.state.agent], [trial.seed], [key])
            .content["seeds"][0]
            for (trial, x), key in zip(finite_pairs, keys, strict=True)
        ]
    return {x.member: row for (_, x), row in zip(finite_pairs, rows, strict=True)}


def match_of(program: Program, config: Any, limit: int | None) -> Match:
    """The games of a member; a player is its agent and its numbers, with which it is traced."""

    def member_match(numbers: dict[str, Any]) -> Match:
        evaluate = program.training(config_of(config, numbers)).evaluate
        assert isinstance(evaluate, GamesEvaluation)
        return evaluate.match

    def start(player: tuple[AgentState, dict[str, Any]], key: jax.Array) -> EvaluationState:
        agent, numbers = player
        return member_match(numbers).start(agent, key)

    def advance(
        player: tuple[AgentState, dict[str, Any]], evaluation: EvaluationState, window: Watch
    ) -> EvaluationState:
        agent, numbers = player
        return member_match(numbers).advance(agent, evaluation, window)

    return Match(start, advance, limit)


def value_of(row: dict[str, Any], score: str) -> float | None:
    """The score in a row of an evaluation; None if no game was finished."""
    value = row[score]
    return value["mean"] if isinstance(value, dict) else value
