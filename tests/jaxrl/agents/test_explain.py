"""What agents say of themselves agrees with what they do."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrl.agents import dqn, ppo, pqn, recurrent_ppo, sac
from jaxrl.losses.distributions import continuous, discrete, joint
from jaxrl.networks.continuous import GaussianActor, QFunctions
from jaxrl.networks.mlp import MLP, ActorCritic
from jaxrl.networks.recurrent import RecurrentActorCritic
from jaxrl.spectral.control import q_learning
from jaxrl.wrappers import normalisation, self_play

OBS = jnp.array([0.5, -1.0, 2.0])


def actor_critic():
    return ActorCritic(MLP((8,)), 4)


def initial_state(agent, obs: Any = OBS) -> Any:
    return agent.init(jax.random.key(1), obs)


def test_ppo_tells_the_probabilities_and_the_value_that_it_acts_by():
    agent = ppo.make(actor_critic(), ppo.Config())
    state = initial_state(agent)
    explanation = agent.explain(state, (), OBS)
    for seed in range(8):
        action, _, extras = agent.act(state, (), OBS, jax.random.key(seed))
        assert explanation["value"] == extras.value
        np.testing.assert_allclose(
            jnp.log(explanation["probabilities"][action]), extras.log_prob, rtol=1e-5
        )


def test_a_normalised_agent_sees_what_the_inner_one_would():
    inner = ppo.make(actor_critic(), ppo.Config())
    agent = normalisation.make(inner, normalisation.Config(observations=True))
    state = initial_state(agent)
    for value in (3.0, -2.0):  # statistics that matter
        rollout_obs = jnp.full((4, 2, 3), value) + jnp.arange(8.0).reshape(4, 2, 1)
        state = state._replace(params=normalisation.add_batch(state.params, rollout_obs))
    explanation = agent.explain(state, (), OBS)
    _, _, extras = agent.act(state, (), OBS, jax.random.key(0))
    assert explanation["value"] == extras.value
    assert explanation["value"] != inner.explain(state.agent, (), OBS)["value"]


@pytest.mark.parametrize("kind", [dqn, pqn])
def test_q_learners_take_the_action_with_the_largest_q(kind):
    network = MLP((8, 4))
    agent = kind.make(network, kind.Config(), greedy=True)
    state = initial_state(agent)
    explanation = agent.explain(state, (), OBS)
    assert explanation["q"].shape == (4,)
    assert explanation["value"] == explanation["q"].max()
    action, _, _ = agent.act(state, agent.memory(), OBS, jax.random.key(0))
    assert action == np.argmax(explanation["q"])


def test_sac_tells_the_middle_of_its_policy_and_the_lower_critics_value():
    actor = GaussianActor(MLP((8,)), 1, -2.0, 3.0)
    critic = QFunctions(MLP((8,)))
    agent = sac.make(actor, critic, sac.Config(capacity=10, batch_size=2), greedy=True)
    state = initial_state(agent)
    explanation = agent.explain(state, (), OBS)
    action, _, _ = agent.act(state, (), OBS, jax.random.key(0))
    np.testing.assert_allclose(explanation["mean"], action, rtol=1e-6)
    inside = (action - -2.0) / 5.0 * 2 - 1  # critics see actions in the unit box
    q_values: Any = critic.apply(state.learner.params.critic, OBS, inside)
    np.testing.assert_allclose(explanation["value"], np.min(q_values), rtol=1e-4)


@pytest.mark.slow
def test_a_recurrent_agent_tells_what_it_makes_of_its_memory():
    network = RecurrentActorCritic(MLP((8,)), ActorCritic(MLP(()), 4), 5)
    agent = recurrent_ppo.make(network, recurrent_ppo.Config())
    state, memory = initial_state(agent), agent.memory()
    for seed in range(3):
        explanation = agent.explain(state, memory, OBS)
        action, memory, extras = agent.act(state, memory, OBS, jax.random.key(seed))
        np.testing.assert_allclose(explanation["value"], extras.value)
        np.testing.assert_allclose(
            jnp.log(explanation["probabilities"][action]), extras.log_prob, rtol=1e-5
        )


def test_a_table_tells_its_row():
    agent = q_learning.make(q_learning.Config(), 3, 2, greedy=True)
    state = initial_state(agent, jnp.int32(0))._replace(
        q=jnp.array([[0.0, 1.0], [3.0, 2.0], [0.0, 0.0]])
    )
    explanation = agent.explain(state, agent.memory(), jnp.int32(1))
    np.testing.assert_array_equal(explanation["q"], [3.0, 2.0])
    assert explanation["value"] == 3.0


def test_a_policy_of_two_sides_tells_the_learners():
    respond = lambda params, obs, key: jnp.int32(0)
    agent = self_play.make(ppo.make(actor_critic(), ppo.Config()), respond, self_play.Config())
    obs = {"own": OBS, "other": -OBS, "rival": jnp.uint32(3)}
    state = initial_state(agent, obs)
    explanation = agent.explain(state, agent.memory(), obs)
    learner_explanation = ppo.make(actor_critic(), ppo.Config()).explain(state.learner, (), OBS)
    np.testing.assert_allclose(explanation["value"], learner_explanation["value"])


PARAMETERS = [
    discrete.Categorical(jnp.array([0.5, -1.0, 2.0])),
    continuous.Normal(jnp.array([0.5, -1.0]), jnp.array([1.0, 2.0])),
]


def test_probabilities_are_those_of_the_actions():
    policy = PARAMETERS[0]
    probabilities = policy.describe()["probabilities"]
    np.testing.assert_allclose(
        [jnp.exp(policy.log_prob(jnp.int32(k))) for k in range(3)], probabilities, rtol=1e-5
    )


def test_a_normal_tells_the_middle_of_what_it_draws():
    policy = PARAMETERS[1]
    description = policy.describe()
    samples = np.asarray(jax.vmap(policy.sample)(jax.random.split(jax.random.key(0), 4_000)))
    inside = (samples > np.asarray(description["low"])) & (
        samples < np.asarray(description["high"])
    )
    np.testing.assert_allclose(inside.mean(0), 0.683, atol=0.03)
    np.testing.assert_array_equal(description["mean"], policy.mode())


def test_a_squashed_normal_stays_in_its_box():
    policy = continuous.SquashedNormal(PARAMETERS[1], jnp.array([-1.0, 0.0]), jnp.array([1.0, 5.0]))
    description = policy.describe()
    np.testing.assert_allclose(description["mean"], policy.mode(), rtol=1e-6)
    assert (description["low"] >= policy.low).all()
    assert (description["high"] <= policy.high).all()
    assert (description["low"] < description["mean"]).all()


def test_parts_with_the_same_name_are_told_apart():
    description = joint.Joint((PARAMETERS[0], PARAMETERS[0], PARAMETERS[1])).describe()
    assert list(description) == ["probabilities", "probabilities_1", "mean", "low", "high"]


def test_an_agent_that_explains_nothing_says_nothing():
    agent = ppo.make(actor_critic(), ppo.Config())
    silent = type(agent)(agent.init, agent.memory, agent.act, agent.update)
    assert silent.explain(initial_state(agent), (), OBS) == {}
