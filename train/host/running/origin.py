"""Where an error arose: the line of a user's own file, if it was in one."""

import sys
import traceback
from types import FrameType

from train.host.errors import in_one_line, message_of

NOT_THEIRS = frozenset(
    {
        *("jaxrl", "envs", "train"),
        *("jax", "jaxlib", "flax", "optax", "chex", "jraph", "gymnax", "gymnasium"),
        *("numpy", "scipy", "matplotlib", "PIL", "tyro", "rich", "yaml", "safetensors"),
        *sys.stdlib_module_names,
    }
)
"""Packages whose lines tell a user nothing of their own code."""
LONGEST = 300
"""Characters of a message: JAX explains at length."""


def origin(error: BaseException) -> str | None:
    """`FILE:LINE` of the innermost line that is a user's own; None: there is none.

    Looked at are the calls from where `error` is caught to where it was raised.
    """
    lines = [
        f"{frame.f_code.co_filename}:{number}"
        for frame, number in traceback.walk_tb(error.__traceback__)
        if package_of(frame) not in NOT_THEIRS and not frame.f_code.co_filename.startswith("<")
    ]
    return lines[-1] if lines else None


def package_of(frame: FrameType) -> str:
    """The first part of the name of the module that a line is in; a script has that of its file."""
    spec = frame.f_globals.get("__spec__")  # of `python -m train.NAME`, whose name is __main__
    name = spec.name if spec else frame.f_globals.get("__name__", "")
    return name.partition(".")[0] if name != "__main__" else frame.f_code.co_filename


def explain(error: BaseException) -> str:
    """The kind of an error, the first line of its message, the line of the user's file, notes."""
    message = (message_of(error).strip().splitlines() or [""])[0][:LONGEST]
    kind, place = type(error).__name__, origin(error)
    reason = f"{kind}: {message}" if message else kind
    notes = [x for x in getattr(error, "__notes__", []) if not x.startswith("---")]  # JAX's own
    return in_one_line(Exception("; ".join([f"{reason} ({place})" if place else reason, *notes])))
