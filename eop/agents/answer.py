"""A product's final answer as the output that a node was asked for."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from eop.agents.forms import unpack
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
    value = answer(final, expected.schema)
    if value is not None:
        write_text(path, value)


def answer(final: Event, schema: dict[str, Any] | None) -> str | None:
    """The answer as the text of a file, ``None`` when there is none.

    An answer to a schema is the one that the product made with its schema tool, else its text,
    which then must be JSON, in a fence or not.
    """
    text = str(final.data.get("text") or "").strip()
    if schema is None:
        return text + "\n" if text else None
    said: Any = final.data.get("structured")
    if said is None:
        if text.startswith("```") and text.endswith("```"):
            text = text.removeprefix("```json").removeprefix("```").removesuffix("```").strip()
        try:
            said = json.loads(text)
        except (ValueError, RecursionError):
            return text + "\n" if text else None
    return json.dumps(unpack(said, schema), indent=2, ensure_ascii=False) + "\n"
