"""Saves a whole state and loads it again, bit for bit."""

from jaxrl.checkpoint.leaves import mismatch
from jaxrl.checkpoint.record import ARRAYS, FORMAT, RECORD, CheckpointError, steps
from jaxrl.checkpoint.restoring import read_meta, restore
from jaxrl.checkpoint.saving import delete_after, save

__all__ = [
    "ARRAYS",
    "FORMAT",
    "RECORD",
    "CheckpointError",
    "delete_after",
    "mismatch",
    "read_meta",
    "restore",
    "save",
    "steps",
]
