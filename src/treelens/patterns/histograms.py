"""Sparse counts of the patterns of graphs, in rows by graph and in lists by pattern."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from treelens.array_checks import check_array, check_offsets
from treelens.parallel import run_in_shares
from treelens.patterns import _compiled
from treelens.patterns.vocabulary import NodeColors, PatternVocabulary


@dataclass(frozen=True)
class SparseRows:
    """A compressed sparse matrix as three arrays, for compiled loops."""

    offsets: np.ndarray  # (n_rows + 1,) int64
    indices: np.ndarray  # (n_entries,) int32, ascending within a row
    values: np.ndarray  # (n_entries,)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def transposed(self, n_columns: int) -> SparseRows:
        """Return the transpose, with ascending indices in every row."""
        shape = (len(self), n_columns)
        turned = sparse.csr_array((self.values, self.indices, self.offsets), shape=shape).tocsc()
        return SparseRows(
            turned.indptr.astype(np.int64), turned.indices.astype(np.int32, copy=False), turned.data
        )


@dataclass(frozen=True)
class PatternHistograms:
    """Counts of every pattern in every graph, for a run of depths.

    Attributes
    ----------
    offsets : ndarray of int64, shape (n_patterns + 1,)
        Start of each pattern's list in ``graphs`` and ``counts``.
    graphs : ndarray of int32
        The graphs that contain a pattern, ascending.
    counts : ndarray of int32
        How many of the graph's nodes have it.
    level_offsets : ndarray of int64, shape (n_depths + 1,)
        Patterns ``level_offsets[k]`` to ``level_offsets[k + 1]`` have depth ``first_depth + k``.
    first_depth : int
    n_nodes : ndarray of int64, shape (n_graphs,)
    unseen : ndarray of int64, shape (n_graphs, n_depths)
        How many nodes have a pattern that is not in the vocabulary.
    level_depths : ndarray of int, shape (n_depths,), optional
        Depth of each level, where they do not simply count up from ``first_depth`` (a forest has
        several trees, each with its own depths).
    level_shares : ndarray, shape (n_depths,), optional
        What part of a depth each level counts for in a kernel; by default 1.

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
    first_depth: int
    n_nodes: np.ndarray
    unseen: np.ndarray
    level_depths: np.ndarray | None = None
    level_shares: np.ndarray | None = None

    @classmethod
    def from_colors(
        cls, vocabulary: PatternVocabulary, colors: NodeColors, n_jobs: int = 1
    ) -> PatternHistograms:
        """Count the colours of a collection, all depths of the vocabulary."""
        return cls.from_levels(colors, np.diff(vocabulary.level_offsets), None, n_jobs)

    @classmethod
    def from_levels(
        cls,
        colors: NodeColors,
        sizes: np.ndarray,
        level_depths: np.ndarray | None = None,
        n_jobs: int = 1,
    ) -> PatternHistograms:
        """Count colours level by level; ``sizes`` are the numbers of patterns of the levels."""
        node_offsets = colors.node_offsets

        def count(first: int, last: int) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
            found = []
            for h in range(first, last):
                row, size = colors.colors[h], int(sizes[h])
                offsets = np.zeros(size + 1, dtype=np.int64)
                graphs, counts = np.empty((2, len(row)), dtype=np.int32)
                used = _compiled.inverted_lists(row, node_offsets, size, offsets, graphs, counts)
                found.append((offsets, graphs[:used], counts[:used]))
            return found

        parts = [part for share in run_in_shares(count, len(sizes), n_jobs) for part in share]
        starts = np.concatenate([[0], np.cumsum([len(part[1]) for part in parts])])
        offsets = [part[0][:-1] + start for part, start in zip(parts, starts, strict=False)]
        return cls(
            offsets=np.concatenate([*offsets, starts[-1:]]).astype(np.int64),
            graphs=np.concatenate([part[1] for part in parts]),
            counts=np.concatenate([part[2] for part in parts]),
            level_offsets=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            first_depth=0,
            n_nodes=np.diff(node_offsets),
            unseen=_count_unseen(colors.colors, node_offsets),
            level_depths=level_depths,
        )

    def validate(self) -> None:
        """Raise ``ValueError`` unless lists ascend and counts add up to the nodes of each graph."""
        end, n_levels = 2**31, len(self.level_offsets) - 1
        check_array(self.n_nodes, "n_nodes", np.int64, (None,), 0, end)
        check_array(self.graphs, "graphs", np.int32, (None,), 0, self.n_graphs)
        check_array(self.counts, "counts", np.int32, (len(self.graphs),), 1, end)
        check_array(self.unseen, "unseen", np.int64, (self.n_graphs, n_levels), 0, end)
        check_array(self.offsets, "offsets", np.int64, (None,))
        check_offsets(self.level_offsets, "level_offsets", n_levels, self.n_patterns)
        check_offsets(self.offsets, "offsets", self.n_patterns, len(self.graphs))
        if self.level_shares is not None:
            check_array(self.level_shares, "level_shares", np.float64, (n_levels,), 0.0, 1.0 + 1e-9)
        if self.level_depths is not None:
            check_array(self.level_depths, "level_depths", np.int64, (n_levels,), 0, end)
        inside = np.ones(len(self.graphs), dtype=bool)  # not the first entry of a pattern's list
        inside[self.offsets[:-1][self.offsets[:-1] < len(self.graphs)]] = False
        if (np.diff(self.graphs) <= 0)[inside[1:]].any() or (self.n_nodes[self.graphs] == 0).any():
            raise ValueError("graphs must ascend within a pattern, and have nodes")
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
    def n_full_depths(self) -> float:
        """The number of depths, levels counted by their shares."""
        return self.n_depths if self.level_shares is None else float(self.level_shares.sum())

    @property
    def entry_shares(self) -> np.ndarray:
        """The share of the level of each count, over the number of depths; (n_entries,)."""
        shares = np.ones(self.n_depths) if self.level_shares is None else self.level_shares
        return np.repeat(shares / self.n_full_depths, np.diff(self.offsets[self.level_offsets]))

    @property
    def support(self) -> np.ndarray:
        """Number of graphs that contain each pattern, shape (n_patterns,)."""
        return np.diff(self.offsets)

    @property
    def depths(self) -> np.ndarray:
        """Depth of each pattern, shape (n_patterns,)."""
        return np.repeat(self.level_numbers, np.diff(self.level_offsets))

    @property
    def level_numbers(self) -> np.ndarray:
        """Depth of each level, shape (n_depths,)."""
        if self.level_depths is not None:
            return self.level_depths
        return np.arange(self.first_depth, self.first_depth + self.n_depths)

    @property
    def _level_of(self) -> np.ndarray:
        """Level of each pattern; several levels of a forest may have the same depth."""
        return np.repeat(np.arange(self.n_depths), np.diff(self.level_offsets))

    def out_of_vocabulary(self) -> np.ndarray:
        """Return the fraction of each graph's patterns, over all depths, that are unseen."""
        total = np.maximum(self.n_nodes * self.n_depths, 1)
        return self.unseen.sum(axis=1) / total

    def nodes_counted(self) -> np.ndarray:
        """Return the number of nodes with a known pattern, shape (n_graphs, n_depths)."""
        level = np.repeat(self._level_of, self.support)
        flat = self.graphs.astype(np.int64) * self.n_depths + level
        size = self.n_graphs * self.n_depths
        sums = np.bincount(flat, weights=self.counts, minlength=size)  # whole, far below 2**53
        return sums.astype(np.int64).reshape(self.n_graphs, self.n_depths)

    def select_depths(self, first: int, last: int) -> PatternHistograms:
        """Return the patterns of depths ``first`` to ``last``, as views."""
        a, b = first - self.first_depth, last - self.first_depth + 1
        if not 0 <= a < b <= self.n_depths:
            raise ValueError(
                f"Depths {first} to {last} are not among the depths {self.first_depth} to "
                f"{self.first_depth + self.n_depths - 1} that were counted."
            )
        start, stop = self.level_offsets[a], self.level_offsets[b]
        entries = slice(self.offsets[start], self.offsets[stop])
        return PatternHistograms(
            offsets=self.offsets[start : stop + 1] - self.offsets[start],
            graphs=self.graphs[entries],
            counts=self.counts[entries],
            level_offsets=self.level_offsets[a : b + 1] - start,
            first_depth=first,
            n_nodes=self.n_nodes,
            unseen=self.unseen[:, a:b],
        )

    def joined(self, other: PatternHistograms, shares: np.ndarray) -> PatternHistograms:
        """Return the levels of these histograms and then those of others of the same graphs.

        ``shares`` (n_other_depths,) are those of the latter.
        """
        ones = np.ones(self.n_depths)
        return PatternHistograms(
            np.concatenate([self.offsets, self.offsets[-1] + other.offsets[1:]]),
            np.concatenate([self.graphs, other.graphs]),
            np.concatenate([self.counts, other.counts]),
            np.concatenate([self.level_offsets, self.n_patterns + other.level_offsets[1:]]),
            self.first_depth, self.n_nodes, np.hstack([self.unseen, other.unseen]),
            np.concatenate([self.level_numbers, other.level_numbers]),
            np.concatenate([ones, shares]),
        )  # fmt: skip

    def select_graphs(self, indices: np.ndarray) -> PatternHistograms:
        """Return the histograms of some graphs over the same patterns."""
        indices = np.asarray(indices)
        table = self.to_sparse(kind="counts", dtype=np.int32)[indices].tocsc()
        table.sort_indices()
        return PatternHistograms(
            table.indptr.astype(np.int64), table.indices.astype(np.int32), table.data,
            self.level_offsets, self.first_depth, self.n_nodes[indices], self.unseen[indices],
            self.level_depths, self.level_shares,
        )  # fmt: skip

    def select_patterns(self, keep: np.ndarray) -> PatternHistograms:
        """Return the patterns of a boolean mask; the others count as unseen."""
        entry_keep = np.repeat(keep, self.support)
        kept_before = np.concatenate([[0], np.cumsum(keep)]).astype(np.int64)
        dropped = self.unseen.copy()
        level = np.repeat(self._level_of, self.support)[~entry_keep]
        np.add.at(dropped, (self.graphs[~entry_keep], level), self.counts[~entry_keep])
        return PatternHistograms(
            np.concatenate([[0], np.cumsum(self.support[keep])]).astype(np.int64),
            self.graphs[entry_keep], self.counts[entry_keep], kept_before[self.level_offsets],
            self.first_depth, self.n_nodes, dropped, self.level_depths, self.level_shares,
        )  # fmt: skip

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

    def to_sparse(self, kind: str = "counts", dtype: Any = np.float64) -> sparse.csr_array:
        """Return a scipy matrix, shape (n_graphs, n_patterns)."""
        values = self.frequencies if kind == "frequencies" else self.counts
        lists = sparse.csc_array(
            (values.astype(dtype), self.graphs, self.offsets),
            shape=(self.n_graphs, self.n_patterns),
        )
        return lists.tocsr()


