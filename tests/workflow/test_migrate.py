"""A run goes on under a changed protocol, under the real Snakemake; finished work stays done."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from conftest import MINIMAL

if TYPE_CHECKING:
    from conftest import Project

RUN = "minimal-synthetic"


def test_after_a_migration_finished_agents_are_entered_again_and_adopted(project: Project) -> None:
    """Their rules name another plan, so Snakemake starts them; the trace knows them as done."""
    outcome = project.root / "runs" / RUN / "it01/look/outcome.json"
    before = outcome.read_bytes()
    old = project.request("agree")
    path = project.root / MINIMAL
    path.write_text(path.read_text().replace("Name the one change", "Name the two changes"))
    refused = project.snakemake()
    assert refused.returncode == 7
    assert "eop migrate" in refused.stderr
    done = project.eop("migrate", "--reason", "one is too few")
    assert done.returncode == 0, done.stderr
    assert "step 'advise' was changed: body" in done.stdout

    done = project.snakemake()
    assert done.returncode == 0, done.stderr
    assert "Job" in done.stderr
    assert "look (iteration 1)" in done.stderr, "its job has run again"
    assert outcome.read_bytes() == before
    entered = [e for e in project.recorded(RUN) if e["type"] == "node_entered"]
    assert [event["data"]["node"] for event in entered] == ["it01_look"], "and did no work"

    (new,) = (page for page in old.parent.glob("*.request.md") if page != old)
    old.with_name(old.name.replace("request.md", "approved")).touch()
    assert "GATE CLOSED: agree" in project.snakemake().stderr, "the old question was withdrawn"
    new.with_name(new.name.replace("request.md", "approved")).touch()
    done = project.snakemake()
    assert "RUN ENDED: completed" in done.stderr, done.stderr
    prompt = next((project.root / "runs" / RUN / "it01/advise").rglob("prompt.md")).read_text()
    assert "Name the two changes" in prompt
    verified = project.eop("verify")
    assert verified.returncode == 0, verified.stderr
    assert json.loads(outcome.read_text())["attempt"] == 1
