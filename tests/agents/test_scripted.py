"""The product ``scripted``: playbooks are checked, played strictly, and can misbehave."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from attempts_made import BEST

from eop.agents import patch, workspace
from eop.agents.contract import Expected, Limits, Mode, Request, Result, Status, Turn
from eop.agents.invoke import invoke
from eop.agents.products.scripted import load
from eop.core.errors import EopError

if TYPE_CHECKING:
    from eop.agents.products.scripted import Scripted

SCHEMA = yaml.safe_load(
    (Path(__file__).parents[2] / "config/schemas/playbook.schema.yaml").read_text()
)
CHECK = {
    "passed": False,
    "invariants": [
        {"id": "I1", "title": "causal", "status": "passed", "detail": "", "measured": {}},
        {
            "id": "I5",
            "title": "one score",
            "status": "failed",
            "detail": "scores differ",
            "measured": {"difference": 0.25},
        },
    ],
}


def product(folder: Path, *steps: dict[str, Any]) -> Scripted:
    (folder / "playbook.yaml").write_text(yaml.safe_dump({"steps": list(steps)}))
    return load(folder / "playbook.yaml", SCHEMA)


def play(
    folder: Path,
    *steps: dict[str, Any],
    inputs: dict[str, Any] | None = None,
    outputs: tuple[str, ...] = (),
    mode: Mode = Mode.WRITE,
    capabilities: tuple[str, ...] = ("read", "edit"),
    turn: Turn | None = None,
) -> tuple[Result, Path]:
    base = folder / "base"
    (base / "models").mkdir(parents=True)
    (base / "models/a.py").write_text("a = 1\nb = 1\n")
    (base / "experiment.yaml").write_text("model:\n  layers: 2  # depth\nseed: 7\n")
    store = patch.init_store(folder / "store.git")
    tree = patch.commit_tree(store, base)
    given = {}
    for name, value in (inputs or {}).items():
        given[name] = folder / f"{name}.json"
        given[name].write_text(json.dumps(value))
    _, priors = workspace.create(folder / "attempt", store, tree, given, "p")
    request = Request(
        turn=turn or Turn("r", "n", "implement", "implementer", 1),
        product="scripted",
        task="p",
        directory=folder / "attempt",
        store=store,
        base=tree,
        mode=mode,
        editable=("models/**", "experiment.yaml"),
        capabilities=capabilities,
        limits=Limits(wall_s=20, idle_s=20, grace_s=0.3),
        inputs=priors,
        outputs=tuple(Expected(name, name) for name in outputs),
    )
    return invoke(product(folder, *steps), request, BEST), folder / "attempt"


def failure(folder: Path, action: dict[str, Any], **options: Any) -> str:
    result, _ = play(folder, {"do": [action]}, **options)
    assert result.status is Status.INVALID_OUTPUT
    return result.reason.detail


def test_the_first_step_that_fits_is_played(tmp_path: Path) -> None:
    result, attempt = play(
        tmp_path,
        {"when": {"role": "reviewer"}, "do": [{"crash": 3}]},
        {"when": {"proposal": "other"}, "do": [{"crash": 3}]},
        {"when": {"role": "implementer", "iteration": 1}, "do": [
            {"edit": {"file": "models/a.py", "find": "a = 1", "replace": "a = 2"}},
            {"edit": {"file": "models/new/b.py", "create": "b = 1\n"}},
            {"experiment": {"model.layers": 3}},
            {"write": {"output": "notes", "json": {"x": 1}}},
        ]},
        {"do": [{"crash": 3}]},
        outputs=("notes",),
    )  # fmt: skip
    assert result.status is Status.OK, result.reason
    assert result.counters.actions == 4
    assert (attempt / "workspace/models/a.py").read_text() == "a = 2\nb = 1\n"
    experiment = (attempt / "workspace/experiment.yaml").read_text()
    assert experiment == "model:\n  layers: 3  # depth\nseed: 7\n"
    assert json.loads(result.outputs["notes"].read_text()) == {"x": 1}


def test_no_step_fits(tmp_path: Path) -> None:
    result, _ = play(tmp_path, {"when": {"phase": "propose"}, "do": []})
    assert result.status is Status.INVALID_OUTPUT
    assert "no step for" in result.reason.detail


@pytest.mark.parametrize(
    ("action", "said"),
    [
        ({"edit": {"file": "models/a.py", "find": "zzz", "replace": ""}}, "occurs 0 times"),
        ({"edit": {"file": "models/a.py", "find": " = 1", "replace": ""}}, "occurs 2 times"),
        ({"edit": {"file": "models/a.py", "create": ""}}, "exists already"),
        ({"edit": {"file": "gone.py", "find": "x", "replace": ""}}, "gone.py"),
        ({"experiment": {"optimiser.rate": 1}}, "no section 'optimiser'"),
        ({"write": {"output": "unasked", "text": "x"}}, "no output 'unasked'"),
        ({"report": {"output": "n", "template": "{metrics.ndcg}"}}, "no input 'metrics'"),
        ({"review": {"from_check": True}}, "no input 'check'"),
    ],
)
def test_an_action_that_cannot_be_done_fails(
    tmp_path: Path, action: dict[str, Any], said: str
) -> None:
    assert said in failure(tmp_path, action, outputs=("n", "review"))


def test_edits_come_from_a_file_beside_the_playbook(tmp_path: Path) -> None:
    changes = [{"file": "models/a.py", "find": "b = 1", "replace": "b = 3"}]
    (tmp_path / "leak.yaml").write_text(yaml.safe_dump(changes))
    result, attempt = play(tmp_path, {"do": [{"edits": "leak.yaml"}]})
    assert result.status is Status.OK
    assert "b = 3" in (attempt / "workspace/models/a.py").read_text()


def test_reports_quote_the_real_numbers(tmp_path: Path) -> None:
    template = '{turn.role}: {m.metrics.ndcg@10:.3f} of {m.rows.1}; {m.all} {"kept": true}'
    result, _ = play(
        tmp_path,
        {"do": [{"report": {"output": "n", "template": template}}]},
        inputs={"m": {"metrics": {"ndcg@10": 0.04492}, "rows": ["a", "b"], "all": [1]}},
        outputs=("n",),
        mode=Mode.READ_ONLY,
    )
    assert result.outputs["n"].read_text() == 'implementer: 0.045 of b; [1] {"kept": true}'


@pytest.mark.parametrize(
    ("place", "said"),
    [("m.x", "no 'x'"), ("m.none", "has no value"), ("m.a.b", "no 'b'"), ("m.a:.2f", "placehold")],
)
def test_an_unknown_placeholder_fails(tmp_path: Path, place: str, said: str) -> None:
    action = {"report": {"output": "n", "template": f"{{{place}}}"}}
    inputs = {"m": {"none": None, "a": "text"}}
    assert said in failure(tmp_path, action, inputs=inputs, outputs=("n",))


FAULT = {"severity": "minor", "family": "none", "suggested_check": "look"}


def test_a_review_comes_from_the_check_and_from_what_is_still_there(tmp_path: Path) -> None:
    listed = [
        {"id": "F1", **FAULT, "claim": "still", "evidence": "a = 1",
         "unless_fixed": {"file": "models/a.py", "find": "a = 1"}},
        {"id": "F2", **FAULT, "claim": "gone", "evidence": "zzz",
         "unless_fixed": {"file": "models/a.py", "find": "zzz"}},
    ]  # fmt: skip
    earlier = [{**listed[1], "id": "F2", "status": "open"}]
    del earlier[0]["unless_fixed"]
    result, _ = play(
        tmp_path,
        {"do": [{"review": {"from_check": True, "findings": listed}}]},
        inputs={"check": CHECK, "findings": earlier},
        outputs=("review",),
        mode=Mode.READ_ONLY,
    )
    findings = json.loads(result.outputs["review"].read_text())["findings"]
    assert [(f["id"], f["severity"], f["status"]) for f in findings] == [
        ("check-I5", "critical", "open"),
        ("F1", "minor", "open"),
        ("F2", "minor", "resolved"),
    ]
    assert findings[0]["evidence"] == 'scores differ (measured: {"difference": 0.25})'


def test_edits_are_denied_without_the_capability(tmp_path: Path) -> None:
    action = {"edit": {"file": "models/a.py", "find": "a = 1", "replace": "a = 2"}}
    result, _ = play(tmp_path, {"do": [action]}, capabilities=("read",))
    assert (result.status, result.counters.denied) == (Status.BLOCKED, 1)


@pytest.mark.parametrize(
    ("action", "status"),
    [
        ({"crash": 7}, Status.INVALID_OUTPUT),
        ({"edit_protected": "judge.py"}, Status.POLICY_VIOLATION),
        ({"silent_success": True}, Status.INVALID_OUTPUT),
    ],
)
def test_it_misbehaves_on_request(tmp_path: Path, action: dict[str, Any], status: Status) -> None:
    result, _ = play(tmp_path, {"do": [action]}, outputs=("n",))
    assert result.status is status


def test_a_daemon_is_swept(tmp_path: Path) -> None:
    change = {"experiment": {"seed": 8}}
    result, _ = play(tmp_path, {"do": [change, {"spawn_daemon": 60}]})
    left = None if BEST.layers else 1
    assert (result.status, result.counters.survivors) == (Status.OK, left)


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        ([{"do": [{"edti": {}}]}], "unknown key 'edti'"),
        ([{"when": {"rol": "x"}, "do": []}], "did you mean 'role'"),
        ([{"do": [{"edit": {"file": "a", "find": "b"}}]}], "steps.0.do.0.edit"),
        ([{"do": [{"crash": 1, "hang": 2}]}], "too many properties"),
        ([{"do": [{"edits": "gone.yaml"}]}], "gone.yaml does not exist"),
        ([], "steps"),
    ],
)
def test_a_wrong_playbook_is_refused(tmp_path: Path, steps: list[Any], said: str) -> None:
    with pytest.raises(EopError, match=said) as caught:
        product(tmp_path, *steps)
    assert "playbook.yaml" in str(caught.value)


def test_its_digest_covers_the_edit_files(tmp_path: Path) -> None:
    (tmp_path / "e.yaml").write_text("[]\n")
    played = product(tmp_path, {"do": [{"edits": "e.yaml"}]})
    before = played.probe()
    assert replace(before) == played.probe()
    (tmp_path / "e.yaml").write_text("[] # other\n")
    assert played.probe().sha256 != before.sha256
