"""Gates: what their files are called, and the digest that a decision is bound to."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

from eop.core.canonical import digest as digest_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from eop.runtime.node import Artifact, Instance

APPROVED = "approved"
REJECTED = "rejected"
SKIPPED = "skipped"
REQUEST = "request.md"
SIGNATURE = "sig"

# Hangul fillers, the braille blank and the combining grapheme joiner look like nothing and are
# not of a category that says so; variation selectors change what stands before them.
_BLANK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\ufe00-\ufe0f\U000e0100-\U000e01ef]"
)
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


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


def signature_file(sentinel: Path) -> Path:
    """Where the signature of a sentinel lies: beside it, as ``ssh-keygen -Y sign`` leaves it."""
    return sentinel.with_name(f"{sentinel.name}.{SIGNATURE}")


def visible(text: str) -> str:
    """``text`` with every character that a reader cannot see, or that moves others, as U+FFFD.

    Line feeds and tabs stay; CR LF becomes LF. Same text, same result; applied twice, the same.
    """
    text = _BLANK.sub("\ufffd", text.replace("\r\n", "\n"))
    return "".join(
        "\ufffd" if unicodedata.category(char) in _UNSEEN and char not in "\n\t" else char
        for char in text
    )
