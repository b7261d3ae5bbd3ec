"""Lines that come in and go out."""

import json
import math

import pytest

from train.vector_field.stream import protocol
from train.vector_field.stream.guard import RigLimits
from train.vector_field.stream.loop import BadSample


def test_a_sample_is_read():
    sample = protocol.parse(b'{"n": 7, "y": [1, -0.5, null, NaN]}')
    assert sample.number == 7
    assert sample.y[:2] == [1.0, -0.5]
    assert all(math.isnan(x) for x in sample.y[2:])
    assert protocol.parse(b'{"y": 3}\r') == ([3], None)  # one channel; the line ends of Windows
    assert protocol.parse(b'{"n": 7.0, "y": []}') == ([], 7)  # as MATLAB writes it


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"hello", "no JSON"),
        (b"\xff\xfe", "no JSON"),
        (b"[" * 50_000, "no JSON"),
        (b"", "no JSON"),
        (b"[1, 2]", "expected a line such as"),
        (b'{"n": 1}', "expected a line such as"),
        (b'{"y": [1], "x": 2}', "expected a line such as"),
        (b'{"n": 1.5, "y": [1]}', "expected a whole number"),
        (b'{"n": true, "y": [1]}', "expected a whole number"),
        (b'{"n": "1", "y": [1]}', "expected a whole number"),
        (b'{"n": 1e999, "y": [1]}', "expected a whole number"),
        (b'{"y": [[1]]}', "expected numbers"),
        (b'{"y": ["1"]}', "expected numbers"),
        (b'{"y": [true]}', "expected numbers"),
    ],
)
def test_what_is_no_sample_is_refused_in_one_line(line, message):
    with pytest.raises(BadSample, match=message) as refusal:
        protocol.parse(line)
    assert "\n" not in str(refusal.value)
    assert len(str(refusal.value)) < 200


def test_lines_that_go_out_are_json_that_everybody_reads():
    limits = RigLimits((-1.0, 0.0), (1.0, 2.0), (math.inf, 0.5), math.inf, 10, 0.1)
    refuse = lambda name: pytest.fail(f"{name} is no JSON")
    lines = [
        protocol.greeting(limits, 20, 3, (0.0, 0.1)),
        protocol.answer(3, (0.1 + 0.2, 1e-300)),
        protocol.error('a "quoted" word', 4),
    ]
    greeting, answer, error = (json.loads(x, parse_constant=refuse) for x in lines)
    assert all(x.endswith(b"\n") and x.count(b"\n") == 1 for x in lines)
    assert greeting["rate"] == [None, 0.5]
    assert (greeting["charge"], greeting["next"], greeting["u"]) == (None, 3, [0.0, 0.1])
    assert answer == {"n": 3, "u": [0.1 + 0.2, 1e-300]}  # to the last bit
    assert error == {"error": 'a "quoted" word', "next": 4}
