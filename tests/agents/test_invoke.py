"""Invocations of programs that misbehave: typed statuses, nothing left running, evidence kept."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from attempts_made import BEST, DONE, EACH_JAIL, STARTED, Fake, attempt

from eop.agents.contract import Command, Expected, Limits, Mode, Status

if TYPE_CHECKING:
    from eop.agents.jail import Jail

EDIT = '\nPath("models/a.py").write_text("a = 2\\n")\n'
SCHEMA = {"type": "object", "required": ["score"], "properties": {"score": {"type": "number"}}}


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def pid_of(folder: Path, name: str = "pid") -> int:
    return int((folder / "attempt/outputs" / name).read_text())


def test_an_edit_is_ok_and_its_patch_is_told(tmp_path: Path) -> None:
    result = attempt(tmp_path, STARTED + EDIT + DONE, jail=BEST)
    assert result.status is Status.OK, result.reason
    assert result.patch is not None
    assert [(c.path, c.kind) for c in result.patch.changes] == [("models/a.py", "M")]
    assert result.counters.actions == 0
    assert result.exit is not None
    assert result.exit.stop is None
    record = json.loads((tmp_path / "attempt/result.json").read_text())
    assert record["status"] == "ok"


@pytest.mark.parametrize(
    ("body", "limits", "code"),
    [
        ("time.sleep(60)", Limits(wall_s=1.5, idle_s=30, grace_s=0.3), "timeout"),
        ("time.sleep(60)", Limits(wall_s=30, idle_s=1.5, grace_s=0.3), "idle"),
        (
            "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nsay('x')\nwhile True: time.sleep(1)",
            Limits(wall_s=1.5, idle_s=30, grace_s=0.3),
            "timeout",
        ),
    ],
)
def test_one_that_never_ends_is_stopped(
    tmp_path: Path, body: str, limits: Limits, code: str
) -> None:
    note = '\nPath("../outputs/pid").write_text(str(os.getpid()))\n'
    result = attempt(tmp_path, STARTED + note + body, limits=limits)
    assert (result.status, result.reason.code) == (Status.TIMEOUT, code)
    assert result.times.wall_s < 5
    assert result.exit is not None
    assert result.exit.stop is not None
    assert not alive(pid_of(tmp_path))


def test_steady_output_is_progress(tmp_path: Path) -> None:
    body = "\nfor _ in range(8):\n    say('message'); time.sleep(0.3)\n"
    limits = Limits(wall_s=20, idle_s=2)
    assert attempt(tmp_path, STARTED + body + EDIT + DONE, limits=limits).status is Status.OK


def test_a_secret_in_a_command_line_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Command((sys.executable, "--key=run-token-1"), secrets=("run-token-1",))
    monkeypatch.setattr(Fake, "command", lambda self, request: made)
    result = attempt(tmp_path, STARTED)
    assert result.status is Status.SETUP_ERROR
    assert "secret in its command line" in result.reason.detail
    assert not (tmp_path / "attempt/start.json").exists()


def test_daemons_in_sessions_of_their_own_do_not_survive(tmp_path: Path) -> None:
    body = """
child = subprocess.Popen([sys.executable, "-I", "-c", '''
import os, signal, time
if os.fork() == 0:
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    open("../outputs/pid", "w").write(str(os.getpid()))
    time.sleep(60)
'''], start_new_session=True)
child.wait()
while not Path("../outputs/pid").exists() or not Path("../outputs/pid").read_text():
    time.sleep(0.01)
