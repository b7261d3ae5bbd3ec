"""What every program promises: numbers that may be traced, no flag without an effect."""

import dataclasses
import re
import typing
from collections.abc import Iterator
from functools import partial
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bench import faults, flags, traced_numbers
from jaxrl import checks
from jaxrl.spectral.control import q_learning
from tests.train import tiny
from train import evaluate, render
from train.durotaxis.evaluation import options as durotaxis_evaluation
from train.goals import tasks
from train.goals.__main__ import with_run_named
from train.host.command_line import command
from train.host.errors import UsageError
from train.host.plain_config import field_of, numbers, with_field
from train.host.program import find
from train.snake import evaluation as snake_evaluation
from train.snake import rule_based
from train.two_snake import program as two_snake_program

NUMBERS = [  # one of each kind: an agent's, an environment's, a curriculum's, a prior's, a share
    ("snake", "a2c", "env.grown_share"),
    ("allo", "allo", "agent.learning_rate"),
    ("gymnax", "dqn", "explore_share"),
    pytest.param("two_snake", "curriculum", "curriculum.greedy.share", marks=pytest.mark.slow),
    pytest.param("durotaxis", "linear", "env.weights.distance", marks=pytest.mark.slow),
]


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize(("name", "preset", "field"), NUMBERS)
def test_numbers_may_be_traced(name, preset, field):
    program = find(name, "a test")
    config = flags.shrink(program.presets[preset].config)
    assert field in numbers(config)
    assert traced_numbers.is_traceable(program, config, field)


@pytest.mark.slow
@pytest.mark.parametrize("name", flags.PROGRAMS)
def test_the_default_of_every_program_lowers_for_gpus_and_tpus(name):
    """Without such a device: what only a CPU knows would be refused here."""
    program = find(name, "a test")
    training = program.training(flags.shrink(next(iter(program.presets.values())).config))
    state = jax.eval_shape(training.init, jax.random.key(0))
    traced = jax.jit(training.update).trace(state)
    assert traced.lower(lowering_platforms=("cuda", "tpu")).as_text()


def test_every_program_is_killed_and_resumed(tmp_path):
    """Each has a case in the benchmark of faults, whose flags it takes."""
    cases = {case: case.partition("-")[0] for case in faults.CASES}
    assert set(cases.values()) == {*flags.PROGRAMS, "goals"}
    for case, name in cases.items():
        arguments = faults.CASES[case].format(before=tmp_path).split()
        if name in faults.BEFORE:
            arguments = with_run_named(arguments, find(name, "a test").presets)
        config, _ = command.parse(find(name, "a test"), arguments)
        assert config.run.checkpoint_every == 3


@pytest.mark.slow
def test_members_of_a_sweep_are_what_each_run_is_alone():
    """Two learning rates and two seeds under `vmap`, beside four runs of one."""
    config = tiny.PRESETS["plain"].config

    def trained_params(rate: Any, key: jax.Array):
        training = tiny.make_training(with_field(config, "agent.learning_rate", rate))
        state, _ = jax.lax.scan(
            lambda state, _: training.update(state), training.init(key), length=3
        )
        return state.agent.params

    rates, keys = jnp.array([0.01, 0.3]), jax.random.split(jax.random.key(0), 2)
    train_sweep = jax.jit(jax.vmap(jax.vmap(trained_params, in_axes=(None, 0)), in_axes=(0, None)))
    sweep_params = train_sweep(rates, keys)
    for i, rate in enumerate((0.01, 0.3)):
        for j, key in enumerate(keys):
            lone_params = jax.jit(partial(trained_params, rate))(key)
            member_params = jax.tree.map(lambda x, i=i, j=j: x[i, j], sweep_params)
            jax.tree.map(
                partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-6),
                member_params,
                lone_params,
            )


