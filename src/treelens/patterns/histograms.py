"""Sparse counts of the patterns of graphs, by graph and by pattern, and their pair features."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import sparse

from treelens.array_checks import check_array, check_offsets
from treelens.patterns.vocabulary import NodeColors, PatternVocabulary, offsets_of

if TYPE_CHECKING:
    from numpy.typing import DTypeLike


@dataclass(frozen=True)
class SparseRows:
    """A compressed sparse matrix as three arrays, for compiled loops."""

    offsets: np.ndarray  # (n_rows + 1,) int64
    indices: np.ndarray  # (n_entries,) int32, ascending within a row
    values: np.ndarray  # (n_entries,)

    @classmethod
    def of(cls, table: sparse.csr_array) -> SparseRows:
        """Return the arrays of a compressed matrix of scipy's."""
        table.sort_indices()
        indices = table.indices.astype(np.int32, copy=False)
        return cls(table.indptr.astype(np.int64), indices, table.data)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def to_sparse(self, n_columns: int) -> sparse.csr_array:
        """Return a scipy matrix, shape (n_rows, n_columns)."""
        shape = (len(self), n_columns)
        return sparse.csr_array((self.values, self.indices, self.offsets), shape=shape)

    def transposed(self, n_columns: int) -> SparseRows:
        """Return the transpose."""
        return SparseRows.of(self.to_sparse(n_columns).tocsc())

    def select(self, keep: np.ndarray) -> SparseRows:
        """Return the rows of a boolean mask."""
        sizes = np.diff(self.offsets)
        kept = np.repeat(keep, sizes)
        return SparseRows(offsets_of(sizes[keep]), self.indices[kept], self.values[kept])


