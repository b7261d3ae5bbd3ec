"""The safetensors file of a policy: the parameters of its agent, and metadata about its training.

Arrays are named as in the network, such as "torso/Dense_0/kernel". Each entry of the metadata is
JSON:

    format        2
    entry_point   the program that trained it (`Program.address`)
    preset        name of the preset that the training began from
    config        every field of its configuration, for one seed
    updates       number of updates it was trained for
    trained       versions of the libraries, device, and commit if known
    scores        the row of this seed in `eval.json`, or null
    sha256        checksum of all entries above but the format, and of all arrays

Nothing in such a file is ever executed, and no array is read before its name and shape are right.
"""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import safetensors
from safetensors import numpy as arrays_as_bytes

from jaxrl import checkpoint
from jaxrl.types import AgentState
from train.host.errors import UsageError, in_one_line
from train.host.files import whole_files
from train.host.files.run_directory import shell_word

FORMAT = 2
TRAINED = Path(__file__).parents[2] / "trained"
"""Folder of the policies that come with the package."""
ENTRIES = ("entry_point", "preset", "config", "updates", "trained", "scores")


def names() -> list[str]:
    """The names of the policies that come with the package."""
    return sorted(path.stem for path in TRAINED.glob("*.safetensors"))


def file_of(name: str | Path) -> Path:
    """The file of that path, or of that name: in the package, else in the current directory.

    Raises UsageError if there is none.
    """
    path = path_of(name)
    if not is_path(name) and (TRAINED / path.name).is_file():
        return TRAINED / path.name
    if not path.is_file():
        if Path(name).is_dir():
            raise UsageError(
                f"{name} is a directory, not a policy: give a run without --policy, or first write "
                f"its policy as a file: python -m train.policies export {shell_word(name)} NAME"
            )
        package_names = ", ".join(names()) or "none"
        raise UsageError(
            f"there is no policy {name}, and no file {path}: give the path of a .safetensors file, "
            f"or the name of a policy of the package ({package_names})"
        )
    return path


def path_of(name: str | Path) -> Path:
    """The file that a name or a path means outside of the package; it need not exist."""
    text = str(name)
    return Path(text if text.endswith(".safetensors") else f"{text}.safetensors")


def is_path(name: str | Path) -> bool:
    """Whether this is a path, and so never a name of the package."""
    return any(part in str(name) for part in ("/", os.sep, ".safetensors"))


def parameters(agent_state: AgentState) -> dict[str, Any]:
    """The parameters an agent acts with: the leaves below its fields `params`, by name.

    Raises UsageError if there are none: such an agent has nothing that a policy could hold.
    """
    leaves = jax.tree_util.tree_leaves_with_path(agent_state)
    named_leaves = {_name(path): x for path, x in leaves}
    arrays = {name: x for name, x in named_leaves.items() if name}
    if not arrays:
        raise UsageError(
            "the state of this agent has no numbers below a field named params, so there is no "
            "policy of it: put all that act reads below a field of that name"
        )
    return arrays


def with_parameters(like: AgentState, arrays: dict[str, np.ndarray]) -> AgentState:
    """An agent state like `like` with `arrays` as parameters; the rest is 0 and takes no memory."""

    def leaf(path, x):
        name = _name(path)
        if name:
            return jnp.asarray(arrays[name])
        return np.broadcast_to(np.zeros((), x.dtype), x.shape)

    return jax.tree_util.tree_map_with_path(leaf, like)


def warm_start(agent_state: AgentState, arrays: dict[str, np.ndarray]) -> AgentState:
    """A new agent whose parameters, and those of its target network, are `arrays`.

    With several seeds, its leaves have a leading axis S; all seeds get the same parameters.
    """

    def leaf(path, x):
        name = _name(path) or _name(path, "target_params")
        return jnp.array(np.broadcast_to(arrays[name], x.shape)) if name else x

    return jax.tree_util.tree_map_with_path(leaf, agent_state)


def _name(path: tuple, field: str = "params") -> str:
    """The name of a parameter; empty for a leaf that is not below `field`.

    A field `params` holds flax's collections; the name leaves out the collection `params`.
    `target_params` and the moments of an optimizer are other fields.
    """
    fields = [getattr(key, "name", None) for key in path]
    if field not in fields:
        return ""
    keys = [_label(key) for key in path[fields.index(field) + 1 :]]
    return "/".join(keys[1:] if keys[:1] == ["params"] else keys) or field


