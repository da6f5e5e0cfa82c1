"""The first protocol of `docs/protocol.md` runs to its end by the playbook shown there."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import yaml
from begun import MINIMAL, copied_project
from entry_samples import REPOSITORY
from small_project import drive

from eop.core.files import write_json, write_text
from eop.project.project import Project
from eop.runtime.trace import Trace
from eop.runtime.verify import verify

if TYPE_CHECKING:
    from pathlib import Path

REFERENCE = (REPOSITORY / "docs/protocol.md").read_text()
RUN = "minimal-synthetic"


def fences(kind: str) -> list[str]:
    return [
        text for _, text in re.findall(rf"^(`{{3,4}}){kind}\n(.*?)^\1$", REFERENCE, re.S | re.M)
    ]


def test_the_first_protocol_runs_to_its_end(tmp_path: Path) -> None:
    root = copied_project(tmp_path)
    [first] = fences("markdown")
    write_text(root / MINIMAL, first)
    [playbook] = [text for text in fences("yaml") if text.startswith("steps:")]
    write_text(root / "config/playbooks/minimal.yaml", playbook)
    config = root / "config/config.yaml"
    raw = yaml.safe_load(config.read_text())
    write_text(config, yaml.safe_dump({**raw, "isolation": "off"}))
    write_json(root / "data/splits/synthetic/manifest.json", {"dataset": "synthetic"})

    drive(root)
    project = Project.of_run(root, RUN)
    state = Trace(project.trace_dir, project.plan).state()
    assert state.ended == "completed"
    assert {node.status for node in state.nodes.values()} == {"completed"}
    assert verify(root, RUN) == []
