"""What a page says to a game, and a thousand things that it should not say."""

import base64
import json
import random
import string

import jax
import numpy as np
import pytest

from tests.train import untrained
from train.host.showing.live_game import Game
from train.play import messages


@pytest.fixture
def game() -> Game:
    run = untrained.snake()
    assert run.program.views.live is not None
    return Game(run.program.views.live(run, 0), 0)


def test_a_page_steps_edits_and_begins_anew(game):
    reply = json.loads(messages.answer(game, '{"do": "step"}'))
    assert reply["moment"] == game.moment == 1
    reply = json.loads(messages.answer(game, '{"do": "edit", "name": "food", "value": [0, 0]}'))
    assert reply["moment"] == 1
    reply = json.loads(messages.answer(game, '{"do": "new", "seed": 8}'))
    assert (reply["moment"], game.seed) == (0, 8)
    assert json.loads(messages.answer(game, '{"do": "new"}'))["moment"] == 0
    assert game.seed == 9


def test_arrays_come_as_bytes():
    values = {"a": np.array([[1.5, np.nan]]), "b": np.array([[True]]), "c": np.array([[-3]])}
    message = json.loads(
        json.dumps(messages.pack({"x": values, "n": float("nan"), "s": np.int32(4)}))
    )
    assert message["n"] is None
    assert message["s"] == 4
    for name, kind in (("a", np.float32), ("b", np.uint8), ("c", np.int32)):
        one = message["x"][name]
        assert one["type"] == kind.__name__
        array = np.frombuffer(base64.b64decode(one["data"]), kind).reshape(one["shape"])
        np.testing.assert_array_equal(array, values[name].astype(kind))


WRONG = [
    "",
    "{",
    "[]",
    "null",
    "1e999",
    '"step"',
    "{}",
    '{"do": "leave"}',
    '{"do": ["step"]}',
    '{"do": {"do": "step"}}',
    '{"do": "step", "direction": 1.5}',
    '{"do": "step", "direction": true}',
    '{"do": "step", "direction": -1}',
    '{"do": "step", "direction": 99999999999999999999}',
    '{"do": "step", "seed": 1}',
    '{"do": "new", "seed": -1}',
    '{"do": "new", "seed": 1e3}',
    '{"do": "new", "seed": "0"}',
    '{"do": "edit"}',
    '{"do": "edit", "name": "food"}',
    '{"do": "edit", "name": "food", "value": [NaN, 0]}',
    '{"do": "edit", "name": "food", "value": [1e400, 0]}',
    '{"do": "edit", "name": "food", "value": [[0], [0]]}',
    '{"do": "edit", "name": "food", "value": [0, 0, 0, 0, 0, 0]}',
    '{"do": "edit", "name": "food", "value": {"x": 0}}',
    '{"do": "edit", "name": "__class__", "value": [0, 0]}',
    '{"do": "edit", "name": ["food"], "value": [0, 0]}',
    '{"do": "step", "direction": ' + "[" * 900 + "]" * 900 + "}",
    "x" * 3_000,
]


def malformed_messages(count: int) -> list[str]:
    """Good messages with a few characters changed, and noise."""
    rng = random.Random(0)
    good = ['{"do": "step", "direction": 7}', '{"do": "edit", "name": "fruit", "value": [9, 0]}']
    texts = []
    while len(texts) < count:
        text = list(rng.choice(good))
        for _ in range(rng.randint(1, 6)):
            text[rng.randrange(len(text))] = rng.choice(string.printable)
        texts.append("".join(text))
    return texts


def test_a_thousand_malformed_messages_change_nothing(game):
    messages.answer(game, '{"do": "step"}')
    before = (game.now, game.moment, game.total, game.seed, game.ending)
    for text in [*WRONG, b'{"do": "step"}', *malformed_messages(1_000)]:
        reply = json.loads(messages.answer(game, text))
        # a change may leave a message that means something; then it must be obeyed as such
        if "error" not in reply:
            game.now, game.moment, game.total, game.seed, game.ending = before
            continue
        assert "\n" not in reply["error"]
        assert len(reply["error"]) < 400
        assert (game.moment, game.total, game.seed, game.ending) == before[1:]
        assert game.now is before[0]
    num_refused = sum(
        "error" in json.loads(messages.answer(game, text)) for text in malformed_messages(1_000)
    )
    assert num_refused > 900
    jax.block_until_ready(game.now.state)
