"""Graphs small enough to send along by the hundred: a layout, labels and contributions."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from treelens.explain.contributions import Explanation, explain_seen
from treelens.explain.expansion import expansion_of
from treelens.explain.layout import is_molecule, node_positions
from treelens.graphs.collection import Graph
from treelens.graphs.molecules import molecule_of
from treelens.parallel import one_blas_thread
from treelens.report.given import GivenGraphs
from treelens.report.plain import short
from treelens.svm.model import FittedSVM

# A report shows every graph up to these limits, beyond them a sample.
MOST_GRAPHS = 1500
MOST_NODES = 60_000
_SHARE_OF_EXTREMES = 3  # a third each: most wrong, most uncertain, by chance
_PIXELS_PER_EDGE = 20
_MOST_PATTERNS = 6
_MOST_NEIGHBORS = 3
_LONGEST_LABEL = 40


@dataclass
class GraphDetails:
    """Explained graphs as plain data, and what their patterns did in all of them together.

    Attributes
    ----------
    rows : list of dict
        One per graph; see :func:`explained_graph`.
    influence : dict of int to float
        Mean absolute contribution of every pattern id over these graphs.
    """

    rows: list[dict[str, Any]] = field(default_factory=list)
    influence: dict[int, float] = field(default_factory=dict)


def choose_graphs(
    given: GivenGraphs, most_graphs: int = MOST_GRAPHS, most_nodes: int = MOST_NODES
) -> np.ndarray:
    """Positions of the graphs to show: all, or the most wrong, most uncertain and some others.

    Ascending. Graphs that would break the limit on nodes are passed over.
    """
    n, part = len(given), most_graphs // _SHARE_OF_EXTREMES
    others = np.random.default_rng(0).permutation(n)
    queue = np.concatenate([given.most_wrong[:part], given.most_uncertain[:part], others])
    sizes, room = given.graphs.sizes, most_nodes
    chosen: set[int] = set()
    for index in queue.tolist():
        if index not in chosen and sizes[index] <= room and len(chosen) < most_graphs:
            chosen.add(index)
            room -= sizes[index]
    return np.array(sorted(chosen), dtype=np.int64)


def explain_graphs(model: FittedSVM, given: GivenGraphs, positions: np.ndarray) -> GraphDetails:
    """Explain some graphs and keep what a drawing of each needs."""
    details = GraphDetails()
    totals: dict[int, float] = defaultdict(float)
    expansion = expansion_of(model)
    with one_blas_thread():
        for index in positions.tolist():
            explanation = explain_seen(
                given.graphs, given.said.graphs, index, expansion, n_neighbors=_MOST_NEIGHBORS
            )
            row = explained_graph(given.shown[index], explanation)
            details.rows.append({"index": index, "name": given.name_of(index), **row})
            rows = explanation.pattern_rows
            for pattern, value in zip(rows.ids.tolist(), rows.contributions.tolist(), strict=True):
                totals[pattern] += abs(value)
    details.influence = {p: total / len(positions) for p, total in totals.items()}
    return details


def explained_graph(graph: Graph, explanation: Explanation, digits: int = 3) -> dict[str, Any]:
    """A graph to draw, and why it was decided the way it was.

    ``patterns`` are the ids and contributions of the strongest patterns, ``neighbors`` the
    training graphs that spoke most for and against. ``toward`` is None where numbers are predicted.
    """
    rows, label = explanation.pattern_rows, explanation.class_label
    return {
        **drawable(graph),
        "contributions": [short(x, digits) for x in explanation.node_contributions.tolist()],
        "toward": None if label is None else str(label),
        "decision": short(explanation.decision, digits + 1),
        "base": short(explanation.base, digits + 1),
        "covariates": short(explanation.covariates, digits + 1),
        "out_of_vocabulary": short(explanation.out_of_vocabulary),
        "warning": explanation.warning,
        "patterns": [
            [pattern, short(value, digits)]
            for pattern, value in zip(
                rows.ids[:_MOST_PATTERNS].tolist(),
                rows.contributions[:_MOST_PATTERNS].tolist(),
                strict=True,
            )
        ],
        "neighbors": _neighbors(explanation),
    }


def _neighbors(explanation: Explanation) -> list[dict[str, Any]]:
    """Training graphs with what they added and their class, or their value."""
    table = explanation.neighbors
    name = table.columns[0]
    return [
        {
            "index": index,
            "value" if name == "value" else "class": target if name == "value" else str(target),
            "contribution": short(contribution),
        }
        for index, target, contribution in zip(
            table.index.tolist(), table[name].tolist(), table["contribution"].tolist(), strict=True
        )
    ]


def drawable(graph: Graph) -> dict[str, Any]:
    """Whole-number places (about 20 to an edge), edges as one flat list, labels as text.

    Examples
    --------
    >>> drawable(Graph(("a", "b"), ((0, 1),)))["edges"]
    [0, 1]
    """
    places = node_positions(graph)
    places = np.rint((places - places.min(axis=0)) * _PIXELS_PER_EDGE).astype(int)
    labels = graph.edge_labels
    return {
        "x": places[:, 0].tolist(),
        "y": places[:, 1].tolist(),
        "labels": [_cut(label) for label in graph.node_labels],
        "edges": [node for edge in graph.edges for node in edge],
        "edge_labels": None if labels is None else [_cut(label) for label in labels],
    }


def _cut(label: Any) -> str:
    """A label as text that cannot swell a file."""
    text = str(label)
    return text if len(text) <= _LONGEST_LABEL else text[: _LONGEST_LABEL - 1] + "…"


def molecule_data(graph: Graph) -> dict[str, str] | None:
    """What RDKit needs to draw a molecule whose atoms are numbered as the nodes."""
    if not is_molecule(graph):
        return None
    if "mol" not in graph.data:
        return {"smiles": str(graph.data["smiles"])}
    from rdkit import Chem

    return {"mol": Chem.MolToMolBlock(molecule_of(graph))}
