"""Gates: the digest that a decision is bound to, the request a person reads, the sentinel read.

Nothing here creates a sentinel.
"""

from __future__ import annotations

import os
import pwd
import re
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING

from eop.core.canonical import digest as digest_of
from eop.core.files import write_if_changed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from eop.protocol.model import Gate, Plan
    from eop.runtime.node import Artifact, Instance

APPROVED = "approved"
REJECTED = "rejected"
REQUEST = "request.md"

_EXCERPT_BYTES = 4096
_REASON_BYTES = 16384
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@dataclass(frozen=True)
class Decision:
    """What the sentinels of one digest say.

    ``status`` is ``approved``, ``rejected`` or ``none``. ``by`` is the user that owns the
    sentinel, ``reason`` its text. ``problems`` names sentinels that count for nothing.
    """

    status: str
    by: str = ""
    reason: str = ""
    problems: tuple[str, ...] = ()


def gate_digest(run: str, plan: str, gate: Instance, artifacts: Sequence[Artifact]) -> str:
    """16 hex digits over the run, the plan's digest, the gate and every shown artifact."""
    shown = sorted([artifact.name, artifact.path, artifact.sha256] for artifact in artifacts)
    return digest_of({"run": run, "plan": plan, "gate": gate.key, "shown": shown})[:16]


def stem(gate: Instance) -> str:
    """The first part of the names of a gate's files: ``it01-approve``, ``it01-approve.r2``."""
    revision = f".r{gate.revision}" if gate.revision > 1 else ""
    return f"it{gate.iteration:02d}-{gate.step}{revision}"


def gate_file(gates: Path, run: str, gate: Instance, digest: str, suffix: str) -> Path:
    """Path of a gate's request or sentinel; ``suffix`` is one of the module's constants."""
    return gates / run / f"{stem(gate)}.{digest}.{suffix}"


def read_sentinel(gates: Path, run: str, gate: Instance, digest: str) -> Decision:
    """The decision that the files of exactly this digest record; a rejection wins over both."""
    problems: list[str] = []
    for status in (REJECTED, APPROVED):
        path = gate_file(gates, run, gate, digest, status)
        try:
            kind = path.lstat().st_mode
        except FileNotFoundError:
            continue
        if not stat.S_ISREG(kind):
            problems.append(f"{path.name}: not a regular file, it decides nothing")
            continue
        by, reason = _read(path)
        return Decision(status, by, reason, tuple(problems))
    return Decision("none", problems=tuple(problems))


def _read(path: Path) -> tuple[str, str]:
    """Owner's name and text of a sentinel; a link that took its place meanwhile is refused."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as stream:
        owner = os.fstat(stream.fileno()).st_uid
        text = stream.read(_REASON_BYTES).decode(errors="replace")
    try:
        name = pwd.getpwuid(owner).pw_name
    except KeyError:
        name = str(owner)
    return name, _CONTROL.sub("�", text).strip()


def strays(gates: Path, run: str, gate: Instance, digest: str) -> list[str]:
    """Files named like this gate's sentinels that decide nothing, one readable line each."""
    folder = gates / run
    if not folder.is_dir():
        return []
    prefix = f"{stem(gate)}.".lower()
    valid = {gate_file(gates, run, gate, digest, status).name for status in (APPROVED, REJECTED)}
    found = []
    for name in sorted(os.listdir(folder)):  # noqa: PTH208
        rest = name.lower().removeprefix(prefix)
        if rest == name.lower() or name in valid or re.match(r"r\d+\.", rest):
            continue
        if re.fullmatch(r"[0-9a-f]{16}\.request\.md", rest):
            continue
        found.append(f"{name}: decides nothing, the gate now asks for digest {digest}")
    return found


def write_request(
    root: Path, gates: Path, run: str, plan: Plan, gate: Instance, shown: Sequence[Artifact]
) -> Path:
    """Write the request page of a gate when it differs from what is there; return its path."""
    digest = gate_digest(run, plan.digest, gate, shown)
    excerpts = {artifact.path: _excerpt(root / artifact.path) for artifact in shown}
    path = gate_file(gates, run, gate, digest, REQUEST)
    folder = (gates / run).relative_to(root).as_posix()
    write_if_changed(path, request_text(plan, gate, digest, shown, excerpts, folder))
    return path


def _excerpt(path: Path) -> str | None:
    """The beginning of a text file, shortened; ``None`` for anything else."""
    with path.open("rb") as stream:
        content = stream.read(_EXCERPT_BYTES + 1)
    try:
        text = content[:_EXCERPT_BYTES].decode(
            errors="strict" if len(content) <= _EXCERPT_BYTES else "ignore"
        )
    except UnicodeDecodeError:
        return None
    if "\0" in text:
        return None
    more = "\n... (shortened, read the file)" if len(content) > _EXCERPT_BYTES else ""
    return _CONTROL.sub("�", text).rstrip() + more


def request_text(
    plan: Plan,
    gate: Instance,
    digest: str,
    shown: Sequence[Artifact],
    excerpts: Mapping[str, str | None],
    folder: str,
) -> str:
    """The page a person reads before deciding, in Markdown; same input, same text.

    ``excerpts`` maps an artifact's path to its (shortened) text; ``folder`` is that of the
    run's gates, relative to the project's root.
    """
    step = plan.gate(gate.step)
    again = f", asked again (revision {gate.revision})" if gate.revision > 1 else ""
    base = f"{folder}/{stem(gate)}.{digest}"
    parts = [
        f"# {step.id}, iteration {gate.iteration}{again}",
        step.question or f"May the run go on after {', '.join(step.after)}?",
        "## What is shown",
        *[_shown_text(artifact, excerpts.get(artifact.path)) for artifact in shown],
        "## What your answer does",
        f"Yes: {_consequence(plan, step)}",
        f"No: {_refusal(step)}",
        "## How to answer",
        "From the project's folder. Text in the file is kept as the reason.",
        f"Yes:\n\n    touch {base}.{APPROVED}",
        f"No:\n\n    touch {base}.{REJECTED}",
        f"The digest `{digest}` covers the plan and every file above. If one of them changes, "
        "this answer decides nothing and the run asks again.",
    ]
    return "\n\n".join(parts) + "\n"


def _shown_text(artifact: Artifact, excerpt: str | None) -> str:
    head = (
        f"### {artifact.name}\n\n`{artifact.path}`, {artifact.size} bytes, sha256 {artifact.sha256}"
    )
    if excerpt is None:
        return f"{head}\n\nNot text: open the file."
    # A fence longer than any in the text: shown content cannot end it and speak for the page.
    ticks = max((len(run) for run in re.findall(r"`+", excerpt)), default=0)
    fence = "`" * max(3, ticks + 1)
    return f"{head}\n\n{fence}text\n{excerpt}\n{fence}"


def _consequence(plan: Plan, gate: Gate) -> str:
    following = [name for name in plan.steps if gate.id in plan.requirements(name)]
    if following:
        return f"the run goes on with {', '.join(following)}."
    if plan.loop and gate.id in plan.loop.after:
        return f"the next iteration begins at {plan.loop.goto}, {plan.loop.max} in all at most."
    return "the run may end as completed."


def _refusal(gate: Gate) -> str:
    if gate.on_reject.goto is None:
        return "the run ends as rejected."
    return (
        f"the run goes back to {gate.on_reject.goto} with your reason, "
        f"{gate.on_reject.max} times at most; then a rejection ends it."
    )
