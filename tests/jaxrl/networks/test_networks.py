"""Networks: shapes, counts and starting weights by hand; one observation equals a batch of them."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn

from jaxrl.losses.distributions.continuous import Normal, SquashedNormal
from jaxrl.losses.distributions.discrete import Categorical
from jaxrl.networks.conv import Conv, Convolution
from jaxrl.networks.dueling import QNetwork, combine
from jaxrl.networks.inputs import Flatten, OneHot
from jaxrl.networks.mlp import MLP, ActorCritic, GaussianActorCritic

D, A = 5, 3
BOARD = (4, 6, 2)  # rows, cols, C: no two alike

# Each with the shape of one observation and the number of its parameters: a dense layer has
# inputs * outputs + outputs, a convolution kernel² * channels in * channels out + channels out,
# layer normalisation 2 a unit.
NETWORKS = {
    "mlp": (MLP((8, 7)), (D,), (5 * 8 + 8) + (8 * 7 + 7)),
    "mlp, normalised": (MLP((8, 7), "tanh", layer_norm=True), (D,), (48 + 16) + (63 + 14)),
    "actor-critic": (ActorCritic(MLP((8,)), A), (D,), 2 * 48 + (8 * 3 + 3) + (8 + 1)),
    "actor-critic, shared": (
        ActorCritic(MLP((8,)), A, shared=True),
        (D,),
        48 + (8 * 3 + 3) + (8 + 1),
    ),
    "gaussian": (
        GaussianActorCritic(MLP((8,)), MLP((7,)), 2),
        (D,),
        48 + (8 * 2 + 2) + 2 + (5 * 7 + 7) + (7 + 1),
    ),
    "squashed": (
        GaussianActorCritic(MLP((8,)), MLP((7,)), 2, -1.0, (1.0, 2.0)),
        (D,),
        48 + (8 * 2 + 2) + 2 + (5 * 7 + 7) + (7 + 1),
    ),
    "conv": (Conv((3, 4)), BOARD, (9 * 2 * 3 + 3) + (9 * 3 * 4 + 4)),
    "conv, strided": (Conv((3,), 2, 2, "VALID", "elu"), BOARD, 4 * 2 * 3 + 3),
    "conv actor-critic": (
        ActorCritic(nn.Sequential((Conv((3,)), MLP((8,)))), A),
        BOARD,
        2 * ((9 * 2 * 3 + 3) + (4 * 6 * 3 * 8 + 8)) + (8 * 3 + 3) + (8 + 1),
    ),
    "conv, normalised": (Conv((3,), layer_norm=True), BOARD, (9 * 2 * 3 + 3) + 2 * 3),
    "flat": (nn.Sequential((Flatten(BOARD), MLP((8,)))), BOARD, 48 * 8 + 8),
    "q": (QNetwork(MLP((8,)), A), (D,), 48 + (8 * 3 + 3)),
    "dueling q": (
        QNetwork(MLP((8,)), A, dueling=True, streams=(7,)),
        (D,),
        48 + 2 * (8 * 7 + 7) + (7 * 3 + 3) + (7 + 1),
    ),
    "dueling q, linear streams": (
        QNetwork(MLP((8,)), A, dueling=True, streams=()),
        (D,),
        48 + (8 * 3 + 3) + (8 + 1),
    ),
}
networks = pytest.mark.parametrize(
    ("network", "shape", "count"), NETWORKS.values(), ids=NETWORKS.keys()
)


def initial(network: nn.Module, shape: tuple[int, ...]) -> Any:
    """The parameters training starts from."""
    return jax.jit(network.init)(jax.random.key(0), jnp.zeros(shape))


def any_params(network: nn.Module, shape: tuple[int, ...]) -> Any:
    """Parameters as training may find them, with biases; cheaper than orthogonal ones."""
    shapes = jax.eval_shape(network.init, jax.random.key(0), jnp.zeros(shape))
    rng = np.random.default_rng(0)
    draw = lambda x: jnp.asarray(rng.normal(scale=0.5, size=x.shape), x.dtype)
    return jax.tree.map(draw, shapes)


def apply(network: nn.Module, params, obs) -> Any:
    return jax.jit(network.apply)(params, obs)


@networks
def test_parameter_count(network, shape, count):
    params = jax.eval_shape(network.init, jax.random.key(0), jnp.zeros(shape))
    assert sum(x.size for x in jax.tree.leaves(params)) == count


@pytest.mark.fast_cases(4)
@networks
def test_one_at_a_time_is_the_same_as_a_batch(network, shape, count):
    del count
    params = any_params(network, shape)
    obs = jax.random.normal(jax.random.key(1), (2, 3, *shape))  # say, T and N
    batched = apply(network, params, obs)
    single = jax.vmap(jax.vmap(network.apply, in_axes=(None, 0)), in_axes=(None, 0))
    for a, b in zip(*map(jax.tree.leaves, (batched, jax.jit(single)(params, obs))), strict=True):
        assert a.shape[:2] == (2, 3)
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("network", "shape"),
    [(MLP((8,)), (D,)), (MLP(()), (D,)), (Conv((3,)), BOARD), (Conv(()), BOARD)],
)
def test_observations_of_any_type_are_computed_with_as_float32(network, shape):
    params = any_params(network, shape)
    obs = np.random.default_rng(2).integers(0, 2, shape)
    expected = apply(network, params, obs.astype(np.float32))
    for dtype in (bool, np.uint8, np.int32):
        actual = apply(network, params, obs.astype(dtype))
        assert actual.dtype == jnp.float32
        np.testing.assert_array_equal(actual, expected)


def test_mlp_by_hand():
    network = MLP((4, 3))
    params = any_params(network, (D,))
    first, second = (params["params"][f"Dense_{i}"] for i in range(2))
    obs = np.linspace(-1, 1, D, dtype=np.float32)
    hidden = np.maximum(obs @ first["kernel"] + first["bias"], 0)
    expected = np.maximum(hidden @ second["kernel"] + second["bias"], 0)
    np.testing.assert_allclose(apply(network, params, obs), expected, rtol=1e-5, atol=1e-6)


def test_layer_norm_comes_before_the_activation():
    network = MLP((64,), "tanh", layer_norm=True)
    params = any_params(network, (D,))
    obs = 10.0 * jax.random.normal(jax.random.key(3), (D,))
    norm = params["params"]["LayerNorm_0"]
    before = (np.arctanh(np.float64(apply(network, params, obs))) - norm["bias"]) / norm["scale"]
    np.testing.assert_allclose((before.mean(), before.std()), (0, 1), atol=1e-2)


def gram(kernel: jax.Array) -> np.ndarray:
    """Products of the shorter side's vectors: a multiple of the identity if orthogonal."""
    flat = np.asarray(kernel).reshape(-1, kernel.shape[-1])
    return flat.T @ flat if flat.shape[0] >= flat.shape[1] else flat @ flat.T


