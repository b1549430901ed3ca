"""Sums of pair features over all pairs of graphs, and the mixture kernel that is made of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial import distance

from treelens.array_checks import check_positive
from treelens.kernels import _compiled
from treelens.parallel import in_threads
from treelens.patterns.histograms import Features, PairFeatures

# Gradients are summed in this many shares, in order, whatever the number of threads: so they are
# the same, bit for bit, for every n_jobs.
N_SHARES = 8
# Patterns in more than this share of the graphs are kept as dense columns; at most so many.
_DENSE_SHARE = 0.125
_MOST_DENSE = 1024
_TILE = 128  # two of them fit into a cache
_BLOCK = 32_768  # numbers of the mixture kernel that are worked on at a time
_FASTEST_DECAY = 1e6  # beyond, rounding of the sums would decide; learned ones are far smaller


class PairLists(NamedTuple):
    """Pair features laid out for the compiled loops."""

    row_offsets: np.ndarray  # (n_left + 1,) patterns of each left graph ...
    row_patterns: np.ndarray  # ... ascending
    row_values: np.ndarray
    list_offsets: np.ndarray  # (n_patterns + 1,) right graphs of each pattern ...
    list_graphs: np.ndarray  # ... ascending
    list_values: np.ndarray
    dense_of_pattern: np.ndarray  # (n_patterns,) row of `dense`, or -1
    dense: np.ndarray  # (n_dense, n_right) values of the most common patterns
    minimum: bool

    @classmethod
    def of(
        cls, left: PairFeatures, right: PairFeatures, weights: np.ndarray | None = None
    ) -> PairLists:
        """Lay two sides out, with weights (n_patterns,) in their values."""
        rows, lists, minimum = left.rows, right.lists, bool(left.minimum)
        row_values, list_values = rows.values, lists.values
        if weights is not None:
            factors = weights if minimum else np.sqrt(weights)  # a product takes one from each side
            row_values = row_values * factors[rows.indices]
            list_values = list_values * np.repeat(factors, np.diff(lists.offsets))
        support = np.diff(lists.offsets)
        common = np.flatnonzero(support > _DENSE_SHARE * right.n_graphs)
        if len(common) > _MOST_DENSE:
            heaviest = np.argsort(-support[common], kind="stable")[:_MOST_DENSE]
            common = np.sort(common[heaviest])
        dense_of_pattern = np.full(len(lists), -1, dtype=np.int32)
        dense_of_pattern[common] = np.arange(len(common), dtype=np.int32)
        dense = np.zeros((max(1, len(common)), right.n_graphs))
        for row, pattern in enumerate(common):
            entries = slice(lists.offsets[pattern], lists.offsets[pattern + 1])
            dense[row, lists.indices[entries]] = list_values[entries]
        return cls(
            rows.offsets,
            rows.indices,
            row_values,
            lists.offsets,
            lists.indices,
            list_values,
            dense_of_pattern,
            dense,
            minimum,
        )

    def heads(self) -> np.ndarray:
        """Return where in each list the compiled loops begin."""
        return self.list_offsets[:-1].copy()


def pair_sums(
    left: PairFeatures,
    right: PairFeatures | None = None,
    weights: np.ndarray | None = None,
    *,
    n_jobs: int = 1,
    out: np.ndarray | None = None,
    upper: bool = False,
    offset: float = np.nan,
) -> np.ndarray:
    """Return ``<W, Z(i, j)>`` for all pairs, shape (n_left, n_right).

    ``right=None`` pairs ``left`` with itself and computes one half only; with ``upper`` the other
    is not filled. ``weights`` are not negative. The number of threads changes no bit. With an
    ``offset`` the result is the distances ``max(0, offset - <W, Z(i, j)>)``.
    """
    target = left if right is None else right
    if target.n_patterns != left.n_patterns or target.minimum != left.minimum:
        raise ValueError("Both sides must have the same patterns and the same kind of feature.")
    if weights is not None and weights.shape != (left.n_patterns,):
        raise ValueError(
            f"There are {left.n_patterns} patterns; weights has shape {weights.shape}."
        )
    shape = (left.n_graphs, target.n_graphs)
    sums = np.empty(shape) if out is None else out
    if sums.shape != shape or sums.dtype != np.float64 or not sums.flags.c_contiguous:
        raise ValueError(f"out must be a C-contiguous float64 array of shape {shape}.")
    lists = PairLists.of(left, target, weights)
    interleaved(
        lambda k, step: _compiled.sum_rows(
            k,
            left.n_graphs,
            step,
            0,
            right is None,
            *lists,
            left.scale,
            target.scale,
            lists.heads(),
            sums,
            offset,
        ),
        n_jobs,
    )
    return sums if upper or right is not None else mirrored(sums, n_jobs)


def gather_pairs(matrix: np.ndarray, lists: PairLists, n_jobs: int = 1) -> np.ndarray:
    """Return ``sum_{i <= j} matrix[i, j] combine(a_iv, a_jv)`` of every pattern ``v``."""
    # `matrix` (n_graphs, n_graphs); the lists are those of one collection with itself.
    gradients = np.zeros((N_SHARES, len(lists.dense_of_pattern)))

    def gather(k: int) -> None:
        _compiled.gather_rows(
            k,
            len(matrix),
            N_SHARES,
            0,
            matrix,
            *lists,
            lists.heads(),
            np.empty((2, _compiled.LANES)),
            gradients[k],
        )

    in_threads(gather, range(N_SHARES), n_jobs)
    return gradients.sum(axis=0)


def mirrored(matrix: np.ndarray, n_jobs: int = 1) -> np.ndarray:
    """Copy the upper half of a square matrix into the lower, in place."""
    tiles = [slice(start, start + _TILE) for start in range(0, len(matrix), _TILE)]

    def fill(k: int) -> None:
        rows = tiles[k]
        matrix[rows, rows] = np.triu(matrix[rows, rows]) + np.triu(matrix[rows, rows], 1).T
        for columns in tiles[:k]:
            matrix[rows, columns] = matrix[columns, rows].T

    in_threads(fill, range(len(tiles)), n_jobs)
    return matrix


def normalize_kernel(
    kernel: np.ndarray, left_diagonal: np.ndarray, right_diagonal: np.ndarray, how: str | None
) -> np.ndarray:
    """Normalise in place and return a kernel matrix (n_left, n_right).

    ``"cosine"``: ``k(x, y) / sqrt(k(x, x) k(y, y))``. ``"tanimoto"`` (also called min-max on
    intersections of counts): ``k(x, y) / (k(x, x) + k(y, y) - k(x, y))``. Two graphs that share
    nothing, empty ones included, get 0. None: no normalisation.
    """
    if how is None:
        return kernel
    if how not in ("cosine", "tanimoto"):
        raise ValueError(f"normalize must be None, 'cosine' or 'tanimoto', got {how!r}.")
    for row, own in zip(kernel, left_diagonal, strict=True):  # row by row: no second matrix
        # Both are symmetric in the two graphs to the last bit, and so is the result.
        norm = np.sqrt(own * right_diagonal) if how == "cosine" else own + right_diagonal - row
        np.divide(row, norm, out=row, where=norm > 0)
    return kernel


def interleaved(work: Callable[[int, int], Any], n_jobs: int) -> None:
    """Run ``work(k, n_jobs)`` for every thread ``k``: rows k, k + n_jobs, ... are its share."""
    n_jobs = max(n_jobs, 1)
    in_threads(lambda k: work(k, n_jobs), range(n_jobs), n_jobs)


# --- the kernel of the Gaussian process: a mixture of Tanimoto similarity and L1 distance ---------
# `k = amplitude (share exp(-gamma (1 - T)) + (1 - share) exp(-rho D))`, with `T` the weighted
# Tanimoto similarity of pattern counts and `D` their weighted L1 distance. Both parts are positive
# semidefinite: `T` is, hence `exp(gamma T)`, and `D` is an L1 distance.


@dataclass(frozen=True)
class MixtureScales:
    """Parameters of the mixture kernel."""

    gamma: float  # inverse length scale of the Tanimoto part
    rho: float  # inverse length scale of the L1 part
    amplitude: float  # k(G, G), the variance of the Gaussian process
    share: float  # of the Tanimoto part, from 0 to 1

    def validate(self) -> None:
        check_positive(self.amplitude, "amplitude")
        for name, most in (("gamma", _FASTEST_DECAY), ("rho", _FASTEST_DECAY), ("share", 1.0)):
            check_positive(getattr(self, name), name, most, zero=True)

    def as_tuple(self) -> tuple[float, float, float, float]:
        return self.gamma, self.rho, self.amplitude, self.share


@dataclass(frozen=True)
class CovariateScales:
    """Parameters of the kernel of covariates, ``amplitude exp(-|x - x'|^2 / (2 length^2))``."""

    amplitude: float
    length: float  # covariates are standardised

    def validate(self) -> None:
        check_positive(self.amplitude, "amplitude", zero=True)
        check_positive(self.length, "length")

    def matrix(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Kernel values between covariates (n_left, d) and (n_right, d)."""
        return self.of_squares(distance.cdist(left, right, "sqeuclidean"))

    def of_squares(self, squares: np.ndarray) -> np.ndarray:
        """Overwrite squared distances with kernel values."""
        squares *= -0.5 / self.length**2
        np.exp(squares, out=squares)
        squares *= self.amplitude
        return squares


def mixture_kernel(
    scales: MixtureScales,
    sums: np.ndarray,
    left_diagonal: np.ndarray,
    right_diagonal: np.ndarray,
    *,
    out: np.ndarray | None = None,
    upper: bool = False,
    covariates: Covariates | None = None,
    kept: Kept | None = None,
    n_jobs: int = 1,
) -> np.ndarray:
    """Turn weighted sums of minima (n_left, n_right) into kernel values.

    The diagonals are the sums of each graph with itself. Without ``out`` the sums are overwritten;
    with ``upper`` only the upper triangle is filled. ``covariates`` are the scales of a kernel to
    add, and squared distances (n_left, n_right). What slopes need again is put into ``kept``.
    """
    out = sums if out is None else out

    def fill(rows: slice) -> None:
        columns = slice(rows.start if upper else 0, None)
        block = MixtureBlock.of(
            scales, sums, left_diagonal, right_diagonal, rows, columns, covariates, kept
        )
        values, scratch = out[rows, columns], block.scratch
        np.multiply(block.near, scales.amplitude * scales.share, out=values)
        np.multiply(block.far, scales.amplitude * (1.0 - scales.share), out=scratch)
        values += scratch
        if covariates is not None:
            values += block.beside

    in_threads(fill, row_blocks(*sums.shape), n_jobs)
    return out


def row_blocks(n_rows: int, n_columns: int) -> list[slice]:
    """Return blocks of rows that are small enough to stay in the cache."""
    step = max(1, _BLOCK // max(n_columns, 1))
    return [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]


class MixtureBlock(NamedTuple):
    """What the kernel values of some pairs are made of, arrays of one shape."""

    union: np.ndarray  # left + right - sums, or one where both graphs are empty
    tanimoto: np.ndarray
    gap: np.ndarray  # minus the L1 distance
    near: np.ndarray  # exp(-gamma (1 - tanimoto))
    far: np.ndarray  # exp(-rho distance)
    beside: np.ndarray  # the kernel of covariates, where there are any
    scratch: np.ndarray

    @classmethod
    def of(
        cls,
        scales: MixtureScales,
        sums: np.ndarray,
        left_diagonal: np.ndarray,
        right_diagonal: np.ndarray,
        rows: slice,
        columns: slice,
        covariates: Covariates | None,
        kept: Kept | None,
    ) -> MixtureBlock:
        sums, left, right = sums[rows, columns], left_diagonal[rows], right_diagonal[columns]
        # One array for all: the allocator would return several large ones to the system each time.
        block = (kept or {}).get(rows.start)
        block = block or cls(*np.empty((len(cls._fields), *sums.shape)))
        if kept is not None:
            kept[rows.start] = block
        union, tanimoto, gap, near, far, beside, _ = block
        np.add(left[:, None], right, out=union)
        union -= sums
        np.subtract(sums, union, out=gap)
        np.minimum(gap, 0.0, out=gap)
        empty = None if left.min() > 0.0 else union <= 0.0
        if empty is not None:
            union[empty] = 1.0
        np.divide(sums, union, out=tanimoto)
        if empty is not None:  # two graphs without any pattern are the same graph
            tanimoto[empty] = 1.0
        np.subtract(tanimoto, 1.0, out=near)
        near *= scales.gamma
        np.exp(near, out=near)
        np.multiply(gap, scales.rho, out=far)
        np.exp(far, out=far)
        if covariates is not None:
            beside[...] = covariates[1][rows, columns]
            covariates[0].of_squares(beside)
        return block


Covariates = tuple[CovariateScales, np.ndarray]  # with squared distances (n_left, n_right)
Kept = dict[int, MixtureBlock]  # by the number of the first row


class MixtureSlopes(NamedTuple):
    """Derivatives of an objective in what the mixture kernel is made of."""

    own: np.ndarray  # (n,) in each graph's sum with itself
    scales: np.ndarray  # (4,) in log gamma, log rho, log amplitude and the share
    covariates: np.ndarray  # (2,) in log amplitude and log length; zeros without covariates


def mixture_slopes(
    scales: MixtureScales,
    sums: np.ndarray,
    diagonal: np.ndarray,
    inverse: np.ndarray,
    alpha: np.ndarray,
    *,
    covariates: Covariates | None = None,
    kept: Kept | None = None,
    n_jobs: int = 1,
) -> MixtureSlopes:
    """Return derivatives of the log marginal likelihood, with the sign changed.

    For a pair ``i < j`` the derivative in the kernel value, both places in the matrix counted, is
    ``inverse_ij - mean over columns of alpha_i alpha_j``.

    ``inverse`` (n, n) is the upper triangle of the inverse covariance, overwritten with the
    derivatives in the sums; ``alpha`` (n, n_columns) is ``inverse @ targets``. ``kept`` is what
    :func:`mixture_kernel` put there for the same parameters; it is used up.
    """

    def slopes_of(rows: slice) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        columns = slice(rows.start, None)
        block = (kept or {}).get(rows.start) or MixtureBlock.of(
            scales, sums, diagonal, diagonal, rows, columns, covariates, None
        )
        union, tanimoto, gap, near, far, beside, scratch = block
        pull = inverse[rows, columns]
        pull -= np.matmul(alpha[rows] / alpha.shape[1], alpha[columns].T, out=scratch)
        n_rows = rows.stop - rows.start
        np.copyto(pull[:, :n_rows], 0.0, where=np.tri(n_rows, dtype=bool))
        in_covariates = np.zeros(2)
        if covariates is not None:
            beside *= pull
            by_length = np.vdot(beside, covariates[1][rows, columns]) / covariates[0].length ** 2
            in_covariates[:] = beside.sum(), by_length
        near *= pull
        far *= pull
        near_total, far_total = near.sum(), far.sum()
        similarity, distance = np.vdot(near, tanimoto), -np.vdot(far, gap)
        near *= scales.amplitude * scales.share * scales.gamma
        far *= scales.amplitude * (1.0 - scales.share) * scales.rho
        near /= union
        # dT/dS = (1 + T) / union, dT/ds = -T / union; dD/dS = -2, dD/ds = 1
        np.multiply(near, tanimoto, out=tanimoto)
        near += tanimoto
        near += far
        np.add(near, far, out=pull)
        tanimoto += far
        totals = scales.amplitude * np.array(
            [
                scales.share * scales.gamma * (similarity - near_total),
                -(1.0 - scales.share) * scales.rho * distance,
                scales.share * near_total + (1.0 - scales.share) * far_total,
                near_total - far_total,
            ]
        )
        return -tanimoto.sum(axis=1), -tanimoto.sum(axis=0), totals, in_covariates

    blocks = row_blocks(*sums.shape)
    own, totals, in_covariates = np.zeros(len(sums)), np.zeros(4), np.zeros(2)
    for rows, found in zip(blocks, in_threads(slopes_of, blocks, n_jobs), strict=True):
        own[rows] += found[0]
        own[rows.start :] += found[1]
        totals += found[2]
        in_covariates += found[3]
    return MixtureSlopes(own, totals, in_covariates)


@dataclass(frozen=True)
class MixtureKernel:
    """The kernel of a fitted Gaussian process."""

    weights: np.ndarray  # (n_patterns,)
    scales: MixtureScales
    covariates: CovariateScales | None = None  # of a kernel of covariates that is added

    @property
    def variance(self) -> float:
        """The kernel of any graph with itself."""
        return self.scales.amplitude + (self.covariates.amplitude if self.covariates else 0.0)

    def matrix(self, left: Features, right: Features, n_jobs: int = 1) -> np.ndarray:
        """Kernel values between two sides, shape (n_left, n_right)."""
        other = None if left is right else right.pairs  # among themselves: half the work
        sums = pair_sums(left.pairs, other, self.weights, n_jobs=n_jobs)
        kernel = mixture_kernel(self.scales, sums, left.diagonal, right.diagonal, n_jobs=n_jobs)
        if self.covariates is not None:
            kernel += self.covariate_matrix(left, right)
        return kernel

    def covariate_matrix(self, left: Features, right: Features) -> np.ndarray:
        """The kernel of the covariates alone."""
        assert self.covariates is not None
        assert left.covariates is not None
        assert right.covariates is not None
        return self.covariates.matrix(left.covariates, right.covariates)
