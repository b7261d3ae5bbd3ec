"""A search from its plan to the confirmation of the best; each step is kept."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import jax

from jaxrl import checkpoint
from train.host.files import metrics_file
from train.host.files.provenance import provenance
from train.host.showing.pictures import Row
from train.host.training import Training
from train.sweep import batches, files
from train.sweep.files import write_json
from train.sweep.plan import Group, Interval, Trial, config_of
from train.sweep.results import gallery, summary
from train.sweep.results.summary import Configuration
from train.sweep.search import candidates, rules
from train.sweep.search.candidates import Candidate
from train.sweep.search.judge import Judge
from train.sweep.search.rules import Rule
from train.sweep.search.schedule import Schedule
from train.sweep.search.slots import SlotMembers, slot_functions
from train.sweep.sweep import Sweep

STREAM = 2**31 - 3
"""Folded into the key of the seed, so that what is drawn is independent of the trainings."""


@dataclass(frozen=True)
class Search(Sweep):
    """One search; its `planned` has one group, of the first candidates."""

    kind: str  # "halving" or "population"
    ranges: Mapping[str, Interval]
    schedule: Schedule
    reduction: int

    def run(self) -> None:
        """Trains all slots, and writes, draws and confirms what was found."""
        self.train()
        rows = metrics_file.read_metrics(self.batch_directory)
        name, better = self.training.score.name, self.better
        pool = candidates.candidates(rows, name)
        ordered = candidates.configurations(pool, better)
        candidates.write_table(self.directory, pool, name)
        write_json(self.directory / files.SUMMARY, summary.content(ordered, name, better))
        width = self.console.width
        self.console.print(candidates.table(ordered, pool, name, self.training.unit, width))
        self.draw(rows, pool, ordered)
        if not checkpoint.steps(self.best_checkpoints):
            self.console.print(
                "no candidate that was trained to the end has a score, so there is no best one"
            )
            return
        best = checkpoint.read_meta(self.best_checkpoints)["candidate"]
        self.keep_best(next(x for x in pool if x.index == best), rows, pool)
        chosen = next(x for x in ordered if x.index == best)
        trial = Trial(0, best, chosen.seeds[0], chosen.values)
        winner = self.evaluate_best(trial, chosen)
        self.confirm_on(winner, self.group._replace(trials=[trial]), max(x.seed for x in pool) + 1)

    @property
    def group(self) -> Group:
        return self.planned.groups[0]

    @property
    def batch_directory(self) -> Path:
        return files.batch(self.directory, 0)

    @property
    def best_checkpoints(self) -> Path:
        """Checkpoints of the best candidate that was trained to the end."""
        return self.batch_directory / "finished"

    @cached_property
    def slot_training(self) -> Training:
        """The training of a slot, whose states are `slots.SlotState`."""
        kind = batches.kind_of(self.training)
        make = lambda numbers: self.program.training(config_of(self.group.config, numbers))
        init, update = slot_functions(make, kind)
        base = self.program.training(config_of(self.group.config, self.group.trials[0].values))
        return base._replace(init=init, update=update, converged_metric="")

    @property
    def rungs(self) -> list[int]:
        if self.kind == "halving":
            return self.schedule.rungs(self.reduction)
        return [self.schedule.budget]

    def rule(self) -> Rule:
        seed = self.config.run.seed
        if self.kind == "halving":
            return rules.halving(self.ranges, self.rungs, self.reduction, seed)
        return rules.population(self.ranges, self.schedule.period, self.schedule.budget, seed)

    def slot_members(self) -> SlotMembers:
        key = jax.random.fold_in(jax.random.key(self.config.run.seed), STREAM)
        most = self.schedule.candidates
        slots = rules.begin(self.group.numbers(), most, len(self.rungs), key)
        return SlotMembers.make([trial.seed for trial in self.group.trials], slots)

    def session_config(self) -> Any:
        """The configuration with the budget and the chunks of a slot."""
        per_update, run = self.training.steps_per_update, self.group.config.run
        steps = {"total_steps": self.schedule.total, "chunk_steps": self.schedule.chunk}
        changed = {name: updates * per_update for name, updates in steps.items()}
        return replace(self.group.config, run=replace(run, **changed))

    def train(self) -> None:
        """Trains the slots, or goes on. Raises Interrupted after a signal, once all is saved."""
        judge = Judge(
            self.slot_training,
            batches.kind_of(self.training),
            self.rule(),
            self.schedule.budget,
            self.best_checkpoints,
        )
        parts = self.slot_training, self.session_config(), self.slot_members()
        batches.train_members(*parts, self.batch_directory, self.directory, self.title, judge)

    @property
    def title(self) -> str:
        return f"{self.program.address} {self.kind}"

    def draw(self, rows: list[Row], pool: list[Candidate], ordered: list[Configuration]) -> None:
        """Draws the candidates over their ages."""
        aged_rows = [row | {"member": row["candidate"], "steps": row["age"]} for row in rows]
        members = list(map(candidates.member_of, pool))
        title = f"Search of {self.program.address} {self.preset}, {self.kind}"
        labels = (self.training.score.name, title, self.better, self.training.unit)
        for path in gallery.draw(self.directory, aged_rows, members, ordered, *labels):
            print(path)

    def restore_best(self) -> Any:
        """The state of the best candidate that was trained to the end."""
        shapes = jax.eval_shape(self.training.init, jax.random.key(0))
        return checkpoint.restore(self.best_checkpoints, shapes)[0]

    def keep_best(self, best: Candidate, rows: list[Row], pool: list[Candidate]) -> None:
        """Makes `best/`, a run directory of a candidate."""
        history = candidates.history(rows, best, pool)
        added = {"member", "candidate", "age", "numbers", "parent", "fate"}
        run_rows = [{name: x for name, x in row.items() if name not in added} for row in history]
        run_rows = [row | {"seed": best.seed} for row in run_rows]
        meta = {**provenance(), "counters": candidates.counters(run_rows)._asdict()}
        config = config_of(self.group.config, best.values)
        self.write_best(config, best.seed, self.restore_best(), meta, run_rows)

    def evaluate_best(self, trial: Trial, chosen: Configuration) -> Configuration:
        """The best candidate with the score of an evaluation, if wanted, instead of training."""
        if not self.config.run.evaluates:
            return chosen
        trained = batches.TrainedMember(
            trial.member, self.restore_best(), self.schedule.budget, True, ""
        )
        row = batches.score(self.program, self.group._replace(trials=[trial]), [trained])
        value = batches.value_of(row[trial.member], self.training.score.name)
        return chosen._replace(scores=[] if value is None else [value], iqm=value)
