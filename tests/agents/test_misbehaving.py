"""Products that hang, flood, lie, leak and attack: the right status, nobody left, evidence kept.

Each program speaks as Claude Code or as Codex does and is run by the real adapter in a real jail.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from attempts_made import BEST, EACH_JAIL, attempt
from impostors import PRODUCTS, everything_kept, impostor, survivors
from model_api import KEY, Answer, messages_stream, responses_stream, upstream

from eop.agents.contract import Endpoint, Limits, Status
from eop.agents.jail import Level

if TYPE_CHECKING:
    from pathlib import Path

    from eop.agents.contract import Result
    from eop.agents.jail import Jail

TOKEN = "run-token-7d41f0a9"
STREAMS = {"claude-code": messages_stream(120, 30), "codex": responses_stream(120, 30)}
LIMITS = {"wall_s": 60.0, "idle_s": 30.0, "grace_s": 0.4}
DAEMON = """
child = subprocess.Popen([sys.executable, "-I", "-c", '''
import os, signal, time
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        open(os.environ["HOME"] + "/daemon", "w").close()
        time.sleep(300)
'''], start_new_session=True, stdin=subprocess.DEVNULL)
while not (home / "daemon").exists():
    time.sleep(0.01)
"""


@pytest.fixture(autouse=True)
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gateway's token of an attempt, so that a test can look for it."""
    monkeypatch.setattr("secrets.token_urlsafe", lambda _: TOKEN)


@dataclass(frozen=True)
class Case:
    """A way to misbehave.

    ``kept`` must be found on the streams, ``says`` in the violations; ``limits`` differ from
    LIMITS; ``http`` is how the model's API answers.
    """

    name: str
    body: str
    status: Status
    code: str
    kept: str = ""
    limits: dict[str, Any] = field(default_factory=dict)
    says: str = ""
    http: int = 200


