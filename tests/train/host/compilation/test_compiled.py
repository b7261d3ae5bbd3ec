"""What is compiled, and with which options."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrl.replay import uniform
from train.host.compilation import compiled, cpu_kernels
from train.host.compilation.cpu_kernels import Work


class Experience(NamedTuple):
    time: Any
    terminated: Any = np.False_
    truncated: Any = np.False_


class State(NamedTuple):
    agent: Any
    time: Any


class Metrics(NamedTuple):
    loss: Any
    origin: Any = ()


def test_no_window_of_a_replay_joins_what_an_undone_update_lies_between():
    """The update at time 2 is not finite: row 1 is followed by row 3, and is an end."""

    def update(state: State) -> tuple[State, Any]:
        steps = jax.tree.map(lambda x: jnp.asarray(x)[None, None], Experience(state.time))
        loss = jnp.where(state.time == 2, jnp.nan, 0.0)
        return State(uniform.add(state.agent, steps), state.time + 1), Metrics(loss)

    state: Any = State(uniform.init(Experience(jnp.int32(0)), 8, 1), jnp.int32(0))
    step = jax.jit(compiled.checked_update(update, skip=True))
    for _ in range(5):
        state, _ = step(state)
    rows = jax.tree.map(lambda x: list(x[: int(state.agent.size), 0]), state.agent.data)
    assert rows == Experience([0, 1, 3, 4], [False] * 4, [False, True, False, False])


def product(axes: int):
    """A matrix product in a scan, under so many `vmap`s that its result has so many axes."""

    def body(carry: jax.Array, _):
        return jnp.matmul(carry, carry), None

    function = lambda x: jax.lax.scan(body, x, length=2)[0]
    for _ in range(axes - 2):
        function = jax.vmap(function)
    return jax.jit(function)


@pytest.mark.parametrize(("axes", "is_special"), [(2, False), (4, False), (5, True), (7, True)])
def test_products_of_many_axes_are_compiled_without_the_kernels_that_crash(axes, is_special):
    x = jnp.asarray(np.random.default_rng(0).normal(size=(2,) * (axes - 2) + (3, 3)), jnp.float32)
    traced = product(axes).trace(x)
    options = cpu_kernels.compiler_options(traced.jaxpr.jaxpr)
    assert bool(options) == (is_special and jax.default_backend() == "cpu")
    result = traced.lower().compile(options)(x)
    square = np.asarray(x) @ np.asarray(x)
    np.testing.assert_allclose(result, square @ square, rtol=1e-3, atol=1e-3)


def test_sums_over_products_written_out_count_too():
    total = jax.jit(lambda x, y: (x * y).sum(3))
    for axes, is_special in ((5, False), (6, True), (8, True)):
        x = jnp.ones((1,) * (axes - 2) + (2, 3))
        traced = total.trace(x, x)
        options = cpu_kernels.compiler_options(traced.jaxpr.jaxpr)
        assert bool(options) == (is_special and jax.default_backend() == "cpu")
        np.testing.assert_array_equal(traced.lower().compile(options)(x, x), x.sum(3))


def test_a_program_without_products_needs_no_options():
    assert cpu_kernels.compiler_options(jax.jit(jnp.sin).trace(1.0).jaxpr.jaxpr) == {}


@pytest.mark.parametrize("jaxlib", ["0.10.2", "0.11.2"])
def test_shared_words_have_the_older_kernels_where_there_are_both(jaxlib, monkeypatch):
    """Another version would refuse a name that it does not know."""
    monkeypatch.setattr(cpu_kernels, "version", {"jaxlib": jaxlib}.get)
    square = jax.jit(lambda x: x @ x).trace(jnp.eye(2)).jaxpr.jaxpr
    options = cpu_kernels.compiler_options(square, Work(shared_words=True))
    has_both = jaxlib.startswith("0.10.") and jax.default_backend() == "cpu"
    assert options == ({"xla_cpu_use_fusion_emitters": False} if has_both else {})
    both = cpu_kernels.compiler_options(square, Work(small_products=True, shared_words=True))
    assert both == options | cpu_kernels.small_products()
