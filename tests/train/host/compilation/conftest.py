"""A cache of compiled programs as a user has it who has told JAX nothing."""

from collections.abc import Iterator
from pathlib import Path

import jax
import pytest
from jax._src import compilation_cache as cache_of_jax

from train.host.compilation import compilation_cache
from train.host.compilation.compilation_cache import FOLDER, SWITCH

SETTINGS = (FOLDER, SWITCH, *compilation_cache.SETTINGS)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The cache home of a user who has told JAX nothing."""
    before = {name: getattr(jax.config, name) for name in SETTINGS}
    monkeypatch.setattr(cache_of_jax, "get_file_cache", cache_of_jax.get_file_cache)
    for name in SETTINGS:
        monkeypatch.setenv(name.upper(), "")  # so that it is restored, whatever a test sets
        monkeypatch.delenv(name.upper())
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    jax.config.update(FOLDER, None)
    cache_of_jax.reset_cache()
    yield tmp_path
    for name, value in before.items():
        jax.config.update(name, value)
    cache_of_jax.reset_cache()
