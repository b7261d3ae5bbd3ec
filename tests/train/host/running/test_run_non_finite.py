"""What is configured for numbers that are not finite happens."""

import re
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrl import checkpoint
from jaxrl.loop import Config as LoopConfig
from jaxrl.loop import make_loop
from tests.train import tiny
from tests.train.host.running.short_runs import Healthy, assert_close, configure, train
from train.host.errors import NonFiniteError
from train.host.files import metrics_file, policy_files
from train.host.machine.members import Members
from train.host.running.problems import Problem, advice
from train.host.running.run import Result, run
from train.host.scoring import best


class Breaking(tiny.Walk):
    """One episode in five or so turns into NaN in its seventh step, and never ends."""

    def reset(self, key, params):
        chance_key, key = jax.random.split(key)
        obs, (position, time) = super().reset(key, params)
        return obs, (position, jnp.where(jax.random.bernoulli(chance_key, 0.2), -1_000, time))

    def step(self, key, state, action, params):
        obs, after, reward, terminated, truncated, info = super().step(key, state, action, params)
        broken = (state[1] < 0) & (state[1] >= -994)
        nothing = jnp.where(broken, jnp.nan, 0.0)
        after = (after[0] + nothing, jnp.where(broken, state[1] + 1, after[1]))
        info = info | {"final_observation": info["final_observation"] + nothing}
        return obs + nothing, after, reward + nothing, terminated & ~broken, truncated, info


def test_what_was_tried_in_vain_is_not_advised():
    problem = Problem(
        "an observation is not finite", is_of_environment=True, learns_by_gradient=False
    )
    for policy, others in (("raise", {"restore", "skip"}), ("skip", {"restore"})):
        text = advice(problem, {}, policy, "runs/x")
        assert {x for x in ("restore", "skip") if x in text} == others


class TestNonFinite:
    """One update of the timeline yields NaN: the one whose random `bits` are known."""

    def poisoned_config(self, tmp_path: Path, poison: float, **fields) -> tiny.Config:
        fields = {"directory": tmp_path / "run", "checkpoint_every": 2, **fields}
        return configure("plain", 8, {"poison": poison}, **fields)

    def test_raise(self, tmp_path: Path, healthy: Healthy):
        with pytest.raises(
            NonFiniteError, match=r"update 6 of seed 0: loss is not finite: .*--resume"
        ):
            train(self.poisoned_config(tmp_path, healthy.poison(6)))
        assert checkpoint.steps(tmp_path / "run" / "checkpoints") == [4]
        assert [row["updates"] for row in metrics_file.read_metrics(tmp_path / "run")] == [2, 4]

    def test_skip(self, tmp_path: Path, healthy: Healthy):
        """The agent stays as it was before that update; environments and keys have moved on."""
        result = train(self.poisoned_config(tmp_path, healthy.poison(6), on_nonfinite="skip"))
        after = healthy.states[6]
        state = after._replace(agent=healthy.states[5].agent, key=jax.random.clone(after.key))
        for _ in range(2):
            state, _ = healthy.update(state)
        assert_close(result.state, state)
        assert result.updates == 8
        assert int(result.state.agent.updates) == 7
        rows = metrics_file.read_metrics(result.directory)
        assert [row["skipped"] for row in rows] == [0, 0, 1, 1]
        assert rows[2]["agent"]["bits"] == healthy.reports[4].agent["bits"]  # of the one kept

    def test_skip_stops_where_nothing_is_left(self, tmp_path: Path):
        with pytest.raises(NonFiniteError, match="update 1 of seed 0"):
            train(self.poisoned_config(tmp_path, float("inf"), on_nonfinite="skip"))

    @pytest.mark.slow
    def test_skip_starts_broken_environments_anew(self, tmp_path: Path, capsys):
        """Else they would stay broken, and no update of the last chunks would count."""
        result = self.run_broken_environment(tmp_path, "skip")
        rows = metrics_file.read_metrics(result.directory)
        assert 0 < rows[0]["skipped"] < rows[-1]["skipped"] < 20
        state: Any = result.state
        assert np.isfinite(state.obs).all()
        line = r"of seed 0: environment \d pays a reward that is not finite in its step \d+: undone"
        assert re.search(line, " ".join(capsys.readouterr().out.split()))

    @pytest.mark.slow
    def test_an_environment_is_blamed_for_what_it_pays(self, tmp_path: Path):
        match = (
            r"environment \d pays a reward .*: mend the environment, or try --resume .*restore or"
        )
        with pytest.raises(NonFiniteError, match=match):
            self.run_broken_environment(tmp_path, "raise")

    def run_broken_environment(self, tmp_path: Path, on_nonfinite: str) -> Result:
        fields = {"directory": tmp_path / "run", "chunk_steps": 10 * tiny.PER_UPDATE}
        config = configure("plain", 20, **fields, on_nonfinite=on_nonfinite)
        agent, size = tiny.make_agent(config.agent), LoopConfig(tiny.NUM_ENVS, tiny.NUM_STEPS)
        init, update = make_loop(Breaking(), (), agent, size)
        training = tiny.make_training(config)._replace(init=init, update=update)
        return run(training, config, tiny.PROGRAM.address, "plain")

    def test_restore(self, tmp_path: Path, healthy: Healthy, capsys, monkeypatch):
        """Back to update 4, and another way on from there; the best policy is of neither."""
        course = iter([0.5, 0.1, 0.9, 0.2, 0.3])  # 0.9 after update 6, which is given up
        score = lambda episodes: {"games": 1, "right": {"mean": next(course)}}
        monkeypatch.setattr(best, "summaries", score)
        fields: Any = {"on_nonfinite": "restore", "evaluate_every": 1, "evaluate_games": 1}
        result = train(self.poisoned_config(tmp_path, healthy.poison(8), **fields))
        chosen = healthy.states[2].agent
        policies = best.read(result.directory / "best", chosen, Members([0]))
        assert (policies.scores, policies.updates) == ([0.5], [2])
        for name, x in policy_files.parameters(chosen).items():
            np.testing.assert_allclose(policies.arrays[name], x[None], rtol=1e-5)
        assert "back to update 4" in capsys.readouterr().out
        rows = metrics_file.read_metrics(result.directory)
        assert [row["updates"] for row in rows] == [2, 4, 6, 8]
        assert [row["restores"] for row in rows] == [0, 0, 1, 1]
        state = healthy.states[4]
        state = state._replace(key=jax.random.fold_in(jax.random.clone(state.key), 1))
        for _ in range(4):
            state, _ = healthy.update(state)
        assert_close(result.state, state)

    @pytest.mark.slow
    def test_restore_gives_up(self, tmp_path: Path):
        with pytest.raises(NonFiniteError, match="so after each of 3 restores"):
            train(self.poisoned_config(tmp_path, float("inf"), on_nonfinite="restore", num_seeds=2))
