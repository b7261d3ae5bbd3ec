"""The agents of a configuration of two snakes: a learner, those it meets, and both at once."""

from dataclasses import replace
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn

from envs.two_snake.env import GUEST, MOVED, RIVAL, TwoSnake
from envs.two_snake.observations import OBSERVATIONS
from jaxrl.agents import dqn, ppo
from jaxrl.networks.conv import Conv
from jaxrl.networks.dueling import QNetwork
from jaxrl.networks.mirror import MirrorActorCritic
from jaxrl.networks.mlp import MLP, ActorCritic
from jaxrl.types import Agent, AgentState, PyTree
from jaxrl.wrappers import self_play
from train.host import schedules
from train.host.errors import UsageError
from train.two_snake import trained
from train.two_snake.config import DQN, AnyConfig, reflection, total_updates


def make_network(config: AnyConfig) -> ActorCritic | MirrorActorCritic | QNetwork:
    """Policy and value of the next move, or the values of all moves."""
    network, observation = config.network, OBSERVATIONS[config.env.observation]
    moves = TwoSnake().num_actions
    torso: nn.Module = MLP(network.hidden)
    if observation.is_image:
        torso = nn.Sequential((Conv(), torso))
    if isinstance(config, DQN):
        return QNetwork(torso, moves, network.dueling)
    allowed = observation.safe if network.mask else None
    if reflect := reflection(config):
        return MirrorActorCritic(network.hidden, reflect, allowed)
    return ActorCritic(torso, moves, allowed, network.shared)


def make_learner(config: AnyConfig, greedy: bool = False) -> Agent:
    """The agent of one side."""
    network, sizes = make_network(config), config.loop
    if isinstance(config, DQN):
        return dqn.make(network, with_annealing(config), greedy, sizes.num_envs, sizes.blocks)
    return ppo.make(network, with_annealing(config), greedy, sizes.blocks)


def with_annealing(config: AnyConfig) -> Any:
    """The configuration of the agent, with its schedules in updates."""
    agent, each = config.agent, 1
    if isinstance(config, DQN):
        agent = schedules.scheduled_agent(config.agent, config, config.run.total_steps)
        each = agent.updates_per_rollout
    if not config.anneal:
        return agent
    return replace(agent, anneal_updates=float(total_updates(config) * each))


def acting_state(config: AnyConfig, params: PyTree) -> AgentState:
    """A state of the learner that acts by `params` and cannot learn.

    A DQN that is not greedy explores as much as at the end of its training.
    """
    zero = jnp.zeros((), jnp.int32)
    if isinstance(config, DQN):
        learner = dqn.Learner(params, (), (), zero)
        epsilon = jnp.asarray(config.agent.epsilon_end, jnp.float32)
        return dqn.State(learner, (), (), zero, epsilon)  # pyright: ignore[reportArgumentType]
    return ppo.State(params, (), zero)


def make_agent(config: AnyConfig) -> Agent:
    """The learner; where an agent moves some opponent, with the self-play that does so."""
    learner, opponents = make_learner(config), config.curriculum.opponents()
    if not any(name in opponents for name in MOVED):
        return learner

    def respond(params: PyTree, obs: jax.Array, key: jax.Array) -> jax.Array:
        return moves_of_others(config, learner, acting_state(config, params), obs, key)

    return self_play.make(
        learner,
        respond if RIVAL in opponents else None,
        config.rivals,
        make_guest(config) if GUEST in opponents else None,
    )


def moves_of_others(
    config: AnyConfig, player: Agent, state: AgentState, obs: jax.Array, key: jax.Array
) -> jax.Array:
    """The move of the other snake by its view, or those of several, `[P - 1]`, by theirs."""
    act = lambda obs, key: player.act(state, player.memory(), obs, key)[0]
    if config.env.snakes == 2:
        return act(obs, key)
    return jax.vmap(act)(obs, jax.random.split(key, config.env.snakes - 1))


def make_guest(config: AnyConfig) -> self_play.Guest:
    """The snake of `--opponent`, which is read as late as the first move is traced.

    So a run and its policies can be looked at without that file. It acts as it was trained to, and
    draws its moves if it learned by policy gradients.
    """

    @cache
    def load_guest() -> trained.Player:
        with jax.ensure_compile_time_eval():  # what is read belongs to no trace
            guest = trained.load(config.opponent)
        refuse_unlike(config, guest.name, guest.config)
        return guest._replace(learned=jax.device_get(guest.learned))

    def act(obs: jax.Array, key: jax.Array) -> jax.Array:
        guest = load_guest()
        state, player = acting_state(guest.config, guest.learned), make_learner(guest.config)
        return moves_of_others(config, player, state, obs, key)

    return act


def with_known_guest(config: AnyConfig) -> AnyConfig:
    """The configuration as it is. Raises UsageError for a guest that is not there, or unlike.

    So it is refused before anything is traced.
    """
    if config.opponent and config.curriculum.has_guest:
        refuse_unlike(config, config.opponent, trained.load_config(config.opponent))
    return config


def refuse_unlike(config: AnyConfig, name: str, guest: AnyConfig) -> None:
    """Raises UsageError if a guest would see something else than what it learned from."""
    for field in ("rows", "cols", "observation"):
        ours, its = getattr(config.env, field), getattr(guest.env, field)
        if ours != its:
            raise UsageError(
                f"--opponent {name} has --env.{field} {its}, not {ours}: they cannot meet"
            )
