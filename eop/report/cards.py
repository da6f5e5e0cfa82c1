"""One entry as a card: what was tried, what it came to, its curve, patch and note."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from markdown_it import MarkdownIt

from eop.report.charts import loss_curve, read_curve
from eop.report.markup import Markup, el, join

if TYPE_CHECKING:
    from eop.leaderboard import Entry, Scores

_DIFF_LINES = 2000
_KINDS = {
    "completed": "calm",
    "promoted": "good",
    "approved": "good",
    "requested": "warn",
    "waits for a person": "warn",
    "open": "calm",
    "running": "calm",
    "waiting": "",
    "skipped": "",
    "cut_off": "",
}


@dataclass(frozen=True)
class EntryFiles:
    """Texts that lie beside an entry; ``None`` when there is no such file."""

    patch: str | None
    curve: str | None
    note: str | None


def badge(status: str) -> Markup:
    """A status as a coloured word."""
    kind = _KINDS.get(status, "bad")
    return el("span", status.replace("_", " "), class_=f"badge {kind}".strip())


def score(scores: Scores | None, metric: str) -> str:
    """Four decimals, or a dash when it was not measured."""
    return "\N{EN DASH}" if scores is None else f"{scores.mean[metric]:.4f}"


def entry_card(entry: Entry, files: EntryFiles) -> Markup:
    """The card of an entry."""
    promoted = entry.decision is not None and entry.decision.promoted
    return el(
        "article",
        el(
            "div",
            el("h3", entry.proposal.title, class_="grow"),
            badge("promoted" if promoted else entry.outcome),
            el("code", entry.id, class_="soft"),
            class_="head",
        ),
        el("p", entry.proposal.hypothesis) if entry.proposal.hypothesis else None,
        _facts(entry),
        _curve(files.curve),
        _patch(entry.id, files.patch),
        _note(files.note),
        id=entry.id,
        class_="panel",
    )


def _facts(entry: Entry) -> Markup:
    facts = {
        "reason": entry.reason or None,
        "test": _metrics(entry.test),
        "validation": _metrics(entry.validation),
        "decision": _decision(entry),
        "preflight": _preflight(entry),
        "cost": _cost(entry),
        "reproduce": _reproduce(entry),
    }
    shown = [join(el("dt", name), el("dd", fact)) for name, fact in facts.items() if fact]
    return el("dl", *shown)


def _metrics(scores: Scores | None) -> str:
    if scores is None:
        return "not measured"
    values = ", ".join(
        f"{label} {score(scores, name)}"
        for label, name in (("NDCG@10", "ndcg@10"), ("HR@10", "hr@10"), ("MRR", "mrr"))
    )
    return values + (f" (mean of {len(scores.seeds)} seeds)" if len(scores.seeds) > 1 else "")


def _decision(entry: Entry) -> str | None:
    decision = entry.decision
    if decision is None:
        return None
    verdict = "promoted" if decision.promoted else "not promoted"
    return f"{verdict}: {decision.reason}"


def _preflight(entry: Entry) -> str | None:
    report = entry.evidence["preflight"]
    if report is None:
        return None
    return "passed" if report["passed"] else f"failed: {', '.join(report['failed'])}"


def _cost(entry: Entry) -> str:
    cost = entry.cost
    parts = (
        ("agent actions", cost.actions, ""),
        ("work", cost.wall_s, " s"),
        ("training", cost.train_s, " s"),
        ("tokens", cost.tokens, ""),
    )
    listed = [
        f"{name} {'not measured' if value is None else f'{value:,.0f}{unit}'}"
        for name, value, unit in parts
    ]
    dollars = "not measured" if cost.usd is None else f"{cost.usd:,.2f}"
    return ", ".join([*listed, f"US dollars {dollars}"])


def _reproduce(entry: Entry) -> Markup | str:
    if entry.not_reproducible is not None:
        return f"not possible: {entry.not_reproducible}"
    return el("code", f"dvc repro -f -s --no-run-cache leaderboard/{entry.id}/dvc.yaml:reproduce")


def _curve(text: str | None) -> Markup | None:
    if text is None:
        return None
    try:
        chart = loss_curve(read_curve(text))
    except ValueError as error:
        return el("p", f"The loss curve cannot be shown: {error}.", class_="soft")
    return el("div", el("div", "Training loss by epoch", class_="soft small"), chart)


def _patch(entry_id: str, text: str | None) -> Markup | None:
    if text is None:
        return None
    lines = text.splitlines()
    shown = [_diff_line(line) for line in lines[:_DIFF_LINES]]
    if len(lines) > _DIFF_LINES:
        rest = len(lines) - _DIFF_LINES
        shown.append(el("span", f"... {rest} more lines in leaderboard/{entry_id}/patch.diff"))
    added = sum(line.startswith("+") and not line.startswith("+++") for line in lines)
    gone = sum(line.startswith("-") and not line.startswith("---") for line in lines)
    return el(
        "details",
        el("summary", f"Patch: +{added} \N{MINUS SIGN}{gone} lines"),
        el("pre", *shown, class_="diff"),
    )


def _diff_line(line: str) -> Markup:
    plain = line.startswith(("+++", "---", "diff "))
    kind = None if plain else {"+": "add", "-": "del", "@": "at"}.get(line[:1])
    return el("span", line, class_=kind)


def _note(text: str | None) -> Markup | None:
    if text is None:
        return None
    # Raw HTML, images and links in a note are shown as text: the page leads nowhere else.
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.disable(["image", "link", "autolink", "reference"])
    rendered = Markup(parser.render(_without_front_matter(text)))
    return el("details", el("summary", "Note"), el("div", rendered, class_="note"))


def _without_front_matter(text: str) -> str:
    if not text.startswith("---\n"):
        return text
    _, _, rest = text.removeprefix("---\n").partition("\n---\n")
    return rest
