"""Who types what another library calls a thing, or nearly the name here, is told the name."""

import pytest

from train.host.command_line.suggestions import closest_names

IN_PPO = """--anneal-steps --env.id --env.epsilon --run.seed --run.num-seeds --run.total-steps
--run.chunk-steps --run.evaluate-every --run.evaluation-games --run.evaluate-games --run.directory
--run.log --run.checkpoint-every --resume --devices --loop.num-envs --loop.num-steps --loop.blocks
--network.hidden --network.layer-norm --network.no-layer-norm --agent.learning-rate --agent.clip
--agent.discount --agent.final-discount --agent.gae-lambda --agent.entropy-weight --agent.epochs
--agent.entropy-updates --agent.value-weight --agent.minibatches --agent.max-grad-norm
--agent.target-kl"""
IN_DQN = """--agent.learning-rate --agent.discount --agent.batch-size --agent.capacity
--agent.warmup
--agent.epsilon-start --agent.epsilon-end --agent.epsilon-transitions --agent.target-period
--agent.target-step --agent.n-step --agent.prioritised --agent.clip"""
PPO, DQN = IN_PPO.split(), IN_DQN.split()


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("--agent.lr", "--agent.learning-rate"),
        ("--lr", "--agent.learning-rate"),
        ("--learning_rate", "--agent.learning-rate"),
        ("--agent.gamma", "--agent.discount"),
        ("--agent.gae_lambda", "--agent.gae-lambda"),
        ("--agent.lam", "--agent.gae-lambda"),
        ("--agent.ent_coef", "--agent.entropy-weight"),
        ("--agent.entropy-coef", "--agent.entropy-weight"),
        ("--agent.vf-coef", "--agent.value-weight"),
        ("--agent.clip-range", "--agent.clip"),
        ("--n_envs", "--loop.num-envs"),
        ("--loop.n-steps", "--loop.num-steps"),
        ("--agent.batch_size", "--agent.minibatches"),
        ("--total_timesteps", "--run.total-steps"),
        ("--run.steps", "--run.total-steps"),
        ("--seed", "--run.seed"),
        ("--network.hidden_size", "--network.hidden"),
        ("--agent.grad-clip", "--agent.max-grad-norm"),
        ("--run.sed", "--run.seed"),
        ("--agent.learning-rat", "--agent.learning-rate"),
        ("--agent.rate", "--agent.learning-rate"),
        ("--network.norm", "--network.layer-norm"),
        ("--env-name", "--env.id"),
        ("--Agent.Epochs", "--agent.epochs"),
        ("--eval-freq", "--run.evaluate-every"),
    ],
)
def test_the_first_name_is_the_one_that_was_meant(typed: str, meant: str):
    assert closest_names(typed, PPO)[0] == meant


def test_names_of_the_same_part_hide_others():
    assert closest_names("--agent.epsilon", DQN + PPO) == [
        "--agent.epsilon-end",
        "--agent.epsilon-start",
    ]
    assert closest_names("--agent.buffer-size", DQN) == ["--agent.capacity"]
    assert closest_names("--agent.batch", DQN) == ["--agent.batch-size"]
    assert closest_names("--agent.target-update-interval", DQN) == ["--agent.target-period"]


@pytest.mark.parametrize("typed", ["--agent.xyz", "--", "--zebra", "..."])
def test_what_is_like_nothing_gets_no_suggestion(typed: str):
    assert closest_names(typed, PPO) == []


def test_other_names_too():
    assert closest_names("pqo", ["ppo", "pqn", "dqn_minatar"]) == ["ppo", "pqn"]
    assert closest_names("DQN", ["ppo", "dqn", "dqn_minatar"])[0] == "dqn"
    assert closest_names("breakout", ["Breakout-MinAtar", "Asterix-MinAtar"]) == [
        "Breakout-MinAtar"
    ]
    assert closest_names("CartPole", ["CartPole-v1", "Pendulum-v1"]) == ["CartPole-v1"]
    assert closest_names("twosnake", ["snake", "two_snake", "allo"])[0] == "two_snake"
