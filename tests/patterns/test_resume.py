"""A killed pattern goes on at its last commit: nothing is done, spent or patched twice."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from toy_target import CLEAN, LEAK, check, dual_phase, linear_phase, scripted, task

from eop.core.errors import EopError
from eop.patterns import run
from eop.protocol.model import Budget
from eop.runtime.node import Outcome

SCORE = "toy/models/score.py"
STEPS = [
    {"when": {"role": "implementer"}, "do": [
        {"edit": {"file": SCORE, "find": "return positive, negative",
                  "replace": f"{LEAK}, negative"}}]},
    {"when": {"role": "reviewer"}, "do": [{"review": {"from_check": True}}]},
    {"when": {"role": "fixer"}, "do": [
        {"edit": {"file": SCORE, "find": f"{LEAK}, negative", "replace": CLEAN}}]},
]  # fmt: skip
HANG = {"hang": 60}
REPORT = {"write": {"output": "report", "text": "fine\n"}}


def start_and_kill(folder: Path, role: str) -> None:
    """Run the loop in a process of its own and SIGKILL it while ``role`` hangs."""
    steps = [{**s, "do": [*s["do"], HANG] if s["when"]["role"] == role else s["do"]} for s in STEPS]
    (folder / "playbook.json").write_text(json.dumps(steps))
    code = f"""
import json, sys
from pathlib import Path
sys.path[:0] = [{str(Path(__file__).parent)!r}]
from toy_target import check, dual_phase, scripted, task
from eop.patterns import run
folder = Path({str(folder)!r})
product = scripted(folder, *json.loads((folder / "playbook.json").read_text()))
run(task(folder, dual_phase(), product, check=check))
"""
    runner = subprocess.Popen([sys.executable, "-c", code])
    deadline = time.monotonic() + 40
    played = len(next(s["do"] for s in STEPS if s["when"]["role"] == role))
    while time.monotonic() < deadline:
        streams = [p.read_text() for p in (folder / "node/work").glob(f"*-{role}/a*/stdout")]
        if streams and streams[0].count("tool_call") == played:
            break
        time.sleep(0.02)
    runner.send_signal(signal.SIGKILL)
    runner.wait()
    assert runner.returncode == -signal.SIGKILL


def committed(folder: Path) -> dict[str, dict[str, Any]]:
    paths = sorted((folder / "node/work").glob("*/committed.json"))
    return {path.parent.name: json.loads(path.read_text()) for path in paths}


@pytest.mark.parametrize(
    ("role", "before"),
    [
        ("implementer", []),
        ("fixer", ["01-implementer", "02-check", "03-reviewer"]),
    ],
)
def test_a_killed_loop_goes_on(tmp_path: Path, role: str, before: list[str]) -> None:
    start_and_kill(tmp_path, role)
    held = committed(tmp_path)
    assert list(held) == before
    result = run(task(tmp_path, dual_phase(), scripted(tmp_path, *STEPS), check=check))
    assert (result.outcome, result.reason) == (Outcome.COMPLETED, "approved")
    after = committed(tmp_path)
    assert {name: after[name] for name in held} == held
    attempts = sorted((tmp_path / "node/work").glob(f"*-{role}/a*"))
    assert [path.name for path in attempts] == ["a01", "a02"]
    assert json.loads((attempts[1] / "request.json").read_text())["turn"]["attempt"] == 1
    assert result.artifacts["patch"].read_text().count(f"+    {CLEAN}") == 1
    # Four nodes of one action each, and the one that the killed attempt had done already.
    assert result.usage.actions == 5


def test_a_finished_pattern_is_not_run_again(tmp_path: Path) -> None:
    work = task(tmp_path, dual_phase(), scripted(tmp_path, *STEPS), check=check)
    first = run(work)
    patch_bytes = first.artifacts["patch"].read_bytes()
    attempts = sorted((tmp_path / "node/work").glob("*/a*"))
    second = run(work)
    assert second == first
    assert second.artifacts["patch"].read_bytes() == patch_bytes
    assert sorted((tmp_path / "node/work").glob("*/a*")) == attempts


def test_killed_between_the_verdict_and_the_commit(tmp_path: Path) -> None:
    """The attempt was judged and paid for: it is committed, not repeated."""
    work = task(tmp_path, linear_phase(), scripted(tmp_path, {"do": [REPORT]}))
    first = run(work)
    (tmp_path / "node/work/01-investigator/committed.json").unlink()
    assert run(work) == first
    assert len(list((tmp_path / "node/work/01-investigator").glob("a*"))) == 1


def test_judged_failures_count_after_a_kill(tmp_path: Path) -> None:
    phase = linear_phase(budget=Budget(attempts=2))
    work = task(tmp_path, phase, scripted(tmp_path, {"do": [{"crash": 3}]}))
    assert run(work).outcome is Outcome.FAILED
    assert run(work).outcome is Outcome.FAILED
    assert len(list((tmp_path / "node/work/01-investigator").glob("a*"))) == 2


def test_an_edited_output_of_a_committed_node_is_refused(tmp_path: Path) -> None:
    work = task(tmp_path, linear_phase(), scripted(tmp_path, {"do": [REPORT]}))
    run(work)
    (tmp_path / "node/work/01-investigator/a01/outputs/report.md").write_text("better\n")
    with pytest.raises(EopError, match="is not what was committed"):
        run(work)


def test_other_inputs_are_other_work(tmp_path: Path) -> None:
    write = {"report": {"output": "report", "template": "{m.n}"}}
    source = tmp_path / "m.json"
    work = task(tmp_path, linear_phase(), scripted(tmp_path, {"do": [write]}), inputs={"m": source})
    source.write_text('{"n": 1}')
    assert run(work).artifacts["report"].read_text() == "1"
    source.write_text('{"n": 2}')
    assert run(work).artifacts["report"].read_text() == "2"


def test_an_attempt_that_died_silent_leaves_the_phase_its_budget(tmp_path: Path) -> None:
    """Killed before its product said a word: nobody knows what it spent, and there is a way on."""
    phase = linear_phase(budget=Budget(actions=5))
    work = task(tmp_path, phase, scripted(tmp_path, {"do": [REPORT]}))
    run(work)
    folder = tmp_path / "node/work/01-investigator"
    (folder / "committed.json").unlink()
    (folder / "a01/result.json").unlink()
    (folder / "a01/stdout").write_text("")
    assert run(work).outcome is Outcome.COMPLETED
    assert sorted(path.name for path in folder.glob("a*")) == ["a01", "a02"]
