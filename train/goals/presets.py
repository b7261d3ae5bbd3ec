"""The presets of `python -m train.goals`: in a maze of cells, and in open space."""

from train.goals.config import Config
from train.goals.space.space_config import SpaceConfig
from train.host.errors import UsageError
from train.host.program import Preset
from train.host.running import saved_runs

PRESETS: dict[str, Preset] = {
    "goals": Preset(
        Config(),
        "Q-learning in six arms, with the same goals and random numbers in each.",
    ),
    "space": Preset(
        SpaceConfig(),
        "Goals and options in open space by PPO, of a run on positions or pictures.",
    ),
}


def preset_for(preset: str, config: Config | SpaceConfig) -> str:
    """The preset that suits the run of train.allo that a configuration names."""
    return "space" if preset == "goals" and is_in_space(config.learned) else preset


def is_in_space(directory: str) -> bool:
    """Whether a run of train.allo learned in open space; False for what is no run."""
    try:
        learned = saved_runs.load_without_checkpoint(directory).config if directory else None
    except UsageError:
        return False  # the training refuses it, with a message of its own
    return bool(getattr(getattr(learned, "env", None), "step", 0))
