"""Names of the numbers in the observation `features` of `envs.two_snake.observations`."""

from envs.snake.feature_names import SIDES, WAYS

FEATURES = [
    *(f"danger {way}" for way in WAYS),
    "food, columns right",
    "food, rows down",
    "other alive",
    "tail reachable",
    *(f"heading {side}" for side in SIDES[:3]),
    *(f"reach {way}" for way in WAYS),
    *(f"other blocks {way}" for way in WAYS),
    *(f"other {side}" for side in SIDES),
    *(f"other heading {side}" for side in SIDES[:3]),
    "length of the other",
    "distance of the heads",
    "threat",
    "food reachable",
    "lead in length",
    "lead in food",
    "nearer to the food",
    "share of the board",
    "hunger",
    "food eaten",
]
