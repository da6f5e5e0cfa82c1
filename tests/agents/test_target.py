"""Targets: what may change and what may not."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eop.agents.target import Target, load, outside, protected_changes
from eop.core.errors import EopError, ExitCode

HSTU = Path(__file__).parents[2] / "config/targets/hstu.yaml"


def test_the_recommender_protects_its_judges() -> None:
    target = load(HSTU)
    editable = [
        "hstu/models/encoder.py",
        "hstu/models/deep/er.py",
        "hstu/losses/softmax.py",
        "hstu/training/loop.py",
        "experiment.yaml",
    ]
    protected = [
        "experiment.yaml.bak",
        "hstu/__init__.py",
        "hstu/cli.py",
        "hstu/data/split.py",
        "hstu/evaluation/ranks.py",
        "hstu/modelsx/a.py",
        "hstu/preflight/causal.py",
        "sitecustomize.py",
        "sub/experiment.yaml",
        "xhstu/models/a.py",
    ]
    assert protected_changes(target, [*editable, *protected]) == protected


@pytest.mark.parametrize(
    ("glob", "path", "covered"),
    [
        ("a/*.py", "a/b.py", True),
        ("a/*.py", "a/b/c.py", False),
        ("a/**/c.py", "a/c.py", True),
        ("a/**/c.py", "a/b/d/c.py", True),
        ("a/?.py", "a/b.py", True),
        ("a/?.py", "a//.py", False),
        ("a.py", "aXpy", False),
        ("a/**", "a/b\nc", True),
    ],
)
def test_globs(glob: str, path: str, covered: bool) -> None:
    assert (outside([glob], [path]) == []) is covered


@given(st.lists(st.text(min_size=1), max_size=4))
def test_without_globs_everything_is_protected(paths: list[str]) -> None:
    assert protected_changes(Target("t", ("t",), ()), paths) == sorted(paths)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name: t\nsnapshot: [t]\neditable: [t/**]\neditible: []\n", "did you mean 'editable'"),
        ("name: t\nsnapshot: [t]\n", "'editable' is a required property"),
        ("name: t\nsnapshot: [/etc]\neditable: [t]\n", "snapshot.0"),
        ("name: t\nsnapshot: [a/../../b]\neditable: [t]\n", "snapshot.0"),
        ("name: [\n", "cannot read"),
    ],
)
def test_a_wrong_target_names_its_key(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "t.yaml"
    path.write_text(text)
    with pytest.raises(EopError, match=said) as caught:
        load(path)
    assert caught.value.exit_code is ExitCode.CONFIG
    assert str(caught.value).startswith(str(path))
