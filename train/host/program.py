"""The contract of a program, and a run of one.

A program is what a folder of `train/` offers to the commands: `python -m train.NAME`, `evaluate`,
`render`, `policies`. A program in a file of your own has them, too; see ARCHITECTURE.md.
"""

import importlib
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax

from jaxrl.types import AgentState
from train.host.errors import UsageError, in_one_line
from train.host.files.run_directory import RunDirectory
from train.host.plain_config import has_kinds_of
from train.host.showing import pictures
from train.host.showing.episodes import Scene
from train.host.showing.live import Live
from train.host.training import Evaluation, PlayConfig, Training

_ADDRESS = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


class Run(NamedTuple):
    """A loaded run directory; or a policy, as a run of one agent."""

    directory: Path
    program: "Program"  # the one that started it
    config: Any
    updates: int  # of the checkpoint
    agents: list[AgentState]  # one per seed
    state: Any = None  # the whole state, with a leading axis S for several seeds; policy: None
    preset: str = ""  # that its configuration was made of; empty: its directory says it

    @property
    def seeds(self) -> list[int]:
        return self.config.run.seeds

    @property
    def plays_games(self) -> bool:
        return isinstance(self.config.run, PlayConfig)

    @property
    def title(self) -> str:
        """What its pictures are called: the environment, or else the program, and the preset."""
        place = self.program.environment(self.config) or self.program.address
        preset = self.preset or RunDirectory.open(self.directory).config()["preset"]
        return f"{place}, {preset}" if preset else place


def learning_curve(
    run: Run, games: int = 0, key: jax.Array | None = None, evaluation: Evaluation | None = None
) -> list[Path]:
    """Draws `learning_curve.png`: the default for programs without pictures of their own."""
    del games, key, evaluation
    training = run.program.training(run.config)
    return [pictures.draw_curve(run.directory, training.score.name, run.title, training.unit)]


class EpisodeSelection(NamedTuple):
    """Which episodes to show."""

    count: int
    key: jax.Array  # of their random numbers
    limit: int  # steps of one that are shown, from its start
    member: int = 0  # of the run's agents


class Views(NamedTuple):
    """What shows the runs of a program. All have a default."""

    pictures: Callable[[Run, int, jax.Array, Evaluation | None], Iterable[Path]] = learning_curve
    """`(run, games, key, evaluation) -> paths`: writes pictures into the run directory. Pictures of
    a game choose it from `games` played with `key`; 0: no such pictures. `evaluation` is that of
    these games, if they have been played already."""
    film: Callable[[Run, int, jax.Array, Path], Iterable[Any]] | None = None
    """`(run, games, key, directory) -> lines`: films a policy and returns paths and a line on its
    score. None: its policies cannot be filmed."""
    episodes: Callable[[Run, EpisodeSelection], Scene | None] | None = None
    """Episodes to be looked at step by step, and who draws them (see `train.report`). None: those
    of `Training.player`, if there is one, without a drawing."""
    live: Callable[[Run, int], Live] | None = None
    """`(run, member) -> Live`: a policy to be watched and interfered with (see `train.play`). None:
    `Training.player` is watched, if there is one, without a drawing."""
    duel: Callable[[Run, int, Sequence[str]], Live] | None = None
    """`(run, member, against) -> Live`: the same, against others by name. None: it plays alone."""
    tables: Callable[[Run], Iterable[Any]] = lambda run: ()
    """What else is printed after a training, from its record."""


class Evaluator(NamedTuple):
    """`python -m train.evaluate` for programs that add flags of their own to it."""

    options: type
    """A dataclass of the flags: `run`, and `policy` where policies can be evaluated."""
    evaluate: Callable[[Run, Any], Any]
    """`(run, options) -> table`: writes the results and returns the table to print."""


class Preset(NamedTuple):
    """A configuration to begin with."""

    config: Any
    """A dataclass with a field `run`, a `training.Config`."""
    summary: str = ""
    """A line for `--help`: what it is."""
    wide: str = ""
    """The preset that learns the same in the same number of steps, shaped for GPUs and TPUs:
    thousands of environments, short rollouts, few large minibatches. Empty: there is none."""


