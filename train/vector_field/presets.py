"""The presets of `train.vector_field`."""

from dataclasses import replace

from jaxrl.dynamics import bases, rbf
from jaxrl.dynamics.learners import field_learner
from train.host.program import Preset
from train.vector_field.config import Budget, Config, World

EVERY_FIELD = ("limit_cycle", "double_limit_cycle", "multi_attractor")
OBSERVED_WORLD = World(fields=EVERY_FIELD, observation="identity", noise="none", channels=2)
EXACT = field_learner.Config(belief="exact", basis="auto", process_noise=0.03, noise_strength=4.0)
PRESETS: dict[str, Preset] = {
    "vector_field": Preset(Config(), "A limit cycle seen through 20 noisy linear channels."),
    "seen": Preset(
        Config(env=OBSERVED_WORLD, bayesian=EXACT),
        "Three fields whose state is observed.",
    ),
    "duffing": Preset(
        Config(
            env=replace(OBSERVED_WORLD, fields=("duffing",)),
            bayesian=replace(EXACT, grid=rbf.Grid(per_axis=19, half_width=3.5)),
        ),
        "Duffing's oscillator, its state observed.",
    ),
    "spikes": Preset(
        Config(env=World(observation="loglinear", noise="poisson")),
        "Poisson counts of 20 units.",
    ),
    "family": Preset(
        Config(
            learner="family",
            env=World(fields=("duffing",)),
            bayesian=replace(Config().bayesian, prior_speed=2.0),
        ),
        "Only two parameters of the field are unknown.",
    ),
    "lorenz": Preset(
        Config(
            env=World(("lorenz",), 3, "identity", "none", 3, num_inputs=3),
            bayesian=replace(EXACT, fourier=bases.Fourier(400, length=2.0)),
            plane=(0, 2),
        ),
        "The attractor of Lorenz, in three dimensions, its state observed.",
    ),
    "oscillators": Preset(
        Config(
            env=World(("coupled_cycles",), 8, "identity", "none", 8, num_inputs=8),
            bayesian=EXACT,
        ),
        "Four coupled limit cycles, in eight dimensions, their state observed.",
    ),
    "cart_pole": Preset(
        Config(
            env=World(
                ("cart_pole",), 4, "identity", "none", 4, num_inputs=1, authority=0.3, dt=0.02
            ),
            bayesian=replace(
                EXACT,
                basis="polynomial",
                polynomial=bases.Polynomial(4, half_width=5.0),  # as far as speeds can be
                prior_speed=3.0,
            ),
            box=3.0,
            plane=(2, 3),
        ),
        "A cart with a pole on a circular track.",
    ),
    "latent": Preset(
        Config(
            learner="state_space",
            policies=("myopic", "d_optimal", "bang50"),
        ),
        "A state-space model that also learns how the state is observed.",
    ),
    "sequence_vae": Preset(
        Config(
            learner="sequence_vae",
            policies=("d_optimal", "bang50", "random"),
            run=Budget(num_seeds=2, total_steps=10_000, chunk_steps=250),
        ),
        "A sequence VAE that also learns how the state is observed.",
    ),
    "recordings": Preset(
        Config(
            learner="state_space",
            env=World(noise="auto"),
            run=Budget(num_seeds=1, total_steps=600, chunk_steps=25),
        ),
        "A state-space model of data of your own, given by --data.",
    ),
}
