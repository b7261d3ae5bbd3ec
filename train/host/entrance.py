"""What stops every command, told in one line before anything else is loaded.

`train/__init__.py` calls this, as Python runs that first whichever module of `train` is started:
what a file of the user's hides, or a variable makes unusable, fails at the imports of that module.
"""

import gc
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

from train.host.errors import REFUSED, UsageError, in_one_line
from train.host.machine import quiet_libraries, signals

ROOT = Path(__file__).parents[2]
OURS = ("jaxrl", "envs")
"""Packages that lie beside `train`."""
OTHERS = (
    *("jax", "jaxlib", "flax", "optax", "chex", "jraph", "gymnax", "gymnasium", "numpy", "scipy"),
    *("safetensors", "tyro", "rich", "matplotlib", "PIL", "yaml"),
)
"""Packages of others: folders, so that a single file of the same name is something else."""
COLLECT_EVERY = 200_000
"""Objects between two searches for unused ones, where Python's default is 700. Until it trains a
command makes a million, of which nearly all stay."""
COMPLAINT = re.compile(r"^[EF]\d+ [^\]]*\] (.*?)\.?$", re.MULTILINE)
"""A line of XLA's log."""


def check() -> None:
    """Raises ImportError, in one line, if a package is hidden; ends a command instead.

    A command is ended by variables that JAX or XLA cannot read or no run can work with, too.
    """
    is_command = starts_command(sys.argv, sys.orig_argv)
    if is_command:
        gc.set_threshold(COLLECT_EVERY, 50)
        signals.end_until_handled()
        quiet_libraries.silence()
    try:
        refuse_hidden()
        if is_command:
            refuse_flags()
            refuse_variables()
    except (ImportError, UsageError) as error:
        if not is_command:
            raise
        print(in_one_line(error), file=sys.stderr)
        sys.exit(REFUSED)


def starts_command(arguments: list[str], line: list[str]) -> bool:
    """Whether Python, of which `line` is the command line, is about to start a module of `train`.

    It may be another package's, which imports this one.
    """
    is_looking = arguments[:1] == ["-m"]  # what Python puts there while it looks for the module
    return is_looking and any(re.match(r"(-\w*m)?train(\.|$)", word) for word in line[1:])


def refuse_hidden() -> None:
    """Raises ImportError, which names the file, if another module has the name of a package."""
    for name in OURS + OTHERS:
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None or is_package(name, Path(spec.origin)):
            continue
        raise ImportError(
            f"{spec.origin} hides the package {name}, which train needs: rename it, or start in "
            "another folder"
        )


def is_package(name: str, file: Path) -> bool:
    """Whether a file is the package of that name: of ours, the one beside `train`."""
    if name in OURS:
        expected = ROOT / name / "__init__.py"
        return not expected.exists() or file.resolve() == expected.resolve()
    return file.stem == "__init__"


def refuse_flags() -> None:
    """Raises ImportError for `XLA_FLAGS` that XLA does not know, which would end this process."""
    if not os.environ.get("XLA_FLAGS"):
        return
    code = "from jaxlib import xla_client; xla_client.CompileOptions()"
    environment = os.environ | {quiet_libraries.XLA: "0"}
    attempt = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True)
    complaint = COMPLAINT.search(attempt.stderr.decode(errors="replace"))
    if attempt.returncode and complaint:
        raise ImportError(f"XLA refuses XLA_FLAGS ({complaint[1]}): change or unset it")


def refuse_variables() -> None:
    """Raises ImportError for variables that JAX cannot read when it is imported.

    Raises UsageError for those that forbid what a command does, some of it at its imports.
    """
    try:
        import jax  # noqa: F401
    except (ValueError, RuntimeError) as error:
        reason = in_one_line(error)
        raise ImportError(f"JAX cannot be imported ({reason}): change what it names") from error
    from train.host.machine import jax_settings

    jax_settings.refuse_unusable()
