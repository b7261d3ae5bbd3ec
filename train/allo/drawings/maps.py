"""Maps of a maze: learned eigenvectors below the true ones, and how often cells were visited.

S states, d components. Every picture is a PNG, written whole or not at all.
"""

import textwrap
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from envs.grid.drawing import DIVERGING, heat_map
from envs.grid.layouts import Layout
from train.host.showing import pictures
from train.host.showing.pictures import GREY, VERMILLION

WALL = "#82878d"  # grey of medium lightness, unlike the strongest colours of the maps
DIVERGENT = LinearSegmentedColormap.from_list("divergent", DIVERGING / 255).with_extremes(bad=WALL)
SEQUENTIAL = LinearSegmentedColormap.from_list("sequential", DIVERGING[3:] / 255)
SEQUENTIAL = SEQUENTIAL.with_extremes(bad=WALL)
PAIRS = 6  # side by side, at most
LEGEND = (
    "Learned ones below the true ones. Blue is negative, orange positive, white 0; signs of "
    "learned ones are chosen to match."
)
TIES = (
    " A line joins equal λ, whose vectors may be any basis: the learned ones are first rotated "
    "together onto the true ones; |cos| is from before that."
)
CUT = (
    " The last line goes on beyond the learned ones: of its true vectors those are shown that are "
    "nearest to the learned ones."
)
# In inches: margin, line of a caption, labels of a pair, space between its mazes and between pairs.
EDGE, LINE, LABELS, BETWEEN, GAP = 0.35, 0.155, 0.36, 0.07, 0.22


class Eigenvectors(NamedTuple):
    """Learned eigenvectors beside the true ones, by component."""

    truth: np.ndarray  # [S, e], e >= d
    learned: np.ndarray  # [S, d]
    values: np.ndarray  # [d] true λ
    learned_values: np.ndarray  # [d] learned λ
    cosines: np.ndarray  # [d] |cos| between learned and true columns, before they are rotated
    group: np.ndarray  # int [d], the same for components of equal λ
    column_group: np.ndarray  # int [e], the same of the true ones; -1 beyond the learned groups