@pytest.mark.slow
def test_weights_start_orthogonal_with_the_gains_of_ppo():
    params = initial(ActorCritic(nn.Sequential((Conv((3, 4)), MLP((8,)))), A), BOARD)["params"]
    inside = [x for x in jax.tree.leaves(params["torso"]) if x.ndim > 1]
    gains = [*((x, 2.0) for x in inside), (params["policy"]["kernel"], 0.01**2)]
    assert len(inside) == 3
    for kernel, gain in [*gains, (params["value"]["kernel"], 1.0)]:
        products = gram(kernel)
        np.testing.assert_allclose(products, gain * np.eye(len(products)), atol=1e-5 * gain)
    for bias in (x for x in jax.tree.leaves(params) if x.ndim == 1):
        assert not np.any(bias)


def test_weights_may_start_with_the_variance_of_he():
    layers = initial(MLP((2_000, 500), weight_init="he"), (D,))["params"]
    for kernel in (layers["Dense_0"]["kernel"], layers["Dense_1"]["kernel"]):
        inputs = kernel.shape[0]
        error = np.std(kernel) / np.sqrt(2 / inputs) - 1  # He et al. 2015, eq. 10
        assert abs(error) < 5 / np.sqrt(2 * kernel.size)  # five standard errors of a deviation
        assert abs(np.mean(kernel)) < 5 * np.sqrt(2 / inputs / kernel.size)


