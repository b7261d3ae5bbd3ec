"""What a policy makes of each action, as bars beside an episode."""

from typing import Any

import numpy as np
from gymnax.environments import spaces

from envs.spaces import Composite, child, children
from train.gymnax.actions import num_choices
from train.host.showing import episodes
from train.host.showing.episodes import Bars, Recording


def bars(game: Recording, space: Any) -> dict[str, Bars]:
    """Bars by title; for a Tuple or Dict those of each part, whose title begins with its name."""
    if not isinstance(space, Composite):
        return bars_of_part(game, space)
    by_title = {}
    for i, (name, part) in enumerate(children(space).items()):
        if isinstance(part, Composite):
            continue
        # numbered as `distributions.Joint` does
        explained = {x: game.explained.get(f"{x}_{i}", y) for x, y in game.explained.items()}
        alone = game._replace(action=child(game.action, name), explained=explained)
        by_title |= {f"{name}: {title}": x for title, x in bars_of_part(alone, part).items()}
    return by_title


def bars_of_part(game: Recording, space: Any) -> dict[str, Bars]:
    """Bars of one number of a Discrete, of one vector of a Box, or of several choices."""
    explained = game.explained
    if (choices := num_choices(space)) is not None:
        p, action = explained["node_probabilities"], np.asarray(game.action)
        return {
            f"choice {k}: probability": Bars(
                episodes.with_last(p[:, k, :count]),
                [f"action {x}" for x in range(count)],
                np.append(action[:, k], -1),
            )
            for k, count in enumerate(choices)
        }
    is_discrete = isinstance(space, spaces.Discrete)
    kinds = ("probabilities", "q") if is_discrete else ("mean",)
    count = space.n if isinstance(space, spaces.Discrete) else int(np.prod(space.shape))
    only = game._replace(explained={x: y for x, y in explained.items() if x in kinds})
    return episodes.bars(only, [f"action {k}" for k in range(count)])
