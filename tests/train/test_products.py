"""Products of what estimates ask for full float32; those of networks take what the user chooses.

On TPUs a product is by default one of bfloat16, on recent GPUs one of TF32. Functions and updates
are traced, and each product is judged by the module that it comes from. What is not traced here is
read: no module of ours but a network may write a product without `precision`.
"""

import ast
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.extend
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from bench.compiling import program_and_config
from envs.vector_field import encoders, higher, landscape
from jaxrl.dynamics import bases, latent_scores, rbf
from jaxrl.dynamics.phase_portrait import fixed_points, orbits
from jaxrl.dynamics.state_space import field_posterior, forecasts, information, smoother
from jaxrl.dynamics.state_space.filter import filter_states
from jaxrl.dynamics.state_space.fitting import fit, initial_guess, linear_fit
from jaxrl.networks.mlp import MLP, ActorCritic
from jaxrl.spectral import directed, hitting_times
from tests.jaxrl.dynamics.state_space.models import random_model, simulate
from train.host.machine import jax_settings
from train.vector_field.experiment import reach

ROOT = Path(__file__).resolve().parent.parent.parent
INSTALLED = Path(optax.__file__).parent.parent
PACKAGES = ("jaxrl/", "envs/", "train/", "optax/")
NETWORKS = (
    "jaxrl/networks/",
    "jaxrl/dynamics/networks/decoder.py",
    "jaxrl/dynamics/networks/fields.py",
    "jaxrl/dynamics/networks/recognition.py",
    "jaxrl/spectral/learning/encoder.py",
    "optax/",  # Muon orthogonalises their gradients, as well as it can in bfloat16
)
"""Folders and files whose products take what `--run.precision` says."""
ESTIMATES = (
    "envs/vector_field/",  # the true world: no network, whatever it is made of
    "jaxrl/dynamics/",
    "jaxrl/losses/",
    "jaxrl/numerics/",
    "jaxrl/spectral/",
    "jaxrl/wrappers/",
    "train/vector_field/",
)
"""Those whose products are in full float32, but for the networks among them."""
PRODUCTS = ("dot_general", "conv_general_dilated", "ragged_dot_general")
WRITTEN = {"matmul", "dot", "vdot", "inner", "tensordot", "einsum", "convolve", "correlate"}
WRITTEN |= {"cov", "corrcoef", "vecdot", "matvec", "vecmat", "dot_general", "conv"}
"""Functions of JAX that make them."""
OF_NUMPY = {"places_of", "moments", "displacement_on"}
"""Functions that use JAX, and whose `@` are of NumPy's arrays."""


def placed_equations(program: Any, outside: str = "") -> Iterator[tuple[str, Any]]:
    """`(file that it comes from, equation)` of a jaxpr, at any depth; "" if not of `PACKAGES`.

    What a library computes within one of its functions, such as an inverse, is of the caller.
    """
    for equation in program.eqns:
        files = (short_name(x.file_name) for x in equation.source_info.traceback.frames)
        place = next((x for x in files if x.startswith(PACKAGES)), outside)  # the innermost call
        yield place, equation
        for inner in jax.extend.core.jaxprs_in_params(equation.params):
            yield from placed_equations(inner, place)


def short_name(file: str) -> str:
    """The name of a file from the folder of the installed packages, or of ours, on.

    A virtual environment may be a folder of ours.
    """
    path = Path(file)
    folder = INSTALLED if path.is_relative_to(INSTALLED) else ROOT
    return path.relative_to(folder).as_posix() if path.is_relative_to(folder) else file


def products(function: Callable, *arguments: Any) -> list[tuple[str, bool]]:
    """`(module, whether it is in full float32)` of each product of floats of a function."""
    full = jax.lax.Precision.HIGHEST
    return [
        (place, x.params["precision"] in (full, (full, full)))
        for place, x in placed_equations(jax.make_jaxpr(function)(*arguments).jaxpr)
        if x.primitive.name in PRODUCTS and jnp.issubdtype(x.outvars[0].aval.dtype, jnp.inexact)
    ]


def complaints(traced_products: list[tuple[str, bool]]) -> set[str]:
    """What is wrong with products, a line for each module."""
    lines = set()
    for module, is_full in traced_products:
        if module.startswith(NETWORKS):
            continue
        if not module.startswith(ESTIMATES):
            lines.add(f"{module or 'a library'}: neither a network nor an estimate")
        elif not is_full:
            lines.add(f"{module}: estimates with less than float32")
    return lines


