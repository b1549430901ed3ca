"""From a pattern's id to its text, its tree, and its occurrences in graphs.

A pattern is a tree that unfolds from a node, not a subgraph: on a ring the tree goes round and
meets the same atom again. So the part of a graph that carries a pattern, and the SMILES of it, are
*one occurrence* of the pattern; another may look different and still unfold into the same tree.
What all occurrences have in common, and nothing else has, is written by
:mod:`treelens.explain.smarts`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from treelens.graphs.collection import Graph, GraphCollection
from treelens.graphs.errors import GraphDataError
from treelens.graphs.molecules import molecule_of
from treelens.patterns.forest import TREES, PatternForest
from treelens.patterns.vocabulary import NodeColors, PatternVocabulary


@dataclass(frozen=True)
class Occurrence:
    """One place where a pattern occurs.

    Attributes
    ----------
    pattern : int
        Its id in the vocabulary.
    depth : int
    graph_index : int
        Position of the graph in the collection that was searched.
    root : int
        The node that carries the pattern.
    nodes : tuple of int
        All nodes within ``depth`` steps of the root, nearest first.
    edges : tuple of (int, int)
        The edges of the pattern's tree, smaller node first.
    """

    pattern: int
    depth: int
    graph_index: int
    root: int
    nodes: tuple[int, ...]
    edges: tuple[tuple[int, int], ...]


def pattern_texts(forest: PatternForest, patterns: Any) -> list[str]:
    """The text form of patterns for people to read: an atom in a ring is ``CH2;R``.

    The labels themselves mark ring atoms by ``@``, which chemists read as chirality.
    """
    patterns = np.asarray(patterns, dtype=np.int64)
    fine = [TREES[str(tree)][0] == "fine" for tree in forest.tree_names(patterns)]
    texts = forest.texts(patterns)
    return [
        text.replace("@", ";R") if is_fine else text
        for text, is_fine in zip(texts, fine, strict=True)
    ]


def find_occurrences(
    forest: PatternForest,
    graphs: GraphCollection,
    patterns: Iterable[int],
    per_pattern: int | None = 1,
    colors: NodeColors | None = None,
) -> dict[int, list[Occurrence]]:
    """Occurrences of patterns, those in the smallest graphs first since they are easiest to read.

    Parameters
    ----------
    forest : PatternForest
        Of a vocabulary: :meth:`PatternForest.of_vocabulary`.
    graphs : GraphCollection
    patterns : iterable of int
        Pattern ids.
    per_pattern : int or None
        At most so many each; None means all.
    colors : NodeColors, optional
        ``forest.transform(graphs)``, where it is at hand already.

    Returns
    -------
    dict of int to list of Occurrence
        An empty list where no graph has the pattern.

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
        level = int(np.searchsorted(forest.level_offsets, pattern, side="right")) - 1
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
    """The occurrence of a pattern at one row of the collection's node arrays."""
    first = int(graphs.node_offsets[graph_index])
    root = row - first
    reached: dict[int, None] = {root: None}
    edges: dict[tuple[int, int], None] = {}
    frontier = [root]
    for _ in range(depth):
        following = []
        for node in frontier:
            start, stop = graphs.neighbor_offsets[first + node : first + node + 2]
            for neighbor in graphs.neighbors[start:stop].tolist():
                edges[min(node, neighbor), max(node, neighbor)] = None
                if neighbor not in reached:
                    reached[neighbor] = None
                    following.append(neighbor)
        frontier = following
    return Occurrence(pattern, depth, graph_index, root, tuple(reached), tuple(edges))


# --- molecules --------------------------------------------------------------------------------


def environment_smiles(graph: Graph, occurrence: Occurrence) -> str:
    """SMILES of the atoms around one occurrence of a pattern in a molecule.

    Examples
    --------
    >>> from treelens import as_graph_collection
    >>> graphs = as_graph_collection(["CCO"])
    >>> forest, _ = PatternForest.fit(graphs, depth=1, trees=("labels",))
    >>> environment_smiles(graphs[0], find_occurrences(forest, graphs, [4])[4][0])
    'OC'
    """
    molecule = molecule_of(graph)
    if molecule is None:
        raise GraphDataError(
            "This graph is no molecule: only graphs read from SMILES, SDF or RDKit have an atom "
            "environment."
        )
    from rdkit import Chem

    bonds = [molecule.GetBondBetweenAtoms(u, v).GetIdx() for u, v in occurrence.edges]
    # RDKit begins at a chosen atom only where the molecule is in one piece: not in salts.
    root = occurrence.root if len(Chem.GetMolFrags(molecule)) == 1 else -1
    return Chem.MolFragmentToSmiles(
        molecule, atomsToUse=list(occurrence.nodes), bondsToUse=bonds, rootedAtAtom=root
    )


# --- trees ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TreeNode:
    """One node of an unfolded pattern, in a list where parents come before their children."""

    parent: int  # position in the list, -1 for the root
    layer: int
    label: Any
    edge_label: Any
    cut: bool  # whether its children were left out


def unfold_within(
    vocabulary: PatternVocabulary, pattern: int, max_nodes: int = 60
) -> list[TreeNode]:
    """The tree of a pattern down to the last layer that still fits into ``max_nodes``.

    Deep patterns of dense graphs unfold into millions of nodes; this never makes more than a
    layer too many.

    Examples
    --------
    >>> from treelens import as_graph_collection
    >>> graphs = as_graph_collection([([(0, 1), (1, 2)], {0: "C", 1: "C", 2: "O"})])
    >>> vocabulary, _ = PatternVocabulary.fit(graphs, depth=1)
    >>> [node.label for node in unfold_within(vocabulary, 3)]
    ['C', 'C', 'O']
    """
    depth = vocabulary.depth_of(pattern)
    color = pattern - int(vocabulary.level_offsets[depth])
    layer = [_Unfolding(-1, depth, color, None)]
    tree: list[TreeNode] = []
    while layer:
        children = _next_layer(vocabulary, layer, len(tree), max_nodes - len(tree) - len(layer))
        cut = children is None
        tree += [
            TreeNode(
                node.parent, depth - node.depth, root_label(vocabulary, node.depth, node.color),
                node.edge_label, cut and node.depth > 0,
            )
            for node in layer
        ]  # fmt: skip
        layer = children or []
    return tree


class _Unfolding(NamedTuple):
    """A node of the tree whose children are still folded up in its colour."""

    parent: int
    depth: int
    color: int
    edge_label: Any


def _next_layer(
    vocabulary: PatternVocabulary, layer: Sequence[_Unfolding], first: int, room: int
) -> list[_Unfolding] | None:
    """The children of a layer whose nodes are numbered from ``first``; None if they do not fit."""
    children: list[_Unfolding] = []
    for position, node in enumerate(layer, start=first):
        if node.depth == 0:
            continue
        start = int(vocabulary.level_offsets[node.depth - 1])
        _, pairs = vocabulary.children(node.depth, node.color)
        ordered = sorted(
            pairs, key=lambda p: (str(p[0]), *vocabulary.texts(np.array([start + p[1]])))
        )
        children += [_Unfolding(position, node.depth - 1, color, edge) for edge, color in ordered]
        if len(children) > room:
            return None
    return children


def root_label(vocabulary: PatternVocabulary, depth: int, color: int) -> Any:
    """The label of the node that carries a colour of some depth."""
    for level in vocabulary.levels[:depth][::-1]:
        color = int(level.own[color])
    return vocabulary.node_alphabet[color]
