"""The reference says what the language is: codes, markers, functions, the first protocol."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import yaml

from eop.protocol.block_schema import block_schema
from eop.protocol.codes import CODES
from eop.protocol.compiler import check
from eop.protocol.diagnostics import render
from eop.protocol.expressions import TYPES
from eop.protocol.markers import FRONT, KINDS, PATTERNS
from eop.protocol.signatures import FUNCTIONS

REPOSITORY = Path(__file__).parents[2]
PLAYBOOK_SCHEMA = REPOSITORY / "config" / "schemas" / "playbook.schema.yaml"
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


def test_every_snippet_is_of_the_language() -> None:
    """A whole block is checked as one; a fragment marker by marker, in the kind that has it."""
    schema = block_schema()
    snippets = re.findall(r"^```yaml\n(.*?)^```", REFERENCE, re.DOTALL | re.MULTILINE)
    assert len(snippets) >= 5
    playbook = yaml.safe_load(PLAYBOOK_SCHEMA.read_text())
    for snippet in snippets:
        if snippet.startswith("steps:"):
            jsonschema.validate(yaml.safe_load(snippet), playbook)
            continue
        if snippet.split(":")[0] in KINDS:
            jsonschema.validate(yaml.safe_load(snippet), schema)
            continue
        for line in snippet.splitlines():
            [(marker, value)] = yaml.safe_load(line).items()
            takes = [schema["$defs"][kind]["properties"].get(marker) for kind in KINDS]
            assert any(
                jsonschema.Draft202012Validator(one).is_valid(value) for one in takes if one
            ), line


def test_the_editor_s_pattern_reads_what_is_printed(project: Path) -> None:
    settings = json.loads(re.findall(r"^```json\n(.*?)^```", REFERENCE, re.DOTALL | re.M)[0])
    pattern = settings["tasks"][0]["problemMatcher"]["pattern"]
    path = project / "broken.eop.md"
    path.write_text("---\neop: 2\n---\n")
    found = check(path, root=project)
    read = [m for line in render(found).splitlines() if (m := re.match(pattern["regexp"], line))]
    assert [(m[pattern["file"]], int(m[pattern["line"]]), m[pattern["code"]]) for m in read] == [
        (one.where.path, one.where.line, one.code) for one in found
    ]


def test_the_first_protocol_is_the_shipped_one() -> None:
    shown = re.search(r"````markdown\n(.*?)````", REFERENCE, re.DOTALL)
    shipped = (REPOSITORY / "config" / "protocols" / "minimal.eop.md").read_text()
    assert shown is not None
    assert shown[1] == shipped
    assert len(shipped.splitlines()) == 15
