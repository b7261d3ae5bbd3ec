"""Names of the numbers in the observations of `envs.snake.observations` that are lists of them."""

WAYS = ("forward", "left", "right")
SIDES = ("up", "right", "down", "left")


def _of(what: str, places: tuple[str, ...]) -> list[str]:
    return [f"{what} {place}" for place in places]


def _signs(what: str) -> list[str]:
    return _of(what, ("ahead", "behind", "to the right", "to the left"))


FEATURES = [*_of("danger", WAYS), *_of("food", SIDES), *_of("heading", SIDES[:3])]
FLOOD = [*FEATURES, *_of("reach", WAYS)]
SELECTIVE = [*FLOOD, *_of("tail", SIDES), "tail reachable"]
ENHANCED = [*FLOOD, *_of("escapes", WAYS), *SELECTIVE[13:], "distance of the tail", "length"]
TAIL = [
    *_of("danger", WAYS),
    *_of("reach", WAYS),
    *_of("tail by", WAYS),
    *_of("food by", WAYS),
    "food, cells ahead",
    "food, cells right",
    "tail, cells ahead",
    "tail, cells right",
    *_signs("food"),
    *_signs("tail"),
    *_of("wall", WAYS),
    "length",
]
COMPASS = [
    *_of("heading", SIDES),
    *_of("danger", SIDES),
    *_of("food", ("up", "right", "down", "left")),
    "food, cells right",
    "food, cells down",
    "length",
    *(f"{part}, {axis}" for part in ("head", "tail") for axis in ("column", "row")),
]
NAMES = {
    "features": FEATURES,
    "flood": FLOOD,
    "selective": SELECTIVE,
    "enhanced": ENHANCED,
    "tail": TAIL,
    "near": [*TAIL, "hunger"],  # the cells around the head follow
    "compass": COMPASS,
}
"""By the name of the observation; those that are images of the board have none."""
