"""Input of strangers: loaders and command lines, files and flags to feed them, and what is right.

Right is a value, or a documented error of one line; never another exception, never more than
`PATIENCE` seconds, and nothing is written. `tests.train.test_fuzz` tries a little of it in every
run of the suite, `python -m bench.fuzz` for as long as asked.
"""

import io
import json
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import safetensors.numpy
from hypothesis import HealthCheck
from hypothesis import strategies as st

from envs.grid import layouts
from jaxrl import checkpoint
from tests.train import fuzz_content as inside
from tests.train.durotaxis.tracks import track_files
from tests.train.fuzz_content import TREES, config_text, snake_config, utf8
from train import evaluate, render
from train.allo.recorded import recordings as trajectories
from train.durotaxis.field import read_field
from train.durotaxis.tracks import command as fitting
from train.durotaxis.tracks.files import formats
from train.host.command_line import command
from train.host.errors import REFUSED, RunError
from train.host.files import metrics_file, policy_files
from train.host.files.run_directory import RunDirectory, read_config_file
from train.host.plain_config import flag, names_below, rebuild
from train.host.program import find
from train.host.scoring import scores
from train.policies import export
from train.snake import rule_based
from train.vector_field import advice
from train.vector_field.data.files import loading

PATIENCE = 2.0
"""Seconds."""
DOCUMENTED = (RunError, ValueError, checkpoint.CheckpointError)
PROGRAMS = ("snake", "two_snake", "allo", "durotaxis", "vector_field", "goals", "gymnax")
UNCHECKED = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much)
POLICY = policy_files.TRAINED / "snake-10x10.safetensors"


class Loader(NamedTuple):
    """A reader of a file, an example of what it accepts, and other content of the right kind.

    `extra_files` are further ones, by name.
    """

    file: str  # its name in the run directory
    load: Callable[[Path], Any]  # takes the run directory
    valid: Callable[[], bytes]
    wrong: st.SearchStrategy[bytes]
    extra_files: Callable[[], dict[str, bytes]] = dict


class Outcome(NamedTuple):
    """What came of one input."""

    problem: str  # empty if all was right
    accepted: bool
    seconds: float


def read_maze(folder: Path) -> Any:
    return layouts.load(folder / "maze.txt")


def read_policy(folder: Path) -> Any:
    path = policy_files.file_of(folder / "policy.safetensors")
    policy_files.read_metadata(path)
    return policy_files.read_arrays(path, arrays_of_policy())


@cache
def arrays_of_policy() -> dict[str, np.ndarray]:
    return safetensors.numpy.load_file(POLICY)


def read_config_flag(folder: Path) -> Any:
    return command.parse(find("snake", "a test"), ["--config", str(folder / "config.yaml")])


def read_saved(folder: Path) -> Any:
    return rebuild(snake_config(), RunDirectory.open(folder).config()["config"])


LIKE = {"w": np.arange(3, dtype=np.float32)}
RECORD = "checkpoints/0000000001/record.json"


@cache
def saved_checkpoint() -> dict[str, bytes]:
    """The files of a checkpoint of `LIKE`."""
    with tempfile.TemporaryDirectory() as folder:
        state = jax.tree.map(jnp.asarray, LIKE)
        checkpoint.save(Path(folder) / "checkpoints", 1, state, {"counters": {"updates": 1}})
        paths = (path for path in Path(folder).rglob("*") if path.is_file())
        return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def read_checkpoint(folder: Path) -> Any:
    checkpoint.read_meta(folder / "checkpoints")
    return checkpoint.restore(folder / "checkpoints", LIKE)


@st.composite
def checkpoint_records(draw: st.DrawFn) -> bytes:
    """The record of a checkpoint with one entry set to something else; its seal breaks."""
    content = json.loads(saved_checkpoint()[RECORD])
    content[draw(st.sampled_from([*content, "unknown"]))] = draw(TREES)
    return json.dumps(content, default=str).encode()


