"""Shortest paths and walks as patterns, counted per graph and recognised in new graphs.

Both have an explicit sparse feature map, the same
:class:`~treelens.patterns.pairs.PairFeatures` as subtree patterns. Node and edge labels are encoded
by a :class:`~treelens.patterns.vocabulary.PatternVocabulary` of depth 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from treelens.graphs.collection import GraphCollection, translate_codes
from treelens.parallel import run_in_shares
from treelens.patterns import _compiled_paths
from treelens.patterns.histograms import SparseRows
from treelens.patterns.pairs import PairFeatures
from treelens.patterns.vocabulary import PatternVocabulary


class LabelCodes(NamedTuple):
    """Labels of a collection as codes, and the neighbours to step to, along directed edges only.

    Unseen labels have codes of their own.
    """

    nodes: np.ndarray  # (n_nodes,) int32
    neighbor_offsets: np.ndarray  # (n_nodes + 1,)
    neighbors: np.ndarray  # (n_steps,)
    edges: np.ndarray  # (n_steps,) int32; all zero without edge labels
    n_node_labels: int
    n_edge_labels: int  # at least 1


def read_labels(
    graphs: GraphCollection, known: PatternVocabulary
) -> tuple[PatternVocabulary, LabelCodes]:
    """Return the vocabulary (depth 0) extended by all labels, and the codes of the labels.

    Codes in ``known`` do not change, so new labels get codes that no known pattern contains.
    """
    extended, colors = known.extend(graphs)
    edges = np.zeros(len(graphs.neighbors), dtype=np.int32)
    if extended.edge_alphabet is not None and graphs.edge_codes is not None:
        edges = translate_codes(
            graphs.edge_codes, graphs.edge_alphabet or (), extended.edge_alphabet
        )
    offsets, neighbors = graphs.neighbor_offsets, graphs.neighbors
    if graphs.directions is not None:
        out = graphs.directions == 0
        offsets = np.concatenate([[0], np.cumsum(out)])[offsets]
        neighbors, edges = neighbors[out], edges[out]
    return extended, LabelCodes(
        colors.colors[0], offsets, neighbors, edges, len(extended.node_alphabet),
        max(1, len(extended.edge_alphabet or ())),
    )  # fmt: skip


@dataclass(frozen=True)
class PathCounts:
    """Counts of the paths or walks of each graph, those outside the vocabulary included.

    The kernel is the sum of ``weight * count * count'``.
    """

    offsets: np.ndarray  # (n_graphs + 1,) int64, start of the entries of each graph
    patterns: np.ndarray  # int32, number of the path or walk; -1 if unseen
    counts: np.ndarray  # float64
    weights: np.ndarray  # float64
    level_offsets: np.ndarray  # as in PairFeatures; the last is the number of known patterns

    def _graphs(self) -> np.ndarray:
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))

    def diagonal(self) -> np.ndarray:
        """Return the kernel value of every graph with itself, shape (n_graphs,)."""
        return np.bincount(
            self._graphs(), self.weights * self.counts**2, minlength=len(self.offsets) - 1
        )

    def pair_features(self) -> PairFeatures:
        """Return the feature map: ``sqrt(weight) * count`` of every known path or walk."""
        n_graphs, n_patterns = len(self.offsets) - 1, int(self.level_offsets[-1])
        known = self.patterns >= 0
        sizes = np.bincount(self._graphs()[known], minlength=n_graphs)
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        values = (np.sqrt(self.weights) * self.counts)[known]
        # Transposed twice, the indices of a row are ascending.
        lists = SparseRows(offsets, self.patterns[known], values).transposed(n_patterns)
        rows = lists.transposed(n_graphs)
        return PairFeatures(lists, rows, self.level_offsets, False, np.ones(n_graphs))


# --- shortest paths -------------------------------------------------------------------------


@dataclass(frozen=True)
class ShortestPathVocabulary:
    """The (label, label, distance) triples of a training collection.

    A triple describes an unordered pair of different connected nodes: the labels of the two and
    the number of edges of a shortest path between them; in directed graphs, an ordered pair and
    the path from the first to the second. Triples are numbered in order of first appearance,
    graph by graph.

    Examples
    --------
    >>> from treelens import as_graph_collection
    >>> graphs = as_graph_collection([([(0, 1), (1, 2)], {0: "C", 1: "C", 2: "O"})])
    >>> vocabulary, counts = ShortestPathVocabulary.fit(graphs)
    >>> vocabulary.feature_names().tolist()
    ['1:C,C', '1:C,O', '2:C,O']
    >>> counts.counts.tolist()
    [1.0, 1.0, 1.0]
    """

    labels: PatternVocabulary  # of depth 0: the node labels
    # (n_patterns, 3) int64: codes of the two labels and distance; the smaller code first, or in
    # directed graphs the code of the start
    triples: np.ndarray

    @classmethod
    def fit(
        cls, graphs: GraphCollection, ordered: bool = False, n_jobs: int = 1
    ) -> tuple[ShortestPathVocabulary, PathCounts]:
        """Return the vocabulary of a collection and the counts of its graphs."""
        labels, codes = read_labels(graphs, PatternVocabulary.empty(0))
        offsets, keys, counts = _count_triples(graphs, codes, n_jobs)
        patterns, distinct = _compiled_paths.learn_keys(keys)
        weights = _direction_weights(keys, codes.n_node_labels, ordered and not labels.directed)
        levels = np.array([0, len(distinct)], dtype=np.int64)
        vocabulary = cls(labels, _split_triples(distinct, codes.n_node_labels))
        return vocabulary, PathCounts(offsets, patterns, counts, weights, levels)

    def transform(
        self, graphs: GraphCollection, ordered: bool = False, n_jobs: int = 1
    ) -> PathCounts:
        """Return the counts of new graphs; unseen triples have the number -1."""
        _, codes = read_labels(graphs, self.labels)
        offsets, keys, counts = _count_triples(graphs, codes, n_jobs)
        low, high, distance = self.triples.T
        known = (distance * codes.n_node_labels + low) * codes.n_node_labels + high
        patterns = _compiled_paths.look_up_keys(keys, known)
        ordered = ordered and not self.labels.directed
        weights = _direction_weights(keys, codes.n_node_labels, ordered)
        levels = np.array([0, len(self.triples)], dtype=np.int64)
        return PathCounts(offsets, patterns, counts, weights, levels)

    def feature_names(self) -> np.ndarray:
        """Return texts of the triples: ``"2:C,O"`` (distance, sorted labels), ``"2:C->O"``."""
        alphabet = self.labels.node_alphabet
        names = []
        for low, high, distance in self.triples.tolist():
            ends = [str(alphabet[low]), str(alphabet[high])]
            text = "->".join(ends) if self.labels.directed else ",".join(sorted(ends))
            names.append(f"{distance}:{text}")
        return np.array(names, dtype=object)


def _count_triples(graphs: GraphCollection, codes: LabelCodes, n_jobs: int) -> list[np.ndarray]:
    """Return offsets by graph, triple keys and counts."""

    def share(first: int, last: int) -> Any:
        return _compiled_paths.triples_of_graphs(
            first, last, graphs.node_offsets, codes.neighbor_offsets, codes.neighbors,
            codes.nodes, codes.n_node_labels, graphs.directed,
        )  # fmt: skip

    return _joined(run_in_shares(share, len(graphs), n_jobs))


def _split_triples(keys: np.ndarray, n_labels: int) -> np.ndarray:
    n_labels = max(1, n_labels)
    low, high = keys // n_labels % n_labels, keys % n_labels
    return np.stack([low, high, keys // n_labels**2], axis=1)


def _direction_weights(keys: np.ndarray, n_labels: int, ordered: bool) -> np.ndarray:
    """Return the weight of a match of two node pairs: 1, or the number of ordered matches.

    A pair with equal labels gives the same ordered triple twice, so two such pairs match 2 * 2
    times; a pair with different labels gives two triples, which match once each.
    """
    if not ordered:
        return np.ones(len(keys))
    triples = _split_triples(keys, n_labels)
    return np.where(triples[:, 0] == triples[:, 1], 4.0, 2.0)


# --- walks ----------------------------------------------------------------------------------


class WalkLevel(NamedTuple):
    """The label sequences of one length, each a sequence one step shorter and a last step."""

    prefix: np.ndarray  # (n_sequences,) int64, number among the sequences one step shorter
    node: np.ndarray  # (n_sequences,) int64, code of the last node label
    edge: np.ndarray  # (n_sequences,) int64, code of the last edge label, or 0


@dataclass(frozen=True)
class WalkVocabulary:
    """The label sequences along walks of 0 to ``max_length`` steps in a training collection.

    A walk may turn back and visit a node again; a walk and its reverse are two walks. Directed
    edges are followed in their direction. Sequences are numbered by length and, within a length,
    in order of first appearance.

    Examples
    --------
    >>> from treelens import as_graph_collection
    >>> graphs = as_graph_collection([([(0, 1), (1, 2)], {0: "C", 1: "C", 2: "O"})])
    >>> vocabulary, counts = WalkVocabulary.fit(graphs, max_length=1, decay=0.5)
    >>> vocabulary.feature_names().tolist()
    ['0:C', '0:O', '1:C-C', '1:C-O', '1:O-C']
    >>> counts.pair_features().rows.values.round(3).tolist()
    [2.0, 1.0, 1.414, 0.707, 0.707]
    """

    labels: PatternVocabulary  # of depth 0: node labels and, where they are used, edge labels
    levels: tuple[WalkLevel, ...]  # one for each length from 0 on

    @classmethod
    def fit(
        cls,
        graphs: GraphCollection,
        max_length: int,
        decay: float = 1.0,
        edge_labels: bool = False,
        n_jobs: int = 1,
    ) -> tuple[WalkVocabulary, PathCounts]:
        """Return the vocabulary of a collection and the counts of its graphs."""
        labels, codes = read_labels(graphs, PatternVocabulary.empty(0, edge_labels))
        walks = _count_walks(graphs, codes, max_length, n_jobs)
        numbers = np.empty(len(walks.lengths), dtype=np.int32)
        levels = []
        for length in range(max_length + 1):
            here = np.flatnonzero(walks.lengths == length)
            keys = walks.keys_given(numbers, here)
            numbers[here], distinct = _compiled_paths.learn_keys(keys)
            rest, node = np.divmod(distinct, max(1, codes.n_node_labels))
            prefix, edge = np.divmod(rest, codes.n_edge_labels)
            levels.append(WalkLevel(prefix, node, edge))
        vocabulary = cls(labels, tuple(levels))
        return vocabulary, vocabulary._path_counts(walks, numbers, decay)

    def transform(self, graphs: GraphCollection, decay: float = 1.0, n_jobs: int = 1) -> PathCounts:
        """Return the counts of new graphs; unseen sequences have the number -1."""
        _, codes = read_labels(graphs, self.labels)
        walks = _count_walks(graphs, codes, len(self.levels) - 1, n_jobs)
        numbers = np.empty(len(walks.lengths), dtype=np.int32)
        for length, level in enumerate(self.levels):
            here = np.flatnonzero(walks.lengths == length)
            known = (level.prefix * codes.n_edge_labels + level.edge) * codes.n_node_labels
            numbers[here] = _compiled_paths.look_up_keys(
                walks.keys_given(numbers, here), known + level.node
            )
        return self._path_counts(walks, numbers, decay)

    @property
    def level_offsets(self) -> np.ndarray:
        """Sequences ``level_offsets[k]`` to ``level_offsets[k + 1]`` have ``k`` steps."""
        sizes = [len(level.node) for level in self.levels]
        return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

    def feature_names(self) -> np.ndarray:
        """Return a text form of every sequence: ``"2:C-C-O"`` or ``"2:C-[1]-C-[2]-O"``."""
        nodes, edges = self.labels.node_alphabet, self.labels.edge_alphabet
        end = "->" if self.labels.directed else "-"
        names: list[str] = []
        texts = [""]
        for length, level in enumerate(self.levels):
            joints = ["" if length == 0 else end if edges is None else f"-[{edges[edge]}]{end}"
                      for edge in level.edge.tolist()]  # fmt: skip
            texts = [
                texts[prefix] + joint + str(nodes[node])
                for prefix, joint, node in zip(
                    level.prefix.tolist(), joints, level.node.tolist(), strict=True
                )
            ]
            names += [f"{length}:{text}" for text in texts]
        return np.array(names, dtype=object)

    def _path_counts(self, walks: _Walks, numbers: np.ndarray, decay: float) -> PathCounts:
        level_offsets = self.level_offsets
        patterns = np.where(numbers < 0, -1, numbers + level_offsets[walks.lengths])
        weights = np.power(decay, np.arange(len(self.levels)))[walks.lengths]
        return PathCounts(
            walks.offsets, patterns.astype(np.int32), walks.counts, weights, level_offsets
        )


class _Walks(NamedTuple):
    """The distinct label sequences of every graph, each after its prefix."""

    offsets: np.ndarray  # (n_graphs + 1,)
    lengths: np.ndarray  # (n_entries,) steps
    parents: np.ndarray  # (n_entries,) entry of the sequence without its last step
    step_keys: np.ndarray  # (n_entries,) edge code * n_node_labels + node code of the last step
    counts: np.ndarray  # (n_entries,) number of walks
    n_step_keys: int

    def keys_given(self, numbers: np.ndarray, entries: np.ndarray) -> np.ndarray:
        """Return the keys of the entries of one length, given the numbers of their prefixes.

        The key is negative, hence unknown, if the prefix is unknown (number -1).
        """
        if not len(entries) or self.lengths[entries[0]] == 0:
            return self.step_keys[entries]
        prefix = numbers[self.parents[entries]].astype(np.int64)
        return prefix * self.n_step_keys + self.step_keys[entries]


def steps_of_walks(
    graphs: GraphCollection, max_length: int, edge_labels: bool, most_steps: int
) -> int:
    """Return the number of steps along arcs to count all walks; stop after ``most_steps``."""
    _, codes = read_labels(graphs, PatternVocabulary.empty(0, edge_labels))
    return _compiled_paths.steps_of_walks(
        graphs.node_offsets, codes.neighbor_offsets, codes.neighbors,
        *_walk_keys(graphs, codes), max_length, most_steps,
    )  # fmt: skip


def _walk_keys(graphs: GraphCollection, codes: LabelCodes) -> tuple[np.ndarray, np.ndarray]:
    """Return the keys of starting at a node (n_nodes,) and of a step to a neighbour (n_steps,)."""
    graph_starts = np.repeat(graphs.node_offsets[:-1], graphs.sizes)  # (n_nodes,)
    arc_starts = np.repeat(graph_starts, np.diff(codes.neighbor_offsets))  # (n_steps,)
    node_keys = codes.nodes.astype(np.int64)
    arc_keys = node_keys[arc_starts + codes.neighbors]
    return node_keys, arc_keys + codes.edges.astype(np.int64) * codes.n_node_labels


def _count_walks(
    graphs: GraphCollection, codes: LabelCodes, max_length: int, n_jobs: int
) -> _Walks:
    node_keys, arc_keys = _walk_keys(graphs, codes)

    def share(first: int, last: int) -> Any:
        return _compiled_paths.walks_of_graphs(
            first, last, graphs.node_offsets, codes.neighbor_offsets, codes.neighbors, node_keys,
            arc_keys, max_length,
        )  # fmt: skip

    offsets, lengths, parents, step_keys, counts = _joined(
        run_in_shares(share, len(graphs), n_jobs)
    )
    parents = parents + np.repeat(offsets[:-1], np.diff(offsets))  # within the whole list
    n_step_keys = codes.n_edge_labels * codes.n_node_labels
    return _Walks(offsets, lengths, parents, step_keys, counts, n_step_keys)


def _joined(parts: list[Any]) -> list[np.ndarray]:
    """Join the arrays of the shares; the first array of each are offsets."""
    starts = np.cumsum([0, *(part[0][-1] for part in parts)])
    offsets = [part[0][:-1] + start for part, start in zip(parts, starts, strict=False)]
    others = zip(*(part[1:] for part in parts), strict=True)
    joined = [arrays[0] if len(arrays) == 1 else np.concatenate(arrays) for arrays in others]
    return [np.concatenate([*offsets, starts[-1:]]).astype(np.int64), *joined]
