"""Presets in the shape for the device."""

import pytest

from train.host import device_presets
from train.host.device_presets import preset_for_device
from train.host.errors import UsageError
from train.host.program import find

PROGRAMS = ("snake", "two_snake", "durotaxis", "gymnax", "allo", "goals", "vector_field")


@pytest.mark.parametrize("name", PROGRAMS)
def test_on_an_accelerator_it_is_the_twin_if_there_is_one(name, monkeypatch):
    program = find(name, "a test")
    for preset in program.presets:
        assert preset_for_device(program, preset) == preset
    monkeypatch.setattr(device_presets, "on_accelerator", lambda: True)
    for preset, (_, _, wide) in program.presets.items():
        assert preset_for_device(program, preset) == (wide or preset)
    for preset in program.presets:  # the twin is in the shape already
        shaped = preset_for_device(program, preset)
        assert preset_for_device(program, shaped) == shaped


@pytest.mark.parametrize(
    ("backend", "preset"), [("cpu", "ppo"), ("gpu", "ppo_wide"), ("tpu", "ppo_wide")]
)
def test_gpus_and_tpus_are_accelerators(backend, preset, monkeypatch):
    monkeypatch.setattr(device_presets.jax, "default_backend", lambda: backend)
    assert preset_for_device(find("snake", "a test"), "ppo") == preset


def test_an_unknown_preset_is_refused_with_the_names_there_are():
    with pytest.raises(
        UsageError, match=r"snake has no preset pp0: choose one of near, ppo, "
    ) as why:
        preset_for_device(find("snake", "a test"), "pp0")
    assert "\n" not in str(why.value)
