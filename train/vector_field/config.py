"""The configuration of `train.vector_field`: worlds, learner, policies, budget."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from jaxrl.checks import Count, CountOrZero, NonNegative, Positive, Range
from jaxrl.dependent_fields import needs, never, unless
from jaxrl.dynamics import bases, rbf
from jaxrl.dynamics.learners import field_learner, sequence_vae, state_space_learner
from jaxrl.dynamics.state_space.fitting import fit as state_space_fit
from train.host import training as settings
from train.host.training import Seeds
from train.vector_field.data.files.names import Names

Amount = Annotated[float, Range(above=0.0, most=1e6)]
CART_POLE = "cart_pole"
SAMPLES_PER_UPDATE = 50
"""Samples of each experiment in one update, and so between two scores."""
BASES = ("grid", "fourier", "polynomial")
# When fields have an effect (`jaxrl.dependent_fields`).
NOT_OF_CARTS = unless("is_cart_pole", why="a cart_pole has its own")
OF_DATA = needs("is_of_data", why="it needs --data")
OF_EXPERIMENTS = unless("is_of_data", why="--data are learned from without experiments")
VAE = "it needs learner sequence_vae"
NOT_OF_STATE_SPACE = unless("learner", "state_space", why=VAE)
OF_VAE = needs("learner", "sequence_vae", why=VAE) | needs("is_of_data")
OF_BAYESIAN = needs("learner", "bayesian", "family", why="it needs another learner")
OF_WAVES = "model.field or its grid sets it"


@dataclass(frozen=True)
class World:
    """The systems to experiment on, one world for each field."""

    fields: tuple[str, ...] = ("limit_cycle",)
    """limit_cycle, double_limit_cycle, multi_attractor, duffing, van_der_pol or snowman in the
    plane; lorenz or saddle_cycle in three dimensions; coupled_cycles in 4, 6, 8 or more; network in
    any. cart_pole, alone and in four, is the cart with a pole on a circular track."""
    dimension: Count = 2
    """Dimensions of the latent state."""
    observation: Literal["identity", "linear", "loglinear", "mlp", "full", "no_velocities"] = (
        "linear"
    )
    """How the latent state is observed; identity with noise none: the state itself. Of a cart_pole
    identity, full (sines and cosines of both angles, and speeds) or no_velocities."""
    noise: Literal["gaussian", "poisson", "none", "auto"] = "gaussian"
    """Noise of each channel; poisson counts events and needs the observation loglinear. auto, with
    data: poisson where a channel holds counts, gaussian elsewhere."""
    channels: Annotated[Count, NOT_OF_CARTS] = 20
    """Number of observed channels; with observation identity it has to be that of the
    dimensions."""
    encoder: Annotated[Literal["identity", "linear", "mlp", "state_mlp"], NOT_OF_CARTS] = "identity"
    """How an input moves the latent state; state_mlp: that depends on the state too."""
    num_inputs: Annotated[Count, NOT_OF_CARTS] = 2
    """Number of components of an input; with encoder identity it has to be that of the
    dimensions."""
    authority: Amount = 1.0
    """Largest input, in units of the mean speed of the field within ±2; of a cart_pole in units of
    30 N, at most 1."""
    dt: Amount = 0.1
    """Time step."""
    process_noise: Amount = 0.01
    """Variance of the process noise of each latent component, per unit of time."""
    observation_noise: Annotated[Amount, needs("noise", "gaussian")] = 0.01
    """Variance of each channel, with gaussian noise."""
    bin_width: Amount = 1.0
    """Time in which events are counted: with poisson noise, and for data that are spike times."""

    @property
    def is_cart_pole(self) -> bool:
        """Whether it is the cart with a pole, whose numbers are its own."""
        return CART_POLE in self.fields


@dataclass(frozen=True)
class Budget(settings.Config):
    """How long, how often and where. Steps are samples of each experiment; with data, of the
    gradient."""

    num_seeds: Seeds = 10
    """Independent repetitions side by side, with the seeds seed, seed + 1, …"""
    total_steps: Count = 2_000
    """Samples of each experiment; with data, gradient steps."""
    chunk_steps: Count = 50
    """Samples, or gradient steps, between two rows of the record."""


@dataclass(frozen=True)
class Model:
    """The parts of a sequence VAE; its decoder is of the same kind as the world's."""

    recognition: Literal["gru", "lstm", "mlp"] = "gru"
    """The filter: recurrent, or of the current observation alone."""
    hidden: Count = 16
    """Width of the filter."""
    field: Literal["rbf", "fourier", "mlp", "linear"] = "rbf"
    """The dynamics: radial basis functions on a grid, random waves, a small network, a matrix."""
    grid: rbf.Grid = rbf.Grid(per_axis=15, half_width=4.0)
    """Grid of the radial basis functions, in units of the learned latent state; its dims are those
    of the latent state for every field."""
    fourier: Annotated[
        bases.Fourier, needs("field", "fourier", why=OF_WAVES), never(OF_WAVES).of("dims")
    ] = bases.Fourier(length=2.0)
    """Waves of the field fourier, in units of the learned latent state."""
    effect: Literal["identity", "linear", "mlp", "state_mlp"] = "linear"
    """How inputs move the learned latent state; state_mlp: that depends on the state too."""
    members: Count = 1
    """Size of the ensemble of fields, for the policy disagreement."""
    y_scale: Amount = 1.0
    """Observations are divided by it before the filter."""


