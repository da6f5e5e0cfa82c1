"""The request of a gate: the one page that a person reads before deciding."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import TYPE_CHECKING

from eop.core.files import write_if_changed
from eop.runtime.artifacts import changed
from eop.runtime.changes import changes
from eop.runtime.gates import APPROVED, REJECTED, REQUEST, gate_file, stem, visible
from eop.runtime.signatures import NAMESPACE, statement

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from eop.protocol.model import Gate, Plan
    from eop.runtime.node import Artifact, Instance
    from eop.runtime.state import GateState, State

_EXCERPT_BYTES = 4096
_PAGE_BYTES = 24576
_COMPARED_BYTES = 65536
_REASON_CHARACTERS = 2000


@dataclass(frozen=True)
class Page:
    """What a request says besides the plan; ``folder`` is that of the run's gates, as text.

    ``shown`` pairs each artifact with its (shortened) text, ``None`` when that is not shown.
    ``history`` are finished paragraphs about the last request of the same gate.
    """

    run: str
    gate: Instance
    digest: str
    signed: bool
    folder: str
    shown: tuple[tuple[Artifact, str | None], ...]
    history: tuple[str, ...] = ()


def write_request(root: Path, plan: Plan, state: State, gate: Instance) -> Path:
    """Write the page of a gate that was requested, when it differs; return its path."""
    known = state.gates[gate.key]
    path = gate_file(root / "gates", state.run, gate, known.digest, REQUEST)
    page = Page(
        run=state.run,
        gate=gate,
        digest=known.digest,
        signed=state.signers is not None,
        folder=path.parent.relative_to(root).as_posix(),
        shown=tuple(_excerpts(root, known.shown)),
        history=tuple(_history(root, plan, state, gate)),
    )
    write_if_changed(path, request_text(plan, page))
    return path


def request_text(plan: Plan, page: Page) -> str:
    """The page in Markdown; same input, same text.

    Every line that comes from an artifact or a reason begins with a bar, so that none of it can
    end its block or pass for a line of the page, rendered or not.
    """
    gate, step = page.gate, plan.gate(page.gate.step)
    again = f", asked again (revision {gate.revision})" if gate.revision > 1 else ""
    parts = [
        f"# {step.id}, iteration {gate.iteration}{again}",
        step.question or f"May the run go on after {', '.join(step.after)}?",
        *page.history,
        "## What is shown",
        *[_shown_text(artifact, excerpt) for artifact, excerpt in page.shown],
        "## What your answer does",
        f"Yes: {_consequence(plan, step)}",
        f"No: {_refusal(step)}",
        "## How to answer",
        *_how(page),
        f"The digest `{page.digest}` covers the plan and every file above. If one of them changes, "
        "this answer decides nothing and the run asks again.",
    ]
    return "\n\n".join(parts) + "\n"


def earlier(state: State, gate: Instance) -> tuple[Instance, GateState] | None:
    """The last request of the same gate: an earlier revision, or the last of the turn before."""
    for instance in _before(state, gate):
        known = state.gate(instance)
        if known is not None:
            return instance, known
    return None


def differing(old: GateState, new: GateState) -> list[str]:
    """Names of artifacts that two requests do not show alike."""
    return [
        name
        for name, before, after in _pairs(old.shown, new.shown)
        if before is None or after is None or before.sha256 != after.sha256
    ]


def _before(state: State, gate: Instance) -> Iterator[Instance]:
    for revision in range(gate.revision - 1, 0, -1):
        yield replace(gate, revision=revision)
    if gate.iteration > 1:
        last = state.current(gate.step, gate.iteration - 1)
        for revision in range(last.revision, 0, -1):
            yield replace(last, revision=revision)


def _history(root: Path, plan: Plan, state: State, gate: Instance) -> Iterator[str]:
    for (iteration, step), reason in state.feedback.items():
        if iteration == gate.iteration and gate.step in plan.descendants(step):
            said = quoted(reason[:_REASON_CHARACTERS]) if reason else "No reason was given."
            yield f"## Why the run went back to {step}"
            yield said
    found = earlier(state, gate)
    if found is not None:
        instance, known = found
        yield "## What changed since the last request"
        by = f" by {visible(known.by)}" if known.by else ""
        yield f"The last one was {instance.key}, {known.status}{by}."
        for name, before, after in _pairs(known.shown, state.gates[gate.key].shown):
            yield f"### {name}: {_change(root, before, after)}"


def _pairs(
    old: tuple[Artifact, ...], new: tuple[Artifact, ...]
) -> Iterator[tuple[str, Artifact | None, Artifact | None]]:
    """Artifacts of one name together, in order: one each, or one per branch."""
    for name in dict.fromkeys(artifact.name for artifact in (*new, *old)):
        sides = ([one for one in side if one.name == name] for side in (old, new))
        for before, after in zip_longest(*sides):
            yield name, before, after


def _change(root: Path, before: Artifact | None, after: Artifact | None) -> str:
    if before is None:
        return "new"
    if after is None:
        return f"no longer shown\n\nIt was `{before.path}`."
    if before.sha256 == after.sha256:
        return "unchanged"
    head = f"changed\n\nThe last version is `{before.path}`."
    old, new = _comparable(root, before), _comparable(root, after)
    if old is None or new is None:
        return f"{head} The two are not compared here: not small texts, or no longer as shown."
    return f"{head}\n\n{quoted(chr(10).join(changes(old, new)))}"


def _comparable(root: Path, artifact: Artifact) -> str | None:
    """The text of a small artifact that is still what was committed."""
    if artifact.size > _COMPARED_BYTES or changed(root, artifact):
        return None
    return _decoded((root / artifact.path).read_bytes())


def _decoded(content: bytes, errors: str = "strict") -> str | None:
    try:
        text = content.decode(errors=errors)
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def _excerpts(root: Path, shown: tuple[Artifact, ...]) -> Iterator[tuple[Artifact, str | None]]:
    left = _PAGE_BYTES
    for artifact in shown:
        text = _excerpt(root / artifact.path, min(left, _EXCERPT_BYTES))
        left -= len(text.encode()) if text else 0
        yield artifact, text


def _excerpt(path: Path, limit: int) -> str | None:
    """The beginning of a text file, shortened; ``None`` for anything else, or for no room."""
    with path.open("rb") as stream:
        content = stream.read(limit + 1)
    long = len(content) > limit
    # A cut may fall into the middle of a character.
    text = _decoded(content[:limit], "ignore" if long else "strict") if limit > 0 else None
    return text if text is None or not long else f"{text.rstrip()}\n... (shortened, read the file)"


def _shown_text(artifact: Artifact, excerpt: str | None) -> str:
    head = (
        f"### {artifact.name}\n\n`{artifact.path}`, {artifact.size} bytes, sha256 {artifact.sha256}"
    )
    body = "Not shown here: open the file." if excerpt is None else quoted(excerpt)
    return f"{head}\n\n{body}"


def quoted(text: str) -> str:
    """A block of text that others wrote."""
    seen = visible(text)
    replaced = seen.count("\ufffd") - text.count("\ufffd")
    note = (
        f"\n\n{replaced} characters that cannot be seen stand here as \ufffd." if replaced else ""
    )
    lines = "\n".join(f"| {line}".rstrip() for line in seen.rstrip().split("\n"))
    return f"```text\n{lines}\n```{note}"


def _how(page: Page) -> Iterator[str]:
    base = f"{page.folder}/{stem(page.gate)}.{page.digest}"
    if not page.signed:
        yield "From the project's folder. Text in the file is kept as the reason."
        yield f"Yes:\n\n    touch {base}.{APPROVED}"
        yield f"No:\n\n    touch {base}.{REJECTED}"
        return
    yield (
        "From the project's folder. Only an answer that an allowed signer has signed counts. "
        f"`eop gate approve {page.gate.step} --run {page.run} --sign KEY` does both steps, and so "
        "does `reject`. Text below the first line of the file is kept as the reason; write it "
        "before you sign."
    )
    for word, status in (("Yes", APPROVED), ("No", REJECTED)):
        line = statement(page.run, page.gate, page.digest, status, "").decode().rstrip()
        make = f"echo '{line}' > {base}.{status}"
        sign = f"ssh-keygen -Y sign -n {NAMESPACE} -f ~/.ssh/id_ed25519 {base}.{status}"
        yield f"{word}:\n\n    {make}\n    {sign}"


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
