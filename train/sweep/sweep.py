"""A sweep from its plan to its summary; each step is kept, so that it can be interrupted."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import jax
from rich.console import Console

from jaxrl import checkpoint
from train.host.compilation import compiled
from train.host.files import metrics_file
from train.host.files.run_directory import RunDirectory
from train.host.plain_config import plain
from train.host.program import Program
from train.host.showing import pictures
from train.host.training import Training
from train.sweep import batches, confirmation, files, plan
from train.sweep.files import write_json
from train.sweep.plan import Group, Trial
from train.sweep.results import gallery, summary, tables
from train.sweep.results.summary import Configuration, Member


class Trials(NamedTuple):
    """What a sweep trains."""

    trials: list[Trial]
    groups: list[Group]  # the batches
    default: int | None  # the configuration that is the preset itself, with the flags given


@dataclass(frozen=True)
class Sweep:
    """One sweep."""

    program: Program
    preset: str
    config: Any  # of all members, but for the values that are varied
    directory: Path
    planned: Trials
    confirm: int  # seeds on which the best configuration is scored again
    console: Console

    @cached_property
    def training(self) -> Training:
        """The training of the configuration without the varied values."""
        return self.program.training(self.config)

    @property
    def better(self) -> str:
        return "lower" if self.training.score.lower_is_better else "higher"

    def run(self) -> None:
        """Trains all members, scores them, and draws and writes what was found."""
        for i, group in enumerate(self.planned.groups):
            title = f"{self.program.address} sweep {i + 1}/{len(self.planned.groups)}"
            self.finish(group, files.batch(self.directory, i), title)
            self.write_table()
        members = self.members()
        ranked = self.summarise(members)
        best = best_member(members, self.training.score.lower_is_better)
        if best is None:
            self.console.print("no member has a score, so there is no best one")
            return
        if not checkpoint.steps(files.best(self.directory).checkpoints):
            self.write_best_run(best)  # once: it may have been trained further since
        self.confirm_best(ranked)
        run = files.best(self.directory)
        print(f"{run}  run of the best member: python -m train.report {shlex.quote(str(run))}")

    def finish(self, group: Group, directory: Path, title: str) -> list[dict[str, Any]]:
        """The scores of a batch, which is trained unless it has been."""
        saved_rows = files.read_scores(directory)
        if saved_rows is not None:
            return saved_rows
        trained = batches.train(self.program, group, directory, self.directory, title)
        rows = batches.score(self.program, group, trained) if self.config.run.evaluates else {}
        late_scores = last_scores(directory, self.training.score.name)
        score_rows = [
            {
                "member": x.member,
                "updates": x.updates,
                "finite": x.finite,
                "fingerprint": x.fingerprint,
                "score": score_of(x, rows, late_scores, self.score_name),
                "evaluation": rows.get(x.member),
            }
            for x in trained
        ]
        write_json(directory / files.SCORES, score_rows)
        return score_rows

    @property
    def score_name(self) -> str:
        """The measure by which members are compared: that of evaluations, if there are any."""
        score = self.training.score
        return (self.config.run.evaluates and score.evaluation) or score.name

    def scores(self) -> dict[int, dict[str, Any]]:
        """What is known of each member that was trained, by its index."""
        directories = (files.batch(self.directory, i) for i in range(len(self.planned.groups)))
        return {row["member"]: row for path in directories for row in files.read_scores(path) or []}

    def members(self) -> list[Member]:
        """All members, with their scores."""
        scores = self.scores()
        return [member_of(trial, scores[trial.member]) for trial in self.planned.trials]

    def write_table(self) -> None:
        """Writes `members.csv`, also while members are still to be trained."""
        scores = self.scores()
        rows = [table_row(trial, scores.get(trial.member)) for trial in self.planned.trials]
        files.write_table(self.directory, rows)

    def summarise(self, members: list[Member]) -> list[Configuration]:
        """Summarises the configurations, draws them and prints the table."""
        score = self.score_name
        configurations = summary.summarise(members, self.better, self.planned.default)
        write_json(
            self.directory / files.SUMMARY, summary.content(configurations, score, self.better)
        )
        self.console.print(tables.table(configurations, score, width=self.console.width))
        fingerprints = {index: row["fingerprint"] for index, row in self.scores().items()}
        for group in summary.find_identical(members, fingerprints):
            self.console.print(summary.no_effect_message(members, group), markup=False)
        labels = (score, title_of(self.program, self.preset), self.better, self.training.unit)
        drawn = self.rows(), members, configurations, *labels, self.training.score.name
        for path in gallery.draw(self.directory, *drawn):
            print(path)
        return configurations

    def rows(self) -> list[dict[str, Any]]:
        """The records of all batches."""
        paths = (files.batch(self.directory, i) for i in range(len(self.planned.groups)))
        return [row for path in paths for row in metrics_file.read_metrics(path)]

    def write_best_run(self, member: int) -> None:
        """Writes `best/`, a run directory of one member."""
        index, group = next(
            (i, group)
            for i, group in enumerate(self.planned.groups)
            if any(trial.member == member for trial in group.trials)
        )
        place = [trial.member for trial in group.trials].index(member)
        source = files.batch(self.directory, index)
        training, members = batches.training_of(self.program, group), batches.members_of(group)
        shapes = jax.eval_shape(compiled.init_all(training.init, members.starts), members.starts)
        with batches.checkpoint_errors(source):
            state, meta, updates = checkpoint.restore(RunDirectory(source).checkpoints, shapes)
        kind = batches.kind_of(self.training)
        trained = batches.split(state, batches.last_updates(source, updates), group, kind)[place]
        trial = group.trials[place]
        config = plan.config_of(group.config, trial.values)
        rows = [row for row in metrics_file.read_metrics(source) if row["member"] == member]
        counters = meta["counters"]
        counters["updates"] = trained.updates
        for name in ("episodes", "skipped"):
            counters[name] = [counters[name][place]]
        counters["rows"] = len(rows)
        rows = [{k: x for k, x in row.items() if k != "member"} for row in rows]
        self.write_run(config, trial.seed, trained.state, meta, rows)

    def write_run(
        self, config: Any, seed: int, state: Any, meta: dict[str, Any], rows: list[dict[str, Any]]
    ) -> None:
        """Writes `best/`: the state of a training, and the rows of its record.

        `meta` is that of its checkpoint, with its counters.
        """
        target = files.best(self.directory)
        changes = {"seed": seed, "num_seeds": 1, "directory": str(target), "resume": ""}
        changes["devices"] = "auto"  # each member was trained on one
        config = replace(config, run=replace(config.run, **changes))
        target.path.mkdir(exist_ok=True)
        target.write_config(self.program.address, self.preset, config)
        with metrics_file.MetricsFile(target.path) as record:
            record.replace(0, rows)
        meta = {**meta, "name": self.program.address, "config": plain(config)}
        updates = meta["counters"]["updates"]
        checkpoint.save(target.checkpoints, updates, state, meta)

    def confirm_best(self, ranked: Sequence[Configuration]) -> None:
        """Scores the best configuration on seeds that had no part in choosing it."""
        if len(ranked) < 2 or not self.confirm:
            return
        best = ranked[0]
        trial = next(x for x in self.planned.trials if x.configuration == best.index)
        group = next(x for x in self.planned.groups if trial in x.trials)
        first = max(x.seed for x in self.planned.trials) + 1
        trials = [
            Trial(i, trial.configuration, first + i, trial.values) for i in range(self.confirm)
        ]
        group = group._replace(trials=trials)
        split = lambda: [
            [x.member for x in part.trials] for part in batches.batches(self.program, group)
        ]
        rows: list[dict[str, Any]] = []
        for i, indices in enumerate(files.confirmation_members(self.directory, split)):
            part = group._replace(trials=[trials[k] for k in indices])
            directory = files.confirmation_batch(self.directory, i)
            rows += self.finish(part, directory, f"{self.program.address} confirmation")
        members = [member_of(x, row) for x, row in zip(trials, rows, strict=True)]
        outcome, score = confirmation.confirm(best, members, self.better), self.score_name
        write_json(self.directory / files.CONFIRMED, confirmation.content(outcome, score))
        self.console.print(confirmation.sentence(outcome, score), markup=False)


def title_of(program: Program, preset: str) -> str:
    return f"Sweep of {program.address} {preset}"


def score_of(
    trained: batches.TrainedMember,
    rows: dict[int, dict[str, Any]],
    late_scores: dict[int, float | None],
    name: str,
) -> float | None:
    """The score of a member: of its evaluation or, without one, of its last chunk of training."""
    if not trained.finite:
        return None
    if trained.member in rows:
        return batches.value_of(rows[trained.member], name)
    return late_scores.get(trained.member)


def last_scores(directory: Path, score: str) -> dict[int, float | None]:
    """The last known score in training of each member, as its curve ends."""
    rows: dict[int, list[dict[str, Any]]] = {}
    for row in metrics_file.read_metrics(directory):
        rows.setdefault(row["member"], []).append(row)
    curves = {member: pictures.curves(records, score, "steps") for member, records in rows.items()}
    return {member: float(curve[-1][1][-1]) for member, curve in curves.items() if curve}


def member_of(trial: Trial, row: dict[str, Any]) -> Member:
    identity = trial.member, trial.configuration, trial.seed, dict(trial.values)
    return Member(*identity, row["score"], state_of(row))


def state_of(row: dict[str, Any]) -> str:
    """How a member ended, one of `summary.STATES`."""
    if row["score"] is not None:
        return "done"
    return "unfinished" if row["finite"] else "failed"


def table_row(trial: Trial, row: dict[str, Any] | None) -> dict[str, Any]:
    """A line of `members.csv`."""
    identity = {"member": trial.member, "configuration": trial.configuration, "seed": trial.seed}
    if row is None:
        return {**identity, **trial.values, "state": "", "score": "", "updates": ""}
    return {
        **identity,
        **trial.values,
        "state": state_of(row),
        "score": row["score"],
        "updates": row["updates"],
    }


def best_member(members: Sequence[Member], lower: bool) -> int | None:
    """The index of the member with the best score; None if none has one."""
    scored_members = [member for member in members if member.score is not None]
    if not scored_members:
        return None
    sign = -1.0 if lower else 1.0
    return max(scored_members, key=lambda member: sign * (member.score or 0.0)).member