@dataclass(frozen=True)
class PatternHistograms:
    """Counts of every pattern in every graph.

    Patterns lie side by side by level: a depth or, in a forest, a tree and a depth.

    Attributes
    ----------
    offsets : ndarray of int64, shape (n_patterns + 1,)
        Start of each pattern's list in ``graphs`` and ``counts``.
    graphs : ndarray of int32
        The graphs that contain a pattern, ascending.
    counts : ndarray of int32
        How many of the graph's nodes have it.
    level_offsets : ndarray of int64, shape (n_depths + 1,)
        Where the patterns of each level begin.
    level_depths : ndarray of int64, shape (n_depths,)
        Depth of each level.
    n_nodes : ndarray of int64, shape (n_graphs,)
    unseen : ndarray of int64, shape (n_graphs, n_depths)
        How many nodes have a pattern that is not in the vocabulary.
    level_shares : ndarray, shape (n_depths,)
        What part of a depth each level counts for in a kernel.

    Examples
    --------
    >>> from treelens import as_graph_collection, PatternVocabulary
    >>> graphs = as_graph_collection([([(0, 1), (1, 2)], {0: "C", 1: "C", 2: "O"})])
    >>> vocabulary, colors = PatternVocabulary.fit(graphs, depth=1)
    >>> histograms = PatternHistograms.from_colors(vocabulary, colors)
    >>> histograms.to_sparse().toarray().tolist()
    [[2.0, 1.0, 1.0, 1.0, 1.0]]
    """

    offsets: np.ndarray
    graphs: np.ndarray
    counts: np.ndarray
    level_offsets: np.ndarray
    level_depths: np.ndarray
    n_nodes: np.ndarray
    unseen: np.ndarray
    level_shares: np.ndarray

    @classmethod
    def from_colors(cls, vocabulary: PatternVocabulary, colors: NodeColors) -> PatternHistograms:
        """Count the colours of a collection, all depths of the vocabulary."""
        sizes = np.diff(vocabulary.level_offsets)
        return cls.from_levels(colors, sizes, np.arange(len(sizes)), np.ones(len(sizes)))

    @classmethod
    def from_levels(
        cls, colors: NodeColors, sizes: np.ndarray, depths: np.ndarray, shares: np.ndarray
    ) -> PatternHistograms:
        """Count colours level by level; ``sizes`` are the numbers of patterns of the levels."""
        n_nodes = np.diff(colors.node_offsets)
        graph_of = np.repeat(np.arange(len(n_nodes), dtype=np.int32), n_nodes)
        lists, unseen = [], []
        for row, size in zip(colors.colors, sizes.tolist(), strict=True):
            known = row >= 0
            places = (row[known], graph_of[known])
            ones = np.ones(len(places[0]), dtype=np.int32)
            lists.append(sparse.csr_array((ones, places), shape=(size, len(n_nodes))))
            unseen.append(np.bincount(graph_of[~known], minlength=len(n_nodes)))
        table = SparseRows.of(sparse.vstack(lists, format="csr"))
        return cls(
            table.offsets,
            table.indices,
            table.values,
            offsets_of(sizes),
            depths,
            n_nodes,
            np.stack(unseen, axis=1),
            shares,
        )

    def validate(self) -> None:
        """Raise ``ValueError`` unless offsets and lists fit together, and lists ascend."""
        end, n_levels = 2**31, len(self.level_offsets) - 1
        check_array(self.n_nodes, "n_nodes", np.int64, (None,), 0, end)
        check_array(self.graphs, "graphs", np.int32, (None,), 0, self.n_graphs)
        check_array(self.counts, "counts", np.int32, (len(self.graphs),), 1, end)
        check_array(self.unseen, "unseen", np.int64, (self.n_graphs, n_levels), 0, end)
        check_array(self.offsets, "offsets", np.int64, (None,))
        check_offsets(self.level_offsets, "level_offsets", n_levels, self.n_patterns)
        check_offsets(self.offsets, "offsets", self.n_patterns, len(self.graphs))
        check_array(self.level_shares, "level_shares", np.float64, (n_levels,), 0.0, 1.0 + 1e-9)
        check_array(self.level_depths, "level_depths", np.int64, (n_levels,), 0, end)
        inside = np.ones(len(self.graphs), dtype=bool)  # not the first entry of a pattern's list
        inside[self.offsets[:-1][self.offsets[:-1] < len(self.graphs)]] = False
        if (np.diff(self.graphs) <= 0)[inside[1:]].any() or (self.n_nodes[self.graphs] == 0).any():
            raise ValueError("graphs must ascend within a pattern, and have nodes")

    def check_every_node(self) -> None:
        """Raise ``ValueError`` unless every node has one pattern of each level, known or not."""
        if (self.nodes_counted() + self.unseen != self.n_nodes[:, None]).any():
            raise ValueError("counts must add up to n_nodes")

    @property
    def n_graphs(self) -> int:
        return len(self.n_nodes)

    @property
    def n_patterns(self) -> int:
        return len(self.offsets) - 1

    @property
    def n_depths(self) -> int:
        return len(self.level_offsets) - 1

    @property
    def first_depth(self) -> int:
        return int(self.level_depths[0])

    @property
    def n_full_depths(self) -> float:
        """The number of depths, levels counted by their shares."""
        return float(self.level_shares.sum())

    @property
    def entry_shares(self) -> np.ndarray:
        """The share of the level of each count, over the number of depths; (n_entries,)."""
        shares = self.level_shares / self.n_full_depths
        return np.repeat(shares, np.diff(self.offsets[self.level_offsets]))

    @property
    def support(self) -> np.ndarray:
        """Number of graphs that contain each pattern, shape (n_patterns,)."""
        return np.diff(self.offsets)

    @property
    def depths(self) -> np.ndarray:
        """Depth of each pattern, shape (n_patterns,)."""
        return np.repeat(self.level_depths, np.diff(self.level_offsets))

    def out_of_vocabulary(self) -> np.ndarray:
        """Return the fraction of each graph's patterns, over all depths, that are unseen."""
        return self.unseen.sum(axis=1) / np.maximum(self.n_nodes * self.n_depths, 1)

    def usual_out_of_vocabulary(self) -> float:
        """Return the out-of-vocabulary fraction that graphs like these rarely exceed."""
        # A pattern of one graph only would be unseen without that graph. So the share of such
        # patterns, and of those left out of the vocabulary, is a graph's leave-one-out fraction;
        # returned is the 95th percentile. Below 0.1 none is remarkable, above 0.5 every one.
        alone = self.offsets[:-1][self.support == 1]
        lonely = np.bincount(self.graphs[alone], self.counts[alone], minlength=self.n_graphs)
        shares = lonely / np.maximum(self.n_nodes * self.n_depths, 1) + self.out_of_vocabulary()
        return float(np.clip(np.quantile(shares, 0.95), 0.1, 0.5))

    def nodes_counted(self) -> np.ndarray:
        """Return the number of nodes with a known pattern, shape (n_graphs, n_depths)."""
        level = np.repeat(np.arange(self.n_depths), np.diff(self.offsets[self.level_offsets]))
        flat = self.graphs.astype(np.int64) * self.n_depths + level
        size = self.n_graphs * self.n_depths
        sums = np.bincount(flat, weights=self.counts, minlength=size)  # whole, far below 2**53
        return sums.astype(np.int64).reshape(self.n_graphs, self.n_depths)

    def select_depths(self, first: int, last: int) -> PatternHistograms:
        """Return the patterns of depths ``first`` to ``last``."""
        low, high = self.level_depths.min(), self.level_depths.max()
        if not low <= first <= last <= high:
            raise ValueError(
                f"Depths {first} to {last} are not among the depths {low} to {high} that were "
                "counted."
            )
        return self.select_levels((self.level_depths >= first) & (self.level_depths <= last))

    def select_levels(self, keep: np.ndarray) -> PatternHistograms:
        """Return the patterns of the levels of a boolean mask."""
        if keep.all():
            return self
        sizes = np.diff(self.level_offsets)
        return replace(
            self._with_lists(self._lists.select(np.repeat(keep, sizes))),
            level_offsets=offsets_of(sizes[keep]),
            level_depths=self.level_depths[keep],
            unseen=self.unseen[:, keep],
            level_shares=self.level_shares[keep],
        )

    def select_graphs(self, indices: np.ndarray) -> PatternHistograms:
        """Return the histograms of some graphs over the same patterns."""
        table = SparseRows.of(self.rows.to_sparse(self.n_patterns)[indices].tocsc())
        chosen = self._with_lists(table)
        return replace(chosen, n_nodes=self.n_nodes[indices], unseen=self.unseen[indices])

    def select_patterns(self, keep: np.ndarray) -> PatternHistograms:
        """Return the patterns of a boolean mask; the others count as unseen."""
        levels = offsets_of(keep)[self.level_offsets]
        kept = replace(self._with_lists(self._lists.select(keep)), level_offsets=levels)
        unseen = self.unseen + self.nodes_counted() - kept.nodes_counted()
        return replace(kept, unseen=unseen)

    @property
    def _lists(self) -> SparseRows:
        return SparseRows(self.offsets, self.graphs, self.counts)

    def _with_lists(self, lists: SparseRows) -> PatternHistograms:
        return replace(self, offsets=lists.offsets, graphs=lists.indices, counts=lists.values)

    @cached_property
    def rows(self) -> SparseRows:
        """The counts by graph, (n_graphs, n_patterns)."""
        return self._lists.transposed(self.n_graphs)

    # --- forms ------------------------------------------------------------------------------

    @property
    def frequencies(self) -> np.ndarray:
        """Counts divided by the number of nodes of the graph, aligned with ``counts``."""
        return self.counts / self.n_nodes[self.graphs]

    def by_pattern(self, kind: str = "frequencies", factor: np.ndarray | float = 1.0) -> SparseRows:
        """Return lists by pattern of counts or relative frequencies, times factors (n_entries,)."""
        values = self.frequencies if kind == "frequencies" else self.counts.astype(np.float64)
        values *= factor  # in place: both are new
        return SparseRows(self.offsets, self.graphs, values)

    def to_sparse(self, kind: str = "counts", dtype: DTypeLike = np.float64) -> sparse.csr_array:
        """Return a scipy matrix, shape (n_graphs, n_patterns)."""
        return self.by_pattern(kind).to_sparse(self.n_graphs).astype(dtype, copy=False).T.tocsr()