FIELD: Any = np.array([[0.9, 0.2], [-0.2, 0.8]], np.float32)
STATES: Any = np.linspace(-1, 1, 12, dtype=np.float32).reshape(6, 2)
FRAME = (np.zeros(2, np.float32), np.eye(2, dtype=np.float32), np.eye(2, dtype=np.float32))
CHAIN: Any = np.full((6, 6), 1 / 6, np.float32)
WEIGHT: Any = np.full(6, 1 / 6, np.float32)
PAIRS: Any = (np.ones(4, np.complex64), *2 * (np.ones((6, 4), np.complex64),))


def turn(z: jax.Array, u: jax.Array) -> jax.Array:
    return jnp.sum(FIELD * z[None], axis=1) + u


def simulated_record() -> tuple[Any, Any, Any]:
    """A model with bumps, its parameters, and a record of 12 steps, all known while tracing."""
    with jax.ensure_compile_time_eval():
        model, params = random_model(rbf.Grid(5))
        return model, params, simulate(model, params, 12)


def state_space() -> Any:
    """Posterior, smoother, forecast, gradient step and first guess of a state-space model."""
    keys = iter(jax.random.split(jax.random.key(1), 5))
    model, params, record = simulated_record()
    episodes = jax.tree.map(lambda x: x[None], record)
    states = filter_states(model, params, record)
    last = jax.tree.map(lambda x: x[-1:], states.belief)
    gathered = information.gather(model, params, record)
    config = fit.Config(windows=1, window=12)
    return (
        field_posterior.field_posterior(model, params, gathered),
        smoother.sample_paths(states, record.valid, 2, next(keys)),
        smoother.smooth_states(states, record.valid),
        forecasts.forecast(model, params, last, record.u[None, :3], 4, next(keys), (0.5,)),
        fit.gradient_step(config, model, fit.init(config, params), episodes, next(keys)),
        initial_guess.initial_guess(model, episodes, next(keys)),
    )


def linear() -> Any:
    """Expectation maximisation of a linear model."""
    model, _, record = simulated_record()
    episodes = jax.tree.map(lambda x: x[None], record)
    gaussian = model.replace(field=None, is_count=jnp.zeros_like(model.is_count))
    return linear_fit.linear_fit(gaussian, episodes, 2)


def slope_of_sum(basis: Any) -> Any:
    weights = jnp.ones((basis.num_features, 2))
    return jax.grad(lambda w, z: jnp.sum(bases.weighted_sum(basis, w, z)), (0, 1))(weights, STATES)


FUNCTIONS = {
    "state space": state_space,
    "linear fit": linear,
    "directed Ritz pairs": lambda: directed.ritz(jnp.ones((6, 2, 2)), CHAIN, WEIGHT, 0.9),
    "directed errors": lambda: directed.eigenpair_errors(PAIRS, CHAIN, WEIGHT, 2),
    "hitting times": lambda: hitting_times.from_eigenpairs(PAIRS[0], PAIRS[1], PAIRS[2], WEIGHT),
    "alignment": lambda: latent_scores.affine_alignment(STATES, STATES[:, 0], STATES, STATES[:, 0]),
    "bumps": lambda: slope_of_sum(rbf.Grid(4)),
    "waves": lambda: slope_of_sum(bases.Fourier(5)),
    "polynomials": lambda: slope_of_sum(bases.Polynomial(2)),
    "exponents": lambda: orbits.exponents(turn, FRAME, jnp.array(STATES), jnp.zeros(1), 16),
    "fixed points": lambda: fixed_points.descend(turn, FRAME, jnp.array(STATES), jnp.zeros(1)),
    "visited cells": lambda: reach.visits(jnp.array(STATES), 1.0, jnp.array(STATES)),
    "world of drifts": lambda: landscape.draw(jax.random.key(0), per_axis=6),
    "world of a network": lambda: higher.network(jnp.array(STATES), jnp.array(FIELD)),
    "true effect": lambda: encoders.apply(
        encoders.weights(jax.random.key(0), "mlp", 1, 2), jnp.zeros(1)
    ),
}
"""What no update calls, or only some; traced without arguments."""


@pytest.mark.fast_cases(5)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_estimates_asks_for_full_float32(name: str):
    traced_products = products(FUNCTIONS[name])
    assert traced_products, "no product at all: choose another example"
    assert complaints(traced_products) == set()


