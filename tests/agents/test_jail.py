"""Jails hold: a hostile program inside reaches only what it was given."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from attempts_made import EACH_JAIL

from eop.agents import jail, landlock
from eop.agents.jail import Jail, Level, available, choose
from eop.core.errors import EopError, ExitCode

needs_landlock = pytest.mark.skipif(landlock.abi() == 0, reason="this kernel has no Landlock")
# They hit the jail's own /tmp where the project lies below /tmp; what counts is the project.
OWN_TMP = {"edit evaluator", "truncate", "delete"}
# What Landlock holds only from a version on.
SINCE = {"truncate": 3, "network": 4, "signal the runtime": 6}

ATTACK = """
import json, os, shutil, socket, subprocess, sys
from pathlib import Path
project, ours, parent = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
only = json.loads(sys.argv[5])
def attempt(do):
    try:
        do()
    except (OSError, subprocess.CalledProcessError):
        return False
    return True
gate, secret = project / "gates", project / "secret.txt"
attacks = {
    "create sentinel": lambda: (gate / "it01-x.approved").write_text(""),
    "read hidden": lambda: secret.read_text(),
    "list hidden": lambda: os.listdir(project / "split"),
    "edit evaluator": lambda: (project / "judge.py").open("a").close(),
    "truncate": lambda: os.truncate(project / "judge.py", 0),
    "delete": lambda: os.unlink(project / "judge.py"),
    "rename gates": lambda: os.rename(gate, project / "old"),
    "hard link in": lambda: os.link(secret, ours / "l"),
    "link and read": lambda: (os.symlink(secret, ours / "s"), (ours / "s").read_text()),
    "private": lambda: Path("/etc/shadow").read_text(),
    "read what root alone may": lambda: Path("/etc/shadow").read_text(),
    "through a child": lambda: subprocess.run(["cat", str(secret)], check=True),
    "through proc": lambda: Path("/proc/%d/root%s" % (parent, secret)).read_text(),
    "environment of the runtime": lambda: Path("/proc/%d/environ" % parent).read_bytes(),
    "signal the runtime": lambda: os.kill(parent, 0),
    "mount": lambda: subprocess.run(
        ["mount", "-t", "tmpfs", "x", str(ours)], check=True, capture_output=True),
    "network": lambda: socket.create_connection(("127.0.0.1", int(sys.argv[4])), 2).close(),
    "write at the root": lambda: os.mkdir("/eop-jail-test"),
    "write elsewhere": lambda: Path("/var/tmp/eop-jail-test").write_text("x"),
}
allowed = {
    "own file": lambda: (ours / "own").write_text("x"),
    "own folder": lambda: (ours / "d").mkdir(),
    "rename": lambda: os.rename(ours / "own", ours / "d" / "own"),
    "null": lambda: Path("/dev/null").write_text("x"),
    "given": lambda: (project / "given.txt").read_text(),
    "shell": lambda: subprocess.run("echo x > f && cat f", shell=True, check=True, cwd=ours),
    "git": lambda: subprocess.run(["git", "init", "-q", "."], check=True, cwd=ours),
    "import": lambda: __import__("yaml"),
}
outcome = [{name: attempt(do) for name, do in group.items() if not only or name in only}
    for group in (attacks, allowed)]
print("\\n" + json.dumps(outcome))
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for folder in ("gates", "split", "workspace"):
        (tmp_path / folder).mkdir()
    for name in ("secret.txt", "judge.py", "given.txt"):
        (tmp_path / name).write_text(name)
    return tmp_path


