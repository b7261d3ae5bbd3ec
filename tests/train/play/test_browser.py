"""Live games in a real browser: keys steer, edits take effect, a person wins."""

import asyncio
import threading
from pathlib import Path

import pytest

from tests.train import untrained
from tests.train.browser import PHONE, browser, complaints, overflows, press, show, wait_until
from train.host.showing.live_game import Game
from train.play import __main__ as play
from train.play.server import Table


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    with browser(tmp_path_factory.mktemp("browser")) as chrome:
        yield chrome


@pytest.fixture(scope="module")
def tables():
    """Servers of a policy of each kind, in a thread of their own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    open_tables = {}

    def table_of(name: str, make) -> Table:
        if name not in open_tables:
            run = make()
            live = play.live_of(run, play.Options())
            table = Table(play.page_of(name, run, live), lambda: Game(live, 0))
            server = asyncio.run_coroutine_threadsafe(table.listen(), loop).result(60)
            open_tables[name] = table, server
        return open_tables[name][0]

    yield table_of

    async def close():
        for _, server in open_tables.values():
            server.close()
            await server.wait_closed()

    asyncio.run_coroutine_threadsafe(close(), loop).result(60)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(10)
    loop.close()


pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", untrained.RUNS)
def test_a_policy_plays_without_complaints(driver, tables, name):
    show(driver, tables(name, untrained.RUNS[name]).url, PHONE)
    wait_until(lambda: driver.execute_script("return game.moment > 3 || game.ending"))
    driver.execute_script("game.pause()")
    driver.execute_script(
        "document.querySelectorAll('.overlays input[type=checkbox]').forEach(x => x.click())"
    )
    assert complaints(driver) == []
    assert not overflows(driver)


def start_paused_game(driver, url) -> None:
    """A new game that waits for steps."""
    show(driver, url)
    driver.execute_script("game.pause()")
    wait_until(lambda: not driver.execute_script("return game.waiting"))
    driver.execute_script("game.send({ do: 'new', seed: 1 })")
    wait_until(lambda: driver.execute_script("return game.moment === 0 && !game.waiting"))


def number(driver, name: str) -> int:
    return driver.execute_script("return game.frame().at(arguments[0])", name)


def test_arrow_keys_steer_the_snake(driver, tables):
    start_paused_game(driver, tables("snake", untrained.snake).url)
    for count, (key, heading) in enumerate((("ArrowUp", 0), ("ArrowLeft", 3), ("ArrowDown", 2))):
        press(driver, "body", key)
        wait_until(lambda count=count: driver.execute_script("return game.moment") == count + 1)
        assert number(driver, "heading") == heading
    assert complaints(driver) == []


def test_arrow_keys_steer_from_the_box_that_takes_over(driver, tables):
    start_paused_game(driver, tables("snake", untrained.snake).url)
    box = ".controls input[type=checkbox]"
    for count, (key, heading) in enumerate((("ArrowUp", 0), ("ArrowLeft", 3))):
        press(driver, box, key)
        wait_until(lambda count=count: driver.execute_script("return game.moment") == count + 1)
        assert number(driver, "heading") == heading
    driver.execute_script("game.hand.click()")
    assert driver.execute_script("return document.activeElement === game.canvas")


def test_a_click_moves_the_food(driver, tables):
    start_paused_game(driver, tables("snake", untrained.snake).url)
    click = """
        const box = game.canvas.getBoundingClientRect(), at = arguments[0] * box.width;
        game.canvas.dispatchEvent(new MouseEvent("click",
            { clientX: box.left + at, clientY: box.top + at, bubbles: true }));
    """
    driver.execute_script(click, 0.02)
    wait_until(lambda: number(driver, "food") == 0)
    assert driver.execute_script("return game.moment") == 0
    head = number(driver, "head")  # where there is no room for food
    driver.execute_script(
        "game.send({ do: 'edit', name: 'food', value: [arguments[0] % 7 + 0.5,"
        " Math.floor(arguments[0] / 7) + 0.5] })",
        head,
    )
    wait_until(lambda: "empty cell" in driver.execute_script("return game.status.textContent"))
    assert number(driver, "food") == 0
    driver.execute_script("game.step()")  # what was refused can still be read
    wait_until(lambda: driver.execute_script("return game.moment === 1 && !game.waiting"))
    assert "empty cell" in driver.execute_script("return game.status.textContent")


def test_a_slider_shows_what_the_game_has(driver, tables):
    """On random ground, of which each game has its own slope; also after a change is refused."""
    start_paused_game(driver, tables("random ground", lambda: untrained.colony("random")).url)
    at = lambda: driver.execute_script("return Number(game.sliders.slope.slider.value)")
    slope = lambda: driver.execute_script("return game.numbers.slope")
    slopes = []
    for seed in (1, 2):
        driver.execute_script("game.send({ do: 'new', seed: arguments[0] })", seed)
        wait_until(lambda: not driver.execute_script("return game.waiting"))
        slopes.append(slope())
        assert at() == pytest.approx(slope(), abs=0.0011)  # half of a step of the slider
    assert slopes[0] != slopes[1]
    drag = "const { slider } = game.sliders.slope; slider.value = arguments[0];"
    drag += "slider.dispatchEvent(new Event('change'));"
    driver.execute_script(drag, -0.1)
    wait_until(lambda: slope() == pytest.approx(-0.1))
    driver.execute_script("game.sliders.slope.slider.value = 0.1")
    driver.execute_script("game.send({ do: 'edit', name: 'slope', value: 9 })")
    wait_until(lambda: at() == pytest.approx(-0.1))
    status = lambda: driver.execute_script("return game.status.textContent")
    assert "expected -0.2 to 0.2" in status()
    driver.execute_script(drag, 0.05)
    wait_until(lambda: slope() == pytest.approx(0.05))
    assert status() == ""  # the refusal was not of this change
    assert complaints(driver) == []


def test_two_players_are_chosen_and_their_games_counted(driver, tables):
    start_paused_game(driver, tables("two_snake", untrained.two_snakes).url)
    choose = """
        game.seats.forEach((seat, i) => { seat.value = arguments[i]; });
        game.goesOn.checked = true;
        game.speed = 1000;
        game.meet();
        game.resume();
    """
    standing = lambda: driver.execute_script("return game.standing.textContent.trim()")
    driver.execute_script("""
        const hear = game.hear.bind(game);
        game.hear = (message) => { game.last = message; hear(message); };
        game.step();
    """)
    wait_until(lambda: driver.execute_script("return Boolean(game.last)"))
    seat_and_status = driver.execute_script("""
        game.seats[1].value = "static";
        game.meet();
        game.hear(game.last); // the answer to a step of the game before
        return [game.seats[1].value, game.status.textContent];
    """)
    assert seat_and_status == ["static", "Preparing the players …"]
    wait_until(lambda: standing().endswith(" 0 : 0 static"))
    assert driver.execute_script("return game.status.textContent") == ""
    driver.execute_script(choose, "greedy", "static")
    wait_until(lambda: standing() == "games: greedy 2 : 0 static")
    driver.execute_script(choose, "static", "static")  # an end without a move
    wait_until(lambda: standing() == "games: static 0 : 0 static, 1 drawn")
    driver.execute_script(choose, "greedy", "static")  # which no one has forgotten
    wait_until(lambda: standing().startswith("games: greedy 2 : 0 static"))
    assert complaints(driver) == []


CHASE = Path(__file__).with_name("chase.js").read_text()
KEYS = ("ArrowUp", "ArrowRight", "ArrowDown", "ArrowLeft")


def test_a_person_wins_a_game_of_two_snakes(driver, tables):
    """Against a snake that has learned nothing, by going straight for the food."""
    start_paused_game(driver, tables("two_snake", untrained.two_snakes).url)
    endings = []
    for seed in range(5):
        driver.execute_script("game.send({ do: 'new', seed: arguments[0] })", seed)
        wait_until(lambda: driver.execute_script("return game.moment === 0 && !game.waiting"))
        for count in range(1, 300):
            direction = driver.execute_script(CHASE)
            if direction is None:
                break
            press(driver, "body", KEYS[direction])
            wait_until(lambda count=count: driver.execute_script("return game.moment") == count)
        endings.append(driver.execute_script("return game.status.textContent"))
        if endings[-1].startswith("red has won"):
            break
    assert endings[-1].startswith("red has won"), endings
    assert complaints(driver) == []
