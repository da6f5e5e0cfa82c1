"""Where the steps and arrows of a protocol stand in a picture, in pixels, from top to bottom."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import networkx as nx

from eop.compile.graph import NEEDS, Edge, edges
from eop.protocol.model import Gate

if TYPE_CHECKING:
    from eop.protocol.model import Plan

_WIDTH, _HEIGHT = 216, 44
_ACROSS, _DOWN = 28, 30
_MARGIN = 16
_LANE, _LABEL = 22, 128  # between two ways back, and for the words of one
_SWEEPS = 4


@dataclass(frozen=True)
class Box:
    """A step: its upper left corner and its size; ``detail`` is what the protocol says of it."""

    step: str
    label: str
    detail: str
    gate: bool
    branch: bool
    x: float
    y: float
    width: int = _WIDTH
    height: int = _HEIGHT


@dataclass(frozen=True)
class Arrow:
    """An edge as an SVG path; a label that it has stands at a point."""

    edge: Edge
    path: str
    label_at: tuple[float, float]


@dataclass(frozen=True)
class Band:
    """What surrounds the phases that run once for each item of a fan-out."""

    label: str
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class Layout:
    """A picture of a protocol."""

    width: float
    height: float
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]
    bands: tuple[Band, ...]


def layout(plan: Plan) -> Layout:
    """Steps in rows, each below all that it needs; ways back run down the right-hand side.

    An arrow that others imply is left out: who needs the training needs what the training needs.
    """
    rows = _rows(plan)
    widest = max(len(row) for row in rows)
    inner = widest * _WIDTH + (widest - 1) * _ACROSS
    boxes = {
        name: _box(plan, name, _MARGIN + _left(inner, len(row), place), _top(index))
        for index, row in enumerate(rows)
        for place, name in enumerate(row)
    }
    all_edges = edges(plan)
    back = [edge for edge in all_edges if edge.kind != NEEDS]
    # The shortest way back lies innermost, so that few of them cross.
    back.sort(key=lambda edge: (boxes[edge.source].y - boxes[edge.target].y, edge.source))
    right = _MARGIN + inner + 12
    arrows = [_down(edge, boxes) for edge in _needs(all_edges)]
    for lane, edge in enumerate(back):
        before = sum(other.target == edge.target for other in back[:lane])
        arrows.append(_up(edge, boxes, right + _LANE * lane, before))
    return Layout(
        width=right + (_LANE * len(back) + _LABEL if back else 0) + _MARGIN,
        height=_top(len(rows)) - _DOWN + _MARGIN,
        boxes=tuple(boxes.values()),
        arrows=tuple(arrows),
        bands=tuple(_bands(plan, boxes)),
    )


def _needs(found: list[Edge]) -> list[Edge]:
    """What needs what, without what others imply."""
    needs = {(edge.source, edge.target): edge for edge in found if edge.kind == NEEDS}
    kept = nx.transitive_reduction(nx.DiGraph(list(needs))).edges
    return [edge for ends, edge in needs.items() if ends in kept]


def _rows(plan: Plan) -> list[list[str]]:
    """Names by row; in a row, each as near as may be to what it needs."""

    @cache
    def depth(name: str) -> int:
        return max((depth(needed) + 1 for needed in plan.requirements(name)), default=0)

    rows: list[list[str]] = [[] for _ in range(1 + max(map(depth, plan.steps)))]
    for name in plan.steps:
        rows[depth(name)].append(name)
    for _ in range(_SWEEPS):
        place = {name: k - len(row) / 2 for row in rows for k, name in enumerate(row)}
        for row in rows[1:]:
            row.sort(key=lambda name: _mean([place[n] for n in plan.requirements(name)]))
    return rows


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _left(inner: float, count: int, place: int) -> float:
    """Rows are centred."""
    own = count * _WIDTH + (count - 1) * _ACROSS
    return (inner - own) / 2 + place * (_WIDTH + _ACROSS)


def _top(row: int) -> float:
    return _MARGIN + row * (_HEIGHT + _DOWN)


def _box(plan: Plan, name: str, x: float, y: float) -> Box:
    step = plan.steps[name]
    label = name.replace("_", " ")
    if isinstance(step, Gate):
        return Box(name, label, "a person decides", True, False, x, y)
    detail = "function" if step.function == name else step.function or step.pattern or ""
    if step.join:
        wait = f"{step.join.at_least} of" if step.join.at_least else step.join.wait
        detail += f", joins {wait} {step.join.of.replace('_', ' ')}"
    if step.optional:
        detail += ", optional"
    return Box(name, label, detail.replace("_", " "), False, bool(step.branch), x, y)


def _down(edge: Edge, boxes: dict[str, Box]) -> Arrow:
    source, target = boxes[edge.source], boxes[edge.target]
    x1, y1 = source.x + _WIDTH / 2, source.y + _HEIGHT
    x2, y2 = target.x + _WIDTH / 2, target.y - 3
    bend = (y2 - y1) / 2
    path = (
        f"M{x1:.0f} {y1:.0f} C{x1:.0f} {y1 + bend:.0f} {x2:.0f} {y2 - bend:.0f} {x2:.0f} {y2:.0f}"
    )
    return Arrow(edge, path, (x2, y2))


def _up(edge: Edge, boxes: dict[str, Box], lane: float, before: int) -> Arrow:
    """A way back; ``before`` others end at the same box, below its end."""
    source, target = boxes[edge.source], boxes[edge.target]
    x1, y1 = source.x + _WIDTH, source.y + _HEIGHT * 0.6
    x2, y2 = target.x + _WIDTH + 3, target.y + _HEIGHT * max(0.1, 0.5 - 0.2 * before)
    turn = 8
    path = (
        f"M{x1:.0f} {y1:.0f} H{lane - turn:.0f} Q{lane:.0f} {y1:.0f} {lane:.0f} {y1 - turn:.0f} "
        f"V{y2 + turn:.0f} Q{lane:.0f} {y2:.0f} {lane - turn:.0f} {y2:.0f} H{x2:.0f}"
    )
    return Arrow(edge, path, (lane + 6, (y1 + y2) / 2 + 4))


def _bands(plan: Plan, boxes: dict[str, Box]) -> list[Band]:
    found = []
    for head in plan.heads:
        opened = head.fan_out
        if opened is None:
            continue
        inside = [boxes[phase.id] for phase in plan.members(opened.item)]
        x, y = min(box.x for box in inside) - 10, min(box.y for box in inside) - 10
        width = max(box.x for box in inside) + _WIDTH + 10 - x
        height = max(box.y for box in inside) + _HEIGHT + 10 - y
        item = opened.item.replace("_", " ")
        found.append(Band(f"per {item}, at most {opened.max}", x, y, width, height))
    return found
