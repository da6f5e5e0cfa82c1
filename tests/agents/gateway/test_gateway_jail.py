"""The way out of both jails leads to the gateway and nowhere else, and it ends with the command."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from model_api import wait_until

from eop.agents import jail as jails
from eop.agents import landlock
from eop.agents.gateway import forwarder
from eop.agents.jail import Containment, Jail, Level, Way, available, landlock_has_networks

if TYPE_CHECKING:
    from collections.abc import Iterator

PYTHON = [sys.executable, "-I", "-S"]
NEAR = "127.0.0.1"
REACH = """
import socket, sys
for name, port in zip(sys.argv[1::2], map(int, sys.argv[2::2])):
    try:
        with socket.create_connection(("127.0.0.1", port), 5) as there:
            there.sendall(b"hello"); there.shutdown(socket.SHUT_WR)
            print(name, "".join(iter(lambda: there.recv(99).decode(), "")))
    except OSError as error:
        print(name, "unreachable")
"""


@contextmanager
def echo(listener: socket.socket) -> Iterator[int]:
    """Answer each connection with what it sent, in capitals, once it has sent all."""

    def serve() -> None:
        while True:
            try:
                there, _ = listener.accept()
            except OSError:
                return
            with there:
                said = b""
                while piece := there.recv(1 << 16):
                    said += piece
                there.sendall(said.upper())

    threading.Thread(target=serve, daemon=True).start()
    with listener:
        yield listener.getsockname()[1] if listener.family == socket.AF_INET else 0
        listener.shutdown(socket.SHUT_RDWR)


def unix(folder: Path) -> tuple[socket.socket, Path]:
    path = folder / "gateway" / "model.sock"
    path.parent.mkdir(parents=True)
    listener = socket.socket(socket.AF_UNIX)
    handle = os.open(path.parent, os.O_PATH)
    listener.bind(f"/proc/self/fd/{handle}/{path.name}")
    os.close(handle)
    listener.listen()
    return listener, path


def jailed(level: Level) -> Jail:
    if level not in available():
        pytest.skip(f"this machine has no {level}")
    if Jail(level).containment() is not Containment.NAMESPACE:
        pytest.skip("no network namespaces")
    return Jail(level)


@pytest.mark.parametrize("level", [Level.BWRAP, Level.LANDLOCK])
def test_the_gateway_is_all_the_network_there_is(tmp_path: Path, level: Level) -> None:
    prison = jailed(level)
    deep = tmp_path / ("long" * 30) / ("name" * 30)
    own, path = unix(deep)
    assert len(str(path)) > 108, "longer than the address of a socket may be"
    program = tmp_path / "reach.py"
    program.write_text(REACH)
    with echo(own), echo(socket.create_server((NEAR, 0))) as outside:
        argv = prison.wrap(
            [*PYTHON, str(program), "gateway", "8099", "machine", str(outside)],
            read=[program], way=Way(8099, path),
        )  # fmt: skip
        done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=30)
    assert done.stdout.split("\n")[:2] == ["gateway HELLO", "machine unreachable"]


def test_where_no_network_can_be_left_landlock_holds_tcp_to_one_port(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if landlock.abi() < 4:
        pytest.skip("this kernel's Landlock knows no TCP")
    monkeypatch.setattr(jails, "landlock_has_networks", lambda: False)
    prison = Jail(Level.LANDLOCK)
    assert prison.containment() is Containment.PORT
    program = tmp_path / "reach.py"
    program.write_text(REACH)
    with (
        echo(socket.create_server((NEAR, 0))) as ours,
        echo(socket.create_server((NEAR, 0))) as other,
    ):
        words = [*PYTHON, str(program), "gateway", str(ours), "machine", str(other)]
        argv = prison.wrap(words, read=[program], way=Way(ours))
        done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=30)
    assert done.stdout.split("\n")[:2] == ["gateway HELLO", "machine unreachable"]


def test_what_holds_a_network_is_said_honestly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jails, "landlock_has_networks", lambda: False)
    monkeypatch.setattr(landlock, "abi", lambda: 3)
    assert Jail(Level.LANDLOCK).containment() is Containment.NONE
    assert Jail(Level.NONE).containment() is Containment.NONE
    assert Jail(Level.BWRAP).containment() is Containment.NAMESPACE


def test_a_network_that_cannot_be_left_stops_the_command(tmp_path: Path) -> None:
    """Half a jail would be worse than none: what asks for a network of its own gets it or fails."""
    if not landlock_has_networks() or os.geteuid() != 0:
        pytest.skip("needs root, to take namespaces away")
    argv = Jail(Level.LANDLOCK).wrap(["touch", str(tmp_path / "made")], write=[tmp_path],
                                     way=Way(8099, unix(tmp_path)[1]))  # fmt: skip
    limit = Path("/proc/sys/user/max_net_namespaces")
    # In a user namespace of its own, whose limits are its own too.
    script = f'echo 0 > {limit} && exec "$@"'
    unshared = ["unshare", "--user", "--map-root-user", "sh", "-c", script, "-", *argv]
    done = subprocess.run(unshared, capture_output=True, text=True, check=False, timeout=30)
    assert done.returncode != 0
    assert "landlock: cannot confine" in done.stderr
    assert not (tmp_path / "made").exists()


def test_a_network_of_its_own_or_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where namespaces are not to be had, what was promised one must not go on without."""
    raised: list[int] = []
    monkeypatch.setattr(landlock, "_libc", SimpleNamespace(unshare=lambda _: -1))
    monkeypatch.setattr(landlock, "_raise_loopback", lambda: raised.append(1))
    with pytest.raises(OSError):
        landlock.isolate(network=landlock.OWN)
    assert raised == []
    # Without a way out, Landlock itself denies TCP.
    landlock.isolate(network=landlock.CLOSED)


