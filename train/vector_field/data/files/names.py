"""What files call things, where they do not say it as expected."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Names:
    """Variables of MATLAB and npz files, columns of CSV files, and series of NWB files."""

    y: tuple[str, ...] = ()
    """What was observed; several are put side by side. Empty: y, spike_times, or the only array
    that it can be."""
    u: tuple[str, ...] = ()
    """The inputs; empty: u, input, stim and the like, and none if there are no such names."""
    time: str = ""
    """The time of each row, or of each spike; empty: time, t, timestamps and the like."""
    units: str = ""
    """Of a CSV file of spikes, the unit of each; empty: unit, neuron, cluster and the like."""
    trials: str = ""
    """Of a CSV file, the trial of each row; empty: trial, episode and the like."""
