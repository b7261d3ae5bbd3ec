"""Random bits in one kernel: the published answers, and those of JAX's own loop."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from envs import threefry

DRAW = """
import jax, numpy as np
{first}
key = jax.random.key(7)
split = jax.vmap(lambda k: jax.random.split(k, 3))(jax.random.split(key, 5))
draws = [jax.random.key_data(split), jax.random.bits(key, (3, 7)), jax.random.normal(key, (33,))]
draws += [jax.random.permutation(key, 50), jax.random.bits(jax.random.fold_in(key, 9), (), "uint8")]
draws += [jax.jit(lambda k: jax.vmap(lambda k: jax.random.bits(k, (4,)))(k))(split[0])]
print([np.asarray(x).tolist() for x in draws])
"""


def random_words(text: str) -> list[int]:
    return [int(word, 16) for word in text.split()]


@pytest.mark.parametrize(
    ("key", "words", "answer"),
    [  # kat_vectors of Random123, the library of Salmon et al. (2011)
        ("00000000 00000000", "00000000 00000000", "6b200159 99ba4efe"),
        ("ffffffff ffffffff", "ffffffff ffffffff", "1cb996fc bb002be7"),
        ("13198a2e 03707344", "243f6a88 85a308d3", "c4923a9c 483df7a0"),
    ],
)
def test_the_published_answers(key, words, answer):
    arguments = (jnp.uint32(x) for x in random_words(key) + random_words(words))
    result = threefry.threefry_2x32(*arguments)
    assert [int(x) for x in result] == random_words(answer)


@pytest.mark.slow
def test_all_draws_are_those_of_jax_itself():
    texts = [
        subprocess.run(
            [sys.executable, "-c", DRAW.format(first=first)],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for first in ("", "import envs")
    ]
    assert texts[0] == texts[1]
    assert texts[0].startswith("[[[")


def test_no_loop_is_compiled_where_environments_were_imported():
    assert envs.ALL
    draw = jax.jit(lambda key: jax.random.bits(key, (64,)))
    text = draw.lower(jax.random.key(0)).compile().as_text()
    assert text is not None
    assert " while(" not in text
    assert "fusion" in text
    reference = np.asarray(draw(jax.random.key(0)))
    assert len(np.unique(reference)) == 64
