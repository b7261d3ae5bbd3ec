"""The configuration of `train.allo`: maze, network, learner, budget; presets."""

from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

import tyro
from flax import linen as nn

from envs.grid.space.continuous_frames import Colours
from jaxrl import checks
from jaxrl.checks import Count, CountOrZero
from jaxrl.dependent_fields import needs, never, unless
from jaxrl.networks.conv import Conv
from jaxrl.networks.mlp import MLP
from jaxrl.spectral.learning import allo
from jaxrl.spectral.learning.allo_config import outputs
from jaxrl.spectral.learning.encoder import Encoder, Fourier, TwoSided
from train.allo.maze import Maze, make_layout
from train.allo.space.frame_input import FrameInput
from train.host import training as settings
from train.host.program import Preset
from train.host.training import Seeds

OF_PICTURES = needs("observation", "rendered")


@dataclass(frozen=True)
class Network:
    """Dense layers and a linear head; pixels pass two convolutions first, larger pictures three."""

    observation: Literal["fourier", "coordinates", "one_hot", "pixels", "rendered"] = "fourier"
    """Input of the network; fourier: coordinates and Fourier features of them; pixels: one a tile;
    rendered: the maze as people see it, several pixels a tile."""
    channels: Annotated[tuple[Count, ...], OF_PICTURES] = (16, 16, 16)
    """Channels of each convolution that rendered pictures pass; each halves their sides."""
    tile: Annotated[Count, OF_PICTURES] = 2
    """Pixels along a tile, in pictures of positions."""
    colours: Annotated[Colours, OF_PICTURES] = "rgb"
    """rgb or grey, of pictures of positions."""
    frequencies: Annotated[Count, needs("observation", "fourier")] = 16
    """Frequencies of the Fourier features along each coordinate."""
    hidden: tuple[Count, ...] = (128, 128, 128)
    """Width of each hidden layer."""


@dataclass(frozen=True)
class Budget(settings.Config):
    """How long, how often and where. Steps are gradient steps."""

    num_seeds: Seeds = 10
    """Independent runs side by side, with the seeds seed, seed + 1, …; each has its own data."""
    total_steps: Count = 5_000
    """Largest number of gradient steps of each seed; with agent.schedule measured a run ends once
    all seeds have settled."""
    chunk_steps: Count = 50
    """Gradient steps of each seed between two rows of the record."""
    checkpoint_every: Count = 10
    """Chunks between two checkpoints. One is also saved at the end, and after a signal."""


OF_MAZES = unless("transitions", why="--transitions takes the place of the maze")
ONLY_OF_MAZES = unless("env.id", why="env.id takes the place of the maze").of(
    *("maze", "maze_file", "allow_disconnected", "wind", "wind_spread", "openings", "doors"),
    *("door_back", "maze_seed", "goal", "step", "truth_cells"),
)


@dataclass(frozen=True)
class Config:
    """Learns eigenvectors of the graph Laplacian of a random walk, without rewards."""

    transitions: Annotated[str, tyro.conf.arg(prefix_name=False, metavar="FILE")] = ""
    """Learn from this .npz file of trajectories of your own instead of a maze: `states`, ids or
    vectors, and what else train/allo/recorded/trajectories.py describes."""
    env: Annotated[Maze, OF_MAZES, ONLY_OF_MAZES] = Maze()
    network: Annotated[
        Network,
        needs("env.step", why="it needs env.step above 0: cells have 6 pixels").of(
            "tile", "colours"
        ),
    ] = Network()
    agent: Annotated[
        allo.Config,
        OF_MAZES.of("capacity", "blocks", "importance", "estimate"),
        unless("env.wind_spread", why="env.wind_spread sets it to pairs").of("estimate"),
        unless("env.explores", why="env.policy exploring sets it to actions").of("estimate"),
        never("env.transitions sets it").of("capacity"),
        never("run.total_steps sets it").of("gradient_steps"),
    ] = allo.Config()
    permute_every: Annotated[
        CountOrZero, unless("agent.directed", why="it needs an agent that is not directed")
    ] = 0
    """Gradient steps between random permutations of the outputs, to test stability; 0: none."""
    run: Budget = field(default_factory=Budget)


