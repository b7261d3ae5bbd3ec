"""Pictures of a colony on its ground: one position, and a film of a whole episode."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
from PIL import Image, ImageDraw

from envs import gif
from envs.durotaxis.pictures import scenery, symbols
from envs.durotaxis.pictures.scenery import (
    FRAME,
    GAP,
    LEVELS,
    STRIP,
    Scene,
    View,
    make_scene,
    viridis,
)
from envs.durotaxis.pictures.symbols import INK, NEW, SCALE, STAR, WHITE
from envs.durotaxis.placement import Placement
from envs.durotaxis.rules import Colony
from envs.durotaxis.units import PIXELS, Units

GIF_COLOURS = 250
HOLD = 2.0  # seconds that a film shows its last position
LEAST_REACH = 60.0  # px that a close-up shows across
AROUND = 14  # pixels that a drawn colony may extend beyond the centres of its nodes
TRAIL = 2.0  # radius of the dots that mark where the centroid was, pixels

Patch = tuple[Image.Image, tuple[int, int]]  # a part of a picture, and its top left corner


def draw(
    stiffness: np.ndarray,
    colony: Colony,
    deleted: np.ndarray | None = None,
    step: int = 0,
    ending: str = "",
    placement: Placement | None = None,
    units: Units = PIXELS,
) -> Image.Image:
    """One position: the colony `[C]` after `step` steps; `deleted`, bool `[C]`, are deleted next.

    `stiffness` `[H, W]` is that of `scenery.ground`, in `units`; `ending` is the word for how it
    ended. Places are those of the picture, see `envs.durotaxis.placement`; the argument `placement`
    says where the goal is.
    """
    colonies = jax.tree.map(lambda x: np.asarray(x)[None], colony)
    scene = make_scene(stiffness, reach_of(colonies), placement, units)
    picture = scene.image.copy()
    is_deleted = np.zeros(len(colony.x), bool) if deleted is None else np.asarray(deleted)
    for patch, corner in patches(scene, colony, is_deleted, step, ending):
        picture.paste(patch, corner)
    return picture


def film(
    stiffness: np.ndarray,
    colonies: Colony,
    deleted: np.ndarray,
    path: str | Path,
    fps: float = 8.0,
    ending: str = "",
    placement: Placement | None = None,
    units: Units = PIXELS,
) -> None:
    """Writes the GIF of an episode of S steps: `colonies` `[S + 1, C]`, `deleted` `[S + 1, C]`.

    For the other arguments see `draw`.

    Raises ValueError for no position, and for a frame rate that viewers do not play.
    """
    count = len(colonies.num_nodes)
    if count == 0:
        raise ValueError("there are no positions to draw; give at least one")
    gif.check_fps(fps)
    scene = make_scene(stiffness, reach_of(colonies), placement, units)
    colony_at = lambda i: jax.tree.map(lambda x: np.asarray(x)[i], colonies)
    ending_at = lambda i: ending if i == count - 1 else ""
    samples = [patches(scene, colony_at(i), deleted[i], i, ending_at(i)) for i in _spread(count, 8)]
    colours = _palette([patch for sample in samples for patch, _ in sample])
    quantize = gif.quantizer(colours)
    background = scene._replace(image=scene.image.copy())
    empty_frame = quantize(background.image)

    def frames() -> Iterator[tuple[np.ndarray, float]]:
        for i in range(count):
            colony, picture = colony_at(i), empty_frame.copy()
            for patch, corner in patches(background, colony, deleted[i], i, ending_at(i)):
                picture.paste(quantize(patch), corner)
            yield np.asarray(picture), 1 / fps if i < count - 1 else HOLD
            for patch, corner in _trail(background, colony):  # visible from the next position on
                background.image.paste(patch, corner)
                empty_frame.paste(quantize(patch), corner)

    gif.write(path, frames(), colours)


def reach_of(colonies: Colony, share: float = 0.8) -> float:
    """The side of a close-up, px, in which `share` of the colonies `[S, C]` fit.

    Not all of them: the founders lie far apart, and would make the rest of an episode small.
    """
    alive = np.arange(np.shape(colonies.x)[1]) < np.asarray(colonies.num_nodes)[:, None]
    if not alive.any():
        return LEAST_REACH
    sides = [
        (np.where(alive, v, -np.inf).max(1) - np.where(alive, v, np.inf).min(1))[alive.any(1)]
        for v in (colonies.x, colonies.y)
    ]
    return max(LEAST_REACH, 1.4 * float(np.quantile(np.max(sides, 0), share)))


def patches(
    scene: Scene, colony: Colony, deleted: np.ndarray, step: int, ending: str
) -> list[Patch]:
    """The parts of a scene that one position changes: caption, colony, close-up."""
    count = int(colony.num_nodes)
    caption = scene.image.crop((0, 0, scene.image.width, STRIP))
    _write_caption(caption, scene, colony, step, ending)
    points = _points(colony)
    middle = points.mean(0) if count else np.array(scene.ground.size) / 2
    view = scene.close_up(*middle)
    corner = view.box[:2]
    is_new = (np.asarray(colony.birth)[:count] == step) & (step > 0)
    looks = np.asarray(colony.parent)[:count], is_new, np.asarray(deleted)[:count]
    radius = float(np.clip(30 / np.sqrt(max(count, 1)), 5, 9))
    close_up = _magnify_ground(scene, view)
    view = view._replace(box=(0, 0, *close_up.size))
    scenery.draw_goal(close_up, view, scene.goal)
    parts = [(caption, (0, 0)), (close_up, corner)]
    if count:
        patch, patch_corner = _draw_patch(close_up, view.place(points), *looks, radius, True)
        close_up.paste(patch, patch_corner)
        parts.append(
            _draw_patch(scene.image, scene.whole.place(points), *looks, 0.4 * radius, False)
        )
    return parts


def _draw_patch(image: Image.Image, points: np.ndarray, *looks: Any) -> Patch:
    """The part of an image that holds a colony, with the colony in it; see `draw_colony`."""
    patch, corner = _around(image, points)
    large, pen = symbols.enlarge(patch)
    symbols.draw_colony(pen, points - corner, *looks)
    return symbols.shrink(large), corner


def _points(colony: Colony) -> np.ndarray:
    """The nodes, float64 `[N, 2]` px."""
    return np.stack([colony.x, colony.y], -1)[: int(colony.num_nodes)].astype(np.float64)


def _write_caption(
    picture: Image.Image, scene: Scene, colony: Colony, step: int, ending: str
) -> None:
    """Step, nodes and how far the centroid has come; to the right how the episode ended."""
    pen, font, count = ImageDraw.Draw(picture), symbols.font(21), int(colony.num_nodes)
    words = [f"step {step}", f"{count} node{'s' * (count != 1)}"]
    unit, name = scene.units.length, scene.units.length_name.replace("µ", "u")  # not in the font
    if count:
        distance = scene.placement.to_ground(*_points(colony).T)[0].mean() * unit
        end = scene.placement.to_ground(*scene.goal[0])[0] * unit
        words.append(f"{'x ' * scene.placement.is_upright}{distance:.0f} of {end:g} {name}")
    pen.text((GAP, STRIP // 2), " · ".join(words), WHITE, font, anchor="lm")
    pen.text((picture.width - GAP, STRIP // 2), ending, WHITE, font, anchor="rm")
    if not ending:
        text = f"close-up, {scene.reach * unit:.0f} {name} across"
        pen.text((picture.width - GAP, STRIP // 2), text, WHITE, symbols.font(16), anchor="rm")


def _magnify_ground(scene: Scene, view: View) -> Image.Image:
    """The ground of a close-up; beyond its edges it has the colour of the frame."""
    size = view.box[2] - view.box[0], view.box[3] - view.box[1]
    inverse = (1 / view.scale, 0, view.x, 0, 1 / view.scale, view.y)
    return scene.ground.transform(
        size, Image.Transform.AFFINE, inverse, Image.Resampling.NEAREST, fillcolor=FRAME
    )


def _around(image: Image.Image, points: np.ndarray) -> Patch:
    """The part of an image that points `[P, 2]` lie in."""
    low = np.floor(np.maximum(points.min(0) - AROUND, 0)).astype(int)
    high = np.minimum(np.ceil(points.max(0) + AROUND), image.size).astype(int)
    corner = int(low[0]), int(low[1])
    return image.crop((*corner, int(high[0]), int(high[1]))), corner


def _trail(scene: Scene, colony: Colony) -> list[Patch]:
    """A dot where the centroid is."""
    if not int(colony.num_nodes):
        return []
    centre = scene.whole.place(_points(colony).mean(0))
    patch, corner = _around(scene.image, centre[None])
    large, pen = symbols.enlarge(patch)
    x, y = (centre - corner) * SCALE
    for colour, radius in ((INK, (TRAIL + 0.7) * SCALE), (STAR, TRAIL * SCALE)):
        pen.ellipse((x - radius, y - radius, x + radius, y + radius), colour)
    return [(symbols.shrink(large), corner)]


def _palette(samples: list[Image.Image]) -> np.ndarray:
    """uint8 `[K, 3]`: the colours of the scenery, and a few that represent the rest best."""
    ground_colours = viridis(np.linspace(0, 1, LEVELS))
    fixed = np.array([FRAME, INK, WHITE, NEW, STAR], np.uint8)
    greys = np.linspace(FRAME, WHITE, 12).round().astype(np.uint8)
    base_colours = np.concatenate([fixed, ground_colours, greys])
    pack_rgb = lambda colours: colours @ np.array([1 << 16, 1 << 8, 1])
    pixels = np.concatenate([np.asarray(image).reshape(-1, 3) for image in samples])
    pixels = pixels[~np.isin(pack_rgb(pixels), pack_rgb(base_colours))]
    if not len(pixels):
        return base_colours
    room = GIF_COLOURS - len(base_colours)
    mixed = Image.fromarray(pixels[None]).quantize(room, dither=Image.Dither.NONE)
    mixtures = np.array((mixed.getpalette() or [])[: 3 * room], np.uint8).reshape(-1, 3)
    return np.concatenate([base_colours, mixtures])


def _spread(total: int, count: int) -> list[int]:
    """At most `count` of `range(total)`, evenly spread."""
    return sorted({round(x) for x in np.linspace(0, total - 1, count)})
