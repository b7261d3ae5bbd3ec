"""Programs exported by earlier starts: what one command has traced, the next need not trace.

JAX keeps what it has compiled, but traces anew at each start, which then takes longest. So the
programs of a training are kept as StableHLO (`jax.export`), beside the compiled ones, each under a
digest of all that it follows from: its name and the shapes of its arguments, the configuration, the
code of this library and of the packages, the settings of JAX and the devices. Nothing is kept of a
training with code or files of the user's own: a digest might miss what changes there.
"""

import hashlib
import importlib.util
import json
import os
import site
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.extend
import numpy as np
from jax import export

from jaxrl.types import PyTree
from train.host.compilation import compilation_cache, tree_json
from train.host.entrance import OURS, ROOT
from train.host.plain_config import flatten, plain

FOLDERS = tuple(f"{ROOT / name}{os.sep}" for name in (*OURS, "train"))
"""Where all code of this library lies."""
PACKAGES = ("jax", "flax", "optax", "chex", "jraph", "gymnax", "numpy")
"""Whose functions are traced. An edit of one of their files is noticed, too."""
SHAPES_NOTHING = {f"run.{name}" for name in ("directory", "resume", "policy", "log", "live")}
"""Fields of a configuration that only say where a run is, starts from and is shown."""
SEPARATORS = str.maketrans(dict.fromkeys(",;:=|", " "))
"""What may stand between the paths in a text."""


class Shelf(NamedTuple):
    """Where the programs of a training are kept."""

    entries: compilation_cache.Entries
    source: str  # a digest of what they follow from


_shelf: ContextVar[Shelf | None] = ContextVar("shelf", default=None)


@dataclass(frozen=True, eq=False)
class ExportedProgram:
    """A program that has been traced."""

    program: export.Exported  # of flat arrays
    structure: Any  # of its results, as `tree_json`
    compiler_options: dict[str, str | bool]  # of XLA, that it needs

    def __call__(self, *arguments: PyTree) -> PyTree:
        leaves = self.program.call(*jax.tree.leaves(arguments))
        return tree_json.decode(self.structure, list(leaves))


@contextmanager
def keep_programs_of(name: str, config: Any) -> Iterator[None]:
    """Meanwhile programs that are traced under a name are kept, as those of a configuration.

    `name` is one of this library's programs; of others, without a name, nothing is kept.
    """
    token = _shelf.set(shelf_of(name, config))
    try:
        yield
    finally:
        _shelf.reset(token)


def shelf_of(name: str, config: Any) -> Shelf | None:
    """The shelf of a training; None: its programs are not to be kept."""
    entries = compilation_cache.entries() if name else None
    if entries is None:
        return None
    fields = {k: x for k, x in flatten(plain(config)).items() if k not in SHAPES_NOTHING}
    shipped = FOLDERS + package_folders()
    if names_files(fields) or not all(path.startswith(shipped) for path in module_files()):
        return None
    devices = [(x.platform, x.device_kind, x.id, x.process_index) for x in jax.devices()]
    source = digest(name, sorted(fields.items()), code_digest(), packages(), devices)
    return Shelf(entries, source)


def names_files(fields: Mapping[str, Any]) -> bool:
    """Whether a text in a configuration, or a part of it, is the path of a file that exists."""
    texts = [x for x in jax.tree.leaves(dict(fields)) if isinstance(x, str)]
    words = [word for x in texts for word in (x, *x.translate(SEPARATORS).split())]
    return any(word and os.path.exists(os.path.expanduser(word)) for word in words)


def module_files() -> list[str]:
    """The files of all modules of this process."""
    paths = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    return sorted(path for path in paths if isinstance(path, str))


def package_folders() -> tuple[str, ...]:
    """Where Python and its packages lie."""
    folders = [sysconfig.get_path(x) for x in ("stdlib", "platstdlib", "purelib", "platlib")]
    folders += [*site.getsitepackages(), site.getusersitepackages()]
    return tuple(f"{folder}{os.sep}" for folder in folders)


