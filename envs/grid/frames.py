"""A maze as plain data and arrays to draw. Axis letters: S states."""

from typing import Any

import numpy as np

from envs.grid.drawing import DIVERGING
from envs.grid.layouts import Layout


def layout_data(layout: Layout) -> dict[str, Any]:
    """Size, the (row, column) of each state as int32 `[S, 2]`, and its doors and portals.

    A door is (row, column, direction in which it is open), a portal (row, column, direction of the
    move that it takes away). `palette` holds the colours from negative to positive numbers.
    """
    return {
        "rows": layout.height,
        "cols": layout.width,
        "cells": np.asarray(layout.cells),
        "doors": [[*map(int, door.cell), int(door.direction)] for door in layout.doors],
        "portals": [[*map(int, portal.cell), int(portal.direction)] for portal in layout.portals],
        "palette": DIVERGING.astype(np.uint8),
    }
