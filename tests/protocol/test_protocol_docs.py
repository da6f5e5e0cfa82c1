"""The reference says what the language is: codes, markers, functions, the first protocol."""

from __future__ import annotations

import re
from pathlib import Path

from eop.protocol.codes import CODES
from eop.protocol.expressions import TYPES
from eop.protocol.markers import FRONT, KINDS, PATTERNS
from eop.protocol.signatures import FUNCTIONS

REPOSITORY = Path(__file__).parents[2]
REFERENCE = (REPOSITORY / "docs" / "protocol.md").read_text()


def test_the_table_of_codes_is_complete() -> None:
    rows = re.findall(r"^\| (EOP\d{3}) \| (.+?) \| (.+) \|$", REFERENCE, re.MULTILINE)
    assert {code: meaning for code, meaning, _ in rows} == dict(CODES)
    assert [code for code, _, _ in rows] == sorted(CODES)


def test_every_word_of_the_language_is_explained() -> None:
    words = [*FRONT, *PATTERNS, *TYPES, *FUNCTIONS]
    words += [key for fields in KINDS.values() for key in fields]
    missing = [word for word in words if not re.search(rf"`{word}`|^{word}: ", REFERENCE, re.M)]
    assert missing == []


def test_the_functions_outputs_are_written_as_they_must_be() -> None:
    for name, signature in FUNCTIONS.items():
        [leaves] = signature.leaves
        schema = f", schema: {leaves.schema}" if leaves.schema else ""
        row = next(line for line in REFERENCE.split("\n") if line.startswith(f"| `{name}` |"))
        assert f"{{{leaves.name}: {{file: {leaves.file}{schema}}}}}" in row
        assert all(f"`{needed}`" in row for needed in signature.after)


def test_the_first_protocol_is_the_shipped_one() -> None:
    shown = re.search(r"````markdown\n(.*?)````", REFERENCE, re.DOTALL)
    shipped = (REPOSITORY / "config" / "protocols" / "minimal.eop.md").read_text()
    assert shown is not None
    assert shown[1] == shipped
    assert len(shipped.splitlines()) == 15
