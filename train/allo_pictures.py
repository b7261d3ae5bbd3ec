"""Pictures of a run that learns Laplacian eigenvectors: vectors, scores, eigenvalues, visits.

S states, d components. Rows are those of `metrics.jsonl` (see `train.records`), whose "agent" holds
the number `similarity` and the lists `cosines` and `eigenvalues` `[d]`; what is None in them is
left out. Every picture is a PNG, written whole or not at all.
"""

import textwrap
from collections.abc import Sequence
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import BoundaryNorm, Colormap, LinearSegmentedColormap, ListedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from envs.grid.drawing import DIVERGING, heat_map
from envs.grid.layouts import Layout
from train import pictures
from train.pictures import GREY, STEPS, VERMILLION, Curve, Row

UNIT = "gradient steps"
WALL = "#82878d"  # grey and of middling lightness, where the maps have their strongest hues
DIVERGENT = LinearSegmentedColormap.from_list("divergent", DIVERGING / 255).with_extremes(bad=WALL)
SEQUENTIAL = LinearSegmentedColormap.from_list("sequential", DIVERGING[3:] / 255)
SEQUENTIAL = SEQUENTIAL.with_extremes(bad=WALL)
LEAST = 1e-6  # distance from 1 below which similarities are drawn as one
TICKS = np.array([0, 0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999, 0.9999, 0.99999])
PAIRS = 6  # side by side, at most
LEGEND = (
    "Learned ones beneath the true ones. Blue is negative, orange positive, white 0; signs of "
    "learned ones are chosen to suit."
)
TIES = (
    " A line joins equal λ, whose vectors may be any basis: there learned ones are first turned "
    "together onto the true ones, and |cos| is from before."
)
# Of maps, in inches: the edge, a line of a caption, the labels of a pair, the space between its
# mazes and that between pairs.
EDGE, LINE, LABELS, BETWEEN, GAP = 0.35, 0.155, 0.36, 0.07, 0.22