def _label(key: Any) -> str:
    """A step of a path: of a dict, a field or a list."""
    return str(next(getattr(key, x) for x in ("key", "name", "idx") if hasattr(key, x)))


def write(path: Path, arrays: dict[str, Any], content: dict[str, Any]) -> None:
    """Replaces the file in one step; `content` has all `ENTRIES`."""
    refuse_not_finite(path, arrays)
    metadata = {name: json.dumps(content[name]) for name in ENTRIES}
    numbers = {name: np.asarray(x) for name, x in arrays.items()}
    metadata |= {"format": json.dumps(FORMAT), "sha256": json.dumps(checksum(metadata, numbers))}
    file_bytes = arrays_as_bytes.save(numbers, metadata)
    with whole_files.replacement_file(path) as file:
        file.write(file_bytes)


def checksum(metadata: dict[str, str], arrays: dict[str, np.ndarray]) -> str:
    """The SHA-256 of the `ENTRIES` of the metadata and of the arrays with their names."""
    digest = hashlib.sha256()
    for name in ENTRIES:
        digest.update(f"{name}={metadata.get(name)}\n".encode())
    for name, x in sorted(arrays.items()):
        digest.update(f"{name} {x.dtype}{x.shape}\n".encode() + np.ascontiguousarray(x).tobytes())
    return digest.hexdigest()


def read_metadata(path: Path) -> dict[str, Any]:
    """The `ENTRIES` of a file. Raises UsageError if it is not a policy."""
    with _PolicyFile(path) as file:
        metadata = file.metadata() or {}
    try:
        version = json.loads(metadata["format"])
        if version != FORMAT:
            raise UsageError(f"{path} has format {version}; this program reads format {FORMAT}")
        return {name: json.loads(metadata[name]) for name in ENTRIES}
    except KeyError as missing:
        raise UsageError(f"{path} has no metadata {missing}: {ADVICE}") from None
    except ValueError as error:
        raise UsageError(f"{path} has metadata that are not JSON ({error}): {ADVICE}") from None


def read_arrays(path: Path, like: dict[str, Any]) -> dict[str, np.ndarray]:
    """The arrays of a file, which must have the names, shapes and dtypes of `like`."""
    with _PolicyFile(path) as file:
        shapes = {name: file.get_slice(name).get_shape() for name in file.keys()}  # noqa: SIM118
        _refuse_other(path, shapes, {name: list(x.shape) for name, x in like.items()})
        arrays = {name: file.get_tensor(name) for name in like}
        metadata = file.metadata() or {}
    dtypes = {name: str(x.dtype) for name, x in arrays.items()}
    _refuse_other(path, dtypes, {name: str(x.dtype) for name, x in like.items()})
    if json.dumps(checksum(metadata, arrays)) != metadata.get("sha256"):
        raise UsageError(f"{path} is damaged (its checksum differs): copy or export it again")
    refuse_not_finite(path, arrays)
    return arrays


ADVICE = "give a file that python -m train.policies export has written"


class _PolicyFile:
    """A safetensors file, open for reading; errors become a UsageError of one line."""

    def __init__(self, path: Path):
        self.path = path

    def __enter__(self) -> Any:
        try:
            self.file = safetensors.safe_open(str(self.path), framework="np")
        except (safetensors.SafetensorError, OSError, ValueError) as error:
            self._refuse(error)
        return self.file.__enter__()

    def __exit__(self, kind, error, trace) -> None:
        self.file.__exit__(kind, error, trace)
        if isinstance(error, safetensors.SafetensorError | TypeError | AttributeError):
            self._refuse(error)

    def _refuse(self, error: Exception) -> None:
        reason = in_one_line(error)
        raise UsageError(f"{self.path} cannot be read ({reason}): {ADVICE}") from None


def _refuse_other(path: Path, actual: dict[str, Any], expected: dict[str, Any]) -> None:
    """UsageError, naming the first differences, unless both are equal."""
    if differences := checkpoint.mismatch(actual, expected):
        raise UsageError(f"{path} does not fit the network: {differences}")


def refuse_not_finite(path: Path, arrays: dict[str, Any]) -> None:
    """UsageError if there is NaN or infinity."""
    for name, x in arrays.items():
        if not np.all(np.isfinite(x)):
            raise UsageError(f"parameter {name} of {path} is not finite: choose another policy")
