"""The protocol `litgpt-evolve` as shipped, on a stand-in for a checkout, under the real Snakemake.

LitGPT itself is not here: three files take its place, agents follow a playbook, and the losses
that one of them reports are made up. Tested is the procedure: gates, branches, what is protected.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from conftest import Project, copy_sources

SOURCES = Path(__file__).parent / "litgpt"
RUN = "litgpt-evolve-synthetic"
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("litgpt")]


@pytest.fixture(scope="module")
def turn(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project whose first turn was approved, measured and found not to be worth another one."""
    project = copy_sources(tmp_path_factory.mktemp("litgpt") / "project")
    shutil.copytree(SOURCES / "checkout", project.root, dirs_exist_ok=True)
    shutil.copy(SOURCES / "litgpt-evolve.yaml", project.root / "config" / "playbooks")
    project.configure(protocol="config/protocols/litgpt-evolve.eop.md")
    for gate, answer in (
        ("confirm_survey", "approved"),
        ("approve_proposals", "approved"),
        ("confirm_turn", "rejected"),
    ):
        done = project.eop("run", "--cores", "2")
        assert done.returncode == 3, done.stdout + done.stderr
        project.answer(gate, answer)
    done = project.eop("run", "--cores", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "RUN ENDED: rejected" in done.stderr
    return project


def outcome(project: Project, node: str) -> tuple[str, str]:
    said = json.loads((project.root / "runs" / RUN / "it01" / node / "outcome.json").read_text())
    return said["outcome"], said["reason"]


def test_each_branch_ends_as_its_agents_made_it_end(turn: Project) -> None:
    assert outcome(turn, "p01/measure")[0] == "completed"
    tampered = outcome(turn, "p02/implement")
    assert tampered[0] == "tampered"
    assert "litgpt/evaluate.py" in tampered[1]
    assert outcome(turn, "p02/measure")[0] == "skipped"
    assert outcome(turn, "p03/implement")[0] == "completed"
    assert outcome(turn, "p03/measure")[0] == "failed"
    assert {outcome(turn, f"p0{branch}/analyze")[0] for branch in (1, 2, 3)} == {"completed"}
    assert outcome(turn, "compare")[0] == "completed"


def test_the_patch_is_what_the_fixer_left_and_changes_what_it_may(turn: Project) -> None:
    branch = turn.root / "runs" / RUN / "it01/p01/implement/artifacts"
    patch = (branch / "patch.diff").read_text()
    assert "+  lr_warmup_steps: 200\n" in patch
    assert patch.count("diff --git") == 1
    rounds = json.loads((branch / "review.json").read_text())["rounds"]
    assert [one["verdict"] for one in rounds] == ["fix", "approved"]
    checkout = turn.root / "config_hub/pretrain/small.yaml"
    assert checkout.read_text() == (SOURCES / "checkout/config_hub/pretrain/small.yaml").read_text()


def test_analysts_are_given_what_their_branch_has_come_to(turn: Project) -> None:
    work = turn.root / "runs" / RUN / "it01"
    told = [(work / f"p0{n}/analyze/artifacts/analysis.md").read_text() for n in (1, 2, 3)]
    assert told[0] == "Losses [3.4, 3.5] against [3.5, 3.6]."
    assert "policy_violation" in told[1]
    assert "exit status 5" in told[2]


def test_the_run_verifies_and_makes_no_entry(turn: Project) -> None:
    done = turn.eop("verify")
    assert done.returncode == 0, done.stderr
    assert json.loads(turn.eop("leaderboard", "--json").stdout)["rows"] == []
