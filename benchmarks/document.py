"""Tables written into a document, between markers, so that its numbers come from a command."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.child import BenchmarkError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


@dataclass(frozen=True)
class Document:
    """A file with places between ``<!-- bench:NAME -->`` and ``<!-- end:NAME -->``."""

    path: Path

    def require(self, names: Iterable[str]) -> None:
        """Raise ``BenchmarkError`` unless there is a place for each name."""
        text = self.path.read_text()
        for name in names:
            if not _place(name).search(text):
                wanted = f"<!-- bench:{name} --> and <!-- end:{name} -->"
                raise BenchmarkError(f"{self.path} has no place for {name}: add {wanted}")

    def put(self, name: str, block: str) -> None:
        """Replace what stands at the place of that name."""
        text = self.path.read_text()
        changed = _place(name).sub(lambda found: f"{found[1]}{block}\n{found[2]}", text)
        self.path.write_text(changed)


def _place(name: str) -> re.Pattern[str]:
    return re.compile(rf"(<!-- bench:{name} -->\n).*?(<!-- end:{name} -->)", re.DOTALL)
