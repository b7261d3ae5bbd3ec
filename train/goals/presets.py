"""The presets of `python -m train.goals`: in a maze of cells, and where there are none."""

from train.goals.config import Config
from train.goals.space.space_config import SpaceConfig
from train.host.errors import UsageError
from train.host.program import Preset
from train.host.running import saved_runs

PRESETS: dict[str, Preset] = {
    "goals": Preset(
        Config(),
        "Q-learning with and without each kind of help, of the same goals and random numbers.",
    ),
    "space": Preset(
        SpaceConfig(),
        "Goals and options by PPO, of a run on positions, on pictures or in any environment.",
    ),
}


def preset_for(preset: str, config: Config | SpaceConfig) -> str:
    """The preset that suits the run of train.allo that a configuration names."""
    return "space" if preset == "goals" and has_no_cells(config.learned) else preset


def has_no_cells(directory: str) -> bool:
    """Whether a run of train.allo learned in open space or by env.id; False for what is no run."""
    try:
        run = saved_runs.load_without_checkpoint(directory) if directory else None
    except UsageError:
        return False  # the training refuses it, with a message of its own
    if run is None or run.program.name != "allo":
        return False
    return bool(run.config.env.step or run.config.env.id)
