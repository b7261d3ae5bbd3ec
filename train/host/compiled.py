"""What a run compiles: its beginning, and many updates in one call that look for NaN and infinity.

Both are compiled ahead of time, so that compiling and running are timed apart.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.extend
import jax.numpy as jnp
import numpy as np

from jaxrl.loop import Metrics
from jaxrl.types import PyTree, RunState, where_tree

Init = Callable[[jax.Array], RunState]
Update = Callable[[Any], tuple[Any, Metrics]]


class Report(NamedTuple):
    """What a chunk of U updates of S seeds reports; without the axis S where there is one seed."""

    metrics: Metrics  # each [U, S, ...]
    finite: jax.Array  # [U, S] bool; parameters and metrics after the update were finite


class Programs(NamedTuple):
    """What a run executes. `chunk` consumes the state it is given."""

    init: Callable[[jax.Array], RunState]  # of the seeds
    chunk: Callable[[RunState, np.int32], tuple[RunState, Report]]
    like: RunState  # shapes, dtypes and shardings of the state


class Traced(NamedTuple):
    """`Programs` before the long compilation; sizes that do not fit were refused on the way."""

    init: jax.stages.Compiled
    chunk: jax.stages.Traced
    like: RunState

    def compile(self) -> Programs:
        options = compiler_options(self.chunk.jaxpr.jaxpr)
        return Programs(self.init, self.chunk.lower().compile(options), self.like)


def trace(init: Init, update: Update, seeds: jax.Array, length: int, skip: bool) -> Traced:
    """Traces the beginning from `seeds`, a scalar or `[S]`, and chunks of up to `length` updates.

    One seed is not vmapped. For `skip` see `guarded`.
    """
    start, step = beginning(init, seeds), guarded(update, skip)
    if seeds.ndim:
        step = jax.vmap(step)
    lowered = jax.jit(start).lower(seeds)
    compiled = lowered.compile()
    like = jax.tree.map(
        lambda x, sharding: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=sharding),
        lowered.out_info,
        compiled.output_shardings,
    )
    chunk = jax.jit(
        make_chunk(step, length),
        donate_argnums=0,
        out_shardings=(compiled.output_shardings, None),  # or the next call would not fit
    )
    return Traced(compiled, chunk.trace(like, np.int32(length)), like)


def compiler_options(program: Any) -> dict[str, str | bool]:
    """What XLA has to be told for a program (a jaxpr) to run.

    Matrix products with results of more than six axes, as experiments of several policies and
    seeds have them, crash the kernels that jaxlib 0.10 prefers on a CPU; it has others.
    """
    if jax.default_backend() == "cpu" and max(axes_of_products(program), default=0) > 6:
        return {"xla_cpu_experimental_ynn_fusion_type": ""}
    return {}


def axes_of_products(program: Any) -> Iterator[int]:
    """The axes of the result of each matrix product of a jaxpr, at any depth."""
    for equation in program.eqns:
        if equation.primitive.name == "dot_general":
            yield equation.outvars[0].aval.ndim
        for inner in jax.extend.core.jaxprs_in_params(equation.params):
            yield from axes_of_products(inner)


def beginning(init: Init, seeds: jax.Array) -> Init:
    """From seeds like these to their states."""
    start = lambda seed: init(keys_of(seed)[0])
    return jax.vmap(start) if seeds.ndim else start


def keys_of(seed: jax.Array | int) -> tuple[jax.Array, jax.Array]:
    """The keys for training and for evaluation."""
    train_key, evaluation_key = jax.random.split(jax.random.key(seed))
    return train_key, evaluation_key


def guarded(update: Update, skip: bool) -> Callable[[RunState], tuple[RunState, Report]]:
    """`update` of one seed, looked at; where `skip`, its learning is undone if not finite.

    Then the agent is what it was before the update, while environments and keys have moved on. It
    costs a second copy of the agent's state, and so of its replay: hence only on request.
    """

    def checked(state: RunState) -> tuple[RunState, Report]:
        after, metrics = update(state)
        metrics = jax.tree.map(jnp.asarray, metrics)  # such as `episodes=0` where none are played
        finite = all_finite((parameters(after.agent), metrics))
        if skip:
            after = after._replace(agent=where_tree(finite, after.agent, state.agent))
        return after, Report(metrics, finite)

    return checked


def make_chunk(
    update: Callable[[RunState], tuple[RunState, Report]], length: int
) -> Callable[[RunState, jax.Array], tuple[RunState, Report]]:
    """`chunk(state, count)`: `count <= length` updates, so that a shorter last chunk needs no
    second compilation; of the report, rows from `count` on are blank.
    """

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


def parameters(agent_state: PyTree) -> PyTree:
    """All that lies below a field or key `params`; everything where nothing is called so.

    The host knows no agent, only this habit of naming; it spares a look at the whole replay.
    """
    leaves = jax.tree_util.tree_leaves_with_path(agent_state)

    def below_params(path) -> bool:
        return any(getattr(x, "name", getattr(x, "key", None)) == "params" for x in path)

    return [x for path, x in leaves if below_params(path)] or [x for _, x in leaves]
