"""Forms of answers: in the dialects of the services, and nothing is lost on the way back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eop.agents.forms import form, strict_form, unpack
from eop.core.yaml_files import read_yaml

SCHEMAS = Path(__file__).parents[2] / "config/schemas"
FIELDS = st.dictionaries(st.sampled_from("abcd"), st.sampled_from([0, 7, "", "x"]))


def house(name: str) -> dict[str, Any]:
    schema: dict[str, Any] = read_yaml(SCHEMAS / f"{name}.schema.yaml")
    return schema


@pytest.mark.parametrize("name", ["findings", "proposals", "directions"])
def test_what_agents_are_asked_for_can_be_asked_of_every_service(name: str) -> None:
    schema = house(name)
    for made in (form(schema), strict_form(schema)):
        assert made is not None
        jsonschema.Draft7Validator.check_schema(made)
        assert made["type"] == "object"
        assert "$schema" not in made
    assert "dependentRequired" not in str(form(schema))


def test_an_optional_field_is_null_in_a_strict_form_and_absent_again_in_the_answer() -> None:
    schema = house("findings")
    strict = strict_form(schema)
    assert strict is not None
    finding = strict["properties"]["findings"]["items"]
    assert sorted(finding["required"]) == sorted(finding["properties"])
    assert finding["properties"]["severity"]["type"] == ["string"]
    told = {
        "id": "f", "severity": "minor", "family": "none", "claim": "c", "evidence": "e",
        "suggested_check": "s", "status": "open",
    }  # fmt: skip
    filled = {"summary": "s", "findings": [{**told, "file": None, "line": None}]}
    jsonschema.validate(filled, strict)
    assert unpack(filled, schema) == {"summary": "s", "findings": [told]}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object"},
        {"type": "array"},
        {"type": "object", "properties": {"any": {}}},
        {"type": "object", "properties": {"list": {"type": "array", "items": {"not": {}}}}},
    ],
)
def test_what_a_strict_form_cannot_say_is_not_asked_for(schema: dict[str, Any]) -> None:
    assert strict_form(schema) is None


def test_a_field_may_have_the_name_of_a_keyword() -> None:
    schema = {"type": "object", "properties": {"$schema": {"type": "string"}}}
    assert form(schema) == schema


@given(st.lists(FIELDS), st.sets(st.sampled_from("abcd")))
def test_every_answer_comes_back(rows: list[dict[str, Any]], required: set[str]) -> None:
    """Whatever conforms to a schema can be said in its form and is the same afterwards."""
    rows = [{**dict.fromkeys(required, 0), **row} for row in rows]
    schema = {
        "type": "array",
        "items": {
            "type": "object",
            "required": sorted(required),
            "properties": {key: {"type": ["integer", "string"]} for key in "abcd"},
        },
    }
    strict = strict_form(schema)
    assert strict is not None
    said = {"answer": [{**dict.fromkeys("abcd"), **row} for row in rows]}
    jsonschema.validate(said, strict)
    assert unpack(said, schema) == rows
    jsonschema.validate({"answer": rows}, form(schema))
    assert unpack({"answer": rows}, schema) == rows
