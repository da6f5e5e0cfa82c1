from __future__ import annotations

import hashlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eop.core.errors import EopError
from eop.evidence.objects import ObjectStore


@settings(max_examples=30)
@given(contents=st.lists(st.binary(max_size=50), max_size=6))
def test_what_is_kept_comes_back_by_its_digest(contents, tmp_path_factory):
    store = ObjectStore.of(tmp_path_factory.mktemp("store"))
    digests = [store.put(content) for content in contents]
    assert digests == [hashlib.sha256(content).hexdigest() for content in contents]
    assert [store.get(digest) for digest in digests] == contents
    files = [path for path in store.folder.rglob("*") if path.is_file()]
    assert len(files) == len(set(digests)), "equal bytes are kept once"


def test_rot_and_loss_are_found_and_never_handed_out(tmp_path):
    store = ObjectStore.of(tmp_path)
    digest = store.put(b"a prompt")
    store.path(digest).write_bytes(b"another")
    assert "rotted" in (store.check(digest) or "")
    with pytest.raises(EopError, match="EOP647"):
        store.get(digest)
    assert store.put(b"a prompt") == digest
    assert store.get(digest) == b"a prompt", "whole again"
    store.path(digest).unlink()
    assert "missing" in (store.check(digest) or "")
