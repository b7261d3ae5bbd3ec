"""The learner behind a closed loop: the batch program's, which takes samples one by one.

It is given every sample in order and fits when fits are due, however long that takes; meanwhile
the loop goes on with what it knew (`train.vector_field.stream.loop`). What is learned depends on
the samples alone, not on when they came.
"""

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from jaxrl import checkpoint
from jaxrl.checkpoint import CheckpointError
from jaxrl.dynamics.kalman import Belief
from jaxrl.dynamics.learners import state_space_learner
from jaxrl.dynamics.learners.state_space_acting import Knowledge
from jaxrl.dynamics.learners.state_space_learner import State
from jaxrl.dynamics.planning.stimulation import Extras
from jaxrl.numerics.precision import in_float32
from jaxrl.types import Transition
from train.host.errors import UsageError
from train.host.files.run_directory import RunDirectory
from train.vector_field.stream import settings
from train.vector_field.stream.journal import Journal
from train.vector_field.stream.settings import Options, Problem


class Snapshot(NamedTuple):
    """What is known after so many samples; arrays of JAX or of NumPy."""

    knowledge: Knowledge
    count: int


class Learner(Protocol):
    """Who learns for a closed loop."""

    def start(self) -> None:
        """Begins to compile, and to learn from the samples in the journal."""
        ...

    def begin(self) -> Snapshot:
        """What is known of these samples, once that is so."""
        ...

    def send(self, end: int) -> None:
        """Takes note that the samples up to before `end` are in the journal."""
        ...

    def poll(self) -> Snapshot | None:
        """What was learned since the last call, if a fit was."""
        ...

    def finish(self) -> Snapshot:
        """What is known of all samples, once all have been learned from; saves it."""
        ...

    def close(self) -> None:
        """Ends at once."""
        ...


class BatchLearner:
    """Learns from the journal of a directory, sample after sample, and saves what it knows."""

    def __init__(self, options: Options, directory: Path):
        self.problem, self._options = settings.problem(options), options
        self.journal = Journal(directory, options.channels, options.inputs)
        self._checkpoints = RunDirectory(directory).checkpoints
        self._update = compiled_update(settings.learning(options))
        self.state = in_float32(first_state)(self.problem, options)
        self.count = self._saved = 0

    def restore(self) -> None:
        """Goes back to the newest checkpoint, if there is one.

        Raises UsageError where it is of another version of the library.
        """
        try:
            self.state, _, self.count = checkpoint.restore(self._checkpoints, self.state)
        except CheckpointError as error:
            if checkpoint.steps(self._checkpoints):
                advice = f"delete {self._checkpoints} to learn from all samples again"
                raise UsageError(f"{error}: {advice}") from error
        self._saved = self.count

    def learn(self, end: int, passes_fit: Callable[[], None] = lambda: None) -> None:
        """Learns from the journal up to before sample `end`; says so after each fit."""
        fits = int(self.state.params.fits)
        while self.count < end:
            rows = self.journal.rows(self.count, min(end, self.count + 64))
            for y, u in zip(rows.y, in_units(self.problem, rows.u), strict=True):
                self.state = self._update(self.state, y, u)
                self.count += 1
                if int(self.state.params.fits) > fits:
                    fits = int(self.state.params.fits)
                    passes_fit()
            if self.count - self._saved >= self._options.save_every:
                self.save()

    def compile(self) -> None:
        """Compiles all that learning needs; what is known stays."""
        y = np.zeros(self._options.channels, np.float32)
        u = np.zeros(self._options.inputs, np.float32)
        jax.block_until_ready(self._update(jax.tree.map(jnp.copy, self.state), y, u))

    def snapshot(self) -> Snapshot:
        """What is known now; later samples leave it as it is."""
        return Snapshot(jax.tree.map(jnp.copy, self.state.params), self.count)

    def save(self) -> None:
        """Saves the state; its samples are on the disk before it is."""
        if self.count == self._saved:
            return
        self.journal.flush()
        checkpoint.save(self._checkpoints, self.count, self.state, {})
        self._saved = self.count


class PromptLearner:
    """A `Learner` in this process: a fit takes place, and time, while its last sample is sent."""

    def __init__(self, options: Options, directory: Path):
        self._batch, self._fresh = BatchLearner(options, directory), False

    def start(self) -> None:
        self._batch.compile()

    def begin(self) -> Snapshot:
        self._batch.restore()
        self._batch.learn(self._batch.journal.count)
        return self._batch.snapshot()

    def send(self, end: int) -> None:
        def note() -> None:
            self._fresh = True

        self._batch.learn(end, note)

    def poll(self) -> Snapshot | None:
        fresh, self._fresh = self._fresh, False
        return self._batch.snapshot() if fresh else None

    def finish(self) -> Snapshot:
        self._batch.save()
        return self._batch.snapshot()

    def close(self) -> None:
        pass


@lru_cache(4)
def compiled_update(options: Options) -> Callable[[State, Any, Any], State]:
    """`update_of`, compiled; the state before is used up."""
    update = update_of(settings.problem(options), options.seed)
    return in_float32(jax.jit(update, donate_argnums=0))


def first_state(problem: Problem, options: Options) -> State:
    """The learner before any sample."""
    agent = state_space_learner.make(problem.config, problem.models, problem.constants)
    obs = jnp.zeros(options.channels)
    state = jax.jit(agent.init)(jax.random.key(options.seed), obs)
    return jax.tree.map(jnp.copy, state)


def update_of(problem: Problem, seed: int) -> Callable[[State, Any, Any], State]:
    """`(state, y [n], u [m]) -> state` after one sample: the update of the batch program."""
    agent = state_space_learner.make(problem.config, problem.models, problem.constants)
    root, dims = jax.random.key(seed), problem.models[0].dims

    def update(state: State, y: jax.Array, u: jax.Array) -> State:
        key = jax.random.fold_in(root, state.count)
        return agent.update(state, rollout_of(y, u, dims), key)[0]

    return update


def rollout_of(y: jax.Array, u: jax.Array, dims: int) -> Transition:
    """One step of one stream, as the loop of experiments hands it to a learner: `[1, 1, ...]`."""
    lead = lambda x: jnp.asarray(x)[None, None]
    no, nothing = lead(jnp.zeros((), bool)), lead(jnp.zeros(()))
    belief = Belief(lead(jnp.zeros(dims)), lead(jnp.eye(dims)))
    extras = Extras(belief, lead(jnp.zeros((), jnp.int32)))
    return Transition(lead(y), lead(u), nothing, lead(y), no, no, extras)


def in_units(problem: Problem, u: np.ndarray) -> np.ndarray:
    """Inputs `[T, m]` of the user as those of the learner, float32."""
    return (u / np.array(problem.unit)).astype(np.float32)
