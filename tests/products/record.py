"""Records real products at small tasks: ``python tests/products/record.py FOLDER [PRODUCT...]``.

For a new version of a product: what its adapter makes of it is then judged by
``RANKEVOLVE_AGENT_SAMPLES=FOLDER pytest -m recorded``. The model is a script, so what was spent and
done is known and goes into ``meta.json`` beside what was expected.
"""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attempts_real import LIMITS, TOKEN, attempt, works
from kits import CLAUDE, CODEX, KITS, OPENCODE, OPENHANDS, QWEN, Kit
from scripted_model import Fault, Say

from eop.agents.contract import Status
from eop.agents.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Callable

    from attempts_real import Done, Steps

SPACE = "/run"


@dataclass(frozen=True)
class Case:
    """A situation: what the model says in it and how products should end; ``kits`` can meet it."""

    steps: Callable[[Kit], Callable[[Workspace], Steps]]
    expect: Status
    token: str = TOKEN
    kits: tuple[Kit, ...] = KITS
    idle_s: float = 120


def _always(*steps: Any) -> Callable[[Kit], Callable[[Workspace], Steps]]:
    return lambda kit: lambda space: steps


def _outside(kit: Kit) -> Callable[[Workspace], Steps]:
    return lambda space: [
        Say("I write.", (kit.put(space.directory / "outside.txt", "x\n"),)), Say("Done."),
    ]  # fmt: skip


def _slow_at_first(kit: Kit) -> Callable[[Workspace], Steps]:
    return lambda space: [Fault(429, "rate_limit_error", "slow down", times=1), *works(kit)(space)]


CASES = {
    "success": Case(works, Status.OK),
    "api_401": Case(works, Status.AUTH_ERROR, token="wrong"),
    "api_429_recovered": Case(_slow_at_first, Status.OK, kits=(CLAUDE, OPENCODE, QWEN, OPENHANDS)),
    "api_429": Case(_slow_at_first, Status.TRANSIENT_ERROR, kits=(CODEX,)),
    "api_500": Case(
        _always(Fault(500, "api_error", "internal error")), Status.TRANSIENT_ERROR,
        kits=(CLAUDE, CODEX, OPENHANDS),
    ),
    "write_outside": Case(_outside, Status.BLOCKED, kits=(CLAUDE, CODEX, OPENCODE)),
    "text_only": Case(_always(Say("It is done already.")), Status.NO_CHANGE),
    "silence": Case(_always(Fault()), Status.TIMEOUT, idle_s=30),
}  # fmt: skip


def record(kit: Kit, case: Case, folder: Path) -> Path:
    """Run ``case`` and leave the recording in the new ``folder``, however it ended."""
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as work:
        done = attempt(
            kit, Path(work), case.steps(kit), token=case.token,
            limits=replace(LIMITS, idle_s=case.idle_s),
        )  # fmt: skip
        space = Workspace(Path(work, "attempt"))
        kept = space.recording(kit.product().sessions)
        for path in (kept.stdout, kept.stderr, *kept.sessions):
            content = path.read_bytes().replace(work.encode(), SPACE.encode())
            (folder / path.name).write_bytes(elided(content))
        meta = _meta(kit, case, done)
        text = json.dumps(meta, indent=1).replace(work, SPACE)
    (folder / "meta.json").write_text(text + "\n")
    return folder


def elided(content: bytes) -> bytes:
    """A recording without what OpenHands tells its model: that text is its makers' own."""
    lines = content.split(b"\n")
    for number, line in enumerate(lines):
        if b'"SystemPromptEvent"' in line:
            told = json.loads(line)
            told["event"]["system_prompt"]["text"] = "[elided]"
            told["event"]["tools"] = []
            lines[number] = json.dumps(told).encode()
    return b"\n".join(lines)


def _meta(kit: Kit, case: Case, done: Done) -> dict[str, Any]:
    result, space = done.result, Workspace(done.folder / "attempt")
    assert result.exit is not None, result.reason
    ended = result.exit
    read, wrote = done.spent
    actions = sum(len(say.calls) for say in done.model.said)
    measured = {"usage": {"input": read, "output": wrote}} if read else {}
    return {
        "product": kit.name,
        "version": kit.version,
        "argv": json.loads((space.directory / "start.json").read_text())["argv"],
        "model_requests": len(done.model.seen),
        "exit": {
            "rc": ended.rc if ended.signal is None else -ended.signal,
            "stop": ended.stop,
            "patch_empty": not (result.patch and result.patch.changes),
            "writes_expected": True,
            "schema_expected": False,
            "violations": list(result.violations),
        },
        "expect": case.expect,
        **measured,
        **({"actions": actions} if actions else {}),
    }


def main() -> None:
    """Record what was named."""
    target, *named = sys.argv[1:]
    for kit in KITS:
        for name, case in CASES.items():
            if kit in case.kits and (not named or kit.name in named):
                print(record(kit, case, Path(target) / kit.name / kit.version / name), flush=True)


if __name__ == "__main__":
    main()