read_npy = lambda folder: read_field(str(folder / "field.npy"))
read_npz = lambda folder: loading.load(str(folder / "data.npz"))
MAZE = b"####\n#..#\n####\n"
METRICS = b'{"seed": 0, "updates": 1, "score": 0.5}\n{"seed": 0, "updates": 2, "score": 0.75}\n'
LOADERS = {
    "maze": Loader(
        "maze.txt",
        read_maze,
        lambda: MAZE,
        utf8(inside.TILES | inside.LARGE),
    ),
    "field": Loader(
        "field.npy",
        read_npy,
        inside.npy,
        inside.npy_files(),
    ),
    "tracks": Loader(
        "tracks.csv",
        lambda folder: formats.read(str(folder / "tracks.csv")),
        track_files.OWN.encode,
        utf8(st.lists(st.sampled_from(track_files.WORDS), max_size=8).map("".join)),
    ),
    "recorded data": Loader(
        "data.npz",
        read_npz,
        inside.npz,
        inside.npz_files(),
    ),
    "spike times": Loader(
        "data.npz",
        read_npz,
        inside.spikes,
        inside.npz_files(),
    ),
    "trajectories": Loader(
        "walks.npz",
        lambda folder: trajectories.load(str(folder / "walks.npz")),
        inside.trajectories,
        inside.trajectory_files(),
    ),
    "configuration": Loader("config.yaml", read_config_file, config_text, inside.yaml_files()),
    "saved configuration": Loader("config.yaml", read_saved, config_text, inside.yaml_files()),
    "--config": Loader("config.yaml", read_config_flag, config_text, inside.yaml_files()),
    "metrics": Loader(
        "metrics.jsonl", metrics_file.read_metrics, lambda: METRICS, inside.JSON_LINES
    ),
    "evaluation": Loader(
        "eval.json", scores.read_evaluation, lambda: b'{"seeds": []}', inside.JSON_LINES
    ),
    "checkpoint": Loader(
        RECORD,
        read_checkpoint,
        lambda: saved_checkpoint()[RECORD],
        checkpoint_records(),
        saved_checkpoint,
    ),
    "arrays of a checkpoint": Loader(
        "checkpoints/0000000001/state.npz",
        read_checkpoint,
        lambda: saved_checkpoint()["checkpoints/0000000001/state.npz"],
        st.binary(max_size=200),
        saved_checkpoint,
    ),
    "policy": Loader("policy.safetensors", read_policy, POLICY.read_bytes, st.binary(max_size=100)),
}


@st.composite
def contents(draw: st.DrawFn, loader: Loader) -> bytes:
    """Random bytes; a valid file, cut short or with a few bytes changed; the right kind of file."""
    kind = draw(st.sampled_from(["bytes", "cut", "changed", "wrong", "wrong"]))
    if kind == "bytes":
        return draw(st.binary(max_size=200))
    if kind == "wrong":
        return draw(loader.wrong)
    content = bytearray(loader.valid())
    if kind == "cut":
        return bytes(content[: draw(st.integers(0, len(content)))])
    for _ in range(draw(st.integers(1, 4))):
        content[draw(st.integers(0, len(content) - 1))] = draw(st.integers(0, 255))
    return bytes(content)


def load(name: str, content: bytes, folder: Path) -> Outcome:
    """Lets a loader read `content` from a file in an empty folder."""
    loader = LOADERS[name]
    for name, other in (loader.extra_files() | {loader.file: content}).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(other)
    return try_call(lambda: loader.load(folder), folder)


def try_call(function: Callable[[], Any], folder: Path) -> Outcome:
    """Calls a loader; what is in `folder` must stay as it is."""
    before, began = listing(folder), time.perf_counter()
    problem, accepted = "", False
    try:
        with redirect_stderr(io.StringIO()):
            function()
        accepted = True
    except DOCUMENTED as error:
        if "\n" in str(error) or not str(error).strip():
            problem = f"not one line: {str(error)[:200]!r}"
    except Exception as error:
        problem = f"{type(error).__name__}: {str(error)[:200]}"
    seconds = time.perf_counter() - began
    return Outcome(problem or find_new_files(before, folder), accepted, seconds)


def find_new_files(before: set[str], folder: Path) -> str:
    """The files that are new in a folder, as a problem; empty: none."""
    new = listing(folder) - before
    return f"wrote {sorted(new)}" if new else ""


