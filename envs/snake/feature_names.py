"""Names of the numbers in the observations of `envs.snake.observations` that are lists of them."""

WAYS = ("forward", "left", "right")
SIDES = ("up", "right", "down", "left")


def place_names(what: str, places: tuple[str, ...]) -> list[str]:
    return [f"{what} {place}" for place in places]


def sign_names(what: str) -> list[str]:
    return place_names(what, ("ahead", "behind", "to the right", "to the left"))


FEATURES = [
    *place_names("danger", WAYS),
    *place_names("food", SIDES),
    *place_names("heading", SIDES[:3]),
]
FLOOD = [*FEATURES, *place_names("reach", WAYS)]
SELECTIVE = [*FLOOD, *place_names("tail", SIDES), "tail reachable"]
ENHANCED = [
    *FLOOD,
    *place_names("escapes", WAYS),
    *SELECTIVE[13:],
    "distance of the tail",
    "length",
]
TAIL = [
    *place_names("danger", WAYS),
    *place_names("reach", WAYS),
    *place_names("tail by", WAYS),
    *place_names("food by", WAYS),
    "food, cells ahead",
    "food, cells right",
    "tail, cells ahead",
    "tail, cells right",
    *sign_names("food"),
    *sign_names("tail"),
    *place_names("wall", WAYS),
    "length",
]
COMPASS = [
    *place_names("heading", SIDES),
    *place_names("danger", SIDES),
    *place_names("food", ("up", "right", "down", "left")),
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
    "far": [*TAIL, "hunger"],
    "gaps": [*TAIL, "hunger"],
    "compass": COMPASS,
}
"""By the name of the observation; those that are images of the board have none."""