CASES = [
    Case("hangs at once", "time.sleep(300)", Status.TIMEOUT, "idle", limits={"idle_s": 2.0}),
    Case(
        "hangs in the middle",
        "begin(); act('t1', 'ls'); edit(); time.sleep(300)",
        Status.TIMEOUT, "idle", "t1", {"idle_s": 2.0},
    ),
    Case(
        "ignores signals and talks for ever",
        "ignore_signals(); begin()\nwhile True: say('still here'); time.sleep(0.05)",
        Status.TIMEOUT, "timeout", "still here", {"wall_s": 2.0},
    ),
    Case(
        "closes its streams and stays",
        "begin(); os.close(1); os.close(2); time.sleep(300)",
        Status.TIMEOUT, "idle", "s-1", {"idle_s": 2.0},
    ),
    Case("becomes a daemon", f"begin(); edit()\n{DAEMON}\nfinish()", Status.OK, "ok", "done"),
    Case(
        "is a daemon and nothing else",
        f"{DAEMON}", Status.INVALID_OUTPUT, "no_report",
    ),
    Case(
        "prints a gigabyte",
        "ignore_signals(); begin()\nfor _ in range(1024): sys.stdout.write('x' * (1 << 20))\n"
        "(home / 'sprung').touch()",
        Status.BUDGET_EXHAUSTED, "output_cap", "s-1", {"stdout_bytes": 4 << 20, "grace_s": 5.0},
    ),
    Case(
        "starts more and more of itself",
        "ignore_signals(); begin()\n"
        "while True: subprocess.Popen(['sleep', '300'], start_new_session=True); time.sleep(0.02)",
        Status.BUDGET_EXHAUSTED, "processes", "s-1", {"processes": 30},
    ),
    Case(
        "eats the memory",
        "ignore_signals(); begin(); held = []\n"
        "while True: held.append(os.urandom(1 << 22)); time.sleep(0.01)",
        Status.BUDGET_EXHAUSTED, "memory", "s-1", {"memory_share": 0.005},
    ),
    Case(
        "fills the disk",
        "ignore_signals(); begin()\n"
        "for n in range(300): (home / f'{n}').write_bytes(os.urandom(1 << 20)); time.sleep(0.05)",
        Status.BUDGET_EXHAUSTED, "disk", "s-1", {"disk_bytes": 8 << 20},
    ),
    Case("does nothing and is content", "pass", Status.INVALID_OUTPUT, "no_report"),
    Case("answers with half a line", "begin(); edit(); half_a_line()",
         Status.INVALID_OUTPUT, "no_report", "s-1"),
    Case("is refused and exits 0", "begin(); unauthorised()", Status.AUTH_ERROR, "", "401",
         http=401),
    Case("never asks its model and is done", "edit(); finish()",
         Status.INVALID_OUTPUT, "no_calls", "done"),
    Case("says that it read less than nothing", "begin(); edit(); lie(read=-5, wrote=1e30)",
         Status.OK, "ok", limits={"tokens": 9000}),
    Case("boasts of its usage", "begin(); edit(); lie(read=10**9, wrote=10**9)",
         Status.OK, "ok", limits={"tokens": 9000}),
    Case(
        "edits the evaluator in its workspace",
        "begin(); edit(); edit('judge.py', 'j = 9\\n'); finish()",
        Status.POLICY_VIOLATION, "policy", says="judge.py: protected",
    ),
    Case(
        "edits the evaluator and writes a sentinel outside",
        "begin(); edit()\n"
        "root = workspace.parent.parent\n"
        "tried(lambda: (root / 'judge.py').write_text('j = 9'))\n"
        "tried(lambda: (root / 'gates/it01-agree.0123.approved').touch())\n"
        "tried(lambda: (root / 'attempt/result.json').write_text('{}'))\n"
        "tried(lambda: (root / 'store.git/HEAD').write_text(''))\n"
        "finish()",
        Status.OK, "ok",
    ),
    Case(
        "deletes the history",
        "import shutil\nbegin(); edit(); shutil.rmtree('.git'); finish()",
        Status.OK, "ok",
    ),
    Case(
        "plants hooks and settings",
        "begin(); edit()\n"
        "trap = f'touch {home}/sprung'\n"
        "for name in ('pre-commit', 'post-checkout', 'post-index-change'):\n"
        "    Path('.git/hooks').mkdir(exist_ok=True)\n"
        "    Path('.git/hooks', name).write_text('#!/bin/sh\\n' + trap)\n"
        "    Path('.git/hooks', name).chmod(0o755)\n"
        "subprocess.run(['git', 'config', 'core.fsmonitor', trap], check=True)\n"
        "Path('.claude').mkdir()\n"
        "Path('.claude/settings.json').write_text(json.dumps({'hooks': {'Stop': [{'hooks': ["
        "{'type': 'command', 'command': trap}]}]}}))\n"
        "finish()",
        Status.POLICY_VIOLATION, "policy", says=".claude/settings.json: protected",
    ),
    Case(
        "shuts what it leaves",
        "begin(); edit()\n"
        "Path('.git/objects').chmod(0)\n"
        "(home / 'shut').mkdir(0)\n"
        "finish(); home.chmod(0)",
        Status.OK, "ok",
    ),
    Case(
        "kills what it can reach",
        "begin(); edit()\n"
        "for pid in {os.getppid(), 1} - {os.getpid()}:\n"
        "    tried(lambda: os.kill(pid, signal.SIGKILL))\n"
        "finish()",
        Status.INVALID_OUTPUT, "", "s-1",
    ),
    Case(
        "leaves a pipe for a session file",
        "begin(); edit()\n"
        "folder = home / '.codex/sessions/x'\n"
        "folder.mkdir(parents=True); os.mkfifo(folder / 'rollout-0.jsonl')\n"
        "os.symlink('/', folder / 'all')\n"
        "finish()",
        Status.OK, "ok", "done",
    ),
]  # fmt: skip


