"""What a sweep is made of is read from its flags, and what does not fit is refused in one line."""

import dataclasses

import pytest

from tests.train import tiny
from tests.train.sweep.tiny_sweep import VARY, sweep, table
from train.host.errors import REFUSED, UsageError
from train.host.program import find
from train.sweep import __main__ as command
from train.sweep import build
from train.sweep.options import Options


class TestRandom:
    @pytest.mark.slow
    def test_draws_within_the_ranges_and_keeps_the_default(self, tmp_path):
        vary = ("--vary", "agent.learning_rate=log:1e-3..1e-1", "--random", "20", "--seeds", "1")
        assert sweep(tmp_path / "s", *vary, "--confirm=0") == 0
        rates = [float(row["agent.learning_rate"]) for row in table(tmp_path / "s")]
        assert rates[0] == tiny.PRESETS["plain"].config.agent.learning_rate
        assert all(1e-3 <= rate <= 1e-1 for rate in rates)
        assert len(set(rates)) == 21
        assert sum(rate < 1e-2 for rate in rates) in range(4, 17)  # 10 of 20; 0.3 % are outside


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--vary", "agent.nope=1"], "there is no field agent.nope"),
        (["--vary", "agent.learning_rate"], "expected FIELD=VALUE"),
        (["--vary", "agent.learning_rate=1,1"], "a value is there twice"),
        (["--vary", "agent.learning_rate=-1,1"], "--agent.learning-rate is -1.0"),
        (["--vary", "agent.learning_rate=0.1..0.2"], "--random"),
        (["--vary", "agent.learning_rate=0.2..0.1", "--random=2"], "LOW below HIGH"),
        (["--vary", "agent.learning_rate=.2..0.1", "--random=2"], "LOW below HIGH"),
        (["--vary", "agent.learning_rate=0.1..inf", "--random=2"], "a range has finite ends"),
        (["--vary", "agent.learning_rate=log:.1..inf", "--random=2"], "a range has finite ends"),
        (["--vary", "agent.learning_rate=log:0..1", "--random=2"], "begins above 0"),
        (
            ["--vary", "agent.replay=1..3", "--random=2"],
            "--vary agent.replay=1..3: whole numbers are listed, as agent.replay=4,16,64",
        ),
        (["--vary", "run.seed=1,2"], "fields of run"),
        (["--vary", VARY, "--vary", VARY], "varied twice"),
        (["--random", "3"], "give one"),
        (["--run.num-seeds", "3"], "--seeds"),
        (["--devices", "4096"], "--devices 4096: JAX has only"),
        (["--run.log", "tensorboard"], "--run.log is for a single run: leave it out of a sweep"),
        (["--live"], "--live is for a single run: leave it out of a sweep"),
        (["--distributed=here:1,0,2"], "--distributed is for a single run: leave it out"),
        (
            ["--run.on-nonfinite=restore", "--vary", VARY],
            "--run.on-nonfinite restore is for a single run: leave it out of a sweep",
        ),
        (["--confirm=2"], "--confirm scores the best of several configurations again: leave"),
        (["--run.policy=snake-6x6"], "is a policy of snake, not of tests.train.tiny"),
        (
            ["--run.seed=2147483645", "--vary", VARY],
            "seeds must be below 2**31; 2 from --run.seed 2147483645 and 2 to confirm the best go "
            "up to 2147483648: choose a smaller one",
        ),
        (["--run.evaluation-greedy=3"], "--help"),
        (["--vary", "run.evaluation_greedy=on,off"], "fields of run"),
        (["--agent.nope", "3"], "--agent.nope"),
    ],
)
def test_bad_input_is_refused_in_one_line(flags, message, tmp_path, capsys):
    assert sweep(tmp_path / "s", *flags) == REFUSED
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "s").exists()


@pytest.mark.slow
@pytest.mark.parametrize(("name", "seeds"), [("allo", 10), ("snake", 1)])
def test_a_program_of_several_seeds_has_those_of_the_sweep(name, seeds, tmp_path):
    program = find(name, "here")
    assert next(iter(program.presets.values())).config.run.num_seeds == seeds
    options = Options(vary=["agent.learning_rate=1e-3,2e-3"], directory=str(tmp_path / "s"))
    new_sweep = build.begin(name, "", options, [])
    assert new_sweep.config.run.num_seeds == 1
    assert [trial.seed for trial in new_sweep.planned.trials] == [0, 1, 2] * 2


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize(
    ("variation", "flags", "preset", "count"),
    [
        ("agent.learning_rate=1e-3,1e-4", ["--env.id", "Breakout-MinAtar"], "ppo_minatar", 1),
        ("agent.learning_rate=1e-3,1e-4", ["--env.id", "Acrobot-v1"], "ppo", 0),
        ("env.id=Breakout-MinAtar,Asterix-MinAtar", [], "ppo_minatar", 1),
        ("env.id=CartPole-v1,Acrobot-v1", [], "ppo", 0),
    ],
)
def test_members_have_the_preset_of_their_environment(variation, flags, preset, count, capsys):
    """A single run has the same preset, with the defaults that `--vary` leaves open."""
    program, options = find("gymnax", "here"), Options(vary=[variation])
    config, chosen, _ = build.read(program, "ppo", options, flags)
    assert chosen == preset
    assert config == dataclasses.replace(program.presets[preset].config, env=config.env)
    line = "gymnax: ppo for Breakout-MinAtar is the preset ppo_minatar\n"
    assert capsys.readouterr().out == count * line


