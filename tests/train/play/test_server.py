"""The server: who gets in, who does not, and what a page is told."""

import asyncio
import json
import urllib.error
import urllib.request

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tests.train import untrained
from train.host.showing.live_game import Game
from train.host.showing.private_address import MACHINE
from train.play import __main__ as play
from train.play import server

PAGE = "<!doctype html><title>a game</title>"


@pytest.fixture(scope="module")
def live():
    run = untrained.snake()
    assert run.program.views.live is not None
    return run.program.views.live(run, 0)


def run_visit(live, visit):
    """What `visit(table)` returns while the table is open."""

    async def go():
        table = server.Table(PAGE, lambda: Game(live, 0))
        asyncio_server = await table.listen()
        try:
            return await asyncio.wait_for(visit(table), 60)
        finally:
            asyncio_server.close()
            await asyncio_server.wait_closed()

    return asyncio.run(go())


def socket_of(table, **changes):
    address = f"ws://{MACHINE}:{table.address.port}/{table.address.token}/socket"
    origin = f"http://{MACHINE}:{table.address.port}"
    return connect(changes.pop("uri", address), origin=changes.pop("origin", origin), **changes)


async def status_of(table, path: str, **headers: str) -> int:
    def ask():
        request = urllib.request.Request(f"http://{MACHINE}:{table.address.port}{path}")
        for name, value in headers.items():
            request.add_header(name, value)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=20) as response:
                assert response.read().decode() == PAGE
                assert response.headers["Content-Type"].startswith("text/html")
                return response.status
        except urllib.error.HTTPError as error:
            return error.code

    return await asyncio.to_thread(ask)


def test_a_game_is_played_over_a_socket(live):
    async def visit(table):
        async with socket_of(table) as socket:
            replies = [json.loads(await socket.recv())]
            for text in ('{"do": "step"}', '{"do": "step", "direction": 0}', "no JSON"):
                await socket.send(text)
                replies.append(json.loads(await socket.recv()))
        return replies

    answers = run_visit(live, visit)
    assert [x.get("moment") for x in answers] == [0, 1, 2, None]
    assert answers[3] == {"error": "expected JSON"}


def test_the_page_is_at_its_secret_address_alone(live):
    async def visit(table):
        wrong = f"/{table.address.token[:-1]}x/"
        paths = (
            f"/{table.address.token}/",
            f"/{table.address.token}/?x=1",
            "/",
            wrong,
            f"/{table.address.token}/../",
        )
        statuses = [await status_of(table, path) for path in paths]
        statuses.append(await status_of(table, f"/{table.address.token}/", Host="evil.example"))
        statuses.append(await status_of(table, f"/{table.address.token}/other"))
        return statuses

    assert run_visit(live, visit) == [200, 200, 403, 403, 404, 403, 404]


def test_other_origins_and_wrong_tokens_get_no_socket(live):
    async def visit(table):
        statuses = []
        base = f"ws://{MACHINE}:{table.address.port}"
        for changes in (
            {"origin": "http://evil.example"},
            {"origin": None},
            {"origin": "null"},
            {"uri": f"{base}/wrong/socket"},
            {"uri": f"{base}/socket"},
        ):
            try:
                async with socket_of(table, **changes):
                    statuses.append(101)
            except InvalidStatus as error:
                statuses.append(error.response.status_code)
        return statuses

    assert run_visit(live, visit) == [403] * 5


def test_a_huge_message_ends_the_visit_and_nothing_else(live):
    async def visit(table):
        async with socket_of(table) as socket:
            await socket.recv()
            await socket.send("x" * 100_000)
            with pytest.raises(ConnectionClosed):
                await socket.recv()
        async with socket_of(table) as socket:
            return json.loads(await socket.recv())["moment"]

    assert run_visit(live, visit) == 0


def test_only_so_many_pages_at_once(live):
    async def visit(table):
        sockets = [await socket_of(table) for _ in range(server.MOST_GAMES)]
        for socket in sockets:
            await socket.recv()
        with pytest.raises(InvalidStatus):
            await socket_of(table)
        for socket in sockets:
            await socket.close()
        await asyncio.sleep(0.2)
        async with socket_of(table) as socket:
            return json.loads(await socket.recv())["moment"]

    assert run_visit(live, visit) == 0


def test_it_listens_on_this_machine_alone(live):
    async def visit(table):
        return table.url

    assert run_visit(live, visit).startswith("http://127.0.0.1:")


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "nowhere is not a run directory"),
        (["--policy", "nobody"], "nobody"),
        (["--policy", "snake-10x10", "--member", "3"], "the run has 1 seed,"),
        (["--port", "70000"], "port is 70000"),
        (["--terminal", "--port", "7000"], "--port has no effect with --terminal: leave it out"),
        (["--policy", "snake-10x10", "x"], "not both"),
        (["--against", "greedy"], "policies of snake meet nobody: leave out --against"),
        (["--policy", "two-snakes", "--against", "gready"], "or a script (static, random, greedy,"),
        (["--policy", "two-snakes", "--against", "snake-6x6"], "is of snake; expected players"),
    ],
)
def test_what_cannot_be_played_is_refused_in_one_line(arguments, message, capfd):
    assert play.main(arguments) == 2
    assert message in " ".join(capfd.readouterr().err.split())
