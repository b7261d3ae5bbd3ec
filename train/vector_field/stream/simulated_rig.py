"""A rig to try a closed loop with: a simulated world in a process of its own.

    python -m train.vector_field.stream.simulated_rig --samples 2000 --interval 0.02

plays a field of `envs.vector_field` to `python -m train.vector_field stream`, one sample every
--interval seconds, gives it the inputs that come back, and says how long they took.

Letters: n channels, m inputs, d dimensions of the state.
"""

import json
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, BinaryIO, NamedTuple

import jax
import numpy as np

from envs.vector_field import VectorField
from envs.vector_field.env import FIELDS
from jaxrl.checks import Count, NonNegative, Positive, Range, Seed
from train.host.command_line.command import command
from train.host.command_line.flags import parse_flags
from train.host.errors import RunError, UsageError
from train.host.files.whole_files import refuse_existing, refuse_no_file, write_arrays
from train.host.machine.progress import print_line
from train.host.plain_config import check_options
from train.vector_field.stream.server import HOST
from train.vector_field.stream.settings import PORT

COMMAND = "python -m train.vector_field.stream.simulated_rig"
LOST = "the stream has ended the connection"


@dataclass(frozen=True)
class Options:
    """Plays a simulated world to a stream on this machine."""

    port: Annotated[int, Range(least=1, most=65535)] = PORT
    """Port on 127.0.0.1 at which the stream listens."""
    samples: Count = 1_000
    """How many samples are played."""
    interval: NonNegative = 0.02
    """Seconds from one sample to the next; 0: as fast as answers come."""
    field: str = "limit_cycle"
    """A field in the plane; see docs/active_dynamics.md."""
    authority: Positive = 1.0
    """How fast the largest input moves the state, in units of the field's mean speed."""
    seed: Seed = 0
    """Root of the random numbers."""
    out: str = ""
    """An npz file to write: y, u, z and the seconds that each answer took; default: none."""
    overwrite: bool = False
    """Replace a file of that name."""


class RigRecord(NamedTuple):
    """What was played, and came back."""

    y: np.ndarray  # [T, n]
    u: np.ndarray  # [T, m]
    z: np.ndarray  # [T, d]
    seconds: np.ndarray  # [T] from a sample to its answer


class Client:
    """One end of the protocol."""

    def __init__(self, connection: socket.socket, lines: BinaryIO):
        self.connection, self._lines = connection, lines
        self.greeting = self.receive()

    def send(self, content: Any) -> None:
        """Sends one line."""
        self.connection.sendall(json.dumps(content).encode() + b"\n")

    def receive(self) -> dict[str, Any]:
        """The next line. Raises RunError where none comes any more."""
        try:
            line = self._lines.readline()
        except ConnectionError:
            line = b""
        if not line:
            raise RunError(LOST)
        return json.loads(line)

    def ask(self, number: int, y: np.ndarray | list[float]) -> list[float]:
        """The input for a sample. Raises RunError where it is refused."""
        self.send({"n": number, "y": [float(x) if np.isfinite(x) else None for x in y]})
        answer = self.receive()
        if "u" not in answer:
            raise RunError(f"sample {number} was refused: {answer.get('error')}")
        return answer["u"]


@contextmanager
def connect(port: int) -> Iterator[Client]:
    """A client of the stream at this port. Raises RunError where there is none."""
    try:
        connection = socket.create_connection((HOST, port), timeout=60.0)
    except OSError as error:
        raise RunError(f"nobody listens on {HOST}:{port}: start a stream first") from error
    with connection, connection.makefile("rb") as lines:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield Client(connection, lines)


def play(options: Options) -> RigRecord:
    """Plays a world to a stream. Raises RunError where that ends before."""
    with connect(options.port) as client:
        greeting = client.greeting
        sizes = greeting["channels"], greeting["inputs"]
        bound = np.maximum(np.abs(greeting["low"]), np.abs(greeting["high"]))
        system = simulated_system(options, *sizes, bound)
        rows, due = [], time.perf_counter()
        for number in range(greeting["next"], greeting["next"] + options.samples):
            y, z = system.look()
            began = time.perf_counter()
            u = client.ask(number, y)
            seconds = time.perf_counter() - began
            rows.append((y, u, z, seconds))
            system.push(np.array(u, np.float32))
            due = max(due + options.interval, time.perf_counter() - options.interval)
            time.sleep(max(0.0, due - time.perf_counter()))
    return RigRecord(*map(np.array, zip(*rows, strict=True)))


class SimulatedSystem:
    """A system in which an input moves the state, and channels show it."""

    def __init__(self, env: VectorField, params: Any, bound: np.ndarray, seed: int):
        """Inputs of the size `bound` `[m]` are the largest that `params` allow."""
        root = jax.random.key(seed)
        key_at = lambda time: jax.random.fold_in(jax.random.clone(root), time)
        self._obs, self._state = env.reset(key_at(0), params)
        self._step = jax.jit(lambda time, state, u: env.step(key_at(time), state, u, params)[:2])
        self._unit, self._time = np.asarray(params.action_bound) / bound, 0
        jax.block_until_ready(self._step(1, self._state, np.zeros(len(bound), np.float32)))

    def look(self) -> tuple[np.ndarray, np.ndarray]:
        """The observation `[n]` and the state `[d]` now."""
        return np.asarray(self._obs), np.asarray(self._state.z)

    def push(self, u: np.ndarray) -> None:
        """A step with the input `[m]`."""
        self._time += 1
        self._obs, self._state = self._step(self._time, self._state, u * self._unit)


def simulated_system(
    options: Options, channels: int, inputs: int, bound: np.ndarray
) -> SimulatedSystem:
    """The system that the options describe, in the sizes of a stream."""
    env = VectorField(options.field, "linear", "gaussian", channels, "linear", inputs)
    params = env.params(jax.random.key(options.seed), options.authority)
    return SimulatedSystem(env, params, bound.astype(np.float32), options.seed)


def main(arguments: list[str]) -> int:
    def rig(arguments: list[str]) -> None:
        options = parse_flags(COMMAND, Options, arguments)
        check_options(options)
        if options.field not in FIELDS:
            raise UsageError(
                f"there is no field {options.field}: choose one of {', '.join(FIELDS)}"
            )
        if options.out:
            refuse_no_file(Path(options.out))
            refuse_existing(Path(options.out), options.overwrite)
        played = play(options)
        if options.out:
            write_arrays(options.out, played._asdict())
        median, most, worst = 1e3 * np.quantile(played.seconds, [0.5, 0.99, 1.0])
        print_line(
            f"{len(played.y):,} samples: answers in {median:.1f} ms, 99 % within {most:.1f} ms, "
            f"all within {worst:.1f} ms"
        )

    return command(rig, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