def test_an_unknown_start_of_weights_is_refused():
    with pytest.raises(ValueError, match="unknown weight_init 'glorot': use orthogonal or he"):
        initial(MLP((3,), weight_init="glorot"), (D,))  # pyright: ignore[reportArgumentType]


def test_the_policy_starts_almost_uniform():
    network = ActorCritic(MLP((64, 64)), A)
    obs = jax.random.normal(jax.random.key(4), (100, D))
    policy, value = apply(network, initial(network, (D,)), obs)
    assert isinstance(policy, Categorical)
    assert value.shape == (100,)
    assert np.all(policy.entropy() > np.log(A) - 1e-2)


def test_gaussian_actor_critic_without_bounds():
    network = GaussianActorCritic(MLP((8,)), MLP((8,)), 2)
    params = initial(network, (D,))
    policy, value = apply(network, params, jnp.ones((7, D)))
    assert isinstance(policy, Normal)
    assert (policy.mean.shape, policy.scale.shape, value.shape) == ((7, 2), (7, 2), (7,))
    assert np.all(policy.scale == 1)
    assert np.all(np.abs(policy.mean) < 0.2)
    params = {"params": {**params["params"], "log_scale": jnp.log(jnp.array([0.5, 3.0]))}}
    scale = apply(network, params, jnp.ones(D))[0].scale
    np.testing.assert_allclose(scale, [0.5, 3.0], rtol=1e-6)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize(("low", "high"), [(-2.0, 3.0), ((-2.0, 0.0), 3.0), ((-2, 0), (3, 1))])
def test_gaussian_actor_critic_with_bounds(low, high):
    network = GaussianActorCritic(MLP((8,)), MLP((8,)), 2, low, high)
    assert hash(network) == hash(network.clone())  # so that it may be a static argument
    params = initial(GaussianActorCritic(MLP((8,)), MLP((8,)), 2), (D,))
    policy, _ = apply(network, params, jnp.ones((500, D)))  # a box needs no parameters
    assert isinstance(policy, SquashedNormal)
    action = np.asarray(policy.sample(jax.random.key(5)))
    low, high = np.broadcast_to(low, 2), np.broadcast_to(high, 2)
    assert np.all((action >= low) & (action <= high))
    assert np.all(action.max(0) > high - 0.2 * (high - low))
    assert np.all(action.min(0) < low + 0.2 * (high - low))


def test_actor_and_critic_of_the_gaussian_share_nothing():
    network = GaussianActorCritic(MLP((8,)), MLP((8,)), 2)
    params = any_params(network, (D,))
    value_grad = jax.grad(lambda p: network.apply(p, jnp.ones(D))[1])(params)["params"]
    assert not any(map(np.any, jax.tree.leaves([value_grad["actor"], value_grad["policy"]])))
    assert any(map(np.any, jax.tree.leaves(value_grad["critic"])))


def test_actor_and_critic_share_nothing_unless_told_to():
    """What the value depends on: with a torso of its own nothing of the policy."""
    for torso, shape in ((MLP((8,)), (D,)), (nn.Sequential((Conv((3,)), MLP((8,)))), BOARD)):
        for shared in (False, True):
            network = ActorCritic(torso, A, shared=shared)
            params = any_params(network, shape)
            value_grad = jax.grad(lambda p, x=network: x.apply(p, jnp.ones(shape))[1])(params)  # noqa: B023
            torso_depends = [np.any(x) for x in jax.tree.leaves(value_grad["params"]["torso"])]
            assert any(torso_depends) == shared
            assert ("critic" in params["params"]) != shared