PAPER = allo.Config(
    spare_features=0,
    expectation="sampled",
    optimizer="adam",
    learning_rate=1e-3,
    schedule="constant",
    turn_every=0,
    dual_step=1e-4,
    barrier_start=0.5,
    barrier_limit=10_000.0,
)
SAMPLED = allo.Config(
    spare_features=0,
    expectation="sampled",
    batch_size=4096,
    optimizer="adam",
    learning_rate=1e-3,
    schedule="budget",
    turn_every=0,
    dual_step=3e-3,
    barrier_limit=10_000.0,
)
CONTINUOUS = replace(
    SAMPLED,
    spare_features=5,
    batch_size=1024,
    turn_every=50,
    turn_pairs=131_072,
    barrier_limit=4.0,
)
FRAMES = replace(CONTINUOUS, batch_size=256, turn_every=250, steps_per_update=250)
COORDINATES = Network(observation="coordinates", hidden=(256, 256, 256))
LONG = Budget(num_seeds=1, total_steps=20_000, chunk_steps=200)
PRESETS: dict[str, Preset] = {
    "allo": Preset(Config(), "Exact expectations, Muon and Rayleigh-Ritz rotations of the head."),
    "directed": Preset(
        Config(env=Maze(maze="OneWayRooms-4"), agent=allo.Config(directed=True, spare_features=21)),
        "Left and right eigenvectors of walks that doors, portals or wind direct.",
    ),
    "sampled": Preset(
        Config(agent=SAMPLED, run=Budget(total_steps=20_000, chunk_steps=200)),
        "The same as allo from minibatches of sampled pairs.",
    ),
    "continuous": Preset(
        Config(
            agent=CONTINUOUS,
            env=Maze(step=0.5),
            run=Budget(num_seeds=1, total_steps=5_000, chunk_steps=100),
        ),
        "Positions between the walls; also for vectors of --transitions.",
    ),
    "frames": Preset(
        Config(
            agent=FRAMES,
            network=Network(observation="rendered", channels=(8, 16, 16)),
            env=Maze(step=0.5),
            run=Budget(num_seeds=1, total_steps=1_500, chunk_steps=250),
        ),
        "Pictures of the walker between the walls, through convolutions.",
    ),
    "environment": Preset(
        Config(
            agent=CONTINUOUS,
            network=Network(frequencies=8),
            env=Maze(id="MountainCar-v0", transitions=200_000, walk_steps=500),
            run=Budget(num_seeds=2, total_steps=3_000, chunk_steps=100),
        ),
        "Any environment on gymnax's interface, by its name or of a file of your own.",
    ),
    "paper": Preset(
        Config(network=COORDINATES, agent=PAPER, run=LONG),
        "The learner of Gomez, Bowling & Machado (ICLR 2024) with its published constants.",
    ),
    "ggdo": Preset(
        Config(
            network=COORDINATES,
            agent=replace(PAPER, method="ggdo", barrier_start=2.0, barrier_step=0.0),
            run=LONG,
        ),
        "Its baseline, the generalised graph drawing objective (Wang et al. 2021).",
    ),
    "short": Preset(
        Config(
            network=Network(observation="coordinates", hidden=(256,) * 4),
            agent=replace(
                PAPER,
                num_features=10,
                discount=0.2,
                batch_size=256,
                graph_weight=0.5,
                learning_rate=3e-4,
                dual_start=-2.0,
                dual_step=3e-4,
                barrier_step=0.0,
            ),
            env=Maze(walk_steps=1000),
            run=LONG,
        ),
        "The 20,000 steps and sizes of a later script of the authors.",
    ),
}


def make_network(config: Config, num_states: int, observation: str = "") -> nn.Module:
    """Makes the network for `observation`; if that is empty, for the one of the configuration."""
    count = outputs(config.agent, num_states)
    network = replace(config.network, observation=observation or config.network.observation)
    if config.agent.directed:
        return TwoSided(make_torso(network), make_torso(network), count)
    torso = make_torso(network)
    if network.observation == "rendered" and config.env.step:
        layout = make_layout(config.env)
        torso = nn.Sequential((FrameInput(layout, network.tile, network.colours), torso))
    return Encoder(torso, count)


def make_torso(network: Network, observation: str = "") -> nn.Module:
    """All but the head, for `observation`; if that is empty, for the one of the configuration."""
    torso, observation = MLP(network.hidden), observation or network.observation
    if observation == "fourier":
        torso = nn.Sequential((Fourier(network.frequencies), torso))
    if observation == "pixels":
        torso = nn.Sequential((Conv(), torso))
    if observation == "rendered":
        torso = nn.Sequential((Conv(network.channels, strides=2), torso))
    return torso


def learning_config(config: Config) -> allo.Config:
    """The agent's configuration, with the fields that follow from other fields."""
    return replace(
        config.agent,
        gradient_steps=config.run.total_steps,
        capacity=config.env.transitions,
        **({"estimate": "pairs"} if config.env.wind_spread else {}),
        **({"estimate": "actions"} if config.env.explores else {}),
    )


def preset_for(preset: str, config: Config) -> str:
    """The preset that learns from what `config` names, unless another one than the first is."""
    if preset != "allo" or config.transitions:
        return preset
    if config.env.id:
        return "environment"
    if config.env.step:
        return "frames" if config.network.observation == "rendered" else "continuous"
    return preset


def check(config: Config) -> None:
    """Raises ValueError for errors that would only show after compilation, or never."""
    checks.config(config)
    allo.check_config(config.agent)
    walks = config.env.num_walks
    if not config.transitions and walks % config.agent.blocks:
        raise ValueError(
            f"agent.blocks is {config.agent.blocks}; expected a divisor of the {walks} walks of "
            "env.walk_steps that env.transitions are: change one of them"
        )
    if config.permute_every % config.agent.steps_per_update:
        raise ValueError(
            f"permute_every is {config.permute_every}; expected a multiple of "
            f"agent.steps_per_update={config.agent.steps_per_update}"
        )
