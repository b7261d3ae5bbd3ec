"""Fields that have no effect with others, as they are declared beside each."""

from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import pytest
import tyro

from jaxrl import checks
from jaxrl.checks import Positive
from jaxrl.dependent_fields import idle_fields, needs, never, sets, unless


@dataclass(frozen=True)
class Schedule:
    kind: Literal["constant", "linear", "cosine"] = "constant"
    end: Annotated[float, needs("kind", "linear", "cosine")] = 0.0
    updates: Annotated[float, needs("kind", "linear", "cosine")] = 100.0


@dataclass(frozen=True)
class Learner:
    rate: Schedule = Schedule()
    target: float | None = None
    gain: Annotated[Positive, unless("target", None, why="{}target says nothing")] = 1.0
    clip: float = 0.0
    margin: Annotated[float, needs("clip") | needs("rate.kind", "linear")] = 0.5
    weights: tuple[float, ...] = ()


@dataclass(frozen=True)
class Config:
    file: str = ""
    agent: Annotated[
        Learner,
        unless("file", why="a file is read").of("rate", "gain"),
        never("there are no parts").of("weights"),
    ] = Learner()
    anneal: Annotated[bool, sets("agent.rate.updates")] = False
    share: Annotated[float | None, sets("agent.clip", why="share says it")] = None


LINEAR = Learner(Schedule("linear"), target=0.0, clip=1.0)
OF_KIND = "it needs agent.rate.kind linear or cosine"
PARTS = {"agent.weights": "there are no parts"}


@pytest.mark.parametrize(
    ("config", "reasons"),
    [
        (Config(agent=LINEAR), {}),
        (
            Config(),
            {
                "agent.rate.end": OF_KIND,
                "agent.rate.updates": OF_KIND,
                "agent.gain": "agent.target says nothing",
                "agent.margin": "it needs agent.clip or agent.rate.kind linear",
            },
        ),
        (
            Config(file="x", agent=LINEAR),
            {
                f"agent.{name}": "a file is read"
                for name in ("rate.kind", "rate.end", "rate.updates", "gain")
            },
        ),
        (Config(agent=replace(LINEAR, clip=0.0)), {}),
        (Config(agent=LINEAR, anneal=True), {"agent.rate.updates": "anneal sets it"}),
        (Config(agent=LINEAR, share=0.0), {"agent.clip": "share says it"}),
    ],
)
def test_fields_without_effect_are_told_with_the_first_reason(config: Any, reasons: dict):
    assert idle_fields(config) == reasons | PARTS


def test_what_is_said_of_a_field_goes_before_what_sets_it():
    assert idle_fields(Config(anneal=True))["agent.rate.updates"] == OF_KIND


def test_a_rule_means_the_same_wherever_its_configuration_is_nested():
    alone = {name.removeprefix("agent."): why for name, why in idle_fields(Config()).items()}
    del alone["weights"]  # of which the outer configuration speaks
    assert idle_fields(Learner()) == {n: why.replace("agent.", "") for n, why in alone.items()}


def test_a_field_that_is_always_set_and_one_that_none_leaves_as_it_is():
    @dataclass(frozen=True)
    class Steps:
        agent: Learner = LINEAR
        anneal_steps: Annotated[int | None, sets("agent.clip", always=True)] = None
        share: Annotated[float | None, sets("agent.target")] = None

    assert idle_fields(Steps()) == {"agent.clip": "anneal_steps sets it"}
    assert "agent.target" in idle_fields(Steps(share=0.5))


def test_ranges_and_flags_are_read_beside_the_rules():
    config = tyro.cli(Config, args=["--agent.gain", "2.0", "--anneal"])
    assert config == Config(agent=replace(Learner(), gain=2.0), anneal=True)
    checks.config(config)
    with pytest.raises(checks.OutOfRange, match=r"agent.gain is -1.0, expected a number above 0"):
        checks.config(replace(config, agent=replace(Learner(), gain=-1.0)))
