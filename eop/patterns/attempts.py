"""What earlier attempts at a node left on disk: judged, cut short, or committed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eop.agents import events
from eop.agents.contract import Reason, Status
from eop.agents.contract import Usage as Reported
from eop.agents.gateway.ledger import read_account
from eop.agents.workspace import Workspace
from eop.core.canonical import file_digest
from eop.core.errors import EopError, ExitCode, Where
from eop.core.files import read_json, write_json
from eop.runtime.node import Usage

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from eop.agents.contract import Product
    from eop.agents.events import Event

_COMMITTED, _ATTEMPT, _RESULT = "committed.json", "attempt.json", "result.json"


@dataclass(frozen=True)
class Attempt:
    """One try at a node. ``status`` is ``None`` when it was cut short before it was judged."""

    directory: Path
    identity: str
    usage: Usage
    status: Status | None = None
    reason: Reason = Reason("interrupted")  # noqa: RUF009 - frozen, shared safely
    tree: str | None = None
    outputs: tuple[tuple[str, Path], ...] = ()


@dataclass(frozen=True)
class Committed:
    """A node that is done: its tree, its outputs by name, and all that its attempts spent."""

    tree: str
    outputs: dict[str, Path]
    usage: Usage
    facts: dict[str, Any]


def begin(directory: Path, identity: str, product: str) -> None:
    """Mark a fresh attempt folder with what the attempt is of, and who makes it."""
    write_json(directory / _ATTEMPT, {"identity": identity, "product": product})


def product_of(folder: Path) -> str | None:
    """The product at work below a node's folder; ``None`` before its first attempt."""
    found = directories(folder)
    return str(read_json(found[0] / _ATTEMPT)["product"]) if found else None


def directories(folder: Path) -> list[Path]:
    """The attempts' folders below a node's, in order; those without a mark had not begun."""
    return [path.parent for path in sorted(folder.glob(f"a*/{_ATTEMPT}"))]


def began_at(directory: Path) -> float:
    """When an attempt began, in seconds since the epoch, by the clock of its file system."""
    return (directory / _ATTEMPT).stat().st_mtime


def is_judged(directory: Path) -> bool:
    """Whether an attempt has ended and was judged."""
    return (directory / _RESULT).is_file()


def earlier(folder: Path, product: Product) -> list[Attempt]:
    """The attempts below a node's folder, in order."""
    return [load(path, product) for path in directories(folder)]


def next_directory(folder: Path) -> Path:
    """A name for the next attempt's folder that was never used."""
    used = [int(path.name[1:]) for path in folder.glob("a[0-9]*")]
    return folder / f"a{max(used, default=0) + 1:02d}"


def load(directory: Path, product: Product) -> Attempt:
    """An attempt from its record; one that was cut short is charged for what its stream shows."""
    identity = read_json(directory / _ATTEMPT)["identity"]
    if not is_judged(directory):
        return Attempt(directory, identity, spent_so_far(directory, told(directory, product)))
    result = read_json(directory / _RESULT)
    return Attempt(
        directory,
        identity,
        _usage(directory, result),
        Status(result["status"]),
        Reason(**result["reason"]),
        result["patch"]["tree"] if result["patch"] else None,
        tuple((name, directory / "outputs" / path.rpartition("/")[2])
              for name, path in sorted(result["outputs"].items())),
    )  # fmt: skip


def _usage(directory: Path, result: dict[str, Any]) -> Usage:
    """What a judged attempt spent: nothing where no product was started."""
    wall_s = result["times"]["wall_s"]
    if result["times"]["started"] is None:
        return Usage(0, wall_s, 0, 0)
    reported = Reported(**result["usage"])
    actions = result["counters"]["actions"]
    return _charged(directory, Usage(actions, wall_s, reported.tokens, reported.micro_usd))


def _charged(directory: Path, usage: Usage) -> Usage:
    """``usage`` with what the gateway charges, where one stood before the attempt.

    For a call whose end is not known that is the most that it can have come to.
    """
    account = read_account(directory)
    if account is None:
        return usage
    charged = account.charged
    micro_usd = account.charged_micro_usd
    return usage._replace(tokens=charged.input + charged.output, micro_usd=micro_usd)


def commit(
    folder: Path, identity: str, tree: str, outputs: dict[str, Path], usage: Usage, **facts: Any
) -> Committed:
    """Make a node done, in one atomic write."""
    files = {
        name: {"path": path.relative_to(folder).as_posix(), "sha256": file_digest(path)}
        for name, path in outputs.items()
    }
    write_json(
        folder / _COMMITTED,
        {
            "schema": "node/1",
            "identity": identity,
            "tree": tree,
            "outputs": files,
            "usage": usage._asdict(),
            "facts": facts,
        },
    )
    return Committed(tree, outputs, usage, facts)


def committed(folder: Path, identity: str) -> Committed | None:
    """The node's commit, if it is done and was given the same; its files must be as committed."""
    path = folder / _COMMITTED
    if not path.is_file():
        return None
    record = read_json(path)
    if record["identity"] != identity:
        return None
    outputs = {name: folder / item["path"] for name, item in record["outputs"].items()}
    for name, output in outputs.items():
        if not output.is_file() or file_digest(output) != record["outputs"][name]["sha256"]:
            raise EopError(
                "EOP880",
                f"output '{name}' of a committed node is not what was committed",
                where=Where(str(output)),
                hint=f"remove {folder} to run the node again",
                exit_code=ExitCode.STATE,
            )
    return Committed(record["tree"], outputs, Usage(**record["usage"]), record["facts"])


def told(directory: Path, product: Product) -> list[Event]:
    """What an attempt that is at work, or was cut short, has told of itself; it may be nothing."""
    if not (directory / "stdout").is_file():
        return []
    return product.parse(Workspace(directory).recording(product.sessions))


def spent_so_far(directory: Path, seen: Sequence[Event]) -> Usage:
    """What such an attempt has spent, by its gateway's ledger or by what it has ``told``.

    Of a stream it is a lower bound, none for a silent one.

    The run's budget does not rest on it: it is charged the node's whole reservation for a process
    that died. Here an unknown amount would use up the phase and leave nothing to resume with.
    """
    stdout = directory / "stdout"
    wall_s = 0.0
    if stdout.is_file():
        wall_s = max(0.0, stdout.stat().st_mtime - began_at(directory))
    reported, actions = events.usage(seen), events.counters(seen).actions
    usage = Usage(actions or 0, wall_s, reported.tokens or 0, reported.micro_usd or 0)
    return _charged(directory, usage)
