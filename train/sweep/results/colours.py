"""The colours of configurations in pictures of a sweep, and what legends call them."""

from collections.abc import Sequence

from train.sweep.results.labels import label
from train.sweep.results.summary import Configuration

# Of Okabe & Ito (2008), safe for the colour-blind, the best configuration first.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
DEFAULT = "#000000"
PALE = "#b5b5b5"


def colours_of(configurations: Sequence[Configuration], most: int = len(COLOURS)) -> dict[int, str]:
    """The colours of the best configurations and of the default, by index."""
    scored = [x for x in configurations if x.rank is not None]
    best = [x.index for x in scored if not x.is_default][:most]
    default = {x.index: DEFAULT for x in scored if x.is_default}
    return dict(zip(best, COLOURS, strict=False)) | default


def legend_label(configuration: Configuration, names: dict[str, str]) -> str:
    """A legend entry: what was varied, and the score."""
    text = label(configuration.index, configuration.values, names)
    if not configuration.is_default:
        return text
    has_names = any(name in names for name in configuration.values) and not text.startswith("#")
    return f"default: {text}" if has_names else "default"
