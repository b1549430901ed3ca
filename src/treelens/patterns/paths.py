"""Shortest paths and walks as patterns, counted per graph and recognised in new graphs.

Both have an explicit sparse feature map, the same ``PairFeatures`` as subtree patterns. Node and
edge labels are encoded by a ``PatternVocabulary`` of depth 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from treelens.graphs.collection import GraphCollection
from treelens.parallel import run_in_shares
from treelens.patterns import _compiled
from treelens.patterns.histograms import PairFeatures
from treelens.patterns.vocabulary import PatternVocabulary, arc_targets, entries_of, offsets_of

_FEW_KEYS = 100_000


class LabelCodes(NamedTuple):
    """Labels of a collection as codes, and the neighbours to step to, along directed edges only."""

    # Unseen labels have codes of their own.

    nodes: np.ndarray  # (n_nodes,) int32
    neighbor_offsets: np.ndarray  # (n_nodes + 1,)
    neighbors: np.ndarray  # (n_steps,)
    targets: np.ndarray  # (n_steps,) the neighbours, numbered in the whole collection
    edges: np.ndarray  # (n_steps,) int32; all zero without edge labels
    n_node_labels: int
    n_edge_labels: int  # at least 1


def read_labels(
    graphs: GraphCollection, known: PatternVocabulary
) -> tuple[PatternVocabulary, LabelCodes]:
    """Return the vocabulary (depth 0) extended by all labels, and the codes of the labels."""
    # Codes in `known` do not change, so new labels get codes that no known pattern contains.
    extended, colors = known.extend(graphs)
    edges = extended.edge_codes_of(graphs)
    offsets, neighbors = graphs.neighbor_offsets, graphs.neighbors
    if graphs.directions is not None:
        out = graphs.directions == 0
        offsets = offsets_of(out)[offsets]
        neighbors, edges = neighbors[out], edges[out]
    return extended, LabelCodes(
        colors.colors[0],
        offsets,
        neighbors,
        arc_targets(graphs, offsets, neighbors),
        edges,
        len(extended.node_alphabet),
        max(1, len(extended.edge_alphabet or ())),
    )


def places_among(known: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """Return the place of each key among different known ones, -1 where it is not there."""
    if len(keys) > _FEW_KEYS:
        return _pandas().Index(known).get_indexer(keys)  # type: ignore[no-any-return]
    order = np.argsort(known)
    if not len(order):
        return np.full(len(keys), -1, dtype=np.int64)
    at = order[np.minimum(np.searchsorted(known, keys, sorter=order), len(known) - 1)]
    return np.where(known[at] == keys, at, -1)


def distinct(keys: np.ndarray) -> np.ndarray:
    """Return the different keys in the order in which they first occur."""
    return _pandas().unique(keys)  # type: ignore[no-any-return]


def factorized(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the place of each key among the different ones, and these as they first occur."""
    return _pandas().factorize(keys)  # type: ignore[no-any-return]


def _pandas() -> Any:
    """Return pandas, whose hash tables are faster, but slower to import than few keys to find."""
    import pandas as pd

    return pd


@dataclass(frozen=True)
class PathCounts:
    """Counts of the paths or walks of each graph, those outside the vocabulary included."""

    # The kernel is the sum of `weight * count * count'`.

    graphs: np.ndarray  # (n_entries,) graph of each entry
    patterns: np.ndarray  # (n_entries,) number of the path or walk; -1 if unseen
    counts: np.ndarray  # (n_entries,) float64
    weights: np.ndarray  # (n_entries,) float64
    level_offsets: np.ndarray  # as in PairFeatures; the last is the number of known patterns
    n_graphs: int

    def diagonal(self) -> np.ndarray:
        """Return the kernel value of every graph with itself, shape (n_graphs,)."""
        return np.bincount(self.graphs, self.weights * self.counts**2, minlength=self.n_graphs)

    def pair_features(self) -> PairFeatures:
        """Return the feature map: ``sqrt(weight) * count`` of every known path or walk."""
        known = self.patterns >= 0
        values = (np.sqrt(self.weights) * self.counts)[known]
        shape = (self.n_graphs, int(self.level_offsets[-1]))
        table = sparse.csr_array((values, (self.graphs[known], self.patterns[known])), shape=shape)
        return PairFeatures.of_rows(table, self.level_offsets, False)


