"""Names of the numbers in the observations of `envs.two_snake.observations` that are lists."""

from envs.snake.feature_names import SIDES, WAYS, place_names, sign_names

COMPARISON = [
    "food reachable",
    "lead in length",
    "lead in food",
    "nearer to the food",
    "share of the board",
    "hunger",
    "food eaten",
]
FEATURES = [
    *place_names("danger", WAYS),
    "food, columns right",
    "food, rows down",
    "other alive",
    "tail reachable",
    *place_names("heading", SIDES[:3]),
    *place_names("reach", WAYS),
    *place_names("other blocks", WAYS),
    *place_names("other", SIDES),
    *place_names("other heading", SIDES[:3]),
    "length of the other",
    "distance of the heads",
    "threat",
    *COMPARISON,
]
NEAR = [
    *place_names("danger", WAYS),
    *place_names("reach", WAYS),
    *place_names("other blocks", WAYS),
    "other, cells ahead",
    "other, cells right",
    *sign_names("other"),
    *(f"other heading {way}" for way in ("the same way", "back", "right", "left")),
    "length of the other",
    "distance of the heads",
    "threat",
    "food, cells ahead",
    "food, cells right",
    *sign_names("food"),
    "tail, cells ahead",
    "tail, cells right",
    *place_names("wall", WAYS),
    "other alive",
    "tail reachable",
    "length",
    *COMPARISON,
]
NAMES = {"features": FEATURES, "near": NEAR}  # in `near` the cells around the head follow
