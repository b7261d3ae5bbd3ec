# @title Install: the project, and a JAX that fits this machine
"""Makes a notebook ready: installs the project, and a JAX that fits the machine's accelerator.

The first cell of every notebook is this file; `python -m tests.test_colab` copies it there.
"""

import importlib.metadata
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterable, Mapping, Sequence

PACKAGES = ("jaxrl", "envs", "train")
REQUIRED = (
    *("jax", "jaxlib", "flax", "optax", "chex", "jraph", "gymnax", "six", "numpy"),
    *("scipy", "safetensors", "flatbuffers", "tyro", "rich", "matplotlib", "pillow", "pyyaml"),
)
LOWEST, BELOW = (0, 10), (0, 12)  # versions of jax and jaxlib that the project runs on
NEWER = "gymnax 1.0.1 forbids jax 0.12"  # why BELOW is what it is
PLUGINS = {
    "cuda12": ("jax-cuda12-plugin", "jax-cuda12-pjrt"),
    "cuda13": ("jax-cuda13-plugin", "jax-cuda13-pjrt"),
}
OF_JAX = ("jax", "jaxlib", *PLUGINS["cuda12"], *PLUGINS["cuda13"], "libtpu")
TPU_VARIABLES = ("TPU_ACCELERATOR_TYPE", "COLAB_TPU_1VM", "TPU_CHIPS_PER_HOST_BOUNDS")


def prepare(address: str = "") -> None:
    """Installs what is missing, restarts if it must, and checks that JAX sees the accelerator."""
    before = installed()
    loaded = imported(before)
    kind = accelerator(os.environ, nvidia_smi(), before)
    wrong = problems(kind, before, needs_of_jax())
    if project() is None or wrong:
        install(kind, locate(address), wrong)
        print(replacement(before, installed()), flush=True)
    changed = stale(loaded, installed())
    if changed:
        restart(changed)
    wrong = problems(kind, installed(), needs_of_jax())
    if project() is None:
        wrong.append(f"a folder beside the notebook hides one of {', '.join(PACKAGES)}: rename it")
    if wrong:
        raise SystemExit("Not ready: " + "; ".join(wrong))
    check_devices(kind)


def nvidia_smi() -> str:
    """A line for every GPU, with the version of its driver and its compute capability."""
    command = ["nvidia-smi", "--query-gpu=driver_version,compute_cap", "--format=csv,noheader"]
    if sys.platform != "linux":  # JAX has no CUDA elsewhere
        return ""
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return run.stdout if run.returncode == 0 else ""


def accelerator(environ: Mapping[str, str], smi: str, versions: Mapping[str, str]) -> str:
    """What the machine computes on: cpu, tpu, cuda12 or cuda13.

    CUDA 13 needs driver 580 and capability 7.5. Where CUDA 12 is installed it stays, because its
    libraries are a download of gigabytes.
    """
    if environ.get("JAX_PLATFORMS", "").startswith("cpu"):
        return "cpu"
    if any(environ.get(name) for name in TPU_VARIABLES):
        return "tpu"
    gpus = re.findall(r"^(\d+)[\d.]*, *(\d+)\.(\d+)", smi, re.M)
    if not gpus or environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1"):
        return "cpu"
    able = all(int(gpu[0]) >= 580 and (int(gpu[1]), int(gpu[2])) >= (7, 5) for gpu in gpus)
    return "cuda13" if able and "jax-cuda12-plugin" not in versions else "cuda12"


def installed() -> dict[str, str]:
    """Version of every installed distribution, by its name in lower case with hyphens."""
    importlib.invalidate_caches()
    found: dict[str, str] = {}
    for distribution in importlib.metadata.distributions():
        name = distribution.metadata["Name"]
        if name:  # the first on the path is the one that is imported
            found.setdefault(normal(name), distribution.version)
    return found


def normal(name: str) -> str:
    """One spelling of a distribution's name."""
    return re.sub(r"[-_.]+", "-", name).lower()


def numbers(version: str) -> tuple[int, ...]:
    """The numbers a version begins with."""
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def needs_of_jax() -> list[str]:
    """What the installed jax requires, extras included."""
    try:
        return importlib.metadata.requires("jax") or []
    except importlib.metadata.PackageNotFoundError:
        return []