# --- shortest paths -------------------------------------------------------------------------


@dataclass(frozen=True)
class ShortestPathVocabulary:
    """The (label, label, distance) triples of a training collection.

    A triple describes an unordered pair of different connected nodes: the labels of the two and
    the number of edges of a shortest path between them; in directed graphs, an ordered pair and
    the path from the first to the second. Triples are numbered in order of first appearance,
    graph by graph.
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
        found = _count_triples(graphs, codes, n_jobs)
        vocabulary = cls(labels, _split_triples(distinct(found[0]), codes.n_node_labels))
        return vocabulary, vocabulary._path_counts(*found, codes, ordered, len(graphs))

    def transform(
        self, graphs: GraphCollection, ordered: bool = False, n_jobs: int = 1
    ) -> PathCounts:
        """Return the counts of new graphs; unseen triples have the number -1."""
        _, codes = read_labels(graphs, self.labels)
        found = _count_triples(graphs, codes, n_jobs)
        return self._path_counts(*found, codes, ordered, len(graphs))

    def _path_counts(
        self,
        keys: np.ndarray,
        owners: np.ndarray,
        counts: np.ndarray,
        codes: LabelCodes,
        ordered: bool,
        n_graphs: int,
    ) -> PathCounts:
        low, high, distance = self.triples.T
        known = (distance * codes.n_node_labels + low) * codes.n_node_labels + high
        weights = np.ones(len(keys))
        # A pair with equal labels gives the same ordered triple twice, so two such pairs match
        # 2 * 2 times; one with different labels gives two triples, which match once each.
        if ordered and not self.labels.directed:
            low, high, _ = _split_triples(keys, codes.n_node_labels).T
            weights = np.where(low == high, 4.0, 2.0)
        patterns, levels = places_among(known, keys), np.array([0, len(known)])
        return PathCounts(owners, patterns, counts, weights, levels, n_graphs)

    def feature_names(self) -> np.ndarray:
        """Return texts of the triples: ``"2:C,O"`` (distance, sorted labels), ``"2:C->O"``."""
        alphabet = self.labels.node_alphabet
        names = []
        for low, high, distance in self.triples.tolist():
            ends = [str(alphabet[low]), str(alphabet[high])]
            text = "->".join(ends) if self.labels.directed else ",".join(sorted(ends))
            names.append(f"{distance}:{text}")
        return np.array(names, dtype=object)


def _count_triples(
    graphs: GraphCollection, codes: LabelCodes, n_jobs: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return keys of triples, ascending within a graph, their graphs, and counts."""

    def share(first: int, last: int) -> list[tuple[np.ndarray, np.ndarray]]:
        found = []
        for graph in range(first, last):
            base, n = int(graphs.node_offsets[graph]), int(graphs.sizes[graph])
            room = np.empty(n * (n - 1) // (1 if graphs.directed else 2), dtype=np.int64)
            used = _compiled.pair_keys(
                base,
                n,
                codes.neighbor_offsets,
                codes.neighbors,
                codes.nodes,
                codes.n_node_labels,
                graphs.directed,
                room,
            )
            keys = room[:used]
            if used and keys.max() < 32 * used:  # counting is faster than sorting
                counts = np.bincount(keys)
                found.append((np.flatnonzero(counts), counts[counts > 0]))
            else:
                found.append(np.unique(keys, return_counts=True))
        return found

    found = [pair for part in run_in_shares(share, len(graphs), n_jobs) for pair in part]
    owners = np.repeat(np.arange(len(graphs)), [len(keys) for keys, _ in found])
    keys, counts = (np.concatenate([np.empty(0, np.int64), *(x[k] for x in found)]) for k in (0, 1))
    return keys, owners, counts.astype(np.float64)


def _split_triples(keys: np.ndarray, n_labels: int) -> np.ndarray:
    """Return codes of the two labels and distance, shape (n_keys, 3)."""
    n_labels = max(1, n_labels)
    low, high = keys // n_labels % n_labels, keys % n_labels
    return np.stack([low, high, keys // n_labels**2], axis=1)


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
    """

    labels: PatternVocabulary  # of depth 0: node labels and, where they are used, edge labels
    levels: tuple[WalkLevel, ...]  # one for each length from 0 on

    @classmethod
    def fit(
        cls, graphs: GraphCollection, max_length: int, decay: float = 1.0, edge_labels: bool = False
    ) -> tuple[WalkVocabulary, PathCounts]:
        """Return the vocabulary of a collection and the counts of its graphs."""
        labels, codes = read_labels(graphs, PatternVocabulary.empty(0, edge_labels))
        walks = list(_walks_by_length(graphs, codes, max_length))
        numbers: list[np.ndarray] = []
        levels = []
        for walk in walks:
            found, different = factorized(walk.keys(numbers, codes))
            numbers.append(found)
            rest, node = np.divmod(different, max(1, codes.n_node_labels))
            levels.append(WalkLevel(rest // codes.n_edge_labels, node, rest % codes.n_edge_labels))
        vocabulary = cls(labels, tuple(levels))
        return vocabulary, vocabulary._path_counts(walks, numbers, decay, len(graphs))

    def transform(self, graphs: GraphCollection, decay: float = 1.0) -> PathCounts:
        """Return the counts of new graphs; unseen sequences have the number -1."""
        _, codes = read_labels(graphs, self.labels)
        walks = list(_walks_by_length(graphs, codes, len(self.levels) - 1))
        numbers: list[np.ndarray] = []
        for walk, level in zip(walks, self.levels, strict=True):
            known = (level.prefix * codes.n_edge_labels + level.edge) * codes.n_node_labels
            keys = walk.keys(numbers, codes)
            numbers.append(places_among(known + level.node, keys))
        return self._path_counts(walks, numbers, decay, len(graphs))

    @property
    def level_offsets(self) -> np.ndarray:
        """Sequences ``level_offsets[k]`` to ``level_offsets[k + 1]`` have ``k`` steps."""
        return offsets_of([len(level.node) for level in self.levels])

    def feature_names(self) -> np.ndarray:
        """Return a text form of every sequence: ``"2:C-C-O"`` or ``"2:C-[1]-C-[2]-O"``."""
        nodes, edges = self.labels.node_alphabet, self.labels.edge_alphabet
        end = "->" if self.labels.directed else "-"
        names: list[str] = []
        texts = [""]
        for length, level in enumerate(self.levels):
            joints = [
                "" if length == 0 else end if edges is None else f"-[{edges[edge]}]{end}"
                for edge in level.edge.tolist()
            ]
            steps = zip(level.prefix.tolist(), joints, level.node.tolist(), strict=True)
            texts = [texts[prefix] + joint + str(nodes[node]) for prefix, joint, node in steps]
            names += [f"{length}:{text}" for text in texts]
        return np.array(names, dtype=object)

    def _path_counts(
        self, walks: list[_Walks], numbers: list[np.ndarray], decay: float, n_graphs: int
    ) -> PathCounts:
        levels = self.level_offsets
        patterns = [
            np.where(found < 0, -1, found + first)
            for found, first in zip(numbers, levels[:-1], strict=True)
        ]
        owners = np.concatenate([walk.graphs for walk in walks])
        counts = np.concatenate([walk.counts for walk in walks])
        weights = np.repeat(decay ** np.arange(len(walks), dtype=float), [len(x) for x in numbers])
        return PathCounts(owners, np.concatenate(patterns), counts, weights, levels, n_graphs)


class _Walks(NamedTuple):
    """The distinct label sequences of one length in every graph, graph by graph, sorted."""

    graphs: np.ndarray  # (n_entries,)
    parents: np.ndarray  # (n_entries,) entry of the sequence without its last step, one length less
    step_keys: np.ndarray  # (n_entries,) edge code * n_node_labels + node code of the last step
    counts: np.ndarray  # (n_entries,) number of walks
    n_steps: int  # along arcs, so far and to the next length

    def keys(self, numbers: list[np.ndarray], codes: LabelCodes) -> np.ndarray:
        """Return keys of the sequences, given the numbers of the shorter ones."""
        # The key is negative, hence unknown, if the prefix is unknown (number -1).
        if not numbers:
            return self.step_keys
        n_step_keys = codes.n_edge_labels * codes.n_node_labels
        return numbers[-1][self.parents] * n_step_keys + self.step_keys


def has_few_walks(
    graphs: GraphCollection, codes: LabelCodes, max_length: int, most_steps: int
) -> bool:
    """Return whether counting all walks takes at most so many steps along arcs."""
    n_walks, bound = np.ones(graphs.n_nodes), 0.0  # that start in each node; of all lengths
    for _ in range(max_length):
        reached = np.append(0.0, np.cumsum(n_walks[codes.targets]))
        n_walks = np.diff(reached[codes.neighbor_offsets])
        bound += n_walks.sum()
    if bound <= most_steps:
        return True
    walks = _walks_by_length(graphs, codes, max_length, most_steps)
    return max(walk.n_steps for walk in walks) <= most_steps


def _walks_by_length(
    graphs: GraphCollection, codes: LabelCodes, max_length: int, most_steps: float = np.inf
) -> Iterator[_Walks]:
    """Count the walks of each length by the labels along them, all graphs at once."""
    # Of every sequence only the nodes in which its walks end are kept, with the number of walks in
    # each. So each distinct sequence is met once. After `most_steps` nothing more is counted.
    n_step_keys = max(1, codes.n_edge_labels * codes.n_node_labels)
    degrees, targets = np.diff(codes.neighbor_offsets), codes.targets
    arc_keys = codes.edges.astype(np.int64) * codes.n_node_labels + codes.nodes[targets]
    owners = np.repeat(np.arange(len(graphs)), graphs.sizes)
    ends, amounts, n_steps = np.arange(graphs.n_nodes), np.ones(graphs.n_nodes), 0
    keys = owners * n_step_keys + codes.nodes  # of a sequence: its prefix (or graph) and last step
    for length in range(max_length + 1):
        order = np.lexsort((ends, keys))
        keys, ends = keys[order], ends[order]
        is_new = np.ones(len(keys), dtype=bool)  # sequence
        is_new[1:] = keys[1:] != keys[:-1]
        begins = is_new.copy()  # sequence or end node
        begins[1:] |= ends[1:] != ends[:-1]
        starts = np.flatnonzero(begins)
        amounts = np.add.reduceat(amounts[order], starts) if len(starts) else amounts
        ends, places = ends[starts], (np.cumsum(is_new) - 1)[starts]
        parents, step_keys = np.divmod(keys[is_new], n_step_keys)
        owners = parents if length == 0 else owners[parents]
        counts = np.bincount(places, amounts, minlength=len(parents))
        repeats = degrees[ends]
        n_steps += int(repeats.sum()) if length < max_length else 0
        yield _Walks(owners, parents, step_keys, counts, n_steps)
        if length == max_length or n_steps > most_steps:
            return
        _, arcs = entries_of(codes.neighbor_offsets[ends], repeats)
        keys = np.repeat(places, repeats) * n_step_keys + arc_keys[arcs]
        ends, amounts = targets[arcs], np.repeat(amounts, repeats)
