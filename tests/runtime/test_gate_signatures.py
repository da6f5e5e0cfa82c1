"""Signed answers: only what an allowed signer has signed about this very gate counts."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from research_run import Run
from waiting_gate import at_first_gate, problem, view

from eop.core.errors import EopError, ExitCode
from eop.runtime import signatures
from eop.runtime.answers import commands
from eop.runtime.gates import signature_file
from eop.runtime.signatures import SIGNERS_COPY, Signers, UnsignedError, sign, statement
from eop.runtime.verify import verify

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="needs OpenSSH")


@dataclass(frozen=True)
class People:
    """Two key pairs; only alice's is allowed to sign."""

    folder: Path
    signers: Signers

    def key(self, name: str) -> Path:
        return self.folder / name


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> People:
    folder = tmp_path_factory.mktemp("keys")
    for name in ("alice", "mallory"):
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", folder / name]
        subprocess.run(command, check=True)
    line = f"# who may answer\nalice@example.org {(folder / 'alice.pub').read_text()}"
    return People(folder, Signers(line.encode()))


@pytest.fixture
def run(tmp_path: Path, people: People) -> Run:
    """A run that takes signed answers and waits at its first gate."""
    return at_first_gate(tmp_path, people.signers)


def answer(
    run: Run, key: Path, status: str = "approved", reason: str = "", about: str | None = None
) -> Path:
    """Sign an answer as a person does; ``about`` is the digest it speaks of."""
    gate = view(run)
    path = gate.approve if status == "approved" else gate.reject
    message = statement(run.name, gate.instance, about or gate.digest, status, reason)
    path.write_bytes(message)
    signature_file(path).write_text(sign(key, message))
    return path


def test_a_signed_answer_counts_and_its_signer_is_recorded(run: Run, people: People) -> None:
    answer(run, people.key("alice"), reason="reads well\nin every line")
    known = run.advance().state.gates["it01_confirm"]
    assert (known.status, known.by) == ("approved", "alice@example.org")
    assert known.reason == "reads well\nin every line"
    assert known.signature.startswith("-----BEGIN SSH SIGNATURE-----")
    assert verify(run.root, "r1") == []


def test_the_two_commands_of_the_page_make_an_answer(run: Run, people: People) -> None:
    page = view(run).request.read_text()
    assert "`eop gate approve confirm --run r1 --sign KEY`" in page
    make, line = (row.strip() for row in page.splitlines() if ".rejected" in row)
    line = line.replace("~/.ssh/id_ed25519", str(people.key("alice")))
    for command in (make, line):
        subprocess.run(command, shell=True, cwd=run.root, check=True, capture_output=True)
    assert run.advance().state.gates["it01_confirm"].status == "rejected"


def test_people_are_told_to_sign_where_a_touch_would_not_do() -> None:
    assert commands("r1", "agree", "a", "r", signed=False) == ("touch a", "touch r")
    yes, no = commands("r1", "agree", "a", "r", signed=True)
    assert yes == "eop gate approve agree --run r1 --sign KEY"
    assert no == "eop gate reject agree --run r1 --sign KEY"


def test_a_bare_touch_decides_nothing(run: Run) -> None:
    view(run).approve.touch()
    assert "its first line must be 'rankevolve-gate/1 r1 it01_confirm" in problem(run)


def test_a_statement_without_a_signature_decides_nothing(run: Run, people: People) -> None:
    path = answer(run, people.key("alice"))
    signature_file(path).unlink()
    assert f"not signed ({path.name}.sig is missing), it decides nothing" in problem(run)


def test_a_stranger_and_another_purpose_decide_nothing(run: Run, people: People) -> None:
    path = answer(run, people.key("mallory"))
    assert "not signed by an allowed signer" in problem(run)
    command = ["ssh-keygen", "-Y", "sign", "-n", "git", "-f", str(people.key("alice"))]
    other = subprocess.run(command, input=path.read_bytes(), capture_output=True, check=True)
    signature_file(path).write_bytes(other.stdout)
    assert "not signed by an allowed signer" in problem(run)
    signature_file(path).write_bytes(b"\xff\x00")
    assert "not signed by an allowed signer" in problem(run)