"""
    result = attempt(tmp_path, STARTED + body + EDIT + DONE)
    assert result.status is Status.OK
    assert result.counters.survivors == 1
    assert not alive(pid_of(tmp_path))


def test_output_over_the_cap_stops_it(tmp_path: Path) -> None:
    body = "\nwhile True: sys.stdout.write('x' * 65536)\n"
    limits = Limits(wall_s=20, stdout_bytes=1 << 20, grace_s=0.3)
    result = attempt(tmp_path, STARTED + body, limits=limits)
    assert (result.status, result.reason.code) == (Status.BUDGET_EXHAUSTED, "output_cap")


def test_actions_over_the_budget_stop_it(tmp_path: Path) -> None:
    body = "\nfor i in range(1000):\n    say('tool_call', id=str(i)); time.sleep(0.02)\n"
    limits = Limits(actions=5, wall_s=20, grace_s=0.3)
    result = attempt(tmp_path, STARTED + body + DONE, limits=limits)
    assert (result.status, result.reason.code) == (Status.BUDGET_EXHAUSTED, "actions")
    assert result.counters.actions is not None
    assert 5 < result.counters.actions < 200


def test_actions_over_the_budget_count_even_when_it_was_quick(tmp_path: Path) -> None:
    body = "\nfor i in range(9): say('tool_call', id=str(i))\n"
    result = attempt(tmp_path, STARTED + EDIT + body + DONE, limits=Limits(actions=8))
    assert result.status is Status.BUDGET_EXHAUSTED
    assert result.counters.actions == 9


def test_a_repeated_call_id_is_one_action(tmp_path: Path) -> None:
    body = "\nfor i in range(9): say('tool_call', id='same')\n"
    result = attempt(tmp_path, STARTED + EDIT + body + DONE, limits=Limits(actions=8))
    assert (result.status, result.counters.actions) == (Status.OK, 1)


def test_silent_success_is_no_success(tmp_path: Path) -> None:
    result = attempt(tmp_path, "raise SystemExit(0)")
    assert (result.status, result.reason.code) == (Status.INVALID_OUTPUT, "no_report")
    assert result.counters.actions is None


def test_half_a_line_is_no_final_report(tmp_path: Path) -> None:
    body = (
        EDIT + """\nsys.stdout.write('{"type": "final", "status": "succ')\nsys.stdout.flush()\n"""
    )
    result = attempt(tmp_path, STARTED + body)
    assert (result.status, result.reason.code) == (Status.INVALID_OUTPUT, "no_report")


def test_broken_bytes_in_the_stream_are_survived(tmp_path: Path) -> None:
    body = r"""
sys.stdout.buffer.write(b'\xff\xfe{"type"\n[1]\n{"a": "\\ud800"}\n' + b'[' * 200000 + b'\n')
sys.stdout.buffer.flush()
say("final", status="error", text="\ud800 odd")
"""
    result = attempt(tmp_path, STARTED + body)
    assert (result.status, result.reason.code) == (Status.INVALID_OUTPUT, "product")


@pytest.mark.parametrize(
    ("ending", "code"),
    [("raise SystemExit(3)", "exit"), ("os.kill(os.getpid(), signal.SIGSEGV)", "signal")],
)
def test_its_own_success_is_no_evidence(tmp_path: Path, ending: str, code: str) -> None:
    result = attempt(tmp_path, STARTED + EDIT + DONE + ending)
    assert (result.status, result.reason.code) == (Status.INVALID_OUTPUT, code)


def test_a_protected_path_is_a_violation_with_its_patch_kept(tmp_path: Path) -> None:
    body = '\nPath("judge.py").write_text("j = 2\\n")\n'
    result = attempt(tmp_path, STARTED + body + DONE)
    assert result.status is Status.POLICY_VIOLATION
    assert result.violations == ("judge.py: protected",)
    assert result.patch is not None
    assert result.patch.changes


def test_a_deleted_protected_path_is_a_violation(tmp_path: Path) -> None:
    result = attempt(tmp_path, STARTED + 'os.unlink("judge.py")' + DONE)
    assert result.violations == ("judge.py: protected",)


def test_a_read_only_node_that_writes_is_a_violation(tmp_path: Path) -> None:
    result = attempt(tmp_path, STARTED + EDIT + DONE, mode=Mode.READ_ONLY)
    assert result.status is Status.POLICY_VIOLATION
    assert result.violations == ("models/a.py: changed by a read-only node",)


@pytest.mark.parametrize("jail", EACH_JAIL)
@pytest.mark.parametrize("mode", Mode)
def test_a_role_can_write_what_is_its_own_alone(tmp_path: Path, mode: Mode, jail: Jail) -> None:
    """An implementer its workspace, a reviewer only what is asked of it; neither the inputs."""
    source = tmp_path / "report.json"
    source.write_text("{}")
    body = """
for name in ("models/a.py", "new.py", "../outputs/o", "../home/h", "../tmp/t", "../inputs/x",
             "../request.json", "../prompt.md", "../stdout", "../attempt.json"):
    try:
        Path(name).write_text("x")
        say("message", text=name)
    except OSError:
        pass
