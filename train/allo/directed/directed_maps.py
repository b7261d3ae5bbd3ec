"""Pictures of left and right eigenvectors of a directed walk, and of its hitting times.

S states, d eigenvectors. Every picture is a PNG, written whole or not at all.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

from envs.grid.layouts import Layout
from train.allo.drawings.maps import (
    BETWEEN,
    DIVERGENT,
    EDGE,
    GAP,
    LABELS,
    LINE,
    SEQUENTIAL,
    axes_at,
    check_shape,
    decimal_text,
    draw_map,
    sheet,
    size_of,
    write,
)
from train.host.showing import pictures
from train.host.showing.pictures import BLUE, GREY, VERMILLION

ACROSS = 6  # pairs of maps side by side, at most
REAL = 1e-9  # |imaginary part| of an eigenvalue that is real
RANK = 0.9  # lower end of the colours of rank correlations
LEGEND = (
    "Learned below true, on one colour scale: real part (Re), imaginary part (Im), magnitude "
    "(| |); of a real eigenvector the real part alone, of a conjugate pair the first. Blue is "
    "negative, orange positive, white 0. Phases of learned ones are chosen to match."
)


class Tile(NamedTuple):
    """A real map of a part of an eigenvector, true and learned."""

    labels: tuple[str, str]
    true: np.ndarray  # [S]
    learned: np.ndarray  # [S]


def align_phases(true: np.ndarray, learned: np.ndarray) -> np.ndarray:
    """Learned complex columns `[S, d]`, each times the phase that brings it nearest to the true."""
    inner = np.sum(learned.conj() * true, axis=0)
    size = np.abs(inner)
    return learned * np.where(size > 0, inner / np.where(size > 0, size, 1), 1)


def tiles(
    values: np.ndarray,
    learned_values: np.ndarray,
    true: np.ndarray,
    learned: np.ndarray,
    cosines: np.ndarray,
) -> list[Tile]:
    """The maps of one side, of true and found values `[d]` and vectors `[S, d]`, all complex."""
    tile_list = []
    for k, value in enumerate(values):
        if value.imag < -REAL:
            continue  # the conjugate of the one before
        number = f"{k + 1}"
        format_mu = lambda mu: (
            decimal_text(mu.real) + (f"{mu.imag:+.4f}i" if abs(mu.imag) > REAL else "")
        )
        below = f"μ {format_mu(value)}"
        if abs(value.imag) <= REAL:
            labels = f"{number}  |cos| {cosines[k]:.3f}", below
            tile_list.append(Tile(labels, np.real(true[:, k]), np.real(learned[:, k])))
            continue
        parts = {"Re": np.real, "Im": np.imag, "| |": np.abs}
        below = below, f"found {format_mu(learned_values[k])}", f"|cos| {cosines[k]:.3f}"
        for (name, part), label in zip(parts.items(), below, strict=True):
            labels = f"{number}  {name}", label
            tile_list.append(Tile(labels, part(true[:, k]), part(learned[:, k])))
    return tile_list


def eigenvector_maps(layout: Layout, tile_list: list[Tile], path: str | Path, title: str) -> None:
    """Draws every tile: the true map above the learned one."""
    columns = min(ACROSS, len(tile_list))
    width, height = size_of(layout, 1.45, 1.6)
    pitch = max(width, 1.45) + GAP, LABELS + 2 * height + BETWEEN + GAP
    bands = -(-len(tile_list) // columns)
    figure, head = sheet(2 * EDGE + columns * pitch[0] - GAP, bands * pitch[1], title, LEGEND)
    for i, tile in enumerate(tile_list):
        left, top = EDGE + i % columns * pitch[0], head + i // columns * pitch[1]
        for j, text in enumerate(tile.labels):
            write(figure, left, top + LINE * j, text, size=7, weight="normal" if j else "bold")
        largest = max(np.abs(tile.true).max(), np.abs(tile.learned).max()) or 1.0
        for j, values in enumerate((tile.true, tile.learned)):
            axes = axes_at(figure, left, top + LABELS + j * (height + BETWEEN), width, height)
            draw_map(axes, layout, values, DIVERGENT, (-largest, largest))
            if i % columns == 0:
                axes.set_ylabel(("true", "learned")[j], fontsize=8, color=GREY, labelpad=3)
    pictures.save(figure, path)


def hitting_time_maps(
    layout: Layout,
    true: np.ndarray,
    learned: np.ndarray,
    ranks: tuple[np.ndarray, np.ndarray],
    path: str | Path,
    title: str,
) -> None:
    """Draws hitting times to three goals, exact above learned, and rank correlations.

    Args:
      layout: of S states.
      true: exact times `[S, S]`, from row to column.
      learned: the same.
      ranks: rank correlations over sources for each goal, and over goals for each source, `[S]`.
      path: of the picture.
      title: of the maze.
    """
    for name, table in {"true": true, "learned": learned}.items():
        check_shape(name, table, (layout.num_states,) * 2)
    goals = distant_states(layout, 3)
    width, height = size_of(layout, 1.9, 1.9)
    pitch = max(width, 1.9) + GAP, LABELS + 2 * height + BETWEEN + GAP
    caption = (
        "Left: expected steps to the marked cell, exact above learned, each from least (pale) to "
        "most. Right: Spearman's rank correlation of learned with exact times, from "
        f"{RANK:g} or less (pale) to 1: over all sources for the goal in each cell, and over "
        "all goals for the source in each cell."
    )
    figure, head = sheet(2 * EDGE + 4 * pitch[0], pitch[1], f"Hitting times: {title}", caption)
    for i, goal in enumerate(goals):
        left = EDGE + i * pitch[0]
        most = true[:, goal].max()
        row, col = layout.cells[goal]
        write(figure, left, head, f"to row {row}, column {col}", size=7, weight="bold")
        write(figure, left, head + LINE, f"at most {most:,.0f} steps", size=7)
        for j, table in enumerate((true, learned)):
            axes = axes_at(figure, left, head + LABELS + j * (height + BETWEEN), width, height)
            draw_map(axes, layout, table[:, goal], SEQUENTIAL, (0, table[:, goal].max()))
            axes.plot(col, row, "o", color=BLUE, markersize=4)
            if i == 0:
                axes.set_ylabel(("exact", "learned")[j], fontsize=8, color=GREY, labelpad=3)
    _draw_ranks(figure, layout, ranks, (EDGE + 3 * pitch[0], head, width, height))
    pictures.save(figure, path)


def _draw_ranks(
    figure: Figure,
    layout: Layout,
    ranks: tuple[np.ndarray, np.ndarray],
    place: tuple[float, float, float, float],
) -> None:
    """Maps of both correlations, one above the other."""
    left, top, width, height = place
    goals, sources = ranks
    write(figure, left, top, f"rank correlation, goals {goals.mean():.3f}", size=7, weight="bold")
    write(figure, left, top + LINE, f"sources (below) {sources.mean():.3f}", size=7)
    for j, values in enumerate((goals, sources)):
        axes = axes_at(figure, left, top + LABELS + j * (height + BETWEEN), width, height)
        clipped = np.clip(np.nan_to_num(values), RANK, 1)
        draw_map(axes, layout, clipped, SEQUENTIAL, (RANK, 1))


def distant_states(layout: Layout, count: int) -> list[int]:
    """States far apart: the first one, then always the one farthest from those chosen."""
    cells = layout.cells.astype(float)
    chosen = [0]
    while len(chosen) < min(count, layout.num_states):
        distances = np.abs(cells[:, None] - cells[None, chosen]).sum(axis=-1).min(axis=1)
        chosen.append(int(np.argmax(distances)))
    return chosen


def eigenvalue_plane(true: np.ndarray, learned: np.ndarray, path: str | Path, title: str) -> None:
    """Draws learned eigenvalues `[seeds, d]` and true ones `[d]`, complex, in the plane."""
    figure = pictures.titled_figure((6.6, 4.2), f"Eigenvalues of the walk: {title}")
    axes = figure.subplots()
    pictures.style_axes(axes, "real part", ((1, ""),), 1)
    axes.axhline(0, color=GREY, linewidth=0.6)
    real_imag = lambda x: (np.real(x), np.imag(x))
    axes.scatter(*real_imag(true), 70, edgecolors=GREY, facecolors="none", label="true")
    learned_label = "learned, all seeds" if len(learned) > 1 else "learned"
    axes.scatter(*real_imag(learned), 16, color=VERMILLION, marker="x", label=learned_label)
    real, imag = real_imag(np.concatenate([true, learned.ravel()]))
    room = 0.06 * np.ptp(real) or 0.1
    axes.set_xlim(real.min() - room, real.max() + room)
    size = max(1.3 * np.abs(imag).max(), 1e-3)
    axes.set_ylim(-size, size)
    axes.set_ylabel("imaginary part")
    pictures.legend_below(figure, axes.get_legend_handles_labels()[0])
    pictures.save(figure, path)
