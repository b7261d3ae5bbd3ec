"""Inputs of a policy: all of their parts are looked at, or they are refused."""

import re
from typing import Any

import numpy as np
import pytest

from train.host.inputs import InputSpec

NUMBER = np.zeros((), np.float32)
SPEC = InputSpec("observation", {"hand": {"cards": NUMBER}, "pair": (NUMBER, {"in": NUMBER})})


def value(hand: Any, pair: Any) -> dict[str, Any]:
    return {"hand": hand, "pair": pair}


def test_parts_at_any_depth_are_taken():
    arrays, count = SPEC.arrays(value({"cards": [1.0, 2.0]}, ([3.0, 4.0], {"in": [5.0, 6.0]})))
    assert count == 2
    np.testing.assert_array_equal(arrays["pair"][1]["in"], [5.0, 6.0])
    empty = value({"cards": 1.0, "none": ()}, (3.0, {"in": 5.0}, {}))
    assert SPEC.arrays(empty)[1] is None


@pytest.mark.parametrize(
    ("observation", "message"),
    [
        (value({"cards": 1.0, "more": 2.0}, (3.0, {"in": 5.0})), "['hand'] has a part 'more'"),
        (value({"cards": 1.0}, (3.0, {"in": 5.0}, 7.0)), "['pair'] has a part '2'; expected 0, 1"),
        (value({"cards": 1.0}, (3.0, {"in": 5.0, "out": 7.0})), "['pair'][1] has a part 'out'"),
        (value({"cards": 1.0}, (3.0,)), "['pair'][1]['in'] is missing, in a tuple"),
        (value(1.0, (3.0, {"in": 5.0})), "['hand']['cards'] is missing, in a float"),
    ],
)
def test_a_part_that_nothing_looks_at_is_refused_at_any_depth(observation, message):
    with pytest.raises(ValueError, match=re.escape(f"observation{message}")):
        SPEC.arrays(observation)