GRADIENT_STEPS = state_space_fit.Config()


@dataclass(frozen=True)
class Dynamics:
    """A state-space model of recorded data (jaxrl/dynamics/state_space)."""

    dims: Annotated[int, Range(least=0, most=8)] = 0
    """Dimensions of the state; 0: 1 to 5, chosen by forecasts of an inner share of the data."""
    field: Literal["auto", "rbf", "fourier", "polynomial", "mlp", "linear"] = "auto"
    """The nonlinear part of the field, beside a linear one: radial basis functions on a grid,
    random waves, cubic polynomials, a small network, none; auto: all but random waves are tried, a
    grid in up to three dimensions, and forecasts decide."""
    effect: Literal["linear", "mlp", "state_mlp"] = "linear"
    """How inputs move the state: by a matrix, with a network beside it, or one that also depends on
    the state."""
    prior: NonNegative = 0.0
    """Standard deviation of the weights of the field; 0: chosen by forecasts, too."""
    steps: CountOrZero = 0
    """Gradient steps, over which the learning rate falls to 0; 0: run.total_steps, or fewer where
    forecasts say that more would overfit."""
    delay: tuple[CountOrZero, ...] = ()
    """Steps after which inputs act: one number for all, or one for each; empty: at once, or what
    most_delay finds."""
    most_delay: Annotated[int, Range(least=0, most=200), unless("delay", why="{}delay says it")] = 0
    """Up to how many steps late inputs may act: for each the likeliest number is taken; 0: they act
    at once, unless delay says otherwise."""
    starts: Count = 2
    """Fits side by side from different first guesses; the one of the smallest loss counts. Of
    sessions there is one."""
    fit: Annotated[
        state_space_fit.Config,
        never("{}steps sets it").of("steps"),
        never("{}prior sets it").of("objective.prior"),
        never("a file says of no parameter what it is").of("known"),
    ] = GRADIENT_STEPS
    """The gradient steps."""


OnlineField = Literal["rbf", "fourier", "polynomial", "mlp", "linear"]


@dataclass(frozen=True)
class Online:
    """A state-space model of experiments, which learns how the state is observed, too."""

    fields: tuple[OnlineField, ...] = ("rbf", "polynomial")
    """Nonlinear parts of the field that learn side by side, each beside a linear one; the one of
    the largest marginal likelihood counts. Of the network mlp only the last layer is learned."""
    effect: Literal["linear", "mlp", "state_mlp"] = "linear"
    """How inputs move the state: by a matrix, with a network beside it, or one that also depends on
    the state; of a network only the last layer is learned."""
    agent: Annotated[
        state_space_learner.Config, never("the bounds of inputs set it").of("prior.input_unit")
    ] = field(default_factory=state_space_learner.Config)
    """How it learns; samples of a whole run are stored."""


OF_WORLDS = ("fields", "dimension", "channels", "num_inputs", "encoder", "authority")
OF_WORLDS += ("process_noise", "observation_noise")
"""Fields of a world that recordings do not need."""
OF_BASES = (*BASES, "basis", "linear", "prior_linear")
"""Fields of the Bayesian learner for a field that is a sum of functions."""


