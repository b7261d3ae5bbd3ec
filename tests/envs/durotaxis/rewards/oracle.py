"""Rewards of a growing colony, slowly and obviously: lists of nodes, loops, double precision.

Written from the description of the rewards alone; shares no code with `envs.durotaxis`.
"""

import math
from dataclasses import dataclass, field

import numpy as np
from scipy.spatial import ConvexHull


def table(text: str) -> dict[str, float]:
    """Names and numbers, one after the other."""
    words = text.split()
    return {name: float(number) for name, number in zip(words[::2], words[1::2], strict=True)}


SHAPING = "shaping_delete 0 shaping_centroid 0 shaping_spawn 0 shaping_discount 0.99 "
SIGNS = "termination 1 crowded -1 empty -1 retreated -1 arrived 1 "
PRICES = "termination 1 crowded -15 empty -100 retreated -50 arrived 500 "
DEFAULTS = {
    "normal": table(
        SHAPING
        + PRICES
        + """
        connectivity -5 growth -3 company 0.1 action_count 0.01 centroid 5
        spawn 1 spawn_success 2.5 spawn_failure -1
        boundary 1 boundary_near -3 boundary_danger -8
        delete 1 delete_marked 2 delete_missed -2 delete_unmarked -2
        efficiency 1 efficiency_age 0.05 efficiency_stagnation 0.1
        edge 1 edge_rightward 0.5 edge_leftward -0.05
        intensity 0.3 hull 0.1 left_edge -0.2 centre 0.05
        zones 1 zones_near -0.5 zones_danger -2 zones_critical -5
        above_average 1 above_average_below -0.3 above_average_above 1.5
        survival 1 survival_step 0.01 survival_late 0.02
        milestone 1 milestone_25 50 milestone_50 150 milestone_75 300 milestone_90 500
        """
    ),
    "distance": table(
        SHAPING + PRICES + "distance 5 step 0 termination_scale 0.02 termination_bound 10"
    ),
    "combined": table(
        SHAPING
        + PRICES
        + """
        distance 5 growth -3 delete 1 delete_marked 2 delete_missed -2 delete_unmarked -2
        spawn 0 spawn_success 2.5 spawn_failure -1
        boundary 0 boundary_near -3 boundary_danger -8
        termination_scale 0.02 termination_bound 10
        """
    ),
    "three_part": table(SHAPING + SIGNS + "delete 1 distance 1")
    | {"distance_scale": 0.05 / 1.4722},
    "state_machine": table(SHAPING + SIGNS)
    | table(
        """
        growth 0.5 unmarked -0.5 marking 0.5 deletion 0.5 deadline -0.5 bound 1
        distance 0.2 termination 0.1
        """
    ),
}


@dataclass(eq=False)
class Node:
    """A cell; `mark` is None, "delete" or "keep"."""

    x: float
    y: float
    parent: "Node | None"
    birth: int
    mark: str | None = None
    marked_at: int = 0
    unmarked_for: int = 0


@dataclass
class Ground:
    exponential: bool
    slope: float
    base: float
    width: float

    def __call__(self, node: Node) -> float:
        column = min(max(int(node.x), 0), int(self.width) - 1)
        if self.exponential:
            return self.base * math.exp(self.slope * column)
        return self.slope * column + self.base