def problems(kind: str, versions: Mapping[str, str], needs: Iterable[str] = ()) -> list[str]:
    """What keeps these distributions from computing on an accelerator of this kind.

    `needs` are the requirements of the installed jax: they name the libtpu that fits.
    """
    absent = [name for name in REQUIRED if name not in versions]
    found = [f"{', '.join(absent)} not installed"] if absent else []
    if not {"jax", "jaxlib"} <= set(versions):
        return found
    jax, jaxlib = versions["jax"], versions["jaxlib"]
    if not (LOWEST <= numbers(jaxlib) <= numbers(jax) < BELOW):
        newer = f": {NEWER}" if numbers(jax) >= BELOW else ""
        found.append(f"jax {jax} and jaxlib {jaxlib} are not {bounds()}{newer}")
    elif kind != "cpu" and jax != jaxlib:
        found.append(f"jax {jax} and jaxlib {jaxlib} differ")
    for name in PLUGINS.get(kind, ()):
        if versions.get(name) != jaxlib:
            found.append(f"{name} is {versions.get(name, 'missing')}, jaxlib {jaxlib}")
    found += [f"{name} {versions[name]} does not fit" for name in leftovers(kind, versions)]
    pinned = re.search(r"libtpu==([\d.]+)\.\*", "\n".join(needs))
    libtpu = versions.get("libtpu", "missing") + "."
    if kind == "tpu" and not libtpu.startswith(pinned[1] + "." if pinned else "0."):
        found.append(f"libtpu {versions.get('libtpu')} does not fit jax {jax}")
    return found


def leftovers(kind: str, versions: Mapping[str, str]) -> list[str]:
    """Plugins of another accelerator that would be in the way, or are of another version."""
    others = (name for other in PLUGINS if other != kind for name in PLUGINS[other])
    present = [name for name in others if name in versions]
    if kind in PLUGINS:
        return present
    return [name for name in present if versions[name] != versions.get("jaxlib")]


def bounds() -> str:
    """The versions of jax that the project runs on, as pip writes them."""
    return ">={}.{},<{}.{}".format(*LOWEST, *BELOW)


def requirement(kind: str, source: str) -> str:
    """What pip is to install: the project from `source`, a URL; without one, JAX alone."""
    extra = "" if kind == "cpu" else f"[{kind}]"
    return f"jaxrl{extra} @ {source}" if source else f"jax{extra}{bounds()}"


def project() -> pathlib.Path | None:
    """The folder the project's packages are imported from. One of files alone is no package."""
    folders = set()
    for name in PACKAGES:
        spec = importlib.util.find_spec(name)
        if spec is None or not spec.origin:
            return None
        folders.add(pathlib.Path(spec.origin).resolve().parents[1])
    return folders.pop() if len(folders) == 1 else None


def locate(address: str) -> str:
    """A URL from which pip can install the project; empty if it is installed and has none."""
    folder = project()
    found = (folder and find_project(folder)) or find_project(pathlib.Path.cwd())
    address = address.strip() or published()
    if not found and not address and not folder and "google.colab" in sys.modules:
        from google.colab import files  # pyright: ignore[reportMissingImports]

        print("Choose this project's wheel, or a zip of its folder")
        files.upload()
        found = find_project(pathlib.Path.cwd())
    if found:
        return unpacked(found).resolve().as_uri()
    if not address and not folder:
        raise SystemExit(
            "jaxrl was not found: put its wheel, or a zip of its folder, beside this notebook, or "
            "write the address of its repository into ADDRESS; then run this cell again"
        )
    return url(address)


def find_project(directory: pathlib.Path) -> pathlib.Path | None:
    """A checkout around a directory or in it, else the newest wheel or zip of the project in it."""
    beside = sorted(path.parent for path in directory.glob("*/pyproject.toml"))
    for folder in (directory, *directory.parents, *beside):
        file = folder / "pyproject.toml"
        if file.is_file() and is_project(file.read_text(errors="replace")):
            return folder
    files = [path for path in directory.glob("*.zip") if inside(path) is not None]
    files += directory.glob("jaxrl-*.whl")
    return max(files, key=lambda path: path.stat().st_mtime, default=None)


def is_project(text: str) -> bool:
    """Whether this is our pyproject.toml."""
    return re.search(r'^name *= *"jaxrl"', text, re.M) is not None


def inside(path: pathlib.Path) -> str | None:
    """The folder of a zip file in which the project lies, at most one level down."""
    if not zipfile.is_zipfile(path):
        return None
    with zipfile.ZipFile(path) as file:
        for name in file.namelist():
            folder, _, last = name.rpartition("/")
            near = last == "pyproject.toml" and "/" not in folder
            if near and is_project(file.read(name).decode(errors="replace")):
                return folder
    return None


