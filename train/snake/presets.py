"""The presets of `train.snake`."""

from dataclasses import replace

from envs.snake.rewards import cpu_rewards
from jaxrl.agents import dqn, ppo
from jaxrl.loop import Config as LoopConfig
from train.host.device_presets import wide_preset
from train.host.program import Preset
from train.host.training import PlayConfig
from train.snake.config import DQN, PPO, PQN, REWARDS, Game, Network

RAINBOW = dqn.Config(
    learning_rate=5e-4,
    discount=0.995,
    categorical=True,
    value_low=-2.0,
    value_high=30.0,
    prioritised=True,
    n_step=3,
    epsilon_start=0.0,
    epsilon_end=0.0,
)


def raw_board(size: int) -> DQN:
    """The sizes of a published DQN that observes the bare board: one update every four steps."""
    return DQN(
        env=Game(size, size, "board", actions="absolute", max_steps_in_episode=2 * size * size),
        network=Network(hidden=(256, 256, 128)),
        loop=LoopConfig(num_envs=16, num_steps=16),
        run=PlayConfig(total_steps=2_000_000, chunk_steps=20_480, evaluate_every=5),
        agent=dqn.Config(
            batch_size=32,
            updates_per_rollout=64,
            capacity=10_000,
            target_period=100,
            double=False,
        ),
        explore_share=0.002,
        importance_share=1.0,
    )


def compass_dqn(size: int) -> DQN:
    """What the authors of that DQN went on to: a compass, other rewards, an update every step."""
    return DQN(
        env=Game(
            size,
            size,
            "compass",
            actions="absolute",
            max_steps_in_episode=2 * size * size,
            rewards=cpu_rewards(size, size),
        ),
        network=Network(hidden=(256, 256, 128)),
        loop=LoopConfig(num_envs=16, num_steps=4),
        run=PlayConfig(total_steps=1_000_000, chunk_steps=20_480, evaluate_every=5),
        agent=dqn.Config(
            learning_rate=3e-4,
            discount=0.95,
            updates_per_rollout=64,
            capacity=50_000,
            target_period=500,
            double=False,
        ),
        explore_share=0.2,
        importance_share=1.0,
    )


def q_learning(agent: dqn.Config = dqn.Config(), network: Network = Network()) -> DQN:
    """Presets of the system with 256 games at once."""
    return DQN(
        env=Game(observation="flood"),
        network=network,
        loop=LoopConfig(num_envs=256, num_steps=1),
        run=PlayConfig(total_steps=2_000_000, max_episodes=5_000, evaluate_every=3),
        agent=agent,
        explore_share=0.025,
        importance_share=0.5,
    )


WIDE = "The same in the shape for GPUs and TPUs: more games, shorter rollouts."
FILL = PPO(
    env=Game(
        observation="near",
        rules="modern",
        max_steps_in_episode=100_000,
        rewards=replace(REWARDS, win=10.0),
        mirror=True,
    ),
    agent=ppo.Config(discount=0.995, final_discount=0.9995),
    run=PlayConfig(total_steps=100_000_000, chunk_steps=1_000_000, evaluate_every=10),
)
GAPS = replace(
    FILL,
    env=replace(
        FILL.env,
        observation="gaps",
        rewards=replace(FILL.env.rewards, death=-20.0),
        mirror=False,
    ),
    network=Network(hidden=(256, 128), equivariant=True),
    agent=ppo.Config(
        learning_rate=3e-3,
        discount=0.995,
        final_discount=0.999,
        value_weight=0.05,  # values near 50 share the torso: at 0.5 the policy learns later
        epochs=1,
        minibatches=16,
    ),
    run=replace(FILL.run, total_steps=45_000_000),
)
NEAR = PPO(
    env=Game(observation="near", rewards=replace(REWARDS, step=-0.01)),
    network=Network(equivariant=True),
    agent=ppo.Config(learning_rate=4e-3, discount=0.995, epochs=1, minibatches=16),
    run=PlayConfig(total_steps=24_000_000, evaluate_every=5),
)
ONE_STEP = ppo.Config(epochs=1, minibatches=1, standardise=False, gae_lambda=1.0)
PRESETS: dict[str, Preset] = {
    "near": Preset(
        NEAR,
        "PPO that observes the cells around the head and treats left and right alike, classic "
        "rules on 10×10.",
    ),
    "ppo": Preset(
        PPO(),
        "PPO that observes a flood fill and the way to its tail, classic rules on 10×10.",
        wide="ppo_wide",
    ),
    "ppo_wide": wide_preset(PPO(), 8192, 16, WIDE, learning_rate=5e-3),
    "a2c": Preset(
        PPO(agent=ONE_STEP, loop=LoopConfig(num_envs=256, num_steps=5)),
        "A2C (Mnih et al. 2016): one gradient step from each short rollout.",
    ),
    "reinforce": Preset(
        PPO(agent=ONE_STEP, loop=LoopConfig(num_envs=64, num_steps=128)),
        "REINFORCE with a baseline: one gradient step from long rollouts.",
    ),
    "pqn": Preset(
        PQN(), "Q(λ) without replay or target network (Gallici et al. 2024).", wide="pqn_wide"
    ),
    "pqn_wide": wide_preset(PQN(), 8192, 16, WIDE, learning_rate=3e-3),
    "dqn": Preset(
        q_learning(), "Double DQN with replay, 5,000 games of 256 side by side.", wide="dqn_wide"
    ),
    "dqn_wide": wide_preset(
        q_learning(),
        1024,
        1,
        "The same in the shape for GPUs and TPUs: more games, fewer and larger batches.",
        learning_rate=1e-3,
        batch_size=256,
    ),
    "rainbow": Preset(
        replace(
            q_learning(RAINBOW, Network(layer_norm=True, dueling=True, noisy=True, atoms=51)),
            anneal_steps=None,
        ),
        "Rainbow: DQN with the six extensions of Hessel et al. (2018).",
    ),
    "board": Preset(raw_board(10), "A DQN for CPUs that observes the bare 10×10 board."),
    "board20": Preset(raw_board(20), "The same on 20×20."),
    "compass": Preset(
        compass_dqn(20),
        "A DQN for CPUs with a compass, paid for length and against crowding, on 20×20.",
    ),
    "fill": Preset(
        FILL,
        "PPO that learns to fill the board, modern rules on 10×10, 100 million steps.",
        wide="fill_wide",
    ),
    "gaps": Preset(
        GAPS,
        "The same with an observation of the last free cells and 20 for a death: it wins more, "
        "after 45 million steps.",
    ),
    "fill_wide": wide_preset(FILL, 8192, 16, WIDE, learning_rate=5e-3),
}
