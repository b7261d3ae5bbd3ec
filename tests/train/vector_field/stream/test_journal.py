"""Samples on disk."""

import resource

import numpy as np
import pytest

from train.host.errors import UsageError
from train.vector_field.stream import settings
from train.vector_field.stream.journal import FILE, Journal
from train.vector_field.stream.settings import Options


def test_what_is_appended_is_read_again_also_by_others_meanwhile(tmp_path):
    random = np.random.default_rng(0)
    y, u = random.normal(size=(5, 3)).astype(np.float32), random.normal(size=(5, 2))
    y[1] = np.nan
    journal, reader = Journal(tmp_path, 3, 2), Journal(tmp_path, 3, 2)
    assert reader.count == 0
    journal.begin_writing()
    journal.append(y[:2], u[:2])
    journal.append(y[2:], u[2:])
    assert journal.count == reader.count == 5
    for start, end in ((0, 5), (1, 3), (4, 9), (5, 7)):
        rows = reader.rows(start, end)
        np.testing.assert_array_equal(rows.y, y[start:end])
        np.testing.assert_array_equal(rows.u, u[start:end])
    journal.close()


def test_only_one_writes(tmp_path):
    first, second = Journal(tmp_path, 3, 2), Journal(tmp_path, 3, 2)
    first.begin_writing()
    with pytest.raises(UsageError, match="written by another process"):
        second.begin_writing()
    first.close()
    second.begin_writing()
    second.close()


def test_a_row_that_was_cut_short_is_dropped(tmp_path):
    first = Journal(tmp_path, 3, 2)
    first.begin_writing()
    first.append(np.ones((2, 3)), np.ones((2, 2)))
    first.close()
    with (tmp_path / FILE).open("ab") as file:
        file.write(b"\1" * 9)
    again = Journal(tmp_path, 3, 2)
    assert again.count == 2
    again.begin_writing()
    again.append(np.zeros((1, 3)), np.zeros((1, 2)))
    again.close()
    np.testing.assert_array_equal(again.rows(0, 9).u, [[1, 1], [1, 1], [0, 0]])


def test_rows_that_a_full_disk_refuses_leave_no_part_behind(tmp_path):
    journal, y, u = Journal(tmp_path, 3, 2), np.ones((2, 3)), np.ones((2, 2))
    journal.begin_writing()
    journal.append(y, u)
    size = (tmp_path / FILE).stat().st_size
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 40, limits[1]))
    try:
        with pytest.raises(OSError, match=FILE):
            journal.append(y, u)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    journal.append(2 * y[:1], 2 * u[:1])
    assert journal.count == 3
    np.testing.assert_array_equal(journal.rows(0, 9).u, [[1, 1], [1, 1], [2, 2]])
    journal.close()


@pytest.mark.parametrize("number", [0, 6000])
def test_a_sample_that_would_not_be_taken_now_is_refused_with_its_number(tmp_path, number):
    options, directory = settings.begin(Options(channels=3, directory=str(tmp_path / "stream")))
    y = np.ones((6001, 3), np.float32)
    y[5], y[number, 1] = np.nan, -1e20
    journal = Journal(directory, options.channels, options.inputs)
    journal.begin_writing()
    journal.append(y[:number], np.ones((number, 2)))
    journal.close()
    resumed = Options(resume=str(directory))
    assert settings.begin(resumed) == (options, directory)
    journal.begin_writing()
    journal.append(y[number:], np.ones((6001 - number, 2)))
    journal.close()
    place = rf"samples.bin, sample {number}: y holds values up to 1e\+20, expected at most 1e\+15: "
    with pytest.raises(UsageError, match=place):
        settings.begin(resumed)
