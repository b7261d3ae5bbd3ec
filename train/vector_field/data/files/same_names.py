"""Files that are one data set: channels and inputs of one name are in one place in all of them.

Axes: S spikes, n channels, m inputs.
"""

from collections.abc import Sequence

import numpy as np

from train.host.machine.progress import print_once
from train.host.numbers import listing, quantity
from train.vector_field.data.files.content import Content
from train.vector_field.data.files.tables.text_cells import in_order
from train.vector_field.data.spike_times import num_units

Arrays = dict[str, np.ndarray]


def match_names(paths: Sequence[str], contents: Sequence[Content]) -> list[Arrays]:
    """The arrays of each file, with units and columns in the places that their names have.

    Units are those of all files: one that is not in a file has no spikes there. Columns are in the
    order of the first file; where names differ they are left in their order, and a line says so.
    Beside files whose units have numbers alone, names that are whole numbers are these.

    Raises ValueError, in one line, for files of spikes that have no unit in common, more or fewer
    names than there are numbers, or two names of one number, and for columns of which a part alone
    is in both files, in other places.
    """
    arrays = [dict(content.arrays) for content in contents]
    of_spikes = [k for k, x in enumerate(contents) if x.channels and "spike_times" in x.arrays]
    labels = [contents[k].channels for k in of_spikes]
    named = [paths[k] for k in of_spikes]
    by_number = {
        path: x.arrays
        for path, x in zip(paths, contents, strict=True)
        if "spike_times" in x.arrays and not x.channels
    }
    if of_spikes and by_number:
        places_of_files = _numbers_of_units(named, labels, by_number)
    else:
        places_of_files = _places_of_units(named, labels)
    for k, (places, number) in zip(of_spikes, places_of_files, strict=True):
        arrays[k]["spike_units"] = places[arrays[k]["spike_units"]]
        arrays[k]["num_units"] = np.array(number)
    of_columns = [k for k, x in enumerate(contents) if x.channels and k not in of_spikes]
    of_inputs = [k for k, x in enumerate(contents) if x.inputs]
    for name, files, names in (
        ("y", of_columns, [x.channels for x in contents]),
        ("u", of_inputs, [x.inputs for x in contents]),
    ):
        for k in files[1:]:
            order = _order_of_columns((paths[files[0]], paths[k]), names[files[0]], names[k])
            arrays[k][name] = arrays[k][name][..., order]
    return arrays


def _places_of_units(
    paths: Sequence[str], labels: Sequence[tuple[str, ...]]
) -> list[tuple[np.ndarray, int]]:
    """The places of the units of each file among all, and how many these are."""
    everyone = in_order(label for own in labels for label in own)
    places = []
    for path, own in zip(paths, labels, strict=True):
        if not set(own) & set(labels[0]):
            raise ValueError(
                f"{path} has the units {listing(own)} and {paths[0]} {listing(labels[0])}, none of "
                "which is in both: give units one name in all files, or they are sessions with "
                "channels of their own, --sessions"
            )
        if absent := [x for x in everyone if x not in own]:
            print_once(
                f"{path}: no spikes of {quantity(len(absent), 'units')} of the other files, "
                f"{listing(absent)}: taken as silent there"
            )
        places.append((np.array([everyone.index(x) for x in own]), len(everyone)))
    return places


def _numbers_of_units(
    paths: Sequence[str], labels: Sequence[tuple[str, ...]], others: dict[str, Arrays]
) -> list[tuple[np.ndarray, int]]:
    """The same where `others` are files, by path, whose units have numbers alone, from 0 on.

    Who is silent has no name in a table of spikes, so that names other than numbers fit no place
    unless they are as many as there are units.
    """
    everyone, number = in_order(x for own in labels for x in own), num_units(others)
    other = next(iter(others))
    if all(x.isdecimal() and x.isascii() for x in everyone):
        _refuse_one_number(everyone, paths, other)
        number = max(number, 1 + max(map(int, everyone)))
        if number >= 2**31:
            raise ValueError(f"{paths[0]} has a unit {number - 1}: number them from 0 on")
        print_once(f"{', '.join(paths)}: units are those of {other} with these numbers, from 0 on")
        return [(np.array([int(x) for x in own]), number) for own in labels]
    if len(everyone) != number:
        raise ValueError(
            f"{', '.join(paths)} names {quantity(len(everyone), 'units')}, {listing(everyone)}, "
            f"and {other} has {number}, by number alone: call them by their numbers there, from 0 "
            "on, or they are sessions with channels of their own, --sessions"
        )
    print_once(
        f"{', '.join(paths)}: {listing(everyone)} are taken for units 0 to {number - 1} of "
        f"{other}, in this order: call them by their numbers there"
    )
    return _places_of_units(paths, labels)


def _refuse_one_number(names: Sequence[str], paths: Sequence[str], other: str) -> None:
    """Raises ValueError for two names of one number, as 1 and 01: they would be one unit."""
    for k, name in enumerate(names):
        if same := [x for x in names[:k] if int(x) == int(name)]:
            raise ValueError(
                f"{', '.join(paths)} has the units {same[0]} and {name}, both number {int(name)} "
                f"beside {other}, whose units have numbers alone: give each unit one number there"
            )


def _order_of_columns(
    paths: tuple[str, str], first: tuple[str, ...], own: tuple[str, ...]
) -> list[int]:
    """Which column of a file, the second of two, stands in the place of each of the first.

    Raises ValueError where names differ and one of both would stand in the place of another.
    """
    if set(first) == set(own):
        return [own.index(x) for x in first]
    if moved := [x for x in first if x in own and first.index(x) != own.index(x)]:
        raise ValueError(
            f"{paths[1]} has the columns {listing(own)} and {paths[0]} {listing(first)}: "
            f"{listing(moved)} would be mixed up with others; give both files the same columns"
        )
    if len(first) == len(own):
        print_once(
            f"{paths[1]}: {listing(own)} are taken for {listing(first)} of {paths[0]}, in this "
            "order: give columns one name in all files"
        )
    return list(range(len(own)))
