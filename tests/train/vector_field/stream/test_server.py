"""The socket: every line is answered, nothing that a client does ends the server."""

import re
import socket
import threading
import time
from pathlib import Path

import pytest

from tests.train.vector_field.stream.served import ALLOWED, EagerLoop, serve
from tests.train.vector_field.stream.test_guard import worst
from train.host.errors import RunError, UsageError
from train.vector_field.stream import protocol
from train.vector_field.stream.protocol import LONGEST_LINE
from train.vector_field.stream.server import listen
from train.vector_field.stream.simulated_rig import connect

DOCS = Path(__file__).resolve().parents[4] / "docs" / "rig.md"


def wait_until(condition) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_client_gets_an_input_for_each_sample():
    loop = EagerLoop()
    with serve(loop) as server, connect(server.port) as client:
        greeting = client.greeting
        assert (greeting["next"], greeting["u"], greeting["rate"]) == (0, [0.0], [0.25])
        for n in range(6):
            client.send({"n": n, "y": [0.0, None]})
            answer = client.receive()
            assert answer == {"n": n, "u": list(loop.outputs[n])}
        client.send({"y": [0.0, 0.0]})  # the next one
        assert client.receive()["n"] == 6
        client.send({"n": 9, "y": [0.0, 0.0]})  # two were missing
        assert client.receive() == {"n": 9, "u": list(loop.outputs[9])}
        wait_until(lambda: loop.settled == 10)
    assert max(worst(loop.limits, loop.outputs).values()) <= 0


def test_a_sample_that_is_asked_for_again_gets_the_same_answer():
    loop = EagerLoop()
    with serve(loop) as server, connect(server.port) as client:
        first = client.ask(0, [0.0, 0.0])
        assert client.ask(0, [0.0, 0.0]) == first
        client.ask(1, [0.0, 0.0])
        with pytest.raises(RunError, match="sample 0 was refused"):
            client.ask(0, [0.0, 0.0])
        assert len(loop.outputs) == 2


def test_bad_lines_are_answered_and_nothing_else_happens():
    loop = EagerLoop()
    with serve(loop) as server, connect(server.port) as client:
        connection = client.connection
        for line, message in (
            (b"hello\n", "no JSON"),
            (b"\n", "no JSON"),
            (b'{"n": 0, "y": [1]}\n', "1 channels"),
            (b'{"n": -4, "y": [1, 2]}\n', "sample -4"),
            (b"x" * (3 * LONGEST_LINE) + b"\n", "longer than 65,536 bytes"),
        ):
            connection.sendall(line)
            answer = client.receive()
            assert message in answer["error"]
            assert answer["next"] == 0
        connection.sendall(b'{"n": 0, "y"')  # a line in two parts, and two lines in one
        time.sleep(0.05)
        connection.sendall(b': [0, 0]}\n{"n": 1, "y": [0, 0]}\n')
        assert [client.receive()["n"], client.receive()["n"]] == [0, 1]
        assert len(loop.outputs) == 2


def test_a_lost_client_leaves_a_quiet_input_and_the_next_one_goes_on_there():
    loop = EagerLoop()
    with serve(loop) as server:
        with connect(server.port) as client:
            for n in range(3):
                client.ask(n, [0.0, 0.0])
            assert loop.last_input[0] > 0.7
        wait_until(lambda: loop.last_input == (0.0,))
        after = loop.next_number
        assert after in (6, 7)  # three samples of the quiet path, but for rounding
        with connect(server.port) as client:
            assert (client.greeting["next"], client.greeting["u"]) == (after, [0.0])
            with pytest.raises(RunError, match="refused"):
                client.ask(after - 1, [0.0, 0.0])  # which passed unseen
            client.ask(after, [0.0, 0.0])
    assert max(worst(loop.limits, loop.outputs).values()) <= 0
    assert loop.last_input == (0.0,)  # at the end, too


def test_a_second_client_waits_until_the_first_is_silent():
    with serve(EagerLoop()) as server, connect(server.port) as client:
        client.ask(0, [0.0, 0.0])
        with connect(server.port) as other:
            assert "another client" in other.greeting["error"]
            with pytest.raises(RunError, match="ended the connection"):
                other.receive()
        client.ask(1, [0.0, 0.0])
    with serve(EagerLoop(), silence=0.2) as server, connect(server.port) as client:
        client.ask(0, [0.0, 0.0])
        time.sleep(0.3)
        with connect(server.port) as other:
            assert other.greeting["next"] == 2  # the quiet path, of one sample
            other.ask(2, [0.0, 0.0])
            with pytest.raises(RunError, match="ended the connection"):
                client.receive()


