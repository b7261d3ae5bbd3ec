"""Recurrent PPO: sequences, targets and updates against plain loops, and a task for a memory."""

import itertools
from dataclasses import dataclass
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxrl import acting, loop
from jaxrl.agent_checker import agent_checker
from jaxrl.agents import ppo, recurrent_ppo
from jaxrl.losses.distributions.discrete import Categorical
from jaxrl.networks.mlp import MLP, ActorCritic, GaussianActorCritic
from jaxrl.networks.recurrent import RecurrentActorCritic
from jaxrl.types import Transition, where_tree
from tests.jaxrl import toy_environments as toy

T, N, D, A, H = 9, 4, 3, 3, 6
USUAL = recurrent_ppo.Config()


@dataclass(frozen=True)
class Noise:
    """Observations `[D]` and rewards are noise, and so is when and how an episode ends."""

    terminates: float = 0.2
    truncates: float = 0.2

    def reset(self, key, params):
        return jax.random.normal(key, (D,)), ()

    def step(self, key, state, action, params):
        keys = jax.random.split(key, 5)
        obs, fresh = (jax.random.normal(k, (D,)) for k in keys[:2])
        terminated = jax.random.bernoulli(keys[2], self.terminates)
        truncated = jax.random.bernoulli(keys[3], self.truncates) & ~terminated
        shown_obs = jnp.where(terminated | truncated, fresh, obs)
        reward = jax.random.normal(keys[4])
        return shown_obs, (), reward, terminated, truncated, {"final_observation": obs}


class Lab(NamedTuple):
    """An agent in the middle of its episodes, and what it has just done."""

    network: Any
    state: recurrent_ppo.State
    rollout: Transition  # [T, N]


def collect(env, steps: int = T) -> Lab:
    """The second of two rollouts; all weights are drawn anew, so that memory matters."""
    network: Any = RecurrentActorCritic(MLP((8,), "tanh"), ActorCritic(MLP(()), A), H)
    agent = recurrent_ppo.make(network, USUAL)
    train_loop = loop.make_loop(env, (), agent, loop.Config(N, steps))

    def run(key):
        start_key, key = jax.random.split(key)
        start = train_loop.init(start_key)
        leaves, structure = jax.tree.flatten(start.agent.params)
        keys = jax.random.split(key, len(leaves))
        random_leaves = [
            0.7 * jax.random.normal(k, x.shape) for k, x in zip(keys, leaves, strict=True)
        ]
        state = start.agent._replace(params=jax.tree.unflatten(structure, random_leaves))
        step = lambda world, _: acting.step(env, (), agent, state, world)
        world, _ = jax.lax.scan(step, loop.world_of(start), length=steps)
        _, (rollout, _) = jax.lax.scan(step, world, length=steps)
        return state, rollout

    return Lab(network, *jax.jit(run)(jax.random.key(1)))


@pytest.fixture(scope="module")
def lab() -> Lab:
    setup = collect(Noise())
    done = np.asarray(setup.rollout.terminated | setup.rollout.truncated)
    assert done[:-1].any()  # inside the rollout
    assert (np.abs(setup.rollout.extras.memory[0]).sum(axis=1) > 0).sum() >= 2  # amid episodes
    return setup


def sequences_of(lab: Lab, config=USUAL) -> recurrent_ppo.Sequences:
    return recurrent_ppo.make_sequences(lab.network, lab.state.params, lab.rollout, config)


@pytest.mark.slow
def test_before_the_first_step_every_ratio_is_1(lab):
    sequences = sequences_of(lab)
    apply = lambda starts: lab.network.apply(
        lab.state.params, sequences.steps.obs, sequences.memory, starts, method="sequence"
    )
    policy, value = apply(sequences.starts)
    extras = lab.rollout.extras
    np.testing.assert_allclose(policy.log_prob(lab.rollout.action), extras.log_prob, atol=1e-5)
    np.testing.assert_allclose(value, extras.value, atol=1e-5)
    _, metrics = recurrent_ppo.loss(
        lab.network, lab.state.params, sequences, recurrent_ppo.Config()
    )
    assert abs(float(metrics["kl"])) < 1e-6
    assert float(metrics["clip_fraction"]) == 0.0
    policy, value = apply(jnp.zeros_like(sequences.starts))  # memories that outlive an episode
    assert np.abs(policy.log_prob(lab.rollout.action) - extras.log_prob).max() > 0.1
    assert np.abs(value - extras.value).max() > 0.1