@dataclass(frozen=True)
class Config:
    """Learns vector fields online from stimulated experiments, one for each field and policy."""

    policies: Annotated[tuple[str, ...], OF_EXPERIMENTS] = (
        "d_optimal",
        "myopic",
        "bang50",
        "hold20",
        "random",
        "off",
    )
    """off, random, hold20 and bang50 (random inputs, or inputs at their bounds, held for so many
    steps), myopic, d_optimal, a_optimal, disagreement, goal, rnd; several of the last five joined
    by +, such as d_optimal+goal, are weighted. The first one gives the score of the run."""
    env: Annotated[
        World,
        OF_EXPERIMENTS.of(*OF_WORLDS),
        (NOT_OF_STATE_SPACE | unless("is_of_data", why=VAE)).of("observation", "dt"),
        (needs("env.noise", "poisson", why="it needs env.noise poisson") | needs("is_of_data")).of(
            "bin_width"
        ),
    ] = World()
    learner: Literal["bayesian", "family", "sequence_vae", "state_space"] = "bayesian"
    """bayesian: posterior of the field, with a known observation model; family: the same with only
    two unknown parameters of the field; state_space: a model that also learns how the state is
    observed, its filter computed, of experiments or with data; sequence_vae: one whose filter is
    learned."""
    noise_is_known: Annotated[bool, OF_EXPERIMENTS, OF_BAYESIAN] = True
    """bayesian: whether env.process_noise is known; if not, bayesian.process_noise is the prior
    guess."""
    bayesian: Annotated[
        field_learner.Config,
        OF_EXPERIMENTS,
        OF_BAYESIAN,
        unless("learner", "family", why="a family of fields has no basis").of(*OF_BASES),
        unless("noise_is_known", why="noise_is_known is set").of("process_noise", "noise_strength"),
        never("env.dimension sets it").of(*(f"{name}.dims" for name in BASES)),
    ] = field(
        default_factory=lambda: field_learner.Config(
            belief="filtered", basis="auto", process_noise=0.03, noise_strength=4.0
        )
    )
    model: Annotated[Model, NOT_OF_STATE_SPACE, OF_VAE] = field(default_factory=Model)
    vae: Annotated[sequence_vae.Config, NOT_OF_STATE_SPACE, OF_VAE, OF_EXPERIMENTS.of("policy")] = (
        field(default_factory=sequence_vae.Config)
    )
    state_space: Annotated[
        Dynamics,
        OF_DATA,
        needs("learner", "state_space"),
        unless("sessions", why="fits of sessions begin from one guess").of("starts"),
    ] = field(default_factory=Dynamics)
    online: Annotated[
        Online,
        OF_EXPERIMENTS,
        needs("learner", "state_space"),
        never("run.total_steps sets it").of("agent.capacity"),
    ] = field(default_factory=Online)
    box: Annotated[Amount, OF_EXPERIMENTS] = 2.0
    """The field is scored within ± this: at 25 × 25 points of the plane, or at 1,000 points drawn
    in more dimensions."""
    plane: Annotated[
        tuple[int, int],
        OF_EXPERIMENTS,
        unless("env.dimension", 2, why="the plane has two dimensions"),
    ] = (0, 1)
    """Coordinates, counted from 0, of the plane that pictures show; the others are 0 there."""
    stop_gain: Annotated[NonNegative, OF_EXPERIMENTS] = 0.0
    """Stop an experiment that gains less information about the field than this, in nats a sample;
    0: never."""
    stop_over: Annotated[Count, OF_EXPERIMENTS, needs("stop_gain")] = 200
    """Samples in a row that must have gained so little, on the average of each 50 of them."""
    data: tuple[str, ...] = ()
    """Files npz with y, or spike_times, and u, or .mat, CSV and NWB files: a state-space model, or
    a sequence VAE, learns from these data, without experiments. --look beside it shows what is in
    them, and fits nothing."""
    names: Annotated[Names, OF_DATA] = Names()
    """With data: what the files call things, where they do not say it as expected."""
    inputs: Annotated[tuple[str, ...], OF_DATA] = ()
    """With data that are CSV files of spikes: CSV files with the inputs of each, a column of times
    and one for each input, which is held from row to row; "" for a file of another kind."""
    sessions: Annotated[bool, OF_DATA, needs("learner", "state_space")] = False
    """With data: whether each file is a session with channels of its own, such as another day: one
    field for all, and for each a readout."""
    step_time: Annotated[Positive | None, OF_DATA] = None
    """With data: how long a step lasts, for axes and limits; None: as dt in the files says."""
    time_unit: Annotated[str, OF_DATA] = ""
    """With data: the unit of that, such as s or ms; empty: as time_unit in the files says."""
    batch_size: Annotated[Count, OF_DATA, NOT_OF_STATE_SPACE] = 16
    """With data: windows in a gradient step."""
    validation_share: Annotated[float, Range(above=0.0, below=1.0), OF_DATA] = 0.2
    """With data: the share at the end that is held out to score forecasts."""
    run: Budget = field(default_factory=Budget)

    @property
    def is_of_data(self) -> bool:
        """Whether recorded data are learned from, or will be once they are named."""
        can_fit = self.learner in ("state_space", "sequence_vae")
        return bool(self.data) or (can_fit and self.env.noise == "auto")

    def __post_init__(self):
        if isinstance(self.data, str):  # as it was saved when there was one file at most
            object.__setattr__(self, "data", (self.data,) if self.data else ())


def preset_for(preset: str, config: Config) -> str:
    """Data are learned from by the preset recordings, unless a sequence VAE is asked for."""
    if config.data and preset == "vector_field" and config.learner != "sequence_vae":
        return "recordings"
    return preset