def run(
    folder: Path,
    name: str,
    jail: Jail,
    body: str,
    limits: dict[str, Any] | None = None,
    http: int = 200,
) -> Result:
    (folder / "gates").mkdir()
    (folder / "judge.py").write_text("j = 1\n")
    with upstream(Answer(status=http, frames=STREAMS[name] if http == 200 else [])) as api:
        return attempt(
            folder,
            product=impostor(name, folder, body),
            jail=jail,
            endpoint=Endpoint(api.url, KEY),
            capabilities=("read", "edit", "shell"),
            hidden=(folder / "gates",),
            limits=Limits(**{**LIMITS, **(limits or {})}),
        )


def assert_contained(folder: Path, result: Result) -> None:
    """What holds after every run, however it ended."""
    assert survivors(folder / "attempt/home") == []
    assert list((folder / "gates").iterdir()) == []
    assert (folder / "judge.py").read_text() == "j = 1\n"
    assert not (folder / "attempt/home/sprung").exists()
    assert not (folder / "attempt/workspace/.git").exists()
    record = json.loads((folder / "attempt/result.json").read_text())
    assert record["status"] == result.status
    assert [path for path, held in everything_kept(folder / "attempt", folder / "store.git")
            if TOKEN.encode() in held or KEY.encode() in held] == []  # fmt: skip


# One product in both jails, the other in the best there is.
RUNS = [
    *(pytest.param("claude-code", *jail.values, marks=jail.marks, id=f"claude-code-{jail.id}")
      for jail in EACH_JAIL),
    pytest.param("codex", BEST, id="codex"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "jail"), RUNS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.replace(" ", "_"))
def test_misbehaviour_is_contained(tmp_path: Path, case: Case, name: str, jail: Jail) -> None:
    result = run(tmp_path, name, jail, case.body, case.limits, case.http)
    assert result.status is case.status, result.reason
    assert case.code in ("", result.reason.code), result.reason
    assert case.says in "; ".join(result.violations)
    assert case.kept in (tmp_path / "attempt/stdout").read_text(errors="replace")
    size = (tmp_path / "attempt/stdout").stat().st_size
    assert size <= 2 * case.limits.get("stdout_bytes", 1 << 20)
    if case.status is Status.OK:
        assert (result.usage.input, result.usage.output) == (120, 30)
        assert (result.notes != ()) == (case.name == "boasts of its usage")
    assert_contained(tmp_path, result)


@pytest.mark.parametrize("name", PRODUCTS)
def test_of_two_answers_the_last_counts(tmp_path: Path, name: str) -> None:
    result = run(tmp_path, name, BEST, "begin(); edit(); finish('first'); finish('second')")
    assert (result.status, result.text) == (Status.OK, "second")
    assert "first" in (tmp_path / "attempt/stdout").read_text()


@pytest.mark.parametrize(("name", "jail"), RUNS)
def test_one_that_is_interrupted_may_tell_what_it_spent(
    tmp_path: Path, name: str, jail: Jail
) -> None:
    """The signal reaches the product itself, whatever lies between; then no other is needed."""
    body = (
        "def stop(*_):\n"
        "    interrupted(); (home / 'told').touch(); raise SystemExit(0)\n"
        "signal.signal(signal.SIGINT, stop)\n"
        "signal.signal(signal.SIGTERM, lambda *_: (home / 'hurried').touch())\n"
        "begin(); edit(); time.sleep(300)"
    )
    result = run(tmp_path, name, jail, body, {"idle_s": 2.0, "grace_s": 20.0})
    assert (result.status, result.reason.code) == (Status.TIMEOUT, "idle")
    assert (result.usage.input, result.usage.output) == (120, 30)
    assert (tmp_path / "attempt/home/told").exists()
    assert not (tmp_path / "attempt/home/hurried").exists()
    assert_contained(tmp_path, result)


