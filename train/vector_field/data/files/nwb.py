"""NWB files (Neurodata Without Borders): units or time series, and stimuli, read by h5py.

Of the format only what a recording needs is read: the table `units`, the series of `acquisition`
and `processing`, and those of `stimulus/presentation`. Times are in seconds, as the format says.
"""

from typing import Any

import numpy as np

from train.host.files.array_files import MAX_BYTES
from train.host.numbers import listing
from train.vector_field.data.files.content import (
    Content,
    rows_on_grid,
    spikes_content,
    spread_rows,
)
from train.vector_field.data.files.held_inputs import (
    Series,
    hold,
    refuse_unordered,
    time_mismatch,
)
from train.vector_field.data.files.names import Names

UNITS = "units"
RECORDED = "acquisition/", "processing/"
STIMULI = "stimulus/presentation"
WIDEST = 2_000
"""Columns of a series, at most: a film is no recording of channels."""


def read(path: str, names: Names, bin_width: float) -> Content:
    """The content of a file. Raises ValueError, in one line, for what it cannot be."""
    try:
        import h5py  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise ValueError("NWB files need h5py: pip install 'jaxrl[nwb]'") from None
    with h5py.File(path, "r") as file:
        if "nwb_version" not in file.attrs:
            raise ValueError("it is an HDF5 file, but not of NWB; save arrays as npz instead")
        everything = series_in(h5py, file)
        y_names, u_names = choose_series(everything, f"{UNITS}/spike_times" in file, names)
        inputs = [read_series(file[x]) for x in u_names]
        for name, series in zip(u_names, inputs, strict=True):
            refuse_unordered(f"timestamps of {name}", series.times)
        about = f"NWB; y: {listing(y_names)}; "
        about += f"u: {listing(u_names)}" if u_names else "no inputs"
        if y_names == [UNITS]:
            times, units, count = spikes_of(file[UNITS])
            arrays = spikes_content(times, units, count, inputs, bin_width)
            about += f"; {len(times):,} spikes of {count} units"
            note = time_mismatch(inputs, 0, times.max() + bin_width)
            return Content(arrays, None, "s", "; ".join(filter(None, [about, note])))
        parts = [read_series(file[x]) for x in y_names]
        rate = _rate(file[y_names[0]])
    if any(not np.array_equal(x.times, parts[0].times, equal_nan=True) for x in parts):
        raise ValueError(f"{listing(y_names)} have different times: choose one of them")
    return content_of_series(parts, f"timestamps of {y_names[0]}", rate, inputs, about)


def choose_series(
    everything: list[str], has_units: bool, names: Names
) -> tuple[list[str], list[str]]:
    """The names of what is y and of what is u, as `names` say or as is usual."""
    observed = [x for x in everything if not x.startswith("stimulus")]
    candidates = [UNITS] * has_units + observed
    usual = [x for x in observed if x.startswith(RECORDED)] or observed
    y_names = list(names.y) or ([UNITS] if has_units else usual)
    if not names.y and len(y_names) != 1:
        options = listing(candidates) or "no series of numbers"
        raise ValueError(f"which series is y? There are {options}: choose by --names.y")
    u_names = list(names.u) or [x for x in everything if x.startswith(STIMULI)]
    for name in (*y_names, *u_names):
        if name not in (*candidates, *everything):
            options = listing(list(dict.fromkeys([*candidates, *everything])))
            raise ValueError(f"there is no series {name}; there are {options}")
    return y_names, u_names


def content_of_series(
    parts: list[Series], name_of_times: str, rate: float, inputs: list[Series], about: str
) -> Content:
    """Series with the same times side by side, in rows of equal steps, with what was given then."""
    times = parts[0].times
    places, step = rows_on_grid(name_of_times, times)
    y = spread_rows(places, np.concatenate([x.values for x in parts], axis=1), np.nan)
    if len(y) > len(times):
        about += f"; {len(y) - len(times):,} steps missing"
    # From each row to the next, so that inputs with the same times are one a step, as they stand.
    rows = np.append(places, len(y))
    if step is None and rate:
        step = 1 / rate  # of a single row
    edges = np.interp(np.arange(len(y) + 1), rows, np.append(times, times[-1] + (step or 1.0)))
    u = hold(inputs, edges) if inputs else np.zeros((len(y), 1))
    note = time_mismatch(inputs, edges[0], edges[-1])
    unit = "s" if step else ""
    return Content({"y": y, "u": u}, step, unit, "; ".join(filter(None, [about, note])))


