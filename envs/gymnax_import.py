"""Imports gymnax without seaborn, which takes a second and only draws one of its environments."""

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType


@contextmanager
def postpone_import(name: str) -> Iterator[None]:
    """Modules that are imported inside get `name` only when they first look something up in it."""
    if name in sys.modules:
        yield
        return
    sys.modules[name] = ModuleWhenUsed(name)
    try:
        yield
    finally:
        del sys.modules[name]


class ModuleWhenUsed(ModuleType):
    """A stand-in for the module of its name, which it imports where an attribute is looked up."""

    def __getattr__(self, attribute: str) -> object:
        return getattr(importlib.import_module(self.__name__), attribute)


with postpone_import("seaborn"):
    import gymnax as gymnax