def test_a_layer_of_conv_is_normalised_over_the_whole_board():
    network = Conv((3,), activation="tanh", layer_norm=True)
    params = any_params(network, BOARD)
    obs = 10.0 * jax.random.normal(jax.random.key(3), BOARD)
    norm = params["params"]["LayerNorm_0"]
    small = {"bias": jnp.zeros_like(norm["bias"]), "scale": jnp.full_like(norm["scale"], 0.1)}
    params["params"]["LayerNorm_0"] = small
    out = 10 * np.arctanh(np.float64(apply(network, params, obs)))
    np.testing.assert_allclose((out.mean(), out.std()), (0, 1), atol=1e-2)
    assert np.abs(out.reshape(-1, 3).mean(0)).max() > 0.05  # but not each channel by itself


def test_flatten_keeps_leading_axes():
    obs = jnp.arange(24).reshape(2, 3, 4)
    np.testing.assert_array_equal(Flatten((4,)).apply({}, obs), obs)
    np.testing.assert_array_equal(Flatten((3, 4)).apply({}, obs), obs.reshape(2, 12))
    np.testing.assert_array_equal(Flatten(()).apply({}, obs), obs[..., None])
    for shape in ((5,), (1, 2, 3, 4)):
        with pytest.raises(ValueError, match=r"observations of shape \[.* got \[2, "):
            Flatten(shape).apply({}, obs)


def test_one_hot_vectors():
    out = OneHot(4).apply({}, jnp.array([[0, 3], [2, 7]]))
    expected = [[[1, 0, 0, 0], [0, 0, 0, 1]], [[0, 0, 1, 0], [0, 0, 0, 0]]]
    np.testing.assert_array_equal(out, expected)
    with pytest.raises(ValueError, match="OneHot expects integers, got float32"):
        OneHot(4).apply({}, jnp.zeros(3))


def test_conv_refuses_vectors():
    with pytest.raises(ValueError, match=r"Conv observes \[rows, cols, channels\], not \[5\]"):
        Conv().init(jax.random.key(0), jnp.zeros(5))


