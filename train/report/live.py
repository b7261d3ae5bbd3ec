"""The page of a run that is still learning, on this machine alone: `--live`.

For browsers on this machine (`train.host.showing.private_address`). The server reads what the run
has written and never the run itself, so it costs a run nothing but the processor time of a few
milliseconds every few seconds.
"""

import os
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from rich.console import Console

from train.host.errors import UsageError
from train.host.files.run_directory import RunDirectory
from train.host.running import saved_policies, saved_runs
from train.host.running.live_page import STARTED_BY
from train.host.showing.private_address import MACHINE, PrivateAddress, headers
from train.report import contents, page


class Follower:
    """A run that grows."""

    def __init__(self, directory: str):
        """Raises UsageError if there is no run."""
        self.run = saved_runs.load_without_checkpoint(directory)
        self.name = saved_policies.name_of(directory, None)
        self.training = self.run.program.training(self.run.config)

    def page(self) -> str:
        """The page as it is now; it asks for `data` from then on."""
        run = contents.of_run(self.run, self.name, self.training)
        static_content = {"runs": [run], "distributions": [[]], "scenes": [None], "arrays": None}
        live_notice = {"live": True, "made": f"Live since {time.strftime('%Y-%m-%d %H:%M')}."}
        return page.html(f"{self.name}, live", static_content | live_notice | self.data(), [])

    def data(self) -> dict[str, Any]:
        """What changes: the record so far, the scores at the end, and the budget if it is raised.

        Raises UsageError for a file of the run that cannot be read.
        """
        path = RunDirectory(self.run.directory).metrics
        rows = path.is_file() and path.stat().st_size > 0
        record = contents.record(self.run, self.training.score.labels) if rows else None
        settings = saved_runs.load_without_checkpoint(self.run.directory).config.run
        budget = settings.total_updates(self.training.steps_per_update)
        return {
            "records": [record],
            "evaluations": [contents.scores(self.run)],
            "steps": record["newest"] if record else 0,
            "budget": budget * self.training.steps_per_update,
        }


class Server(ThreadingHTTPServer):
    """Serves one follower."""

    daemon_threads = True

    def __init__(self, follower: Follower, port: int = 0):
        super().__init__((MACHINE, port), _Handler)
        self.follower = follower
        self.address = PrivateAddress(self.server_port)
        self.parent = int(os.environ.get(STARTED_BY, os.getppid()))  # may be gone by now

    def service_actions(self) -> None:
        """Ends once whoever started this process is gone, such as a training that was killed."""
        if os.getppid() != self.parent:
            raise KeyboardInterrupt

    @property
    def url(self) -> str:
        return self.address.url


class _Handler(BaseHTTPRequestHandler):
    server: Server  # pyright: ignore[reportIncompatibleVariableOverride]
    server_version = sys_version = ""

    def do_GET(self) -> None:
        base = self.server.address.base
        if why := self.server.address.refusal(self.headers.get_all("Host", []), self.path):
            self._answer(HTTPStatus.FORBIDDEN, why, "text/plain")
        elif self.path in (base, f"{base}data"):
            self._answer_with_run(self.path == base)
        else:
            self._answer(HTTPStatus.NOT_FOUND, "there is nothing here\n", "text/plain")

    def _answer_with_run(self, whole: bool) -> None:
        """The whole page, or what changes; a line where a file of the run cannot be read."""
        follower = self.server.follower
        try:
            text = follower.page() if whole else page.as_json(follower.data())
        except UsageError as error:  # the page looks again, and the file may be mended by then
            self._answer(HTTPStatus.INTERNAL_SERVER_ERROR, f"{error}\n", "text/plain")
            return
        self._answer(HTTPStatus.OK, text, "text/html" if whole else "application/json")

    def _answer(self, status: HTTPStatus, text: str, kind: str) -> None:
        content = text.encode()
        self.send_response(status)
        for name, value in headers(kind, len(content)).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: whoever asked has the answer."""


def serve(follower: Follower) -> None:
    """Serves until it is interrupted; prints the address."""
    with Server(follower) as server:
        Console().print(f"live: {server.url}", highlight=False, soft_wrap=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return
