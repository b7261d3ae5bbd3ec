"""A policy keeps what is below `params`: agents that act by more are found out and refused."""

import functools
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import pytest

from jaxrl import loop
from jaxrl.types import Agent
from tests.train import tiny
from tests.train.snake.snake_runs import make_run
from train import evaluate
from train.host.command_line import command
from train.host.program import Preset, Program
from train.host.running.used_inputs import used_inputs
from train.host.scoring import games
from train.host.training import PlayConfig, Score, Training
from train.policies import export


class CountingState(NamedTuple):
    """Parameters, and how often it has learned."""

    params: jax.Array
    updates: jax.Array


class Table(NamedTuple):
    """An agent without any field `params`."""

    table: jax.Array


@dataclass(frozen=True)
class Config:
    """Agents that act by other state; `kind` says which."""

    kind: str = "explores"
    run: PlayConfig = field(
        default_factory=lambda: PlayConfig(
            total_steps=4 * tiny.PER_UPDATE, chunk_steps=4 * tiny.PER_UPDATE, evaluation_games=2
        )
    )


def make_agent(kind: str, greedy: bool) -> Agent:
    def init(key, obs):
        weight = jnp.ones(())
        return Table(weight) if kind == "table" else CountingState(weight, jnp.zeros((), jnp.int32))

    def act(state, memory, obs, key):
        unused = jnp.exp(-state[-1])  # nothing depends on it
        if kind == "table" or (greedy and kind == "explores"):
            return state[0] * 0.1, memory, unused
        noise = jax.random.uniform(key) / (1 + state[-1])
        return state[0] * 0.1 + noise, memory, unused

    def update(state, rollout, key):
        return state if kind == "table" else CountingState(state.params, state.updates + 1), {}

    return Agent(init, lambda: (), act, update)


def make_training(config: Config) -> Training:
    agent, player = (
        make_agent(config.kind, greedy) for greedy in (False, config.run.evaluation_greedy)
    )
    parts = loop.make_loop(tiny.Walk(), (), agent, loop.Config(tiny.NUM_ENVS, tiny.NUM_STEPS))
    count, score = config.run.evaluation_games, Score("right")
    evaluation = games.of_player(tiny.Walk(), (), player, count, 50, score=score)
    return Training(*parts, steps_per_update=tiny.PER_UPDATE, **evaluation.fields)


PRESETS = {kind: Preset(Config(kind)) for kind in ("explores", "counts", "table")}
PROGRAM = Program("acting", PRESETS, make_training)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A run of each kind, which nobody trained."""
    folder = tmp_path_factory.mktemp("acting")
    for kind in PRESETS:
        make_run(folder / kind, kind, lambda agent: agent, PROGRAM)
    return folder


def refusal(capsys, main, *arguments: str) -> str:
    """The one line with which a command refuses its arguments."""
    capsys.readouterr()
    assert main(list(arguments)) == 2
    out, err = capsys.readouterr()
    assert (err.count("\n"), out) == (1, "")
    return err


def test_a_program_is_found_by_the_module_of_its_training(folder: Path):
    assert PROGRAM.address == __name__
    assert PROGRAM.command == f"python -m {__name__}"
    assert evaluate.main([str(folder / "explores"), "--games=3", "--sampled"]) == 0
    assert json.loads((folder / "explores" / "eval.json").read_text())["score"] == "right"


def test_a_policy_that_explores_by_other_state_is_only_played_greedily(
    folder: Path, capsys, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(folder)  # its score is written into runs/ there
    path = str(folder / "p")
    assert export.main(["export", str(folder / "explores"), path]) == 0
    assert evaluate.main(["--policy", path, "--games=3"]) == 0
    complaint = refusal(capsys, evaluate.main, "--policy", path, "--games=3", "--sampled")
    assert "has no exploration, which needs updates of the agent's state" in complaint


def test_the_card_of_a_program_elsewhere_claims_no_more_than_is_known(folder: Path):
    assert evaluate.main([str(folder / "explores"), "--games=3"]) == 0
    path = export.export(folder / "explores", folder / "carded")
    card = path.with_suffix(".md").read_text()
    assert "| right (95 % interval) | return (95 % interval) |" in card
    assert f"python -m train.evaluate --policy {path}" in card
    assert f"`{__name__}`, of unknown version" in card
    assert f"All this needs jaxrl, and the module `{__name__}`." in card
    assert f'policy = train.load("{path}")' in card
    for unknown in ("Apache", "resume", "directory", "render"):
        assert unknown not in card


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("counts", "cannot be exported: acting greedily, its agent reads updates of its state"),
        ("table", "has no numbers below a field named params"),
    ],
)
def test_an_agent_that_acts_by_other_state_is_not_exported(folder: Path, kind, message, capsys):
    path = folder / kind / "p"
    assert message in refusal(capsys, export.main, "export", str(folder / kind), str(path))
    assert not list(path.parent.glob("p.*"))


def test_an_agent_without_parameters_does_not_begin_with_a_policy(folder: Path, capsys):
    path = export.export(folder / "explores", folder / "given")
    train = functools.partial(command.main, PROGRAM)
    flags = (f"--run.policy={path}", f"--run.directory={folder / 'begun'}")
    assert "has no numbers below a field" in refusal(capsys, train, "table", *flags)
    assert not (folder / "begun").exists()


def in_jit(a, b, c, d):
    return jax.jit(lambda x, y: x + 0 * jnp.size(y))(a, b)


def in_a_scan(a, b, c, d):
    return jax.lax.scan(lambda x, y: (x + c, y), a, jnp.stack([b, b]))[0]


def in_a_loop(a, b, c, d):
    return jax.lax.while_loop(lambda x: x < c, lambda x: x + b, a)


def in_a_branch(a, b, c, d):
    return jax.lax.cond(a > 0, lambda x, y: x, lambda x, y: x * y, b, c)


@pytest.mark.parametrize(
    ("function", "read"),
    [
        (lambda a, b, c, d: a + 1, "a"),
        (lambda a, b, c, d: (jnp.exp(b), c)[1], "c"),
        (in_jit, "a"),
        (in_a_loop, "abc"),
        (in_a_branch, "abc"),
        (in_a_scan, "ac"),
        (jax.checkpoint(lambda a, b, c, d: a * d), "ad"),
        (lambda *x: jax.nn.relu(x[1]), "b"),
    ],
)
def test_what_a_function_reads(function, read: str):
    jaxpr = jax.make_jaxpr(function)(*(jnp.float32(1),) * 4).jaxpr
    read_names = {name for name, is_used in zip("abcd", used_inputs(jaxpr), strict=True) if is_used}
    assert read_names == set(read)