def attack(prison: Jail, project: Path, only: list[str]) -> list[dict[str, bool]]:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        inside = [sys.executable, "-I", "-c", ATTACK, str(project), str(project / "workspace")]
        argv = prison.wrap(
            [*inside, str(os.getpid()), str(port), json.dumps(only)],
            read=[project / "given.txt"],
            write=[project / "workspace"],
            hidden=[project / "split", project / "gates"],
        )
        done = subprocess.run(
            argv, cwd=project / "workspace", env={"PATH": os.environ["PATH"]}, text=True,
            capture_output=True, check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    result: list[dict[str, bool]] = json.loads(done.stdout.splitlines()[-1])
    return result


@pytest.mark.parametrize("prison", EACH_JAIL)
def test_a_hostile_program_gets_nowhere(project: Path, prison: Jail) -> None:
    attacks, allowed = attack(prison, project, [])
    if prison.kind is Level.LANDLOCK:
        attacks = {
            name: won for name, won in attacks.items() if landlock.abi() >= SINCE.get(name, 1)
        }
    if prison.kind is Level.BWRAP and project.is_relative_to("/tmp"):
        attacks = {name: worked for name, worked in attacks.items() if name not in OWN_TMP}
    assert [name for name, worked in attacks.items() if worked] == []
    assert [name for name, worked in allowed.items() if not worked] == []
    assert list((project / "gates").iterdir()) == []
    assert (project / "judge.py").read_text() == "judge.py"
    assert not Path("/var/tmp/eop-jail-test").exists()


def test_the_attacks_are_real(project: Path) -> None:
    """Without a jail they work: else the test above would prove nothing."""
    harmless = ["create sentinel", "read hidden", "list hidden", "through a child", "network"]
    attacks, _ = attack(Jail(Level.NONE), project, harmless)
    assert attacks == dict.fromkeys(harmless, True)


@pytest.mark.parametrize("prison", EACH_JAIL)
def test_nothing_in_the_workspace_runs_before_the_jail(project: Path, prison: Jail) -> None:
    """A planted package, a startup hook or PYTHONPATH must not run ahead of the confinement."""
    tree = project / "workspace"
    trap = f"open({str(project / 'escaped')!r}, 'w').close()\n"
    for name in ("eop/__init__.py", "ctypes.py", "struct.py", "sitecustomize.py"):
        (tree / name).parent.mkdir(exist_ok=True)
        (tree / name).write_text(trap)
    subprocess.run(
        prison.wrap(["true"], write=[tree]),
        cwd=tree, env={"PATH": os.environ["PATH"], "PYTHONPATH": str(tree)}, check=True,
    )  # fmt: skip
    assert not (project / "escaped").exists()


@needs_landlock
def test_landlock_cannot_hide_below_what_it_shows(project: Path) -> None:
    prison = Jail(Level.LANDLOCK)
    with pytest.raises(EopError, match="must stay hidden") as caught:
        prison.wrap(["true"], read=[project], hidden=[project / "gates"])
    assert caught.value.exit_code is ExitCode.ENVIRONMENT


@needs_landlock
def test_landlock_fails_closed_when_a_path_is_missing(project: Path) -> None:
    argv = Jail(Level.LANDLOCK).wrap(["touch", "made"], write=[project / "nowhere"])
    done = subprocess.run(argv, cwd=project, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "nowhere" in done.stderr or "No such file" in done.stderr
    assert not (project / "made").exists()


def test_bwrap_options_cover_hidden_paths_last(project: Path) -> None:
    argv = Jail(Level.BWRAP).wrap(
        ["x", "--y"], read=[project], write=[project / "workspace"],
        hidden=[project / "gates", project / "secret.txt"],
    )  # fmt: skip
    text = " ".join(argv)
    assert text.startswith("bwrap --die-with-parent")
    assert text.endswith("-- x --y")
    assert "--unshare-net" in argv
    shown = text.index(f"--ro-bind {project} {project}")
    assert shown < text.index(f"--bind {project}/workspace")
    assert shown < text.index(f"--tmpfs {project}/gates")
    assert shown < text.index(f"--ro-bind /dev/null {project}/secret.txt")


@pytest.mark.parametrize(
    ("isolation", "trusted", "refused"),
    [("auto", True, False), ("auto", False, True), ("require", True, True), ("off", False, False)],
)
def test_the_policy_where_there_is_no_jail(
    monkeypatch: pytest.MonkeyPatch, isolation: str, trusted: bool, refused: bool
) -> None:
    monkeypatch.setattr(jail, "detect", lambda: Level.NONE)
    if not refused:
        assert choose(isolation, trusted=trusted).level() is Level.NONE
        return
    with pytest.raises(EopError, match="no jail") as caught:
        choose(isolation, trusted=trusted)
    assert caught.value.exit_code is ExitCode.ENVIRONMENT
    assert "bubblewrap" in (caught.value.hint or "")


def test_rights_grow_with_the_kernel() -> None:
    known: Any = [landlock.handled_rights(version) for version in range(1, 8)]
    assert known == sorted(known)
    assert known[0] == 0x1FFF
    assert known[-1] == 0xFFFF


TALK = """
import ctypes, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
create = 0o1000 if sys.argv[1] == "first" else 0
shared = libc.shmget(0x5eed1, 64, create | 0o666)
try:
    # A network of its own may take it: what counts is that it does not arrive.
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", int(sys.argv[2])))
except OSError:
    pass
print("shared" if shared >= 0 else "none")
"""


@pytest.mark.parametrize("prison", EACH_JAIL)
def test_two_candidates_cannot_talk(tmp_path: Path, prison: Jail) -> None:
    """Neither shared memory nor UDP leads from one jailed process to the next."""
    program = tmp_path / "talk.py"
    program.write_text(TALK)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.setblocking(False)
        talk = [sys.executable, str(program)]
        port = str(listener.getsockname()[1])
        said = {}
        for who in ("first", "second"):
            argv = prison.wrap([*talk, who, port], read=[program])
            done = subprocess.run(argv, capture_output=True, text=True, check=True)
            said[who] = done.stdout.strip()
        with pytest.raises(BlockingIOError):
            listener.recv(1)
        subprocess.run([*talk, "unjailed", port], check=True, capture_output=True)
        assert listener.recv(1) == b"x", "the datagram does not arrive without a jail either"
    assert said == {"first": "shared", "second": "none"}


@pytest.mark.parametrize("prison", EACH_JAIL)
def test_other_programs_are_their_own(tmp_path: Path, prison: Jail) -> None:
    """Neither by number, nor by looking around, is a process of outside to be seen."""
    program = tmp_path / "look.py"
    program.write_text(
        "import sys\n"
        "def told(pid):\n"
        "    try: return open(f'/proc/{pid}/cmdline', 'rb').read().hex()\n"
        "    except OSError: return ''\n"
        "assert told('self')\n"
        "print(sys.argv[2] in map(told, range(1, int(sys.argv[1]) + 1)))\n"
    )
    own = Path("/proc/self/cmdline").read_bytes().hex()
    look = [sys.executable, str(program), str(os.getpid()), own]
    for argv, seen in ((prison.wrap(look, read=[program]), "False"), (look, "True")):
        done = subprocess.run(argv, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == seen


@pytest.mark.skipif(Level.BWRAP not in available(), reason="bubblewrap does not work here")
def test_a_product_may_have_a_sandbox_of_its_own(tmp_path: Path) -> None:
    """Codex makes user namespaces for its commands; as root, too, they must be to be had."""
    inner = ["bwrap", "--unshare-user", "--unshare-pid", "--unshare-net", "--ro-bind", "/", "/"]
    argv = Jail(Level.BWRAP).wrap(
        [*inner, "--", "sh", "-c", "echo in && touch x"], write=[tmp_path]
    )
    done = subprocess.run(argv, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (done.stdout, list(tmp_path.iterdir())) == ("in\n", []), done.stderr


@pytest.mark.parametrize("level", Level)
def test_a_level_says_what_it_holds_and_what_is_better(
    level: Level, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    said = jail.describe(level)
    assert said.startswith("jail: ")
    assert ("apt-get install bubblewrap" in said) == (level is not Level.BWRAP)
    monkeypatch.setattr("shutil.which", lambda _: "/usr/bin/bwrap")
    assert ("let bubblewrap make user namespaces" in jail.describe(level)) == (
        level is not Level.BWRAP
    )


LOOPBACK = """
import socket, sys
with socket.create_server(("127.0.0.1", 0)) as own:
    socket.create_connection(own.getsockname(), 2).close()
for place in ("127.0.0.1", int(sys.argv[1])), ("192.0.2.1", 80):
    try:
        socket.create_connection(place, 2).close()
    except OSError:
        continue
    sys.exit(f"{place} can be reached")
"""


@pytest.mark.parametrize("inside", EACH_JAIL)
def test_processes_of_one_command_talk_among_themselves_alone(inside: Jail) -> None:
    if inside.kind is Level.LANDLOCK and not jail.landlock_has_networks():
        pytest.skip("no network namespaces here")
    with socket.create_server(("127.0.0.1", 0)) as outside:
        command = [sys.executable, "-c", LOOPBACK, str(outside.getsockname()[1])]
        confined = inside.wrap(command, loopback=True)
        done = subprocess.run(confined, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_loopback_that_cannot_be_theirs_alone_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jail, "landlock_has_networks", lambda: False)
    with pytest.raises(EopError, match="EOP862") as caught:
        Jail(Level.LANDLOCK).wrap(["true"], loopback=True)
    assert caught.value.exit_code == ExitCode.ENVIRONMENT
    for level in (Level.BWRAP, Level.NONE):
        assert Jail(level).wrap(["true"], loopback=True)[-1] == "true"
    assert "none" in Jail(Level.LANDLOCK).wrap(["true"])
