"""A page that grows with its run: what it is told, who may see it, and that it ends."""

import json
import os
import re
import shutil
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from dataclasses import replace

import pytest

from tests.train.browser import browser, complaints, show, wait_until
from tests.train.host import descent
from train.host.running.live_page import STARTED_BY
from train.host.running.run import run
from train.report import __main__ as report
from train.report import live


@pytest.fixture
def follower(tmp_path):
    config = replace(
        descent.Config(), run=replace(descent.Config().run, directory=str(tmp_path / "x"))
    )
    run(descent.make_training(config), config, "tests.train.host.descent", "bowl")
    return live.Follower(str(tmp_path / "x"))


@pytest.fixture
def server(follower):
    live_server = live.Server(follower)
    thread = threading.Thread(target=live_server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield live_server
    live_server.shutdown()
    thread.join(10)
    live_server.server_close()


def ask(server, path: str, **headers: str) -> tuple[int, str]:
    request = urllib.request.Request(
        f"http://127.0.0.1:{server.server_port}{path}", headers=headers
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=20) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_data_are_the_record_so_far(follower):
    content = follower.data()
    assert content["steps"] == content["budget"] == 40
    assert content["records"][0]["steps"] == [10, 20, 30, 40]
    assert len(content["records"][0]["series"]["place"]["curves"]) == descent.SIZE
    (follower.run.directory / "metrics.jsonl").write_text("")
    assert follower.data()["steps"] == 0
    config = follower.run.directory / "config.yaml"  # as after --resume with a larger budget
    config.write_text(config.read_text().replace("total_steps: 40", "total_steps: 80"))
    assert follower.data()["budget"] == 80


def test_only_the_secret_address_answers(server):
    base = f"/{server.address.token}/"
    assert ask(server, base)[0] == 200
    assert json.loads(ask(server, f"{base}data")[1])["steps"] == 40
    for path in ("/", f"/{server.address.token}", f"/{server.address.token[1:]}/data", "/data"):
        assert ask(server, path)[0] == 403
    assert ask(server, f"{base}data", Host="evil.example")[0] == 403
    assert ask(server, f"{base}etc/passwd")[0] == 404
    (server.follower.run.directory / "eval.json").write_text("no evaluation")
    for path in (base, f"{base}data"):
        code, line = ask(server, path)
        assert code == 500
        assert "eval.json is not an evaluation: delete it" in line


@pytest.mark.slow
def test_the_page_grows_in_a_browser(server, tmp_path):
    with browser(tmp_path) as driver:
        show(driver, server.url)
        driver.execute_script("document.querySelector('.chart').remove()")
        charts = "return document.querySelectorAll('.chart').length"
        few = driver.execute_script(charts)
        wait_until(lambda: driver.execute_script(charts) > few)  # at the next look
        assert "40 of 40 gradient steps" in driver.execute_script("return document.body.innerText")
        assert complaints(driver) == []


def test_a_page_ends_whose_training_was_killed_before_it_was_served(follower, monkeypatch):
    monkeypatch.setenv(STARTED_BY, str(os.getpid()))  # a process that has not started this one
    with live.Server(follower) as server, pytest.raises(KeyboardInterrupt):
        server.service_actions()
    monkeypatch.setenv(STARTED_BY, str(os.getppid()))
    with live.Server(follower) as server:
        server.service_actions()


def test_the_file_is_named_as_it_is(follower, capfd, tmp_path):
    out = tmp_path / ("a" * 80) / "page[old].html"  # longer than a line, and no style of Rich
    out.parent.mkdir()
    assert report.main([str(follower.run.directory), "--out", str(out)]) == 0
    assert capfd.readouterr().out.startswith(f"{out}  ")


def test_what_a_run_without_a_checkpoint_can_show_is_said(follower, capfd, tmp_path):
    directory = follower.run.directory.rename(tmp_path / "my run")
    shutil.rmtree(directory / "checkpoints")
    assert report.main([str(directory)]) == 2
    message = " ".join(capfd.readouterr().err.split())
    assert "has no checkpoint: a run saves one every --run.checkpoint-every chunks" in message
    assert message.endswith(f"python -m train.report '{directory}' --live")


def test_it_follows_one_run(capfd, tmp_path):
    assert report.main(["--live"]) == 2
    assert "give one run directory" in capfd.readouterr().err
    assert report.main([str(tmp_path), "--live"]) == 2


@pytest.mark.parametrize("flags", [["--best"], ["--out", "x.html"], ["--episodes", "2"]])
def test_what_a_live_page_does_not_show_is_refused(flags, capfd, tmp_path):
    assert report.main([str(tmp_path), "--live", *flags]) == 2
    expected = f"{flags[0]} has no effect with --live: leave it out"
    assert expected in " ".join(capfd.readouterr().err.split())


@pytest.mark.slow
def test_a_training_serves_its_page_and_takes_it_along(tmp_path):
    command = [sys.executable, "-m", "tests.train.tiny", "--live", "--run.directory"]
    command += [str(tmp_path / "run"), "--run.total-steps", "2000000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as training:
        assert training.stdout is not None
        url = None
        for line in training.stdout:
            if match := re.search(r"live: http://127.0.0.1:\d+(/\S+)", line):
                url = match[0].removeprefix("live: ")
                break
        assert url is not None
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        assert b"live" in opener.open(url, timeout=20).read()
        training.terminate()
        training.communicate()
    with pytest.raises(urllib.error.URLError):
        opener.open(url, timeout=5)
