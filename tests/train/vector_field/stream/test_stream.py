"""The whole of it: a stream, its learner and a simulated rig, each in a process of its own."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrl import checkpoint
from jaxrl.dynamics.learners import state_space_learner
from jaxrl.dynamics.state_space.online import choice
from tests.train.vector_field.stream.test_guard import worst
from train.host.errors import FAILED
from train.host.files.run_directory import RunDirectory
from train.vector_field.stream import settings
from train.vector_field.stream.journal import Journal
from train.vector_field.stream.learning import learner_process
from train.vector_field.stream.learning.learner import first_state, in_units, rollout_of
from train.vector_field.stream.simulated_rig import Options, play

ROOT = Path(__file__).resolve().parents[4]
FLAGS = """--channels 20 --inputs 2 --bound 1.0 0.5 --rate 0.4 --charge 30 --window 50 --step-time 1
--fields polynomial --policy d_optimal --first-fit 40 --capacity 100 --port 0"""


class Stream:
    """`python -m train.vector_field stream`, and the port it listens on."""

    def __init__(self, *arguments: str):
        command = [sys.executable, "-m", "train.vector_field", "stream", *arguments]
        self.process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        match = re.search(r"ready on 127\.0\.0\.1:(\d+)", line)
        self.port = int(match[1]) if match else 0

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *_) -> None:
        with self.process:
            self.process.kill()

    def end(self, number: int) -> tuple[int, str]:
        """Exit code and what it still said, after a signal."""
        self.process.send_signal(number)
        output, _ = self.process.communicate(timeout=300)
        return self.process.returncode, output


GREETER = """
import os, socket, sys
loop = socket.create_connection(("127.0.0.1", int(sys.argv[2])))
loop.sendall(os.environ["JAXRL_STREAM_TOKEN"].encode())
loop.recv(1)
"""


def test_a_signal_to_the_group_of_the_loop_does_not_reach_the_learner(tmp_path, monkeypatch):
    """Ctrl-C in a terminal is one. The learner ends with the socket of the loop."""
    (tmp_path / "greeter.py").write_text(GREETER)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(learner_process, "MODULE", "greeter")
    learner = learner_process.LearnerProcess(settings.Options(2, 1, bound=(1.0,)), tmp_path)
    learner.start()
    process = learner._process
    assert process is not None
    group = os.getpgid(process.pid)
    learner.close()
    assert group == process.pid != os.getpgid(0)
    assert process.returncode == 0  # by itself


@pytest.mark.slow
def test_a_stream_learns_what_the_batch_program_learns_within_limits_over_a_crash(tmp_path):
    directory = tmp_path / "stream"
    with Stream(*FLAGS.split(), "--directory", str(directory)) as stream:
        played = [play(Options(port=stream.port, samples=70, interval=0.0))]
        stream.end(signal.SIGKILL)
    with Stream("--resume", str(directory), "--port", "0") as stream:
        played.append(play(Options(port=stream.port, samples=60, interval=0.005, seed=1)))
        code, output = stream.end(signal.SIGTERM)
    assert code == 0, output
    assert "99 % within" in output
    assert "goes on" in output

    # What went out, and what was written of it.
    options = settings.read(directory)
    y, u = Journal(directory, 20, 2).rows(0, 10**6)
    observed = np.isfinite(y).all(1)
    np.testing.assert_array_equal(y[observed], np.concatenate([x.y for x in played]))
    np.testing.assert_array_equal(u[observed], np.concatenate([x.u for x in played]))
    assert max(worst(settings.rig_limits(options), u.tolist()).values()) <= 0
    assert np.abs(u).max(0) == pytest.approx([1.0, 0.5], rel=0.3)
    with np.load(directory / "recording.npz") as recording:
        np.testing.assert_array_equal(recording["y"], y)

    # The field.
    problem = settings.problem(options)
    agent = state_space_learner.make(problem.config, problem.models, problem.constants)
    template = first_state(problem, options)
    learned, _, count = checkpoint.restore(RunDirectory(directory).checkpoints, template)
    assert count == len(y)

    def step(state, sample):
        y, u = sample
        key = jax.random.fold_in(jax.random.key(options.seed), state.count)
        return agent.update(state, rollout_of(y, u, 2), key)[0], None

    samples = jnp.asarray(y), jnp.asarray(in_units(problem, u))
    state = jax.jit(lambda *x: jax.lax.scan(step, *x)[0])(template, samples)
    assert int(state.params.fits) == int(learned.params.fits) >= 4
    places = jax.random.uniform(jax.random.key(0), (50, 2), minval=-1.5, maxval=1.5)
    field = lambda x: choice.displace(problem.models, x.params.choice, places)
    np.testing.assert_allclose(field(learned), field(state), rtol=1e-2, atol=1e-3)
    assert float(jnp.abs(field(state)).max()) > 0.05


@pytest.mark.slow
def test_a_stream_without_its_learner_goes_on_giving_inputs(tmp_path):
    with Stream(*FLAGS.split(), "--directory", str(tmp_path / "stream")) as stream:
        children = Path(f"/proc/{stream.process.pid}/task/{stream.process.pid}/children")
        if not children.exists():
            pytest.skip("this system does not say which processes another one has started")
        (learner,) = children.read_text().split()
        os.kill(int(learner), signal.SIGKILL)
        played = play(Options(port=stream.port, samples=60, interval=0.0))
        assert np.abs(played.u).max() > 0.3
        code, output = stream.end(signal.SIGTERM)
    assert code == FAILED, output
    assert "99 % within" in output
