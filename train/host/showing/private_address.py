"""The address of a page for browsers on this machine alone.

The server listens on 127.0.0.1. Every address begins with a random token, so that other pages and
other people of the machine cannot find it; and requests must name this server as their host, or a
page elsewhere could reach it by a name of its own (DNS rebinding).
"""

import hmac
import secrets
from collections.abc import Sequence

MACHINE = "127.0.0.1"


class PrivateAddress:
    """The address of one server, once its port is known."""

    def __init__(self, port: int = 0, token: str = ""):
        self.port = port
        self.token = token or secrets.token_urlsafe(16)

    @property
    def base(self) -> str:
        """What every path begins with."""
        return f"/{self.token}/"

    @property
    def url(self) -> str:
        """The page itself, for people."""
        return f"http://{MACHINE}:{self.port}{self.base}"

    @property
    def hosts(self) -> list[str]:
        """The names by which a browser on this machine may call the server."""
        return [f"{name}:{self.port}" for name in (MACHINE, "localhost")]

    def refusal(self, hosts: Sequence[str], path: str) -> str:
        """Why a request is not answered, in a line; empty if it is.

        `hosts` are the values of its header `Host`, of which there must be one.
        """
        if list(hosts) not in [[host] for host in self.hosts]:
            return "wrong host\n"
        if not hmac.compare_digest(path[: len(self.base)].encode(), self.base.encode()):
            return "wrong address: use the one printed\n"
        return ""


def headers(kind: str, size: int) -> dict[str, str]:
    """The headers of a response of `size` bytes: not cached, no referrer, in no other page."""
    return {
        "Content-Type": f"{kind}; charset=utf-8",
        "Content-Length": str(size),
        "Cache-Control": "no-store",
        "Referrer-Policy": "no-referrer",
        "X-Frame-Options": "DENY",
    }
