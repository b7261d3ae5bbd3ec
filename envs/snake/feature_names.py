"""Names of the numbers in the observations of `envs.snake.observations` that are lists of them."""

WAYS = ("forward", "left", "right")
SIDES = ("up", "right", "down", "left")


def _place_names(what: str, places: tuple[str, ...]) -> list[str]:
    return [f"{what} {place}" for place in places]


def _signs(what: str) -> list[str]:
    return _place_names(what, ("ahead", "behind", "to the right", "to the left"))


FEATURES = [
    *_place_names("danger", WAYS),
    *_place_names("food", SIDES),
    *_place_names("heading", SIDES[:3]),
]
FLOOD = [*FEATURES, *_place_names("reach", WAYS)]
SELECTIVE = [*FLOOD, *_place_names("tail", SIDES), "tail reachable"]
ENHANCED = [
    *FLOOD,
    *_place_names("escapes", WAYS),
    *SELECTIVE[13:],
    "distance of the tail",
    "length",
]
TAIL = [
    *_place_names("danger", WAYS),
    *_place_names("reach", WAYS),
    *_place_names("tail by", WAYS),
    *_place_names("food by", WAYS),
    "food, cells ahead",
    "food, cells right",
    "tail, cells ahead",
    "tail, cells right",
    *_signs("food"),
    *_signs("tail"),
    *_place_names("wall", WAYS),
    "length",
]
COMPASS = [
    *_place_names("heading", SIDES),
    *_place_names("danger", SIDES),
    *_place_names("food", ("up", "right", "down", "left")),
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
