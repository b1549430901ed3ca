"""Paths as patterns of a view: two labels and their distance, and the labels of four in a row."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import sparse

from treelens.array_checks import check_array
from treelens.errors import GraphDataError
from treelens.graphs.collection import GraphCollection
from treelens.parallel import in_threads
from treelens.patterns import _compiled
from treelens.patterns.forest import labelled_for
from treelens.patterns.histograms import PatternHistograms, SparseRows
from treelens.patterns.paths import LabelCodes, distinct, places_among, read_labels
from treelens.patterns.source import PatternSource, Sites
from treelens.patterns.vocabulary import PatternVocabulary, offsets_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

MAX_DISTANCE = 8
_LENGTH = 4  # nodes of the longer paths
_MOST_LABELS = 55_108  # four codes below it fit into 64 bits
_MOST_PATHS = 50_000_000  # of one graph
_PATHS_AT_A_TIME = 2_000_000


@dataclass(frozen=True, eq=False)
class PathPatterns(PatternSource):
    """Pairs of labels with the distance of their nodes, and the labels of four nodes in a row.

    Level ``d - 1`` has the pairs of nodes that are ``d`` edges apart, up to ``max_distance``; the
    last level has the paths of four different nodes. In directed graphs paths follow the edges;
    otherwise a path and its reverse are the same. Of molecules with the labels that RDKit uses
    these are its atom pairs and topological torsions.
    """

    tree: str  # "labels" or "fine": the labels of nodes that are looked at
    max_distance: int
    labels: PatternVocabulary  # of depth 0
    known: tuple[np.ndarray, ...]  # by level: codes of the labels, (n_patterns, 2 or 4) int64

    name = "paths"
    has_depths = False

    def validate(self) -> None:
        """Raise ``ValueError`` unless all codes are those of labels."""
        if len(self.known) != self.max_distance + 1 or self.tree not in ("labels", "fine"):
            raise ValueError("there must be a table of paths for each distance, and one more")
        for level, codes in enumerate(self.known):
            width, n_labels = self._width(level), len(self.labels.node_alphabet)
            check_array(codes, "codes of paths", np.int64, (None, width), 0, n_labels)

    @classmethod
    def empty(cls, tree: str, max_distance: int = MAX_DISTANCE) -> PathPatterns:
        """Return a source without any path."""
        pairs = (np.empty((0, 2), np.int64),) * max_distance
        vocabulary = PatternVocabulary.empty(0)
        return cls(tree, max_distance, vocabulary, (*pairs, np.empty((0, _LENGTH), np.int64)))

    @property
    def level_sizes(self) -> np.ndarray:
        return np.array([len(codes) for codes in self.known], dtype=np.int64)

    @property
    def level_depths(self) -> np.ndarray:
        return np.zeros(self.n_levels, dtype=np.int64)

    @property
    def level_names(self) -> tuple[str, ...]:
        pairs = (f"pairs, distance {d}" for d in range(1, self.max_distance + 1))
        return (*pairs, f"paths of {_LENGTH}")

    def _width(self, level: int) -> int:
        return 2 if level < self.max_distance else _LENGTH

    def extend(self, graphs: GraphCollection, n_jobs: int = 1) -> tuple[PathPatterns, FoundPaths]:
        given = labelled_for(graphs, self.tree)
        labels, codes = read_labels(given, self.labels)
        counts, known = _counted_paths(given, codes, self.max_distance, n_jobs), []
        for level, before in enumerate(self.known):
            keys = distinct(counts.keys[counts.levels == level])
            new = keys[~np.isin(keys, _packed(before, codes.n_node_labels))]
            more = _unpacked(new, codes.n_node_labels, self._width(level))
            known.append(np.concatenate([before, more]))
        wider = replace(self, labels=labels, known=tuple(known))
        return wider, FoundPaths(wider, given, codes, counts)

    def transform(self, graphs: GraphCollection, n_jobs: int = 1) -> FoundPaths:
        given = labelled_for(graphs, self.tree)
        codes = read_labels(given, self.labels)[1]
        counts = _counted_paths(given, codes, self.max_distance, n_jobs)
        return FoundPaths(self, given, codes, counts)

    def count(self, found: FoundPaths) -> PatternHistograms:
        counts, n_graphs = found.counts, len(found.graphs)
        number = self.numbers_of(counts.levels, counts.keys, found.codes)
        new, known = number < 0, number >= 0
        unseen = np.zeros((n_graphs, self.n_levels), dtype=np.int64)
        np.add.at(unseen, (counts.graphs[new], counts.levels[new]), counts.counts[new])
        places = number[known], counts.graphs[known]
        entries = counts.counts[known].astype(np.int32)
        table = sparse.csr_array((entries, places), shape=(self.n_patterns, n_graphs))
        lists = SparseRows.of(table)
        return PatternHistograms(
            lists.offsets,
            lists.indices,
            lists.values,
            self.level_offsets,
            self.level_depths,
            found.graphs.sizes,
            unseen,
            self.level_shares,
        )

    def numbers_of(self, levels: np.ndarray, keys: np.ndarray, codes: LabelCodes) -> np.ndarray:
        """Return the number of the pattern of each key of a level, -1 where it is not known."""
        numbers = np.full(len(keys), -1, dtype=np.int64)
        for level, known in enumerate(self.known):
            here = np.flatnonzero(levels == level)
            found = places_among(_packed(known, codes.n_node_labels), keys[here])
            numbers[here] = np.where(found < 0, -1, found + self.level_offsets[level])
        return numbers

    def sites(self, found: FoundPaths) -> Sites:
        """The nodes of a path, the two ends in the case of a pair."""
        numbers, nodes = [], []
        for paths in _found_paths(found.graphs, found.codes, self.max_distance):
            own = self.numbers_of(paths.levels, paths.keys, found.codes)
            numbers.append(np.repeat(own, paths.nodes.shape[1]))
            nodes.append(paths.nodes.ravel())
        return Sites(found.graphs.node_offsets, np.concatenate(numbers), np.concatenate(nodes))

    def texts(self, patterns: ArrayLike) -> list[str]:
        """Return ``"C 3 O"`` for a carbon three bonds from an oxygen, ``"C-C-C-O"`` for a path."""
        alphabet, found = self.labels.node_alphabet, []
        patterns = np.asarray(patterns, dtype=np.int64)
        levels = self.level_of(patterns)
        for level, place in zip(levels, patterns - self.level_offsets[levels], strict=True):
            labels = [str(alphabet[code]) for code in self.known[level][place]]
            between = f" {level + 1} " if level < self.max_distance else "-"
            found.append(between.join(labels))
        return found


@dataclass(frozen=True, eq=False)
class FoundPaths:
    """The paths of some graphs, counted; their nodes are looked for when they are asked for."""

    source: PathPatterns
    graphs: GraphCollection  # with the labels that are looked at
    codes: LabelCodes
    counts: CountedPaths

    def select_graphs(self, positions: np.ndarray) -> FoundPaths:
        graphs = self.graphs[positions]
        codes = read_labels(graphs, self.source.labels)[1]
        counts = _counted_paths(graphs, codes, self.source.max_distance, 1)
        return FoundPaths(self.source, graphs, codes, counts)


# --- finding and counting ------------------------------------------------------------------------


class PathSites(NamedTuple):
    """Paths of the same number of nodes, each met once."""

    levels: np.ndarray  # (n_paths,)
    keys: np.ndarray  # (n_paths,) codes of the labels as one number
    nodes: np.ndarray  # (n_paths, 2 or 4) numbered in the whole collection


class CountedPaths(NamedTuple):
    """How often paths occur, graph by graph."""

    levels: np.ndarray  # (n_entries,)
    keys: np.ndarray  # (n_entries,)
    graphs: np.ndarray  # (n_entries,)
    counts: np.ndarray  # (n_entries,)


def _packed(codes: np.ndarray, n_labels: int) -> np.ndarray:
    """Return the codes of each path as one number."""
    if n_labels > _MOST_LABELS:
        raise GraphDataError(
            f"The graphs have {n_labels:,} different node labels, and paths are counted for "
            f"{_MOST_LABELS:,} at most: leave tl.Paths() out, or use coarser labels."
        )
    keys = np.zeros(len(codes), dtype=np.int64)
    for column in codes.T:
        keys = keys * n_labels + column
    return keys


def _unpacked(keys: np.ndarray, n_labels: int, width: int) -> np.ndarray:
    """Return the codes that were packed, shape (n_keys, width)."""
    powers = max(1, n_labels) ** np.arange(width)[::-1]
    return keys[:, None] // powers % max(1, n_labels)


def _found_paths(
    graphs: GraphCollection,
    codes: LabelCodes,
    max_distance: int,
    first: int = 0,
    last: int | None = None,
) -> tuple[PathSites, PathSites]:
    """Return pairs of nodes, and paths of four, of the graphs from ``first`` to ``last``."""
    bounds = graphs.node_offsets[first : None if last is None else last + 1]
    given = codes.neighbor_offsets, codes.targets, codes.nodes, codes.n_node_labels, graphs.directed
    none = np.empty(0, np.int64)
    room = [
        _compiled.find_pairs(a, b, *given, max_distance, none, none, none.reshape(0, 2))
        for a, b in pairwise(bounds.tolist())
    ]
    keys, distances = np.empty((2, sum(room)), dtype=np.int64)
    nodes = np.empty((len(keys), 2), dtype=np.int64)
    for (a, b), here in zip(pairwise(bounds.tolist()), _slices(room), strict=True):
        _compiled.find_pairs(a, b, *given, max_distance, keys[here], distances[here], nodes[here])
    pairs = PathSites(distances - 1, keys, nodes)
    n_fours = _compiled.find_fours(bounds[0], bounds[-1], *given, none, none.reshape(0, _LENGTH))
    keys, nodes = np.empty(n_fours, np.int64), np.empty((n_fours, _LENGTH), np.int64)
    _compiled.find_fours(bounds[0], bounds[-1], *given, keys, nodes)
    return pairs, PathSites(np.full(n_fours, max_distance), keys, nodes)


def _slices(sizes: list[int]) -> list[slice]:
    return [slice(a, b) for a, b in pairwise(offsets_of(sizes).tolist())]


def _counted_paths(
    graphs: GraphCollection, codes: LabelCodes, max_distance: int, n_jobs: int
) -> CountedPaths:
    """Count the paths of every graph."""
    graph_of_node = np.repeat(np.arange(len(graphs)), graphs.sizes)

    bounds = _blocks(graphs, codes)

    def count(first: int, last: int) -> CountedPaths:
        both = _found_paths(graphs, codes, max_distance, first, last)
        levels = np.concatenate([sites.levels for sites in both])
        keys = np.concatenate([sites.keys for sites in both])
        owners = graph_of_node[np.concatenate([sites.nodes[:, 0] for sites in both])]
        order = np.lexsort((keys, levels, owners))
        levels, keys, owners = levels[order], keys[order], owners[order]
        new = np.ones(len(keys), dtype=bool)
        new[1:] = (np.diff(keys) != 0) | (np.diff(levels) != 0) | (np.diff(owners) != 0)
        starts = np.flatnonzero(new)
        counts = np.diff(np.append(starts, len(keys)))
        return CountedPaths(levels[starts], keys[starts], owners[starts], counts)

    parts = in_threads(lambda ends: count(*ends), pairwise(bounds), n_jobs)
    return CountedPaths(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def _blocks(graphs: GraphCollection, codes: LabelCodes) -> list[int]:
    """Return bounds of blocks of graphs with few enough paths to have in memory together."""
    degrees = np.diff(codes.neighbor_offsets)
    owner = np.repeat(np.arange(graphs.n_nodes), degrees)
    around = degrees[owner] * degrees[codes.targets]  # at least the paths with this middle
    graph_of_node = np.repeat(np.arange(len(graphs)), graphs.sizes)
    fours = np.bincount(graph_of_node[owner], around, len(graphs))
    many = np.maximum(fours, graphs.sizes.astype(float) ** 2)
    if (most := int(fours.max(initial=0))) > _MOST_PATHS:
        raise GraphDataError(
            f"Graph {int(fours.argmax())} has up to {most:,} paths of four nodes, too many to "
            "count: leave tl.Paths() out."
        )
    block = (np.cumsum(many) // _PATHS_AT_A_TIME).astype(np.int64)
    return [0, *(np.flatnonzero(np.diff(block)) + 1).tolist(), len(graphs)]
