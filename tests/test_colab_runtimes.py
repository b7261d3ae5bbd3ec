"""The first cell of the notebooks on runtimes with another jax: what is installed after it."""

import re
from typing import NamedTuple

import pytest

from notebooks import setup_colab as setup
from tests.colab_wheel import OLD_T4, T4

RELEASES = {"0.10.2": "0.0.42.1", "0.11.2": "0.0.48.1", "0.12.0": "0.0.50", "0.12.0.1": "0.0.50.1"}
"""Versions of jax, the oldest first, with the libtpu that each asks for."""
SOURCE = "https://host/jaxrl.zip"
TPU = {"TPU_ACCELERATOR_TYPE": "v5e-1", "JAX_PLATFORMS": "tpu,cpu"}
CUDA12, CUDA13 = setup.PLUGINS["cuda12"], setup.PLUGINS["cuda13"]
ON_COLAB = dict.fromkeys(set(setup.REQUIRED) - {"jax", "jaxlib", "gymnax", "jraph"}, "1.0")
MISSING = "jraph, gymnax not installed; "


def jax_of(version: str, *others: str, **named: str) -> dict[str, str]:
    """jax, jaxlib and other parts of one version; `named` are of versions of their own."""
    return dict.fromkeys(("jax", "jaxlib", *others), version) | named


class Runtime(NamedTuple):
    """A machine before the first cell, and after it."""

    environ: dict[str, str]
    smi: str
    before: dict[str, str]
    kind: str
    after: dict[str, str]
    lines: list[str]
    """What is said of why and what, without the line on the installation between."""


def bounds_line(before: dict[str, str]) -> str:
    """Why a jax that is too new is replaced."""
    jax, jaxlib = before["jax"], before["jaxlib"]
    reason = "gymnax 1.0.1 forbids jax 0.12"
    return f"{MISSING}jax {jax} and jaxlib {jaxlib} are not >=0.10,<0.12: {reason}"


NEW12, NEW13 = jax_of("0.12.0", *CUDA12), jax_of("0.12.0.1", *CUDA13)
NEW_TPU = jax_of("0.12.0", libtpu="0.0.50")
BOTH = jax_of("0.12.0", *CUDA12, *CUDA13)
MIXED = jax_of("0.11.2", *CUDA12, jax="0.12.0")  # jax 0.12 takes a jaxlib from 0.11.2 on
OLD = jax_of("0.7.2", *CUDA12)
RUNTIMES = {
    "cpu": Runtime(
        {},
        "",
        jax_of("0.12.0"),
        "cpu",
        jax_of("0.11.2"),
        [bounds_line(jax_of("0.12.0")), "jax, jaxlib 0.12.0 -> 0.11.2"],
    ),
    "cpu in the image of GPUs": Runtime(
        {"COLAB_TPU_1VM": ""},
        "",
        NEW12,
        "cpu",
        jax_of("0.11.2"),
        [
            bounds_line(NEW12),
            "jax, jaxlib 0.12.0 -> 0.11.2; jax-cuda12-plugin, jax-cuda12-pjrt 0.12.0 removed",
        ],
    ),
    "cuda12": Runtime(
        {},
        OLD_T4,
        NEW12,
        "cuda12",
        jax_of("0.11.2", *CUDA12),
        [
            bounds_line(NEW12),
            "jax, jaxlib, jax-cuda12-plugin, jax-cuda12-pjrt 0.12.0 -> 0.11.2",
        ],
    ),
    "cuda12 on a driver that can do 13": Runtime(
        {},
        T4,
        NEW12,
        "cuda12",
        jax_of("0.11.2", *CUDA12),
        [
            bounds_line(NEW12),
            "jax, jaxlib, jax-cuda12-plugin, jax-cuda12-pjrt 0.12.0 -> 0.11.2",
        ],
    ),
    "cuda13": Runtime(
        {},
        T4,
        NEW13,
        "cuda13",
        jax_of("0.11.2", *CUDA13),
        [
            bounds_line(NEW13),
            "jax, jaxlib, jax-cuda13-plugin, jax-cuda13-pjrt 0.12.0.1 -> 0.11.2",
        ],
    ),
    "cuda12 beside cuda13": Runtime(
        {},
        T4,
        BOTH,
        "cuda12",
        jax_of("0.11.2", *CUDA12),
        [
            f"{bounds_line(BOTH)}; jax-cuda13-plugin 0.12.0 does not fit; "
            "jax-cuda13-pjrt 0.12.0 does not fit",
            "jax, jaxlib, jax-cuda12-plugin, jax-cuda12-pjrt 0.12.0 -> 0.11.2; "
            "jax-cuda13-plugin, jax-cuda13-pjrt 0.12.0 removed",
        ],
    ),
    "jax alone is newer": Runtime(
        {},
        OLD_T4,
        MIXED,
        "cuda12",
        jax_of("0.11.2", *CUDA12),
        [bounds_line(MIXED), "jax 0.12.0 -> 0.11.2"],
    ),
    "a GPU without plugins": Runtime(
        {},
        T4,
        jax_of("0.12.0"),
        "cuda13",
        jax_of("0.11.2", *CUDA13),
        [
            f"{bounds_line(jax_of('0.12.0'))}; jax-cuda13-plugin is missing, jaxlib 0.12.0; "
            "jax-cuda13-pjrt is missing, jaxlib 0.12.0",
            "jax, jaxlib 0.12.0 -> 0.11.2; jax-cuda13-plugin, jax-cuda13-pjrt 0.11.2 added",
        ],
    ),
    "tpu": Runtime(
        TPU,
        "",
        NEW_TPU,
        "tpu",
        jax_of("0.11.2", libtpu="0.0.48.1"),
        [bounds_line(NEW_TPU), "jax, jaxlib 0.12.0 -> 0.11.2; libtpu 0.0.50 -> 0.0.48.1"],
    ),
    "an older jax": Runtime(
        {},
        OLD_T4,
        OLD,
        "cuda12",
        jax_of("0.11.2", *CUDA12),
        [
            f"{MISSING}jax 0.7.2 and jaxlib 0.7.2 are not >=0.10,<0.12",
            "jax, jaxlib, jax-cuda12-plugin, jax-cuda12-pjrt 0.7.2 -> 0.11.2",
        ],
    ),
    "a jax that fits": Runtime(
        TPU,
        "",
        jax_of("0.11.2", libtpu="0.0.48.1"),
        "tpu",
        jax_of("0.11.2", libtpu="0.0.48.1"),
        [MISSING.removesuffix("; "), "jax 0.11.2 stays"],
    ),
}


