"""The presets of `train.gymnax`, and which of them suits an environment."""

from dataclasses import replace

from jaxrl.agents import dqn, ppo, pqn
from jaxrl.loop import Config as LoopConfig
from jaxrl.wrappers import normalisation
from train.gymnax.actions import family
from train.gymnax.config import DQN, PPO, PQN, SAC, AnyConfig, Recurrent, budget
from train.gymnax.networks import Network
from train.host.device_presets import wide_preset
from train.host.environments import environments
from train.host.environments.environments import Game
from train.host.program import Preset

MINATAR = Game("Breakout-MinAtar")
IMAGES = Network(hidden=(128,), activation="relu")
PPO_MINATAR = PPO(
    env=MINATAR,
    network=Network(channels=(), activation="relu"),
    normalise=normalisation.Config(),
    loop=LoopConfig(num_envs=64, num_steps=128),
    agent=ppo.Config(learning_rate=5e-3, epochs=4, minibatches=8, shuffle_group=16),
    run=budget(10_000_000),
)
RECURRENT = Recurrent(env=Game("MemoryChain-bsuite"))
PQN_MINATAR = PQN(
    env=MINATAR,
    network=replace(IMAGES, layer_norm=True),
    loop=LoopConfig(num_envs=128, num_steps=32),
    agent=pqn.Config(
        lambda_=0.65,
        epochs=2,
        minibatches=32,
        shuffle_group=16,
        epsilon_start=1.0,
        epsilon_end=0.05,
    ),
    explore_share=0.1,
    run=budget(10_000_000),
)
PENDULUM = SAC(env=Game("Pendulum-v1"))
WIDE = "The same in the shape for GPUs and TPUs: more environments, shorter rollouts."
PRESETS: dict[str, Preset] = {
    "ppo": Preset(PPO(), "PPO for vectors and few actions, as CartPole-v1.", wide="ppo_wide"),
    "ppo_wide": wide_preset(PPO(), 512, 32, WIDE, learning_rate=2e-3),
    "ppo_minatar": Preset(
        PPO_MINATAR,
        "PPO for small images, as the games of MinAtar; convolutions by flag.",
        wide="ppo_minatar_wide",
    ),
    "ppo_minatar_wide": wide_preset(PPO_MINATAR, 1024, 32, WIDE, learning_rate=1e-2),
    "ppo_continuous": Preset(
        PPO(
            env=Game("Pendulum-v1"),
            agent=ppo.Config(
                learning_rate=1e-3,
                discount=0.999,
                gae_lambda=0.9,
                epochs=8,
                minibatches=16,
                shuffle_group=4,
                entropy_weight=0.0,
            ),
            run=budget(500_000),
        ),
        "PPO for continuous actions, observations and rewards normalised.",
    ),
    "recurrent": Preset(
        RECURRENT,
        "PPO with a gated recurrent unit, where something must be remembered.",
        wide="recurrent_wide",
    ),
    "recurrent_wide": wide_preset(RECURRENT, 1024, 32, WIDE, learning_rate=5e-3, epochs=2),
    "dqn": Preset(
        DQN(
            loop=LoopConfig(num_envs=10, num_steps=1),
            agent=dqn.Config(
                learning_rate=2.5e-4,
                discount=0.995,  # with 0.99 two of twenty seeds end below 500 in CartPole
                batch_size=128,
                updates_per_rollout=1,
                capacity=10_000,
                warmup=10_000,
                target_period=50,
                loss="squared",
                max_grad_norm=None,
                epsilon_end=0.05,
            ),
            explore_share=0.5,
            importance_share=1.0,
        ),
        "Deep Q-learning for vectors.",
    ),
    "dqn_minatar": Preset(
        DQN(
            env=MINATAR,
            network=IMAGES,
            loop=LoopConfig(num_envs=32, num_steps=4),
            agent=dqn.Config(
                learning_rate=2.5e-4,
                batch_size=64,
                updates_per_rollout=8,
                capacity=100_000,
                warmup=5_000,
                target_period=200,
                epsilon_end=0.01,
            ),
            explore_share=0.1,
            importance_share=1.0,
            run=budget(5_000_000),
        ),
        "Deep Q-learning for small images.",
    ),
    "pqn": Preset(
        PQN(
            loop=LoopConfig(num_envs=32, num_steps=64),
            agent=pqn.Config(
                learning_rate=2.5e-4,
                reward_scale=0.1,
                lambda_=0.95,
                epochs=4,
                minibatches=16,
                shuffle_group=4,
                epsilon_start=1.0,
                epsilon_end=0.05,
                repeat_exponent=2.5,
            ),
        ),
        "Q(λ) without replay or target network (Gallici et al. 2024), for vectors.",
    ),
    "pqn_minatar": Preset(
        PQN_MINATAR,
        "The same for small images, with the settings of its paper.",
        wide="pqn_minatar_wide",
    ),
    "pqn_minatar_wide": wide_preset(PQN_MINATAR, 512, 32, WIDE, learning_rate=2e-3),
    "sac": Preset(PENDULUM, "Soft actor-critic for continuous actions.", wide="sac_wide"),
    "sac_wide": wide_preset(
        PENDULUM,
        64,
        1,
        "The same in the shape for GPUs and TPUs: more environments, fewer and larger batches.",
        batch_size=512,
    ),
}


def preset_for(preset: str, config: AnyConfig) -> str:
    """The preset of an algorithm whose defaults suit the environment of a configuration.

    One of the same shape, if there is one for the environment. Raises ValueError for an environment
    that cannot be made.
    """
    algorithm = next((name for name, other in PRESETS.items() if other.wide == preset), preset)
    of_family = f"{algorithm}_{family(environments.make(config.env))}"
    suited = of_family if of_family in PRESETS else algorithm
    is_wide = algorithm != preset
    return (is_wide and PRESETS[suited].wide) or suited
