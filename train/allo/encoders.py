"""The encoder that a run of `train.allo` has learned, for one's own states: their features.

    from train.allo import encoders

    encoder = encoders.load("runs/allo-…")
    features = encoder.encode(states)

Axes: N states, d features.
"""

from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxrl.numerics.precision import in_float32
from jaxrl.spectral.learning import allo_state
from jaxrl.types import AgentState
from train.allo import states
from train.allo.config import Config, learning_config, make_network
from train.allo.environment import environment_training
from train.allo.maze import make_layout
from train.allo.problem import inputs_of
from train.allo.recorded import recorded_training, recordings
from train.allo.states import StateSpace
from train.host.errors import UsageError
from train.host.inputs import InputSpec
from train.host.running import saved_policies

AT_ONCE = 8_192
"""States that the network sees at once."""


class Encoder:
    """Features of states, as they were learned.

    `metadata`: what the encoder is of. `config` is that of its training and `seed` its seed.
    `eigenvalues` float32 `[d]` are the λ of the features; of a directed walk complex, the μ of its
    chain; None for a policy file, which does not hold them.
    """

    def __init__(self, name: str, config: Config, seed: int, agent: AgentState, has_duals: bool):
        self.name, self.config, self.seed = name, config, seed
        self._spaces, self._network = spaces_of(config)
        self._learning = learning_config(config)
        self._agent = allo_state.State(agent.learner, (), (), (), agent.readout)
        self.eigenvalues = self._eigenvalues() if has_duals else None
        self._compiled = {
            space.name: jax.jit(
                partial(self._features, space)
                if space.prepare is None
                else self._features_of_inputs
            )
            for space in self._spaces
        }

    @property
    def num_features(self) -> int:
        """d."""
        return self._learning.num_features

    @in_float32
    def encode(self, states: Any) -> np.ndarray:
        """Features `[d]` of a state, or `[N, d]` of N of them; which, their shape tells.

        What a state is depends on what was learned in; `docs/allo.md` has a table. Of a directed
        walk they are the right eigenvectors, complex. Any number of states takes one of fourteen
        compiled programs. Raises ValueError, in one line, for arrays of another shape or kind, for
        numbers that are not finite, and for states that do not exist.
        """
        space = self._space_of(states)
        array, count = InputSpec("states", space.input_template).arrays(states)
        batch = array if count is not None else array[None]
        space.refuse(batch)
        features = self._in_parts(space, space.prepare(batch) if space.prepare else batch)
        return features if count is not None else features[0]

    def features(self, state: jax.Array) -> jax.Array:
        """The same of one state, `[d]`: a pure function for programs of one's own under `jit`.

        Nothing is checked. A state is float32, so that vectors far from 0 have lost their last
        digits; `encode` takes them as float64.
        """
        return self._features(self._space_of(state), self._agent, state[None])[0]

    def _space_of(self, states: Any) -> StateSpace:
        """The space of these states: that of as many axes, one for N of them included."""
        ranks = (np.ndim(states), np.ndim(states) - 1)
        fitting = [x for x in self._spaces if len(x.template.shape) in ranks]
        return (fitting or list(self._spaces))[0]

    def _features(self, space: StateSpace, agent: AgentState, states: jax.Array) -> jax.Array:
        return self._features_of_inputs(agent, jax.vmap(space.observe)(states))

    def _features_of_inputs(self, agent: AgentState, obs: jax.Array) -> jax.Array:
        if self._learning.directed:
            return allo_state.eigenpairs(self._network, agent, obs)[1][:, : self.num_features]
        return allo_state.features(self._network, self._learning, agent, obs)

    def _in_parts(self, space: StateSpace, batch: np.ndarray) -> np.ndarray:
        """Features `[N, d]`, of parts whose sizes are powers of two: few sizes are compiled."""
        kind = np.complex64 if self._learning.directed else np.float32
        features = np.zeros((len(batch), self.num_features), kind)
        for i in range(0, len(batch), AT_ONCE):
            part = batch[i : i + AT_ONCE]
            size = 1 << (len(part) - 1).bit_length()
            full = np.concatenate([part, np.repeat(part[:1], size - len(part), axis=0)])
            encoded = self._compiled[space.name](self._agent, jnp.asarray(full))
            features[i : i + len(part)] = np.asarray(encoded)[: len(part)]
        return features

    def _eigenvalues(self) -> np.ndarray:
        if self._learning.directed:
            return np.asarray(self._agent.readout.params.values)[: self.num_features]
        return np.asarray(allo_state.eigenvalues(self._learning, self._agent))


@in_float32
def load(source: str | Path, seed: int | None = None) -> Encoder:
    """The encoder of a run directory, of its newest checkpoint, or of an exported file.

    Args:
      source: the directory, or what `python -m train.policies export` has written.
      seed: of the run's seeds; None: the first.

    Raises UsageError, in one line, for what is no run of `train.allo`, and for other seeds.
    """
    run = saved_policies.load_source(source)
    if run.program.address != "allo":
        raise UsageError(f"{source} is of {run.program.address}; expected a run of train.allo")
    seed = run.seeds[0] if seed is None else seed
    if seed not in run.seeds:
        raise UsageError(f"{source} has no seed {seed}; it has {', '.join(map(str, run.seeds))}")
    agent = run.agents[run.seeds.index(seed)]
    return Encoder(str(source), run.config, seed, agent, has_duals=run.state is not None)


def spaces_of(config: Config) -> tuple[tuple[StateSpace, ...], Any]:
    """How states of a configuration are given, the usual way first, and the network."""
    observation = config.network.observation
    if config.transitions:
        recording = recordings.load(config.transitions)
        observation = recorded_training.observation_of(config, recording)
        network = make_network(config, recording.num_ids, observation)
        if recording.num_ids:
            inputs = recorded_training.inputs_of(recording, observation)
            return (states.ids(inputs, recording.occurs),), network
        return (states.vectors(recording.middle, recording.scale),), network
    if config.env.id:
        problem = environment_training.make_problem(config)
        return (states.observations(problem.walks.observation),), problem.network
    layout = make_layout(config.env)
    if config.env.step:
        spaces = (states.positions(layout),)
        if observation == "rendered":
            network = config.network
            spaces = (*spaces, states.frames(layout, network.tile, network.colours))
        return spaces, make_network(config, 0)
    inputs = inputs_of(layout, observation)
    return (states.cells(layout, inputs),), make_network(config, layout.num_states)
