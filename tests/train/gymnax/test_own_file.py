"""Environments of a user's own file: what is taken, and what is refused in one line."""

import pytest

from tests.train.gymnax.users_file import FILE, main
from train.host.environments import environments
from train.host.environments.environments import Game
from train.host.running.origin import explain, origin


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("RewardVector", "breaks the contract: reward has shape (1,); expected a scalar"),
        ("FloatDone", "terminated is float32[]; expected a bool scalar"),
        ("IntegerDone", "terminated is int32[]; expected a bool scalar"),
        ("OtherDtype", "observation is float16[4] after step, but float32[4] after reset"),
        ("OtherState", "state.x is float32[1] after step, but float32[] after reset"),
        ("WantsVector", "cannot be traced: IndexError: Too many indices"),
        ("Branches", "TracerBoolConversionError"),
        ("OldStep", "step returns 5 values; expected 6, as in gymnax 1.0"),
        ("OtherShape", "observation has shape (4,), but observation_space says (5,)"),
        ("ScaledImage", "observation['a'] is float32, but observation_space says uint8: convert"),
        ("NoSpace", "the environment has no observation_space"),
        ("Theirs", "action_space gives a Discrete of gymnasium"),
        ("UpsideDown", "action_space has a Box from 1.0 to -1.0; expected low below high"),
        ("HoldsArray", "HoldsArray.goals is a ndarray, which cannot be hashed: make it a tuple"),
        ("NoChoice", "action_space has nvec [2 0]; expected 1 on"),
        ("Quits", "cannot be traced: SystemExit: 3"),
        ("LacksPart", "without the part 'y' of observation_space"),
        ("text", "params.name is a str; expected numbers"),
        ("plain", "params is a Plain; expected numbers in a flax.struct.dataclass"),
        ("limitless", "AttributeError: 'Limitless' object has no attribute 'x_threshold'"),
        ("fails", "cannot be made: IndexError: list index out of range"),
    ],
)
def test_what_breaks_the_contract_is_refused_in_one_line(
    name, message, module, capsys, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    assert main(["--env.id", f"{module}:{name}", "--run.total-steps=99"]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["WantsVector", "Branches"])
def test_what_jax_raises_is_told_with_the_line_of_the_file(name, module):
    with pytest.raises(ValueError, match=r"\(.*own_envs\.py:(\d+)\)") as error:
        environments.make(Game(f"{module}:{name}"))
    number = int(str(error.value).rsplit(":", 1)[1].rstrip(")"))
    assert f"class {name}" in "\n".join(FILE.splitlines()[number - 4 : number])


def test_an_error_of_this_library_has_no_line_of_a_user():
    with pytest.raises(ValueError, match="invalid literal") as error:
        int("x")
    own = explain(error.value)
    assert own.startswith("ValueError: invalid literal")
    assert str(origin(error.value)).startswith(__file__)  # this file is a user's
    assert origin(ValueError()) is None


class Speechless(Exception):
    """An error that has no text."""

    def __str__(self) -> str:
        return None  # pyright: ignore[reportReturnType]


def test_an_error_without_a_text_has_its_kind_and_its_line():
    with pytest.raises(Speechless) as error:
        raise Speechless
    assert explain(error.value).startswith(f"Speechless: its message cannot be shown ({__file__}:")


def test_an_environment_that_dies_of_its_limit_is_told_of(module, capsys):
    environments.make(Game(f"{module}:DiesOfTime"), learns_of_rewards=False)
    assert capsys.readouterr().out == ""
    environments.make(Game(f"{module}:DiesOfTime"))
    assert "terminates at its time limit" in capsys.readouterr().out
    environments.make(Game(f"{module}:DiesOfTime"))
    environments.make(Game(f"{module}:Changed"))
    assert capsys.readouterr().out == ""


def test_instances_and_endless_environments_are_taken(module):
    assert environments.make(Game(f"{module}:pole")).limit == 500
    assert environments.make(Game(f"{module}:endless")).limit is None


def test_numbers_of_named_tuples_and_infinity(module):
    game = Game(f"{module}:in_tuple", numbers=("max_steps_in_episode=5", "gravity=3"))
    params = environments.make(game).params
    assert (params.max_steps_in_episode, params.gravity) == (5, 3.0)
    game = Game(f"{module}:endless", numbers=("max_steps_in_episode=inf",))
    assert environments.make(game).limit is None
    with pytest.raises(ValueError, match="gravity=inf, expected a finite number"):
        environments.make(Game("CartPole-v1", numbers=("gravity=inf",)))


@pytest.mark.parametrize("limit", ["0", "-1", "3_000_000_000", "1e400", "nan"])
def test_impossible_limits_are_refused(limit):
    with pytest.raises(ValueError, match="max_steps_in_episode"):
        environments.make(Game("CartPole-v1", numbers=(f"max_steps_in_episode={limit}",)))