def unpacked(path: pathlib.Path) -> pathlib.Path:
    """What pip takes: a folder, a zip as one, a wheel without the (1) that a browser appends."""
    name = re.sub(r" *\(\d+\)", "", path.name)
    if path.is_file() and path.suffix == ".zip":
        folder = pathlib.Path(tempfile.mkdtemp())
        with zipfile.ZipFile(path) as file:
            file.extractall(folder)
        return folder / (inside(path) or "")
    if path.is_file() and name != path.name:
        return pathlib.Path(shutil.copy(path, pathlib.Path(tempfile.mkdtemp()) / name))
    return path


def published() -> str:
    """The repository that the installed project names as its own; empty if none."""
    try:
        lines = importlib.metadata.metadata("jaxrl").get_all("Project-URL") or []
    except importlib.metadata.PackageNotFoundError:
        return ""
    return repository(lines)


def repository(lines: Iterable[str]) -> str:
    """The repository among lines such as `Repository, https://HOST/OWNER/NAME`; empty if none."""
    for line in lines:
        label, _, address = line.partition(",")
        if label.strip().lower() in ("repository", "source", "source code", "code"):
            return address.strip()
    return ""


def url(address: str) -> str:
    """An address as pip wants it: a file, an archive or a git repository; empty stays empty."""
    if not address:
        return ""
    if pathlib.Path(address).expanduser().exists():
        return unpacked(pathlib.Path(address).expanduser()).resolve().as_uri()
    if address.startswith(("/", "~", ".")):
        raise SystemExit(f"there is no {address}: write another path into ADDRESS, or an address")
    if "://" not in address:
        address = f"https://{address}"
    if address.startswith(("git+", "file:")) or address.endswith((".whl", ".zip", ".tar.gz")):
        return address
    return f"git+{address}"


def replacement(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """A line on the parts of JAX that another version took the place of, that are new or gone."""
    of_change: dict[tuple[str | None, str | None], list[str]] = {}
    for name in OF_JAX:
        if before.get(name) != after.get(name):
            of_change.setdefault((before.get(name), after.get(name)), []).append(name)
    changes = []
    for (old, new), names in of_change.items():
        change = f"{old} -> {new}" if old and new else f"{new} added" if new else f"{old} removed"
        changes.append(f"{', '.join(names)} {change}")
    return "; ".join(changes) or f"jax {after.get('jax')} stays"


def install(kind: str, source: str, why: Sequence[str] = ()) -> None:
    """Installs the project with the extra of the accelerator, and removes plugins of others."""
    if why:
        print("; ".join(why))
    wanted = requirement(kind, source)
    print(f"Installing {wanted}; a fresh machine needs a few minutes", flush=True)
    run_pip("install", wanted)
    unwanted = leftovers(kind, installed())
    if unwanted:
        run_pip("uninstall", "--yes", *unwanted)


def run_pip(*arguments: str) -> None:
    """Runs pip in this Python, quietly unless it fails."""
    command = [sys.executable, "-m", "pip", *arguments, "--quiet"]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode:
        raise SystemExit(f"pip {' '.join(arguments)} failed:\n{run.stderr[-2000:]}")


def imported(versions: Mapping[str, str]) -> dict[str, str]:
    """Version of every distribution of which this process has imported a module.

    The four named say it themselves, so that an earlier installation is noticed, too.
    """
    modules = {name.partition(".")[0] for name in list(sys.modules)}
    owners = importlib.metadata.packages_distributions()
    names = {normal(name) for module in modules for name in owners.get(module, ())}
    found = {name: versions[name] for name in names if name in versions}
    for name in ("jax", "jaxlib", "numpy", "matplotlib"):
        if name in sys.modules and name in versions:
            found[name] = getattr(sys.modules[name], "__version__", versions[name])
    return found


def stale(loaded: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """The distributions that are loaded in another version than the one installed now."""
    return sorted(name for name, version in loaded.items() if now.get(name) != version)


def restart(changed: Iterable[str]) -> None:
    """Restarts the kernel on Colab; elsewhere says that it must be restarted."""
    changed = ", ".join(changed)
    if "google.colab" not in sys.modules:
        raise SystemExit(f"{changed} changed: restart the kernel, then run all cells again")
    print(f"{changed} changed: the kernel restarts now. Then choose 'Run all' again", flush=True)
    time.sleep(1)  # or the line would be lost
    os.kill(os.getpid(), 9)


def check_devices(kind: str) -> None:
    """Fails unless JAX computes on what the machine offers."""
    import jax

    offered = "gpu" if kind in PLUGINS else kind
    used = jax.devices()[0].platform
    assert used == offered, f"this machine offers {kind}, but JAX computes on {used}"
