"""Drawings of a report on a Gaussian process, each with words for those who cannot see it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from markupsafe import Markup

from treelens.explain.decode import Occurrence
from treelens.explain.draw import Style, draw_graph
from treelens.explain.scene import LEGEND_HEIGHT, Scene, legend_marks
from treelens.graphs.collection import Graph
from treelens.report.units import Units

_STRONGEST = 3  # nodes that the words for a drawing name
_DRAWING = (330, 230)
_FRAGMENT = (210, 130)
_SMALL = (150, 110)
_PAIRED = (250, 170)
_LONGEST_NAME = 60


def draw_example(row: Mapping[str, Any], limit: float, in_units: Units) -> Markup | None:
    """The SVG of an example, coloured by contribution; None if it is too large to be drawn."""
    if not row["drawn"]:
        return None
    graph = _graph_of(row)
    strongest = sorted(range(graph.n_nodes), key=lambda k: -abs(row["contributions"][k]))
    words = ", ".join(
        f"{graph.node_labels[k]} {k} {in_units.signed(row['contributions'][k])}"
        for k in strongest[:_STRONGEST]
    )
    title = f"{_called(row)} coloured by contribution; the strongest: {words}"
    style = Style(*_DRAWING, legend=False, title=title, limit=limit)
    contributions = np.array(row["contributions"])
    return Markup(draw_graph(graph, contributions, style=style))


def draw_fragment(row: Mapping[str, Any], in_units: Units) -> Markup | None:
    """The SVG of a fragment, highlighted in a small graph that holds it."""
    picture = row["picture"]
    if picture is None:
        return None
    nodes = tuple(picture["nodes"])
    edges = tuple((u, v) for u, v in picture["tree_edges"])
    place = Occurrence(0, row["depth"], 0, picture["root"], nodes, edges)
    title = (
        f"Fragment {row['rank']}: {row['title'][:_LONGEST_NAME]}, {len(nodes)} nodes highlighted "
        f"in graph {picture['graph'][:_LONGEST_NAME]}; effect {in_units.signed(row['effect'])}"
    )
    style = Style(*_FRAGMENT, legend=False, title=title)
    return Markup(draw_graph(_graph_of(picture), highlight=place, style=style))


def draw_neighbor(row: Mapping[str, Any], in_units: Units) -> Markup | None:
    """The SVG of a training graph; None where it is not at hand."""
    picture = row["picture"]
    if picture is None:
        return None
    target = row["class"] if "class" in row else in_units(row["value"])
    title = f"Training graph {_named(row)}, {target}; similarity {row['similarity']:.2f}"
    return Markup(draw_graph(_graph_of(picture), style=Style(*_SMALL, legend=False, title=title)))


def draw_side(side: Mapping[str, Any], in_units: Units) -> Markup:
    """The SVG of one graph of a matched pair, with what the other has not got highlighted."""
    target = side["class"] if side["class"] is not None else in_units(side["value"])
    nodes, graph = tuple(side["nodes"]), _graph_of(side)
    inside = set(nodes)
    edges = tuple((u, v) for u, v in graph.edges if u in inside and v in inside)
    where = f"nodes {', '.join(map(str, nodes))} highlighted" if nodes else "nothing highlighted"
    style = Style(*_PAIRED, legend=False, title=f"Training graph {_named(side)}, {target}; {where}")
    place = Occurrence(0, 0, 0, -1, nodes, edges) if nodes else None
    return Markup(draw_graph(graph, highlight=place, style=style))


def _named(row: Mapping[str, Any]) -> str:
    return str(row["index"] if row["name"] is None else row["name"])[:_LONGEST_NAME]


def _called(row: Mapping[str, Any]) -> str:
    name = row["name"]
    return (
        f"Graph {row['index']}"
        if name is None
        else f"Graph {row['index']} ({name[:_LONGEST_NAME]})"
    )


def _graph_of(row: Mapping[str, Any]) -> Graph:
    """The graph of a row again."""
    ends = row["edges"]
    edges = tuple(zip(ends[::2], ends[1::2], strict=True))
    labels = row["edge_labels"]
    return Graph(
        tuple(row["labels"]), edges, None if labels is None else tuple(labels), data=_data_of(row)
    )


def _data_of(row: Mapping[str, Any]) -> dict[str, Any]:
    molecule = row["molecule"]
    if molecule is None or "mol" not in molecule:
        return dict(molecule or {})
    from rdkit import Chem

    return {"mol": Chem.MolFromMolBlock(molecule["mol"], removeHs=False)}


def draw_legend(rows: list[dict[str, Any]], limit: float) -> Markup | None:
    """One bar of colours for all drawings."""
    if not rows or not limit:
        return None
    toward = rows[0]["toward"]
    if toward is None:
        ends = ("lowers", "raises")
    elif len({row["toward"] for row in rows}) == 1:
        ends = (f"against {toward}", f"for {toward}")
    else:
        ends = ("against", "for the class")
    marks = legend_marks(_DRAWING[0], 0.0, limit, ends)
    return Markup(Scene(_DRAWING[0], LEGEND_HEIGHT, "What colours mean", tuple(marks)).to_svg())
