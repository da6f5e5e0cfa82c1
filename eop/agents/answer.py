"""A product's final answer as the output that a node was asked for."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from eop.core.files import write_text

if TYPE_CHECKING:
    from pathlib import Path

    from eop.agents.contract import Expected
    from eop.agents.events import Event


def leave(path: Path, expected: Expected, final: Event) -> None:
    """Write the answer to ``path``, unless the product left a file there itself.

    Whether it is what was asked for is judged afterwards, as for any file that was left.
    """
    if path.is_symlink() or path.exists():
        return
    value = answer(final, structured=expected.schema is not None)
    if value is not None:
        write_text(path, value)


def answer(final: Event, *, structured: bool) -> str | None:
    """The answer as the text of a file, ``None`` when there is none.

    A structured answer is the one that the product made with its schema tool, else its text,
    which then must be JSON, in a fence or not.
    """
    said: Any = final.data.get("structured") if structured else None
    if said is not None:
        return json.dumps(said, indent=2, ensure_ascii=False) + "\n"
    text = str(final.data.get("text") or "").strip()
    if structured and text.startswith("```") and text.endswith("```"):
        text = text.removeprefix("```json").removeprefix("```").removesuffix("```").strip()
    return text + "\n" if text else None