"""
    result = attempt(
        tmp_path, STARTED + body + DONE, mode=mode, jail=jail, inputs={"check": source},
        editable=("**",),
    )  # fmt: skip
    lines = (tmp_path / "attempt/stdout").read_text().splitlines()
    written = {told["text"] for told in map(json.loads, lines) if told["type"] == "message"}
    # Below /tmp a new file by these names is one of the jail's own /tmp.
    written -= {"../stdout", "../attempt.json"}
    assert not (tmp_path / "attempt/attempt.json").exists()
    own = {"../outputs/o", "../home/h", "../tmp/t"}
    assert written == own | ({"models/a.py", "new.py"} if mode is Mode.WRITE else set())
    assert (result.status, result.violations) == (Status.OK, ())


def test_a_changed_input_is_a_violation(tmp_path: Path) -> None:
    source = tmp_path / "report.json"
    source.write_text("{}")
    body = (
        '\nos.chmod("../inputs/check.json", 0o644)\nPath("../inputs/check.json").write_text("1")\n'
    )
    result = attempt(tmp_path, STARTED + EDIT + body + DONE, inputs={"check": source})
    assert result.violations == ("check.json: input was changed",)
    assert source.read_text() == "{}"


def test_refused_tool_calls_and_no_change_are_blocked(tmp_path: Path) -> None:
    body = "\nsay('tool_call', id='1', outcome='denied')\n"
    result = attempt(tmp_path, STARTED + body + DONE)
    assert (result.status, result.counters.denied) == (Status.BLOCKED, 1)


def test_no_change_is_told(tmp_path: Path) -> None:
    assert attempt(tmp_path, STARTED + DONE).status is Status.NO_CHANGE


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "was not left"),
        ("", "is empty"),
        ("{", "is not valid JSON"),
        ('{"score": NaN}', "NaN is no JSON number"),
        ('{"score": "high"}', "score: 'high' is not of type 'number'"),
    ],
)
def test_an_output_that_is_not_as_asked(tmp_path: Path, content: str | None, said: str) -> None:
    body = "" if content is None else f'\nPath("../outputs/s.json").write_text({content!r})\n'
    result = attempt(
        tmp_path,
        STARTED + body + DONE,
        mode=Mode.READ_ONLY,
        outputs=(Expected("score", "s.json", SCHEMA),),
    )
    assert result.status is Status.INVALID_OUTPUT
    assert said in result.reason.detail
    assert result.outputs == {}


def test_a_link_is_no_output(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s")
    body = f'\nos.symlink("{tmp_path}/secret", "../outputs/s.md")\n'
    outputs = (Expected("s", "s.md"),)
    result = attempt(tmp_path, STARTED + body + DONE, mode=Mode.READ_ONLY, outputs=outputs)
    assert "not a regular file" in result.reason.detail


def test_the_environment_is_an_allow_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_KEY", "s3cret")
    monkeypatch.setenv("PYTHONPATH", "/nowhere")
    body = '\nPath("../outputs/env.json").write_text(json.dumps(dict(os.environ)))\n'
    result = attempt(
        tmp_path,
        STARTED + body + DONE,
        mode=Mode.READ_ONLY,
        outputs=(Expected("env", "env.json", {"type": "object"}),),
    )
    seen = json.loads(result.outputs["env"].read_text())
    assert not {"SECRET_KEY", "PYTHONPATH"} & set(seen)
    assert seen["HOME"] == str(tmp_path / "attempt/home")


def test_a_capability_that_the_product_cannot_be_held_to(tmp_path: Path) -> None:
    result = attempt(tmp_path, STARTED + DONE, capabilities=("read", "web"))
    assert result.status is Status.SETUP_ERROR
    assert "web" in result.reason.detail
    assert not (tmp_path / "attempt/stdout").exists()


def test_a_missing_program_is_a_setup_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Fake, "command", lambda self, request: Command(("/nowhere/agent",)))
    result = attempt(tmp_path, STARTED)
    assert result.status is Status.SETUP_ERROR
    assert "/nowhere/agent" in result.reason.detail


def test_when_the_caller_is_killed_so_is_the_product(tmp_path: Path) -> None:
    code = f"""
import sys
sys.path[:0] = [{str(Path(__file__).parent)!r}]
from pathlib import Path
from attempts_made import STARTED, attempt
note = '\\nPath("../outputs/pid").write_text(str(os.getpid()))\\ntime.sleep(60)\\n'
attempt(Path({str(tmp_path)!r}), STARTED + note)
"""
    caller = subprocess.Popen([sys.executable, "-c", code])
    marker = tmp_path / "attempt/outputs/pid"
    deadline = time.monotonic() + 20
    while not (marker.exists() and marker.read_text()) and time.monotonic() < deadline:
        time.sleep(0.02)
    pid = pid_of(tmp_path)
    assert alive(pid)
    os.kill(caller.pid, 9)
    caller.wait()
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not alive(pid)
