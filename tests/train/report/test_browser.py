"""Reports in a real browser: no complaints, a player that does what it is told, right colours."""

from collections.abc import Callable
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.train import untrained
from tests.train.browser import (
    DESKTOP,
    PHONE,
    browser,
    colour_at,
    complaints,
    overflows,
    press,
    show,
    wait_until,
)
from tests.train.firefox import firefox
from train.host.files import metrics_file
from train.host.showing import episodes
from train.host.showing.outcomes import COLOURS
from train.report import __main__ as report
from train.report import inline
from train.snake.training import ENDINGS, make_player

FEW = report.Options(episodes=3, steps=60, games=0)
APPLE = (212, 48, 31)
BOXES = """[".board canvas", ".controls"].map((name) => {
    const box = document.querySelector(name).getBoundingClientRect();
    return [box.left, box.top, box.right, box.bottom];
})"""


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    with browser(tmp_path_factory.mktemp("browser")) as chrome:
        yield chrome


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> Callable[[str], str]:
    """The address of the page of a run, or of "two" runs; it is written when it is asked for."""
    folder: Path = tmp_path_factory.mktemp("reports")

    @cache
    def address(name: str) -> str:
        make = untrained.RUNS.get(name, untrained.snake)
        runs = {each: make() for each in (("one", "two") if name == "two" else (name,))}
        path = folder / f"{name}.html"
        path.write_text(report.build_page(runs, FEW))
        return path.as_uri()

    return address


