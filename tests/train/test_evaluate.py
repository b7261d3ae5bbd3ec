"""`python -m train.evaluate`: what it says beside the scores."""

import json
from types import SimpleNamespace

import pytest

from tests.train import untrained
from train import evaluate


@pytest.mark.parametrize(
    ("content", "luck"),
    [
        ({"seeds": [], "greedy": True}, "luck\n"),
        ({"seeds": []}, "luck\n"),
        ({"seeds": [], "greedy": False}, ""),  # other games than those that chose
        (None, ""),  # of other boards, which leave the scores as they were
    ],
)
def test_luck_is_told_of_games_like_those_that_chose(content, luck, tmp_path, monkeypatch, capsys):
    run = untrained.snake()._replace(directory=tmp_path)
    monkeypatch.setattr(evaluate.best, "selection_bias_report", lambda *_: ["luck"])
    path = tmp_path / "eval.json"
    before = evaluate.time_of_scores(run)
    if content is None:
        path.write_text('{"seeds": []}')
        before = evaluate.time_of_scores(run)
    else:
        path.write_text(json.dumps(content))
    evaluate.tell_luck(run, SimpleNamespace(best=True), before)
    assert capsys.readouterr().out == luck


def test_where_the_scores_of_a_policy_cannot_be_kept_another_folder_is_advised(
    tmp_path, monkeypatch, capsys
):
    """Not a copy of the policy, which would not help."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").write_text("a file")
    assert evaluate.main(["--policy", "snake-6x6"]) == 2
    error = capsys.readouterr().err
    assert "runs/policy-snake-6x6 cannot be written" in error
    assert error.endswith("the scores of a policy are kept there, so start in a folder that can\n")