def test_a_client_that_reads_nothing_is_lost_not_the_server():
    loop = EagerLoop()
    with serve(loop) as server:
        deaf = socket.socket()
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.connect(("127.0.0.1", server.port))
        deaf.settimeout(0.1)
        try:
            while True:
                deaf.sendall(b"no\n" * 10_000)
        except (TimeoutError, ConnectionError):
            pass
        wait_until(lambda: not server.has_client)
        deaf.close()
        with connect(server.port) as client:
            client.ask(loop.next_number, [0.0, 0.0])


def test_a_port_in_use_is_refused_in_one_line():
    with listen(0) as taken, pytest.raises(UsageError, match="give another --port"):
        listen(taken.getsockname()[1])


# The client of the docs, by its very text.


@pytest.fixture
def run():
    (code,) = re.findall(r"```python\n(import json.*?)```", DOCS.read_text(), re.DOTALL)
    scope = {}
    exec(code, scope)
    return scope["run"]


def keeps_to_limits(loop: EagerLoop, inputs: list) -> bool:
    """Whether what was given keeps to all limits, but for rounding."""
    return max(worst(loop.limits, inputs).values()) < 1e-9


def test_the_client_gives_each_answer_and_ends_quietly(run):
    inputs, loop = [], EagerLoop()
    with serve(loop) as server:
        run(server.port, 3, lambda: [0.5, None], inputs.append)
        assert [tuple(u) for u in inputs[:3]] == loop.outputs[:3]
        assert inputs[-1] == [0.0]
        wait_until(lambda: loop.last_input == (0.0,))
        before, after = len(inputs), loop.next_number
        run(server.port, 2, lambda: [0.5, None], inputs.append)
        assert [tuple(u) for u in inputs[before : before + 2]] == loop.outputs[after : after + 2]
        with pytest.raises(RuntimeError, match="0 channels"):
            run(server.port, 1, list, inputs.append)
        with connect(server.port), pytest.raises(RuntimeError, match="another client"):
            run(server.port, 1, list, inputs.append)
    assert keeps_to_limits(loop, inputs)


class LateLoop(EagerLoop):
    """Takes longer than half a sample for the fourth one."""

    def observe(self, y, number: int):
        if number == 3:
            time.sleep(0.6 * self.limits.dt)
        return super().observe(y, number)


def test_the_client_goes_the_quiet_path_where_an_answer_is_late(run):
    """The late answer is never given, and after the next greeting both agree again."""
    inputs, loop = [], LateLoop()
    with serve(loop) as server:
        with pytest.raises(RuntimeError, match="no answer in time"):
            run(server.port, 9, lambda: [0.5, None], inputs.append)
        assert [tuple(u) for u in inputs[:3]] == loop.outputs[:3]
        top = inputs[2][0]
        path = [max(0.0, top - 0.25 * k) for k in range(1, len(inputs) - 2)]
        assert [u for (u,) in inputs[3:]] == pytest.approx(path)
        assert inputs[-1] == [0.0]
        wait_until(lambda: not server.has_client and loop.last_input == (0.0,))
        run(server.port, 4, lambda: [0.5, None], inputs.append)
    assert keeps_to_limits(loop, inputs)


def test_the_client_goes_the_quiet_path_where_the_stream_is_gone(run):
    """Answers two samples, and dies."""
    greeting = protocol.greeting(ALLOWED, 2, 0, (0.0,))

    def die_early(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection, connection.makefile("rb") as lines:
            connection.sendall(greeting)
            for n, u in enumerate([(0.25,), (0.5,)]):
                lines.readline()
                connection.sendall(protocol.answer(n, u))
            lines.readline()
            connection.sendall(protocol.answer(2, (0.75,))[:9])  # half a line

    inputs = []
    with listen(0) as listener:
        thread = threading.Thread(target=die_early, args=(listener,))
        thread.start()
        with pytest.raises(RuntimeError, match=r"has ended|no answer"):
            run(listener.getsockname()[1], 9, lambda: [0.5, None], inputs.append)
        thread.join()
    assert inputs == [[0.25], [0.5], [0.25], [0.0]]
