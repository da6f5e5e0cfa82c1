"""The entity graph: who is about what, rests on what, replaces whom; for programs and the page.

Nodes are ``note:``, ``claim:``, ``page:``, ``entry:``, and the entities ``model:``, ``feature:``,
``dataset:``, ``fault:``, ``intervention:``; an edge has a ``relation``. The index holds the same
links, and what a phase is told is found there; this is for looking at.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import networkx as nx

from eop.core.files import write_bytes, write_json

if TYPE_CHECKING:
    from pathlib import Path

    from eop.knowledge.store import Store

SCHEMA = "graph/1"
# An entry by its file, which a note names as its evidence.
_ENTRY = re.compile(r"leaderboard/([^/]+)/entry\.yaml")
# Settings and files tie a query to notes; as nodes they would say what the notes say.
_HIDDEN = ("setting:", "path:")


def build(store: Store) -> nx.MultiDiGraph:
    """The graph of all that is known; the same knowledge, the same graph."""
    graph = nx.MultiDiGraph()
    for entity in store.entities():
        graph.add_node(entity, kind=_kind(entity), label=entity.partition(":")[2])
    for name, title, sign in store.labels():
        graph.add_node(name, kind=_kind(name), label=title, sign=sign)
    for source, relation, target in store.links():
        end = _end(target)
        if end is None:
            continue
        for name in (source, end):
            if name not in graph:
                graph.add_node(name, kind=_kind(name), label=name.partition(":")[2])
        graph.add_edge(source, end, key=relation, relation=relation)
    return graph


def neighbourhood(graph: nx.MultiDiGraph, name: str, steps: int) -> nx.MultiDiGraph:
    """What lies within so many edges of a node, in either direction."""
    return nx.ego_graph(graph, name, radius=steps, undirected=True)


def to_json(graph: nx.MultiDiGraph) -> dict[str, Any]:
    """Plain data: nodes by name, edges by their ends."""
    nodes = [{"id": name, **facts} for name, facts in sorted(graph.nodes(data=True))]
    edges = [
        {"source": source, "target": target, "relation": relation}
        for source, target, relation in sorted(graph.edges(keys=True))
    ]
    return {"schema": SCHEMA, "nodes": nodes, "edges": edges}


def write_graph(graph: nx.MultiDiGraph, folder: Path) -> list[Path]:
    """Write ``graph.graphml`` and ``graph.json`` into ``folder``; their paths."""
    paths = [folder / "graph.graphml", folder / "graph.json"]
    write_bytes(paths[0], "\n".join(nx.generate_graphml(graph)).encode() + b"\n")
    write_json(paths[1], to_json(graph))
    return paths


def _end(target: str) -> str | None:
    """The node that a link leads to; ``None`` for what is no node."""
    entry = _ENTRY.fullmatch(target)
    if entry:
        return f"entry:{entry[1]}"
    known = ":" in target and not target.startswith(_HIDDEN)
    return target if known else None


def _kind(name: str) -> str:
    return name.partition(":")[0]