def series_in(h5py: Any, file: Any) -> list[str]:
    """The paths of all time series of numbers, `[T]` or `[T, k]`."""
    paths: list[str] = []

    def visit(name: str, item: Any) -> None:
        if not isinstance(item, h5py.Group) or not isinstance(item.get("data"), h5py.Dataset):
            return
        data = item["data"]
        is_plain = data.dtype.kind in "fiub" and data.ndim in (1, 2) and data.shape[-1] > 0
        is_narrow = data.ndim == 1 or data.shape[1] <= WIDEST
        if is_plain and is_narrow and ("timestamps" in item or "starting_time" in item):
            paths.append(name)

    file.visititems(visit)
    return paths


def read_series(group: Any) -> Series:
    """One time series, in its own unit; an interval is 1 from its start to its end."""
    if "data" not in group:
        raise ValueError(f"{group.name} is no series: choose series alone, or units alone as y")
    data = group["data"]
    if data.size * 8 > MAX_BYTES:
        raise ValueError(f"{group.name} has shape {data.shape}: too large, cut it")
    if not data.size:
        raise ValueError(f"{group.name} has no values: choose others by --names.y, --names.u")
    values = np.asarray(data, float).reshape(len(data), -1)
    kind = group.attrs.get("neurodata_type", "")
    if (kind.decode() if isinstance(kind, bytes) else kind) == "IntervalSeries":
        values = (values > 0).astype(float)
    values = values * _factors(group, values.shape[1]) + _number(data, "offset", 0.0)
    if "timestamps" in group:
        times = np.asarray(group["timestamps"], float)
        if times.shape != (len(values),):
            raise ValueError(
                f"{group.name} has {times.size} timestamps for {len(values)} rows: expected one "
                "for each"
            )
        return Series(times, values)
    rate, first = _rate(group), float(group["starting_time"][()])
    if not (rate > 0 and np.isfinite(first)):
        raise ValueError(
            f"{group.name} starts at {first:g} s with a rate of {rate:g}: expected a finite time, "
            "and the rows of a second, above 0"
        )
    return Series(first + np.arange(len(values)) / rate, values)


def _rate(group: Any) -> float:
    """The rows of a second; 0 where each row has a timestamp."""
    return 0.0 if "timestamps" in group else _number(group["starting_time"], "rate", 0.0)


def _number(data: Any, name: str, default: float) -> float:
    """A number that is an attribute. Raises ValueError for any other value."""
    value = np.asarray(data.attrs.get(name, default))
    if value.size != 1 or value.dtype.kind not in "iuf" or not np.isfinite(value).all():
        raise ValueError(f"{name} of {data.name} is {value}: expected a finite number")
    return float(value.item())


def _factors(group: Any, columns: int) -> np.ndarray:
    """What stored numbers are multiplied by to be in the unit of the series, `[1]` or `[k]`.

    Channels of an ElectricalSeries may have factors of their own beside that of the series.
    """
    factor = np.array([_number(group["data"], "conversion", 1.0)])
    if "channel_conversion" not in group:
        return factor
    each = np.asarray(group["channel_conversion"], float).reshape(-1)
    if each.size not in (1, columns):
        raise ValueError(
            f"{group.name} has {each.size} factors in channel_conversion for {columns} channels: "
            "expected one for each"
        )
    return factor * each


def spikes_of(units: Any) -> tuple[np.ndarray, np.ndarray, int]:
    """Times, unit of each, and how many units there are: a ragged column, ended by its index."""
    if "spike_times_index" not in units:
        raise ValueError("its units have no spike_times_index, which says whose each time is")
    times = np.asarray(units["spike_times"], float)
    ends = np.asarray(units["spike_times_index"], int)
    counts = np.diff(ends, prepend=0)
    if (counts < 0).any() or (ends[-1] if len(ends) else 0) != len(times):
        raise ValueError("spike_times_index of its units does not fit spike_times")
    return times, np.repeat(np.arange(len(ends)), counts), len(ends)
