"""What the checks say of protocols with recipes and refits: the shipped one, and broken ones."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from eop.protocol.compiler import check, load

if TYPE_CHECKING:
    from eop.protocol.diagnostics import Diagnostic

REPOSITORY = Path(__file__).parents[2]
SHIPPED = REPOSITORY / "config" / "protocols" / "hstu-recipes.eop.md"
PROPOSE = """
```eop
phase: propose
pattern: linear
nodes: {proposer: scripted}
tools: [read]
budget: {actions: 5, wall: 5m}
outputs: {proposals: {file: proposals.json, schema: proposals}}
```

Propose.
"""


def faults(tmp_path: Path, *changes: tuple[str, str]) -> list[Diagnostic]:
    """What is wrong with the shipped protocol once each text has become another."""
    text = SHIPPED.read_text()
    for find, replace in changes:
        assert text.count(find) == 1, find
        text = text.replace(find, replace)
    path = tmp_path / "broken.eop.md"
    path.write_text(text)
    return check(path, root=REPOSITORY)


def test_the_shipped_protocol_needs_no_agent_and_no_gate() -> None:
    plan = load(SHIPPED, root=REPOSITORY)
    assert not plan.gates
    assert all(phase.function for phase in plan.phases)
    assert plan.runs("refit")
    assert plan.phase("baseline").arguments["seeds"] == [1, 2, 3]
    assert plan.phase("train").arguments["seeds"] == [1]
    assert not load(SHIPPED.with_name("demo.eop.md"), root=REPOSITORY).runs("refit")


@pytest.mark.parametrize(
    ("find", "replace", "code", "says"),
    [
        ("folder: config/recipes", "folder: ../recipes", "EOP304", "not a folder"),
        ("folder: config/recipes", "folder: /etc", "EOP304", "not a folder"),
        ("  folder: config/recipes\n", "", "EOP113", "folder"),
        ("  from: {dpo", "  names: [Dpo]\n  from: {dpo", "EOP304", "not a recipe name"),
        ("  from: {dpo", "  form: {dpo", "EOP112", "'form'"),
        ("needs: [compose]", "needs: [list_recipes]", "EOP416", "works on a patch"),
        ("function: evaluate\n", "function: refit\n", "EOP416", "'evaluate' leaves"),
        (
            "for_each: recipe\nfunction: refit",
            "join: {of: evaluate, wait: all}\nfunction: refit",
            "EOP416",
            "in a branch",
        ),
        ("of: refit", "of: evaluate", "EOP412", "'refit'"),
    ],
)
def test_a_broken_one_is_refused(
    tmp_path: Path, find: str, replace: str, code: str, says: str
) -> None:
    found = faults(tmp_path, (find, replace))
    assert [fault for fault in found if fault.code == code and says in fault.message], found


def test_only_recipes_can_be_composed(tmp_path: Path) -> None:
    found = faults(
        tmp_path,
        ("\n## Compose the experiment\n", PROPOSE),
        ("in: recipes", "in: proposals"),
        ("needs: [list_recipes]", "needs: [list_recipes, propose]"),
        ("budget: {actions: 1,", "budget: {actions: 10,"),
    )
    assert [fault.code for fault in found] == ["EOP416"]
    assert "works on what 'recipes' leaves, not on 'proposals'" in found[0].message
