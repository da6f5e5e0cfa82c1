"""What a run's rows are about, drawn in columns: rows, what they change, what that touches.

Columns stay readable where a cloud of a thousand nodes would not; every link is also in a list.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    import networkx as nx

_MOST = 30
_ROW, _TOP = 30, 34
_WIDTH, _BOX = 960, 250
_COLUMNS = ("rows", "what they are about", "what that touches")
# So does a row's data set, above the leaderboard: as an edge of each row it would hide the others.
_SAID_ELSEWHERE = ("measured_on", "rests_on")


@dataclass(frozen=True)
class MapNode:
    """A node in pixels; ``entry`` is the row that it leads to, if it is one."""

    id: str
    label: str
    kind: str
    entry: str | None
    x: float
    y: float


@dataclass(frozen=True)
class MapEdge:
    """An edge in pixels, from the right of one box to the left of another."""

    source: str
    target: str
    relation: str
    path: str


@dataclass(frozen=True)
class KnowledgeMap:
    """The picture; ``left_out`` counts nodes that did not fit."""

    width: int
    height: int
    columns: tuple[tuple[float, str], ...]
    box: int
    nodes: tuple[MapNode, ...]
    edges: tuple[MapEdge, ...]
    left_out: int


def knowledge_map(graph: nx.MultiDiGraph, entries: Collection[str]) -> KnowledgeMap | None:
    """The part of the entity graph that notes of ``entries`` lead to; ``None`` without any link."""
    notes = {f"note:{entry}" for entry in entries}
    near = set(_out(graph, notes))
    links = sorted({*near, *_out(graph, {target for _, _, target in near})})
    if not links:
        return None
    count = Counter(end for source, _, target in links for end in (source, target))
    columns = _columns(count, notes, {target for _, _, target in near})
    place = {
        name: (_x(index), _TOP + _ROW * row)
        for index, column in enumerate(columns)
        for row, name in enumerate(column[:_MOST])
    }
    nodes = tuple(_node(graph, name, *at) for name, at in place.items())
    edges = tuple(
        MapEdge(source, target, relation.replace("_", " "), _path(place[source], place[target]))
        for source, relation, target in links
        if source in place and target in place and place[source][0] < place[target][0]
    )
    tallest = max(min(len(column), _MOST) for column in columns)
    return KnowledgeMap(
        width=_WIDTH,
        height=_TOP + _ROW * tallest,
        columns=tuple((_x(index), name) for index, name in enumerate(_COLUMNS) if columns[index]),
        box=_BOX,
        nodes=nodes,
        edges=edges,
        left_out=sum(max(0, len(column) - _MOST) for column in columns),
    )


def _out(graph: nx.MultiDiGraph, names: Iterable[str]) -> Iterable[tuple[str, str, str]]:
    for name in names:
        if name in graph:
            for source, target, relation in graph.out_edges(name, keys=True):
                said = relation in _SAID_ELSEWHERE or target.startswith("dataset:")
                if not said:
                    yield source, relation, target


def _columns(
    count: Counter[str], notes: Collection[str], near: Collection[str]
) -> tuple[list[str], ...]:
    """Names by how far they are from a note, in each column the best linked first."""
    names = sorted(count, key=lambda name: (-count[name], name))
    rows = [name for name in names if name in notes]
    about = [name for name in names if name in near and name not in notes]
    return rows, about, [name for name in names if name not in notes and name not in near]


def _node(graph: nx.MultiDiGraph, name: str, x: float, y: float) -> MapNode:
    kind, _, plain = name.partition(":")
    label = str(graph.nodes[name].get("label") or plain)
    return MapNode(name, label, kind, plain if kind == "note" else None, x, y)


def _x(column: int) -> float:
    return column * (_WIDTH - _BOX) / (len(_COLUMNS) - 1)


def _path(source: tuple[float, float], target: tuple[float, float]) -> str:
    """A curve from the right of one box to the left of the other."""
    x1, y1, x2, y2 = source[0] + _BOX, source[1] + 11, target[0], target[1] + 11
    middle = (x1 + x2) / 2
    return f"M{x1:.0f} {y1:.0f} C{middle:.0f} {y1:.0f} {middle:.0f} {y2:.0f} {x2:.0f} {y2:.0f}"
