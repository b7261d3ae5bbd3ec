"""A real browser without a window, for tests of pages: Chromium, driven by Selenium.

Tests that need it are skipped, with a reason, where there is none: `apt-get install chromium
chromium-driver` installs one on Debian.
"""

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

BINARIES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--hide-scrollbars", "--no-proxy-server", "--disable-dev-shm-usage"),
)
DESKTOP, PHONE = (1280, 800), (390, 844)
PATIENCE = 30.0  # seconds


@contextmanager
def browser(folder: Path) -> Iterator[webdriver.Chrome]:
    """A browser with a profile of its own in `folder`; skips the test if there is none."""
    binary = next(filter(None, map(shutil.which, BINARIES)), None)
    driver = shutil.which("chromedriver")
    if binary is None or driver is None:
        pytest.skip("no Chromium with its driver is installed")
    options = Options()
    for flag in (*FLAGS, f"--user-data-dir={folder / 'profile'}"):
        options.add_argument(flag)
    options.binary_location = binary
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    chrome = webdriver.Chrome(options=options, service=Service(driver))
    try:
        yield chrome
    finally:
        chrome.quit()


def show(driver: webdriver.Chrome, address: str, size: tuple[int, int] = DESKTOP) -> None:
    """Opens a page and waits until it says that it is ready."""
    width, height = size
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    driver.get(address)
    wait_until(lambda: driver.execute_script("return document.body.dataset.ready === 'yes'"))


def wait_until(condition: Callable[[], Any]) -> Any:
    """What the condition becomes; fails if that takes too long."""
    begin = time.monotonic()
    while time.monotonic() - begin < PATIENCE:
        if result := condition():
            return result
        time.sleep(0.02)
    pytest.fail(f"nothing happened for {PATIENCE:.0f} s")


def complaints(driver: webdriver.Chrome) -> list[str]:
    """Errors and warnings in the console since the last call, but for those of `colour_at`."""
    messages = [
        x["message"] for x in driver.get_log("browser") if x["level"] in ("SEVERE", "WARNING")
    ]
    return [message for message in messages if "willReadFrequently" not in message]


def colour_at(driver: webdriver.Chrome, x: float, y: float) -> tuple[int, int, int]:
    """The colour of the first canvas at shares x and y of its width and height."""
    script = """
        const canvas = document.querySelector("canvas"), [x, y] = arguments;
        const at = [Math.floor(x * canvas.width), Math.floor(y * canvas.height)];
        return [...canvas.getContext("2d").getImageData(...at, 1, 1).data].slice(0, 3);
    """
    return tuple(driver.execute_script(script, x, y))


def press(driver: webdriver.Chrome, selector: str, key: str) -> None:
    """A key pressed while an element has the focus."""
    script = """
        const element = document.querySelector(arguments[0]);
        element.focus?.();
        element.dispatchEvent(new KeyboardEvent("keydown", { key: arguments[1], bubbles: true }));
    """
    driver.execute_script(script, selector, key)


def overflows(driver: webdriver.Chrome) -> bool:
    """Whether the page is wider than the window."""
    return driver.execute_script(
        "return document.documentElement.scrollWidth > window.innerWidth + 1"
    )