def _count_unseen(colors: np.ndarray, node_offsets: np.ndarray) -> np.ndarray:
    """Return the number of nodes without a known pattern, shape (n_graphs, n_depths)."""
    if not (colors < 0).any():
        return np.zeros((len(node_offsets) - 1, len(colors)), dtype=np.int64)
    before = np.zeros((len(colors), node_offsets[-1] + 1), dtype=np.int64)
    np.cumsum(colors < 0, axis=1, out=before[:, 1:])
    return np.ascontiguousarray(np.diff(before[:, node_offsets], axis=1).T)


# Below the first an out-of-vocabulary fraction is never remarkable, above the second always.
_MIN_LIMIT, _MAX_LIMIT = 0.1, 0.5


def usual_out_of_vocabulary(histograms: PatternHistograms) -> float:
    """Return the out-of-vocabulary fraction that graphs like the training graphs rarely exceed.

    A pattern that occurs in one training graph only would be unseen without that graph. So the
    share of such patterns (and of those left out of the vocabulary) in a training graph is its
    leave-one-out fraction; returned is the 95th percentile of these, clipped to [0.1, 0.5].
    """
    alone = histograms.offsets[:-1][histograms.support == 1]
    lonely = np.bincount(
        histograms.graphs[alone], weights=histograms.counts[alone], minlength=histograms.n_graphs
    )
    lonely = lonely + histograms.unseen.sum(axis=1)
    shares = lonely / np.maximum(histograms.n_nodes * histograms.n_depths, 1)
    return float(np.clip(np.quantile(shares, 0.95), _MIN_LIMIT, _MAX_LIMIT))
