"""What a run compiles: its initial state, and chunks of updates that check for NaN and infinity.

Both are compiled ahead of time, so that compiling and running are timed separately.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from jaxrl.loop import LoopMetrics
from jaxrl.numerics import nonfinite
from jaxrl.replay import uniform
from jaxrl.types import PyTree, RunState, parameters, where_tree
from train.host.compilation import ahead_of_time, cpu_kernels
from train.host.compilation.cpu_kernels import ANY_WORK, Work
from train.host.machine import devices, members

Init = Callable[..., RunState]
Update = Callable[[Any], tuple[Any, LoopMetrics]]


class Report(NamedTuple):
    """What a chunk of U updates of S seeds reports; a single seed has no axis S."""

    metrics: LoopMetrics  # each [U, S, ...]
    finite: jax.Array  # [U, S] bool; rollout, metrics and parameters of the update were finite


class Programs(NamedTuple):
    """What a run executes. `chunk` consumes (donates) the state it is given."""

    init: Callable[[PyTree], RunState]  # starts -> state
    chunk: Callable[[RunState, np.int32], tuple[RunState, Report]]  # (state, number of updates)
    like: RunState  # shapes, dtypes and shardings of the state


class TracedPrograms(NamedTuple):
    """`Programs` before the long compilation; tracing has found sizes that do not fit."""

    init: ahead_of_time.CompiledFunction
    chunk: ahead_of_time.TracedFunction
    like: RunState

    def compile(self) -> Programs:
        return Programs(self.init, self.chunk.compile(), self.like)


def trace_init(
    init: Init, starts: PyTree, mesh: Mesh | None = None
) -> ahead_of_time.TracedFunction:
    """Traces `init` for `starts` (see `init_all`), the state to be spread over a mesh.

    A scalar seed is not vmapped.
    """
    has_members = bool(jax.tree.leaves(starts)[0].ndim)
    layout = lambda state: devices.layout(mesh, state, has_members)
    return ahead_of_time.trace(
        init_all(init, starts),
        starts,
        name="init",
        place=replicated_sharding(mesh),
        layout=None if mesh is None else layout,
    )


def trace(
    init: ahead_of_time.TracedFunction,
    update: Update,
    length: int,
    skip: bool,
    mesh: Mesh | None = None,
    work: Work = ANY_WORK,
) -> TracedPrograms:
    """Compiles what `trace_init` made, and traces chunks of up to `length` updates.

    For `skip` see `checked_update`, for `work` `cpu_kernels`. The report is whole on every device
    of `mesh`.
    """
    seeds, *_ = init.jaxpr.in_avals
    chunk = make_variable_chunk(checked_update(update, skip), length)
    if seeds.ndim:
        chunk = members.map_members(chunk, mesh)
    compiled = init.compile()
    like = jax.tree.map(
        lambda x, sharding: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=sharding),
        init.out_info,
        compiled.output_shardings,
    )
    traced = ahead_of_time.trace(
        *(chunk, like, np.int32(length)),
        name="chunk",
        place=replicated_sharding(mesh),
        compiler_options=partial(cpu_kernels.compiler_options, work=work),
        donate_argnums=0,
        # without these the next call fails
        out_shardings=(compiled.output_shardings, replicated_sharding(mesh)),
    )
    return TracedPrograms(compiled, traced, like)


def replicated_sharding(mesh: Mesh | None) -> NamedSharding | None:
    """The place of what is whole on every device of a mesh; None without one."""
    return None if mesh is None else NamedSharding(mesh, PartitionSpec())


def init_all(init: Init, starts: PyTree) -> Callable[[PyTree], RunState]:
    """`starts -> state`. `starts` are seeds, or pairs `(seeds, numbers)` for members of a sweep.

    Seeds are a scalar, or `[S]`: then `init` is vmapped. It gets the key and, if there are, the
    numbers of a member.
    """

    def start(starts: PyTree) -> RunState:
        seed, *numbers = starts if isinstance(starts, tuple) else (starts,)
        return init(keys_of(seed)[0], *numbers)

    return jax.vmap(start) if jax.tree.leaves(starts)[0].ndim else start


def keys_of(seed: jax.Array | int) -> tuple[jax.Array, jax.Array]:
    """`(training key, evaluation key)` of a seed."""
    train_key, evaluation_key = jax.random.split(jax.random.key(seed))
    return train_key, evaluation_key


def checked_update(update: Update, skip: bool) -> Callable[[RunState], tuple[RunState, Report]]:
    """`update` of one seed, which also reports whether its results are finite.

    With `skip`, an update that is not finite leaves the agent as it was, while environments and
    keys move on; those environments of a loop that showed or paid what is not finite start anew.
    That needs a second copy of the agent's state, replay included, so it is optional.
    """
    update = getattr(update, "mending", update) if skip else update

    def update_and_check(state: RunState) -> tuple[RunState, Report]:
        after, metrics = update(state)
        metrics = jax.tree.map(jnp.asarray, metrics)  # such as `episodes=0` where none are played
        finite = all_finite((parameters(after.agent), metrics))
        if metrics.origin:
            finite &= metrics.origin.step == nonfinite.NEVER
        if skip:
            before = end_episodes(state.agent)  # environments have moved on without it
            after = after._replace(agent=where_tree(finite, after.agent, before))
        return after, Report(metrics, finite)

    return update_and_check


def end_episodes(agent_state: PyTree) -> PyTree:
    """The state of an agent with its replays as `uniform.end_episodes` leaves them."""
    is_replay = lambda x: isinstance(x, uniform.Replay)
    end = lambda x: uniform.end_episodes(x) if is_replay(x) else x
    return jax.tree.map(end, agent_state, is_leaf=is_replay)


def make_variable_chunk(
    update: Callable[[RunState], tuple[RunState, Report]], length: int
) -> Callable[[RunState, jax.Array], tuple[RunState, Report]]:
    """`chunk(state, count)` makes `count <= length` updates, known only when it is called.

    So a shorter last chunk needs no second compilation, as it would with `loop.make_chunk`. Rows
    of the report from `count` on are 0.
    """

    update = jax.jit(update)  # traced once

    def chunk(state: RunState, count: jax.Array) -> tuple[RunState, Report]:
        blank = jax.tree.map(
            lambda x: jnp.zeros((length, *x.shape), x.dtype), jax.eval_shape(update, state)[1]
        )

        def step(i: jax.Array, carry: tuple[RunState, Report]) -> tuple[RunState, Report]:
            state, reports = carry
            state, report = update(state)
            place = jax.lax.dynamic_update_index_in_dim
            return state, jax.tree.map(lambda rows, row: place(rows, row, i, 0), reports, report)

        return jax.lax.fori_loop(0, count, step, (state, blank))

    return chunk


def all_finite(tree: PyTree) -> jax.Array:
    """Whether no floating-point leaf holds NaN or infinity."""
    floats = [x for x in jax.tree.leaves(tree) if jnp.issubdtype(x.dtype, jnp.inexact)]
    return jnp.all(jnp.array([jnp.all(jnp.isfinite(x)) for x in floats], bool))
