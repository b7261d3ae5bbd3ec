"""Saves a whole state and loads it again, bit for bit."""

from jaxrl.checkpoint.leaves import mismatch
from jaxrl.checkpoint.record import ARRAYS, FORMAT, RECORD, CheckpointError, steps
from jaxrl.checkpoint.restoring import read_meta, restore
from jaxrl.checkpoint.saving import save

__all__ = [
    "ARRAYS",
    "FORMAT",
    "RECORD",
    "CheckpointError",
    "mismatch",
    "read_meta",
    "restore",
    "save",
    "steps",
]
