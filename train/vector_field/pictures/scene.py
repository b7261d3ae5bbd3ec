"""Experiments on vector fields to be looked at sample by sample, in a report and live.

Axes: T samples, K snapshots, G points of the grid along each axis.
"""

from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from envs.vector_field import VectorField
from envs.vector_field.env import State
from envs.vector_field.params import Params
from jaxrl.numerics.trees import take
from jaxrl.types import AgentState
from train.host.errors import UsageError
from train.host.files import snapshots
from train.host.files.snapshots import SavedArrays
from train.host.program import EpisodeSelection, Run
from train.host.showing.episodes import Bars, Episode, Recording, Scene
from train.host.showing.live import Edit, Live
from train.vector_field.config import SAMPLES_PER_UPDATE, Config
from train.vector_field.experiment import run_record
from train.vector_field.experiment.policy_groups import select_experiment
from train.vector_field.experiment.reach import grid_points, project
from train.vector_field.factories import learns_observation, make_env, make_learner, policies_of
from train.vector_field.pictures import run_pictures, series
from train.vector_field.pictures.maps import error_name
from train.vector_field.training import agent_snapshot, samples_of

SCRIPT = Path(__file__).with_name("vector_field.js")
FIELD_ERROR = "error of the field"
CHANNELS = 6
"""Channels that are shown as time series."""


def show(run: Run, selection: EpisodeSelection) -> Scene | None:
    """An episode for each policy and field, of one seed; None for fits to recorded data."""
    config = run.config
    if config.data:
        return None
    # What the run has kept: snapshots of the learned fields, and samples.
    chunk = config.run.chunk_updates(SAMPLES_PER_UPDATE)
    looks = snapshots.snapshots(run.directory, run.updates, chunk)
    samples = samples_of(run)
    if looks is None or samples is None:
        return None
    true = run_pictures.true_fields(config, run.agents)
    # How many samples of each experiment are shown.
    s = selection.member
    lengths = np.full(samples["z"].shape[:3], selection.limit)
    sample_counts = run_record.samples_taken(run.directory, config)
    lengths = lengths if sample_counts is None else np.minimum(lengths, sample_counts)
    agents = run.agents[s]

    def experiment(p: int, f: int) -> Episode:
        count = lengths[s, p, f]
        own = {name: x[s, p, f, :count] for name, x in samples.items()}
        return _episode(
            f"{config.policies[p]} on {config.env.fields[f].replace('_', ' ')}",
            _project_samples(own, config, agents, f),
            SavedArrays(looks.updates, {name: x[:, s, p, f] for name, x in looks.arrays.items()}),
            true[s, f],
            _forecasts(config, agents, p, f, own) if count > series.AHEAD else None,
            not learns_observation(config),
            config.env.dimension,
        )

    places = product(range(len(config.env.fields)), range(len(config.policies)))
    episodes = [experiment(p, f) for f, p in places]
    return Scene([SCRIPT], episodes[: selection.count], {"box": float(config.box)})


def _forecasts(
    config: Config, agents: dict[str, AgentState], p: int, f: int, samples: dict[str, np.ndarray]
) -> Any:
    """What the learner of an experiment forecasts of its samples, as it is at the end."""
    forecasts = run_pictures.forecasts_of(
        config, agents, config.policies[p], f, samples["y"], samples["u"]
    )
    return series.align_forecasts(forecasts, series.AHEAD)


def _project_samples(
    samples: dict[str, np.ndarray], config: Config, agents: dict[str, AgentState], f: int
) -> dict[str, np.ndarray]:
    """Projects states, and beliefs in their coordinates, on the plane that is shown; adds `push`,
    what the inputs add to the velocity on field `f`."""
    agent = take(next(iter(agents.values())), (0, f))
    world = make_learner(config).world(agent)
    effect = jax.vmap(partial(make_env(config).effect, params=world))
    u, z = (jnp.asarray(samples[name]) for name in ("u", "z"))
    vectors = {"z": samples["z"], "push": effect(u, z)}
    if not learns_observation(config):
        vectors["belief"] = samples["belief"]
    return samples | {name: np.asarray(project(x, config.plane)) for name, x in vectors.items()}


