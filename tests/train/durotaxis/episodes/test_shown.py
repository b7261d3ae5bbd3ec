"""Episodes in units and in pictures whose goal is elsewhere: told, written, drawn."""

import csv
import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import networkx
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from envs.durotaxis.env import Params
from envs.durotaxis.pictures import drawing
from envs.durotaxis.rules import Colony
from jaxrl.types import Agent
from tests.train import untrained
from tests.train.durotaxis.colonies import SMALL
from tests.train.images import assert_drawn
from train.durotaxis import pictures, scene, spawn_pictures, strip_pictures
from train.durotaxis.config import Config, Experiment, make_env
from train.durotaxis.episodes import chances, shown, tables
from train.durotaxis.episodes import playing as colonies
from train.durotaxis.episodes.record import Episode
from train.durotaxis.evaluation import evaluate
from train.durotaxis.evaluation.options import Options, apply_options
from train.durotaxis.presets import PRESETS
from train.durotaxis.program import PROGRAM
from train.host.errors import UsageError
from train.host.files import metrics_file
from train.host.files.run_directory import RunDirectory
from train.host.program import EpisodeSelection, Run

PHYSICAL = {"units": "physical", "pixel_size": 2.0, "stiffness_unit": 3.0}


def make_config(**changes: Any) -> Config:
    small = {"width": 60, "height": 40, "observation": "local", "max_steps_in_episode": 30}
    small |= changes
    return replace(PRESETS["linear"].config, env=replace(PRESETS["linear"].config.env, **small))


def parts_of(config: Config, greedy: bool = True) -> tuple[Any, ...]:
    """What `make_parts` returns, but an agent that acts at random: no network is compiled."""
    del greedy
    env, params = make_env(config.env)
    act = lambda state, memory, obs, key: (env.action_space(params).sample(key), memory, ())
    values = lambda *_: {"value": jnp.arange(len(env.component_names)) * 1.0}
    refuse = lambda *_: pytest.fail("it learns nothing")
    return env, params, Agent(refuse, lambda: (), act, refuse, values)


@cache
def play_colony(**changes: Any) -> tuple[Config, Params, Episode]:
    """A colony that acts at random: its configuration, parameters and one episode."""
    config = make_config(**changes)
    env, params, agent = parts_of(config)
    (episode,) = colonies.play(env, params, agent, (), jax.random.key(5), 1)
    return config, params, episode


@pytest.mark.slow
def test_units_scale_what_is_told_and_nothing_else():
    config, _, episode = play_colony(**PHYSICAL)
    pixel_rows, unit_rows = (
        tables.rows(x)
        for x in (episode, shown.place_and_convert(episode, shown.look_of(config.env)))
    )
    lengths = {"centroid_x", "centroid_y", "box_height", "box_width", "node_x", "node_y"}
    lengths |= {"spawn_node_x", "spawn_node_y", "gamma", "noise"}
    stiffness = {"centre_intensity", "node_intensity", "spawn_node_intensity", "alpha"}
    for name, values in pixel_rows.items():
        if values.dtype.kind == "U":
            np.testing.assert_array_equal(unit_rows[name], values)
            continue
        factor = 2.0 if name in lengths else 3.0 if name in stiffness else 1.0
        np.testing.assert_allclose(unit_rows[name], factor * values, rtol=1e-6, err_msg=name)
    _, _, plain_episode = play_colony()
    np.testing.assert_array_equal(plain_episode.colony.x, episode.colony.x)


@pytest.mark.slow
@pytest.mark.parametrize("goal", [pytest.param("left", marks=pytest.mark.slow), "up", "30"])
def test_an_episode_is_placed_as_its_goal_is(goal: str):
    config, params, episode = play_colony(goal=goal)
    look = shown.look_of(config.env)
    placed_episode = shown.place_episode(episode, look)
    alive = episode.alive
    x, y = placed_episode.colony.x[alive], placed_episode.colony.y[alive]
    assert ((x >= -1e-3) & (x <= 60) & (y >= -1e-3) & (y <= 40)).all()
    back = look.placement.to_ground(x, y)
    np.testing.assert_allclose(back[0], episode.colony.x[alive], atol=1e-3)
    ground = shown.stiffness_in(look, episode.law, params)
    assert ground.shape == (40, 60)
    inside = (x > 1) & (x < 59) & (y > 1) & (y < 39)
    under = ground[y[inside].astype(int), x[inside].astype(int)]
    is_on_ground = np.isfinite(under)  # the middle of a pixel at the edge may lie beyond the ground
    assert is_on_ground.mean() > 0.8
    expected = episode.intensity[alive][inside]
    np.testing.assert_allclose(under[is_on_ground], expected[is_on_ground], atol=0.11)  # 2 cells