FLAGS = [
    ("snake", "dqn", "agent.value_low", "agent.categorical"),
    ("snake", "pqn", "agent.epsilon_updates", "explore_share"),
    ("two_snake", "greedy", "rivals.pool_size", "no stage has a rival"),
    ("allo", "allo", "agent.batch_size", "agent.expectation sampled"),
    ("durotaxis", "linear", "env.ranges.linear_slope", "env.ground random"),
    ("vector_field", "vector_field", "bayesian.policy.kind", "--policies sets it"),
    ("gymnax", "pqn", "network.shared", "it needs a preset of ppo"),
]


@pytest.mark.parametrize(("name", "preset", "field", "reason"), FLAGS)
def test_a_flag_without_effect_is_refused_with_its_reason(name, preset, field, reason):
    program = find(name, "a test")
    default = program.presets[preset].config
    hints = dict(flags.leaves(default))
    (value, *_) = flags.other_values(field, hints[field], field_of(default, field))
    with pytest.raises(UsageError, match=reason) as error:
        command.refuse_idle(program, with_field(default, field, value), default)
    assert f"--{field.replace('_', '-')} has no effect" in str(error.value)
    command.refuse_idle(program, default, default)


CONFIGS = {
    f"{name} {preset}": config
    for name in (*flags.PROGRAMS, "goals")
    for preset, (config, *_) in find(name, "a test").presets.items()
} | {
    "goals tasks": tasks.Config(),
    "goals learner": q_learning.Config(),
    "evaluate": evaluate.Options(),
    "evaluate snake": snake_evaluation.Options(),
    "evaluate two_snake": two_snake_program.Options(),
    "evaluate durotaxis": durotaxis_evaluation.Options(),
    "render": render.Options(),
    "snake players": rule_based.Options(),
}


def cases_by_kind(configs: dict[str, Any]) -> list:
    """Cases of a parameter, slow but for the first of each class: others differ in values alone."""
    first = {type(config): name for name, config in reversed(configs.items())}
    return [
        pytest.param(
            config, id=name, marks=[] if first[type(config)] == name else [pytest.mark.slow]
        )
        for name, config in configs.items()
    ]


@pytest.mark.parametrize("config", cases_by_kind(CONFIGS))
def test_every_number_is_checked_and_named(config: Any):
    checks.config(config)
    wrong_values = list(numbers_that_nothing_can_use(config))
    assert wrong_values
    for field, value in wrong_values:
        message = f"{field}[0] is {value[0]}" if isinstance(value, tuple) else f"{field} is {value}"
        with pytest.raises(checks.OutOfRange, match=f"^{re.escape(message)}, expected "):
            checks.config(with_field(config, field, value))


def numbers_that_nothing_can_use(config: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """`(dotted name, value)`: NaN for every float, 10³⁰ and a half for every integer, below too."""
    hints = typing.get_type_hints(type(config), include_extras=True)
    for field in dataclasses.fields(config):
        name, value = f"{path}{field.name}", getattr(config, field.name)
        if dataclasses.is_dataclass(value):
            yield from numbers_that_nothing_can_use(value, f"{name}.")
            continue
        for wrong in wrong_numbers(hints[field.name]):
            yield name, wrong


def wrong_numbers(kind: Any) -> list:
    """Values that no field with this annotation can use; none if it has no numbers."""
    parts = typing.get_args(kind)
    if kind in (int, float):
        return [10**30, 0.5] if kind is int else [float("nan")]
    if typing.get_origin(kind) is tuple:
        count = 1 if parts[-1] is ... else len(parts)
        return [(wrong,) * count for wrong in wrong_numbers(parts[0])]
    if typing.get_origin(kind) is Annotated or type(None) in parts:
        return wrong_numbers(parts[0])
    return []


def test_every_preset_has_a_line_that_says_what_it_is():
    for name in (*flags.PROGRAMS, "goals"):
        program = find(name, "a test")
        assert all(preset.summary.endswith(".") for preset in program.presets.values())


def test_fields_that_are_idle_or_static_exist():
    for name in flags.PROGRAMS:
        program = find(name, "a test")
        for config, *_ in program.presets.values():
            for field in (*command.idle_fields(program, config), *program.static):
                field_of(config, field)
            assert dataclasses.is_dataclass(config)
