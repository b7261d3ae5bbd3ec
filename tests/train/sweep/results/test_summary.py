"""Summaries against numbers worked out by hand and plain loops over pairs of seeds."""

import json

import numpy as np
import pytest
from rich.console import Console
from scipy import stats

from tests.train.sweep.results.sweeps import member, sweep
from train.host.files.whole_files import finite_or_null
from train.sweep import confirmation
from train.sweep.results import labels, summary
from train.sweep.results.summary import Member, find_identical, no_effect_message, summarise
from train.sweep.results.tables import table
from train.sweep.sweep import state_of

RATES = [{"agent.rate": 0.1}, {"agent.rate": 0.2}, {"agent.rate": 0.4}]


def render_table(configurations, width: int = 100) -> str:
    console = Console(width=width)
    with console.capture() as capture:
        console.print(table(configurations))
    return capture.get()


@pytest.mark.parametrize("better", ["higher", "lower"])
def test_choosing_flatters_what_is_worse_on_fresh_seeds(better):
    """By 2, whether the score is a return, 7 and then 5, or an error, -7 and then -5."""
    sign = 1 if better == "higher" else -1
    (chosen,) = summarise([member(0, 0, 0, sign * 7.0)], better)
    result = confirmation.confirm(chosen, [member(0, 0, 1, sign * 5.0)], better)
    assert confirmation.content(result, "score")["flattered"] == 2.0


def test_scores_ranks_and_failures_of_each_configuration():
    members, _ = sweep(RATES, seeds=5, failed=(0, 14))
    best, second, third = summarise(members)
    assert [x.index for x in (best, second, third)] == [2, 1, 0]
    assert [x.rank for x in (best, second, third)] == [1, 2, 3]
    assert [x.failed for x in (best, second, third)] == [1, 0, 1]
    scores = [x.score for x in members if x.configuration == 1]
    assert second.scores == scores
    assert second.iqm == pytest.approx(stats.trim_mean(np.array(scores, float), 0.25))
    low, high = second.interval or (0, 0)
    assert second.iqm is not None
    assert min(second.scores) <= low < second.iqm < high <= max(second.scores)
    assert second.values == RATES[1]


def test_lower_may_be_better():
    members, _ = sweep(RATES, seeds=3)
    configurations = summarise(members, better="lower", default=1)
    assert [x.index for x in configurations] == [0, 1, 2]
    improvements = [x.improvement and x.improvement.probability for x in configurations]
    assert improvements == [1.0, None, 0.0]


def test_improvement_counts_pairs_and_failed_seeds_lose():
    members = [
        member(0, 0, 0, 1.0, a=1),
        member(1, 0, 1, 3.0, a=1),
        member(2, 1, 0, 2.0, a=2),
        member(3, 1, 1, 3.0, a=2),
        member(4, 1, 2, None, a=2),
    ]
    by_index = {x.index: x for x in summarise(members, default=0)}
    assert by_index[0].is_default
    assert by_index[0].improvement is None
    # 2 beats 1; 3 beats 1 and ties with 3; the failed one loses twice: 2½ of six pairs
    probability, low, high = by_index[1].improvement or (0, 0, 0)
    assert probability == pytest.approx(2.5 / 6)
    assert 0 <= low <= probability <= high <= 1


def test_one_seed_has_neither_interval_nor_improvement():
    members, _ = sweep(RATES, seeds=1)
    for configuration in summarise(members, default=0):
        assert configuration.interval is None
        assert configuration.improvement is None
        assert configuration.iqm == configuration.scores[0]
    assert "One seed each" in render_table(summarise(members))


def test_many_failures_rank_behind_all_and_none_without_a_score():
    """Four seeds: one failed is a quarter, two are more."""
    scores = {0: [1.0, 1.0, 1.0, 1.0], 1: [2.0, 2.0, 2.0, None], 2: [9.0, 9.0, None, None]}
    scores |= {3: [None] * 4}
    members = [
        member(4 * c + s, c, s, score, a=c)
        for c, of_seeds in scores.items()
        for s, score in enumerate(of_seeds)
    ]
    assert [(x.index, x.rank) for x in summarise(members)] == [(1, 1), (0, 2), (2, 3), (3, None)]


