"""What the nodes at work do, in words: for tables, for lines beside Snakemake's, as data."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from decimal import ROUND_CEILING, Decimal
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from eop.report.progress import duration
from eop.report.terminal import counted, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from eop.functions.training_progress import TrainingProgress
    from eop.patterns.progress import AgentProgress
    from eop.report.view import AtWork
    from eop.runtime.node import Usage

_CENT = Decimal("0.01")
_BAR = 10
_MOST_SAID = 120
# Less than this since an agent told of something is "now".
_NOW_S = 2.0


def doing_table(working: Sequence[AtWork], now: datetime) -> Table:
    """The nodes at work: for how long, and what each does."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("at work", no_wrap=True)
    table.add_column("for", justify="right", no_wrap=True)
    table.add_column("what", overflow="fold", ratio=1)
    for node in working:
        # Clocks of hosts differ: a node may seem to have begun in the future.
        elapsed = max(0.0, (now - datetime.fromisoformat(node.since)).total_seconds())
        lines = "\n".join(doing(node, now))
        if node.training and node.training.share is not None:
            lines = f"{_bar(node.training.share)} {lines}"
        table.add_row(Text(node.key, "cyan"), _whole(elapsed), Text(lines))
    return table


def doing(node: AtWork, now: datetime) -> Iterator[str]:
    """What a node does, in a line or several; nothing for a function that shows nothing."""
    again = f"attempt {node.attempt}: " if node.attempt > 1 else ""
    if node.training:
        yield again + _training(node.training)
    elif node.reserved is not None:
        yield again + _cost(node.spent, node.reserved)
        for agent in node.agents:
            yield from _agent(agent, now.timestamp())
    elif again:
        yield again.rstrip(": ")


def doing_json(node: AtWork) -> dict[str, Any]:
    """A node at work as data; what nobody knows is ``null``."""
    data = asdict(node)
    data["spent"] = node.spent._asdict() if node.spent else None
    for agent, told in zip(data["agents"], node.agents, strict=True):
        agent["spent"] = told.spent._asdict()
    return data


class Beat:
    """Lines that tell of the nodes at work from time to time, where no picture can be drawn.

    A node has a line when it does something else than when it had its last, and ``every_s`` after
    that at the earliest; a node that has begun meanwhile has none of its first moments.
    """

    def __init__(self, every_s: float = 15.0) -> None:
        self._every_s = every_s
        self._told: dict[str, tuple[float, object]] = {}

    def lines(self, working: Sequence[AtWork], now: datetime | None = None) -> list[str]:
        """The lines that are due."""
        now = now or datetime.now(UTC)
        moment, found = now.timestamp(), []
        self._told = {node.key: self._told.get(node.key, (moment, None)) for node in working}
        for node in working:
            at, last = self._told[node.key]
            does = _does(node)
            if does and does != last and moment - at >= self._every_s:
                self._told[node.key] = (moment, does)
                text = "; ".join(doing(node, now))
                found.append(f"{now:%H:%M:%S}  {node.key:<24} {text}")
        return found


def _does(node: AtWork) -> object:
    """What a change of is worth a line: the passing of time is not."""
    if node.training:
        return node.training.seed, node.training.epoch
    return tuple(
        (agent.role, agent.part, agent.round, agent.attempt, agent.last, agent.spent.actions)
        for agent in node.agents
    )


def _whole(seconds: float) -> str:
    """What goes on or is estimated has no tenths."""
    return f"{seconds:.0f} s" if seconds < 59.5 else duration(max(60.0, seconds))


def _bar(share: float) -> str:
    full = int(share * _BAR)
    return "\N{BOX DRAWINGS HEAVY HORIZONTAL}" * full + "\N{BOX DRAWINGS LIGHT HORIZONTAL}" * (
        _BAR - full
    )


def _training(training: TrainingProgress) -> str:
    of = f" of {training.epochs}" if training.epochs else ""
    parts = [f"seed {training.seed} ({training.place} of {training.seeds})"]
    if training.last is None:
        parts.append(f"no epoch{of} yet")
    else:
        parts += [f"epoch {training.epoch}{of}", f"loss {training.last.loss:.5g}"]
        parts += [f"{one_line(n, 20)} {v:.5g}" for n, v in training.last.watched.items()]
    if training.left_s is not None:
        parts.append(f"about {_whole(training.left_s)} left")
    return ", ".join(parts)


def _cost(spent: Usage | None, reserved: int) -> str:
    if spent is None or spent.actions is None:
        return f"no action seen yet, {reserved} reserved"
    return "; ".join(
        [f"{counted(spent.actions, 'action')} so far, {reserved} reserved", *_money(spent)]
    )


def _agent(agent: AgentProgress, now: float) -> Iterator[str]:
    part = f", part {one_line(agent.part, 24)}" if agent.part else ""
    turn = f", round {agent.round}" if agent.round > 1 else ""
    again = f", attempt {agent.attempt}" if agent.attempt > 1 else ""
    spent = [_of(agent.spent.actions, agent.actions, "actions")]
    if agent.spent.tokens or agent.tokens:
        spent.append(_of(agent.spent.tokens, agent.tokens, "tokens"))
    yield (
        f"{one_line(agent.role, 24)} ({agent.product}){part}{turn}{again} "
        f"for {_whole(max(0.0, now - agent.began_at))}: {', '.join(spent)}"
    )
    if agent.last:
        quiet = now - agent.told_at if agent.told_at is not None else 0.0
        when = "now" if quiet < _NOW_S else f"{_whole(quiet)} ago"
        yield f"{when}: {one_line(agent.last, _MOST_SAID)}"


def _of(spent: int | None, limit: int | None, unit: str) -> str:
    shown = "unknown" if spent is None else f"{spent:,}"
    return f"{shown}{'' if limit is None else f' of {limit:,}'} {unit}"


def _money(spent: Usage) -> Iterator[str]:
    if spent.tokens:
        yield f"{spent.tokens:,} tokens"
    if spent.micro_usd:
        # Rounded up: what is spent is never shown as less.
        yield f"{Decimal(spent.micro_usd).scaleb(-6).quantize(_CENT, ROUND_CEILING)} USD"
