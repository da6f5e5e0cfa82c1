"""Gates through the real Snakemake: clean stop, go on, and everything that opens nothing."""

from __future__ import annotations

import json
import re
import shutil
import sys
from typing import TYPE_CHECKING

import pytest
import yaml

from eop.agents.jail import Level, detect

if TYPE_CHECKING:
    from conftest import Project


def outcome(project: Project, step: str) -> dict[str, str]:
    path = project.root / "runs" / "minimal-synthetic" / "it01" / step / "outcome.json"
    found: dict[str, str] = json.loads(path.read_text())
    return found


def test_a_closed_gate_ends_the_call_cleanly_and_says_what_to_do(project: Project) -> None:
    done = project.snakemake()
    assert done.returncode == 0
    assert "GATE CLOSED: agree (iteration 1)" in done.stderr
    assert f"read  {project.request('agree').relative_to(project.root)}" in done.stderr
    assert "Nothing to be done" in done.stderr
    assert not (project.root / "runs/minimal-synthetic/it01/advise").exists()


def test_after_the_touch_the_same_command_goes_on_to_the_end(project: Project) -> None:
    project.answer("agree", reason="reads well")
    done = project.snakemake()
    assert done.returncode == 0, done.stderr
    assert "RUN ENDED: completed" in done.stderr
    assert outcome(project, "agree")["outcome"] == "approved"
    assert outcome(project, "advise")["outcome"] == "completed"
    assert project.eop("verify").returncode == 0
    listed = json.loads(project.eop("gate", "list", "--json").stdout)
    assert listed["gates"][0]["status"] == "approved"
    assert listed["gates"][0]["reason"] == "reads well"


def test_a_sentinel_with_another_digest_approves_nothing_and_is_named(project: Project) -> None:
    page = project.request("agree")
    wrong = page.with_name(
        re.sub(r"\.[0-9a-f]{16}\.request\.md", ".0123456789abcdef.approved", page.name)
    )
    wrong.touch()
    before = len(project.events())
    done = project.snakemake()
    assert done.returncode == 0
    assert f"note  {wrong.name}: decides nothing" in done.stderr
    assert len(project.events()) == before


def test_a_rejection_goes_back_with_its_reason_and_asks_again(project: Project) -> None:
    project.answer("agree", "rejected", reason="name the file")
    done = project.snakemake()
    assert done.returncode == 0, done.stderr
    again = project.root / "runs/minimal-synthetic/it01/look.r2"
    prompt = next(again.rglob("prompt.md")).read_text()
    assert "name the file" in prompt
    assert "GATE CLOSED: agree (iteration 1)" in done.stderr
    assert "it01-agree.r2." in done.stderr
    assert project.eop("verify").returncode == 0
    (page,) = (project.root / "gates").rglob("*-agree.r2.*.request.md")
    assert "| name the file\n" in page.read_text()
    page.with_name(page.name.replace("request.md", "approved")).touch()
    done = project.snakemake()
    assert "RUN ENDED: completed" in done.stderr, done.stderr
    assert project.eop("verify").returncode == 0


@pytest.mark.parametrize("isolation", ["auto", "off"])
def test_an_agent_that_answers_for_a_person_opens_nothing(project: Project, isolation: str) -> None:
    """It knows the digest of what it is about to leave, and writes the answer beside its output."""
    if isolation == "auto" and detect() is Level.NONE:
        pytest.skip("this machine has no jail")
    page = project.request("agree")
    sentinel = page.with_name(page.name.replace("request.md", "approved"))
    shutil.rmtree(project.root / "runs")
    page.unlink()
    playbook = project.root / "config/playbooks/minimal.yaml"
    steps = yaml.safe_load(playbook.read_text())
    for step in steps["steps"]:
        if step.get("when", {}).get("phase") == "look":
            step["do"].append({"edit_protected": str(sentinel)})
    playbook.write_text(yaml.safe_dump(steps))
    project.configure(isolation=f'"{isolation}"')
    done = project.snakemake()
    assert not (project.root / "runs/minimal-synthetic/it01/advise").exists()
    kinds = [json.loads(path.read_text())["type"] for path in project.events()]
    assert "gate_approved" not in kinds
    if isolation == "off":
        assert done.returncode != 0
        assert "before its question" in done.stderr
        sentinel.unlink()
        again = project.snakemake()
        assert f"{sentinel.name}" in again.stderr, "the agent had known the digest"
        assert "note  agents of this run work without a jail" in again.stderr
    else:
        assert not sentinel.exists(), "the jail hides gates/"


def test_changed_content_behind_a_request_is_refused(project: Project) -> None:
    project.answer("agree")
    report = project.root / "runs/minimal-synthetic/it01/look/artifacts/report.md"
    report.write_text(report.read_text() + "one more line\n")
    done = project.snakemake()
    assert done.returncode != 0
    assert "tampered" in done.stderr
    assert not (project.root / "runs/minimal-synthetic/it01/advise").exists()
    assert project.eop("verify").returncode == 7


def test_a_node_started_by_hand_does_not_pass_the_gate(project: Project) -> None:
    started = (
        "from pathlib import Path; from eop.driver.node import run_node; "
        "run_node(Path.cwd(), 'minimal-synthetic', 'it01_advise')"
    )
    done = project.command(sys.executable, "-c", started)
    assert "gate it01_agree is closed" in done.stderr
    assert not (project.root / "runs/minimal-synthetic/it01/advise/artifacts").exists()


def test_eop_run_ends_with_3_at_a_gate_and_0_at_the_end(project: Project) -> None:
    assert project.eop("run").returncode == 3
    project.answer("agree")
    assert project.eop("run").returncode == 0


def test_gate_show_prints_the_request_and_approve_wants_a_terminal(project: Project) -> None:
    shown = project.eop("gate", "show", "agree")
    assert shown.stdout == project.request("agree").read_text()
    refused = project.eop("gate", "approve", "agree")
    assert refused.returncode == 2
    assert "touch gates/" in refused.stderr
    assert project.eop("gate", "show", "nothing").returncode == 7