def test_a_signature_about_something_else_decides_nothing(run: Run, people: People) -> None:
    answer(run, people.key("alice"), about="f" * 16)
    assert "its first line must be" in problem(run)
    yes = answer(run, people.key("alice"))
    no = yes.with_name(yes.name.replace("approved", "rejected"))
    for made in (yes, signature_file(yes)):
        shutil.copy(made, made.with_name(made.name.replace("approved", "rejected")))
    assert f"{no.name}: its first line must be" in problem(run), "a yes that is renamed is no no"


@pytest.mark.parametrize(
    "edit", [b"more\n", b"", b"said\r\n", b"said\n\n", "sa\u202eid\n".encode()]
)
def test_an_edited_reason_is_no_longer_signed(run: Run, people: People, edit: bytes) -> None:
    path = answer(run, people.key("alice"), reason="said")
    head = path.read_bytes().partition(b"\n")[0]
    path.write_bytes(head + b"\n" + edit)
    assert "decides nothing" in problem(run)


def test_an_unsigned_event_is_refused(run: Run) -> None:
    data = {"gate": "it01_confirm", "digest": view(run).digest, "by": "alice", "reason": ""}
    with pytest.raises(EopError, match="takes signed answers only"):
        run.trace.append("gate_approved", data)
    plain = Run(run.root, name="r2")
    plain.do("it01_investigate")
    other = {**data, "digest": view(plain).digest, "signature": "x"}
    with pytest.raises(EopError, match="takes unsigned answers only"):
        plain.trace.append("gate_approved", other)


def test_verify_checks_the_signature_again(run: Run, people: People) -> None:
    gate = view(run)
    message = statement("r1", gate.instance, gate.digest, "approved", "")
    forged = sign(people.key("mallory"), message)
    gate.approve.write_bytes(message)
    signature_file(gate.approve).write_text(forged)
    data = {"gate": "it01_confirm", "digest": gate.digest, "by": "alice@example.org", "reason": ""}
    run.trace.append("gate_approved", {**data, "signature": forged})
    (finding,) = verify(run.root, "r1")
    assert "its signature does not hold" in finding


def test_verify_finds_a_signed_sentinel_that_changed(run: Run, people: People) -> None:
    path = answer(run, people.key("alice"))
    run.advance()
    signature_file(path).write_text("gone")
    (finding,) = verify(run.root, "r1")
    assert "its sentinel or its signature has changed" in finding


def test_the_signers_are_those_that_the_run_began_with(run: Run, people: People) -> None:
    copy = run.folder / SIGNERS_COPY
    copy.write_text(f"mallory {people.key('mallory.pub').read_text()}")
    with pytest.raises(EopError, match="EOP744"):
        run.advance()
    assert any("allowed signers has changed" in finding for finding in verify(run.root, "r1"))
    copy.unlink()
    with pytest.raises(EopError, match="cannot be read"):
        run.advance()


def test_without_ssh_keygen_nothing_is_judged(
    run: Run, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer(run, people.key("alice"))
    monkeypatch.setenv("PATH", str(run.root))
    for look in (run.advance, signatures.require_keygen):
        with pytest.raises(EopError, match="EOP745") as caught:
            look()
        assert caught.value.exit_code is ExitCode.ENVIRONMENT
    assert run.trace.state().gates["it01_confirm"].status == "requested"


def test_what_a_line_allows_is_what_openssh_says(people: People) -> None:
    key = people.key("alice.pub").read_text()
    signed = sign(people.key("alice"), b"x")
    both = Signers(f'ci,alice namespaces="git,rankevolve-gate" {key}'.encode())
    assert both.principal(b"x", signed) == "ci"
    with pytest.raises(UnsignedError):
        both.principal(b"y", signed)
    with pytest.raises(UnsignedError, match=r"^allowed:1: key is not permitted"):
        Signers(f'ci namespaces="git" {key}'.encode()).principal(b"x", signed)
    with pytest.raises(UnsignedError, match="No principal matched"):
        Signers(b"garbage\n").principal(b"x", signed)
    assert not Signers(b"# nobody\n\n").named()


def test_a_key_that_cannot_sign_is_an_error(people: People, tmp_path: Path) -> None:
    with pytest.raises(EopError, match="EOP746"):
        sign(tmp_path / "none", b"x")