class PlainFunction:
    """In the place of `custom_vmap`: a function with the usual rule of `vmap`."""

    def __init__(self, function: Callable):
        self.function = function

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments)

    def def_vmap(self, rule: Callable) -> Callable:
        return rule


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize(
    "case",
    [
        "gymnax:ppo",
        "allo:allo",
        "vector_field:seen",
        "vector_field:sequence_vae",
        "vector_field:latent",
        "allo:directed",
        "allo:sampled",
        "vector_field:vector_field",
        "vector_field:cart_pole",
        "vector_field:oscillators",
        "vector_field:spikes",
        "snake:rainbow",
        "durotaxis:tree",
        "gymnax:sac",
        "gymnax:recurrent",
    ],
)
def test_an_update_multiplies_in_full_float32_outside_of_networks(case: str, monkeypatch):
    # Equations that `batched_cond` inlines or batches have lost where they came from.
    jit: Any = jax.jit
    monkeypatch.setattr(jax, "jit", lambda f, **options: jit(f, **(options | {"inline": False})))
    monkeypatch.setattr(jax.custom_batching, "custom_vmap", PlainFunction)
    program, config = program_and_config(case, 1)
    training = program.training(config)
    key = jax.eval_shape(lambda: jax.random.key(0))
    with jax.debug_key_reuse(False):  # both branches of a `cond` are now computed from one key
        traced_products = products(training.init, key)
        traced_products += products(training.update, jax.eval_shape(training.init, key))
    assert traced_products
    assert complaints(traced_products) == set()


def test_a_product_with_less_precision_is_noticed(monkeypatch):
    field = lambda z: rbf.weighted_sum(rbf.Grid(4), jnp.ones((16, 2)), z)
    monkeypatch.setattr(rbf, "matmul_of_few_columns", jnp.matmul)
    assert complaints(products(jax.jit(jax.vmap(field)), STATES)) == {
        "jaxrl/dynamics/rbf.py: estimates with less than float32"
    }
    assert complaints(products(jnp.matmul, FIELD, FIELD)) == {
        "a library: neither a network nor an estimate"
    }


def test_networks_take_what_the_user_chooses():
    network: Any = ActorCritic(MLP((4,)), 2)
    shapes = jax.eval_shape(network.init, jax.random.key(0), STATES[0])
    traced_products = lambda: products(network.apply, shapes, STATES[0])
    assert {is_full for _, is_full in traced_products()} == {False}
    with jax_settings.network_precision("float32"):
        assert {is_full for _, is_full in traced_products()} == {True}
    with jax_settings.network_precision("default"):
        assert {is_full for _, is_full in traced_products()} == {False}


def sources() -> Iterator[Path]:
    """Modules of ours, networks left out."""
    for folder in ("jaxrl", "envs", "train"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            if not path.relative_to(ROOT).as_posix().startswith(NETWORKS):
                yield path


def unspecified_products(tree: ast.Module) -> Iterator[int]:
    """Lines of products on a device that do not say `precision="highest"`.

    `@` cannot say it. It counts where its function uses `jnp`, too; elsewhere it is NumPy's.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            is_of_jax = ast.unparse(node.func.value) in ("jnp", "jax.numpy", "jax.lax")
            keywords = {x.arg: ast.unparse(x.value) for x in node.keywords}
            is_full = keywords.get("precision") == "'highest'"
            if is_of_jax and node.func.attr in WRITTEN and not is_full:
                yield node.lineno
    for function in tree.body:
        inner = list(ast.walk(function)) if getattr(function, "name", "") not in OF_NUMPY else []
        if any(isinstance(x, ast.Name) and x.id == "jnp" for x in inner):
            operators = (x for x in inner if isinstance(x, ast.BinOp))
            yield from (x.lineno for x in operators if isinstance(x.op, ast.MatMult))


def test_no_product_is_written_without_its_precision():
    lines = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in sources()
        for line in unspecified_products(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert lines == []


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("def f(a):\n    return jnp.exp(a @ a)", 1),
        ("def f(a):\n    return np.exp(a @ a)", 0),
        ("def f(a):\n    return jnp.einsum('ij,jk', a, a)", 1),
        ("def f(a):\n    return jnp.einsum('ij,jk', a, a, precision='highest')", 0),
        ("def f(a):\n    return jax.lax.dot(a, a, precision='high')", 1),
    ],
)
def test_a_written_product_is_noticed(source: str, count: int):
    assert len(list(unspecified_products(ast.parse(source)))) == count
