"""The real DVC in temporary projects. One is made per module and copied, for DVC is slow."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, ClassVar

import pytest

from eop.core.errors import EopError, ExitCode
from eop.evidence import Dvc, NoRemote, Pushed, check_store
from eop.evidence.store import object_path

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def stored(tmp_path_factory) -> Path:
    """A git project with two stored files, pushed to a folder remote; copied by each test."""
    root = tmp_path_factory.mktemp("stored") / "project"
    root.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    dvc = Dvc(root)
    assert not dvc.initialised
    dvc.init()
    (root / "data").mkdir()
    (root / "data" / "a.bin").write_bytes(b"a" * 1000)
    (root / "data" / "b.bin").write_bytes(b"b" * 1000)
    files = dvc.add(["data/a.bin", "data/b.bin"])
    assert [(file.path, file.size) for file in files] == [
        ("data/a.bin", 1000),
        ("data/b.bin", 1000),
    ]
    pointers = [file.pointer for file in files]
    assert pointers == ["data/a.bin.dvc", "data/b.bin.dvc"]
    outcome = dvc.push(pointers)
    assert isinstance(outcome, NoRemote)
    assert outcome.command.startswith("dvc remote add --default")
    command = outcome.command.replace("<folder or url>", "storage").split()
    subprocess.run([sys.executable, "-m", *command, "-q"], cwd=root, check=True)
    assert Dvc(root).push(pointers) == Pushed("storage", tuple(pointers))
    return root


@pytest.fixture
def dvc(stored, tmp_path) -> Dvc:
    shutil.copytree(stored, tmp_path / "project", symlinks=True)
    return Dvc(tmp_path / "project")


POINTERS = ["data/a.bin.dvc", "data/b.bin.dvc"]


def rot(store: Path, md5: str) -> None:
    """Change one byte of a stored object, and leave it read-only as DVC made it."""
    path = object_path(store, md5)
    path.chmod(0o644)
    path.write_bytes(b"X" + path.read_bytes()[1:])
    path.chmod(0o444)


def md5(dvc: Dvc, pointer: str) -> str:
    text = (dvc.root / pointer).read_text()
    return text.split("md5: ")[1].split()[0]


def test_nothing_is_staged_in_the_users_git(stored):
    staged = subprocess.run(
        ["git", "diff", "--cached", "--name-only"], cwd=stored, capture_output=True, text=True
    )
    assert staged.stdout == ""
    ignored = subprocess.run(["git", "check-ignore", "-q", ".dvc/tmp/site"], cwd=stored)
    assert ignored.returncode == 0
    assert (stored / ".dvc" / "tmp" / "site").is_dir()


def test_a_rotted_object_is_found_though_read_only(dvc):
    victim, other = (md5(dvc, pointer) for pointer in POINTERS)
    assert dvc.verify(POINTERS).sound
    rot(dvc.root / "storage", other)
    assert dvc.verify(remote=True).rotted == (other,)
    with pytest.raises(EopError) as caught:
        dvc.push(POINTERS)
    assert caught.value.code == "EOP644"
    rot(dvc.root / ".dvc" / "cache", victim)
    assert dvc.verify().rotted == (victim,)
    for store in (lambda: dvc.push(POINTERS), lambda: dvc.add(["data/a.bin"])):
        with pytest.raises(EopError, match=r"data/a\.bin") as caught:
            store()
        assert (caught.value.code, caught.value.exit_code) == ("EOP644", ExitCode.DATA)


def test_a_missing_object_is_found_and_push_does_not_pretend(dvc):
    victim = md5(dvc, POINTERS[1])
    object_path(dvc.root / ".dvc" / "cache", victim).unlink()
    assert dvc.verify(POINTERS).missing == (victim,)
    with pytest.raises(EopError) as caught:
        dvc.push(POINTERS)
    assert caught.value.code == "EOP645"


def test_a_lost_remote_object_comes_back_by_push(dvc):
    victim = md5(dvc, POINTERS[0])
    object_path(dvc.root / "storage", victim).unlink()
    assert dvc.verify(POINTERS, remote=True).missing == (victim,)
    assert isinstance(dvc.push(POINTERS), Pushed)
    assert dvc.verify(POINTERS, remote=True).sound


class Store(BaseHTTPRequestHandler):
    """A tiny remote: keeps what is sent, or throws it away and says thanks all the same."""

    kept: ClassVar[dict[str, bytes]] = {}
    honest = True

    def do_POST(self):
        body = self._body()
        if self.honest:
            self.kept[self.path] = body
        self._answer(200)

    def do_HEAD(self):
        self._answer(200 if self.path in self.kept else 404)

    def do_GET(self):
        found = self.kept.get(self.path)
        self._answer(404 if found is None else 200, found or b"")

    def _body(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers["Content-Length"]))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def _answer(self, status: int, body: bytes = b"") -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def http(dvc):
    """``dvc`` with an HTTP server on this machine as its default remote."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Store)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    config = dvc.root / ".dvc" / "config"
    url = f"http://127.0.0.1:{server.server_port}/store"
    config.write_text(config.read_text().replace("../storage", url))
    Store.kept.clear()
    yield dvc
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_remote_that_is_no_folder_is_asked_after_the_push(http, monkeypatch):
    with monkeypatch.context() as lying:
        lying.setattr(Store, "honest", False)
        with pytest.raises(EopError, match="after the push") as caught:
            http.push(POINTERS)
    assert caught.value.code == "EOP645"
    assert isinstance(http.push(POINTERS), Pushed)
    assert sorted(Store.kept.values()) == [b"a" * 1000, b"b" * 1000]
    assert http.verify(POINTERS, remote=True).sound
    Store.kept.popitem()
    assert len(http.verify(POINTERS, remote=True).missing) == 1