# --- pair features: the sparse vectors that kernels sum and learning weighs -----------------------
# All three Weisfeiler-Lehman kernels are linear in one weight per pattern, `K = <W, Z>`, and differ
# only in the sparse vector `Z(G, G')` of a pair of graphs.

PAIR_KINDS = ("wasserstein", "optimal-assignment", "subtree")


@dataclass(frozen=True)
class PairFeatures:
    """``Z(i, j)_v = scale_i * scale_j * combine(a_iv, a_jv)`` for all pairs, never written out."""

    lists: SparseRows  # by pattern: the graphs that contain it, and a; (n_patterns, n_graphs)
    rows: SparseRows  # the same by graph, (n_graphs, n_patterns)
    level_offsets: np.ndarray  # patterns of depth k are level_offsets[k]:level_offsets[k + 1]
    minimum: bool  # whether combine is the minimum (else the product)
    scale: np.ndarray  # (n_graphs,)

    @classmethod
    def from_histograms(
        cls, histograms: PatternHistograms, kind: str = "wasserstein", unit: bool = True
    ) -> PairFeatures:
        """Return the pair features of one kernel, each divided by the number of depths.

        The kinds are: minimum of relative frequencies, minimum of counts, product of counts. With
        ``unit`` graphs are scaled so that ``<1, Z(G, G)> == 1`` and distances ``1 - <1, Z>`` of all
        kinds are in [0, 1] for learning; without it ``<1, Z>`` is the plain kernel.
        """
        if kind not in PAIR_KINDS:
            raise ValueError(f"kind must be one of {PAIR_KINDS}, got {kind!r}.")
        minimum = kind != "subtree"
        # The product carries the factor 1 / n_depths as two square roots.
        factor = histograms.entry_shares if minimum else np.sqrt(histograms.entry_shares)
        lists = histograms.by_pattern("frequencies" if kind == "wasserstein" else "counts", factor)
        plain = cls._of_lists(lists, histograms, minimum)
        if not unit or kind == "wasserstein":
            return plain
        norm = np.sqrt(np.maximum(plain.diagonal(), np.finfo(float).tiny))
        return replace(plain, scale=1.0 / norm)

    @classmethod
    def of_counts(cls, histograms: PatternHistograms) -> PairFeatures:
        """Return minima of counts: ``<W, Z> = sum_v w_v min(count_iv, count_jv)``."""
        return cls._of_lists(histograms.by_pattern("counts"), histograms, True)

    @classmethod
    def _of_lists(
        cls, lists: SparseRows, histograms: PatternHistograms, minimum: bool
    ) -> PairFeatures:
        n_graphs, levels = histograms.n_graphs, histograms.level_offsets
        return cls(lists, lists.transposed(n_graphs), levels, minimum, np.ones(n_graphs))

    @classmethod
    def of_rows(
        cls,
        table: sparse.csr_array,
        level_offsets: np.ndarray,
        minimum: bool,
        scale: np.ndarray | None = None,
    ) -> PairFeatures:
        """Return the features of a table by graph, a compressed matrix of scipy's."""
        rows, n_patterns = SparseRows.of(table), table.shape[1]
        scale = np.ones(len(rows)) if scale is None else scale
        return cls(rows.transposed(n_patterns), rows, level_offsets, minimum, scale)

    @property
    def n_graphs(self) -> int:
        return len(self.rows)

    @property
    def n_patterns(self) -> int:
        return len(self.lists)

    def select_patterns(self, keep: np.ndarray) -> PairFeatures:
        """Return the features of the patterns of a boolean mask."""
        lists, level_offsets = self.lists.select(keep), offsets_of(keep)[self.level_offsets]
        rows = lists.transposed(self.n_graphs)
        return PairFeatures(lists, rows, level_offsets, self.minimum, self.scale)

    def diagonal(self, weights: np.ndarray | None = None) -> np.ndarray:
        """Return ``<W, Z(G, G)>`` of every graph, shape (n_graphs,)."""
        values = self.rows.values if self.minimum else self.rows.values**2
        if weights is not None:
            values = values * weights[self.rows.indices]
        graph = np.repeat(np.arange(self.n_graphs), np.diff(self.rows.offsets))
        return np.bincount(graph, weights=values, minlength=self.n_graphs) * self.scale**2