def heat_maps(
    layout: Layout,
    truth: np.ndarray,
    learned: np.ndarray,
    values: np.ndarray,
    found: np.ndarray,
    cosines: np.ndarray,
    group: np.ndarray,
    path: str | Path,
    title: str,
) -> None:
    """Draws each learned eigenvector beneath the true one, both on one colour scale around 0.

    Args:
      truth, learned: `[S, d]`; learned columns are turned onto the true ones, see `aligned`.
      values, found: `[d]` λ, true and learned.
      cosines: `[d]` |cos| between learned and true columns, before they are turned.
      group: int `[d]`, the same for components of equal λ.

    Raises ValueError for shapes that do not fit together and for numbers that are not finite.
    """
    truth = np.asarray(truth, float)
    learned, d = aligned(truth, learned, group), truth.shape[1]
    for name, numbers in {"values": values, "found": found, "cosines": cosines}.items():
        _check_shape(name, numbers, (d,))
    bands = -(-d // PAIRS)
    columns = -(-d // bands)
    side = max(1.7, 8 / max(columns, 3))
    width, height = _size(layout, side, 1.5 * side)
    pitch = max(width, 1.7) + GAP, LABELS + 2 * height + BETWEEN + GAP
    repeated = [np.count_nonzero(np.equal(group, one)) > 1 for one in group]
    title, caption = f"True and learned eigenvectors: {title}", LEGEND + TIES * any(repeated)
    size = 2 * EDGE + columns * pitch[0] - GAP, bands * pitch[1]
    figure, head = _sheet(*size, title, caption)
    for i in range(d):
        left, top = EDGE + i % columns * pitch[0], head + i // columns * pitch[1]
        texts = f"|cos| {cosines[i]:.3f}", f"λ {values[i]:.4f}, found {found[i]:.4f}"
        _label_pair(figure, left, top, i + 1, texts)
        if repeated[i]:
            goes_on = i + 1 < d and group[i + 1] == group[i] and (i + 1) % columns
            _rule(figure, left, top - 0.06, pitch[0] if goes_on else pitch[0] - GAP)
        largest = max(np.abs(truth[:, i]).max(), np.abs(learned[:, i]).max()) or 1.0
        for j, (name, vectors) in enumerate({"true": truth, "learned": learned}.items()):
            down = top + LABELS + j * (height + BETWEEN)
            axes = _axes(figure, left, down, width, height)
            _draw_map(axes, layout, vectors[:, i], DIVERGENT, (-largest, largest))
            if i % columns == 0:
                axes.set_ylabel(name, fontsize=8, color=GREY, labelpad=3)
    pictures.save(figure, Path(path))


def aligned(truth: np.ndarray, learned: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Learned columns `[S, d]`, turned as near to the true ones as an orthogonal map can.

    Where λ is equal in a group, int `[d]`, any basis is as good as another, so all columns of the
    group turn together (orthogonal Procrustes, Schönemann 1966); alone, one only changes its sign.
    Raises ValueError for shapes that do not fit together and for numbers that are not finite.
    """
    truth, learned, group = np.asarray(truth, float), np.asarray(learned, float), np.asarray(group)
    if truth.ndim != 2 or truth.shape[1] == 0:
        raise ValueError(f"truth has shape {truth.shape}; expected [S, d], a column per component")
    _check_shape("learned", learned, truth.shape)
    _check_shape("group", group, truth.shape[1:])
    if not (np.isfinite(truth).all() and np.isfinite(learned).all()):
        raise ValueError("truth and learned are not all finite; expected a number for every state")
    turned = np.empty_like(learned)
    for one in np.unique(group):
        members = group == one
        u, _, v = np.linalg.svd(learned[:, members].T @ truth[:, members])
        turned[:, members] = learned[:, members] @ (u @ v)
    return turned


def similarity_curves(
    rows: Sequence[Row], path: str | Path, ceiling: float | None, title: str
) -> None:
    """Draws the similarity of every seed, and the mean |cos| of each component, over steps.

    The axis shows orders of magnitude of what is missing to 1. `ceiling` is what the data allow.
    Raises ValueError if there are rows, but none with a similarity.
    """
    _check_known(rows, "similarity")
    figure, (left, right) = _panels(f"Learned against true eigenvectors: {title}", sharey=True)
    end = max((row["steps"] for row in rows), default=0)
    scale = pictures.dress(left, _label(rows), STEPS, end)
    pictures.dress(right, _label(rows), STEPS, end)
    lines = [(x / scale, _gap(y)) for x, y in pictures.curves(rows, "similarity", "steps")]
    lowest = [y.min() for _, y in lines]
    if lines:
        pictures.draw_lines(left, lines)
    else:
        pictures.say_empty(left)
    if ceiling is not None:
        lowest.append(_gap(ceiling))
        label = f"ceiling of the data, {ceiling:.4f}"
        left.axhline(
            float(_gap(ceiling)), color=VERMILLION, linestyle="--", linewidth=1.3, label=label
        )
    components = component_curves(rows, "cosines")
    colours = _colours(len(components))
    for lines, colour in zip(components, colours, strict=True):
        if lines:
            x, mean, _ = pictures.mean_curve(lines)
            right.plot(x / scale, _gap(mean), pictures.line_style(x), color=colour, linewidth=1.4)
            lowest += _gap(mean).tolist()
    if not any(components):
        pictures.say_empty(right)
    left.set_yscale("log")
    left.set_yticks(_gap(TICKS), [f"{tick:g}" for tick in TICKS])
    left.set_yticks([], minor=True)
    left.set_ylim(1.1, 0.7 * min([0.02, *lowest]))  # upside down, as it shows what is missing
    left.set_ylabel("similarity")
    right.tick_params(labelleft=True)
    right.set_ylabel("|cos|" + ", mean of the seeds" * _many(rows))
    _colour_bar(figure, right, colours)
    _legend(figure, left.get_legend_handles_labels()[0])
    pictures.save(figure, Path(path))


def eigenvalue_curves(
    rows: Sequence[Row],
    path: str | Path,
    truth: np.ndarray,
    published: np.ndarray | None,
    title: str,
) -> None:
    """Draws learned λ over steps, and at the end against the true ones.

    `truth` and `published` are `[d]`: λ of the operator that is learned, and by the convention of
    papers. Raises ValueError for another shape than that of the rows, and if there are rows, but
    none with eigenvalues.
    """
    truth = np.asarray(truth, float)
    _check_known(rows, "eigenvalues")
    components = component_curves(rows, "eigenvalues") or [[] for _ in truth]
    _check_shape("truth", truth, (len(components),))
    if published is not None:
        _check_shape("published", published, truth.shape)
    figure, (left, right) = _panels(f"Learned eigenvalues: {title}")
    colours = _colours(len(truth))
    _draw_eigenvalues(left, rows, components, truth, published, colours)
    _draw_ends(right, truth, components, colours)
    _colour_bar(figure, right, colours)
    handles: list[Artist] = [Line2D([], [], color=GREY, label="learned")]
    if max(map(len, components)) > 2:
        handles.append(
            Patch(color=GREY, alpha=0.25, linewidth=0, label="95 % interval of the mean")
        )
    handles.append(Line2D([], [], color=GREY, linestyle="--", label="true"))
    if published is not None:
        style = {"color": GREY, "marker": "d", "markersize": 4, "linestyle": ""}
        handles.append(Line2D([], [], **style, label="true, as papers print it"))
    _legend(figure, handles)
    pictures.save(figure, Path(path))


def component_curves(rows: Sequence[Row], name: str) -> list[list[Curve]]:
    """For each component of the agent's list `name`, the curves of `train.pictures.curves`.

    Raises ValueError if the lists of the rows differ in length.
    """
    known = [row for row in rows if row["agent"].get(name) is not None]
    lengths = {len(row["agent"][name]) for row in known}
    if len(lengths) > 1:
        raise ValueError(f"{name} has {sorted(lengths)} components; expected the same in all rows")
    components = []
    for i in range(max(lengths, default=0)):
        of_one = [{**row, "finished": {}, "agent": {name: row["agent"][name][i]}} for row in known]
        components.append(pictures.curves(of_one, name, "steps"))
    return components


def visitation(layout: Layout, visits: np.ndarray, path: str | Path, title: str) -> None:
    """Draws counts of visits `[S]`, relative to equally many everywhere.

    Raises ValueError for another shape, and for counts that are negative, not finite or all 0.
    """
    visits = np.asarray(visits, float)
    _check_shape("visits", visits, (layout.num_states,))
    if not (visits >= 0).all() or not 0 < visits.sum() < np.inf:
        raise ValueError("visits are negative, not finite or all 0; expected counts of visits")
    relative = visits / visits.mean()
    width, height = _size(layout, 4.6, 4.6)
    caption = (
        f"Visits relative to equally many everywhere: least {relative.min():.3g}, "
        f"most {relative.max():.3g}. Entropy {normalised_entropy(visits):.4f} of the largest"
        f" possible, over {visits.sum():,.0f} visits."
    )
    title = f"How often each cell was visited: {title}"
    figure, head = _sheet(width + 2 * EDGE + 0.8, height + GAP, title, caption)
    axes = _axes(figure, EDGE, head, width, height)
    limits = min(0.95, relative.min()), max(1.05, relative.max())  # tiny noise stays pale
    _draw_map(axes, layout, relative, SEQUENTIAL, limits)
    bar = _axes(figure, EDGE + width + 0.2, head, 0.16, height)
    figure.colorbar(axes.images[0], cax=bar).outline.set_visible(False)
    pictures.save(figure, Path(path))


def normalised_entropy(visits: np.ndarray) -> float:
    """Entropy of the law of visits `[S]` over that of the uniform one: 0 to 1."""
    law = visits[visits > 0] / visits.sum()
    return float(-np.sum(law * np.log(law)) / np.log(len(visits)))


def _draw_eigenvalues(axes: Axes, rows, components, truth, published, colours) -> None:
    """λ over steps; to the right of the curves what is known."""
    end = max((row["steps"] for row in rows), default=0)
    scale = pictures.dress(axes, _label(rows), STEPS, end)
    end = end / scale or 1
    for lines, colour in zip(components, colours, strict=True):
        _draw_component(axes, [(x / scale, y) for x, y in lines], colour)
    if not any(components):
        pictures.say_empty(axes)
    axes.hlines(truth, 1.01 * end, 1.08 * end, colours, "--", linewidth=1.3)
    if published is not None:
        axes.scatter(np.full(len(truth), 1.11 * end), published, 14, colours, marker="d")
    axes.set_xticks([tick for tick in axes.get_xticks() if tick <= 1.01 * end])
    axes.set_xlim(0, 1.14 * end)
    axes.set_ylabel("λ" + ", mean of the seeds" * _many(rows))
    _limit(axes, components, truth if published is None else np.append(truth, published))


def _draw_component(axes: Axes, lines: Sequence[Curve], colour) -> None:
    """The mean of the seeds, and from three on its interval."""
    if not lines:
        return
    x, mean, margin = pictures.mean_curve(lines)
    axes.plot(x, mean, pictures.line_style(x), color=colour, linewidth=1.4)
    if np.isfinite(margin).any():
        axes.fill_between(x, mean - margin, mean + margin, color=colour, alpha=0.2, linewidth=0)


def _limit(axes: Axes, components: Sequence[Sequence[Curve]], known: np.ndarray) -> None:
    """Shows the λ that are known and the later half of the curves; wild beginnings are cut."""
    late = [y[len(y) // 2 :] for lines in components for _, y in lines]
    shown = np.concatenate([known, *late])
    room = 0.06 * (shown.max() - shown.min()) or 0.1
    axes.set_ylim(shown.min() - room, shown.max() + room)


def _draw_ends(axes: Axes, truth: np.ndarray, components, colours) -> None:
    """The last λ over the true one: the mean of the seeds, from three on with its interval."""
    pictures.dress(axes, "true λ", ((1, ""),), 1)
    axes.axline((0, 0), slope=1, color=GREY, linestyle="--", linewidth=1)
    shown = truth.tolist()
    for true, lines, colour in zip(truth, components, colours, strict=True):
        if not lines:
            continue
        ends = np.array([y[-1] for _, y in lines])
        style = {"color": colour, "fmt": "o", "markersize": 5, "capsize": 3}
        axes.errorbar(true, ends.mean(), pictures.interval(ends), **style)
        shown.append(ends.mean())
    room = 0.08 * (max(shown) - min(shown)) or 0.1
    axes.set_xlim(min(shown) - room, max(shown) + room)
    axes.set_ylim(axes.get_xlim())
    axes.locator_params(nbins=6)
    axes.set_ylabel("learned λ at the end")


def _panels(title: str, **shared) -> tuple[Figure, np.ndarray]:
    figure = Figure(figsize=(10, 4.2), dpi=150, layout="constrained")
    figure.suptitle(title, x=0.01, ha="left", weight="bold", parse_math=False)
    return figure, figure.subplots(1, 2, **shared)


def _many(rows: Sequence[Row]) -> bool:
    return len({row["seed"] for row in rows}) > 1


def _label(rows: Sequence[Row]) -> str:
    return UNIT + " of each seed" * _many(rows)


def _gap(similarity):
    """What is missing to 1."""
    return np.maximum(1 - np.asarray(similarity, float), LEAST)


def _colours(count: int) -> np.ndarray:
    """One for each component, from dark to light, `[count, 4]`."""
    return matplotlib.colormaps["viridis"](np.linspace(0, 0.9, count))


def _colour_bar(figure: Figure, axes: Axes, colours: np.ndarray) -> None:
    """Which colour is which component, from 1; none where there is only one."""
    d = len(colours)
    if d < 2:
        return
    norm = BoundaryNorm(np.arange(d + 1) + 0.5, d)
    bar = figure.colorbar(ScalarMappable(norm, ListedColormap(colours)), ax=axes, aspect=30)
    bar.set_ticks(list(range(1, d + 1, -(-d // 16))))
    bar.ax.tick_params(length=0, labelsize=8, which="both")
    bar.outline.set_visible(False)
    bar.set_label("component", size=9)


def _legend(figure: Figure, handles: Sequence[Artist]) -> None:
    if handles:  # below, where no curve runs into it
        figure.legend(handles=handles, loc="outside lower left", ncols=len(handles), frameon=False)


def _draw_map(
    axes: Axes, layout: Layout, values: np.ndarray, colours: Colormap, limits: tuple[float, float]
) -> None:
    """Values `[S]` in their cells, and walls grey."""
    low, high = limits
    cells = heat_map(layout, values)
    axes.imshow(cells, cmap=colours, vmin=low, vmax=high, interpolation="nearest", aspect="auto")
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set(color=WALL, linewidth=0.6)  # else a white cell would leak into the page


def _size(layout: Layout, width: float, height: float) -> tuple[float, float]:
    """Width and height of a maze in inches, at most these; cells are square unless it is thin."""
    cell = min(width / layout.width, height / layout.height)
    return max(cell * layout.width, 0.3), max(cell * layout.height, 0.5)


def _sheet(width: float, height: float, title: str, caption: str) -> tuple[Figure, float]:
    """A figure with a heading and as much room below, in inches, and where that begins."""
    width = max(width, 6.6)
    lines = textwrap.wrap(caption, int((width - 2 * EDGE) / 0.056))
    head = 0.52 + LINE * len(lines)
    figure = Figure(figsize=(width, head + height), dpi=150)
    fitting = 115 * (width - 2 * EDGE) / max(len(title), 1)
    _write(figure, EDGE, 0.12, title, size=min(12, fitting), weight="bold")
    for i, line in enumerate(lines):
        _write(figure, EDGE, 0.37 + LINE * i, line, color=GREY)
    return figure, head


def _axes(figure: Figure, left: float, top: float, width: float, height: float) -> Axes:
    """Axes at a place in inches, from the top left corner."""
    wide, high = figure.get_size_inches()
    return figure.add_axes((left / wide, 1 - (top + height) / high, width / wide, height / high))


def _write(figure: Figure, left: float, top: float, text: str, size: float = 8, **style) -> None:
    """Text whose upper left corner is at a place in inches."""
    wide, high = figure.get_size_inches()
    place = left / wide, 1 - top / high
    figure.text(*place, text, va="top", fontsize=size, parse_math=False, **style)


def _label_pair(
    figure: Figure, left: float, top: float, component: int, texts: tuple[str, str]
) -> None:
    """Two lines above a pair of maps; the first begins with the component, in bold."""
    _write(figure, left, top, str(component), weight="bold")
    _write(figure, left + 0.1 + 0.08 * len(str(component)), top, texts[0])
    _write(figure, left, top + LINE, texts[1])


def _rule(figure: Figure, left: float, top: float, length: float) -> None:
    """A thin line to the right, in inches."""
    wide, high = figure.get_size_inches()
    x, y = np.array([left, left + length]) / wide, [1 - top / high] * 2
    figure.add_artist(Line2D(x, y, color=VERMILLION, linewidth=1.5, solid_capstyle="butt"))


def _check_shape(name: str, array: np.ndarray, expected: tuple[int, ...]) -> None:
    if np.shape(array) != expected:
        raise ValueError(f"{name} has shape {np.shape(array)}; expected {expected}")


def _check_known(rows: Sequence[Row], name: str) -> None:
    if rows and not any(name in row["agent"] for row in rows):
        raise ValueError(
            f"no row has {name}; expected the metrics of a run that learns eigenvectors"
        )