def listing(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


NUMERALS = ["-1", "0", "1", "3", "2147483648", "nan", "inf", "-inf", "1e30", "1e-30", str(10**30)]
WORDS = ["", "word", "é漢", "../missing", "missing/below", ".", "broken", "None", "True", "--"]
FLAGS = ["--unknown", "--run.unknown", "--help-me", "--", "-x", "--agent", "stray"]
FLAGS += ["--config", "--config=broken"]
COMMANDS: dict[str, Callable[[list[str]], int]] = {
    "evaluate": evaluate.main,
    "render": render.main,
    "policies": export.main,
    "snake.players": rule_based.main,
    "vector_field advise": advice.main,
    "durotaxis fit": fitting.main,
}
OPTIONS = {
    "evaluate": ["--policy", "--games", "--key", "--sampled", "--field-file", "--m"],
    "render": ["--policy", "--games", "--key", "--out"],
    "policies": ["export", "list", "--seed", "--hardware"],
    "vector_field advise": [
        *("--steps", "--hold", "--bound", "--low", "--rate", "--charge", "--inputs", "--state"),
        *("--seed", "--policy", "--field", "--key", "--out", "--overwrite"),
    ],
    "durotaxis fit": [
        *("--edges", "--pixel-size", "--ground", "--slope", "--base", "--field-file"),
        *("--field-range", "--width", "--height", "--goal", "--spawning", "--deaths", "--births"),
        *("--simulations", "--key", "--out"),
    ],
    "snake.players": ["--rows", "--cols", "--games", "--key", "--players", "--rules", "--out"],
}


@cache
def flags_of(name: str) -> list[str]:
    """The flags of a program: those of all its presets."""
    flags: dict[str, None] = {}
    for config, *_ in find(name, "a test").presets.values():
        flags |= dict.fromkeys(flag(x, config) for x in names_below(config, ""))
    return [*flags]


@st.composite
def command_lines(draw: st.DrawFn, name: str) -> list[str]:
    """A preset or another word, and up to four flags with values."""
    is_program = name in PROGRAMS
    presets = list(find(name, "a test").presets) if is_program else []
    first = [*(2 * presets), "broken", "word", ""]
    line = [draw(st.sampled_from(first))] if draw(st.booleans()) else []
    flags = st.sampled_from([*(flags_of(name) if is_program else OPTIONS[name]), *FLAGS])
    values = st.sampled_from(NUMERALS) | st.sampled_from(WORDS) | st.text(max_size=5)
    for _ in range(draw(st.integers(0 if line else 1, 4))):
        line.append(draw(flags))
        line += draw(st.lists(values, min_size=0, max_size=2))
    return line


def type_in(name: str, line: Sequence[str], folder: Path) -> Outcome:
    """What a command line does in a folder with a broken run, without training or playing."""
    return _type_in(name, line, folder)


def _type_in(name: str, line: Sequence[str], folder: Path) -> Outcome:
    out, err = io.StringIO(), io.StringIO()
    playing_patch = mock.patch.object(rule_based, "play_all", side_effect=SystemExit(0))
    training_patch = mock.patch.object(command, "train_program")
    before, began = listing(folder), time.perf_counter()
    with chdir(folder), playing_patch, training_patch, redirect_stderr(err), redirect_stdout(out):
        problem, code = "", None
        try:
            code = (
                command.main(find(name, "a test"), line)
                if name in PROGRAMS
                else COMMANDS[name](list(line))
            )
        except SystemExit as stop:
            code = stop.code
        except Exception as error:
            problem = f"{type(error).__name__}: {str(error)[:200]}"
    seconds, error_text = time.perf_counter() - began, err.getvalue()
    if code not in (0, None) and (
        code != REFUSED or error_text.count("\n") != 1 or not error_text.strip()
    ):
        problem = f"code {code}, stderr {error_text[:300]!r}"
    return Outcome(problem or find_new_files(before, folder), code == 0, seconds)


def broken_run(folder: Path) -> None:
    """A run directory without checkpoints, beside nothing else."""
    path = folder / "broken"
    (path / "checkpoints").mkdir(parents=True)
    (path / "config.yaml").write_bytes(config_text())
    (path / "metrics.jsonl").write_bytes(METRICS)
