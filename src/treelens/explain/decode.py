"""Patterns made readable: texts, names of label codes, occurrences, trees, and tables.

A pattern is a tree that unfolds from a node, not a subgraph: on a ring the tree goes round and
meets the same atom again. So two *occurrences* of a pattern in graphs may look different.
:mod:`treelens.explain.smarts` writes what all occurrences have in common.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from treelens.graphs.collection import GraphCollection
from treelens.patterns.forest import TREES, PatternForest
from treelens.patterns.histograms import PatternHistograms
from treelens.patterns.vocabulary import PatternVocabulary


def pattern_texts(forest: PatternForest, patterns: Any) -> list[str]:
    """The text form of patterns; fine labels mark ring atoms by ``;R``, for ``@`` is chirality."""
    patterns = np.asarray(patterns, dtype=np.int64)
    return [
        text.replace("@", ";R") if str(tree).startswith("fine") else text
        for text, tree in zip(forest.texts(patterns), forest.tree_names(patterns), strict=True)
    ]


def pattern_table(
    forest: PatternForest,
    histograms: PatternHistograms,
    weights: np.ndarray,
    targets: np.ndarray,
    classes: np.ndarray | None = None,
) -> pd.DataFrame:
    """One row per pattern in use, sorted by weight, then support, depth and text.

    With classes, a column ``frequency CLASS`` each (mean share of the nodes of a graph that carry
    the pattern), and ``class``, where that is largest; without, the mean target of the graphs that
    have it and of the others. ``histograms`` count the last patterns of the forest.
    """
    ids = np.arange(forest.n_patterns - histograms.n_patterns, forest.n_patterns)
    by_target: dict[str, Any]
    if classes is None:
        present = histograms.to_sparse()
        present.data[:] = 1.0
        n_with, sum_with = np.asarray(present.sum(axis=0)).ravel(), present.T @ targets
        with np.errstate(divide="ignore", invalid="ignore"):
            without = (targets.sum() - sum_with) / (len(targets) - n_with)
            by_target = {
                "mean_with": sum_with / n_with,
                "mean_without": np.where(n_with < len(targets), without, np.nan),
            }
    else:
        members = np.eye(len(classes))[targets]  # (n_graphs, n_classes)
        members /= members.sum(axis=0).clip(1)
        shares = np.asarray(histograms.to_sparse("frequencies").T @ members)
        by_target = {f"frequency {c}": shares[:, k] for k, c in enumerate(classes.tolist())}
        by_target["class"] = classes[shares.argmax(axis=1)]
    table = pd.DataFrame(
        {
            "pattern": pattern_texts(forest, ids),
            "tree": forest.tree_names(ids),
            "depth": histograms.depths,
            "weight": weights,
            "support": histograms.support,
            **by_target,
        },
        index=pd.Index(ids, name="pattern_id"),
    )
    order = ["weight", "support", "depth", "pattern"]
    return table.sort_values(order, ascending=[False, False, True, True], kind="stable")


# Names of node and of edge labels by data set. Those of MUTAG are from its README in the TU
# collection; those of PTC_MR from the SMILES of the same molecules: all sum formulas and the bonds
# of 337 of 344 agree. NCI1 and PTC_DGCNN are published without a list of their codes.
LABEL_NAMES: dict[str, tuple[list[str], list[str]]] = {
    "MUTAG": (["C", "N", "O", "F", "I", "Cl", "Br"], [":", "-", "=", "#"]),
    "PTC_MR": (
        ["In", "P", "O", "N", "Na", "C", "Cl", "S", "Br", "F", "K", "Cu", "Zn", "I", "Ba", "Sn",
         "Pb", "Ca"],
        ["#", "=", "-", ":"],
    ),
}  # fmt: skip


def _named(alphabet: Any, names: list[str]) -> Any:
    """Names of the labels of an alphabet; labels without a name keep their code."""
    known = dict(enumerate(names))
    return None if alphabet is None else tuple(known.get(label, label) for label in alphabet)


def with_label_names(graphs: GraphCollection, data_set: str | None) -> GraphCollection:
    """Graphs with names instead of label codes; of an unknown data set, as they are."""
    if data_set not in LABEL_NAMES:
        return graphs
    nodes, edges = LABEL_NAMES[data_set]
    return graphs.relabelled(
        graphs.node_codes,
        _named(graphs.node_alphabet, nodes),
        edge_alphabet=_named(graphs.edge_alphabet, edges),
    )


def named_forest(forest: PatternForest, data_set: str | None) -> PatternForest:
    """A forest with names in the text form of its patterns; it does not match graphs with codes."""
    if data_set not in LABEL_NAMES:
        return forest
    nodes, edges = LABEL_NAMES[data_set]
    named = [
        replace(
            vocabulary,
            node_alphabet=_named(vocabulary.node_alphabet, nodes),
            edge_alphabet=_named(vocabulary.edge_alphabet, edges),
        )
        if TREES[tree][0] == "labels"
        else vocabulary
        for tree, vocabulary in zip(forest.trees, forest.vocabularies, strict=True)
    ]
    return replace(forest, vocabularies=tuple(named))


# --- occurrences and trees --------------------------------------------------------------------


class Occurrence(NamedTuple):
    """Where a pattern occurs in a graph."""

    root: int  # the node that carries the pattern; -1: nodes to highlight without one
    nodes: tuple[int, ...]  # within the depth of the root, nearest first
    edges: tuple[tuple[int, int], ...]  # of the pattern's tree, smaller node first
    graph_index: int = 0  # position of the graph in its collection
    pattern: int = -1


def occurrence_at(
    graphs: GraphCollection, graph_index: int, row: int, pattern: int, depth: int
) -> Occurrence:
    """The occurrence of a pattern at row ``row`` of the node arrays of the collection."""
    first = int(graphs.node_offsets[graph_index])
    reached: dict[int, None] = {row - first: None}
    edges: dict[tuple[int, int], None] = {}
    frontier = list(reached)
    for _ in range(depth):
        following = []
        for node in frontier:
            start, stop = graphs.neighbor_offsets[first + node : first + node + 2]
            directions = None if graphs.directions is None else graphs.directions[start:stop]
            for k, neighbor in enumerate(graphs.neighbors[start:stop].tolist()):
                back = neighbor < node if directions is None else bool(directions[k])
                edges[(neighbor, node) if back else (node, neighbor)] = None
                if neighbor not in reached:
                    reached[neighbor] = None
                    following.append(neighbor)
        frontier = following
    return Occurrence(row - first, tuple(reached), tuple(edges), graph_index, pattern)


class TreeNode(NamedTuple):
    """One node of an unfolded pattern, in a list where parents come before their children."""

    parent: int  # position in the list, -1 for the root
    layer: int
    label: Any
    edge_label: Any
    cut: bool  # whether its children are left out


def unfold_within(
    vocabulary: PatternVocabulary, pattern: int, max_nodes: int = 60
) -> list[TreeNode]:
    """The tree of a pattern down to the last layer that fits into ``max_nodes``.

    Deep patterns of dense graphs would unfold into millions of nodes.
    """
    depth = vocabulary.depth_of(pattern)
    tree: list[TreeNode] = []
    # Nodes of one layer: position of the parent, colour, label of the edge between them.
    layer: list[tuple[int, int, Any]] = [(-1, pattern - int(vocabulary.level_offsets[depth]), None)]
    for below in range(depth, -1, -1):  # layers that follow
        children: list[tuple[int, int, Any]] = []
        for position, (_, color, _) in enumerate(layer, start=len(tree)):
            if below == 0 or len(tree) + len(layer) + len(children) > max_nodes:
                break
            start = int(vocabulary.level_offsets[below - 1])
            pairs = sorted(
                vocabulary.children(below, color)[1],
                key=lambda p: (str(p[0]), *vocabulary.texts(np.array([start + p[1]]))),
            )
            children += [(position, child, edge) for edge, child in pairs]
        cut = len(tree) + len(layer) + len(children) > max_nodes and below > 0
        tree += [
            TreeNode(parent, depth - below, vocabulary.root_label(below, color), edge, cut)
            for parent, color, edge in layer
        ]
        if cut:
            break
        layer = children
    return tree
