"""What is kept of a run while it learns: when, what, and the same after a resume."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from tests.train.host import descent
from train.host.errors import UsageError
from train.host.files import snapshots
from train.host.running.run import run

CHUNK = 2


def due_updates(most: int) -> list[int]:
    return [k for k in range(most + 1) if snapshots.is_due(k, CHUNK)]


def test_snapshots_become_rarer_but_never_depend_on_the_budget():
    chunks = [k // CHUNK for k in due_updates(4_000)]
    assert chunks[:12] == list(range(12))
    gaps = np.diff(chunks)
    assert (np.diff(gaps) >= -1).all()
    assert len(chunks) < 75
    assert (np.array(chunks[1:]) <= 1.11 * np.array(chunks[:-1]) + 1).all()
    assert due_updates(100) == [k for k in due_updates(4_000) if k <= 100]


def training_of(config):
    training = descent.make_training(config)

    def look(state):
        return {"place": state.agent.params, "updates": state.updates}

    def newest(state):  # two rows for each update of a chunk, known from its number
        rows = jnp.arange(2 * CHUNK) + 2 * (state.updates - CHUNK)
        return {"row": rows[None]}

    return training._replace(snapshot=look, samples=newest)


def configure(directory: Path, **changes) -> descent.Config:
    config = descent.Config()
    per = descent.PER_UPDATE
    budget = {"total_steps": 13 * per, "chunk_steps": CHUNK * per, "directory": str(directory)}
    return replace(config, run=replace(config.run, **(budget | changes)))


@pytest.mark.parametrize("seeds", [1, 3])
def test_a_run_keeps_what_it_is_asked_to(seeds, tmp_path):
    config = configure(tmp_path / "run", num_seeds=seeds)
    result = run(training_of(config), config, "descent")
    saved = snapshots.snapshots(result.directory, result.updates, CHUNK)
    assert saved is not None
    assert saved.updates.tolist() == [0, 2, 4, 6, 8, 10, 12, 13]
    assert saved.arrays["updates"].tolist() == [[k] * seeds for k in saved.updates]
    copy = result.directory / "snapshots" / "000000004 (1).npz"
    copy.write_bytes(copy.with_name("000000004.npz").read_bytes())
    again = snapshots.snapshots(result.directory, result.updates, CHUNK)
    assert again is not None
    assert again.updates.tolist() == saved.updates.tolist()
    last = np.asarray(result.state.agent.params).reshape(saved.arrays["place"][-1].shape)
    np.testing.assert_allclose(saved.arrays["place"][-1], last, rtol=1e-3, atol=1e-3)
    samples = snapshots.samples(result.directory, result.updates, 2, axis=2)
    assert samples is not None
    np.testing.assert_array_equal(samples["row"], np.tile(np.arange(26), (seeds, 1, 1)))


def test_a_resumed_run_keeps_the_same_and_ignores_an_earlier_end(tmp_path):
    whole = configure(tmp_path / "whole", total_steps=20 * descent.PER_UPDATE)
    run(training_of(whole), whole, "descent")
    first = configure(tmp_path / "two")
    run(training_of(first), first, "descent")
    longer = replace(first, run=replace(whole.run, directory="", resume=str(tmp_path / "two")))
    run(training_of(longer), longer, "descent")
    for read in (
        lambda name: snapshots.snapshots(tmp_path / name, 20, CHUNK),
        lambda name: snapshots.samples(tmp_path / name, 20, 2, axis=2),
    ):
        one, other = read("whole"), read("two")
        arrays: list[Any] = [
            x.arrays if isinstance(x, snapshots.SavedArrays) else x for x in (one, other)
        ]
        assert arrays[0].keys() == arrays[1].keys()
        for name in arrays[0]:
            np.testing.assert_array_equal(arrays[0][name], arrays[1][name])


def test_lost_samples_and_broken_files_are_named(tmp_path):
    config = configure(tmp_path / "run")
    result = run(training_of(config), config, "descent")
    (result.directory / "samples" / "000000004.npz").unlink()
    with pytest.raises(UsageError, match="lacks files"):
        snapshots.samples(result.directory, 13, 2, axis=2)
    (result.directory / "snapshots" / "000000004.npz").write_bytes(b"nothing of the kind")
    with pytest.raises(UsageError, match="cannot be read"):
        snapshots.snapshots(result.directory, 13, CHUNK)
    assert snapshots.snapshots(tmp_path, 13, CHUNK) is None
    assert snapshots.samples(tmp_path, 13, 2, axis=2) is None


def test_a_run_that_goes_on_without_its_first_samples_keeps_none(tmp_path):
    """The best member of a sweep is such a run, and can be drawn all the same."""
    config = configure(tmp_path / "run")
    result = run(training_of(config), config, "descent")
    shutil.rmtree(result.directory / "samples")
    more = {"total_steps": 20 * descent.PER_UPDATE, "directory": ""}
    config = replace(config, run=replace(config.run, **more, resume=str(result.directory)))
    result = run(training_of(config), config, "descent")
    assert result.updates == 20
    assert snapshots.samples(result.directory, 20, 2, axis=2) is None
