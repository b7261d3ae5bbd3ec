"""What programs exchange: a text written by hand, and PPO against its closed form."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bench import traffic
from bench.traffic import Exchange
from tests.jaxrl.sharded_runs import answers

TEXT = """
HloModule by_hand

%sum (a: f32[], b: f32[]) -> f32[] {
  ROOT %add = f32[] add(%a, %b)
}

%inner (x: f32[4]) -> f32[4] {
  %both = (f32[4]{0}, f32[], pred[]) all-reduce(%x, %y, %z), channel_id=1, to_apply=%sum
}

%again (x: f32[4]) -> pred[] {
  ROOT %any = pred[] all-reduce(%p), to_apply=%sum
}

%left (x: f32[4]) -> f32[4] {
  %call.1 = f32[4]{0} call(%x), to_apply=%outer
}

%right (x: f32[4]) -> f32[4] {
  %gathered = bf16[2,3]{1,0} all-gather-start(%x), dimensions={0}
}

%outer (x: f32[4]) -> f32[4] {
  %w = f32[4]{0} while(%x), condition=%never, body=%inner, backend_config={"known_trip_count":{"n":"5"}}
  %v = f32[4]{0} while(%x), condition=%again, body=%inner
}

%never (x: f32[4]) -> pred[] {
  ROOT %constant = pred[] constant(false)
}

ENTRY %main (x: f32[4]) -> f32[4] {
  %w = f32[4]{0} while(%x), condition=%again, body=%one, backend_config={"known_trip_count":{"n":"3"}}
}

%one (x: f32[4]) -> f32[4] {
  %c = f32[4]{0} conditional(%p, %x, %x), branch_computations={%left, %right}, metadata={}
}
"""  # noqa: E501


def test_exchanges_of_a_program_written_by_hand():
    """Three rounds of: a loop of five; one of unknown length, which also asks; a gather."""
    assert sorted(traffic.exchanges(TEXT)) == sorted(
        [
            Exchange("all-reduce", 0, 1, 3 + 1, False),
            Exchange("all-reduce", 16, 5, 3 * 5, False),
            Exchange("all-reduce", 0, 1, 3, True),
            Exchange("all-reduce", 16, 5, 3, True),
            Exchange("all-gather", 12, 0, 3, False),
        ]
    )


def test_a_text_without_an_entry_is_refused():
    with pytest.raises(ValueError, match="names its ENTRY"):
        traffic.exchanges("HloModule nothing")


def test_products_of_loops_and_branches():
    """A product of [2, 3] and [3, 4] is 2 · 2 · 3 · 4 operations; its gradient twice that."""
    weight = jnp.ones((3, 4))

    def value(weight: jax.Array, x: jax.Array) -> jax.Array:
        return jnp.sum(jax.lax.cond(x[0, 0] > 0, lambda: x @ weight, lambda: jnp.ones((2, 4))))

    def train(weight: jax.Array) -> jax.Array:
        step = lambda weight, x: (weight - jax.grad(value)(weight, x), None)
        return jax.lax.scan(step, weight, jnp.ones((7, 2, 3)))[0]

    operations = traffic.products(jax.make_jaxpr(train)(weight).jaxpr)
    assert operations == 7 * 2 * (2 * 2 * 3 * 4)  # forwards, and for the weight alone


def test_convolutions_are_refused():
    convolve = lambda x: jax.lax.conv(x, jnp.ones((1, 1, 2, 2)), (1, 1), "SAME")
    with pytest.raises(ValueError, match="convolutions are not counted"):
        traffic.products(jax.make_jaxpr(convolve)(jnp.ones((1, 1, 4, 4))).jaxpr)


@pytest.mark.slow
@pytest.mark.parametrize("more", ["", ":agent.microbatch_size=16"])
def test_ppo_exchanges_its_gradients_and_nothing_else_of_size(more):
    """On eight devices: 4 bytes for each parameter and gradient step, by the compiled text."""
    case = f"gymnax:ppo:normalise.observations=false:normalise.rewards=false{more}"
    record = answers("--show", case, module="bench.communication")[case]
    layers = np.array([[4, 64], [64, 64]])
    torso = int(np.sum(layers[:, 0] * layers[:, 1] + layers[:, 1]))
    params = 2 * torso + (64 * 2 + 2) + (64 * 1 + 1)
    assert record["parameters"] == params
    assert record["gradient_steps"] == 4 * 4
    assert record["arrays"] == record["closed_form"] == 4 * params * 4 * 4
    assert record["kinds"] == ["all-reduce"]
