"""The page: whole, of one file, and refused in one line where it cannot be made."""

import base64
import json
import re

import pytest

from tests.train import untrained
from train import render
from train.report import __main__ as report
from train.report import page

RUNS = {**untrained.RUNS, "hybrid": lambda: untrained.colony("hybrid")}
FEW = report.Options(episodes=3, steps=40, games=0)


def data_of(html: str) -> dict:
    match = re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)
    assert match
    return json.loads(match[1])


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("name", RUNS)
def test_every_program_that_plays_shows_episodes(name):
    html = report.build_page({"a run": RUNS[name]()}, FEW)
    scene = data_of(html)["scenes"][0]
    assert len(scene["episodes"]) == 3
    for episode in scene["episodes"]:
        assert 1 < episode["moments"] <= 41
        for place in episode["frames"].values():
            assert place["shape"][0] == episode["moments"]
        for line in episode["lines"].values():
            assert line["shape"] == [episode["moments"]]
        for bars in episode["bars"].values():
            assert bars["values"]["shape"] == [episode["moments"], len(bars["labels"])]
    assert f"scenes.{scene['drawing']} =" in html


@pytest.mark.slow
def test_the_page_asks_nobody_for_anything():
    html = report.build_page({"one": untrained.snake(), "two": untrained.snake()}, FEW)
    addresses = set(re.findall(r"https?://[^\s\"'`)]+", html))
    assert addresses <= {"http://www.w3.org/2000/svg"}
    assert not re.search(r"<(link|script|img)[^>]+(src|href)=\"(?!data:)", html)
    assert html.count("scenes.snake = {") == 1  # though both runs need it


def test_a_run_without_episodes_shows_its_pictures(tmp_path, monkeypatch):
    run = untrained.snake()._replace(directory=tmp_path)
    pixel = b"the bytes of a picture"
    (tmp_path / "portrait.png").write_bytes(pixel)
    assert data_of(report.build_page({"one": run}, FEW))["pictures"] == [[]]
    monkeypatch.setattr(report.abilities, "scene_of", lambda run, selection: None)
    ((picture,),) = data_of(report.build_page({"one": run}, FEW))["pictures"]
    assert picture["name"] == "portrait"
    assert base64.b64decode(picture["png"]) == pixel


@pytest.mark.slow
def test_equal_keys_show_equal_games():
    first_data, second_data = (
        data_of(report.build_page({"one": untrained.snake()}, FEW)) for _ in range(2)
    )
    assert first_data["arrays"] == second_data["arrays"]


def test_data_cannot_end_their_element():
    assert "</script>" not in page.as_json({"title": "</script><script>alert(1)</script>"})
    assert "<b>" not in page.html("<b>", {}, [])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "got 0 runs"),
        (["nowhere"], "nowhere is not a run directory"),
        (["--policy", "nobody"], "nobody"),
        (["--policy", "snake-10x10", "--out", "no/such/folder/x.html"], "lies in no folder"),
        (["--policy", "snake-10x10", "--out", "."], "--out . is a folder"),
        (["--policy", "snake-10x10", "--episodes", "21"], "episodes is 21"),
        (["--policy", *["snake-10x10"] * 7], "got 7 runs"),
        (["--policy", "snake-10x10", "--best"], "--best is for runs: leave it out"),
        (["--policy", "snake-10x10", "--overwrite"], "--overwrite has no effect without --out"),
    ],
)
def test_what_cannot_be_shown_is_refused_in_one_line(
    arguments, message, capfd, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    assert report.main(arguments) == 2
    complaint = capfd.readouterr().err
    assert message in " ".join(complaint.split())
    assert not list(tmp_path.iterdir())


def test_where_nothing_can_be_written_nothing_is_played(capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").write_text("a file")
    for command, advice in ((report, "a file in a folder"), (render, "a folder")):
        assert command.main(["--policy", "snake-10x10"]) == 2
        complaint = capfd.readouterr().err
        assert "runs/policy-snake-10x10 cannot be written" in complaint
        assert complaint.endswith(f": name {advice} that can with --out\n")


def test_a_file_that_exists_is_kept(capfd, tmp_path):
    (tmp_path / "page.html").write_text("mine")
    assert report.main(["--policy", "snake-10x10", "--out", str(tmp_path / "page.html")]) == 2
    assert "page.html exists already: choose another --out" in capfd.readouterr().err
    assert (tmp_path / "page.html").read_text() == "mine"


ENDS = {
    "snake": ("won", "death_wall", "death_self"),
    "two_snake": ("won", "lost", "draw"),
    "gymnax": (),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(x, marks=[pytest.mark.slow] * (x != "gymnax")) for x in ENDS]
)
def test_games_are_counted_by_how_they_end(name):
    html = report.build_page({"a run": RUNS[name]()}, report.Options(episodes=0, games=6))
    histograms = {x["name"]: x for x in data_of(html)["distributions"][0]}
    assert histograms["return"]["games"] == histograms["length"]["games"] == 6
    assert 0 <= sum(histograms[end]["share"] for end in ENDS[name]) <= 1.0 + 1e-9
    assert sum(histograms["length"]["counts"]) == 6


def test_a_name_that_is_no_text_is_written():
    """A folder whose name has another encoding, as Python reads it: with lone surrogates."""
    html = page.html("run-\udcfc < 1", {"name": "run-\udcfc"}, [])
    assert "<title>run-? &lt; 1" in html
    assert data_of(html.encode().decode()) == {"name": "run-\udcfc"}