def forwarded(folder: Path, *command: str, **options: object) -> subprocess.Popen[str]:
    with socket.create_server((NEAR, 0)) as free:
        port = free.getsockname()[1]
    argv = [*PYTHON, forwarder.__file__, "--socket", str(folder / "s"), "--port", str(port), "--"]
    return subprocess.Popen(
        [*argv, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True, **options,
    )  # fmt: skip


@pytest.mark.parametrize(("script", "rc"), [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", -9),
                                            ("kill -15 $$", -15)])  # fmt: skip
def test_it_ends_as_its_command_ends(tmp_path: Path, script: str, rc: int) -> None:
    with forwarded(tmp_path, "sh", "-c", script) as running:
        running.communicate(timeout=20)
    assert running.returncode == rc


def test_a_command_that_is_not_there_is_told(tmp_path: Path) -> None:
    with forwarded(tmp_path, "/no/such/program") as running:
        _, said = running.communicate(timeout=20)
    assert running.returncode == 127
    assert said == "/no/such/program: cannot be started: No such file or directory\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1])
def test_signals_reach_the_command_once(tmp_path: Path, number: signal.Signals) -> None:
    script = f"""
import os, signal, sys, time
got = []
signal.signal({int(number)}, lambda *_: got.append(1))
assert os.getpgid(0) == os.getpid(), "what is sent to the group must not come twice"
print("ready", flush=True)
while not got: time.sleep(0.01)
time.sleep(0.2)
sys.exit(40 + len(got))
"""
    with forwarded(tmp_path, *PYTHON, "-c", script) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "ready\n"
        # To the group, as a supervisor does.
        os.killpg(running.pid, number)
        running.communicate(timeout=20)
    assert running.returncode == 41


def test_the_command_dies_with_it(tmp_path: Path) -> None:
    script = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
    with forwarded(tmp_path, *PYTHON, "-c", script) as running:
        assert running.stdout is not None
        child = int(running.stdout.readline())
        running.kill()
        running.wait()
        wait_until(lambda: not Path(f"/proc/{child}").exists())


def test_much_passes_both_ways_and_many_at_once(tmp_path: Path) -> None:
    script = """
import socket, sys, threading
data = b"x" * (3 << 20)
def once():
    with socket.create_connection(("127.0.0.1", int(sys.argv[1])), 20) as there:
        threading.Thread(target=lambda: (there.sendall(data), there.shutdown(1))).start()
        got = b"".join(iter(lambda: there.recv(1 << 16), b""))
        print(got == data.upper(), flush=True)
many = [threading.Thread(target=once) for _ in range(8)]
[one.start() for one in many]; [one.join() for one in many]
"""
    own, path = unix(tmp_path)
    with socket.create_server((NEAR, 0)) as free:
        port = str(free.getsockname()[1])
    argv = [*PYTHON, forwarder.__file__, "--socket", str(path), "--port", port, "--"]
    with echo(own):
        done = subprocess.run([*argv, *PYTHON, "-c", script, port], capture_output=True,
                              text=True, check=True, timeout=60)  # fmt: skip
    assert done.stdout.split() == ["True"] * 8
