"""Compiled programs, kept in the user's cache folder: what one command compiled, no other has to.

JAX decides what is the same program: its key covers the program, the versions, flags and devices.
It writes into files that a crash can leave half written and that are never replaced, so `Entries`
holds them instead. Only commands use this; a folder or a switch that the user has given JAX wins.
"""

import hashlib
import os
import platform
import stat
import sys
import uuid
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import jax
import jaxlib.version
from jax._src import compilation_cache, compilation_cache_interface

from train.host.machine import distributed
from train.host.machine.progress import print_line

FLAGS = ("--no-cache", "--no_cache")
HELP = "--no-cache: compile all programs, and keep none for other commands."
SWITCH, FOLDER = "jax_enable_compilation_cache", "jax_compilation_cache_dir"
SETTINGS = {
    "jax_compilation_cache_max_size": 2_000_000_000,  # bytes of all entries
    "jax_persistent_cache_min_compile_time_secs": 0.1,  # what is faster would be many small files
    "jax_persistent_cache_min_entry_size_bytes": 0,
}
DIGEST = hashlib.sha256().digest_size
PRIVATE, OTHERS_WRITE = 0o700, stat.S_IWGRP | stat.S_IWOTH


def begin(arguments: Sequence[str]) -> list[str]:
    """Keeps what this process compiles, unless `--no-cache` is there; returns the other arguments.

    Processes that have joined do without: those of GPUs tune a program together, which one that
    finds it compiled would not take part in.
    """
    others = [x for x in arguments if x not in FLAGS]
    if len(others) < len(arguments):
        os.environ[SWITCH.upper()] = "0"  # of commands that this one starts
        jax.config.update(SWITCH, False)
    elif not (is_chosen_by_user() or distributed.has_joined()) and (root := private_root()):
        for name, value in SETTINGS.items():
            if name.upper() not in os.environ:
                jax.config.update(name, value)
        compilation_cache.get_file_cache = lambda path: (Entries(root, Path(path)), path)
        jax.config.update(FOLDER, str(root / kind_of_machine()))
    return others


def entries() -> "Entries | None":
    """Where this command keeps what it compiles; None: nowhere, or where the user has told JAX."""
    root = private_root()
    if root is None or not getattr(jax.config, SWITCH):
        return None
    folder = root / kind_of_machine()
    return Entries(root, folder) if getattr(jax.config, FOLDER) == str(folder) else None


def is_chosen_by_user() -> bool:
    """Whether JAX has a folder already, or is to do without."""
    has_folder = FOLDER.upper() in os.environ or getattr(jax.config, FOLDER) is not None
    return has_folder or not getattr(jax.config, SWITCH)


def private_root() -> Path | None:
    """The folder of all entries, which may not exist yet; None where it would not be private.

    Who can write an entry has it executed. Nor does the superuser make a folder in the home of
    another user, who could then not use it.
    """
    try:
        root = cache_home() / "jaxrl"
        place = next(x for x in (root, *root.parents) if x.exists())
        status = place.stat()
    except (OSError, RuntimeError):  # the latter without a home
        return None
    user = os.getuid() if hasattr(os, "getuid") else status.st_uid
    is_private = status.st_uid == user and not status.st_mode & OTHERS_WRITE
    is_fit = is_private if place == root else status.st_uid in (user, 0)
    return root if is_fit and os.access(place, os.W_OK | os.X_OK) else None


def cache_home() -> Path:
    """Where programs of this user keep what can be made again."""
    xdg_home = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if xdg_home.is_absolute():
        return xdg_home
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    return Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache")


def kind_of_machine() -> str:
    """A name for the versions and the processor that entries are for: homes may be shared."""
    about = [jax.__version__, jaxlib.version.__version__]
    about += [platform.system(), platform.machine(), platform.processor()]
    with suppress(OSError):  # there are such files on Linux only
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        names = ("model name", "flags", "Features", "CPU part")
        about += sorted({x for x in lines if x.startswith(names)})
    return f"jax-{jax.__version__}-{hashlib.sha256(repr(about).encode()).hexdigest()[:16]}"


class Entries(compilation_cache_interface.CacheInterface):
    """Files of compiled programs, each with a digest; the longest unused ones make room for others.

    Processes need no lock: a file appears as a whole and is never changed. What the file system
    refuses is not kept.
    """

    def __init__(self, root: Path, folder: Path):
        self._root, self._path = root, folder

    def get(self, key: str) -> bytes | None:
        """The entry; None without one, or if it is damaged."""
        path = self._path / key
        with suppress(OSError):
            content = path.read_bytes()
            if hashlib.sha256(content[DIGEST:]).digest() != content[:DIGEST]:
                path.unlink(missing_ok=True)
                return None
            with suppress(OSError):
                os.utime(path)
            return content[DIGEST:]
        return None

    def put(self, key: str, value: bytes) -> None:
        """Writes an entry, also in the place of one that could not be used."""
        with suppress(OSError):
            self._begin()
            if not self._make_room(DIGEST + len(value)):
                return
            partial = self._path / f".{uuid.uuid4().hex}"  # two processes may write one entry
            try:
                partial.write_bytes(hashlib.sha256(value).digest() + value)
                partial.replace(self._path / key)
            finally:
                partial.unlink(missing_ok=True)

    def _begin(self) -> None:
        """Makes the folders; says so once, when the first command does."""
        self._root.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            self._root.mkdir(mode=PRIVATE)
            most = jax.config.jax_compilation_cache_max_size / 1e9  # pyright: ignore
            text = f"compiled programs are kept in {self._root}, {most:.2g} GB at most"
            print_line(f"{text} (--no-cache does without)", stderr=True)
        self._path.mkdir(mode=PRIVATE, exist_ok=True)

    def _make_room(self, size: int) -> bool:
        """Deletes the files that were not used for longest; whether `size` bytes now fit."""
        limit: int = jax.config.jax_compilation_cache_max_size  # pyright: ignore
        if limit < 0:
            return True
        files = sorted(files_below(self._root), key=lambda file: file[1].st_mtime)
        total = size + sum(status.st_size for _, status in files)
        for path, status in files if size <= limit else ():
            if total <= limit:
                break
            path.unlink(missing_ok=True)
            total -= status.st_size
        return total <= limit


def files_below(root: Path) -> Iterator[tuple[Path, Any]]:
    """The files in a folder, of any depth, that other processes have not deleted meanwhile."""
    for path in root.rglob("*"):
        with suppress(OSError):
            if stat.S_ISREG((status := path.stat()).st_mode):
                yield path, status
