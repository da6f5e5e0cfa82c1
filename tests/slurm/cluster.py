"""A real Slurm on this machine alone: ``python tests/slurm/cluster.py`` keeps one up until Ctrl-C.

A controller and several nodes, every node a ``slurmd`` of its own on the loopback interface. All
that they write lies in one folder, and no file of the system is touched: another Slurm on this
machine does not notice. The daemons are children in the foreground, so that what was started here
can be ended, and nothing else. No systemd, no database, no cgroups; root, because only root may
start jobs of Slurm.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

DAEMONS = ("munged", "slurmctld", "slurmd")
_READY_S = 30.0
_GRACE_S = 10.0
_FACT = re.compile(r"(\S+?)=(\S*)")
_ASKS = ("NumCPUs", "MinMemoryNode", "TresPerJob", "TimeLimit")
# Slurm binds a GPU to a device file, of which it asks only that it is there.
_GPUS = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random")


class ClusterError(Exception):
    """The cluster did not come up, or a command of Slurm failed."""


def missing() -> list[str]:
    """What this machine lacks, each in words; empty when a cluster can be started."""
    lacking = [f"{name} is not installed" for name in DAEMONS if _daemon(name) is None]
    return lacking + ([] if os.geteuid() == 0 else ["only root may start jobs of Slurm"])


@dataclass(frozen=True)
class Job:
    """A job as Slurm knows it; the executor plugin names its rules in the comment.

    ``asks`` is what it was submitted with: cores, memory, GPUs, in Slurm's words.
    """

    id: str
    state: str
    node: str
    comment: str
    asks: dict[str, str]

    @property
    def ended(self) -> bool:
        """Whether it neither waits nor runs."""
        return self.state not in ("PENDING", "RUNNING", "COMPLETING")


class Cluster:
    """Slurm with the nodes ``n1``, ``n2``, ..., each with so many cores, megabytes and GPUs."""

    def __init__(
        self, folder: Path, *, nodes: int = 2, cpus: int = 2, ram_mb: int = 4000, gpus: int = 1
    ) -> None:
        if nodes * gpus > len(_GPUS):
            raise ValueError(f"at most {len(_GPUS)} GPUs: each has a device file of its own")
        self.folder = folder
        self.nodes = tuple(f"n{number + 1}" for number in range(nodes))
        self._conf = folder / "slurm.conf"
        self._size = f"CPUs={cpus} RealMemory={ram_mb} Gres=gpu:{gpus}"
        self._gpus = gpus
        self._running: list[subprocess.Popen[bytes]] = []

    @property
    def env(self) -> dict[str, str]:
        """The environment in which commands of Slurm speak to this cluster."""
        path = f"{self._conf.parent / 'bin'}:{os.environ.get('PATH', os.defpath)}"
        return {**os.environ, "SLURM_CONF": str(self._conf), "PATH": path}

    def up(self) -> None:
        """Start the daemons; return when every node waits for jobs."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._write_config()
        self._write_srun()
        self._start("munged", "--foreground", "--force", *self._munge_files())
        self._until(lambda: self._socket.exists(), "munged has no socket")
        self._start("slurmctld", "-D")
        for node in self.nodes:
            self._start("slurmd", "-D", "-N", node)
        self._until(lambda: self.states() == dict.fromkeys(self.nodes, "idle"), "no idle nodes")

    def down(self) -> None:
        """Cancel the jobs and end the daemons that ``up`` started, the last one first."""
        with suppress(ClusterError):
            self.command("scancel", "--full", "--user=root")
            self._until(lambda: all(job.ended for job in self.jobs()), "jobs that do not end")
        while self._running:
            daemon = self._running.pop()
            daemon.terminate()
            try:
                daemon.wait(_GRACE_S)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()

    def command(self, *argv: str) -> str:
        """What a command of Slurm prints; ``ClusterError`` when it fails."""
        done = subprocess.run(
            argv, env=self.env, capture_output=True, text=True, timeout=60, check=False
        )
        if done.returncode:
            raise ClusterError(f"{' '.join(argv)}: {done.stderr.strip()}")
        return done.stdout

    def states(self) -> dict[str, str]:
        """Each node's state (``idle``, ``mixed``, ``draining``, ...), if the controller answers."""
        try:
            listed = self.command("sinfo", "--noheader", "--Node", "--format=%N %T")
        except ClusterError:
            return {}
        return dict(line.split() for line in listed.splitlines())

    def jobs(self) -> list[Job]:
        """All jobs, those that have ended too, oldest first."""
        listed = self.command("scontrol", "show", "job", "--oneliner").splitlines()
        told = [dict(_FACT.findall(line)) for line in listed if line.startswith("JobId=")]
        return [
            Job(
                id=job["JobId"],
                state=job["JobState"],
                node=job.get("NodeList", "(null)"),
                comment=job.get("Comment", ""),
                asks={key: job[key] for key in _ASKS if key in job},
            )
            for job in told
        ]

    def drain(self, node: str) -> None:
        """Let nothing more start on a node, as before a repair."""
        self.command("scontrol", "update", f"nodename={node}", "state=drain", "reason=test")

    def cancel(self, job: Job) -> None:
        """End a job for good."""
        self.command("scancel", job.id)

    def preempt(self, job: Job) -> None:
        """Take a job's node away from it; it waits for another, like a preempted one.

        Slurm would let two minutes pass before it may start again.
        """
        self.command("scontrol", "requeue", job.id)
        self._until(lambda: self._waits(job), "no requeued job")
        self.command("scontrol", "update", f"jobid={job.id}", "starttime=now")

    def _waits(self, job: Job) -> bool:
        return any(one.id == job.id and one.state == "PENDING" for one in self.jobs())

    @property
    def _socket(self) -> Path:
        return self.folder / "munge.socket"

    def _munge_files(self) -> Sequence[str]:
        key = self.folder / "munge.key"
        key.touch(mode=0o600)
        key.write_bytes(secrets.token_bytes(128))
        names = {"socket": self._socket, "key-file": key}
        names |= {f"{kind}-file": self.folder / f"munged.{kind}" for kind in ("pid", "log", "seed")}
        return [f"--{name}={path}" for name, path in names.items()]

    def _write_config(self) -> None:
        controller, *ports = _free_ports(1 + len(self.nodes))
        host, folder = socket.gethostname(), self.folder
        settings = {
            "ClusterName": "loopback",
            "SlurmctldHost": f"{host}(127.0.0.1)",
            "SlurmctldPort": controller,
            "AuthType": "auth/munge",
            "AuthInfo": f"socket={self._socket}",
            "SlurmUser": "root",
            "SlurmdUser": "root",
            "StateSaveLocation": folder / "controller",
            "SlurmctldPidFile": folder / "slurmctld.pid",
            "SlurmctldLogFile": folder / "slurmctld.log",
            "SlurmdPidFile": folder / "slurmd.%n.pid",
            "SlurmdLogFile": folder / "slurmd.%n.log",
            "SlurmdSpoolDir": folder / "slurmd.%n",
            # A node may claim more than this machine has: it shares it with the others.
            "SlurmdParameters": "config_overrides",
            "ProctrackType": "proctrack/linuxproc",
            "TaskPlugin": "task/none",
            "MpiDefault": "none",
            "SwitchType": "switch/none",
            "JobAcctGatherType": "jobacct_gather/none",
            "AccountingStorageType": "accounting_storage/none",
            "SelectType": "select/cons_tres",
            "SelectTypeParameters": "CR_Core_Memory",
            "SchedulerType": "sched/backfill",
            "GresTypes": "gpu",
            "ReturnToService": 2,
            "KillWait": 5,
            # `squeue` must still know a job when the executor asks how it ended.
            "MinJobAge": 300,
        }
        lines = [f"{name}={value}" for name, value in settings.items()]
        for node, port in zip(self.nodes, ports, strict=True):
            (folder / f"slurmd.{node}").mkdir(exist_ok=True)
            place = f"NodeHostname={host} NodeAddr=127.0.0.1 Port={port}"
            lines.append(f"NodeName={node} {place} {self._size} State=UNKNOWN")
        lines.append(f"PartitionName=main Nodes={','.join(self.nodes)} Default=YES State=UP")
        (folder / "controller").mkdir(exist_ok=True)
        self._conf.write_text("\n".join(lines) + "\n")
        gpus = zip([node for node in self.nodes for _ in range(self._gpus)], _GPUS, strict=False)
        bound = [f"NodeName={node} Name=gpu File={device}" for node, device in gpus]
        (folder / "gres.conf").write_text("\n".join(["AutoDetect=off", *bound]) + "\n")

    def _write_srun(self) -> None:
        """Jobs start their steps without the variables of Slurm, so without its configuration."""
        program = self.folder / "bin" / "srun"
        program.parent.mkdir(exist_ok=True)
        real = shutil.which("srun")
        program.write_text(f'#!/bin/sh\nSLURM_CONF={self._conf} exec {real} "$@"\n')
        program.chmod(0o755)

    def _start(self, name: str, *arguments: str) -> None:
        program = _daemon(name)
        if program is None:
            raise ClusterError(f"{name} is not installed")
        with (self.folder / f"{name}.out").open("ab") as out:
            self._running.append(
                subprocess.Popen(
                    [program, *arguments],
                    env=self.env,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=out,
                )
            )

    def _until(self, holds: Callable[[], bool], otherwise: str) -> None:
        deadline = time.monotonic() + _READY_S
        while not holds():
            ended = [daemon.args for daemon in self._running if daemon.poll() is not None]
            if ended or time.monotonic() > deadline:
                raise ClusterError(f"{otherwise}; ended: {ended or 'none'}\n{self._said()}")
            time.sleep(0.1)

    def _said(self) -> str:
        """The end of what each daemon has to say."""
        logs = sorted([*self.folder.glob("*.log"), *self.folder.glob("*.out")])
        ends = (f"{log.name}: {log.read_text(errors='replace')[-800:]}" for log in logs)
        return "\n".join(re.sub(r"^", "  ", end, flags=re.MULTILINE) for end in ends)


def _daemon(name: str) -> str | None:
    """Where a daemon lies; a user's PATH leaves out the folders of daemons."""
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


@contextmanager
def running(folder: Path, **size: int) -> Iterator[Cluster]:
    """A cluster for the length of a block."""
    cluster = Cluster(folder, **size)
    try:
        cluster.up()
        yield cluster
    finally:
        cluster.down()


def main() -> int:
    """Keep a cluster up, and say how to speak to it."""
    if lacking := missing():
        print(f"no Slurm: {'; '.join(lacking)}", file=sys.stderr)
        return 9
    with tempfile.TemporaryDirectory(prefix="slurm-") as folder, running(Path(folder)) as cluster:
        print(f"export SLURM_CONF={cluster.env['SLURM_CONF']}", flush=True)
        with suppress(KeyboardInterrupt):
            while True:
                time.sleep(3600)
    return 0


if __name__ == "__main__":
    sys.exit(main())