def plain_targets(lab: Lab, discount: float, lambda_: float) -> tuple[Any, Any]:
    """Advantages and targets `[T, N]`: one environment after another, the network step by step."""
    apply = jax.jit(lambda obs, memory: lab.network.apply(lab.state.params, obs, memory)[1:])
    obs, _, reward, next_obs, terminated, truncated, extras = jax.tree.map(np.asarray, lab.rollout)
    advantage, value = np.zeros((T, N)), np.zeros((T, N))
    for n in range(N):
        memory, delta = extras.memory[0, n], np.zeros(T)
        for t in range(T):
            value[t, n], memory = apply(obs[t, n], memory)
            future = 0.0 if terminated[t, n] else float(apply(next_obs[t, n], memory)[0])
            delta[t] = reward[t, n] + discount * future - value[t, n]
            if terminated[t, n] or truncated[t, n]:
                memory = np.zeros(H, np.float32)
        for t, k in itertools.combinations_with_replacement(range(T), 2):
            if not (terminated[t:k, n] | truncated[t:k, n]).any():
                advantage[t, n] += (discount * lambda_) ** (k - t) * delta[k]
    return advantage, advantage + value


def test_advantages_bootstrap_from_the_successor_and_the_memory_after_the_step(lab):
    config = recurrent_ppo.Config(discount=0.9, gae_lambda=0.8)
    steps = jax.jit(lambda: sequences_of(lab, config).steps)()
    done = np.asarray(lab.rollout.terminated | lab.rollout.truncated)
    assert np.asarray(lab.rollout.truncated)[:-1].any()
    assert not done[-1].all()  # some episode goes on beyond the last row
    advantage, target = plain_targets(lab, 0.9, 0.8)
    np.testing.assert_allclose(steps.advantage, advantage, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(steps.target, target, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("value_clip", [None, 0.1])
def test_episodes_of_one_step_are_learned_as_without_a_memory(value_clip):
    """The gradient is that of PPO on a shuffled heap of observations, each with no past."""
    lab = collect(Noise(terminates=1.0), steps=4)
    config = recurrent_ppo.Config(value_clip=value_clip, entropy_weight=0.1)
    sequences = jax.jit(lambda: sequences_of(lab, config))()
    moved_params: Any = jax.tree.map(
        lambda x: 1.7 * x, lab.state.params
    )  # so that ratios leave the clip
    heap = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), lab.rollout)
    error = np.asarray(heap.reward - heap.extras.value)
    advantage = jnp.asarray((error - error.mean()) / error.std())

    def plain(params):
        apply = lambda obs: lab.network.apply(params, obs, jnp.zeros(H))
        policy, value, _ = jax.vmap(apply)(heap.obs)
        log_p = jax.nn.log_softmax(policy.logits)
        ratio = jnp.exp(log_p[jnp.arange(len(error)), heap.action] - heap.extras.log_prob)
        gain = jnp.minimum(ratio * advantage, jnp.clip(ratio, 0.8, 1.2) * advantage)
        distance = (value - heap.reward) ** 2
        if value_clip is not None:
            near = heap.extras.value + jnp.clip(value - heap.extras.value, -0.1, 0.1)
            distance = jnp.maximum(distance, (near - heap.reward) ** 2)
        entropy = -jnp.sum(jnp.exp(log_p) * log_p, axis=-1)
        return jnp.mean(-gain + 0.5 * 0.5 * distance - 0.1 * entropy)

    loss = lambda params: recurrent_ppo.loss(lab.network, params, sequences, config)
    (loss_value, metrics), gradient = jax.jit(jax.value_and_grad(loss, has_aux=True))(moved_params)
    expected, slope = jax.jit(jax.value_and_grad(plain))(moved_params)
    assert 0 < float(metrics["clip_fraction"]) < 1
    np.testing.assert_allclose(loss_value, expected, rtol=1e-4)
    chex.assert_trees_all_close(gradient, slope, rtol=1e-3, atol=1e-5)