def test_adding_again_is_harmless_and_folders_are_refused(dvc):
    before = (dvc.root / POINTERS[0]).read_bytes()
    assert len(dvc.add(["data/a.bin"])) == 1
    assert (dvc.root / POINTERS[0]).read_bytes() == before
    assert dvc.add([]) == ()
    for path in ("data", "absent.bin"):
        with pytest.raises(EopError) as caught:
            dvc.add([path])
        assert caught.value.code == "EOP643"


def test_the_words_of_dvc_reach_the_user(dvc):
    (dvc.root / "tracked.bin").write_text("x")
    subprocess.run(["git", "add", "tracked.bin"], cwd=dvc.root, check=True)
    with pytest.raises(EopError, match="already tracked by SCM") as caught:
        dvc.add(["tracked.bin"])
    assert caught.value.code == "EOP945"
    assert "exit status" in caught.value.message


def test_a_call_without_end_is_ended(dvc):
    with pytest.raises(EopError, match=r"no end after 0\.05 s"):
        Dvc(dvc.root, timeout_s=0.05).verify()


def test_a_broken_pointer_is_named(dvc):
    (dvc.root / POINTERS[0]).write_text("outs: []\n")
    with pytest.raises(EopError, match=r"data/a\.bin\.dvc") as caught:
        dvc.verify(POINTERS)
    assert caught.value.code == "EOP642"


def test_a_project_inside_another_does_not_use_its_store(dvc):
    inner = dvc.root / "inner"
    inner.mkdir()
    (inner / "a.bin").write_text("x")
    with pytest.raises(EopError) as caught:
        Dvc(inner).add(["a.bin"])
    assert caught.value.code == "EOP944"
    Dvc(inner).init()
    assert "no_scm = true" in (inner / ".dvc" / "config").read_text()
    assert Dvc(inner).add(["a.bin"])[0].size == 1
    assert len(list((inner / ".dvc" / "cache").rglob("files/md5/??/*"))) == 1
    assert len(list((dvc.root / ".dvc" / "cache").rglob("files/md5/??/*"))) == 2


def test_init_leaves_a_project_alone(dvc):
    before = (dvc.root / ".dvc" / "config").read_bytes()
    dvc.init()
    assert (dvc.root / ".dvc" / "config").read_bytes() == before


def test_members_of_a_folder_object_count(tmp_path):
    member = hashlib.md5(b"m").hexdigest()
    listing = json.dumps([{"md5": member, "relpath": "m"}]).encode()
    folder = f"{hashlib.md5(listing).hexdigest()}.dir"
    for oid, data in ((folder, listing), (member, b"m")):
        path = object_path(tmp_path, oid)
        path.parent.mkdir(parents=True)
        path.write_bytes(data)
    (object_path(tmp_path, member).parent / ".left.tmp").touch()
    assert check_store(tmp_path).sound
    assert check_store(tmp_path).temporary == 1
    object_path(tmp_path, member).unlink()
    assert check_store(tmp_path).missing == (member,)
