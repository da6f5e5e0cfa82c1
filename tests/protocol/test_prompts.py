"""Prompts are strict templates: what is wrong with one is told with its place."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from eop.core.errors import EopError, ExitCode
from eop.protocol.compiler import load
from eop.protocol.patterns import PATTERNS
from eop.protocol.prompts import DEFAULT, REQUIRED, VARIABLES, prompts_of, read_prompt

REPOSITORY = Path(__file__).parents[2]
SHIPPED = sorted((REPOSITORY / "config" / "prompts").glob("*.md"))
WHOLE = "${task}\n${access}\n${given}\n${asked}\n"
MOST_WORDS = 320


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_a_shipped_prompt_is_whole_and_short(path: Path) -> None:
    prompt = read_prompt(REPOSITORY, path.stem)
    assert len(prompt.text.split()) <= MOST_WORDS
    told = prompt.render({name: f"<{name}>" for name in VARIABLES})
    assert all(told.count(f"<{name}>") == 1 for name in VARIABLES)
    assert "$" not in told


def test_every_pattern_has_its_prompts_and_every_prompt_is_used() -> None:
    wanted = {name for pattern in PATTERNS.values() for name in pattern.prompts}
    assert {path.stem for path in SHIPPED} == wanted | {DEFAULT, "critic"}


@pytest.mark.parametrize("name", ["reviewer", "plan_reviewer"])
def test_a_reviewer_is_told_the_families_and_fields_that_findings_have(name: str) -> None:
    schema = yaml.safe_load((REPOSITORY / "config/schemas/findings.schema.yaml").read_text())
    fields = schema["properties"]["findings"]["items"]["properties"]
    text = read_prompt(REPOSITORY, name).text
    listed = re.findall(r"^- `(\w+)`: ", text, re.MULTILINE)
    assert [*listed, "none"] == fields["family"]["enum"]
    assert len(listed) == 6
    assert [field for field in fields if f"`{field}`" not in text and field != "family"] == []


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        (f"{WHOLE}one\n  a ${{rol}}", "6:5", "unknown variable 'rol'"),
        (f"{WHOLE}$rule", "5:1", "unknown variable 'rule'"),
        (f"{WHOLE}costs 5$ a day", "5:8", "a '$' that begins no variable"),
        (f"{WHOLE}${{role", "5:1", "a '$' that begins no variable"),
        (WHOLE.replace("${given}", "$$given"), "1", "does not tell its agent ${given}"),
        (b"\xff", "", "not UTF-8"),
        (None, "", "cannot be read: No such file or directory"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(
    tmp_path: Path, text: str | bytes | None, place: str, said: str
) -> None:
    path = tmp_path / "config/prompts/own.md"
    path.parent.mkdir(parents=True)
    if text is not None:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(EopError) as caught:
        read_prompt(tmp_path, "own")
    assert said in caught.value.message
    assert str(caught.value.where) == ":".join(filter(None, ["config/prompts/own.md", place]))
    assert (caught.value.code, caught.value.exit_code) == ("EOP215", ExitCode.CONFIG)


def test_two_dollars_are_one(tmp_path: Path) -> None:
    (tmp_path / "config/prompts").mkdir(parents=True)
    (tmp_path / "config/prompts/own.md").write_text(f"{WHOLE}5$$ ${{role}}\n")
    told = read_prompt(tmp_path, "own").render(dict.fromkeys(VARIABLES, "x"))
    assert told == "x\nx\nx\nx\n5$ x\n"
    with pytest.raises(KeyError):
        read_prompt(tmp_path, "own").render(dict.fromkeys(REQUIRED, "x"))


def test_a_role_of_a_chain_is_told_by_its_own_prompt_or_the_common_one() -> None:
    plan = load(REPOSITORY / "config/protocols/minimal.eop.md", root=REPOSITORY)
    phase = replace(plan.phases[0], nodes={"writer": "scripted", "critic": "scripted"})
    found = prompts_of(phase, REPOSITORY)
    assert {role: prompt.name for role, prompt in found.items()} == {
        "writer": DEFAULT,
        "critic": "critic",
    }


def test_a_plan_pins_the_prompts_that_its_nodes_are_told_by(tmp_path: Path) -> None:
    shutil.copytree(REPOSITORY / "config", tmp_path / "config")
    path = tmp_path / "config/protocols/minimal.eop.md"
    plan = load(path, root=tmp_path)
    own = tmp_path / "config/prompts/agent.md"
    text = own.read_text()
    own.write_text(f"{text}\nBe brief.\n")
    assert load(path, root=tmp_path).digest != plan.digest
    told = next(phase for phase in plan.phases if phase.pattern)
    with pytest.raises(EopError, match=r"agent\.md: error.EOP215. it has changed since"):
        prompts_of(told, tmp_path)
    own.write_text(text)
    assert load(path, root=tmp_path).digest == plan.digest
    assert {p.digest for p in prompts_of(told, tmp_path).values()} == set(told.prompts.values())
