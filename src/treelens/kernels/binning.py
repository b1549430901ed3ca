"""Random bins: sparse features for the kernels laplacian and wwl (Rahimi and Recht 2007).

A grid cuts the amounts of every pattern into intervals, of a random width and from a random offset
on. Two graphs share a bin of the grid if all their amounts are in the same intervals. With widths
from a Gamma(2) distribution that happens with the probability ``exp(-gamma d)`` exactly, ``d`` the
weighted L1 distance: the share of grids on which two graphs share a bin is the kernel, unbiased.

The variance is ``K (1 - K)`` per grid: it vanishes with the kernel, so that the many small values
of a narrow kernel stay small. (Of cosines of random projections it is about one half, whatever K.)

A bin's name is a sum of hashes over the patterns that are beyond their first interval, the one that
holds 0. So absent patterns need nothing, and no table of patterns by grids exists.

The grids are not drawn independently of each other. Every pattern deals its offsets out over the
grids evenly: each grid gets one from a share of the distribution of its own, in an order that is
the pattern's (a Latin hypercube). One grid alone is distributed as before, so nothing is biased;
but how many grids a pattern alone tells two graphs apart on is nearly certain. With
many grids and many small amounts a share ``x / (exp(x) - 1)`` of the variance goes,
``x = gamma d``; with few or large ones less. And since offsets ascend in that order, a graph's
bins take a step for every boundary that it crosses, which with uniform weights are
``gamma / 2`` per grid on average, however many patterns there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import sparse

from treelens.kernels import _compiled_approximate as compiled
from treelens.kernels.approximate import (
    as_narrow_as_they_fit,
    row_factors,
)
from treelens.kernels.table import RANDOM_KERNELS, check_kernel
from treelens.parallel import in_threads
from treelens.patterns.features import Features

# Graphs that a thread takes at a time.
_GRAPHS_AT_ONCE = 256
# Buckets of a grid: as many as training graphs, as long as all grids have no more than this. Chance
# adds about one over their number to every kernel value, on NCI1 without effect on the accuracy
# from 512 on; a linear model's coefficients should rather stay in the processor's cache.
_MOST_BUCKETS = 2**20
_LEAST_PER_GRID = 256
# Crossings of a path that fit into memory and a few seconds.
_MOST_CROSSINGS = 2**24


@dataclass(frozen=True)
class RandomBinning:
    """One feature per grid: which bucket the graph's bin falls into.

    Attributes
    ----------
    n_components : int
        Number of grids, which is the number of features of a graph that are not zero.
    seed : int
    kernel : {"laplacian", "wwl"}
    gamma : float
    offset : float
        The constant ``b`` of the kernel wwl.
    weights : ndarray, shape (n_patterns,), or None
    n_buckets : int
        Of every grid, a power of two. Two bins share a bucket by chance once in so many pairs.

    Examples
    --------
    >>> from treelens.graphs.synthetic import make_random_graphs
    >>> from treelens.patterns.features import PatternExtractor
    >>> from treelens.patterns.vocabulary import PatternVocabulary
    >>> graphs = make_random_graphs(3, random_state=0)
    >>> extractor = PatternExtractor(PatternVocabulary.fit(graphs, 2)[0], 0, "wasserstein")
    >>> bins = RandomBinning(64, seed=0, kernel="laplacian", gamma=1.0)
    >>> mapped = bins.transform(extractor.features(graphs))
    >>> mapped.shape == (3, 64 * bins.n_buckets), mapped.nnz
    (True, 192)
    """

    n_components: int
    seed: int
    kernel: str
    gamma: float
    offset: float = 1.0
    weights: np.ndarray | None = None
    n_buckets: int = 4096

    def __post_init__(self) -> None:
        check_kernel(self.kernel, RANDOM_KERNELS, "random bins")
        if self.n_components < 1:
            raise ValueError(f"n_components must be at least 1, got {self.n_components}.")
        if self.n_buckets < 1 or self.n_buckets & (self.n_buckets - 1):
            raise ValueError(f"n_buckets must be a power of two, got {self.n_buckets}.")
        if self.n_features >= 2**31:
            raise ValueError(
                f"{self.n_components} grids of {self.n_buckets} buckets are {self.n_features} "
                "features; a sparse matrix numbers fewer than 2**31. Use fewer buckets or grids."
            )

    @property
    def n_features(self) -> int:
        """Columns of the features, nearly all of them empty."""
        return self.n_components * self.n_buckets

    def transform(self, features: Features, n_jobs: int = 1) -> sparse.csr_array:
        """Sparse features of graphs, shape (n_graphs, n_features), ``n_components`` in every row.

        Every grid has columns of its own, so the columns of a row are distinct and ascending.
        """
        columns = self.columns(features, n_jobs)
        heights = self.row_factors(features) / np.sqrt(self.n_components)
        n_graphs, n_grids = columns.shape
        entries = (np.repeat(heights, n_grids), columns.ravel(), row_offsets(n_graphs, n_grids))
        return sparse.csr_array(entries, shape=(n_graphs, self.n_features))

    def columns(self, features: Features, n_jobs: int = 1) -> np.ndarray:
        """The column of every graph on every grid, int32 of shape (n_graphs, n_components)."""
        rows, amounts = features.pairs.rows, self.amounts(features)
        columns = np.empty((len(rows), self.n_components), dtype=np.int32)

        def fill(first: int) -> None:
            last = min(first + _GRAPHS_AT_ONCE, len(rows))
            compiled.fill_bin_columns(
                first, last, self.seed, rows.offsets, rows.indices, amounts, self.n_buckets, columns
            )

        in_threads(fill, range(0, len(rows), _GRAPHS_AT_ONCE), n_jobs)
        return columns

    def amounts(self, features: Features) -> np.ndarray:
        """The entries by graph at the scale of the grids, on which distances are ``gamma d``."""
        rows = features.pairs.rows
        weights = 1.0 if self.weights is None else self.weights[rows.indices]
        return 0.5 * self.gamma * weights * rows.values

    def row_factors(self, features: Features) -> np.ndarray:
        """What a graph's features are multiplied by, shape (n_graphs,)."""
        return row_factors(features, self.kernel, self.gamma, self.offset, self.weights)

    def path_terms(
        self, features: Features, coefficients: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """How a linear model's decision on one graph comes about while all amounts grow together.

        At ``t`` from 0 to 1 the amounts are ``t`` times the graph's. A pattern that crosses into
        its next interval changes the bin, and the change of the decision is its own. The factor
        of the kernel wwl grows too; a pattern has its share in the growth of the exponent.

        Returns
        -------
        starts : ndarray, shape (n_outputs,)
            Decision values at 0, without intercepts.
        terms : ndarray, shape (n_outputs, n_entries)
            For every entry of the graph's row; with ``starts`` they add up to the decision.
        """
        amounts = self.amounts(features)
        total = float(amounts.sum())
        self._check_crossings(total)
        growth = total if self.kernel == "wwl" else 0.0
        start = float(self.row_factors(features)[0]) * np.exp(-growth) / np.sqrt(self.n_components)
        crossings = self._crossings(features.pairs.rows.indices, amounts)
        terms = np.zeros((len(coefficients), len(amounts)))
        for own, jumps in zip(coefficients, terms, strict=True):
            growths = np.zeros(1)
            compiled.bin_path_terms(*crossings, growth, self.n_buckets, own, jumps, growths)
            jumps += growths * amounts / max(total, np.finfo(float).tiny)
        return start * coefficients[:, :: self.n_buckets].sum(axis=1), start * terms

    def _check_crossings(self, total: float) -> None:
        """There are about as many crossings per grid as there is amount, at rate one."""
        if not total * self.n_components <= _MOST_CROSSINGS:
            raise ValueError(
                f"The decision cannot be explained: at gamma={self.gamma:g} its path has about "
                f"{total * self.n_components:.3g} steps, more than {_MOST_CROSSINGS:,}. Fit with a "
                "smaller gamma, or with approximation='nystroem'."
            )

    def _crossings(self, patterns: np.ndarray, amounts: np.ndarray) -> Crossings:
        """All crossings of the path, sorted by grid, then time."""
        given = self.seed, self.n_components, patterns, amounts
        n = compiled.bin_crossings(*given, *_room_for_crossings(0))
        found = _room_for_crossings(n)
        compiled.bin_crossings(*given, *found)
        order = np.lexsort((found.times, found.grids))
        return Crossings(*(part[order] for part in found))


class Crossings(NamedTuple):
    """Boundaries that a graph's amounts cross as they grow; all of shape (n_crossings,)."""

    grids: np.ndarray
    times: np.ndarray  # from 0 to 1
    entries: np.ndarray  # which pattern of the graph's row
    changes: np.ndarray  # uint64, of the bin's name


def _room_for_crossings(n: int) -> Crossings:
    grids, entries = np.empty((2, n), dtype=np.int64)
    return Crossings(grids, np.empty(n), entries, np.empty(n, dtype=np.uint64))


def row_offsets(n_graphs: int, n_grids: int) -> np.ndarray:
    """Where the entries of every graph start, shape (n_graphs + 1,)."""
    return as_narrow_as_they_fit(np.arange(n_graphs + 1, dtype=np.int64) * n_grids)


def buckets_for(n_graphs: int, n_grids: int) -> int:
    """Buckets per grid for training graphs, a power of two."""
    most = max(_MOST_BUCKETS // n_grids, _LEAST_PER_GRID)
    wanted = min(max(n_graphs, _LEAST_PER_GRID), most)
    return int(2 ** np.floor(np.log2(wanted)))