@pytest.mark.slow
def test_an_update_takes_adam_steps_on_halves_of_the_environments(lab):
    """The result is that of one of the six ways to split four environments into two halves."""
    config = recurrent_ppo.Config(epochs=1, minibatches=2, learning_rate=0.03, max_grad_norm=0.1)
    agent = recurrent_ppo.make(lab.network, config)
    optimizer = optax.chain(optax.clip_by_global_norm(0.1), optax.adam(0.03, eps=1e-5))
    sequences = jax.jit(lambda: sequences_of(lab, config))()

    # Optax on the two halves, one after the other.
    @jax.jit
    def plain(halves):
        params: Any = lab.state.params
        state = optimizer.init(params)
        for half in halves:
            columns = (sequences.steps, sequences.starts)
            steps, starts = jax.tree.map(lambda x, h=half: x[:, h], columns)
            half_batch = recurrent_ppo.Sequences(steps, starts, sequences.memory[half])
            loss = lambda params, one=half_batch: recurrent_ppo.loss(
                lab.network, params, one, config
            )[0]
            change, state = optimizer.update(jax.grad(loss)(params), state)
            params = optax.apply_updates(params, change)
        return params

    # An update is one of the six candidates, and not always the same.
    halves = [
        (*half, *sorted({*range(N)} - {*half})) for half in itertools.combinations(range(N), 2)
    ]
    candidates = [plain(jnp.array(order).reshape(2, 2)) for order in halves]
    update = jax.jit(agent.update)
    splits = set()
    for seed in range(4):
        state, metrics = update(lab.state, lab.rollout, jax.random.key(seed))
        distance = [
            float(optax.tree.norm(jax.tree.map(jnp.subtract, state.params, other)))
            for other in candidates
        ]
        assert min(distance) < 1e-4
        assert sorted(distance)[1] > 1e-3
        splits.add(int(np.argmin(distance)))
        assert state.updates == 1
        assert all(np.isfinite(x) for x in metrics.values())
    assert len(splits) > 1  # other keys, other halves


@pytest.mark.slow
def test_learning_rate_and_entropy_weight_fall_to_zero():
    config = recurrent_ppo.Config(learning_rate=0.1, entropy_weight=0.4, anneal_updates=4.0)
    for updates, share in [(0, 1.0), (1, 0.75), (4, 0.0), (9, 0.0)]:
        annealed_config = recurrent_ppo.with_annealing(config, jnp.int32(updates))
        np.testing.assert_allclose(annealed_config.learning_rate, 0.1 * share, atol=1e-7)
        np.testing.assert_allclose(annealed_config.entropy_weight, 0.4 * share, atol=1e-7)
        assert annealed_config.discount == config.discount


def test_sequences_must_be_shared_out_equally(lab):
    agent = recurrent_ppo.make(lab.network, recurrent_ppo.Config(minibatches=3))
    with pytest.raises(ValueError, match="of 4 environments cannot be split into 3 equal"):
        jax.eval_shape(agent.update, lab.state, lab.rollout, jax.random.key(0))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"value_clip": 0.0}, "^value_clip is 0.0, expected a number above 0.0"),
        ({"minibatches": 0}, "^minibatches is 0, expected a number at least 1"),
        ({"gae_lambda": 1.1}, "^gae_lambda is 1.1, expected a number at least 0.0 and at most 1"),
        ({"adam_epsilon": float("nan")}, "^adam_epsilon is nan, expected a number above 0.0"),
    ],
)
def test_numbers_that_nothing_can_be_learned_with_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        recurrent_ppo.make(None, recurrent_ppo.Config(**wrong))


@pytest.mark.parametrize(
    ("network", "config", "message"),
    [
        (
            None,
            ppo.Config(),
            "config is a jaxrl.agents.ppo.Config, .* jaxrl.agents.recurrent_ppo.C",
        ),
        (
            RecurrentActorCritic,
            USUAL,
            "network is the class RecurrentActorCritic, .*: give an inst",
        ),
        (ActorCritic(MLP(()), 2), USUAL, r"mlp.ActorCritic, .*initial_memory: give .* to ppo"),
    ],
)
def test_what_is_for_another_agent_is_refused_in_one_line(network, config, message):
    with pytest.raises(ValueError, match=message) as error:
        recurrent_ppo.make(network, config)
    assert "\n" not in str(error.value)


def test_a_network_with_the_wrong_output_is_refused_when_it_is_made(key):
    class Rows:
        """Takes a board for a batch of its rows."""

        initial_memory = lambda self: jnp.zeros(H)
        init = lambda self, key, obs, memory: ()
        apply = lambda self, params, obs, memory: (Categorical(obs), obs[..., 0], memory)

    with pytest.raises(ValueError, match="policies of shape \\[4\\] for one observation"):
        recurrent_ppo.make(Rows(), USUAL).init(key, jnp.zeros((4, A)))


def test_a_network_without_heads_is_refused(key):
    class Cell:
        """Returns what it saw and the memory."""

        initial_memory = lambda self: jnp.zeros(H)
        init = lambda self, key, obs, memory: ()
        apply = lambda self, params, obs, memory: (obs, memory)

    with pytest.raises(ValueError, match=r"expected \(policy, value, memory\)"):
        recurrent_ppo.make(Cell(), USUAL).init(key, jnp.zeros(A))