def test_conv_by_hand():
    """The output at one cell is the kernel times the neighbourhood, zeros beyond the board."""
    network = Conv((3,))
    params = any_params(network, BOARD)
    layer = params["params"]["Conv_0"]
    board = np.random.default_rng(6).normal(size=BOARD).astype(np.float32)
    padded = np.pad(board, ((1, 1), (1, 1), (0, 0)))
    out = np.asarray(apply(network, params, board)).reshape(4, 6, 3)
    for row, col in [(0, 0), (2, 3), (3, 5)]:
        patch = padded[row : row + 3, col : col + 3]
        expected = np.maximum(np.einsum("rci,rcio->o", patch, layer["kernel"]) + layer["bias"], 0)
        np.testing.assert_allclose(out[row, col], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.fast_cases(4)
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize(("kernel", "strides"), [(3, 1), (2, 1), (3, 2), (2, 2), (4, 3), (1, 2)])
def test_a_convolution_is_that_of_flax(padding, kernel, strides):
    """Outputs and gradients agree for odd and even sizes."""
    convolution = Convolution(4, kernel, strides, padding)
    flax = nn.Conv(4, (kernel, kernel), (strides, strides), padding)
    board = jax.random.normal(jax.random.key(0), (2, 3, 7, 6, 2))
    params = any_params(convolution, (7, 6, 2))
    assert jax.tree.map(jnp.shape, params) == jax.tree.map(jnp.shape, any_params(flax, (7, 6, 2)))
    value = lambda network: lambda params, board: jnp.sum(jnp.sin(network.apply(params, board)))
    np.testing.assert_allclose(
        apply(convolution, params, board), apply(flax, params, board), rtol=1e-4, atol=1e-5
    )
    gradient, flax_gradient = (
        jax.jit(jax.grad(value(x), (0, 1)))(params, board) for x in (convolution, flax)
    )
    for a, b in zip(jax.tree.leaves(gradient), jax.tree.leaves(flax_gradient), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)


def test_conv_sizes():
    for network, size in [
        (Conv((3, 4)), 4 * 6 * 4),
        (Conv((3,), padding="VALID"), 2 * 4 * 3),
        (Conv((3,), kernel=2, padding="VALID"), 3 * 5 * 3),
        (Conv((3,), strides=2), 2 * 3 * 3),
    ]:
        out, _ = jax.eval_shape(network.init_with_output, jax.random.key(0), jnp.zeros(BOARD))
        assert out.shape == (size,)


def test_dueling_values_are_the_mean_of_q():
    value = jnp.array([[2.0], [-1.0]])
    advantage = jnp.array([[1.0, 2.0, 6.0], [0.0, 0.0, 3.0]])
    q = combine(value, advantage)
    assert q.tolist() == [[0.0, 1.0, 5.0], [-2.0, -2.0, 1.0]]
    shifted = combine(value, advantage + 7.0)  # advantages are only told apart, not weighed
    np.testing.assert_allclose(shifted, q, atol=1e-5)


def test_dueling_network_is_v_plus_centred_advantages():
    network = QNetwork(MLP((8,)), A, dueling=True, streams=(7,))
    params = any_params(network, (D,))
    obs = jax.random.normal(jax.random.key(7), (10, D))
    q, variables = jax.jit(functools.partial(network.apply, capture_intermediates=True))(
        params, obs
    )
    outputs: Any = variables["intermediates"]
    value, advantage = (outputs[name]["__call__"][0] for name in ("value", "advantage"))
    np.testing.assert_allclose(q.mean(-1, keepdims=True), value, rtol=1e-4, atol=1e-5)
    centred = advantage - advantage.mean(-1, keepdims=True)
    np.testing.assert_allclose(q - value, centred, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(q.argmax(-1), advantage.argmax(-1))


@pytest.mark.parametrize(
    ("network", "message"),
    [
        (MLP((8,), "relo"), "unknown activation 'relo': use relu, tanh"),  # pyright: ignore
        (GaussianActorCritic(MLP((8,)), MLP((8,)), 2, low=0.0), "on both sides or on none"),
        (GaussianActorCritic(MLP((8,)), MLP((8,)), 2, 1.0, (2.0, 1.0)), "low must be below high"),
        (GaussianActorCritic(MLP((8,)), MLP((8,)), 2, -1.0, (np.nan, 1.0)), "low must be below"),
        (GaussianActorCritic(MLP((8,)), MLP((8,)), 2, -1.0, (1.0, 1.0, 1.0)), "or 2"),
    ],
)
def test_impossible_networks_are_refused(network, message):
    with pytest.raises(ValueError, match=message):
        jax.eval_shape(network.init, jax.random.key(0), jnp.zeros(D))


def test_images_of_which_nothing_is_left_are_refused():
    with pytest.raises(ValueError, match="nothing of 2 rows and 4 columns by a kernel of 3: use"):
        Conv((3, 4), padding="VALID").init(jax.random.key(0), jnp.zeros(BOARD))


def test_a_single_number_is_refused(key):
    with pytest.raises(ValueError, match=r"given a single number, expected a vector \[D\]: make"):
        MLP((4,)).init(key, jnp.int32(3))


def test_parts_of_an_observation_are_refused_with_the_wrapper_that_joins_them(key):
    with pytest.raises(TypeError, match=r"is given a dict, expected one array: .*FlattenObserv"):
        MLP((4,)).init(key, {"a": jnp.zeros(2)})
