"""The configuration of `train.vector_field`: worlds, learner, policies, budget; presets."""

import math
import re
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

from envs.base import check_name
from envs.vector_field import VectorField
from envs.vector_field.env import DIMS, FIELDS
from jaxrl import checks
from jaxrl.agents import field_learner, sequence_vae
from jaxrl.checks import INT32, Count, Range
from jaxrl.dynamics import rbf, stimulation
from jaxrl.networks.decoder import Decoder
from jaxrl.networks.fields import ActionEffect, LinearField, MLPField, RBFField
from jaxrl.networks.latent import SequenceVAE
from jaxrl.networks.recognition import GRURecognition, MLPRecognition
from train.host import settings
from train.host.settings import Seeds
from train.vector_field import learners
from train.vector_field.learners import Learner

Amount = Annotated[float, Range(above=0.0, most=1e6)]


@dataclass(frozen=True)
class World:
    """The systems to experiment on, one world for each field."""

    fields: tuple[str, ...] = ("limit_cycle",)
    """limit_cycle, double_limit_cycle, multi_attractor, duffing, van_der_pol or snowman."""
    observation: Literal["identity", "linear", "loglinear", "mlp"] = "linear"
    """How the latent state is observed; identity with noise none: the state itself."""
    noise: Literal["gaussian", "poisson", "none"] = "gaussian"
    """Noise of each channel; poisson counts events and needs the observation loglinear."""
    channels: Count = 20
    """Number of observed channels; 2 for identity."""
    encoder: Literal["identity", "linear", "mlp"] = "identity"
    """How an input moves the latent state."""
    num_inputs: Count = 2
    """Number of components of an input."""
    authority: Amount = 1.0
    """Largest input, in units of the mean speed of the field within ±2."""
    dt: Amount = 0.1
    """Time step."""
    process_noise: Amount = 0.01
    """Variance of the process noise of each latent component, per unit of time."""
    observation_noise: Amount = 0.01
    """Variance of each channel, with gaussian noise."""
    bin_width: Amount = 1.0
    """Time in which events are counted: with poisson noise, and for data that are spike times."""


@dataclass(frozen=True)
class Budget(settings.Config):
    """How long, how often and where. Steps are samples of each experiment."""

    num_seeds: Seeds = 10
    """Independent repetitions side by side, with the seeds seed, seed + 1, …"""
    total_steps: Count = 2_000
    """Samples of each experiment."""
    chunk_steps: Count = 50
    """Samples between two rows of the record."""


@dataclass(frozen=True)
class Model:
    """The parts of a sequence VAE; its decoder is of the same kind as the world's."""

    recognition: Literal["gru", "mlp"] = "gru"
    """The filter: recurrent, or of the current observation alone."""
    hidden: Count = 16
    """Width of the filter."""
    field: Literal["rbf", "mlp", "linear"] = "rbf"
    """The dynamics: radial basis functions on a grid, a small network, or a matrix."""
    grid: rbf.Grid = rbf.Grid(per_axis=15, half_width=4.0)
    """Grid of the radial basis functions, in units of the learned latent state."""
    effect: Literal["identity", "linear", "mlp"] = "linear"
    """How inputs move the learned latent state."""
    members: Count = 1
    """Size of the ensemble of fields, for the policy disagreement."""
    y_scale: Amount = 1.0
    """Observations are divided by it before the filter."""


@dataclass(frozen=True)
class Config:
    """Learns vector fields online from stimulated experiments, one for each field and policy."""

    policies: tuple[str, ...] = ("d_optimal", "myopic", "bang50", "hold20", "random", "off")
    """off, random, hold20 and bang50 (random inputs, or inputs at their bounds, held for so many
    steps), myopic, d_optimal, a_optimal, disagreement. The first one gives the score of the run."""
    env: World = World()
    learner: Literal["bayesian", "family", "sequence_vae"] = "bayesian"
    """bayesian: posterior of the field, with a known observation model; family: the same with only
    two unknown parameters of the field; sequence_vae: a model that also learns how the state is
    observed."""
    noise_is_known: bool = True
    """bayesian: whether env.process_noise is known; if not, bayesian.process_noise is the prior
    guess."""
    bayesian: field_learner.Config = field(
        default_factory=lambda: field_learner.Config(
            belief="filtered", process_noise=0.03, noise_strength=4.0
        )
    )
    model: Model = field(default_factory=Model)
    vae: sequence_vae.Config = field(default_factory=sequence_vae.Config)
    box: Amount = 2.0
    """The field is scored within ± this, at 25 × 25 points."""
    data: tuple[str, ...] = ()
    """Files npz with y, or spike_times, and u: the sequence VAE learns from these data, without
    experiments."""
    batch_size: Count = 16
    """With data: windows in a gradient step."""
    validation_share: Annotated[float, Range(above=0.0, below=1.0)] = 0.2
    """With data: the share at the end that is held out to score forecasts."""
    run: Budget = field(default_factory=Budget)

    def __post_init__(self):
        if isinstance(self.data, str):  # as it was saved when there was one file at most
            object.__setattr__(self, "data", (self.data,) if self.data else ())