def assert_in_sight(boxes: list[list[float]], size: tuple[int, int], is_single: bool) -> None:
    """The first drawing and the controls are in the window as it opens, the latter below or, of a
    single drawing in a wide window, beside it."""
    (left, top, right, bottom), controls = boxes
    for x0, y0, x1, y1 in boxes:
        assert 0 <= x0 < x1 <= size[0]
        assert 0 <= y0 < y1 <= size[1]
    assert right - left > 250
    is_beside = is_single and size == DESKTOP
    assert controls[0] > right if is_beside else controls[1] > bottom
    assert not is_beside or controls[1] < (top + bottom) / 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "size"),
    [
        pytest.param(
            *(name, size),
            marks=[pytest.mark.slow] * ((name, size) != ("gymnax", DESKTOP)),
            id=f"{name}-{'desktop' if size == DESKTOP else 'phone'}",
        )
        for name, size in product((*untrained.RUNS, "two"), (DESKTOP, PHONE))
    ],
)
def test_pages_show_without_complaints_and_fit(driver, page, name, size):
    show(driver, page(name), size)
    count = driver.execute_script("return player.count")
    for moment in (0, count // 2, count - 1):
        driver.execute_script("player.go(arguments[0])", moment)
    driver.execute_script("document.querySelectorAll('.overlays input').forEach(x => x.click())")
    driver.execute_script("player.go(1)")
    assert complaints(driver) == []
    assert not overflows(driver)
    driver.execute_script("window.scrollTo(0, 0)")
    assert_in_sight(driver.execute_script(f"return {BOXES}"), size, is_single=name != "two")


@pytest.mark.slow
@pytest.mark.parametrize("names", [("gymnax",), ("snake", "two")])
def test_firefox_shows_the_same(names, page, tmp_path):
    with firefox(tmp_path) as window:
        for name, size in product(names, (DESKTOP, PHONE)):
            window.show(page(name), size)
            assert_in_sight(window.evaluate(BOXES), size, is_single=name != "two")
            assert window.evaluate("document.documentElement.scrollWidth") <= size[0]
            window.evaluate("player.go(1)")
            assert window.evaluate("player.time") == 1
        assert window.complaints == []


@pytest.mark.slow
def test_how_training_games_ended_is_stacked(driver, tmp_path):
    """The first way to end is half of the height at its most, and lies at the bottom."""
    run = untrained.snake()._replace(directory=tmp_path)
    ways = {name: 0.0 for name in ENDINGS if name} | {"score": 3.0}
    shares = ({"won": 0.25, "starved": 0.5}, {"won": 0.5, "starved": 0.25}, {"won": None})
    rows = [
        {"seed": 0, "updates": t, "steps": 10 * t, "agent": {}, "finished": ways | share}
        for t, share in enumerate(shares, 1)
    ]
    with metrics_file.open_for_process(tmp_path) as record:
        record.append(rows)
    page = tmp_path / "page.html"
    page.write_text(report.build_page({"one": run}, report.Options(episodes=0, games=0)))
    show(driver, page.as_uri())
    boxes = driver.execute_script(
        "return [...document.querySelectorAll('svg[aria-label*=ended] path')].map((p) => "
        "[p.textContent, p.getBBox().y, p.getBBox().y + p.getBBox().height])"
    )
    assert [name for name, *_ in boxes] == list(ENDINGS.values())
    tall = boxes[0][2] - boxes[-1][1]
    heights = {name: (low - high) / tall for name, high, low in boxes}
    assert heights[ENDINGS["won"]] == pytest.approx(0.5, abs=0.01)
    assert heights[ENDINGS["starved"]] == pytest.approx(0.5, abs=0.01)  # from a quarter to three
    assert heights[ENDINGS[""]] == pytest.approx(0.25, abs=0.01)
    titles = "return [...document.querySelectorAll('.chart h3')].map(x => x.textContent)"
    assert ENDINGS["won"] in driver.execute_script(titles)  # not "won": one thing has one name
    paths = "[...document.querySelectorAll('svg[aria-label*=ended] path')]"
    fills = f"return {paths}.map(p => p.getAttribute('fill'))"
    assert driver.execute_script(fills) == list(COLOURS)  # as in endings.png
    note = driver.execute_script("return document.querySelector('.note').textContent")
    assert note == "Over environment steps."  # of one seed without test games
    show(driver, page.as_uri(), PHONE)
    size = "return document.querySelector('svg[aria-label*=ended]').viewBox.baseVal.width"
    assert driver.execute_script(size) <= PHONE[0]  # or its text would be smaller than that around
    assert complaints(driver) == []


@pytest.mark.slow
def test_a_record_of_one_row_is_seen(driver, tmp_path):
    """Dots show what no line leads to; where nothing is known no range of axes is made up."""
    run = untrained.snake()._replace(directory=tmp_path)
    finished = {"score": None, "length": None}
    row = {"seed": 0, "updates": 1, "steps": 10, "agent": {"loss": 0.5}, "finished": finished}
    with metrics_file.open_for_process(tmp_path) as record:
        record.append([row])
    page = tmp_path / "page.html"
    page.write_text(report.build_page({"one": run}, report.Options(episodes=0, games=0)))
    show(driver, page.as_uri())
    charts = """return [...document.querySelectorAll('.chart')].map((chart) => [
        chart.querySelector('h3').textContent, chart.querySelectorAll('circle').length,
        chart.querySelector('p')?.textContent])"""
    empty = "no number yet"
    expected = [["score", 0, empty], ["length", 0, empty], ["loss", 1, None]]
    assert driver.execute_script(charts) == expected
    widths = "return [...document.querySelectorAll('.chart')].map(x => x.clientWidth)"
    score, *panels = driver.execute_script(widths)
    assert max(panels) < score / 3  # also one that is alone in its section
    assert "Dots" not in driver.execute_script("return document.body.innerText")
    played = {"games": 5, "mean": 2.0, "low": 1.0, "high": 3.0}
    row |= {"finished": {"score": 3.0, "length": 9.0}, "evaluated": played}
    with metrics_file.open_for_process(tmp_path) as record:
        record.replace(0, [row])
    page.write_text(report.build_page({"one": run}, report.Options(episodes=0, games=0)))
    show(driver, page.as_uri())
    note = driver.execute_script("return document.querySelector('.note').textContent")
    assert "Large dots are scores of test games" in note
    assert note.endswith("Small dots are points of a curve without neighbours.")
    script = (Path(report.__file__).parent / "page/charts.js").read_text()
    lone = f"{script} return lonePoints([1, null, 2, 3, undefined, NaN, 4])"
    assert driver.execute_script(lone) == [0, 6]


@pytest.mark.slow
def test_ticks_of_an_axis_have_different_texts(driver):
    script = (Path(report.__file__).parent / "page/charts.js").read_text()
    ticks = f"{script} return ticks(...arguments)"
    texts = lambda *span: [text for _, text in driver.execute_script(ticks, *span)]
    assert texts(106.04, 106.24, 4) == ["106.05", "106.1", "106.15", "106.2"]
    assert texts(0, 2e6, 4) == ["0", "500k", "1M", "1.5M", "2M"]
    assert texts(1_000_000, 1_001_000, 2) == ["1M", "1.0005M", "1.001M"]
    assert texts(-0.0003, 0.0003, 4) == ["-2e-4", "0", "2e-4"]
    assert texts(0.0001, 0.0002, 2) == ["1e-4", "1.5e-4", "2e-4"]
    assert texts(8, 89, 4) == ["20", "40", "60", "80"]  # not 50 alone
    assert texts(0, 1, 4, 1) == ["0", "1"]  # as many games


@pytest.mark.slow
def test_numbers_at_an_axis_are_not_cut_off(driver, tmp_path):
    """Neighbours have as many digits as tell them apart, which may be many."""
    run = untrained.snake()._replace(directory=tmp_path)
    rows = [
        {"seed": 0, "updates": t, "steps": t, "agent": {"kl": -0.00208301 - 2e-8 * t}}
        | {"finished": {}}
        for t in (1, 2)
    ]
    with metrics_file.open_for_process(tmp_path) as record:
        record.append(rows)
    page = tmp_path / "page.html"
    page.write_text(report.build_page({"one": run}, report.Options(episodes=0, games=0)))
    show(driver, page.as_uri())
    script = "return [...document.querySelectorAll('.chart text')].map((x) => x.getBBox().x)"
    assert min(driver.execute_script(script)) >= 0


@pytest.mark.slow
def test_the_text_beside_the_ground_of_a_colony_is_not_cut_off(driver):
    folder = Path(report.__file__).parents[1]
    paths = folder / "report/page/elements.js", folder / "durotaxis/durotaxis.js"
    elements, colony = (path.read_text() for path in paths)
    script = """
        const pen = document.createElement("canvas").getContext("2d"), ends = [];
        pen.fillText = (text, x, y, most) =>
            ends.push(x + Math.min(pen.measureText(text).width, most ?? Infinity));
        const range = { softest: 0.6333, stiffest: 6.44e12, logarithmic: true };
        const scale = { colours: { count: 0 }, unit: " kPa", ...range };
        for (const x of [8, 300, 410]) drawScale(pen, scale, x, 412, x > 8);
        return [WIDE, ends];
    """
    wide, ends = driver.execute_script(f"const scenes = {{}}; {elements} {colony} {script}")
    assert len(ends) == 1 + 2 * 2
    assert max(ends) <= wide


@pytest.mark.slow
def test_the_player_plays_steps_and_scrubs(driver, page):
    show(driver, page("gymnax"))
    moment = lambda: driver.execute_script("return player.time")
    press(driver, ".player", "ArrowRight")
    press(driver, ".player", "ArrowRight")
    press(driver, ".player", "ArrowLeft")
    assert moment() == 1
    press(driver, ".player", " ")
    wait_until(lambda: moment() > 3)
    press(driver, ".player", " ")
    stopped = moment()
    press(driver, ".player", "End")
    assert moment() == driver.execute_script("return player.count - 1") > stopped
    press(driver, ".player", "Home")
    assert moment() == 0
    slider = "const s = document.querySelector('input[type=range]'); s.value = 2;"
    driver.execute_script(f"{slider} s.dispatchEvent(new Event('input'))")
    assert moment() == 2
    driver.execute_script("document.querySelector('.lines canvas').click()")
    space = """return document.querySelector(arguments[0]).dispatchEvent(
        new KeyboardEvent('keydown', { key: ' ', bubbles: true, cancelable: true }))"""
    assert driver.execute_script(space, "summary")  # is left to what it opens
    assert not driver.execute_script("return player.playing")


@pytest.mark.slow
def test_a_known_moment_has_the_right_colours(driver, page):
    run = untrained.snake()
    env, params, player = make_player(run.config)
    key = report.jax.random.split(report.jax.random.key(FEW.key))[1]
    (game, *_) = episodes.record(env, params, player, run.agents[0], key, FEW.episodes, FEW.steps)
    show(driver, page("snake"))
    board = env.board
    place = lambda cell: ((cell % board.stride + 0.5) / 7, (cell // board.stride + 0.5) / 6)
    for moment in (0, 1, game.steps - 1):
        driver.execute_script("player.go(arguments[0])", moment)
        assert colour_at(driver, *place(int(game.state.food[moment]))) == APPLE
        red, _, blue = colour_at(driver, *place(int(game.state.head[moment])))
        assert blue > red + 50  # the head is blue
        occupied_cells = {int(game.state.head[moment]), int(game.state.food[moment])}
        words = [int(np.asarray(w)[moment]) for w in game.state.occupied]
        free = next(
            c
            for c in board.indices.tolist()
            if c not in occupied_cells and not words[c // 32] >> (c % 32) & 1
        )
        assert min(colour_at(driver, *place(free))) > 200  # paper


@pytest.mark.slow
def test_numbers_beside_the_player_are_those_recorded(driver, page):
    run = untrained.cart_pole()
    assert run.program.views.episodes is not None
    scene: Any = run.program.views.episodes(
        run,
        report.EpisodeSelection(3, report.jax.random.split(report.jax.random.key(FEW.key))[1], 60),
    )
    show(driver, page("gymnax"))
    driver.execute_script("player.go(2)")
    first = scene.episodes[0]
    numbers = driver.execute_script(
        "return [...document.querySelectorAll('.bars .value')].map(x => Number(x.textContent))"
    )
    np.testing.assert_allclose(numbers, first.bars["probability"].values[2], atol=1e-3)
    name = "return player.lines.map(l => [l.name, l.value.textContent])"
    texts = dict(driver.execute_script(name))
    for line in ("value", "return so far", "observation 0"):
        assert float(texts[line]) == pytest.approx(first.lines[line][2], rel=2e-3, abs=2e-3)


@pytest.mark.slow
def test_a_notebook_shows_the_page_in_a_frame(driver, tmp_path):
    inline_page = inline.show(policies=("snake-10x10",), episodes=1, steps=20, games=0)
    page = tmp_path / "notebook.html"
    page.write_text(f"<body data-ready=yes>{inline_page._repr_html_()}</body>")
    show(driver, page.as_uri())
    inside = "document.querySelector('iframe').contentDocument.body"
    wait_until(lambda: driver.execute_script(f"return {inside}.dataset.ready === 'yes'"))
    assert driver.execute_script(f"return {inside}.querySelectorAll('canvas').length") > 0
    assert complaints(driver) == []


@pytest.mark.slow
def test_two_runs_play_in_step_from_the_same_start(driver, page):
    show(driver, page("two"))
    titles = driver.execute_script("return player.panes.map(p => p.clip.name)")
    assert titles == ["one: 1. ", "two: 1. "]
    driver.execute_script("player.go(1)")
    heads = driver.execute_script(
        "return player.panes.map(p => [0, 1].map(t => p.clip.frames.head.at(t)))"
    )
    assert heads[0] == heads[1]
    driver.execute_script("player.beside(1)")
    assert driver.execute_script("return player.panes.length") == 3