def heat_maps(layout: Layout, pairs: Eigenvectors, path: str | Path, title: str) -> None:
    """Draws each learned eigenvector below the true one, both on one colour scale around 0.

    Learned columns are rotated onto the true ones, see `align_columns`. Raises ValueError for
    shapes that do not match and for numbers that are not finite.
    """
    d, true_groups = len(pairs.group), np.asarray(pairs.column_group)
    truth = nearest_columns(pairs)
    pairs = pairs._replace(truth=truth, learned=align_columns(truth, pairs.learned, pairs.group))
    for name in ("values", "learned_values", "cosines"):
        check_shape(name, getattr(pairs, name), (d,))
    bands = -(-d // PAIRS)
    columns = -(-d // bands)
    side = max(1.7, 8 / max(columns, 3))
    width, height = size_of(layout, side, 1.5 * side)
    pitch = max(width, 1.7) + GAP, LABELS + 2 * height + BETWEEN + GAP
    is_tied = [np.count_nonzero(true_groups == one) > 1 for one in pairs.group]
    is_cut = pairs.group[-1] in true_groups[d:]
    title = f"True and learned eigenvectors: {title}"
    caption = LEGEND + TIES * any(is_tied) + CUT * is_cut
    size = 2 * EDGE + columns * pitch[0] - GAP, bands * pitch[1]
    figure, head = sheet(*size, title, caption)
    for i in range(d):
        left, top = EDGE + i % columns * pitch[0], head + i // columns * pitch[1]
        if is_tied[i]:
            has_next = i + 1 < d and pairs.group[i + 1] == pairs.group[i] and (i + 1) % columns
            _rule(figure, left, top - 0.06, pitch[0] if has_next else pitch[0] - GAP)
        _draw_pair(figure, layout, pairs, i, (left, top, width, height), names=i % columns == 0)
    pictures.save(figure, path)


def _draw_pair(
    figure: Figure,
    layout: Layout,
    pairs: Eigenvectors,
    i: int,
    place: tuple[float, float, float, float],
    names: bool,
) -> None:
    """Component i, true above learned, at `place`: left, top, width and height of a map, inches."""
    left, top, width, height = place
    values = f"λ {decimal_text(pairs.values[i])}, found {decimal_text(pairs.learned_values[i])}"
    texts = f"|cos| {pairs.cosines[i]:.3f}", values
    _label_pair(figure, left, top, i + 1, texts)
    both = {"true": pairs.truth[:, i], "learned": pairs.learned[:, i]}
    largest = max(np.abs(vector).max() for vector in both.values()) or 1.0
    for j, (name, vector) in enumerate(both.items()):
        axes = axes_at(figure, left, top + LABELS + j * (height + BETWEEN), width, height)
        draw_map(axes, layout, vector, DIVERGENT, (-largest, largest))
        if names:
            axes.set_ylabel(name, fontsize=8, color=GREY, labelpad=3)


def decimal_text(value: float) -> str:
    """A value with four decimals, where 0 has no sign."""
    return f"{round(float(value), 4) + 0.0:.4f}"


def nearest_columns(pairs: Eigenvectors) -> np.ndarray:
    """The true columns `[S, d]` that learned ones are shown beside.

    Where the last group has more true columns than learned ones, any of its vectors are as right:
    those nearest to the learned ones, by an orthogonal map. Raises ValueError for shapes that do
    not match and for numbers that are not finite.
    """
    truth, learned = np.asarray(pairs.truth, float), np.asarray(pairs.learned, float)
    check_columns(truth, learned)
    check_shape("column_group", pairs.column_group, truth.shape[1:])
    d = len(pairs.group)
    nearest, last = truth[:, :d].copy(), np.equal(pairs.group, pairs.group[-1])
    check_shape("learned", learned, nearest.shape)
    if pairs.group[-1] in pairs.column_group[d:]:
        columns = truth[:, np.equal(pairs.column_group, pairs.group[-1])]
        u, _, v = np.linalg.svd(columns.T @ learned[:, last], full_matrices=False)
        nearest[:, last] = columns @ (u @ v)
    return nearest


def align_columns(truth: np.ndarray, learned: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Learned columns `[S, d]`, rotated by orthogonal maps to be nearest to the true ones.

    Components of one group, int `[d]`, have equal λ, so that any basis of their space is as good;
    their columns are rotated together (orthogonal Procrustes, Schönemann 1966). A component alone
    in its group can only change its sign. Raises ValueError for shapes that do not match and for
    numbers that are not finite.
    """
    truth, learned, group = np.asarray(truth, float), np.asarray(learned, float), np.asarray(group)
    check_columns(truth, learned)
    check_shape("learned", learned, truth.shape)
    check_shape("group", group, truth.shape[1:])
    rotated = np.empty_like(learned)
    for one in np.unique(group):
        members = group == one
        u, _, v = np.linalg.svd(learned[:, members].T @ truth[:, members])
        rotated[:, members] = learned[:, members] @ (u @ v)
    return rotated


def visitation(layout: Layout, visits: np.ndarray, path: str | Path, title: str) -> None:
    """Draws counts of visits `[S]`, relative to the uniform distribution.

    Raises ValueError for another shape, and for counts that are negative, not finite or all 0.
    """
    visits = np.asarray(visits, float)
    check_shape("visits", visits, (layout.num_states,))
    if not (visits >= 0).all() or not 0 < visits.sum() < np.inf:
        raise ValueError("visits are negative, not finite or all 0; expected counts of visits")
    relative = visits / visits.mean()
    width, height = size_of(layout, 4.6, 4.6)
    caption = (
        f"Visits relative to a uniform distribution: least {relative.min():.3g}, "
        f"most {relative.max():.3g}. Entropy {normalised_entropy(visits):.4f} of the largest"
        f" possible, over {visits.sum():,.0f} visits."
    )
    title = f"How often each cell was visited: {title}"
    figure, head = sheet(width + 2 * EDGE + 0.8, height + GAP, title, caption)
    axes = axes_at(figure, EDGE, head, width, height)
    limits = min(0.95, relative.min()), max(1.05, relative.max())  # tiny noise stays pale
    draw_map(axes, layout, relative, SEQUENTIAL, limits)
    bar = axes_at(figure, EDGE + width + 0.2, head, 0.16, height)
    figure.colorbar(axes.images[0], cax=bar).outline.set_visible(False)
    pictures.save(figure, path)


def normalised_entropy(visits: np.ndarray) -> float:
    """Entropy of the distribution of visits `[S]`, divided by that of the uniform one: 0 to 1."""
    law = visits[visits > 0] / visits.sum()
    return float(-np.sum(law * np.log(law)) / np.log(len(visits)))


def check_columns(truth: np.ndarray, learned: np.ndarray) -> None:
    """Raises ValueError for what are no columns, and for numbers that are not finite."""
    if truth.ndim != 2 or truth.shape[1] == 0:
        raise ValueError(f"truth has shape {truth.shape}; expected [S, d], a column per component")
    if not (np.isfinite(truth).all() and np.isfinite(learned).all()):
        raise ValueError("truth and learned are not all finite; expected a number for every state")


def check_shape(name: str, array: np.ndarray, expected: tuple[int, ...]) -> None:
    """Raises ValueError for an array of another shape."""
    if np.shape(array) != expected:
        raise ValueError(f"{name} has shape {np.shape(array)}; expected {expected}")


def draw_map(
    axes: Axes, layout: Layout, values: np.ndarray, colours: Colormap, limits: tuple[float, float]
) -> None:
    """Draws values `[S]` in their cells, and walls in grey."""
    low, high = limits
    cells = heat_map(layout, values)
    axes.imshow(cells, cmap=colours, vmin=low, vmax=high, interpolation="nearest", aspect="auto")
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set(color=WALL, linewidth=0.6)  # else a white cell would leak into the page


def size_of(layout: Layout, width: float, height: float) -> tuple[float, float]:
    """Width and height of a maze in inches, at most these; cells are square unless it is thin."""
    cell = min(width / layout.width, height / layout.height)
    return max(cell * layout.width, 0.3), max(cell * layout.height, 0.5)


def sheet(width: float, height: float, title: str, caption: str) -> tuple[Figure, float]:
    """`(figure, top)`: a figure with a heading and `height` inches below, which begin at `top`."""
    width = max(width, 6.6)
    lines = textwrap.wrap(caption, int((width - 2 * EDGE) / 0.056))
    head = 0.52 + LINE * len(lines)
    figure = Figure(figsize=(width, head + height), dpi=150)
    fitting = 115 * (width - 2 * EDGE) / max(len(title), 1)
    write(figure, EDGE, 0.12, title, size=min(12, fitting), weight="bold")
    for i, line in enumerate(lines):
        write(figure, EDGE, 0.37 + LINE * i, line, color=GREY)
    return figure, head


def axes_at(figure: Figure, left: float, top: float, width: float, height: float) -> Axes:
    """Axes at a place in inches, from the top left corner."""
    wide, high = figure.get_size_inches()
    return figure.add_axes((left / wide, 1 - (top + height) / high, width / wide, height / high))


def write(figure: Figure, left: float, top: float, text: str, size: float = 8, **style) -> None:
    """Text whose upper left corner is at a place in inches."""
    wide, high = figure.get_size_inches()
    place = left / wide, 1 - top / high
    figure.text(*place, text, va="top", fontsize=size, parse_math=False, **style)


def _label_pair(
    figure: Figure, left: float, top: float, component: int, texts: tuple[str, str]
) -> None:
    """Two lines above a pair of maps; the first begins with the component, in bold."""
    write(figure, left, top, str(component), weight="bold")
    write(figure, left + 0.1 + 0.08 * len(str(component)), top, texts[0])
    write(figure, left, top + LINE, texts[1])


def _rule(figure: Figure, left: float, top: float, length: float) -> None:
    """A thin horizontal line; position and length in inches."""
    wide, high = figure.get_size_inches()
    x, y = np.array([left, left + length]) / wide, [1 - top / high] * 2
    figure.add_artist(Line2D(x, y, color=VERMILLION, linewidth=1.5, solid_capstyle="butt"))
