"""Tracks of TrackMate: its table of spots, and that of edges, which say where cells divide.

Below the names its exports have two more rows of names and one of units, such as "(micron)". The
format is that of the buttons "Spots" and "Edges" and of "Export to CSV" (Ershov et al. 2022,
*Nature Methods* 19, 829).
"""

from collections import Counter, defaultdict
from itertools import islice

import numpy as np

from train.durotaxis.tracks.files.columns import is_number, numbers, plain_name
from train.durotaxis.tracks.tracks import Rows
from train.host.numbers import quantity

SPOTS = ("ID", "TRACK_ID", "FRAME", "POSITION_X", "POSITION_Y")
EDGES = ("SPOT_SOURCE_ID", "SPOT_TARGET_ID")
MICRONS = ("micron", "microns", "µm", "μm", "um", "micrometer", "micrometers")
EXPECTED_EDGES = (
    "expected TrackMate's table of edges, with SPOT_SOURCE_ID and SPOT_TARGET_ID of every link"
)
NUM_HEADINGS = 3  # rows below the names, at most
PIXELS = ("pixel", "pixels", "px", "")
NO_TRACK = ("", "None", "nan", "NaN", "null")


def read(
    path: str, spots: dict[str, list[str]], edges: dict[str, list[str]] | None, edges_path: str
) -> tuple[Rows, str]:
    """The rows of a table of spots, and the unit of its places. Raises ValueError."""
    columns = {name.upper(): values for name, values in spots.items()}
    unit = unit_of(path, columns)
    table = without_headings([columns[name] for name in SPOTS])
    spot, track, *words = table
    tracked = [i for i, word in enumerate(track) if word not in NO_TRACK]
    dropped = len(track) - len(tracked)
    notes = (f"{quantity(dropped, 'spots')} in no track left out",) * (dropped > 0)
    spot, track = ([plain_name(values[i]) for i in tracked] for values in (spot, track))
    num_headings = len(columns[SPOTS[0]]) - len(table[0])
    rows = [num_headings + i for i in tracked]
    refuse_repeated_spots(path, spot)
    frame, x, y = (
        numbers(path, name, [v[i] for i in tracked], rows)
        for name, v in zip(SPOTS[2:], words, strict=True)
    )
    if edges is None:
        refuse_divisions(path, track, frame)
        return Rows(track, frame, x, y, {}, notes=notes), unit
    links = read_links(edges_path, edges, dict(zip(spot, frame, strict=True)))
    refuse_unlinked(edges_path, spot, track, links)
    place = {s: complex(*xy) for s, *xy in zip(spot, x, y, strict=True)}
    cell, parent = cells_of(spot, frame, links, place)
    return Rows([cell[s] for s in spot], frame, x, y, parent, notes=notes), unit


def unit_of(path: str, columns: dict[str, list[str]]) -> str:
    """px or µm, as the row of units says; px where there is none."""
    for word in columns["POSITION_X"][:3]:
        if word.startswith("(") and word.endswith(")"):
            name = word[1:-1].strip().lower()
            if name in MICRONS:
                return "µm"
            if name not in PIXELS:
                raise ValueError(f"{path} has places in {name}; expected pixel or micron")
    return "px"


def without_headings(columns: list[list[str]]) -> list[list[str]]:
    """Columns without the rows of names and units at their top, which have no number in any."""
    top = list(islice(zip(*columns, strict=True), NUM_HEADINGS))
    start = next((i for i, row in enumerate(top) if any(map(is_number, row))), len(top))
    return [values[start:] for values in columns]


def refuse_repeated_spots(path: str, spots: list[str]) -> None:
    """Raises ValueError for a spot with several rows, which edges could not tell apart."""
    spot, count = next(iter(Counter(spots).most_common(1)), ("", 0))
    if count > 1:
        raise ValueError(
            f"{path} has {count} rows of spot {spot}; expected one of each: give the spots of one "
            "export, once"
        )


