"""`eop report`: the file, and the page that follows a run."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest
from browsing import FLAGS, browser_path
from click.testing import CliRunner
from reported_run import reported

from eop.cli import cli
from eop.report.serve import PageServer

REPOSITORY = Path(__file__).parents[2]
EOP = [sys.executable, "-m", "eop.cli"]


def get(address: str, **headers: str) -> str:
    request = urllib.request.Request(address, headers=headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return answer.read().decode()


@contextmanager
def watched(root: Path):
    """The address of a page that is watched; Ctrl-C ends it."""
    command = [*EOP, "--project", str(root), "report", "--watch", "--run", "r1"]
    with subprocess.Popen(
        command,
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    ) as process:
        try:
            yield re.match(r"http://\S+/", process.stdout.readline())[0]
        finally:
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
    assert out.strip() == "runs/r1/report.html"


def approve(root: Path) -> None:
    (request,) = (root / "gates" / "r1").glob("it01-evolve.*.request.md")
    request.with_name(request.name.replace(".request.md", ".approved")).touch()


def test_the_page_of_a_run_is_written(tmp_path):
    reported(tmp_path)
    done = CliRunner().invoke(cli, ["--project", str(tmp_path), "report", "--run", "r1"])
    assert (done.exit_code, done.output) == (0, "runs/r1/report.html\n")
    text = (tmp_path / "runs/r1/report.html").read_text()
    assert "A deeper net" in text
    assert "data-version" not in text


def test_a_watched_page_follows_the_run_and_is_written_at_the_end(tmp_path):
    reported(tmp_path)
    with watched(tmp_path) as address:
        first = newer = get(f"{address}version")
        assert f'data-version="{first}"' in get(address)
        approve(tmp_path)
        for _ in range(300):
            if (newer := get(f"{address}version")) != first:
                break
            time.sleep(0.2)
        assert newer != first
        assert "Waiting for you: evolve" not in get(address)
    assert "Iteration 2" in (tmp_path / "runs/r1/report.html").read_text()


@pytest.mark.xdist_group("browser")
@pytest.mark.skipif(browser_path() is None, reason="no Chromium: apt-get install chromium")
def test_an_open_page_is_loaded_anew_and_keeps_what_its_reader_had_opened(tmp_path):
    from playwright.sync_api import expect, sync_playwright

    reported(tmp_path)
    with watched(tmp_path) as address, sync_playwright() as player:
        browser = player.chromium.launch(executable_path=browser_path(), args=FLAGS)
        page = browser.new_page()
        said: list[str] = []
        page.on("console", lambda message: said.append(message.text))
        page.goto(address)
        page.locator("#r1-it01-p03 > summary").click()
        expect(page.get_by_text("Waiting for you: evolve")).to_be_visible()
        approve(tmp_path)
        expect(page.get_by_text("Waiting for you: evolve")).to_have_count(0, timeout=60_000)
        expect(page.locator("#r1-it01-p03")).to_have_attribute("open", "")
        assert said == []
        browser.close()


def test_the_server_gives_the_page_and_nothing_else_and_only_by_its_own_name():
    with PageServer() as server:
        server.show("v1", "<p>the page</p>")
        assert server.address.startswith("http://127.0.0.1:")
        assert get(server.address) == "<p>the page</p>"
        assert get(f"{server.address}version") == "v1"
        for path, headers, status in (
            ("../../etc/passwd", {}, 404),
            ("page", {}, 404),
            ("", {"Host": "evil.example"}, 421),
        ):
            with pytest.raises(urllib.error.HTTPError) as refused:
                get(server.address + path, **headers)
            assert refused.value.code == status


def test_a_taken_port_is_said(tmp_path):
    reported(tmp_path)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = CliRunner().invoke(
            cli, ["--project", str(tmp_path), "report", "--run", "r1", "--watch", "--port", port]
        )
    assert done.exit_code != 0
    assert "EOP890" in str(done.exception)
    assert port in str(done.exception)
