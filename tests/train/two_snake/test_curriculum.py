"""Stages of opponents end when they should, and what learns fits its opponents."""

from dataclasses import replace
from functools import partial
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs.two_snake import rules
from envs.two_snake.env import TwoSnake
from jaxrl.agents import ppo
from jaxrl.loop import LoopMetrics
from train.host.training import Training
from train.two_snake.config import PRESETS, Duel
from train.two_snake.curriculum import Curriculum, Stage, Weights, advance, params_at, start
from train.two_snake.training import make_training


def test_a_stage_ends_when_its_own_opponent_is_beaten_or_its_time_is_up():
    """Against a plain loop over games with random numbers of wins."""
    curriculum = Curriculum(
        static=Stage(Weights(static=1.0), won=0.7, share=0.3, target=3),
        random=Stage(Weights(static=1.0, random=2.0), won=0.8, share=0.2, target=4),
        greedy=Stage(Weights(greedy=1.0), share=0.0),
        frozen=Stage(Weights(static=2.0, rival=3.0), won=0.75, share=0.3, target=5),
        pool=Stage(Weights(rival=1.0), won=0.0, share=0.01, target=6),
    )
    names, own, budget, count = ("static", "random", "rival"), (0, 1, 2, 2), 40, 30
    assert curriculum.opponents() == names

    # the progress after each update, by `advance`
    @partial(jax.jit, static_argnums=2)
    def run(met, won, budget):
        def step(progress, games):
            met, won = ({n: x[i] for i, n in enumerate(names)} for x in games)
            finished = {f"met_{n}": x for n, x in met.items()}
            finished |= {f"won_{n}": x for n, x in won.items()}
            metrics = LoopMetrics(jnp.zeros(()), finished, {})
            after = advance(curriculum, progress, metrics, budget)
            return after, after

        return jax.lax.scan(step, start(), (met, won))[1]

    # the plain loop, and that both agree
    rng, reasons = np.random.default_rng(0), set()
    for trial in range(8):
        met = rng.integers(0, 60, (count, 3))
        won = rng.binomial(met, rng.uniform(0.55, 0.95, (1, 3)))
        after = jax.device_get(run(met, won, budget))
        stage, updates, games, wins = 0, 0, 0.0, 0.0
        for i in range(count):
            updates += 1
            games = 0.9 * games + met[i, own[stage]]
            wins = 0.9 * wins + won[i, own[stage]]
            limit = (12, 8, 12, 0.4)[stage]
            beaten = games >= 200 and wins / games >= (0.7, 0.8, 0.75, 0.0)[stage]
            if stage < 3 and (beaten or updates >= limit):
                reasons.add((stage, "beaten" if beaten else "time"))
                stage, updates, games, wins = stage + 1, 0, 0.0, 0.0
            assert (after.stage[i], after.updates[i]) == (stage, updates), trial
            np.testing.assert_allclose([after.games[i], after.won[i]], [games, wins], rtol=1e-5)
    assert len(reasons) == 6  # all three stages ended in both ways
    # each stage has its own target and opponents
    params = TwoSnake(opponents=names, rival=True).default_params
    now = [params_at(curriculum, params, stage) for stage in range(4)]
    assert [int(each.target) for each in now] == [3, 4, 5, 6]
    weights = [np.asarray(each.opponent_weights).tolist() for each in now]
    assert weights == [[1, 0, 0], [1, 2, 0], [2, 0, 3], [0, 0, 1]]


def assert_fits_together(training: Training) -> tuple[Any, LoopMetrics]:
    """An update keeps structure, shapes and dtypes; returns a state and metrics, as shapes."""
    state = jax.eval_shape(training.init, jax.random.key(0))
    after, metrics = jax.eval_shape(training.update, state)
    chex.assert_trees_all_equal_shapes_and_dtypes(after, state)
    return state, metrics


@pytest.mark.slow
def test_a_dqn_and_its_pool_fit_together():
    """Shapes alone: the pool holds parameters as the learner has them, of as many members."""
    config = PRESETS["dqn"].config
    state, metrics = assert_fits_together(make_training(config))
    learner, size = jax.tree.leaves(state.agent.learner.params), config.rivals.pool_size
    pool = jax.tree.leaves(state.agent.pool)
    assert [x.shape for x in pool] == [(size, *x.shape) for x in learner]
    assert {"stage", "snapshots", "updates", "epsilon"} <= set(metrics.agent)


@pytest.mark.slow
def test_the_other_presets_meet_one_opponent():
    """Shapes alone: without a rival, PPO learns by itself."""
    assert PRESETS["direct"].config.curriculum.opponents() == ("rival",)
    assert PRESETS["greedy"].config.curriculum.opponents() == ("greedy",)
    state, metrics = assert_fits_together(make_training(PRESETS["greedy"].config))
    assert isinstance(state.agent, ppo.State)
    assert {name for name in metrics.finished if name.startswith("met_")} == {"met_greedy"}


def test_a_game_to_learn_from_ends_with_the_learner():
    env = Duel(opponents=("greedy", "rival"), rival=True, ends_with_learner=True)
    up = [(0, 4), (1, 4), (2, 4)], 0  # about to run into the wall
    also_up = [(0, 7), (1, 7), (2, 7)], 0
    left = [(5, 6), (5, 7), (5, 8)], 3

    @jax.jit
    def go_straight(state):
        chance = env.chances(jax.random.key(0))[0]
        return env.transition(chance, state, jnp.zeros(2, jnp.int32), env.default_params)

    for (mine, others), over, result in (
        ((up, left), True, "lost"),
        ((left, up), False, None),
        ((up, also_up), True, "draw"),
    ):
        headings = mine[1], others[1]
        state = rules.from_bodies(env.board, (mine[0], others[0]), headings, (9, 9))
        _, _, is_over, info = go_straight(replace(state, opponent=jnp.int32(1)))
        outcome = info["outcome"]
        assert bool(is_over) == over
        assert [name for name in ("won", "lost", "draw") if outcome[name]] == [result] * over
        assert (outcome["met_greedy"], outcome["met_rival"]) == (False, True)
