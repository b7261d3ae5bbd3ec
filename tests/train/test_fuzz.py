"""Input of strangers is accepted or refused in one line, soon, and nothing is written.

`python -m bench.fuzz` tries the same for longer.
"""

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.train import fuzz, fuzz_content

LITTLE = settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=fuzz.UNCHECKED,
)
LESS = settings(LITTLE, max_examples=4)
more = pytest.mark.parametrize("times", [1, pytest.param(5, marks=pytest.mark.slow)])
"""How many times as many examples."""


def with_more_examples(few: settings, times: int) -> settings:
    return settings(few, max_examples=times * few.max_examples)


@pytest.mark.fast_cases(1)
@more
@pytest.mark.parametrize("name", fuzz.LOADERS)
def test_files(name, times):
    @with_more_examples(LITTLE, times)
    @given(fuzz.contents(fuzz.LOADERS[name]))
    def check_content(content):
        with tempfile.TemporaryDirectory() as folder:
            assert not fuzz.load(name, content, Path(folder)).problem

    check_content()


@pytest.mark.fast_cases(1)
@more
@pytest.mark.parametrize("name", [*fuzz.PROGRAMS, *fuzz.COMMANDS])
def test_command_lines(name, times):
    @with_more_examples(LESS, times)
    @given(fuzz.command_lines(name))
    def check_line(line):
        with tempfile.TemporaryDirectory() as folder:
            fuzz.broken_run(Path(folder))
            assert not fuzz.type_in(name, line, Path(folder)).problem

    check_line()


@pytest.mark.parametrize("name", fuzz.LOADERS)
def test_the_valid_files_are_accepted(name, tmp_path):
    """Else the files with changed bytes would test little."""
    outcome = fuzz.load(name, fuzz.LOADERS[name].valid(), tmp_path)
    assert (outcome.problem, outcome.accepted) == ("", True)


def test_what_is_wrong_is_found(tmp_path):
    """An exception of another kind, two lines, a file that is written."""

    def problem_of(error):
        def call():
            raise error

        return fuzz.try_call(call, tmp_path).problem

    assert problem_of(KeyError("x")).startswith("KeyError")
    assert problem_of(ValueError("one\ntwo")).startswith("not one line")
    assert problem_of(ValueError("one")) == ""
    assert "wrote" in fuzz.try_call(lambda: (tmp_path / "new").write_text(""), tmp_path).problem


@settings(LITTLE, max_examples=5)
@given(st.data())
def test_arrays_are_of_all_kinds(data):
    assert isinstance(data.draw(fuzz_content.arrays()), np.ndarray)
