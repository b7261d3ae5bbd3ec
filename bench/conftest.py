"""Tests of benchmarks run as those in `tests/` do: in strict modes, and in as many minutes."""

from tests.conftest import pytest_collection_modifyitems, pytest_runtest_setup

__all__ = ["pytest_collection_modifyitems", "pytest_runtest_setup"]
