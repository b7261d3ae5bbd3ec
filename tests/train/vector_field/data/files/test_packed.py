"""Tables that gzip packed, and inputs in a file of their own."""

import gzip
from pathlib import Path

import numpy as np

from tests.train.vector_field.data.files.formats import (
    U,
    Y,
    assert_same,
    refuse,
    save_mat,
    table,
    write,
)
from train.vector_field.config import Config
from train.vector_field.data.files import loading
from train.vector_field.data.reading import read_data, step_time_of
from train.vector_field.data.step_time import StepTime


def pack(path: str) -> str:
    """Writes what gzip makes of a file, and returns its path."""
    packed = Path(f"{path}.gz")
    packed.write_bytes(gzip.compress(Path(path).read_bytes()))
    return str(packed)


def test_packed_tables_are_read_as_they_were(tmp_path):
    path = write(tmp_path, table("a,b,c,stim1,stim2", *Y.T, *U.T))
    assert_same(loading.load(pack(path)), loading.load(path))
    spikes = write(tmp_path, table("unit,time", [0, 1, 0], [0.1, 0.4, 2.2]), "spikes.csv")
    inputs = write(tmp_path, table("time,u", [0, 1, 2], [1, 0, 3]), "u.csv")
    data = loading.load(pack(spikes), 0.5, inputs=(pack(inputs),))
    assert_same(data, loading.load(spikes, 0.5, inputs=(inputs,)))


def test_other_packed_files_are_refused_with_what_to_do(tmp_path):
    np.savez(tmp_path / "a.npz", y=Y, u=U)
    for path in (str(tmp_path / "a.npz"), save_mat(tmp_path, y=Y, u=U)):
        refuse(pack(path), "of packed files only CSV is read: unpack it, gunzip")
    whole = Path(pack(write(tmp_path, table("a,b,c", *Y.T))))
    content = whole.read_bytes()
    for spoilt in (content[:-50], content[:3], content[:-8] + b"0" * 8):
        whole.write_bytes(spoilt)
        refuse(whole, "data.csv.gz cannot be read (gzip cannot unpack it, ")


def test_inputs_of_their_own_are_for_spikes_alone(tmp_path):
    inputs = write(tmp_path, "time,u\n0,1\n", "u.csv")
    np.savez(tmp_path / "a.npz", y=Y, u=U)
    refuse(tmp_path / "a.npz", "a.npz holds its inputs: leave out --inputs", inputs=(inputs,))
    trials = write(tmp_path, "unit,time,trial\n0,0.5,1\n0,0.2,2\n")
    refuse(trials, "trials begin at time 0 each: leave out --inputs, or", inputs=(inputs,))
    channels = write(tmp_path, table("a,b,c", *Y.T))
    refuse(channels, 'leave out --inputs, or give "" for this file', inputs=(inputs,))
    refuse(channels, "there are 1 files of data and 2 of inputs", inputs=(inputs, inputs))


def test_files_that_hold_their_inputs_stand_beside_spikes_with_a_file_of_inputs(tmp_path):
    """An empty name stands for them, in the order of the files."""
    np.savez(tmp_path / "a.npz", y=Y, u=U[:, :1])
    cells = save_mat(tmp_path, y=Y[:9, :2], u=U[:9, :1])
    spikes = write(tmp_path, table("unit,time", [0, 1, 0], [0.1, 1.4, 2.2]), "spikes.csv")
    light = write(tmp_path, table("time,u", [0, 1, 2], [1, 0, 3]), "u.csv")
    paths, inputs = (str(tmp_path / "a.npz"), cells, spikes), ("", "", light)
    config = Config(learner="state_space", data=paths, inputs=inputs, sessions=True)
    data = read_data(config)
    assert data.lengths.tolist() == [40, 9, 3]
    np.testing.assert_array_equal(data.u[2, :3, 0], [1, 0, 3])
    np.testing.assert_array_equal(data.u[1, :9], U[:9, :1].astype(np.float32))
    assert step_time_of(config) == StepTime(1.0, "")