class Features(NamedTuple):
    """Pair features of graphs, and ``<W, Z(G, G)>`` of each graph."""

    pairs: PairFeatures
    diagonal: np.ndarray  # (n_graphs,), unseen patterns included
    weights: np.ndarray | None = None  # (n_patterns,) W; None: all ones

    @classmethod
    def of(
        cls,
        pairs: PairFeatures,
        weights: np.ndarray | None = None,
        unseen_sums: np.ndarray | float = 0.0,
    ) -> Features:
        """Return weighted features; ``unseen_sums`` are what unseen patterns add to diagonals."""
        return cls(pairs, pairs.diagonal(weights) + unseen_sums, weights)

    def select(self, positions: np.ndarray) -> Features:
        """Return the features of some graphs."""
        pairs = self.pairs
        table = pairs.rows.to_sparse(pairs.n_patterns)[positions]
        scale = pairs.scale[positions]
        chosen = PairFeatures.of_rows(table, pairs.level_offsets, pairs.minimum, scale)
        return Features(chosen, self.diagonal[positions], self.weights)


# What a view shows of graphs: counts of patterns, or numbers (n_graphs, n_numbers).
ViewData = Features | np.ndarray


BLOCK_SIZE = 2048  # graphs that predictions are made for at a time


class GraphViews(tuple[ViewData, ...]):
    """The same graphs, view by view: counts of patterns, then other views if there are any."""

    __slots__ = ()

    def counted(self, view: int) -> Features:
        """Return a view that counts patterns."""
        return self[view]  # type: ignore[return-value]

    def numbers(self, view: int) -> np.ndarray:
        """Return a view that is a table of numbers."""
        return self[view]  # type: ignore[return-value]

    @property
    def patterns(self) -> Features:
        """The first view."""
        return self.counted(0)

    def blocks(self) -> Iterator[GraphViews]:
        """Yield the graphs, so many at a time that memory has room for their kernel rows."""
        n_graphs = self.patterns.pairs.n_graphs
        if n_graphs <= BLOCK_SIZE:
            yield self
            return
        for start in range(0, n_graphs, BLOCK_SIZE):
            yield self.select(np.arange(start, min(start + BLOCK_SIZE, n_graphs)))

    def select(self, positions: np.ndarray) -> GraphViews:
        """Return all views of some graphs."""
        return GraphViews(
            data.select(positions) if isinstance(data, Features) else data[positions]
            for data in self
        )


