"""Texts, trees and occurrences of patterns.

A pattern is a tree that unfolds from a node, not a subgraph: on a ring the tree goes round and
meets the same atom again. So two *occurrences* of a pattern in graphs may look different.
:mod:`treelens.explain.smarts` writes what all occurrences have in common.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from treelens.graphs.collection import GraphCollection
from treelens.patterns.forest import PatternForest
from treelens.patterns.vocabulary import NodeColors, PatternVocabulary


@dataclass(frozen=True)
class Occurrence:
    """One place where a pattern occurs."""

    pattern: int
    depth: int
    graph_index: int  # position of the graph in the collection that was searched
    root: int  # the node that carries the pattern
    nodes: tuple[int, ...]  # within ``depth`` steps of the root, nearest first
    edges: tuple[tuple[int, int], ...]  # of the pattern's tree, smaller node first


def pattern_texts(forest: PatternForest, patterns: Any) -> list[str]:
    """The text form of patterns; fine labels mark ring atoms by ``;R``, for ``@`` is chirality."""
    patterns = np.asarray(patterns, dtype=np.int64)
    return [
        text.replace("@", ";R") if str(tree).startswith("fine") else text
        for text, tree in zip(forest.texts(patterns), forest.tree_names(patterns), strict=True)
    ]


def find_occurrences(
    forest: PatternForest,
    graphs: GraphCollection,
    patterns: Iterable[int],
    per_pattern: int | None = 1,
    colors: NodeColors | None = None,
) -> dict[int, list[Occurrence]]:
    """Occurrences of patterns by id, those in the smallest graphs first.

    At most ``per_pattern`` each, or all if None; an empty list where no graph has the pattern.
    ``colors`` is ``forest.transform(graphs)``, if at hand.

    Examples
    --------
    >>> from treelens import as_graph_collection
    >>> graphs = as_graph_collection([([(0, 1), (1, 2)], {0: "C", 1: "C", 2: "O"})])
    >>> forest, colors = PatternForest.fit(graphs, depth=1, trees=("labels",))
    >>> forest.texts([3]), find_occurrences(forest, graphs, [3])[3][0].nodes
    (['C(C,O)'], (1, 0, 2))
    """
    colors = forest.transform(graphs) if colors is None else colors
    found = {}
    for pattern in map(int, patterns):
        level = int(forest.level_of(pattern))
        rows = np.flatnonzero(colors.colors[level] == pattern - int(forest.level_offsets[level]))
        owner = np.searchsorted(graphs.node_offsets, rows, side="right") - 1
        order = np.lexsort((rows, graphs.sizes[owner]))[:per_pattern]
        depth = int(forest.level_depths[level])
        found[pattern] = [
            occurrence_at(graphs, int(owner[k]), int(rows[k]), pattern, depth) for k in order
        ]
    return found


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
    return Occurrence(pattern, depth, graph_index, row - first, tuple(reached), tuple(edges))


# --- trees ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TreeNode:
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

    Examples
    --------
    >>> from treelens import as_graph_collection
    >>> graphs = as_graph_collection([([(0, 1), (1, 2)], {0: "C", 1: "C", 2: "O"})])
    >>> vocabulary, _ = PatternVocabulary.fit(graphs, depth=1)
    >>> [node.label for node in unfold_within(vocabulary, 3)]
    ['C', 'C', 'O']
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
            TreeNode(parent, depth - below, root_label(vocabulary, below, color), edge, cut)
            for parent, color, edge in layer
        ]
        if cut:
            break
        layer = children
    return tree


def root_label(vocabulary: PatternVocabulary, depth: int, color: int) -> Any:
    """The label of the node that carries a colour of some depth."""
    for level in vocabulary.levels[:depth][::-1]:
        color = int(level.own[color])
    return vocabulary.node_alphabet[color]