@dataclass
class Happening:
    """A step: the nodes before, those that go, and where the others' children land."""

    nodes: list[Node]
    gone: list[Node]
    births: dict[Node, tuple[float, float]]
    ground: Ground
    height: float
    time: int
    critical: float
    delay: int
    delta: float
    max_steps: int
    milestones: list[bool]
    ending: str | None
    marking_began: bool = False
    after: list[Node] = field(default_factory=list)

    def __post_init__(self):
        def kept_ancestor(node):
            while node is not None and node in self.gone:
                node = node.parent
            return node

        kept_nodes = [node for node in self.nodes if node not in self.gone]
        twins = {node: Node(**vars(node)) for node in kept_nodes}
        for node in kept_nodes:
            ancestor = kept_ancestor(node.parent)
            twins[node].parent = twins[ancestor] if ancestor else None
        self.after = [twins[node] for node in kept_nodes]
        self.after += [Node(*self.births[node], twins[node], self.time + 1) for node in kept_nodes]

    @property
    def children(self) -> list[Node]:
        return self.after[len(self.after) // 2 :]


def mean(values):
    values = list(values)
    return math.fsum(values) / len(values) if values else 0.0


def is_poorer(intensity: float, level: float) -> bool:
    """Below a level by more than a hundred-thousandth of it: equal, up to rounding, is not."""
    return intensity < level - 1e-5 * abs(level)


def deletion_rule(nodes, ground, time, critical, delay) -> list[Node]:
    if len(nodes) <= critical:
        return []
    level = mean(map(ground, nodes))
    old = [node for node in nodes if node.birth <= time - delay - 1]
    poor = [node for node in old if is_poorer(ground(node), level)]
    poor.sort(key=lambda node: -node.x)  # stable: the first of equals stays first
    return poor[: max(1, min(int(3 * (len(nodes) - critical) // 20), len(poor)))]


def mark_nodes(nodes, ground, time, critical) -> None:
    """Mark the nodes of a colony, where it is too large."""
    if len(nodes) <= critical:
        return
    level = mean(map(ground, nodes))
    for node in nodes:
        height = ground(node) - level
        slack = 1e-5 * abs(level)
        if height < -0.05 - slack:
            new_mark = "delete"
        elif height > 0.05 + slack:
            new_mark = "keep"
        elif len(nodes) > critical + 10 or node.unmarked_for >= 10:
            new_mark = "delete" if height < -slack else "keep"
        else:
            new_mark = None
        if (node.mark is None and new_mark) or (node.mark == "keep" and new_mark == "delete"):
            node.mark, node.marked_at = new_mark, time
        if node.mark is None:
            node.unmarked_for += 1


def centroid(nodes):
    return mean(node.x for node in nodes)


def advance(h: Happening) -> float:
    return centroid(h.after) - centroid(h.nodes) if h.nodes and h.after else 0.0


def num_corners(nodes) -> int:
    """Vertices of the convex hull that stick out of it by more than 0.001 px."""
    if len(nodes) < 3:
        return len(nodes)
    points = np.array([(node.x, node.y) for node in nodes])
    corners = points[ConvexHull(points).vertices]
    before, after = np.roll(corners, 1, axis=0), np.roll(corners, -1, axis=0)
    (dx, dy), (ex, ey) = (after - before).T, (corners - before).T
    return int(np.sum(np.abs(dx * ey - dy * ex) > 1e-3 * np.hypot(dx, dy)))


def wall_price(h, node, prices):
    """The price of the narrowest strip along the wall that holds the node."""
    d = min(node.y / h.height, (h.height - node.y) / h.height)
    return next((price for limit, price in prices if d < limit), 0.0)


def shaping(h: Happening, w: dict) -> dict[str, float]:
    def phi_delete(nodes, time):
        marked = len(deletion_rule(nodes, h.ground, time, h.critical, h.delay))
        return -1.0 * marked + 0.25 * (len(nodes) - marked)

    def phi_centroid(nodes, time):
        return -1.0 * (h.ground.width - 1 - centroid(nodes)) if nodes else 0.0

    def phi_spawn(nodes, time):
        return 1.0 * sum(h.ground(node) >= h.delta for node in nodes)

    potentials = {"delete": phi_delete, "centroid": phi_centroid, "spawn": phi_spawn}
    values = {}
    for name, phi in potentials.items():
        potential_after = 0.0 if h.ending else phi(h.after, h.time + 1)
        change = w["shaping_discount"] * potential_after - phi(h.nodes, h.time)
        values[f"shaping_{name}"] = w[f"shaping_{name}"] * change
    return values


def normal_components(h: Happening, w: dict) -> dict[str, float]:
    # The number of nodes, and the way of the centroid.
    number, t = len(h.after), h.time + 1
    value: dict[str, float] = {"connectivity": 0.0, "growth": 0.0, "company": 0.0}
    if number < 2:
        value["connectivity"] = w["connectivity"]
    elif number > h.critical:
        value["growth"] = w["growth"] * (1 + (number - h.critical) / h.critical)
    else:
        value["company"] = w["company"]
    value["action_count"] = w["action_count"] * len(h.nodes)
    value["centroid"] = w["centroid"] * advance(h)

    # Children: their ground, and the walls they are near.
    gains = [h.ground(child) - h.ground(child.parent) for child in h.children if child.parent]
    value["spawn"] = w["spawn"] * sum(
        w["spawn_success"] if gain >= h.delta else w["spawn_failure"] for gain in gains
    )
    strips = [(0.08, w["boundary_danger"]), (0.15, w["boundary_near"])]
    value["boundary"] = w["boundary"] * sum(wall_price(h, c, strips) for c in h.children)

    # Deletions, by the rule and by age.
    marked = deletion_rule(h.nodes, h.ground, h.time, h.critical, h.delay)
    value["delete"] = 0.0
    for node in h.nodes:
        if node in marked:
            price = w["delete_marked"] if node in h.gone else w["delete_missed"]
        else:
            price = w["delete_unmarked"] if node in h.gone else 0.0
        value["delete"] += w["delete"] * price
    value["efficiency"] = 0.0
    for node in h.gone:
        age = t - node.birth  # how many states it was in: those of times birth, ..., t - 1
        price = w["efficiency_age"] * max(0, age - 50)
        price += w["efficiency_stagnation"] * max(0, age - 1 - 20)
        value["efficiency"] += w["efficiency"] * price

    # Edges and places after the step.
    value["edge"] = 0.0
    for node in h.after:
        if node.parent:
            dx = node.x - node.parent.x
            price = w["edge_rightward"] if dx > 0.01 else w["edge_leftward"] if dx < -0.01 else 0
            value["edge"] += w["edge"] * price
    value["intensity"] = w["intensity"] * sum(min(h.ground(node), 1e6) for node in h.after)
    value["hull"] = w["hull"] * num_corners(h.after)
    value["left_edge"] = w["left_edge"] * sum(n.x < 0.1 * h.ground.width for n in h.after)
    strips = [(0.03, w["zones_critical"]), (0.08, w["zones_danger"]), (0.15, w["zones_near"])]
    value["zones"] = w["zones"] * sum(wall_price(h, node, strips) for node in h.after)
    middle = h.height / 2
    value["centre"] = w["centre"] * sum(abs(n.y - middle) / middle < 0.30 for n in h.after)

    # Survivors against the mean, time, milestones and the ending.
    level = mean(map(h.ground, h.after))
    value["above_average"] = 0.0
    for node in h.after:
        if node.birth <= t - h.delay - 1:
            side = "below" if is_poorer(h.ground(node), level) else "above"
            value["above_average"] += w["above_average"] * w[f"above_average_{side}"]
    step = w["survival_step"] + (w["survival_late"] if t >= 100 else 0.0)
    value["survival"] = w["survival"] * step * (1 + min(1, t / (0.8 * h.max_steps)))
    value["milestone"] = 0.0
    for percent, was_reached in zip((25, 50, 75, 90), h.milestones, strict=True):
        reached = any(node.x / h.ground.width >= percent / 100 for node in h.after)
        if reached and not was_reached:
            value["milestone"] += w["milestone"] * w[f"milestone_{percent}"]
    value["termination"] = w["termination"] * (w[h.ending] if h.ending else 0.0)
    return value


def distance_components(h: Happening, w: dict) -> dict[str, float]:
    raw = w[h.ending] if h.ending else 0.0
    bound = w["termination_bound"]
    return {
        "distance": w["distance"] * advance(h) / (h.ground.width - 1),
        "step": w["step"],
        "termination": w["termination"] * min(max(w["termination_scale"] * raw, -bound), bound),
    }


def combined_components(h: Happening, w: dict) -> dict[str, float]:
    """Some of the parts of the full set; deletions are never rewarded."""
    parts = normal_components(h, DEFAULTS["normal"] | w | {"delete": 1.0})
    value = {name: parts[name] for name in ("growth", "spawn", "boundary")}
    value["delete"] = w["delete"] * min(parts["delete"], 0.0)
    step = distance_components(h, {"step": 0.0} | w)
    return value | {name: step[name] for name in ("distance", "termination")}


def three_part_components(h: Happening, w: dict) -> dict[str, float]:
    marked = deletion_rule(h.nodes, h.ground, h.time, h.critical, h.delay)
    score = [1.0 if (node in marked) == (node in h.gone) else -1.0 for node in h.nodes]
    return {
        "delete": w["delete"] * mean(score),
        "distance": w["distance"] * math.tanh(advance(h) / w["distance_scale"]),
        "termination": w["termination"] * (w[h.ending] if h.ending else 0.0),
    }


def state_machine_components(h: Happening, w: dict) -> dict[str, float]:
    number = len(h.nodes)
    bell = math.exp(-((number - h.critical) ** 2) / 800)
    unmarked = sum(node.mark is None for node in h.nodes)
    window = max(1, round(0.3 * h.delay))
    deletion, missed = 0.0, 0
    for node in h.nodes:
        lateness = h.time - (node.marked_at + h.delay)
        if node not in h.gone:
            missed += node.mark == "delete" and lateness == window
        elif node.mark == "delete" and abs(lateness) <= window:
            deletion += math.exp(-(lateness**2) / (2 * (window / 1.5) ** 2))
        else:
            deletion -= 1.0
    judged = {
        "growth": w["growth"] * (bell if number <= h.critical else -bell),
        "unmarked": w["unmarked"] * unmarked / h.critical,
        "marking": w["marking"] * (number - unmarked) / max(number, 1) * h.marking_began,
        "deletion": w["deletion"] * min(max(deletion, -2), 2),
        "deadline": w["deadline"] * min(missed, 1),
    }
    whole = sum(judged.values())
    clipped = min(max(whole, -w["bound"]), w["bound"])
    judged = {name: part * clipped / whole if whole else 0.0 for name, part in judged.items()}
    value = 0.0
    if h.nodes and h.after:
        level, old_level = mean(map(h.ground, h.after)), mean(map(h.ground, h.nodes))
        gain = level - old_level
        if abs(gain) <= 1e-5 * max(abs(level), abs(old_level)):
            gain = 0.0  # as little as single precision can tell apart
        remaining = h.ground.width - 1 - centroid(h.after)
        value = math.tanh((gain - 5) / 12.5) + 0.3 * math.exp(-0.001 * remaining**2)
    ending = w["termination"] * (w[h.ending] if h.ending else 0.0)
    return {**judged, "distance": w["distance"] * value, "termination": ending}


SETS = {
    "normal": normal_components,
    "distance": distance_components,
    "combined": combined_components,
    "three_part": three_part_components,
    "state_machine": state_machine_components,
}


def components(name: str, h: Happening, w: dict) -> dict[str, float]:
    return {**SETS[name](h, w), **shaping(h, w)}