def graph_keys(views: Iterable[ViewData]) -> Iterator[bytes]:
    """Yield what the views show of each graph, counts and numbers: equal for replicates."""
    columns = [_keys(each.pairs.rows) if isinstance(each, Features) else each for each in views]
    for parts in zip(*columns, strict=True):
        yield b"".join(part if isinstance(part, bytes) else part.tobytes() for part in parts)


def _keys(rows: SparseRows) -> Iterator[bytes]:
    for a, b in pairwise(rows.offsets.tolist()):
        yield rows.indices[a:b].tobytes() + rows.values[a:b].tobytes()


def replicate_numbers(views: Iterable[ViewData]) -> np.ndarray | None:
    """Return a number per graph that replicates share; None where no graph stands twice."""
    shown = GraphViews(views)
    hashes = np.sum(np.array([_hashes(each) for each in shown]), axis=0)
    _, kinds, sizes = np.unique(hashes, return_inverse=True, return_counts=True)
    shared = np.flatnonzero(sizes[kinds] > 1)  # only of these the counts need to be compared
    numbers, first = np.arange(len(hashes)), dict[bytes, int]()
    for k, key in zip(shared.tolist(), graph_keys(shown.select(shared)), strict=True):
        numbers[k] = first.setdefault(key, k)
    return None if len(first) == len(shared) else numbers


def _hashes(view: ViewData) -> np.ndarray:
    """Return a number for each graph, equal where graphs look the same: sums modulo 2**64."""
    if isinstance(view, Features):
        rows = view.pairs.rows
        ends, columns, values = rows.offsets, rows.indices, rows.values
    else:
        ends = np.arange(len(view) + 1) * view.shape[1]
        columns, values = np.tile(np.arange(view.shape[1]), len(view)), view.ravel()
    rng = np.random.default_rng(0)
    factors = rng.integers(2**64, size=int(columns.max(initial=0)) + 1, dtype=np.uint64)
    products = np.ascontiguousarray(values, dtype=float).view(np.uint64) * factors[columns]
    totals = np.concatenate([np.zeros(1, np.uint64), np.cumsum(products)])
    return totals[ends[1:]] - totals[ends[:-1]]
