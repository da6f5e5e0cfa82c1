"""The page on real agents, executed: a whole iteration with Claude Code and Codex as they are."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from attempts_real import TOKEN
from iteration_script import LEAK, script
from kits import CLAUDE, CODEX, FOLDER, ROOT
from scripted_model import ScriptedModel

from eop.driver.demo import make_project

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = (ROOT / "docs/howto/real-agents.md").read_text()
RUN = "demo-real-synthetic"
GATES = ("confirm_investigation", "approve_proposals", "confirm_evolution")
pytestmark = pytest.mark.products


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Played:
    """The project after the run, what its commands printed, and the model's side of it."""

    root: Path
    printed: list[str]
    model: ScriptedModel

    def node(self, path: str) -> Path:
        return self.root / "runs" / RUN / path

    def entry(self, name: str) -> dict[str, Any]:
        path = self.root / "leaderboard" / f"{RUN}-{name}" / "entry.yaml"
        found: dict[str, Any] = yaml.safe_load(path.read_text())
        return found


def shell(root: Path, block: str) -> subprocess.CompletedProcess[str]:
    """A block as somebody types it in the project, in an environment that has ``eop``."""
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(root),
        "COLUMNS": "100",
        **dict.fromkeys(re.findall(r"key_env: (\w+)", PAGE), TOKEN),
    }
    return subprocess.run(
        ["bash", "-e", "-c", block], cwd=root, env=environment, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=900, check=False,
    )  # fmt: skip


def name_products(root: Path, url: str) -> None:
    """The page's settings in the place of those that ship, with the scripted model's address."""
    (settings,) = blocks("yaml")
    settings = re.sub(r"url: https://[^/\s]+", f"url: {url}", settings)
    path = root / "config/config.yaml"
    shipped = path.read_text()
    path.write_text(re.sub(r"^agents:\n(?: .*\n)+", settings, shipped, flags=re.MULTILINE))
    (root / ".products").symlink_to(FOLDER)


def answer(root: Path, gate: str) -> None:
    """What a person does after reading the page of the request; the last gate ends the run."""
    (page,) = (root / "gates").rglob(f"*-{gate}.*.request.md")
    word = "rejected" if gate == GATES[-1] else "approved"
    page.with_name(page.name.removesuffix("request.md") + word).touch()


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    root = tmp_path_factory.mktemp("real") / "project"
    make_project(root)
    with ScriptedModel(script(), TOKEN) as model:
        name_products(root, model.url)
        _, prepare, _, run, look = blocks("sh")
        done = shell(root, prepare)
        assert done.returncode == 0, done.stdout
        for gate in GATES:
            done = shell(root, run)
            assert done.returncode == 3, done.stdout
            assert f"GATE CLOSED: {gate}" in done.stdout
            answer(root, gate)
        done = shell(root, run)
        assert done.returncode == 0, done.stdout
        looked = shell(root, look)
        assert looked.returncode == 0, looked.stdout
        yield Played(root, [looked.stdout], model)


def test_it_goes_from_propose_to_the_leaderboard(played: Played) -> None:
    row = played.entry("it01-p01")
    assert row["outcome"] == "completed"
    assert row["validation"]["mean"]["ndcg@10"] > 0
    # Its title may go over two lines.
    assert "Genres as a side" in played.printed[0]
    assert f"{RUN}-it01-p01" in played.printed[0]


def test_both_products_are_on_record_as_they_are(played: Played) -> None:
    made = played.entry("it01-p01")["evidence"]["products"]
    author, reviewer = made["implement.implementer"], made["implement.reviewer"]
    assert (author["name"], author["version"]) == ("claude-code", CLAUDE.version)
    assert (reviewer["name"], reviewer["version"]) == ("codex", CODEX.version)
    asked = {(one.protocol, one.model) for one in played.model.asked}
    assert asked == {("messages", "claude-sonnet-4-5"), ("responses", "gpt-5.2-codex")}


def test_the_leak_was_found_by_one_and_mended_by_the_other(played: Played) -> None:
    review = json.loads(played.node("it01/p01/implement/artifacts/review.json").read_text())
    assert [one["verdict"] for one in review["rounds"]] == ["fix", "approved"]
    assert review["findings"][0]["status"] == "resolved"
    patch = played.node("it01/p01/implement/artifacts/patch.diff").read_text()
    assert "genre_alpha" in patch
    assert LEAK not in patch


def test_a_rate_limit_costs_an_attempt_and_no_branch(played: Played) -> None:
    work = played.node("it01/p01/implement/work")
    (reviewer, *_) = sorted(work.glob("*-reviewer"))
    ends = [json.loads(path.read_text()) for path in sorted(reviewer.glob("a*/result.json"))]
    assert [end["status"] for end in ends] == ["transient_error", "ok"]
    assert ends[0]["reason"]["http_status"] == 429


def test_the_model_s_side_saw_nothing_odd(played: Played) -> None:
    assert [seen.refusal for seen in played.model.seen if seen.refusal] == []


def test_every_token_is_counted_once(played: Played) -> None:
    results = played.node("").rglob("work/**/a*/result.json")
    usages = [json.loads(path.read_text())["usage"] for path in results]
    assert sum(one["input"] for one in usages) == sum(s.tokens.input for s in played.model.said)
    assert sum(one["output"] for one in usages) == sum(s.tokens.output for s in played.model.said)


def test_no_file_has_the_key(played: Played) -> None:
    made = ("runs", "leaderboard", "knowledge", "gates", "config")
    files = [path for top in made for path in (played.root / top).rglob("*") if path.is_file()]
    assert len(files) > 300
    assert not [path for path in files if TOKEN.encode() in path.read_bytes()]
