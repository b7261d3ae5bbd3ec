"""Firefox without a window, for tests of pages: driven by WebDriver BiDi, which needs no driver.

Tests that need it are skipped, with a reason, where there is none: `apt-get install firefox-esr`
installs one on Debian.
"""

import itertools
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.sync import client

from tests.train.browser import DESKTOP, PATIENCE, wait_until

BINARIES = ("firefox-esr", "firefox")
LISTENS = re.compile(r"WebDriver BiDi listening on (ws://\S+)")
FLAGS = ("--headless", "--no-remote", "--remote-debugging-port", "0")


class Firefox:
    """One page."""

    def __init__(self, connection: client.ClientConnection):
        self.connection, self.numbers = connection, itertools.count()
        self.complaints: list[str] = []
        self.ask("session.new", capabilities={})
        self.ask("session.subscribe", events=["log.entryAdded"])
        self.context = self.ask("browsingContext.getTree")["contexts"][0]["context"]

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """The result of a command; errors and warnings that the page logs meanwhile are kept."""
        number = next(self.numbers)
        self.connection.send(json.dumps({"id": number, "method": method, "params": params}))
        while True:
            answer = json.loads(self.connection.recv(PATIENCE))
            entry = answer.get("params", {})
            if entry.get("level") in ("error", "warn"):
                self.complaints.append(entry["text"])
            if answer.get("id") == number:
                if answer["type"] == "error":
                    pytest.fail(f"{method}: {answer['message']}")
                return answer["result"]

    def show(self, address: str, size: tuple[int, int] = DESKTOP) -> None:
        """Opens a page and waits until it says that it is ready."""
        viewport = dict(zip(("width", "height"), size, strict=True))
        self.ask("browsingContext.setViewport", context=self.context, viewport=viewport)
        self.ask("browsingContext.navigate", context=self.context, url=address, wait="complete")
        wait_until(lambda: self.evaluate("document.body.dataset.ready === 'yes'"))

    def evaluate(self, expression: str) -> Any:
        """The value of an expression in the page, as far as JSON can hold it."""
        answer = self.ask(
            "script.evaluate",
            expression=f"JSON.stringify({expression})",
            target={"context": self.context},
            awaitPromise=False,
        )
        if answer["type"] == "exception":
            pytest.fail(answer["exceptionDetails"]["text"])
        text = answer["result"].get("value")
        return None if text is None else json.loads(text)


@contextmanager
def firefox(folder: Path) -> Iterator[Firefox]:
    """A browser with a profile of its own in `folder`; skips the test if there is none."""
    binary = next(filter(None, map(shutil.which, BINARIES)), None)
    if binary is None:
        pytest.skip("no Firefox is installed")
    profile, log = folder / "profile", folder / "log"
    profile.mkdir()
    with log.open("w") as output:
        command = [binary, *FLAGS, "--profile", str(profile)]
        process = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        address = wait_until(lambda: LISTENS.search(log.read_text()))[1]
        with client.connect(f"{address}/session", max_size=None, proxy=None) as connection:
            yield Firefox(connection)
    finally:
        process.terminate()
        process.wait(PATIENCE)