EVERY_FIELD = ("limit_cycle", "double_limit_cycle", "multi_attractor")
SEEN = World(fields=EVERY_FIELD, observation="identity", noise="none", channels=2)
EXACT = field_learner.Config(belief="exact", process_noise=0.03, noise_strength=4.0)
PRESETS = {
    "vector_field": Config(),
    "seen": Config(env=SEEN, bayesian=EXACT),
    "duffing": Config(
        env=replace(SEEN, fields=("duffing",)),
        bayesian=replace(EXACT, grid=rbf.Grid(per_axis=19, half_width=3.5)),
    ),
    "spikes": Config(env=World(observation="loglinear", noise="poisson")),
    "family": Config(
        learner="family",
        env=World(fields=("duffing",)),
        bayesian=replace(Config().bayesian, prior_speed=2.0),
    ),
    "sequence_vae": Config(
        learner="sequence_vae",
        policies=("d_optimal", "bang50", "random"),
        run=Budget(num_seeds=2, total_steps=10_000, chunk_steps=250),
    ),
}


def check(config: Config) -> None:
    """Raises ValueError, in one line, for errors that would only show after compilation."""
    checks.config(config)
    rbf.check(config.model.grid)
    if config.data:
        return  # nothing of the learners of experiments matters
    if config.learner != "sequence_vae" and config.bayesian.grid.dims != DIMS:
        dims = config.bayesian.grid.dims
        raise ValueError(f"bayesian.grid.dims is {dims}, expected {DIMS}, as the state has")
    for name in config.env.fields:
        check_name("field", name, FIELDS)
    for what, names in (("fields", config.env.fields), ("policies", config.policies)):
        if not names or len(set(names)) < len(names):
            raise ValueError(
                f"{what} are {', '.join(names) or 'none'}; give at least one, each once"
            )
    for name in config.policies:
        policy(config, name)
    alone = len(config.env.fields) == 1
    if config.learner == "family" and not (alone and {*config.env.fields} <= {*learners.FAMILIES}):
        raise ValueError(
            f"a family needs one field of {', '.join(learners.FAMILIES)}; got "
            f"{', '.join(config.env.fields)}"
        )
    state_is_seen = config.env.observation == "identity" and config.env.noise == "none"
    if config.learner != "sequence_vae" and config.bayesian.belief == "exact" and not state_is_seen:
        raise ValueError(
            "bayesian.belief exact needs the state itself: choose env.observation identity with "
            "env.noise none and env.channels 2, or bayesian.belief filtered"
        )
    if config.learner == "sequence_vae" and config.env.observation not in ("linear", "loglinear"):
        raise ValueError(
            "a sequence_vae is scored through its decoder's matrix: choose env.observation linear "
            f"or loglinear, not {config.env.observation}"
        )


def policies_of(config: Config) -> dict[str, stimulation.Config]:
    """Those of a run, by name."""
    return {name: policy(config, name) for name in config.policies}


def policy(config: Config, name: str) -> stimulation.Config:
    """The policy named `random`, `hold20`, `bang50`, `myopic`, `d_optimal` or the like."""
    ours = (config.vae if config.learner == "sequence_vae" else config.bayesian).policy
    if name == "off":
        return replace(ours, kind="hold", strength=0.0)
    if name == "random":
        return replace(ours, kind="hold", hold_steps=1)
    if held := re.fullmatch(r"(hold|bang)([1-9]\d*)", name):
        at_edge = held[1] == "bang"
        if len(held[2]) > 10 or int(held[2]) > INT32:
            raise checks.OutOfRange("policies", f"is {name}, expected at most {INT32} steps")
        return replace(ours, kind="hold", hold_steps=int(held[2]), at_edge=at_edge)
    if name == "myopic":
        return replace(ours, kind="myopic")
    if name in ("d_optimal", "a_optimal", "disagreement"):
        return replace(ours, kind="planned", objective=name)
    raise ValueError(
        f"policy {name!r} is unknown; expected off, random, hold20, bang50, myopic, d_optimal, "
        "a_optimal or disagreement"
    )


def make_env(config: Config) -> VectorField:
    """One environment for all fields; its parameters select one."""
    world = config.env
    return VectorField(
        world.fields,
        world.observation,
        world.noise,
        world.channels,
        world.encoder,
        world.num_inputs,
    )


def make_learner(config: Config) -> Learner:
    """The learner, with the known parts of the world."""
    env = make_env(config)
    if config.learner == "sequence_vae":
        return learners.latent(env, config.vae, make_model(config))
    settings = config.bayesian
    if config.noise_is_known:
        settings = replace(
            settings, process_noise=config.env.process_noise, noise_strength=math.inf
        )
    family = config.env.fields[0] if config.learner == "family" else ""
    return learners.bayesian(env, settings, family)


def make_model(config: Config) -> SequenceVAE:
    """The sequence VAE. Raises ValueError for parts that do not fit together."""
    model, world = config.model, config.env
    d, counts = model.grid.dims, world.noise == "poisson"
    layers = (model.hidden,)
    filters = {
        "gru": GRURecognition(d, model.hidden, layers, counts, model.y_scale),
        "mlp": MLPRecognition(d, layers, counts, model.y_scale),
    }
    fields = {"rbf": RBFField(model.grid), "mlp": MLPField(d), "linear": LinearField(d)}
    decoder = Decoder(
        d,
        world.channels,
        world.observation,
        "poisson" if counts else "gaussian",
        bin_width=world.bin_width,
    )
    effect = ActionEffect(d, model.effect)
    return SequenceVAE(
        filters[model.recognition], fields[model.field], effect, decoder, model.members
    )


SUMMARIES = {
    "vector_field": "A limit cycle seen through 20 noisy linear channels.",
    "seen": "Three fields whose state is observed.",
    "duffing": "Duffing's oscillator, its state observed.",
    "spikes": "Poisson counts of 20 units.",
    "family": "Only two parameters of the field are unknown.",
    "sequence_vae": "A sequence VAE that also learns how the state is observed.",
}
"""What each preset is."""
