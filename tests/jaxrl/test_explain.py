"""What agents say of themselves agrees with what they do."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrl.agents import dqn, ppo, pqn, recurrent_ppo, sac
from jaxrl.losses import distributions
from jaxrl.networks.continuous import GaussianActor, QFunctions
from jaxrl.networks.mlp import MLP, ActorCritic
from jaxrl.networks.recurrent import RecurrentActorCritic
from jaxrl.spectral.control import q_learning
from jaxrl.wrappers import normalisation, self_play

OBS = jnp.array([0.5, -1.0, 2.0])


def actor_critic():
    return ActorCritic(MLP((8,)), 4)


def started(agent, obs: Any = OBS) -> Any:
    return agent.init(jax.random.key(1), obs)


def test_ppo_tells_the_probabilities_and_the_value_that_it_acts_by():
    agent = ppo.make(actor_critic(), ppo.Config())
    state = started(agent)
    told = agent.explain(state, (), OBS)
    for seed in range(8):
        action, _, extras = agent.act(state, (), OBS, jax.random.key(seed))
        assert told["value"] == extras.value
        np.testing.assert_allclose(
            jnp.log(told["probabilities"][action]), extras.log_prob, rtol=1e-5
        )


def test_a_normalised_agent_sees_what_the_inner_one_would():
    inner = ppo.make(actor_critic(), ppo.Config())
    agent = normalisation.make(inner, normalisation.Config(observations=True))
    state = started(agent)
    for value in (3.0, -2.0):  # statistics that matter
        rollout_obs = jnp.full((4, 2, 3), value) + jnp.arange(8.0).reshape(4, 2, 1)
        state = state._replace(params=normalisation.added(state.params, rollout_obs))
    told = agent.explain(state, (), OBS)
    _, _, extras = agent.act(state, (), OBS, jax.random.key(0))
    assert told["value"] == extras.value
    assert told["value"] != inner.explain(state.agent, (), OBS)["value"]


@pytest.mark.parametrize("kind", [dqn, pqn])
def test_q_learners_take_the_action_with_the_largest_q(kind):
    network = MLP((8, 4))
    agent = kind.make(network, kind.Config(), greedy=True)
    state = started(agent)
    told = agent.explain(state, (), OBS)
    assert told["q"].shape == (4,)
    assert told["value"] == told["q"].max()
    action, _, _ = agent.act(state, agent.memory(), OBS, jax.random.key(0))
    assert action == np.argmax(told["q"])


def test_sac_tells_the_middle_of_its_policy_and_the_lower_critics_value():
    actor = GaussianActor(MLP((8,)), 1, -2.0, 3.0)
    critic = QFunctions(MLP((8,)))
    agent = sac.make(actor, critic, sac.Config(capacity=10, batch_size=2), greedy=True)
    state = started(agent)
    told = agent.explain(state, (), OBS)
    action, _, _ = agent.act(state, (), OBS, jax.random.key(0))
    np.testing.assert_allclose(told["mean"], action, rtol=1e-6)
    inside = (action - -2.0) / 5.0 * 2 - 1  # critics see actions in the unit box
    both: Any = critic.apply(state.learner.params.critic, OBS, inside)
    np.testing.assert_allclose(told["value"], np.min(both), rtol=1e-4)


def test_a_recurrent_agent_tells_what_it_makes_of_its_memory():
    network = RecurrentActorCritic(MLP((8,)), ActorCritic(MLP(()), 4), 5)
    agent = recurrent_ppo.make(network, recurrent_ppo.Config())
    state, memory = started(agent), agent.memory()
    for seed in range(3):
        told = agent.explain(state, memory, OBS)
        action, memory, extras = agent.act(state, memory, OBS, jax.random.key(seed))
        np.testing.assert_allclose(told["value"], extras.value)
        np.testing.assert_allclose(
            jnp.log(told["probabilities"][action]), extras.log_prob, rtol=1e-5
        )


def test_a_table_tells_its_row():
    agent = q_learning.make(q_learning.Config(), 3, 2, greedy=True)
    state = started(agent, jnp.int32(0))._replace(q=jnp.array([[0.0, 1.0], [3.0, 2.0], [0.0, 0.0]]))
    told = agent.explain(state, agent.memory(), jnp.int32(1))
    np.testing.assert_array_equal(told["q"], [3.0, 2.0])
    assert told["value"] == 3.0


def test_a_policy_of_two_sides_tells_the_learners():
    respond = lambda params, obs, key: jnp.int32(0)
    agent = self_play.make(ppo.make(actor_critic(), ppo.Config()), respond, self_play.Config())
    seen = {"own": OBS, "other": -OBS, "rival": jnp.uint32(3)}
    state = started(agent, seen)
    told = agent.explain(state, agent.memory(), seen)
    alone = ppo.make(actor_critic(), ppo.Config()).explain(state.learner, (), OBS)
    np.testing.assert_allclose(told["value"], alone["value"])


PARAMETERS = [
    distributions.Categorical(jnp.array([0.5, -1.0, 2.0])),
    distributions.Normal(jnp.array([0.5, -1.0]), jnp.array([1.0, 2.0])),
]


def test_probabilities_are_those_of_the_actions():
    made = PARAMETERS[0]
    told = made.describe()["probabilities"]
    np.testing.assert_allclose(
        [jnp.exp(made.log_prob(jnp.int32(k))) for k in range(3)], told, rtol=1e-5
    )


def test_a_normal_tells_the_middle_of_what_it_draws():
    made = PARAMETERS[1]
    told = made.describe()
    drawn = np.asarray(jax.vmap(made.sample)(jax.random.split(jax.random.key(0), 4_000)))
    inside = (drawn > np.asarray(told["low"])) & (drawn < np.asarray(told["high"]))
    np.testing.assert_allclose(inside.mean(0), 0.683, atol=0.03)
    np.testing.assert_array_equal(told["mean"], made.mode())


def test_a_squashed_normal_stays_in_its_box():
    made = distributions.Squashed(PARAMETERS[1], jnp.array([-1.0, 0.0]), jnp.array([1.0, 5.0]))
    told = made.describe()
    np.testing.assert_allclose(told["mean"], made.mode(), rtol=1e-6)
    assert (told["low"] >= made.low).all()
    assert (told["high"] <= made.high).all()
    assert (told["low"] < told["mean"]).all()


def test_parts_with_the_same_name_are_told_apart():
    told = distributions.Joint((PARAMETERS[0], PARAMETERS[0], PARAMETERS[1])).describe()
    assert list(told) == ["probabilities", "probabilities_1", "mean", "low", "high"]


def test_an_agent_that_explains_nothing_says_nothing():
    agent = ppo.make(actor_critic(), ppo.Config())
    silent = type(agent)(agent.init, agent.memory, agent.act, agent.update)
    assert silent.explain(started(agent), (), OBS) == {}