class Program(NamedTuple):
    """What a folder of `train/` offers. Only the first three have no default."""

    name: str
    """NAME of `train.NAME`, for the programs there. One in a file of your own is known by its
    module instead, in run directories and in what is printed."""
    presets: Mapping[str, Preset]
    """By name, the default first."""
    training: Callable[[Any], Training]
    """Makes the training of a configuration; raises ValueError, in one line, if it is invalid."""
    module: str = ""
    """The module that holds the program as `PROGRAM`, for loading its runs: its `__name__`. Empty:
    the module of `training`."""
    static: Mapping[str, str] = {}
    """Float fields that may not be traced, by dotted name, and why. All others may be, so that
    `vmap` over them is a sweep."""
    for_sweep: Callable[[Any], Any] = lambda config: config
    """The configuration of all members of a sweep, with what would else follow from the seed of
    each, where one has a run of its own."""
    idle: Callable[[Any], Mapping[str, str]] = lambda config: {}
    """Fields that have no effect with a configuration, by dotted name, and why, where it cannot be
    declared beside a field (`jaxrl.dependent_fields`). Given as flags they are refused."""
    preset_for: Callable[[str, Any], str] = lambda preset, config: preset
    """`(preset, config) -> preset`: the preset whose defaults suit what `config` learns in, where a
    command line has named another one. Raises ValueError if there is no such environment."""
    complete: Callable[[Any], Any] = lambda config: config
    """A configuration with all that it leaves to its data, found out and printed before a training
    begins; as it is, if it leaves nothing open. Raises ValueError, in one line, for unusable
    data."""
    guess: Callable[[Any], Any] = lambda config: config
    """What `complete` might return, at once: a sweep asks it first whether its values can be
    trained, so that they are refused before a long look at data."""
    environment: Callable[[Any], str] = lambda config: ""
    """What a configuration learns in, for titles and messages, such as CartPole-v1; empty: the name
    of the program says it."""
    views: Views = Views()
    """What shows its runs."""
    evaluator: Evaluator | None = None
    """For programs with flags of their own; None: `Training.evaluate` and the usual flags."""
    alternative: str = ""
    """What to use in place of a policy that acts, for programs in which nothing acts step by
    step."""
    exports: bool = True
    """Whether a policy of it is whole as a file of its agent's parameters, and can be scored by it
    alone."""

    @property
    def address(self) -> str:
        """What `find` finds the program by: its name, or its module if outside of `train`."""
        module = self.module or getattr(self.training, "__module__", "")
        return self.name if self.is_ours else _importable_name(module)

    @property
    def is_ours(self) -> bool:
        """Whether this is a program of the folder `train/`, started as `python -m train.NAME`."""
        return self.module == f"train.{self.name}.program"

    @property
    def command(self) -> str:
        """The command line that starts the program."""
        return f"python -m {'train.' if self.is_ours else ''}{self.address}"

    def refuse_other_preset(self, preset: str, config: Any) -> None:
        """Raises ValueError unless a run of `config` can be read again as one of a preset."""
        names = [x for x in self.presets if has_kinds_of(config, self.presets[x].config)]
        if preset not in names:
            own = f", one of {', '.join(names)}" if names else ""
            raise ValueError(
                f"the configuration is not of the preset {preset!r}: give the name of its own{own}"
            )

    def preset_config(self, source: str | Path, name: str) -> Any:
        """The configuration of the preset that `source` (a run, a policy) names.

        Raises UsageError if that is unknown.
        """
        if not isinstance(name, str) or name not in self.presets:
            raise UsageError(f"{source} has the preset {name}, which is unknown here")
        return self.presets[name].config


class UnknownProgramError(UsageError):
    """There is no program of that name, rather than one that cannot be imported."""


def find(address: str, source: str | Path) -> Program:
    """The program at `Program.address`, as `source` (a run, a policy) names it.

    Raises UnknownProgramError if there is none, and UsageError for one whose module cannot be
    imported, each in one line.
    """
    if not isinstance(address, str) or not _ADDRESS.fullmatch(address):
        raise UnknownProgramError(f"{source} names {address!r}, which is no program")
    empty = ""
    for module in (f"train.{address}.program", address):
        try:
            program_module = importlib.import_module(module)
        except ImportError as error:
            if is_missing(module, error):
                continue
            reason = f"{module} cannot be imported ({in_one_line(error)})"
            raise UsageError(f"{source} names the program {address}, but {reason}") from error
        if holds_program(program_module):
            return program_module.PROGRAM
        empty = module
    advice = "start where its module can be imported"
    if empty:
        advice = f"{empty} holds no PROGRAM; give Program(module=...) the module that does"
    raise UnknownProgramError(
        f"{source} is of the program {address}, which is unknown here: {advice}"
    )


def is_missing(module: str, error: ImportError) -> bool:
    """Whether there is no module of this name, rather than one that lacks another."""
    is_absent = isinstance(error, ModuleNotFoundError) and bool(error.name)
    return is_absent and f"{module}.".startswith(f"{error.name}.")


def holds_program(module: Any) -> bool:
    """Whether a module holds a program as `PROGRAM`."""
    return isinstance(getattr(module, "PROGRAM", None), Program)


def _importable_name(module: str) -> str:
    """The name of a module, also of the one that was started as a command."""
    return _main_module_name() if module == "__main__" else module


def _main_module_name() -> str:
    """The importable name of the module that was started as a command."""
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    return spec.name if spec else Path(getattr(main, "__file__", "") or "main").stem
