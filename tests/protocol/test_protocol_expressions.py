"""Expressions: nothing else can be written, and whatever is well typed has a value."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eop.protocol.diagnostics import Report
from eop.protocol.expression_parser import ExpressionError, parse
from eop.protocol.expression_types import Type, decides, infer
from eop.protocol.expressions import (
    ARITHMETIC,
    COMPARISONS,
    LARGEST,
    LOGIC,
    Binary,
    Expression,
    Literal,
    Member,
    Name,
    Unary,
    Unknown,
    evaluate,
    is_of,
    names,
)
from eop.protocol.schema_fields import FieldError, field_type
from eop.protocol.written import written
from eop.protocol.yaml_nodes import Mapping, parse_yaml

if TYPE_CHECKING:
    from eop.protocol.expressions import Value

KINDS = {
    "count": "integer",
    "report.share": "number",
    "mood": "text",
    "report.verdict.passed": "boolean",
    "len(items)": "integer",
}
SIZES = st.integers(-LARGEST, LARGEST)
SHARES = st.floats(-1e18, 1e18, allow_nan=False)
VALUES = {
    "integer": SIZES,
    "number": SIZES | SHARES,
    "text": st.text(max_size=9),
    "boolean": st.booleans(),
}
LITERALS = {
    "integer": st.integers(0, LARGEST - 1),
    "number": st.integers(0, 10**6).map(lambda n: n / 8),
    "text": st.text(st.characters(exclude_characters="'\"\n", codec="ascii"), max_size=5),
    "boolean": st.booleans(),
}


def named(term: str) -> Name:
    inside = term.removeprefix("len(").removesuffix(")")
    return Name(inside, length=inside != term)


@st.composite
def trees(draw: st.DrawFn, kind: str, depth: int = 4) -> Expression:
    """A well-typed expression of this kind."""
    if depth == 0 or draw(st.integers(0, 4)) == 0:
        terms = [term for term, own in KINDS.items() if own == kind]
        leaf = st.builds(Literal, LITERALS[kind])
        return draw(leaf | st.sampled_from(terms).map(named))
    if kind == "text":
        return draw(trees(kind, 0))
    if kind in ("integer", "number"):
        sides = trees(kind, depth - 1)
        signs = st.sampled_from(ARITHMETIC)
        return draw(st.builds(Unary, st.just("-"), sides) | st.builds(Binary, signs, sides, sides))
    other = draw(st.sampled_from([*KINDS.values()]))
    sides = trees(other, depth - 1)
    numeric = other in ("integer", "number")
    signs = st.sampled_from(COMPARISONS if numeric else ("==", "!="))
    truths = trees("boolean", depth - 1)
    options = st.lists(st.builds(Literal, LITERALS[other]), min_size=1, max_size=3).map(tuple)
    return draw(
        st.one_of(
            st.builds(Unary, st.just("not"), truths),
            st.builds(Binary, st.sampled_from(LOGIC), truths, truths),
            st.builds(Binary, signs, sides, sides),
            st.builds(Member, sides, options),
        )
    )


def show(tree: Expression) -> str:
    """A text that reads as ``tree``, brackets and all."""
    if isinstance(tree, Name):
        return tree.term
    if isinstance(tree, Literal):
        if isinstance(tree.value, bool):
            return str(tree.value).lower()
        return f"'{tree.value}'" if isinstance(tree.value, str) else repr(tree.value)
    if isinstance(tree, Unary):
        return f"({tree.operator} {show(tree.operand)})"
    if isinstance(tree, Member):
        return f"({show(tree.operand)} in [{', '.join(map(show, tree.options))}])"
    return f"({show(tree.left)} {tree.operator} {show(tree.right)})"


def scope(name: Name) -> Type | None:
    return Type(KINDS[name.term]) if name.term in KINDS else None


kinds = st.sampled_from(["integer", "number", "text", "boolean"])


@settings(deadline=None)
@given(kinds.flatmap(lambda kind: st.tuples(st.just(kind), trees(kind))), st.data())
def test_what_is_well_typed_has_a_value_or_is_unknown(
    typed: tuple[str, Expression], data: st.DataObject
) -> None:
    kind, tree = typed
    text = show(tree)
    if len(text) <= 500:
        assert parse(text) == tree
    found, faults = infer(tree, scope)
    assert faults == []
    assert found is not None
    assert kind in (found.kind, "number")
    values: dict[str, Value] = {
        term: data.draw(VALUES[own]) for term, own in KINDS.items() if data.draw(st.booleans())
    }
    value = evaluate(tree, values)
    known = all(name.term in values for name in names(tree))
    if not known:
        assert isinstance(value, Unknown)
    elif not isinstance(value, Unknown):
        assert is_of(value, kind)
    elif kind == "text":
        raise AssertionError(value)


@settings(deadline=None)
@given(st.text(max_size=60) | st.text("()[]-+*<>=.'\"aand12 notin,", max_size=60))
def test_any_text_is_read_or_refused_at_a_place(text: str) -> None:
    try:
        tree = parse(text)
    except ExpressionError as error:
        assert 0 <= error.place.start <= len(text)
        assert error.place.end >= error.place.start
        return
    assert isinstance(tree, Expression)
    for name in names(tree):
        assert text[name.place.start : name.place.end] == name.path


HOSTILE = [
    "__import__('os')",
    "open('x')",
    "a.b()",
    "a[0]",
    "a['b']",
    "[x for x in y]",
    "{1: 2}",
    "{1}",
    "lambda: 1",
    "2 ** 99999999",
    "1 // 2",
    "a if b else c",
    "a := 1",
    "f'{a}'",
    "a; b",
    "a\nb",
    "1 is 1",
    "x in y",
    "x in []",
    "0x10",
    "1e9",
    "1_000",
    "1.",
    ".5",
    "9" * 19,
    "`a`",
    "not",
    "(" * 31 + "a" + ")" * 31,
    "-" * 31 + "1",
    "not " * 31 + "a",
    "a" * 501,
    "len(1)",
    "len(a, b)",
    "len()",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_else_can_be_written(text: str) -> None:
    with pytest.raises(ExpressionError):
        parse(text)


def test_a_dunder_is_only_a_name_that_means_nothing() -> None:
    tree = parse("a.__class__.__mro__")
    assert tree == Name("a.__class__.__mro__")
    assert evaluate(tree, {"a": 1}) == Unknown("'a.__class__.__mro__' is not known")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3 == 7", True),
        ("(1 + 2) * 3 == 9", True),
        ("2 - 1 - 1 == 0", True),
        ("not true or true", True),
        ("true or true and false", True),
        ("not 1 == 2", True),
        ("-2 * -3 > 5", True),
        ("'a' in ['b', 'a']", True),
        ('"it\'s" == "it\'s"', True),
        ("0.5 <= 0.5 and 1 >= 2", False),
    ],
)
def test_operators_bind_as_in_python(text: str, value: object) -> None:
    assert evaluate(parse(text), {}) is value


def test_a_number_beyond_the_largest_is_unknown() -> None:
    tree = parse("n * n > 0")
    assert evaluate(tree, {"n": 10**9}) is True
    assert isinstance(evaluate(tree, {"n": 10**10}), Unknown)


def test_every_fault_of_an_expression_is_reported() -> None:
    text = "count and (mood > 2 or not report.share) and mood == count"
    found = decides(parse(text), scope)
    assert [text[f.place.start : f.place.end] for f in found] == [
        "count",
        "mood",
        "report.share",
        "mood == count",
    ]


SCHEMA = {
    "type": "object",
    "required": ["state", "inner", "open", "list", "loop"],
    "properties": {
        "state": {"enum": ["good", "bad"]},
        "inner": {"$ref": "#/$defs/inner"},
        "open": {"type": ["number", "null"]},
        "list": {"type": "array"},
        "loop": {"$ref": "#/properties/loop"},
        "maybe": {"type": "boolean"},
    },
    "$defs": {"inner": {"required": ["n"], "properties": {"n": {"type": "number"}}}},
}


def test_a_schema_gives_a_field_its_type() -> None:
    assert field_type(SCHEMA, ["state"], length=False) == Type("text", ("good", "bad"))
    assert field_type(SCHEMA, ["inner", "n"], length=False) == Type("number")
    assert field_type(SCHEMA, ["list"], length=True) == Type("integer")


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("stat", "no field 'stat'"),
        ("inner.m", "no field 'm'"),
        ("maybe", "may be missing"),
        ("open", "any of number, null"),
        ("list", "is a list"),
        ("inner", "does not say of what type"),
        ("loop", "does not say what it is"),
    ],
)
def test_a_field_that_cannot_be_relied_on(path: str, says: str) -> None:
    with pytest.raises(FieldError, match=says):
        field_type(SCHEMA, path.split("."), length=False)


@pytest.mark.parametrize(
    "line",
    [
        "when: a.b and  c",
        "when: 'a.b and  c'   # why",
        'when: "a.b and  c"',
        r'when: "a.b\u0020and\x20 c"',
        "{to: x, when: a.b and  c, max: 2}",
        "{to: x, when: 'a.b and  c'}",
    ],
)
def test_the_place_of_a_name_is_its_place_in_the_file(line: str) -> None:
    report = Report("p", [line])
    node = parse_yaml([line], 1, report)
    assert isinstance(node, Mapping)
    found = written(node.values["when"], report)
    assert found is not None
    assert found.text == "a.b and  c"
    last = [found.span(name.place) for name in names(parse(found.text))]
    assert [report.text(span) for span in last] == ["a.b", "c"]


def test_a_quote_in_quotes_moves_what_follows_it() -> None:
    line = "when: 'mood == ''x'' and c'"
    report = Report("p", [line])
    node = parse_yaml([line], 1, report)
    assert isinstance(node, Mapping)
    found = written(node.values["when"], report)
    assert found is not None
    *_, last = names(parse(found.text))
    assert report.text(found.span(last.place)) == "c"
