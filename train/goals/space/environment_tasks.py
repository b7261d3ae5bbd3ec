"""Tasks in an environment of a user's own, from the eigenvectors that `train.allo` learned there.

States have no numbers there: goals are observations of walks, and a potential is a function of what
is observed. Axes: M observations, d features, P numbers of a place, K tasks.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn
from gymnax.environments import spaces

from jaxrl.networks.conv import Conv
from jaxrl.networks.mlp import MLP, ActorCritic, GaussianActorCritic
from jaxrl.numerics.linalg import matmul
from jaxrl.numerics.trees import take
from jaxrl.spectral.control import potentials
from jaxrl.spectral.learning import allo_state
from jaxrl.spectral.learning.encoder import Fourier, Standardise
from train.allo.environment import environment_training
from train.allo.environment.environment_training import Problem
from train.allo.environment.walks import game_of, record
from train.goals.config import seed_of_tasks
from train.goals.features import one_step_eigenvalues
from train.goals.space.guided_environment import GuidedEnvironment, Params, Pay, Sight
from train.goals.space.space_config import LIMIT, WAVES, SpaceConfig
from train.goals.space.space_tasks import Task, Tasks
from train.host.environments import environments
from train.host.program import Run

ARMS = ("none", "straight line", "learned distance")
"""Those of open space, but for the fewest moves, which nobody knows."""
SAMPLES = 4_096
"""M: of walks of the policy that eigenvectors were learned from."""
NEAR = 0.01
"""The share of these that is there, at a goal; of numbered observations it is the goal alone."""


def make_tasks(config: SpaceConfig, run: Run) -> Tasks:
    """Raises ValueError for actions that no learner here takes, and for too many goals."""
    environments.make(game_of(run.config.env))  # tells what spoils values; walks have none
    problem = environment_training.make_problem(run.config)
    scale, task = make_scale(problem, run), problem.walks.task
    network, look = make_network(config, problem, scale), make_look(problem, run, scale)
    draw = lambda key: look(observations(problem, key))
    samples = jax.jit(draw)(jax.random.key(seed_of_tasks(config)))
    pairs = [*goal_tasks(config, run, problem, samples), *option_tasks(config, samples)]
    pay = jax.tree.map(lambda *x: jnp.stack(x), *(pay for _, pay in pairs))
    limit = int(task.limit or LIMIT)
    params = Params(task.params, pay, limit)  # pyright: ignore
    axes: Any = Params(None, 0, None)  # pyright: ignore
    env = GuidedEnvironment(task.env, look)
    tasks = [own for own, _ in pairs]
    return Tasks(run, problem, env, params, axes, tasks, run.config.env.id, network, limit, ARMS)


def observations(problem: Problem, key: jax.Array) -> jax.Array:
    """`[M, ...]` of fresh walks. Consumes `key`."""
    walk_key, choice_key = jax.random.split(key)
    walks = problem.walks
    rollout = record(walks, max(problem.num_envs, -(-SAMPLES // walks.num_steps)), walk_key)
    chosen = jax.random.choice(choice_key, rollout.terminated.size, (SAMPLES,))
    return rollout.obs.reshape(-1, *rollout.obs.shape[2:])[chosen]


def make_scale(problem: Problem, run: Run) -> Callable[[jax.Array], jax.Array]:
    """What brings the numbers of an observation to -1 to 1, as its encoder does; one-hot ids."""
    space: Any = problem.walks.task.observation
    if environment_training.is_discrete(problem.walks):
        return partial(jax.nn.one_hot, num_classes=space.n)
    numbers = run.agents[0].learner.params["params"]["torso"]["layers_0"]
    layer: Any = Standardise(len(space.shape))
    return partial(layer.apply, {"params": jax.tree.map(np.asarray, numbers)})


def make_look(
    problem: Problem, run: Run, scale: Callable[[jax.Array], jax.Array]
) -> Callable[[jax.Array], Sight]:
    """What tasks know of observations `[...]`, by the first seed of the run."""
    learner = jax.tree.map(np.asarray, run.agents[0].learner)
    agent = allo_state.State(learner, (), (), ())
    axes = len(problem.walks.observation.shape)

    def look(obs: jax.Array) -> Sight:
        features = allo_state.features(problem.network, problem.agent, agent, obs)
        return Sight(features, scale(obs).reshape(*obs.shape[: obs.ndim - axes], -1))

    return look


def make_network(
    config: SpaceConfig, problem: Problem, scale: Callable[[jax.Array], jax.Array]
) -> nn.Module:
    """Policy and value of a learner, which sees what the environment shows."""
    action, axes = problem.walks.task.action, len(problem.walks.observation.shape)
    first = {0: (), 1: (Fourier(WAVES),), 3: (Conv(),)}[axes]
    torso = nn.Sequential((scale, *first, MLP(config.hidden)))
    if isinstance(action, spaces.Discrete):
        return ActorCritic(torso, int(action.n))
    if isinstance(action, spaces.Box) and jnp.issubdtype(action.dtype, jnp.floating):
        bounds = (np.broadcast_to(x, action.shape).tolist() for x in (action.low, action.high))
        return GaussianActorCritic(torso, torso.copy(), action.shape[0], *map(tuple, bounds))
    raise ValueError(
        f"{problem.walks.task.env.name} takes actions of a {type(action).__name__}; expected "
        "Discrete, or a Box of floats: there is no learner of goals for others"
    )


def goal_tasks(
    config: SpaceConfig, run: Run, problem: Problem, samples: Sight
) -> list[tuple[Task, Pay]]:
    """Each goal in every arm; goals are drawn from the samples."""
    spectrum = np.asarray(allo_state.eigenvalues(problem.agent, run.agents[0]))
    walk_steps = run.config.env.walk_steps
    values = one_step_eigenvalues(spectrum, problem.agent.discount, walk_steps)
    weights = potentials.commute_weights(jnp.asarray(values, jnp.float32), SAMPLES)
    goals = draw_goals(np.asarray(samples.place), config.goals, seed_of_tasks(config))
    is_numbered = environment_training.is_discrete(problem.walks)
    per_farthest = lambda squares: 1 / jnp.maximum(jnp.max(squares), 1e-12)
    pairs = []
    for i, place in enumerate(goals):
        goal = take(samples, place)
        line = jnp.sum(jnp.square(samples.place - goal.place[None]), axis=1)
        times = matmul(jnp.square(samples.features - goal.features[None]), weights)
        radius = 0.5 if is_numbered else jnp.sqrt(jnp.quantile(line, NEAR))
        pay = unpaid(goal)._replace(
            radius=jnp.asarray(radius, jnp.float32), discount=jnp.float32(config.agent.discount)
        )
        weight = jnp.float32(config.weight)
        of_arm = {
            "none": pay,
            "straight line": pay._replace(place_weight=per_farthest(line), weight=weight),
            "learned distance": pay._replace(
                feature_weights=weights * per_farthest(times), weight=weight
            ),
        }
        nowhere = np.zeros(0)  # there are no cells to have a potential
        pairs += [(Task(nowhere, i, arm, f"goal {i + 1}, {arm}"), of_arm[arm]) for arm in ARMS]
    return pairs


def draw_goals(places: np.ndarray, count: int, seed: int) -> list[int]:
    """The numbers of `count` random places of `[M, P]`, of which no two are the same.

    Raises ValueError if there are fewer.
    """
    goals: dict[bytes, int] = {}
    for place in np.random.default_rng(seed).permutation(len(places)).tolist():
        if len(goals) < count:
            goals.setdefault(places[place].tobytes(), place)
    if len(goals) < count:
        raise ValueError(
            f"goals is {count}, but {len(places):,} observations of walks are {len(goals):,} "
            "different ones: ask for fewer"
        )
    return list(goals.values())


def option_tasks(config: SpaceConfig, samples: Sight) -> list[tuple[Task, Pay]]:
    """Up and down each of the first eigenvectors after the constant one; samples span 1."""
    pay = unpaid(jax.tree.map(lambda x: x[0], samples))
    pairs = []
    for i in range(1, config.options + 1):
        span = float(np.ptp(samples.features[:, i])) or 1.0  # one that has collapsed stays flat
        for sign, name in ((1, "up"), (-1, "down")):
            direction = pay.direction.at[i].set(sign / span)
            own = pay._replace(direction=direction, weight=jnp.float32(1))
            pairs.append((Task(np.zeros(0), -1, "", f"{i + 1}, {name}"), own))
    return pairs


def unpaid(goal: Sight) -> Pay:
    """A task that pays nothing and never ends."""
    nothing = jnp.zeros((), jnp.float32)
    none = jnp.zeros_like(goal.features)
    return Pay(goal, none, none, nothing, jnp.float32(-1), nothing, jnp.float32(1))
