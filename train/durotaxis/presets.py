"""The presets of `train.durotaxis`."""

from envs.durotaxis.actions import FIXED, Bounds
from envs.durotaxis.rewards import registry
from train.durotaxis.config import Config, Curriculum, Experiment
from train.host.device_presets import wide_preset
from train.host.program import Preset

ISOTROPIC = Experiment(
    spawning="isotropic", action="ratio", spawn=FIXED["isotropic"], num_founders=70
)
DELETE_ONLY = registry.weights_of("combined", distance=0.0)
SPAWN_ONLY = registry.weights_of(
    "combined", distance=0.0, growth=0.0, delete=0.0, spawn=1.0, boundary=1.0
)
PRESETS: dict[str, Preset] = {
    "linear": Preset(
        Config(), "Linear stiffness; progress and arrival are rewarded.", wide="linear_wide"
    ),
    "linear_wide": wide_preset(
        Config(),
        1024,
        8,
        "The same in the shape for GPUs and TPUs: more colonies, shorter rollouts.",
        learning_rate=6e-3,
        minibatches=4,
    ),
    "shallow": Preset(Config(env=Experiment(slope=0.01)), "The same with a fifth of the slope."),
    "exponential": Preset(
        Config(env=Experiment(ground="exponential", slope=0.02)),
        "Exponential stiffness.",
    ),
    "random": Preset(Config(env=Experiment(ground="random")), "New ground in every episode."),
    "isotropic": Preset(
        Config(env=ISOTROPIC),
        "Cells divide in all directions; only deletion is controlled.",
    ),
    "hybrid": Preset(
        Config(env=Experiment(action="nodes")),
        "A choice for every cell, and continuous spawn parameters.",
    ),
    "curriculum": Preset(
        Config(env=Experiment(ground="random"), curriculum=Curriculum(first_width=150.0)),
        "Random ground, and a goal that moves away.",
    ),
    "normal": Preset(
        Config(env=Experiment(weights=registry.weights_of("normal"))),
        "The nineteen reward components of the first version.",
    ),
    "combined": Preset(
        Config(env=Experiment(weights=registry.weights_of("combined"))),
        "Distance, and prices of a crowd and of wrong deletions.",
    ),
    "delete_only": Preset(
        Config(env=Experiment(weights=DELETE_ONLY)),
        "Prices of a crowd and of wrong deletions, and the ending, without distance.",
    ),
    "spawn_only": Preset(
        Config(env=Experiment(weights=SPAWN_ONLY, delta_intensity=0.5)),
        "Prices of where children land, and the ending.",
    ),
    "two_stage": Preset(
        Config(env=Experiment(), curriculum=Curriculum(hold_spawn=0.4)),
        "Deletion alone is learned first, then all of the action.",
    ),
    "tree": Preset(
        Config(env=Experiment(deletion="tree")),
        "The colony stays one tree: the leftmost child takes the place of the dead.",
    ),
    "recovery": Preset(
        Config(env=Experiment(recovery_nodes=5, bounds=Bounds(delete_ratio=(0.0, 1.0)))),
        "The colony may delete all of its cells, and then begins again.",
    ),
    "three_part": Preset(
        Config(env=Experiment(weights=registry.weights_of("three_part"))),
        "Deletion, distance and ending, as in the second version.",
    ),
    "state_machine": Preset(
        Config(env=Experiment(weights=registry.weights_of("state_machine"))),
        "Marks and deadlines of deletion, as in the third version.",
    ),
}