def test_a_flag_may_need_the_environments_that_are_varied(tmp_path, capsys):
    """Convolutions are for images, which the default environment does not show."""
    variation = "env.id=Breakout-MinAtar,Asterix-MinAtar"
    flags = ["--network.channels", "4"]
    _, chosen, _ = build.read(find("gymnax", "here"), "", Options(vary=[variation]), flags)
    assert chosen == "ppo_minatar"
    vectors = ["--vary", "env.id=CartPole-v1,Acrobot-v1", "--directory", str(tmp_path / "s")]
    assert command.main(["gymnax", *vectors, *flags]) == REFUSED
    assert "--network.channels has no effect, as it needs images" in capsys.readouterr().err


def test_environments_of_several_presets_are_not_varied_together(tmp_path, capsys):
    vary = ["--vary", "env.id=CartPole-v1,Breakout-MinAtar", "--directory", str(tmp_path / "s")]
    assert command.main(["gymnax", "ppo", *vary]) == REFUSED
    assert capsys.readouterr().err == (
        "--vary needs different presets, ppo for CartPole-v1, ppo_minatar for Breakout-MinAtar: "
        "sweep each of them by itself\n"
    )
    assert not (tmp_path / "s").exists()


@pytest.mark.slow
@pytest.mark.parametrize("choices", ["on,off", "True,false"])
def test_a_switch_is_on_or_off(choices, tmp_path):
    vary = [f"agent.standardise={choices}"]
    new_sweep = build.begin("snake", "", Options(vary, directory=str(tmp_path / "s")), [])
    switches = [group.config.agent.standardise for group in new_sweep.planned.groups]
    assert switches == [True, False]
    with pytest.raises(UsageError, match="a switch is on or off"):
        build.begin("snake", "", Options(["agent.standardise=1,2"]), [])


def test_values_that_data_refuse_are_refused_before_a_long_look_at_these(tmp_path, monkeypatch):
    snake, looks = build.program_of("snake"), []

    def training(config):
        if config.agent.clip != 0.123:
            raise ValueError("left open")
        if config.agent.entropy_weight > 0.01:
            raise ValueError("more than there are steps")
        return snake.training(config)

    def guess(config):
        return dataclasses.replace(config, agent=dataclasses.replace(config.agent, clip=0.123))

    program = snake._replace(complete=looks.append, training=training, guess=guess)
    monkeypatch.setattr(build, "program_of", lambda name: program)
    options = Options(["agent.entropy_weight=0.01,0.02"], directory=str(tmp_path / "s"))
    with pytest.raises(UsageError, match=r"agent\.entropy_weight=0\.02: more than there are steps"):
        build.begin("snake", "", options, [])
    assert not looks


@pytest.mark.slow
def test_what_a_configuration_leaves_to_its_data_is_found_out_once(tmp_path, monkeypatch):
    """The configuration is completed once for all members, before anything is written."""
    snake, calls = build.program_of("snake"), []

    def complete(config):
        calls.append(config)
        agent = dataclasses.replace(config.agent, clip=0.123)
        return dataclasses.replace(config, agent=agent)

    monkeypatch.setattr(build, "program_of", lambda name: snake._replace(complete=complete))
    options = Options(["agent.entropy_weight=0.01,0.02"], directory=str(tmp_path / "s"))
    new_sweep = build.begin("snake", "", options, [])
    assert len(calls) == 1
    assert new_sweep.config.agent.clip == 0.123

    def refuse(config):
        raise ValueError("FILE.npz is empty")

    monkeypatch.setattr(build, "program_of", lambda name: snake._replace(complete=refuse))
    options = Options(options.vary, directory=str(tmp_path / "other"))
    with pytest.raises(UsageError, match=r"FILE\.npz is empty"):
        build.begin("snake", "", options, [])
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("name", ["nope", "os", "7", "snake/"])
def test_an_unknown_program_is_told_which_there_are(name, tmp_path, capsys):
    assert command.main([name, "--vary", VARY, "--directory", str(tmp_path / "s")]) == REFUSED
    guess = " (perhaps snake)" if name == "snake/" else ""
    start = (
        f"there is no program {name}{guess}: choose one of allo, durotaxis, goals, gymnax, snake"
    )
    error = capsys.readouterr().err
    assert error.startswith(start)
    assert error.count("\n") == 1


def test_a_program_that_lacks_a_package_is_not_unknown(tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "lacking_too.py").write_text("import not_installed")
    assert command.main(["lacking_too", "--vary", VARY]) == REFUSED
    error = capsys.readouterr().err
    assert "lacking_too cannot be imported (No module named 'not_installed')" in error
    assert "there is no program" not in error
