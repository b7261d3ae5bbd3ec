"""`python -m train.vector_field stream`: a closed loop that a rig talks to over a socket.

Beside the settings it leaves the samples as they came, checkpoints of the learner, and at its end
`recording.npz`, which `--data` fits a model to.
"""

import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from jaxrl.dynamics.state_space.online import choice
from train.host.command_line.command import command
from train.host.command_line.flags import parse_flags
from train.host.files.run_directory import resume_flag
from train.host.files.whole_files import write_arrays
from train.host.machine.progress import SILENCE, print_line, rate_text, show_activity
from train.host.machine.signals import StopRequest
from train.host.numbers import quantity
from train.vector_field.stream.journal import Journal
from train.vector_field.stream.loop import ClosedLoop, open_loop
from train.vector_field.stream.server import HOST, Server, listen
from train.vector_field.stream.settings import Options

COMMAND = "python -m train.vector_field stream"
RECORDING = "recording.npz"


def main(arguments: Sequence[str]) -> int:
    def stream(arguments: list[str]) -> None:
        options = parse_flags(COMMAND, Options, arguments)
        with listen(options.port) as listener, open_loop(options) as loop:
            serve(loop, Server(loop, listener, options.silence))

    return command(stream, arguments)


def serve(loop: ClosedLoop, server: Server) -> None:
    """Serves until a signal; then learns from the last samples and writes the recording."""
    resume = f"{COMMAND} {resume_flag(loop.directory)}"
    with StopRequest(print_line, "learning from the last samples, then saving") as request:
        print_line(f"stream: ready on {HOST}:{server.port}, {loop.directory}")
        reporter = Reporter(loop)
        server.run(lambda: request.requested, reporter.look)
        print_line(reporter.line(server))
        recording = write_recording(loop)
        with show_activity("learning from the last samples"):
            loop.finish()
        print_line(f"{recording}; {resume} goes on")


class Reporter:
    """A line at times: how many samples, how fast, how well the next ones are foreseen."""

    def __init__(self, loop: ClosedLoop):
        self._loop, self._began, self._count = loop, time.monotonic(), 0

    def look(self, server: Server) -> None:
        """Prints a line if it is time, and there is something to say."""
        if time.monotonic() - self._began < SILENCE or server.latencies.count == self._count:
            return
        print_line(self.line(server))
        self._began, self._count = time.monotonic(), server.latencies.count

    def line(self, server: Server) -> str:
        """What goes on."""
        loop, knowledge = self._loop, self._loop.knowledge
        samples = server.latencies.count - self._count
        rate = samples / max(time.monotonic() - self._began, 1e-9)
        median, most = (1e3 * x for x in server.latencies.quantiles(0.5, 0.99))
        fits = int(knowledge.fits)
        parts = [quantity(loop.next_number, "samples"), f"{rate_text(rate)}/s"]
        parts.append(f"answers in {median:.1f} ms, 99 % within {most:.1f} ms")
        parts.append(quantity(fits, "fits"))
        if fits:
            field = loop.options.fields[int(knowledge.choice.place)]
            parts.append(f"{field} field, {float(choice.nats(knowledge.choice)):.0f} nats")
        if (r2 := loop.scores.r2) is not None:
            parts.append(f"R² one step ahead {r2:.3f}")
        if not server.has_client:
            parts.append("no client")
        return "  ".join(["stream", *parts])


def write_recording(loop: ClosedLoop) -> Path:
    """Writes all samples as a file for `--data`: y, u and the time of a step."""
    options, path = loop.options, loop.directory / RECORDING
    journal = Journal(loop.directory, options.channels, options.inputs)
    y, u = journal.rows(0, journal.count)
    write_arrays(path, {"y": y, "u": u.astype(np.float32), "dt": np.array(options.step_time)})
    return path