class Pip:
    """What pip does to the parts of jax, by the metadata of its releases, and to the project."""

    def __init__(self, versions: dict[str, str]):
        self.versions = ON_COLAB | versions

    def __call__(self, action: str, *arguments: str) -> None:
        if action == "uninstall":
            for name in arguments[1:]:  # after --yes
                del self.versions[name]
            return
        (requirement,) = arguments
        match = re.fullmatch(r"jaxrl(?:\[(\w+)\])? @ (.+)", requirement)
        assert match, requirement
        assert match[2] == SOURCE
        jax = max(x for x in RELEASES if setup.LOWEST <= setup.numbers(x) < setup.BELOW)
        parts = {"tpu": (), "cuda12": CUDA12, "cuda13": CUDA13}.get(match[1], ())
        self.versions |= jax_of(jax, *parts)
        if match[1] == "tpu":
            self.versions["libtpu"] = RELEASES[jax]
        self.versions |= {"jaxrl": "0.1.0", "gymnax": "1.0.1", "jraph": "0.0.6"}

    def needs(self) -> list[str]:
        """What the installed jax requires: a libtpu of the numbers of its release."""
        libtpu = ".".join(RELEASES.get(self.versions["jax"], "0.0.20").split(".")[:3])
        return [f'libtpu=={libtpu}.*; extra == "tpu"']


def enter(monkeypatch: pytest.MonkeyPatch, runtime: Runtime, *loaded: str) -> Pip:
    """Puts the cell into a runtime whose kernel has imported the modules `loaded`."""
    pip = Pip(runtime.before)
    monkeypatch.setattr(setup.os, "environ", runtime.environ)
    monkeypatch.setattr(setup, "nvidia_smi", lambda: runtime.smi)
    monkeypatch.setattr(setup, "installed", lambda: dict(pip.versions))
    monkeypatch.setattr(setup, "imported", lambda versions: {x: versions[x] for x in loaded})
    monkeypatch.setattr(setup, "needs_of_jax", pip.needs)
    monkeypatch.setattr(setup, "locate", lambda address: SOURCE)
    monkeypatch.setattr(setup, "project", lambda: pip.versions.get("jaxrl"))
    monkeypatch.setattr(setup, "run_pip", pip)
    return pip


@pytest.mark.parametrize("runtime", RUNTIMES.values(), ids=RUNTIMES.keys())
def test_a_set_that_fits_takes_the_place_of_another_jax(runtime, monkeypatch, capsys):
    pip, kinds = enter(monkeypatch, runtime), []
    monkeypatch.setattr(setup, "check_devices", kinds.append)
    setup.prepare()
    assert kinds == [runtime.kind]  # JAX must compute on it
    assert {x: pip.versions[x] for x in setup.OF_JAX if x in pip.versions} == runtime.after
    why, installing, what = capsys.readouterr().out.splitlines()
    assert [why, what] == runtime.lines
    assert installing.startswith(f"Installing {setup.requirement(runtime.kind, SOURCE)}; ")

    setup.prepare()  # in a kernel that has restarted
    assert kinds == [runtime.kind] * 2
    assert capsys.readouterr().out == ""


def test_what_is_replaced_is_said_before_the_kernel_restarts(monkeypatch, capsys):
    runtime = RUNTIMES["cuda12"]
    enter(monkeypatch, runtime, "jax")
    with pytest.raises(SystemExit, match="jax changed: restart the kernel"):
        setup.prepare()
    assert capsys.readouterr().out.splitlines()[-1] == runtime.lines[-1]