@pytest.mark.parametrize("jail", EACH_JAIL)
def test_what_is_left_behind_is_counted_where_it_can_be(tmp_path: Path, jail: Jail) -> None:
    result = run(tmp_path, "codex", jail, f"begin(); edit()\n{DAEMON}\nfinish()")
    assert result.counters.survivors == (None if jail.kind is Level.BWRAP else 1)


LEAKS = {
    "in a file": "edit(content=f'a = {token!r}\\n')",
    "in a binary file": "Path('models/b').write_bytes(b'\\0' + token.encode() + b'\\xff')",
    "in the name of a file": "edit(f'models/{token}.py')",
    "in the name of a folder": "Path('models', token).mkdir(); edit(f'models/{token}/a.py')",
    "in a link": "os.symlink(token, 'models/l')",
    "in an output": "edit(); (outputs / 'note.md').write_text(token)",
    "of somebody else": "edit(content='a = \"sk-ant-api03-aB3dE5fG7hJ9kL1mN3pQ\"')",
}


@pytest.mark.parametrize("leak", LEAKS)
def test_a_secret_in_what_is_passed_on_is_a_violation(tmp_path: Path, leak: str) -> None:
    result = run(tmp_path, "claude-code", BEST, f"begin(); {LEAKS[leak]}\nfinish()")
    assert result.status is Status.POLICY_VIOLATION, result.reason
    assert "held a secret" in result.reason.detail
    assert_contained(tmp_path, result)
    left = everything_kept(tmp_path / "attempt", tmp_path / "store.git")
    assert [path for path, content in left if b"sk-ant" in content] == []


@pytest.mark.parametrize("name", PRODUCTS)
def test_a_secret_in_the_trace_is_taken_out(tmp_path: Path, name: str) -> None:
    """A product may well print its environment; that is no offence, but it is not kept."""
    body = (
        "begin(); edit(); act('t1', f'curl -H {token}'); print(token, file=sys.stderr)\n"
        "(home / '.config').write_text(token); Path(os.environ['TMPDIR'], token).touch()\n"
        "git = ['git', '-c', 'user.name=x', '-c', 'user.email=x@x']\n"
        "subprocess.run([*git, 'commit', '-qam', token], check=True)\n"
        "finish(f'the token is {token}')"
    )
    result = run(tmp_path, name, BEST, body)
    assert (result.status, result.violations) == (Status.OK, ())
    assert result.text == "the token is [redacted]"
    assert "curl -H [redacted]" in (tmp_path / "attempt/events.jsonl").read_text()
    assert_contained(tmp_path, result)


def test_the_sessions_of_the_operator_are_not_the_agents(tmp_path: Path) -> None:
    """A link in its HOME must not lead the runtime to somebody else's account of another run."""
    theirs = tmp_path / "theirs/2026"
    theirs.mkdir(parents=True)
    call = {"type": "function_call", "call_id": "theirs", "name": "exec_command"}
    record = {"type": "response_item", "payload": call}
    (theirs / "rollout-0.jsonl").write_text(json.dumps(record) + "\n")
    body = "begin(); edit(); finish(); (home / '.codex/sessions').rename(home / 'old')\n"
    body += f"(home / '.codex/sessions').symlink_to({str(theirs.parent)!r})"
    result = run(tmp_path, "codex", BEST, body)
    assert (result.status, result.counters.actions) == (Status.OK, 0)


@pytest.mark.parametrize("name", PRODUCTS)
def test_progress_is_more_than_output(tmp_path: Path, name: str) -> None:
    """A product that is silent for longer than allowed, but at work as its session file shows."""
    body = "begin(); edit()\nfor n in range(14): kept(type='x', n=n); time.sleep(0.3)\nfinish()"
    body = body if name == "codex" else f"def kept(**_): pass\n{body}"
    result = run(tmp_path, name, BEST, body, {"idle_s": 2.0})
    assert result.status is (Status.OK if name == "codex" else Status.TIMEOUT), result.reason