def packages() -> list[tuple[str, int, int]]:
    """What changes when a package is installed or a file of `PACKAGES` edited.

    It must not depend on what is loaded, which differs between a first start and later ones.
    """
    folders = [Path(folder) for folder in package_folders()]
    installed = [path for folder in folders for path in folder.glob("*.dist-info/RECORD")]
    specs = [importlib.util.find_spec(name) for name in PACKAGES]
    origins = [Path(spec.origin).parent for spec in specs if spec and spec.origin]
    sources = [path for folder in origins for path in folder.rglob("*.py")]
    return [describe_file(path) for path in sorted({*installed, *sources})]


def describe_file(path: Path) -> tuple[str, int, int]:
    """A file with its bytes and the nanosecond of its last change."""
    status = path.stat()
    return str(path), status.st_size, status.st_mtime_ns


def code_digest() -> str:
    """A digest of all files of this library, as some are imported only where they are used."""
    files = (path for folder in FOLDERS for path in Path(folder).rglob("*") if path.is_file())
    sources = sorted(path for path in files if path.suffix != ".pyc")
    return digest(*((path.relative_to(ROOT).as_posix(), path.read_bytes()) for path in sources))


def digest(*parts: Any) -> str:
    """A digest of how these parts are written."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def key_of(name: str, arguments: PyTree) -> str:
    """The name of the entry of a program; empty if it is not to be kept."""
    shelf = _shelf.get()
    if shelf is None or not name:
        return ""
    leaves, structure = jax.tree.flatten(arguments)
    settings = {k: x for k, x in jax.config.values.items() if k != compilation_cache.FOLDER}
    shapes = [describe_argument(x) for x in leaves]
    return (
        f"exported-{digest(shelf.source, name, str(structure), shapes, sorted(settings.items()))}"
    )


def describe_argument(x: Any) -> tuple:
    """What a program depends on of an argument, which is an array, a shape or a number."""
    return np.shape(x), getattr(x, "dtype", type(x)), place_of(x)


def place_of(x: Any) -> Any:
    """The sharding that an argument is to have; None where it is left open."""
    return x.sharding if isinstance(x, jax.ShapeDtypeStruct) else None


def read(key: str) -> ExportedProgram | None:
    """The program of an entry; None if there is none that can be used."""
    shelf = _shelf.get()
    content = shelf.entries.get(key) if shelf and key else None
    if content is None:
        return None
    header, _, program = content.partition(b"\n")
    try:
        return ExportedProgram(export.deserialize(bytearray(program)), **json.loads(header))
    except Exception:  # whatever an entry lacks, it is replaced
        return None


def write(
    key: str, traced: jax.stages.Traced, arguments: PyTree, compiler_options: dict[str, str | bool]
) -> ExportedProgram | None:
    """Keeps what was traced for these arguments; None if it is not to be kept, or cannot be."""
    shelf = _shelf.get()
    if shelf is None or not key:
        return None
    try:
        structure = tree_json.encode(jax.tree.structure(traced.out_info))
        content = bytes(export_flat(traced, arguments).serialize())
    except (ValueError, NotImplementedError):  # of trees and operations
        return None
    header = {"structure": structure, "compiler_options": compiler_options}
    shelf.entries.put(key, json.dumps(header).encode() + b"\n" + content)
    # as it will be read, so that it is compiled as the same program
    return ExportedProgram(export.deserialize(bytearray(content)), **header)


def export_flat(traced: jax.stages.Traced, arguments: PyTree) -> export.Exported:
    """A traced program as one of flat arrays, for the devices that it was traced for."""
    call = jax.extend.core.jaxpr_as_fun(traced.jaxpr)
    infos, places = jax.tree.leaves(traced.args_info), map(place_of, jax.tree.leaves(arguments))
    inputs = [
        jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=place)
        for x, place in zip(infos, places, strict=True)
    ]
    outputs = tuple(x.sharding for x in jax.tree.leaves(traced.out_info))
    is_placed = any(x is not None for x in outputs)
    options: dict[str, Any] = {"out_shardings": outputs} if is_placed else {}
    return export.export(jax.jit(lambda *leaves: tuple(call(*leaves)), **options))(*inputs)
