"""The options of a sweep, from its flags or from its plan."""

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any

import tyro

from jaxrl.checks import Count, CountOrZero
from train.host.errors import UsageError
from train.host.numbers import listing
from train.host.plain_config import check_options, rebuild
from train.sweep import files
from train.sweep.cluster import Cluster

OF_SEARCHES = ("search", "members", "rung", "reduction", "budgets")
"""Options of searches, which sweeps had until 2026-11."""


@dataclass(frozen=True)
class Options:
    """Trains many configurations and seeds of a program side by side, and compares them.

    NAME is a program, such as snake or gymnax; all flags of `python -m train.NAME` may be given,
    for all members. Numbers (learning rates, rewards, ...) are varied in one compilation, switches
    and sizes in one compilation each. Members that do not fit into memory together are trained in
    batches. The best configuration is scored again on seeds that had no part in choosing it.
    """

    vary: Annotated[list[str], tyro.conf.UseAppendAction] = field(default_factory=list)
    """What to try: FIELD=VALUE,VALUE,..., or with --random FIELD=LOW..HIGH or
    FIELD=log:LOW..HIGH. May be given several times; the grid combines all values."""
    seeds: Count = 3
    """Seeds of each configuration: run.seed, run.seed + 1, and so on."""
    random: CountOrZero = 0
    """Configurations drawn at random, beside the preset itself; 0: the grid."""
    confirm: Annotated[CountOrZero | None, tyro.conf.arg(metavar="INT")] = None
    """Fresh seeds on which the best configuration is scored again; None: as many as seeds."""
    directory: str = ""
    """Directory to create; empty: runs/sweep-NAME-DATE-TIME."""
    resume: Annotated[str, tyro.conf.arg(metavar="DIR")] = ""
    """Directory of a sweep to continue; nothing else but a cluster is given then."""
    cluster: Cluster = field(default_factory=Cluster)

    @property
    def confirm_seeds(self) -> int:
        return self.seeds if self.confirm is None else self.confirm


def saved_options(saved: Any, directory: Path) -> Options:
    """The options of a sweep's plan, also of one from before searches were taken out.

    Raises UsageError for a search, and for options that no sweep has or that are not as declared.
    """
    plan = directory / files.PLAN
    if not isinstance(saved, dict):
        raise UsageError(f"{plan}: options is {saved!r}, expected names and their values")
    if saved.get("search"):
        raise UsageError(
            f"{directory} is a search, which this version cannot continue: begin a sweep with "
            "--random"
        )
    names = [x.name for x in fields(Options)]
    if unknown := [str(name) for name in saved if name not in (*names, *OF_SEARCHES)]:
        raise UsageError(
            f"{plan}: there is no option {listing(unknown)}; there are {listing(names)}"
        )
    options = rebuild(Options(), {name: x for name, x in saved.items() if name in names})
    is_list = isinstance(options.vary, list | tuple)
    if not is_list or not all(isinstance(text, str) for text in options.vary):
        raise UsageError(f"{plan}: vary is {options.vary!r}, expected a list of FIELD=VALUE,...")
    check_options(options, str(plan))
    return options
