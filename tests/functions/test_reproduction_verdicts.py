"""Reproductions in fresh clones that have the remote alone: each fault ends in its own verdict."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from reproducible_project import BASE, LONG, POPULARITY, call, command, environment, make, repro

from eop.evidence.store import object_path

if TYPE_CHECKING:
    from collections.abc import Callable

TRAIN = "data/splits/synthetic/train.parquet"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a project and its remote; the project's own cache is gone."""
    folder = tmp_path_factory.mktemp("made")
    make(folder / "project", folder / "remote")
    shutil.rmtree(folder / "project" / ".dvc" / "cache")
    return folder


def pull(root: Path) -> subprocess.CompletedProcess[str]:
    pointers = sorted(path.relative_to(root).as_posix() for path in (root / "data").rglob("*.dvc"))
    return call(root, "dvc", "pull", "-q", *pointers)


def fresh(made: Path, tmp_path: Path) -> Path:
    root = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", made / "project", root], check=True)
    return root


@pytest.fixture
def clone(made: Path, tmp_path: Path) -> Path:
    root = fresh(made, tmp_path)
    assert pull(root).returncode == 0
    return root


def verdict(root: Path, entry: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((root / "repro" / entry / "verdict.json").read_text())
    return found


def edit(root: Path, entry: str, change: Callable[[dict[str, Any]], None]) -> None:
    """Change what an entry says, in both of its files."""
    path = root / "leaderboard" / entry / "entry.yaml"
    data = yaml.safe_load(path.read_text())
    change(data)
    path.write_text(yaml.safe_dump(data, sort_keys=False))
    beside = path.with_name("metrics.json")
    numbers = {name: data[name] for name in ("validation", "test")}
    beside.write_text(json.dumps({**json.loads(beside.read_text()), **numbers}))


def test_a_training_is_made_again_bit_for_bit(clone: Path) -> None:
    done = call(clone, *repro(BASE))
    assert done.returncode == 0, done.stdout + done.stderr
    found = verdict(clone, BASE)
    assert (found["reproduced"], found["identical"], found["elsewhere"]) == (True, True, {})


def test_a_wrong_recorded_metric_is_a_no(clone: Path) -> None:
    def better(data: dict[str, Any]) -> None:
        data["test"]["mean"]["ndcg@10"] += 0.001

    edit(clone, POPULARITY, better)
    done = call(clone, *repro(POPULARITY))
    assert done.returncode != 0
    assert "error[EOP673]" in done.stderr
    assert "recorded numbers or what they rest on have been changed" in done.stderr
    found = verdict(clone, POPULARITY)
    assert (found["reproduced"], found["identical"]) == (False, False)
    assert found["differences"][0].startswith("test ndcg@10")


def test_another_torch_and_another_thread_count_are_named(clone: Path) -> None:
    def older(data: dict[str, Any]) -> None:
        data["evidence"]["environment"]["packages"]["torch"] = "2.0.0"

    edit(clone, POPULARITY, older)
    done = call(clone, "eop.cli", "reproduce", POPULARITY, "--threads", "2", "--isolation", "off")
    assert done.returncode == 0, done.stderr
    found = verdict(clone, POPULARITY)
    assert (found["reproduced"], found["identical"]) == (True, True)
    assert found["elsewhere"]["threads"] == {"recorded": 1, "now": 2}
    assert found["elsewhere"]["torch"]["recorded"] == "2.0.0"


def test_another_torch_excuses_no_wrong_number(clone: Path) -> None:
    def wrong(data: dict[str, Any]) -> None:
        data["evidence"]["environment"]["packages"]["torch"] = "2.0.0"
        data["test"]["mean"]["ndcg@10"] += 0.001

    edit(clone, POPULARITY, wrong)
    done = call(clone, *repro(POPULARITY))
    assert done.returncode != 0
    assert "torch was 2.0.0" in done.stderr


def test_a_changed_split_is_refused_before_anything_runs(clone: Path) -> None:
    with (clone / TRAIN).open("ab") as stream:
        stream.write(b"\0")
    done = call(clone, *repro(BASE))
    assert done.returncode != 0
    assert f"{TRAIN}: " in done.stderr and "EOP670" in done.stderr
    assert not (clone / "repro" / BASE / "tree").exists()


@pytest.mark.parametrize("fault", ["rotted", "missing"])
def test_what_the_remote_no_longer_has_is_refused(made: Path, tmp_path: Path, fault: str) -> None:
    """DVC pulls a rotted object of mode 0444 and says that all is up to date."""
    remote = tmp_path / "remote"
    shutil.copytree(made / "remote", remote)
    root = fresh(made, tmp_path)
    moved = call(root, "dvc", "remote", "modify", "-q", "--local", "storage", "url", str(remote))
    assert moved.returncode == 0
    pointer = yaml.safe_load((root / f"{TRAIN}.dvc").read_text())
    victim = object_path(remote, pointer["outs"][0]["md5"])
    content = victim.read_bytes()
    victim.unlink()
    if fault == "rotted":
        victim.write_bytes(content[:-1] + b"X")
        victim.chmod(0o444)
    pulled = pull(root)
    assert (pulled.returncode == 0) == (fault == "rotted")
    checked = call(root, "eop.cli", "store", "check", "--remote", "--json")
    assert checked.returncode == 6
    assert [TRAIN] in json.loads(checked.stdout)[fault].values()
    done = call(root, "eop.cli", "reproduce", BASE, "--isolation", "off")
    assert (done.returncode, (root / "repro").exists()) == (6, False)
    assert f"{TRAIN}: " in done.stderr


def living(root: Path) -> dict[int, bytes]:
    """Command lines of processes that name the clone in it or work there, but not of this one."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes()
            inside = str(folder.joinpath("cwd").readlink()).startswith(str(root))
        except OSError:
            continue
        if int(folder.name) != os.getpid() and words and (inside or str(root).encode() in words):
            found[int(folder.name)] = words
    return found


def trains(root: Path) -> bool:
    return any((root / "repro" / LONG).rglob("curve.tsv")) or any(
        b"\0train\0" in words for words in living(root).values()
    )


@pytest.mark.parametrize("argv", [repro(LONG), ("eop.cli", "reproduce", LONG)])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_reproduction_that_is_ended_leaves_no_training(
    clone: Path, argv: tuple[str, ...], number: signal.Signals
) -> None:
    with subprocess.Popen(
        command(clone, *argv),
        cwd=clone,
        env=environment(clone),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        deadline = time.monotonic() + 120
        while not trains(clone) and process.poll() is None:
            assert time.monotonic() < deadline, "it never began to train"
            time.sleep(0.1)
        assert process.poll() is None
        process.send_signal(number)
        process.wait(30)
    deadline = time.monotonic() + 30
    while living(clone) and time.monotonic() < deadline:
        time.sleep(0.1)
    left = living(clone)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert not left
