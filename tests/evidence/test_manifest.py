from __future__ import annotations

import hashlib
import subprocess
import sys

import pytest

from eop.core.errors import EopError
from eop.evidence import FileRef, code_digest, environment_facts, problems, repository_facts


def test_a_reference_finds_every_change(tmp_path):
    path = tmp_path / "a" / "model.bin"
    path.parent.mkdir()
    path.write_bytes(b"weights")
    ref = FileRef.of(path, tmp_path)
    assert ref == FileRef("a/model.bin", hashlib.sha256(b"weights").hexdigest(), 7)
    assert FileRef.from_json(ref.to_json()) == ref
    assert ref.check(tmp_path) == []
    path.write_bytes(b"weighty")
    assert "sha256" in ref.check(tmp_path)[0]
    path.write_bytes(b"longer than it was")
    assert "18 bytes, recorded 7" in ref.check(tmp_path)[0]
    path.unlink()
    assert problems([ref, ref], tmp_path) == ["a/model.bin: missing"] * 2


def test_a_file_outside_the_root_has_no_reference(tmp_path):
    outside = tmp_path / "outside"
    outside.write_text("x")
    root = tmp_path / "root"
    root.mkdir()
    for path in (outside, root / "absent"):
        with pytest.raises(EopError) as caught:
            FileRef.of(path, root)
        assert caught.value.code == "EOP641"


def test_environment_facts_are_read_without_importing_torch():
    facts = environment_facts()
    assert facts["packages"]["dvc"]
    assert set(facts["packages"]) >= {"torch", "numpy", "snakemake"}
    assert facts["eop"] == code_digest()
    code = "import sys, eop.evidence as e; e.environment_facts(); sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_code_digest_sees_names_and_contents(tmp_path):
    (tmp_path / "a.py").write_text("1")
    first = code_digest(tmp_path)
    (tmp_path / "notes.txt").write_text("not code")
    assert code_digest(tmp_path) == first
    (tmp_path / "a.py").rename(tmp_path / "b.py")
    second = code_digest(tmp_path)
    (tmp_path / "b.py").write_text("2")
    assert len({first, second, code_digest(tmp_path)}) == 3


def test_repository_facts(tmp_path):
    assert repository_facts(tmp_path) == {"head": None, "dirty": None}

    def git(*arguments: str) -> str:
        identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
        done = subprocess.run(
            ["git", *identity, *arguments], cwd=tmp_path, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    git("init", "-q")
    assert repository_facts(tmp_path) == {"head": None, "dirty": False}
    (tmp_path / "a").write_text("1")
    assert repository_facts(tmp_path) == {"head": None, "dirty": True}
    git("add", "a")
    git("commit", "-q", "-m", "first")
    assert repository_facts(tmp_path) == {"head": git("rev-parse", "HEAD"), "dirty": False}
    (tmp_path / "a").write_text("2")
    assert repository_facts(tmp_path)["dirty"] is True
