"""`eop store check` on a folder and on a real S3 server of this machine; many recorders at once."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from click.testing import CliRunner
from moto.server import ThreadedMotoServer

from eop.cli import cli
from eop.evidence import Dvc, Pushed
from eop.evidence.store import object_path

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BUCKET = "entries"
FILES = ("data/split.bin", "leaderboard/one/model.bin")


def dvc(root: Path, *arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "dvc", *arguments, "-q"], cwd=root, check=True)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with two stored files; copied by each test, for DVC is slow."""
    root = tmp_path_factory.mktemp("made") / "project"
    root.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    store = Dvc(root)
    store.init()
    for number, name in enumerate(FILES):
        (root / name).parent.mkdir(parents=True)
        (root / name).write_bytes(bytes([65 + number]) * 5000)
    store.add(FILES)
    return root


@pytest.fixture
def project(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "project", symlinks=True)
    return tmp_path / "project"


def check(project: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    command = ["--project", str(project), "store", "check", "--json", *arguments]
    done = CliRunner().invoke(cli, command, catch_exceptions=False)
    return done.exit_code, json.loads(done.stdout)


def oid(project: Path, name: str) -> str:
    return Dvc(project).pointed(f"{name}.dvc").md5


def test_a_sound_cache_holds(project: Path) -> None:
    status, told = check(project)
    assert (status, told["objects"], told["rotted"], told["missing"]) == (0, 2, {}, {})


def test_rot_and_loss_in_the_cache_are_named_by_file(project: Path) -> None:
    rotten, lost = (oid(project, name) for name in FILES)
    cache = project / ".dvc" / "cache"
    object_path(cache, rotten).chmod(0o644)
    object_path(cache, rotten).write_bytes(b"B" * 5000)
    object_path(cache, lost).unlink()
    status, told = check(project)
    assert status == 6
    assert told["rotted"] == {rotten: [FILES[0]]}
    assert told["missing"] == {lost: [FILES[1]]}


@pytest.fixture
def bucket(
    project: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> Iterator[Any]:
    """An S3 server on loopback, the project's default remote; requests for it stay here."""
    caplog.set_level("ERROR", logger="werkzeug")
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    url = "http://{}:{}".format(*server.get_host_and_port())
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "nobody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "nothing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    client = boto3.client("s3", endpoint_url=url)
    client.create_bucket(Bucket=BUCKET)
    dvc(project, "remote", "add", "-d", "s3", f"s3://{BUCKET}/store")
    dvc(project, "remote", "modify", "s3", "endpointurl", url)
    yield client
    server.stop()


def key(object_id: str) -> str:
    return f"store/files/md5/{object_id[:2]}/{object_id[2:]}"


def test_an_s3_remote_is_pushed_to_read_and_pulled_from(project: Path, bucket: Any) -> None:
    pointers = [f"{name}.dvc" for name in FILES]
    assert Dvc(project).push(pointers) == Pushed("s3", tuple(pointers))
    status, told = check(project, "--remote")
    assert (status, told["objects"], told["store"]) == (0, 2, "remote 's3'")

    rotten, lost = (oid(project, name) for name in FILES)
    bucket.put_object(Bucket=BUCKET, Key=key(rotten), Body=b"B" * 5000)
    status, told = check(project, "--remote")
    assert (status, told["rotted"], told["missing"]) == (6, {rotten: [FILES[0]]}, {})
    bucket.delete_object(Bucket=BUCKET, Key=key(rotten))
    bucket.delete_object(Bucket=BUCKET, Key=key(lost))
    status, told = check(project, "--remote")
    assert (status, set(told["missing"])) == (6, {rotten, lost})
    assert check(project)[0] == 0, "the cache has them still"

    Dvc(project).push(pointers)
    for name in FILES:
        (project / name).unlink()
    shutil.rmtree(project / ".dvc" / "cache")
    dvc(project, "pull", *pointers)
    assert (project / FILES[0]).read_bytes() == b"A" * 5000
    assert check(project)[0] == 0


def test_eight_recorders_at_once_lose_nothing(project: Path) -> None:
    (project / "storage").mkdir()
    dvc(project, "remote", "add", "-d", "folder", str(project / "storage"))

    def record(number: int) -> object:
        name = f"leaderboard/e{number}/model.bin"
        (project / name).parent.mkdir()
        (project / name).write_bytes(bytes([number]) * 4000)
        own = Dvc(project)
        (stored,) = own.add([name])
        return own.push([stored.pointer])

    with ThreadPoolExecutor(8) as pool:
        pushed = list(pool.map(record, range(8)))
    assert all(isinstance(one, Pushed) for one in pushed)
    Dvc(project).push([f"{name}.dvc" for name in FILES])
    for arguments in ((), ("--remote",)):
        status, told = check(project, *arguments)
        assert (status, told["objects"]) == (0, 10)
