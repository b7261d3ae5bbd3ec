"""The files of a checkpoint, and the record that says whether they are as they were saved.

`DIRECTORY/0000000120/` is the checkpoint of step 120: `state.npz` with the arrays, and
`record.json`, which holds the caller's `meta`, the shape and dtype of every leaf, and size and
CRC-32 of `state.npz`. The arrays are numbered in the order of the sorted names of the leaves. Where
they are spread over processes, each writes its parts (see `jaxrl.shards`), those after the first
into `state-1.npz` and so on.
"""

import json
import zlib
from pathlib import Path
from typing import Any

FORMAT = 2
ARRAYS, RECORD = "state.npz", "record.json"


class CheckpointError(Exception):
    """No usable checkpoint, or one of another state; the message is one line."""


class Damaged(Exception):
    """The checkpoint differs from what was saved; the message says how."""


def steps(directory: str | Path) -> list[int]:
    """The steps saved in `directory`, ascending; `restore` finds out whether they can be read."""
    directory = Path(directory)
    if not directory.is_dir():
        return []
    return sorted(int(path.name) for path in directory.iterdir() if path.name.isdigit())


def add_checksum(record: dict) -> str:
    """`record` as JSON beside its own checksum."""
    text = json.dumps(record, sort_keys=True)
    return json.dumps({"crc32": zlib.crc32(text.encode()), "record": record}, indent=1)


def read_record(path: Path) -> dict[str, Any]:
    """The record of a checkpoint, after verifying that all its files are as they were saved."""
    try:
        document = json.loads((path / RECORD).read_bytes())
        record = document["record"]
        text = json.dumps(record, sort_keys=True)
        if document["crc32"] != zlib.crc32(text.encode()):
            raise Damaged("record.json was altered")
    except FileNotFoundError:
        raise Damaged("record.json is missing: the save was not completed") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Damaged(f"record.json cannot be read ({error})") from None
    if record["format"] != FORMAT:
        raise CheckpointError(f"{path} has format {record['format']}; this program reads {FORMAT}")
    for name, saved in {ARRAYS: record["arrays"], **record.get("others", {})}.items():
        _verify(path / name, saved)
    return record


def _verify(path: Path, expected: list[int]) -> None:
    """Raises unless a file has the size and the checksum that were saved."""
    try:
        actual = size_and_checksum(path)
    except FileNotFoundError:
        raise Damaged(f"{path.name} is missing") from None
    except OSError as error:
        raise Damaged(str(error)) from None
    if actual != expected:
        raise Damaged(f"{path.name} has {actual[0]} bytes of {expected[0]}, or other content")


def size_and_checksum(path: Path) -> list[int]:
    """`[bytes, crc32]` of a file."""
    checksum, size = 0, 0
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            checksum, size = zlib.crc32(block, checksum), size + len(block)
    return [size, checksum]