def test_members_whose_games_did_not_end_are_told_apart_from_failed_ones():
    rows = [{"score": 1.0, "finite": True}, {"score": None, "finite": True}]
    rows += [{"score": None, "finite": False}]
    states = list(map(state_of, rows))
    assert states == ["done", "unfinished", "failed"]
    members = [
        Member(i, i // 3, i, {"a": i // 3}, score, state)
        for i, (score, state) in enumerate(
            [(9.0, "done"), (None, "unfinished"), (None, "unfinished")] + [(1.0, "done")] * 3
        )
    ]
    first, second = summarise(members)
    assert (first.index, first.failed, first.num_unscored) == (1, 0, 0)
    assert (second.index, second.failed, second.num_unscored) == (
        0,
        0,
        2,
    )  # behind, whatever its rest
    assert "Without a score, as no game came to its end: 2 members" in " ".join(
        render_table([first, second]).split()
    )


def test_equal_configurations_share_a_rank():
    members = [member(i, i, 0, score, a=i) for i, score in enumerate([5.0, 7.0, 5.0, 1.0])]
    assert [x.rank for x in summarise(members)] == [1, 2, 2, 4]


def test_an_unfinished_member_without_a_score_did_not_fail():
    members = [
        Member(0, 0, 0, {}, 2.0, "done"),
        Member(1, 0, 1, {}, None, "unfinished"),
        Member(2, 0, 2, {}, float("nan"), "done"),
    ]
    (configuration,) = summarise(members)
    assert (configuration.scores, configuration.failed, configuration.num_unscored) == ([2.0], 1, 1)


@pytest.mark.parametrize(
    ("members", "arguments", "message"),
    [
        ([], {}, "no members"),
        ([member(0, 0, 0, 1.0)], {"better": "bigger"}, "better is 'bigger'; give"),
        ([member(0, 0, 0, 1.0)], {"default": 3}, r"default configuration 3 .* it has \[0\]"),
        ([member(0, 0, 0, 1.0), member(0, 1, 0, 1.0)], {}, "same index"),
        ([member(0, 0, 0, 1.0, a=1), member(1, 0, 1, 1.0, a=2)], {}, "differ in values"),
        ([Member(0, 0, 0, {}, 1.0, "lost")], {}, "is 'lost'; a state is one of done"),
    ],
)
def test_contradictions_are_refused_in_one_line(members, arguments, message):
    with pytest.raises(ValueError, match=message) as caught:
        summarise(members, **arguments)
    assert "\n" not in str(caught.value)


def test_the_content_is_json():
    members, _ = sweep([{"a": np.float32(0.5)}, {"a": np.float32(2)}], seeds=2, failed=(0,))
    content = json.loads(json.dumps(summary.content(summarise(members, default=0), "points")))
    assert (content["score"], content["better"], content["default"]) == ("points", "higher", 0)
    first, second = content["configurations"]
    assert (first["index"], first["rank"], first["values"]) == (1, 1, {"a": 2.0})
    assert first["improvement"]["probability"] == 1.0
    assert second["failed"] == 1
    assert second["interval"] is None


def test_infinity_is_not_as_no_value_in_the_json():
    members = [member(0, 0, 0, 2.0, a=np.inf), member(1, 1, 0, 1.0, a=None)]
    chosen, other = summarise(members)
    content = finite_or_null(summary.content([chosen, other], "points"))
    assert [x["values"] for x in content["configurations"]] == [{"a": "inf"}, {"a": None}]
    confirmed = confirmation.content(confirmation.confirm(chosen, members[:1], "higher"), "points")
    assert finite_or_null(confirmed)["values"] == {"a": "inf"}


@pytest.mark.parametrize("width", [80, 100])
def test_the_table_has_a_row_each_and_cuts_no_number(width):
    names = ["agent.learning_rate", "agent.clip", "loop.steps_of_a_very_long_name", "run.kind"]
    values = [{name: 0.1 * (i + k) for k, name in enumerate(names)} for i in range(6)]
    members, _ = sweep(values, seeds=3, failed=(4,))
    configurations = summarise(members, default=2)
    text = render_table(configurations, width)
    for x in configurations:
        assert labels.text_of(x.iqm) in text
        assert " to ".join(map(labels.text_of, x.interval or ())) in text
    assert "default" in text
    assert "1 more" not in text


def test_a_value_that_looks_like_a_style_is_shown():
    members, _ = sweep([{"env.file": "gel[old].tif"}, {"env.file": "gel.tif"}], seeds=2)
    assert "gel[old].tif" in render_table(summarise(members))


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("count", [1, 2, 3, 4])
@pytest.mark.parametrize("failed", [(), (4,)])
def test_nothing_is_cut_at_80_columns(count, failed):
    names = ["agent.learning_rate", "agent.entropy_weight", "env.rewards.step", "agent.clip"][
        :count
    ]
    rng = np.random.default_rng(count)
    values = [dict(zip(names, rng.uniform(1e-4, 1e-2, count), strict=True)) for _ in range(9)]
    members, _ = sweep(values, seeds=3, failed=failed)
    members = [x._replace(score=x.score and -100 * rng.uniform()) for x in members]
    text = render_table(summarise(members, default=0), 80)
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= 80
    assert "better than" in text
    assert "default, %" in text


@pytest.mark.slow
def test_a_long_table_ends_but_has_the_default():
    members, _ = sweep([{"a": i} for i in range(40)], seeds=2)
    text = render_table(summarise(members, default=3))
    assert "Not shown: 19 more" in text
    assert sum(line.strip()[:1].isdigit() for line in text.splitlines()) >= 21
    with pytest.raises(ValueError, match="no configuration to show"):
        table([])


def test_identical_members_are_found_and_failed_ones_left_out():
    members, _ = sweep(RATES, seeds=2, failed=(1, 3))
    fingerprints = {0: "a", 1: "nan", 2: "a", 3: "nan", 4: "b", 5: "a"}
    assert find_identical(members, fingerprints) == [[0, 2, 5]]
    assert find_identical(members, {0: "a"}) == []


def test_what_had_no_effect_is_said_in_one_line():
    members = [
        member(0, 0, 0, 1.0, rate=0.1, clip=1),
        member(1, 0, 1, 1.0, rate=0.1, clip=1),
        member(2, 1, 0, 1.0, rate=0.1, clip=2),
        member(3, 2, 0, 1.0, rate=0.1000001, clip=2),
        member(4, 3, 0, 1.0, rate=0.1, clip=1),
    ]
    assert no_effect_message(members, [0, 1]) == (
        "#0 with seed 0 and #0 with seed 1 came out identical: the seed (0, 1) had no effect there"
    )
    start = "#0 and #{} with seed 0 came out identical: "  # numbers as in the table
    assert no_effect_message(members, [0, 2]) == start.format(1) + "clip (1, 2) had no effect there"
    message = no_effect_message(members, [0, 3])
    assert message == start.format(2) + "rate (0.1, 0.1000001) and clip (1, 2) had no effect there"
    assert no_effect_message(members, [0, 4]).endswith("the same values and the same seed")
    many = [member(i, i, 0, 1.0, rate=i) for i in range(9)]
    assert no_effect_message(many, range(9)) == (
        "#0, #1, #2, #3, #4, #5 and 3 more with seed 0 came out identical: "
        "rate (0, 1, 2, 3, 4, 5 and 3 more) had no effect there"
    )


def test_names_are_as_short_as_they_can_be():
    names = labels.plain_names(["agent.learning-rate", "critic.learning_rate", "agent.clip"])
    assert list(names.values()) == ["agent learning rate", "critic learning rate", "clip"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "on"),
        (np.bool_(False), "off"),
        (3, "3"),
        (1e-5, "1e-5"),
        (3e-4, "3e-4"),
        (0.001, "0.001"),
        (20.0, "20"),
        (12345.6, "12346"),
        (1234567.0, "1234567"),
        (2.5e6, "2.5e6"),
        (1.2345678e12, "1.235e12"),
        (-0.25, "-0.25"),
        ("adam", "adam"),
        (("duffing", "van_der_pol"), "duffing van_der_pol"),
        ([0.5, 1e-5], "0.5 1e-5"),
        ((), "none"),
    ],
)
def test_values_are_written_short(value, text):
    assert labels.text_of(value) == text


def test_labels_fit():
    values = {"a.learning_rate": 3e-4, "a.number_of_steps_in_all": 128, "a.normalise": True}
    names = labels.plain_names(values)
    text = labels.label(7, values, names)
    assert text == "#7 learn. rate 3e-4, number of 128, norma. on"
    assert labels.label(7, {"a.normalise": True}, names) == "normalise on"
    assert len(labels.label(7, {f"number{i}.x": i for i in range(30)}, names)) <= labels.LONGEST
