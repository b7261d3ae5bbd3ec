"""Policies of small runs as files, and how one is changed."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tests.train.snake.snake_runs import make_run
from train.host.command_line import command
from train.host.files import policy_files
from train.host.program import Run
from train.host.running import saved_runs
from train.policies import export as policies
from train.snake.program import PROGRAM

GAME = "--env.rows 5 --env.cols 6 --loop.num_envs 4"
HIDDEN = "--network.hidden 8 7"
FLAGS = {
    "ppo": f"ppo {GAME} {HIDDEN} --env.mirror --env.rewards.food 2 --run.seed 3 --run.num_seeds 2",
    "dqn": f"dqn {GAME} {HIDDEN} --agent.capacity 40 --network.dueling",
}


def randomised_agent(agent: Any) -> Any:
    """Random numbers, so that its parameters differ from all else it keeps."""
    rng = np.random.default_rng(9)
    draw = lambda x: jnp.asarray(rng.standard_normal(x.shape), x.dtype)
    return jax.tree.map(lambda x: draw(x) if x.dtype == "f4" else x, agent)


def export(preset: str, tmp_path_factory) -> tuple[Run, Path]:
    folder = tmp_path_factory.mktemp(preset)
    directory = make_run(folder / "run", FLAGS[preset], randomised_agent)
    run, path = saved_runs.load(directory), folder / "small.safetensors"
    (directory / "eval.json").write_text(json.dumps({"score": "score", "seeds": [scores(run)]}))
    flags = [str(directory), str(path), f"--seed={run.seeds[-1]}", "--hardware=an abacus"]
    assert policies.main(["export", *flags]) == 0
    return run, path


def scores(run: Run) -> dict[str, Any]:
    summary = {"mean": 7.25, "low": 6.5, "high": 8.125, "median": 7.0, "max": 11.0}
    return {"seed": run.seeds[-1], "games": 40, "score": summary}


def contents(path: Path) -> tuple[dict[str, Any], bytes]:
    """Header and body of a safetensors file, read as its format is published."""
    data = path.read_bytes()
    end = 8 + int.from_bytes(data[:8], "little")
    return json.loads(data[8:end]), data[end:]


def rewrite(path: Path, change: Callable[[dict[str, Any]], Any], body: bytes | None = None):
    """Changes the header, or the numbers, and signs the file again."""
    header, new_body = contents(path)
    change(header)
    new_body = new_body if body is None else body
    if "__metadata__" in header:
        header["__metadata__"]["sha256"] = json.dumps(signature(header, new_body))
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + new_body)


def signature(header: dict[str, Any], body: bytes) -> str:
    arrays = {
        name: np.frombuffer(body[slice(*x["data_offsets"])], "<f4").reshape(x["shape"])
        for name, x in header.items()
        if name != "__metadata__"
    }
    return policy_files.checksum(header["__metadata__"], arrays)


def flip_bit(path: Path) -> None:
    """Another last bit in the last number."""
    data = path.read_bytes()
    path.write_bytes(data[:-4] + bytes([data[-4] ^ 1]) + data[-3:])


def metadata(**changes: Any) -> Callable[[Path], object]:
    def change(header):
        header["__metadata__"] |= {name: json.dumps(x) for name, x in changes.items()}

    return lambda path: rewrite(path, change)


def config_change(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], object]:
    def edit(header):
        config = json.loads(header["__metadata__"]["config"])
        change(config)
        header["__metadata__"]["config"] = json.dumps(config)

    return lambda path: rewrite(path, edit)


def begin(directory: Path, policy: Path | str, preset: str, flags: str = "") -> int:
    """One update too small to be seen, after a beginning with a policy.

    Layers among `flags` are in the place of those of the policy.
    """
    own = FLAGS[preset].replace(HIDDEN, "") if "--network.hidden" in flags else FLAGS[preset]
    run = f"--run.total_steps 1 --run.chunk_steps 1 --run.evaluation_games 0 --run.policy {policy}"
    small = f"--agent.learning_rate 1e-12 --run.directory {directory}"
    words = f"{own} {run} {small} {flags}".split()
    return command.main(PROGRAM, words)


def assert_refused(capsys, message: str) -> None:
    out, err = capsys.readouterr()
    assert message in err, err
    assert err.count("\n") == 1
    assert out == ""
