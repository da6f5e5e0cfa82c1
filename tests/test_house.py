"""The house rules that no linter holds: file and function length, layout, one meaning per code."""

from __future__ import annotations

import ast
import json
import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]
FILE_LINES = 400
FUNCTION_LINES = 60
SHIM_LINES = 40
SNAKEFILE_LINES = 60
# Each exception with its reason.
ALLOWED_FUNCTIONS: dict[str, str] = {}
ALLOWED_FILES: dict[str, str] = {}


def sources() -> list[Path]:
    return sorted(
        p for top in ("eop", "hstu", "scripts", "tests") for p in (ROOT / top).rglob("*.py")
    )


def test_files_are_short() -> None:
    long = {
        str(path.relative_to(ROOT)): count
        for path in sources()
        if (count := len(path.read_text().splitlines())) > FILE_LINES
    }
    assert long.keys() == ALLOWED_FILES.keys(), long


def test_functions_are_short() -> None:
    long = {}
    for path in sources():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > FUNCTION_LINES:
                    long[f"{path.relative_to(ROOT)}:{node.name}"] = lines
    assert long.keys() == ALLOWED_FUNCTIONS.keys(), long


def test_no_two_test_modules_share_a_name() -> None:
    """Pytest imports them by their bare names: the second one would not be collected."""
    folders = defaultdict(list)
    for path in (ROOT / "tests").rglob("*.py"):
        if path.stem not in ("conftest", "__init__"):
            folders[path.stem].append(str(path.parent.relative_to(ROOT)))
    assert not {name: found for name, found in folders.items() if len(found) > 1}


def test_shims_hold_no_logic() -> None:
    rules = "\n".join(p.read_text() for p in (ROOT / "rules").glob("*.smk"))
    for path in (ROOT / "scripts").glob("*.py"):
        assert len(path.read_text().splitlines()) <= SHIM_LINES, path
        if path.stem not in ("phase", "gate"):
            assert f'"../scripts/{path.name}"' in rules, f"{path} serves no rule"
            assert re.search(rf"^rule {path.stem}:", rules, re.MULTILINE), path
    assert len((ROOT / "Snakefile").read_text().splitlines()) <= SNAKEFILE_LINES


def test_every_rule_has_log_benchmark_and_message() -> None:
    for path in (ROOT / "rules").glob("*.smk"):
        for rule in re.split(r"^rule ", path.read_text(), flags=re.MULTILINE)[1:]:
            for key in ("log:", "benchmark:", "message:", "resources:", "script:"):
                assert key in rule, f"{path.name}: rule {rule.split(':')[0]} has no {key}"


def test_an_error_code_is_raised_in_one_module_only() -> None:
    places: dict[str, set[str]] = defaultdict(set)
    for path in (ROOT / "eop").rglob("*.py"):
        for code in re.findall(r'"(EOP\d{3})"', path.read_text()):
            places[code].add(str(path.relative_to(ROOT / "eop")))
    shared = {
        code: found
        for code, found in places.items()
        if len({p for p in found if not p.startswith("protocol/")}) > 1
    }
    assert not shared


def test_every_error_code_is_documented() -> None:
    """docs/errors.md lists the harness's codes, docs/protocol.md those of the language."""
    listed = set(
        re.findall(r"^\| (EOP\d{3}) \|", (ROOT / "docs/errors.md").read_text(), re.MULTILINE)
    )
    raised = {
        code
        for path in (ROOT / "eop").rglob("*.py")
        if "protocol" not in path.relative_to(ROOT).parts
        for code in re.findall(r'"(EOP\d{3})"', path.read_text())
    }
    assert listed == raised


def test_no_recording_keeps_what_others_tell_their_model() -> None:
    recordings = ROOT / "tests" / "fixtures" / "agents" / "openhands"
    lines = [
        line
        for path in recordings.rglob("stdout")
        for line in path.read_bytes().splitlines()
        if b'"SystemPromptEvent"' in line
    ]
    assert lines
    for line in lines:
        event = json.loads(line)["event"]
        assert (event["system_prompt"]["text"], event["tools"]) == ("[elided]", [])