@pytest.mark.slow
def test_a_run_is_written_and_drawn_in_its_units_and_direction(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(evaluate, "make_parts", parts_of)
    config = make_config(goal="up", **PHYSICAL)
    run = Run(tmp_path, PROGRAM, config, 0, [()])
    evaluate.evaluate(run, Options("", episodes=2, graphml=True))
    (folder,) = tmp_path.glob("eval-*")
    with (folder / "trajectory.csv").open() as file:
        rows = list(csv.DictReader(file))
    with np.load(folder / "trajectory.npz") as arrays:
        assert arrays["node_y"].max() > 40, "in µm a ground of 40 px is 80 high"
    first = [row for row in rows if row["step"] == "0" and row["episode"] == "0"]
    assert all(float(row["node_y"]) > 2 * 40 * 0.9 - 1e-3 for row in first), "it begins below"
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["units"]["length_name"] == "µm"
    graph = networkx.read_graphml(folder / "graphs" / "seed0-episode0.graphml")
    row = next(r for r in rows if r["episode"] == "0")
    assert graph.nodes[row["node_id"]]["y"] == pytest.approx(float(row["node_y"]))
    assert_drawn(folder / "trajectories.png")
    _, params, episode = play_colony(goal="up", **PHYSICAL)
    for path in pictures.climb(episode, params, tmp_path, shown.look_of(config.env)):
        assert_drawn(path)


def test_chances_of_nodes_are_those_along_the_way(episodes):
    """However a colony is turned in pictures, the rearmost are deleted first."""
    step_share = np.tile(np.array([0.0, 1.0, 0.0, 0.7], np.float32), (len(episodes[0].reward), 1))
    episode = chances.with_delete_chances(replace(episodes[0], explained={"share": step_share}))
    for goal in ("left", "up", "30"):
        look = shown.look_of(replace(SMALL, goal=goal))
        rows = tables.rows(shown.place_and_convert(episode, look))
        expected = tables.rows(episode)["delete_probability"]
        np.testing.assert_array_equal(rows["delete_probability"], expected)
    first, count = rows["step"] == 0, rows["num_nodes"][0]
    order = np.argsort(episode.colony.x[0, :count])
    assert (np.diff(expected[first][order]) <= 0).all()
    assert np.isfinite(expected[first]).all()


def test_a_close_up_holds_the_whole_colony():
    """Most of its nodes are at the right, and so is its centroid."""
    x, y = np.array([[10.0, 90, 95, 100, 100]]), np.array([[20.0, 22, 20, 18, 20]])
    nodes: dict[str, Any] = {"x": x, "y": y, "num_nodes": np.array([5])}
    nodes |= {"parent": np.arange(5)[None] - 1, "birth": np.zeros((1, 5), int)}
    colony = Colony(**nodes)
    centroid, none = np.stack([x.mean(1), y.mean(1)], 1), np.zeros(0)
    drawn_fields = {"colony": colony, "deleted": np.zeros((1, 5), bool), "centroid": centroid}
    other_names = ("ids", "intensity", "centre_intensity", "reward", "law", "ended")
    other_fields = dict.fromkeys(other_names, none)
    episode = Episode(**drawn_fields, **other_fields, numbers={}, explained={})
    axes = Figure().subplots()
    image = axes.imshow(np.ones((40, 120)), extent=(0, 120, 40, 0))
    reach = drawing.reach_of(colony, share=1.0)
    strip_pictures._draw_close_up(axes, image, episode, 0, reach, np.array([[118.0, 0], [118, 40]]))
    (inset,) = axes.child_axes
    for values, limits in ((x, inset.get_xlim()), (y, inset.get_ylim())):
        assert min(limits) < values.min() <= values.max() < max(limits)


def test_hull_and_goal_have_lines_of_their_own():
    styles = {sign.get_label(): sign.get_linestyle() for sign in strip_pictures._signs()}
    assert len({styles["hull"], styles["goal"]}) == 2


@pytest.mark.slow
def test_a_page_has_the_units_and_the_direction_of_its_run():
    run = untrained.colony("linear")
    config = replace(run.config, env=replace(run.config.env, goal="up", **PHYSICAL))
    report_scene = scene.show(
        run._replace(config=config), EpisodeSelection(1, jax.random.key(1), 5)
    )
    goal = report_scene.constants["goal"]
    np.testing.assert_allclose(goal[:, 1], 40 - 37.5)  # the margin is 2 px
    assert report_scene.constants["unit"] == " kPa"


def test_flags_of_evaluation_turn_and_measure():
    options = Options("", goal="left", units="physical", pixel_size=0.5)
    changed_experiment = apply_options(Experiment(), options)
    assert (changed_experiment.goal, changed_experiment.units, changed_experiment.pixel_size) == (
        "left",
        "physical",
        0.5,
    )
    flags: list[Any] = []
    flags += [{"field_range": (0.0, 1.0)}, {"field_pixel_size": 2.0}, {"stiffness_unit": 2.0}]
    flags += [{"pixel_size": 2.0}]
    for flag in flags:
        with pytest.raises(UsageError, match="would have no effect without"):
            apply_options(Experiment(), Options("", **flag))


@pytest.mark.slow
def test_the_numbers_of_actions_are_drawn_over_training(tmp_path: Path):
    config = untrained.colony("linear").config
    rows = [
        {
            "seed": 0,
            "steps": 100 * (i + 1),
            "finished": {"reward_distance": None if i == 0 else 0.1 * i, "reward_step": 0.0},
            "agent": {
                "policy_loss": -0.1,
                "value_loss": 1.0 / (i + 1),
                "action_mean": [0.4, 7.0, 2.0, 0.2, 0.0],
                "action_deviation": [0.1, 2.0, 0.5, 0.1, 0.1],
                "action_min": [0.0, 0.5, 0.5, 0.05, -0.5],
                "action_max": [0.7, 15.0, 4.0, 0.5, 0.5],
            },
        }
        for i in range(5)
    ]
    RunDirectory(tmp_path).metrics.write_text("")
    assert spawn_pictures.draw(tmp_path, [0], config.env, "none") is None
    lines = (metrics_file.line_with_checksum({"row": i + 1, **row}) for i, row in enumerate(rows))
    RunDirectory(tmp_path).metrics.write_bytes(b"".join(lines))
    path = spawn_pictures.draw(tmp_path, [0], config.env, "A colony")
    assert path
    assert_drawn(path)


@pytest.mark.parametrize(
    ("values", "scale", "labels"),
    [
        ([0.7, 1.5, 4.0], "linear", {"1", "2", "3", "4"}),
        ([500.0, 900.0, np.nan], "linear", {"500", "600", "700", "800", "900"}),
        ([0.5, 300.0], "symlog", {"0", "1", "2", "5", "10", "20", "50", "100", "200"}),
        ([-4_000.0, 0.5], "symlog", {"0", "\N{MINUS SIGN}1,000", "\N{MINUS SIGN}20"}),
        ([-1e7, 0.5, 1e9], "symlog", {"0", "1e+09"}),
        ([], "linear", set()),
    ],
)
def test_values_can_be_read_off_the_axis_of_rewards(values, scale, labels):
    figure = Figure((3, 2.7))
    axes = figure.subplots()
    if values:
        axes.plot(values)
    spawn_pictures._fit_scale(axes)
    FigureCanvasAgg(figure).draw()
    shown_texts = axes.get_yticklabels() + axes.get_yticklabels(minor=True)
    assert axes.get_yscale() == scale
    assert labels <= {x.get_text() for x in shown_texts}


def test_a_live_colony_stays_on_ground_of_finite_stiffness():
    """A slope of which float32 cannot hold e^(0.2 · 599) is refused: its picture would be blank."""
    colony = Experiment(num_founders=2, capacity=4, threshold_nodes=4.0)
    for config, slope in (
        (replace(colony, ground="linear"), 0.2),
        (replace(colony, ground="exponential"), 0.14),
    ):
        env, params = make_env(replace(config, slope=0.02))
        _, state = env.reset(jax.random.key(0), params)
        steeper = scene.with_slope(state, params, slope)
        stiffest = scene.ground(steeper.law, params, shown.look_of(config))["stiffest"]
        ends = {"linear": 1.0 + slope * 599, "exponential": np.exp(slope * 599)}
        assert stiffest == pytest.approx(ends[config.ground], rel=1e-4)
    with pytest.raises(ValueError, match="float32 cannot hold"):
        scene.with_slope(state, params, 0.2)
