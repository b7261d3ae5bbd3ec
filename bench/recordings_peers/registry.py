"""Other groups' methods for recordings: which there are, and how one is imported when asked for.

    pip install dynamax==1.0.3 PSID==1.2.6 pysindy==2.1.0

They are no requirement of anything else. Each has a module with `fit(problem) -> Fitted`; whatever
a method leaves open is chosen by forecasts of the last fifth of the training data.
"""

import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

from bench.recordings_peers.problem import Fitted, Problem


class Peer(NamedTuple):
    module: str
    package: str  # on PyPI
    version: str  # measured with


PEERS = {
    "dynamax_em": Peer("dynamax_em", "dynamax", "1.0.3"),
    "dynamax_field": Peer("dynamax_field", "dynamax", "1.0.3"),
    "ipsid": Peer("ipsid", "PSID", "1.2.6"),
    "sindy": Peer("sindy", "pysindy", "2.1.0"),
}
"""By the name of their rows."""


def fit_function(name: str) -> Callable[[Problem], Fitted]:
    """The function that fits this peer. Raises ValueError where its package is missing."""
    peer = PEERS[name]
    try:
        importlib.import_module(peer.package)
    except ImportError as error:
        raise ValueError(
            f"{name} needs the package {peer.package} ({error}): "
            f"pip install {peer.package}=={peer.version}"
        ) from None
    module: Any = importlib.import_module(f"bench.recordings_peers.{peer.module}")
    return module.fit