def live(run: Run, member: int) -> Live:
    """The experiment of the first policy on the first field, which goes on: its state can be
    pushed, and its learner learns from every step."""
    config = run.config
    if config.data:
        raise UsageError(f"{run.directory} learned from recorded data: nothing goes on there")
    learner, env = make_learner(config), make_env(config)
    first_agent = select_experiment(policies_of(config), run.agents[member], config.policies[0], 0)
    params = learner.world(first_agent)
    plane = config.plane
    points = grid_points(config.box, env.dims, plane)
    look = jax.jit(lambda agent: agent_snapshot(learner, agent, points, plane))
    true = np.asarray(project(env.velocity(points, params), plane))
    push_velocity = lambda z, u: np.asarray(project(env.effect(u, z, params), plane))
    largest = jnp.full(env.num_inputs, params.action_bound)
    constants = {
        "box": float(config.box),
        "true": true.reshape(-1, 2),
        "points": true.shape[0],
        "strongest": float(np.abs(push_velocity(jnp.zeros(env.dims), largest)).max()),
        "most_uncertain": float(np.max(look(first_agent)[1])),
    }
    return Live(
        *(env, params, learner.make(policies_of(config)[config.policies[0]], params), first_agent),
        look=lambda game: _live_frame(look, push_velocity, plane, game),
        scripts=[SCRIPT],
        constants=lambda state: constants,
        measure=lambda game: _measure(look, true, game, error_name(env.dims, FIELD_ERROR)),
        edits={"push": Edit("push the state to a place", partial(_push_state, env, plane))},
        learns=True,
    )


def _live_frame(
    look: Any, push_velocity: Any, plane: tuple[int, int], game: Recording
) -> tuple[dict[str, np.ndarray], dict[str, Bars]]:
    """What is drawn of an experiment that goes on, and its newest observations."""
    velocity, deviation = look(game.explained["agent"])
    push = np.stack([push_velocity(z, u) for z, u in zip(game.state.z, game.action, strict=True)])
    frame = {
        "z": np.asarray(project(game.state.z, plane)),
        "push": np.zeros_like(push) if game.terminated else push,
        "velocity": np.asarray(velocity).reshape(1, -1),
        "deviation": np.asarray(deviation).reshape(1, -1),
    }
    observations = np.asarray(game.obs, np.float32)[:, :CHANNELS]
    labels = [f"channel {k}" for k in range(observations.shape[1])]
    return frame, {"observed": Bars(observations, labels)}


def _measure(look: Any, true: np.ndarray, game: Recording, name: str) -> dict[str, float]:
    """How good the learned field is, and how sure the learner."""
    velocity, deviation = look(game.explained["agent"])
    error = np.sqrt(np.sum((velocity - true) ** 2) / np.sum(true**2))
    return {name: float(error), "mean deviation": float(np.mean(deviation))}


def _push_state(
    env: VectorField,
    plane: tuple[int, int],
    state: State,
    params: Params,
    place: tuple[float, float],
) -> State:
    """Moves the state to a place in the plane; its other coordinates stay."""
    key = jax.random.fold_in(jax.random.key(0), state.time)
    z = jnp.asarray(state.z).at[jnp.array(plane)].set(jnp.asarray(place))
    return env.move_state(key, state, z, params)


def _channels(observed: np.ndarray, expected: np.ndarray | None) -> dict[str, np.ndarray]:
    """The first channels of `[T, n]`, each followed by its forecast."""
    lines = {}
    for k, channel in enumerate(observed.T[:CHANNELS]):
        lines[f"channel {k}"] = channel
        if expected is not None:
            lines[f"forecast of {k}"] = expected[:, k].astype(np.float32)
    return lines


def _episode(
    title: str,
    samples: dict[str, np.ndarray],
    looks: SavedArrays,
    true: np.ndarray,
    expected: np.ndarray | None,
    is_aligned: bool,
    dimension: int,
) -> Episode:
    """One experiment. `look` `[T]` is the newest snapshot of the learned field after each sample.

    `expected` `[T, n]` is what the learner, as it is at the end, forecasts of each sample.
    `is_aligned`: the learner's belief has the coordinates of the true state, of so many dimensions.
    """
    count = len(samples["z"])
    after = np.arange(1, count + 1)  # so that the last one shows what was learned from all
    look = np.searchsorted(looks.updates * SAMPLES_PER_UPDATE, after, side="right") - 1
    velocity = looks.arrays["velocity"].astype(np.float32)  # [K, G, G, 2]
    deviation = looks.arrays["deviation"].astype(np.float32)  # [K, G, G]
    errors = np.sqrt(((velocity - true) ** 2).sum((1, 2, 3)) / (true**2).sum())
    frames = {"z": samples["z"], "push": samples["push"], "look": look.astype(np.int32)}
    if is_aligned:
        frames["belief"] = samples["belief"]
    lines = {
        error_name(dimension, FIELD_ERROR): errors[look].astype(np.float32),
        "mean deviation": deviation.mean((1, 2))[look],
        **{f"input {k}": x for k, x in enumerate(samples["u"].T)},
        **_channels(samples["y"], expected),
    }
    return Episode(
        title=f"{title}, {error_name(dimension)} {errors[look[-1]]:.2f}",
        frames=frames,
        lines=lines,
        constants={
            "true": true.reshape(-1, 2),
            "learned": velocity.reshape(len(velocity), -1),
            "deviation": deviation.reshape(len(deviation), -1),
            "points": true.shape[0],
            "strongest": float(np.abs(samples["push"]).max()),
        },
    )