def refuse_divisions(path: str, track: list[str], frame: np.ndarray) -> None:
    """Raises ValueError for a track with two spots in a frame, which edges would tell apart."""
    places: set[tuple[str, float]] = set()
    for pair in zip(track, frame.tolist(), strict=True):
        if pair in places:
            raise ValueError(
                f"{path} has two spots of track {pair[0]} in frame {pair[1]:g}, so cells divide: "
                "give TrackMate's table of edges with --edges"
            )
        places.add(pair)


def read_links(
    path: str, edges: dict[str, list[str]], frame: dict[str, float]
) -> list[tuple[str, str]]:
    """Pairs of spots `(earlier, later)`, each once. Raises ValueError for unknown spots, for two
    of one frame and for merges."""
    columns = {name.upper(): values for name, values in edges.items()}
    missing = [name for name in EDGES if name not in columns]
    if missing:
        raise ValueError(f"{path} has no column {' and '.join(missing)}; {EXPECTED_EDGES}")
    table = without_headings([columns[name] for name in EDGES])
    source, target = (spot_names(path, *column) for column in zip(EDGES, table, strict=True))
    if not source:
        raise ValueError(f"{path} has no edges; {EXPECTED_EDGES}")
    pairs = list(zip(source, target, strict=True))
    unknown = [spot for pair in pairs for spot in pair if spot not in frame]
    if unknown:
        raise ValueError(f"{path} links spot {unknown[0]}, which the spots do not have")
    same = next((pair for pair in pairs if frame[pair[0]] == frame[pair[1]]), None)
    if same is not None:
        raise ValueError(
            f"{path} links the spots {same[0]} and {same[1]}, both in frame {frame[same[0]]:g}; "
            "expected links from one frame to a later one"
        )
    links = list(dict.fromkeys((a, b) if frame[a] < frame[b] else (b, a) for a, b in pairs))
    targets = [b for _, b in links]
    if len(set(targets)) < len(targets):
        raise ValueError(
            f"{path} has {quantity(len(targets) - len(set(targets)), 'merges')} of two cells into "
            "one, which the model has not: switch off merging in TrackMate's tracker"
        )
    return links


def refuse_unlinked(
    path: str, spots: list[str], track: list[str], links: list[tuple[str, str]]
) -> None:
    """Raises ValueError for spots of a track that no edge has: each would be a cell of a frame."""
    linked = {spot for pair in links for spot in pair}
    sizes = Counter(track)
    alone = [t for s, t in zip(spots, track, strict=True) if sizes[t] > 1 and s not in linked]
    if alone:
        raise ValueError(
            f"{path} has no edge of {quantity(len(alone), 'spots')} of "
            f"{quantity(len(set(alone)), 'tracks')} of several spots; expected the edges table of "
            "the same export as the spots, with every link"
        )


def spot_names(path: str, name: str, words: list[str]) -> list[str]:
    """A column of spots as they are named. Raises ValueError for what is no whole number."""
    names = [plain_name(word) for word in words]
    wrong = next((word for word in names if not word.isdecimal()), None)
    if wrong is not None:
        raise ValueError(
            f"{path} has {wrong!r} in column {name}; expected the number of a spot: leave such "
            "rows out"
        )
    return names


def cells_of(
    spots: list[str], frame: np.ndarray, links: list[tuple[str, str]], place: dict[str, complex]
) -> tuple[dict[str, str], dict[str, str]]:
    """The cell of every spot, named by its first spot, and the parents of cells.

    Where a track splits, the nearest spot is the same cell and the others are its children.
    """
    targets, source = defaultdict(list), {b: a for a, b in links}
    for a, b in links:
        targets[a].append(b)
    cell: dict[str, str] = {}
    parent: dict[str, str] = {}
    for spot in (spots[i] for i in np.argsort(frame, kind="stable")):
        before = source.get(spot)
        if before is None:
            cell[spot] = spot
            continue
        distance = lambda s, at=before: abs(place[s] - place[at])
        if spot == min(targets[before], key=distance):
            cell[spot] = cell[before]
        else:
            cell[spot], parent[spot] = spot, cell[before]
    return cell, parent
