"""What a page asks of a game, and what it is told. Messages are JSON objects.

| the page says | the game |
|---|---|
| `{"do": "step"}` | makes a step; `"direction"`, 0 to 3, is that of an arrow key, by hand |
| `{"do": "new"}` | begins anew; `"seed"` may say how, and `"players"`, two names, who meets |
| `{"do": "edit", "name": ..., "value": ...}` | is changed, by one of `live.Live.edits` |

The answer holds what `live.Game.moment_data` returns, or `"error"`, a line, where nothing happened.
"""

import base64
import json
from typing import Any

import numpy as np

from train.host.showing.live_game import Game, InvalidRequest

LONGEST = 2_000
"""Characters of a message."""
LONGEST_ERROR = 200
FIELDS = {"step": {"direction"}, "new": {"seed", "players"}, "edit": {"name", "value"}}
"""What may stand in a message beside `do`."""


def answer(game: Game, text: str | bytes) -> str:
    """Does what a message asks, or nothing where it is no good; returns the answer."""
    try:
        obey(game, parse(text))
    except InvalidRequest as error:
        return json.dumps({"error": str(error)[:LONGEST_ERROR]})
    return describe(game)


def describe(game: Game) -> str:
    """What is to be seen of a game."""
    return json.dumps(pack(game.moment_data()))


def parse(text: str | bytes) -> dict[str, Any]:
    """A message. Raises InvalidRequest for what is none."""
    if not isinstance(text, str) or len(text) > LONGEST:
        raise InvalidRequest(f"expected a text of at most {LONGEST} characters")
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidRequest("expected JSON") from None
    do = message.get("do") if isinstance(message, dict) else None
    if not isinstance(do, str) or do not in FIELDS:
        raise InvalidRequest(f"expected an object whose `do` is one of {', '.join(FIELDS)}")
    if unknown := set(message) - {"do"} - FIELDS[message["do"]]:
        raise InvalidRequest(f"{message['do']} has no field {min(unknown)[:40]!r}")
    return message


def obey(game: Game, message: dict[str, Any]) -> None:
    """Does what a message asks. Raises InvalidRequest for what cannot be."""
    match message["do"]:
        case "step":
            direction = message.get("direction")
            if direction is not None and type(direction) is not int:
                raise InvalidRequest(f"direction is {direction!r}; expected 0 to 3")
            game.step(direction)
        case "new":
            seed = message.get("seed", game.seed + 1)
            if type(seed) is not int or not 0 <= seed < 2**31:
                raise InvalidRequest(f"seed is {seed!r}; expected 0 to 2**31 - 1")
            players = message.get("players")
            if players is not None and not _is_pair(players):
                raise InvalidRequest("players are two names")
            game.new(seed, None if players is None else (players[0], players[1]))
        case "edit":
            if not isinstance(message.get("name"), str):
                raise InvalidRequest("an edit needs a name")
            game.edit(message["name"], message.get("value"))


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(isinstance(x, str) for x in value)


def pack(value: Any) -> Any:
    """Plain data, with arrays as `{"type", "shape", "data"}`, the last in base 64; NaN is null."""
    if isinstance(value, dict):
        return {name: pack(x) for name, x in value.items()}
    if isinstance(value, list | tuple):
        return [pack(x) for x in value]
    if hasattr(value, "dtype") and np.ndim(value):
        array = np.ascontiguousarray(value)
        kind = "uint8" if array.dtype in (np.uint8, bool) else "int32"
        kind = "float32" if np.issubdtype(array.dtype, np.floating) else kind
        data = base64.b64encode(array.astype(kind).tobytes()).decode()
        return {"type": kind, "shape": list(array.shape), "data": data}
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not np.isfinite(value) else value
