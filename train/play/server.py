"""The server of live games: for browsers on this machine alone (`private_address`).

A WebSocket must also come from the page of this server.
"""

import asyncio
import logging
from collections.abc import Callable
from http import HTTPStatus
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from jaxrl.numerics.precision import in_float32
from train.host.errors import UsageError
from train.host.showing.live_game import Game
from train.host.showing.private_address import MACHINE, PrivateAddress, headers
from train.play import messages

if TYPE_CHECKING:  # an optional package
    from websockets.asyncio.server import Server, ServerConnection
    from websockets.http11 import Request, Response

MOST_GAMES = 4
"""Games at a time; each open page has one."""


def refuse_missing() -> None:
    """Raises UsageError if the library that serves is not installed."""
    if find_spec("websockets") is None:
        raise UsageError("train.play needs the library websockets: pip install jaxrl[play]")


class Table:
    """A page, and games for those who open it."""

    def __init__(self, page: str, make_game: Callable[[], Game], token: str = ""):
        self.page, self.make_game = page.encode(), make_game
        self.address = PrivateAddress(token=token)
        self.open = 0

    @property
    def url(self) -> str:
        return self.address.url

    async def listen(self, port: int = 0) -> "Server":
        """Starts to serve; port 0 is any that is free. Raises OSError for one that is taken."""
        from websockets.asyncio.server import serve

        server = await serve(
            self.play,
            MACHINE,
            port,
            process_request=self.respond,
            max_size=messages.LONGEST,
            logger=_silent_logger(),
            server_header=None,
        )
        self.address.port = server.sockets[0].getsockname()[1]
        return server

    def respond(self, connection: "ServerConnection", request: "Request") -> "Response | None":
        """The page, a refusal, or None for a WebSocket that may begin."""
        path = request.path.partition("?")[0]
        if why := self.address.refusal(request.headers.get_all("Host"), path):
            return connection.respond(HTTPStatus.FORBIDDEN, why)
        if path == self.address.base:
            return self._page(connection)
        if path != f"{self.address.base}socket":
            return connection.respond(HTTPStatus.NOT_FOUND, "there is nothing here\n")
        origins = [[f"http://{host}"] for host in self.address.hosts]
        if request.headers.get_all("Origin") not in origins:
            return connection.respond(HTTPStatus.FORBIDDEN, "wrong origin\n")
        if self.open >= MOST_GAMES:
            return connection.respond(HTTPStatus.SERVICE_UNAVAILABLE, "too many pages are open\n")
        return None

    def _page(self, connection: "ServerConnection") -> "Response":
        response = connection.respond(HTTPStatus.OK, "")
        for name, value in headers("text/html", len(self.page)).items():
            if name in response.headers:
                del response.headers[name]
            response.headers[name] = value
        response.body = self.page
        return response

    async def play(self, connection: "ServerConnection") -> None:
        """One game: an answer for every message."""
        from websockets.exceptions import ConnectionClosed

        self.open += 1
        try:
            game = await in_thread(self.make_game)
            await connection.send(await in_thread(messages.describe, game))
            async for message in connection:
                await connection.send(await in_thread(messages.answer, game, message))
        except ConnectionClosed:
            pass
        finally:
            self.open -= 1


async def in_thread(function: Callable[..., Any], *arguments: Any) -> Any:
    """What `function` returns, computed in 32 bits, as the command itself does, by a thread."""
    return await asyncio.to_thread(in_float32(function), *arguments)


def _silent_logger() -> logging.Logger:
    """The library logs each refused request; whoever sent it is told anyway."""
    logger = logging.getLogger("train.play.server")
    logger.addHandler(logging.NullHandler())
    logger.propagate = False
    return logger
