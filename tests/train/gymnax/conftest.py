"""The file of a user, imported once for the tests of a file."""

from collections.abc import Iterator

import pytest

from tests.train.gymnax.users_file import FILE


@pytest.fixture(scope="module")
def module(tmp_path_factory) -> Iterator[str]:
    """The name of a module of a user's own."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "own_envs.py").write_text(FILE, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        yield "own_envs"