DISCRETE = ActorCritic(MLP(()), 2)
GAUSSIAN = GaussianActorCritic(MLP((5,)), MLP(()), 1, low=-1.0, high=1.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("env", "heads"),
    [(toy.TruncatedClimb(), DISCRETE), (toy.TargetAction(), GAUSSIAN)],
    ids=["discrete", "continuous"],
)
def test_it_keeps_the_contract_of_agents(env, heads):
    network = RecurrentActorCritic(MLP((8,)), heads, H)
    config = recurrent_ppo.Config(epochs=2, value_clip=0.2)
    agent, greedy = (recurrent_ppo.make(network, config, greedy=x) for x in (False, True))
    agent_checker(agent, env, (), greedy)


@pytest.mark.slow
def test_configs_vmap_in_one_trace(lab):
    traces = chex.assert_max_traces(n=1)

    @jax.jit
    @traces
    def sweep(rates, clips, key):
        def learn(rate, clip):
            config = recurrent_ppo.Config(learning_rate=rate, value_clip=clip, minibatches=2)
            agent = recurrent_ppo.make(lab.network, config)
            return agent.update(lab.state, lab.rollout, key)[0].params

        return jax.vmap(learn)(rates, clips)

    rates, clips = jnp.array([0.0, 1e-2, 1e-2]), jnp.array([0.2, 1e-3, 1e6])
    params = sweep(rates, clips, jax.random.key(0))
    sweep(2 * rates, clips, jax.random.key(1))
    one = lambda i: jax.tree.map(lambda x: x[i], params)
    chex.assert_trees_all_equal(one(0), lab.state.params)
    config = recurrent_ppo.Config(learning_rate=1e-2, value_clip=1e-3, minibatches=2)
    update = jax.jit(recurrent_ppo.make(lab.network, config).update)
    single_state, _ = update(lab.state, lab.rollout, jax.random.key(0))
    chex.assert_trees_all_close(one(1), single_state.params, rtol=1e-4, atol=1e-5)
    value = lambda i: np.asarray(one(i)["params"]["heads"]["value"]["kernel"])
    assert not np.allclose(value(1), value(2), rtol=1e-4)  # the clip of values was felt


@dataclass(frozen=True)
class Recall:
    """A cue of 0 or 1, shown at the first of `length` steps; the last action should name it.

    The last reward is 1 if it does, else -1, all others 0. A policy without memory gets 0 on
    average, whatever it does: what it sees at the last step is all zeros after either cue, since
    actions change nothing, so it names 1 with the same probability p after both. Both cues are
    equally likely, hence it is right with probability (p + (1 - p)) / 2 = 1/2.
    """

    length: int = 5

    def reset(self, key, params):
        cue = jax.random.bernoulli(key).astype(jnp.int32)
        return jax.nn.one_hot(cue, 2), (cue, jnp.zeros((), jnp.int32))

    def step(self, key, state, action, params):
        cue, time = state
        is_last = time == self.length - 1
        reward = jnp.where(is_last, jnp.where(action == cue, 1.0, -1.0), 0.0)
        after = (jnp.zeros(2), (cue, time + 1))
        obs, state = where_tree(is_last, self.reset(key, params), after)
        return obs, state, reward, is_last, jnp.bool_(False), {"final_observation": jnp.zeros(2)}


@pytest.mark.slow
def test_what_no_policy_without_memory_can_do_is_learned(key):
    env = Recall()
    network: Any = RecurrentActorCritic(MLP((16,)), ActorCritic(MLP(()), 2), 16)
    config = recurrent_ppo.Config(learning_rate=1e-2, anneal_updates=60.0, minibatches=2)
    agent = recurrent_ppo.make(network, config)
    train_loop = loop.make_loop(env, (), agent, loop.Config(num_envs=32, num_steps=2 * env.length))
    chunk = loop.make_chunk(train_loop.update, 60)
    state, metrics = jax.jit(lambda key: chunk(train_loop.init(key)))(key)
    returns = np.asarray(metrics.finished["return"] / metrics.episodes)
    assert abs(returns[0]) < 0.5  # chance at first: mean 0, standard deviation 1/8
    assert returns[-10:].mean() > 0.9

    def last_reward(cue: int, forgetful: bool) -> float:
        greedy = recurrent_ppo.make(network, config, greedy=True)
        obs, memory, reward = jax.nn.one_hot(cue, 2), greedy.memory(), 0.0
        place = (jnp.int32(cue), jnp.int32(0))
        for _ in range(env.length):
            before = greedy.memory() if forgetful else memory
            action, memory, _ = greedy.act(state.agent, before, obs, jax.random.key(0))
            obs, place, reward, *_ = env.step(jax.random.key(0), place, action, ())
        return float(reward)

    assert [last_reward(cue, forgetful=False) for cue in (0, 1)] == [1.0, 1.0]
    assert sum(last_reward(cue, forgetful=True) for cue in (0, 1)) == 0.0
