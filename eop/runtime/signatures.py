"""Signed answers: the statement that is signed, who may sign, and OpenSSH doing the checking."""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from eop.core.errors import EopError, ExitCode, Where

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eop.runtime.node import Instance
    from eop.runtime.state import State

NAMESPACE = "rankevolve-gate"
SIGNERS_COPY = "base/allowed_signers"
_VERSION = f"{NAMESPACE}/1"
_PATIENCE_S = 60


class UnsignedError(Exception):
    """Why a signature proves nothing."""


def statement(run: str, gate: Instance, digest: str, status: str, reason: str) -> bytes:
    """The bytes that an answer is: one line of run, gate, digest and decision, then the reason.

    ``reason`` has no blanks at its ends; without one the statement is the first line alone.
    """
    head = f"{_VERSION} {run} {gate.key} {digest} {status}\n"
    return (head + (f"{reason}\n" if reason else "")).encode()


@dataclass(frozen=True)
class Signers:
    """Who may answer: the bytes of a file in OpenSSH's format of allowed signers."""

    content: bytes

    @property
    def digest(self) -> str:
        """Hex sha256 of the file."""
        return hashlib.sha256(self.content).hexdigest()

    def named(self) -> bool:
        """Whether the file has any line that is not a comment."""
        return any(line.strip() and line.strip()[:1] != b"#" for line in self.content.splitlines())

    def principal(self, message: bytes, signature: str) -> str:
        """The first principal in whose name the key behind ``signature`` may sign ``message``.

        Raises ``UnsignedError`` with OpenSSH's own words when there is none.
        """
        with tempfile.TemporaryDirectory(prefix="eop-signers-") as folder:
            # Copies: what is judged is what was digested and what is recorded.
            allowed, signed = Path(folder, "allowed"), Path(folder, "signature")
            allowed.write_bytes(self.content)
            signed.write_text(signature)
            files = ("-f", str(allowed), "-s", str(signed))
            found = _keygen(["-Y", "find-principals", *files], b"")
            for name in found.stdout.decode(errors="replace").splitlines():
                check = ["-Y", "verify", *files, "-I", name, "-n", NAMESPACE]
                judged = _keygen(check, message)
                if judged.returncode == 0:
                    return name
                found = judged
            why = _last_line(found.stderr).replace(f"{folder}/", "")
        raise UnsignedError(why)


def pinned(root: Path, state: State) -> Signers | None:
    """The signers that the run began with, ``None`` when its answers need no signature.

    Raises ``EopError`` (EOP744) unless the run's copy is what the trace says.
    """
    if state.signers is None:
        return None
    path = root / "runs" / state.run / SIGNERS_COPY
    try:
        signers = Signers(path.read_bytes())
    except OSError as error:
        raise _changed(path, f"cannot be read: {error.strerror}") from error
    if signers.digest != state.signers:
        raise _changed(path, "has changed")
    return signers


def _changed(path: Path, what: str) -> EopError:
    return EopError(
        "EOP744",
        f"the run's copy of its allowed signers {what}; no answer can be judged",
        where=Where(str(path)),
        hint="restore the file from the one that the run began with",
        exit_code=ExitCode.STATE,
    )


def sign(key: Path, message: bytes) -> str:
    """The armored signature of ``message`` with a private key, or a public one of an agent's.

    OpenSSH asks for a passphrase at the terminal. Raises ``EopError`` (EOP746) when it fails.
    """
    done = _keygen(["-Y", "sign", "-n", NAMESPACE, "-f", str(key.expanduser())], message, None)
    if done.returncode:
        raise EopError(
            "EOP746",
            f"ssh-keygen could not sign: {_last_line(done.stderr)}",
            where=Where(str(key)),
            hint="name a private key, or a public key that your ssh-agent holds",
            exit_code=ExitCode.ENVIRONMENT,
        )
    return done.stdout.decode("ascii")


def require_keygen() -> None:
    """Raise ``EopError`` (EOP745) unless ``ssh-keygen`` is there and knows signatures."""
    if b"-Y sign" not in _keygen(["-Y"], b"").stderr:
        raise _no_keygen("it is older than OpenSSH 8.1")


def _keygen(
    arguments: Sequence[str], message: bytes, patience_s: float | None = _PATIENCE_S
) -> subprocess.CompletedProcess[bytes]:
    command = ["ssh-keygen", *arguments]
    try:
        return subprocess.run(
            command, input=message, capture_output=True, timeout=patience_s, check=False
        )
    except OSError as error:
        raise _no_keygen(str(error.strerror)) from error
    except subprocess.TimeoutExpired as error:
        raise _no_keygen("it does not end") from error


def _no_keygen(why: str) -> EopError:
    return EopError(
        "EOP745",
        f"answers of this run are signed, and ssh-keygen cannot be used: {why}",
        hint="install OpenSSH (apt install openssh-client), then run the same command again",
        exit_code=ExitCode.ENVIRONMENT,
    )


def _last_line(stderr: bytes) -> str:
    lines = stderr.decode(errors="replace").strip().splitlines()
    return lines[-1].strip() if lines else ""
