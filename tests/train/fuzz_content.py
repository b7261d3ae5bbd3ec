"""Random content of files, for `tests.train.fuzz`: the right kind of file, wrong inside."""

import io
from functools import cache
from typing import Any

import numpy as np
import yaml
from hypothesis import strategies as st

from train.host.plain_config import plain
from train.host.program import find

NUMBERS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**30), 10**30),
    st.floats(),
    st.text(max_size=8),
)
TREES = st.recursive(
    NUMBERS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=6), inner, max_size=4)
    ),
    max_leaves=8,
)
KINDS = ("<f4", "<f8", "<f2", ">f8", "<i8", "|u1", "|b1", "<c16", "<U3", "|S2", "<m8[s]", "<M8[s]")
SHAPES = st.one_of(
    st.lists(st.integers(0, 5), max_size=4).map(tuple),
    st.sampled_from([(400, 3), (2, 300, 2), (64, 64), (300,)]),
)
VALUES = st.sampled_from([0.0, 1.0, -1.0, 1e-30, 1e30, 1e308, np.nan, np.inf, -np.inf, 0.1])


@st.composite
def arrays(draw: st.DrawFn) -> np.ndarray:
    """Constant, random, tiny, huge and not finite arrays of all kinds."""
    shape, kind = draw(SHAPES), np.dtype(draw(st.sampled_from(KINDS)))
    array = np.asarray(np.random.default_rng(draw(st.integers(0, 9))).normal(size=shape))
    array[...] = array * draw(st.sampled_from([0.0, 1.0, 1e-30, 1e30])) + draw(VALUES)
    with np.errstate(all="ignore"):
        if kind.kind in "iumM":
            array = np.clip(np.nan_to_num(array), 0, 99).astype(int)
        return np.asarray(array).astype(kind)


SPIKES = ("spike_times", "spike_units", "spike_episodes", "duration")


@st.composite
def npz_files(draw: st.DrawFn) -> bytes:
    names = st.sampled_from(["y", "u", "y.npy", "z", "lengths", *SPIKES, ""])
    content = draw(st.dictionaries(names, arrays(), max_size=3))
    kind = draw(st.sampled_from(["any", "both", "data", "spikes"]))
    if kind == "both":
        content = {"y": draw(arrays()), "u": draw(arrays())}
    if kind in ("data", "spikes"):  # right, but for one array
        with np.load(io.BytesIO(npz() if kind == "data" else spikes())) as right:
            content = dict(right)
        content[draw(st.sampled_from([*content, "lengths", "duration"]))] = draw(arrays())
    file = io.BytesIO()
    save: Any = draw(st.sampled_from([np.savez, np.savez_compressed]))
    save(file, **content)
    return file.getvalue()


@st.composite
def npy_files(draw: st.DrawFn) -> bytes:
    """Arrays, also with a header that promises another shape than the data have."""
    file = io.BytesIO()
    np.save(file, draw(arrays()))
    shapes = ["(99999999, 99999999)", "(-1, 3)", "(3,)", "(1e9,)", "('a',)", "()"]
    promised = draw(st.sampled_from(["", *shapes]))
    if not promised:
        return file.getvalue()
    file = io.BytesIO()
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {promised}, }}".encode()
    header = header.ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(24)


@st.composite
def trajectory_files(draw: st.DrawFn) -> bytes:
    """Any arrays of the right names, or right ones but for one array."""
    names = ("states", "successors", "ends", "lengths", "positions")
    content = draw(st.dictionaries(st.sampled_from(names), arrays(), max_size=4))
    if draw(st.booleans()):
        with np.load(io.BytesIO(trajectories())) as right:
            content = dict(right)
        content[draw(st.sampled_from(names))] = draw(arrays())
    file = io.BytesIO()
    np.savez(file, **content)
    return file.getvalue()


def npz() -> bytes:
    file, rng = io.BytesIO(), np.random.default_rng(0)
    np.savez(file, y=rng.normal(size=(60, 3)), u=rng.normal(size=(60, 2)))
    return file.getvalue()


def spikes() -> bytes:
    """Two episodes of 60 bins of width 1 and three units."""
    file, rng = io.BytesIO(), np.random.default_rng(0)
    np.savez(
        file,
        spike_times=rng.uniform(0, 60, 300),
        spike_units=rng.integers(0, 3, 300),
        spike_episodes=rng.integers(0, 2, 300),
        duration=np.array([60.0, 60.0]),
        u=rng.normal(size=(2, 60, 1)),
    )
    return file.getvalue()


def trajectories() -> bytes:
    """Two walks over seven ids."""
    file = io.BytesIO()
    np.savez(file, states=np.arange(60) % 7, lengths=[20, 40])
    return file.getvalue()


def npy() -> bytes:
    file = io.BytesIO()
    np.save(file, np.random.default_rng(0).random((30, 40)))
    return file.getvalue()


@cache
def config_text() -> bytes:
    content = {"name": "snake", "preset": "ppo", "config": plain(snake_config())}
    return yaml.safe_dump(content).encode()


def snake_config() -> Any:
    return find("snake", "a test").presets["ppo"].config


@st.composite
def yaml_files(draw: st.DrawFn) -> bytes:
    """The valid configuration with one field, at any depth, set to something else."""
    content = yaml.safe_load(config_text())
    place = content if draw(st.booleans()) else content["config"]
    while True:
        name = draw(st.sampled_from([*place, "unknown"]))
        if isinstance(place.get(name), dict) and draw(st.booleans()):
            place = place[name]
            continue
        place[name] = draw(TREES)
        return yaml.safe_dump(content, allow_unicode=True).encode("utf-8", "replace")


TILES = st.text(st.sampled_from("#.SGXx ,\n\r\tDRUL:0.3EP@_7é\x00"), max_size=80)
LARGE = st.sampled_from(
    ["." * 2_000_000, ".\n" * 60_000, "S" * 300_000 + ",.", "DR" * 5_000 + ",.", "#." * 40_000]
)
JSON_LINES = st.lists(TREES, max_size=4).map(
    lambda rows: "\n".join(repr(row).replace("'", '"') for row in rows).encode("utf-8", "replace")
)


def utf8(texts: st.SearchStrategy[str]) -> st.SearchStrategy[bytes]:
    return texts.map(lambda text: text.encode("utf-8", "replace"))
