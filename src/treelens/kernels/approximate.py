"""Explicit features whose dot products are, or come near, the kernels: cost linear in the graphs.

============  ===============================  =================================================
map           kernels                          how near
============  ===============================  =================================================
random bins   laplacian, wwl                   unbiased, error of order 1 / sqrt(n_components)
Nyström       all                              exact on the span of the landmarks
unary         wl-oa, wwl-linear, wl-subtree,   exact
              wl-subtree-cosine
============  ===============================  =================================================

Random bins are in :mod:`treelens.kernels.binning`. A pattern outside the vocabulary would have
draws of its own; their expectation, a factor ``exp(-gamma frequency / 2)``, is known.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.linalg import eigh

from treelens.kernels import _compiled_approximate as compiled
from treelens.kernels.table import KERNELS, UNARY_KERNELS, check_kernel
from treelens.kernels.weighted import WeightedKernel
from treelens.patterns.features import Features
from treelens.patterns.pairs import PairFeatures

# Directions of the landmarks' kernel below this share of the largest are rounding, not structure.
_LEAST_EIGENVALUE = 1e-12


def row_factors(
    features: Features, kernel: str, gamma: float, offset: float, weights: np.ndarray | None
) -> np.ndarray:
    """From ``exp(-gamma d)`` over known patterns to the kernel itself, shape (n_graphs,)."""
    known = features.pairs.diagonal(weights)
    if kernel == "laplacian":
        return np.exp(-0.5 * gamma * np.maximum(features.diagonal - known, 0.0))
    return np.exp(0.5 * gamma * (known - offset))


@dataclass(frozen=True)
class NystroemFeatures:
    """Kernel values with landmark graphs, whitened.

    Attributes
    ----------
    landmarks : Features
    kernel : WeightedKernel
    whitening : ndarray, shape (n_landmarks, n_components)
        A root of the pseudo-inverse of the landmarks' kernel matrix.
    """

    landmarks: Features
    kernel: WeightedKernel
    whitening: np.ndarray

    @classmethod
    def fit(cls, landmarks: Features, kernel: WeightedKernel, n_jobs: int = 1) -> NystroemFeatures:
        """Features that reproduce the kernel on the landmarks."""
        check_kernel(kernel.name, tuple(KERNELS), "Nyström features")
        return cls(landmarks, kernel, whitening_of(kernel.matrix(landmarks, n_jobs=n_jobs)))

    def transform(self, features: Features, n_jobs: int = 1) -> np.ndarray:
        """Features of graphs, shape (n_graphs, n_components)."""
        return self.kernel.matrix(features, self.landmarks, n_jobs) @ self.whitening


def whitening_of(kernel: np.ndarray) -> np.ndarray:
    """``R`` with ``R R^T`` the pseudo-inverse of a kernel matrix, shape (n, rank)."""
    values, vectors = eigh(kernel)
    keep = values > _LEAST_EIGENVALUE * max(float(values[-1]), np.finfo(float).tiny)
    return vectors[:, keep] / np.sqrt(values[keep])


@dataclass(frozen=True)
class UnaryFeatures:
    """Exact sparse features of the kernels that are sums over patterns.

    A minimum is an inner product of step functions: ``min(a, b)`` is the length that the intervals
    ``[0, a]`` and ``[0, b]`` share. Cutting at the values that training graphs have makes the steps
    few: one feature per pattern and distinct value. The product of a new graph's features with a
    training graph's is the kernel exactly; that of two new graphs need not be. Products of counts
    are inner products as they stand.

    Attributes
    ----------
    kernel : {"wl-oa", "wwl-linear", "wl-subtree", "wl-subtree-cosine"}
    weights : ndarray, shape (n_patterns,), or None
    threshold_offsets : ndarray of int64, shape (n_patterns + 1,)
    thresholds : ndarray
        Distinct weighted values of each pattern, ascending.
    """

    kernel: str
    weights: np.ndarray | None
    threshold_offsets: np.ndarray
    thresholds: np.ndarray

    @classmethod
    def fit(
        cls, features: Features, kernel: str, weights: np.ndarray | None = None
    ) -> UnaryFeatures:
        """Find the distinct values of every pattern."""
        check_kernel(kernel, UNARY_KERNELS, "unary features")
        pairs = features.pairs
        if not pairs.minimum:
            return cls(kernel, weights, np.arange(pairs.n_patterns + 1), np.ones(pairs.n_patterns))
        values = _weighted(pairs, weights)
        order = np.lexsort((values, pairs.rows.indices))
        pattern, value = pairs.rows.indices[order], values[order]
        new = np.ones(len(order), dtype=bool)
        new[1:] = (np.diff(pattern) != 0) | (np.diff(value) > 0)
        new &= value > 0
        counts = np.bincount(pattern[new], minlength=pairs.n_patterns)
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        return cls(kernel, weights, offsets, value[new])

    @property
    def n_components(self) -> int:
        return len(self.thresholds)

    def transform(self, features: Features, n_jobs: int = 1) -> sparse.csr_array:
        """Sparse features of graphs, shape (n_graphs, n_components)."""
        pairs = features.pairs
        values = _weighted(pairs, self.weights)
        if not pairs.minimum:
            if self.kernel == "wl-subtree-cosine":
                norms = np.sqrt(np.maximum(features.diagonal, np.finfo(float).tiny))
                values = values / np.repeat(norms, np.diff(pairs.rows.offsets))
            shape = (pairs.n_graphs, pairs.n_patterns)
            offsets = as_narrow_as_they_fit(pairs.rows.offsets)
            return sparse.csr_array((values, pairs.rows.indices, offsets), shape=shape)
        return self._steps(pairs, values)

    def _steps(self, pairs: PairFeatures, values: np.ndarray) -> sparse.csr_array:
        places = (pairs.rows.indices, values, self.threshold_offsets, self.thresholds)
        counts = np.empty(len(values), dtype=np.int64)
        compiled.count_unary(*places, counts)
        ends = entry_ends(counts)
        columns = np.empty(ends[-1], dtype=np.int32)
        entries = np.empty(ends[-1])
        compiled.fill_unary(*places, ends[:-1], columns, entries)
        shape = (pairs.n_graphs, self.n_components)
        offsets = as_narrow_as_they_fit(ends[pairs.rows.offsets])
        return sparse.csr_array((entries, columns, offsets), shape=shape)


def entry_ends(counts: np.ndarray) -> np.ndarray:
    """Where the features of every entry start, and the last end: int64, shape (n_entries + 1,)."""
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]).astype(np.int64)


def as_narrow_as_they_fit(offsets: np.ndarray) -> np.ndarray:
    """Ascending int64 offsets in 32 bits, which is what liblinear takes, if the last one fits.

    Examples
    --------
    >>> [as_narrow_as_they_fit(np.array([0, end])).dtype.name for end in (2**31 - 1, 2**31)]
    ['int32', 'int64']
    """
    return offsets.astype(np.int32) if offsets[-1] < 2**31 else offsets


def _weighted(pairs: PairFeatures, weights: np.ndarray | None) -> np.ndarray:
    """Entries by graph with the weights inside: ``w min(a, b) = min(w a, w b)``."""
    if weights is None:
        return pairs.rows.values
    factors = weights if pairs.minimum else np.sqrt(weights)
    return pairs.rows.values * factors[pairs.rows.indices]
