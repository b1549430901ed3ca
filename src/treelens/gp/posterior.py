"""The exact posterior of a Gaussian process, and each training graph left out of it, with scores.

One Cholesky factor, for up to some ten thousand graphs; beyond, through landmarks:
:mod:`treelens.gp.landmarks`. To LAPACK, which is Fortran, the transpose of a C-ordered matrix whose
upper triangle counts is one whose lower triangle does; no other part is read or written.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.linalg import blas, lapack

from treelens.evaluation.metrics import NINETY, number_scores
from treelens.kernels.mixture import row_blocks
from treelens.maps import TargetMap
from treelens.models.predictions import Threshold, calibrated, choose_threshold
from treelens.parallel import blas_threads

if TYPE_CHECKING:
    from treelens.gp.model import FittedGP

# Relative to the amplitude; keeps the matrix definite where graphs repeat and noise vanishes.
JITTER = 1e-9
_LARGE = 1500  # rows; of a smaller matrix a second thread mostly waits for the first
_SMALL = 64  # rows; a smaller triangle is inverted at once
_LOWER = np.tri(_SMALL, dtype=bool)
_MANY = 128  # new graphs, for which rounding the factor pays
_LEADING = 400  # rows of the factor that are not rounded
_PANEL = 256  # columns of the factor that are rounded at a time
# Largest relative error of sums of squares in float32: some eight units in the last place, where
# half a unit is usual.
_ROUNDING = 1e-6
_TOLERATED = 5e-6  # relative error of standard deviations
# ScaledTargets that differ by less than this part of their size are constant.
_CONSTANT = 1e-12
_FEWEST_GROUPS = 10  # that a quantile of their errors is taken from


def _threads(matrix: np.ndarray, n_jobs: int) -> AbstractContextManager[None]:
    return blas_threads(n_jobs if len(matrix) >= _LARGE else 1)


class NotPositiveDefiniteError(ValueError):
    """The matrix has no Cholesky factor: rounding left it without full rank."""

    def __init__(self) -> None:
        super().__init__("The covariance is not positive definite: the noise is too small.")


def cholesky_in_place(matrix: np.ndarray, n_jobs: int = 1) -> np.ndarray:
    """Overwrite the upper triangle with ``U``, where ``U.T @ U`` is the matrix."""
    factored = lapack.dpotrf if matrix.dtype == np.float64 else lapack.spotrf
    with _threads(matrix, n_jobs):
        _, failed = factored(matrix.T, lower=1, clean=0, overwrite_a=1)
    if failed:
        raise NotPositiveDefiniteError
    return matrix


def inverse_in_place(factor: np.ndarray, n_jobs: int = 1) -> np.ndarray:
    """Overwrite the upper triangle of a factor ``U`` with that of ``inv(U.T @ U)``."""
    triangle = inverse_of_triangle(factor, n_jobs)
    multiplied = lapack.dlauum if factor.dtype == np.float64 else lapack.slauum
    with _threads(factor, n_jobs):
        multiplied(triangle.T, lower=1, overwrite_c=1)
    return triangle


def inverse_of_triangle(factor: np.ndarray, n_jobs: int = 1) -> np.ndarray:
    """Overwrite the upper triangle of ``U`` with that of ``inv(U)``."""
    with _threads(factor, n_jobs):
        _invert_lower(factor.T)
    return factor


def squares_of_rows(triangle: np.ndarray) -> np.ndarray:
    """Return the sums of squares of each row of an upper triangle: the diagonal of ``T @ T.T``."""
    found = np.empty(len(triangle))
    for rows in row_blocks(*triangle.shape):
        block = np.triu(triangle[rows, rows.start :])
        found[rows] = np.einsum("ij,ij->i", block, block)
    return found


def _invert_lower(lower: np.ndarray) -> None:
    """Invert a lower triangle in place, by halves: LAPACK is slow where a matrix is not large."""
    double, n = lower.dtype == np.float64, len(lower)
    if n <= _SMALL:
        found, _ = (lapack.dtrtri if double else lapack.strtri)(lower, lower=1)
        np.copyto(lower, found, where=_LOWER[:n, :n])
        return
    first, last = slice(0, n // 2), slice(n // 2, n)
    solve, multiply = (blas.dtrsm, blas.dtrmm) if double else (blas.strsm, blas.strmm)
    half = solve(-1.0, lower[last, last], lower[last, first], lower=1)
    _invert_lower(lower[first, first])
    lower[last, first] = multiply(1.0, lower[first, first], half, side=1, lower=1, overwrite_b=1)
    _invert_lower(lower[last, last])


def solve_factored(factor: np.ndarray, right: np.ndarray, n_jobs: int = 1) -> np.ndarray:
    """Return ``inv(U.T @ U) @ right`` for ``right`` of shape (n, p)."""
    solved = lapack.dpotrs if factor.dtype == np.float64 else lapack.spotrs
    with _threads(factor, n_jobs):
        return solved(factor.T, right, lower=1)[0]


def solve_upper(
    factor: np.ndarray, right: np.ndarray, *, transposed: bool, n_jobs: int = 1
) -> np.ndarray:
    """Return ``inv(U.T) @ right`` or, if not ``transposed``, ``inv(U) @ right``."""
    single = factor.dtype == right.dtype == np.float32
    solved = blas.strsm if single else blas.dtrsm
    with _threads(factor, n_jobs):
        return solved(1.0, factor.T, right, lower=1, trans_a=0 if transposed else 1)


def _mostly_single(
    factor: np.ndarray, kernel: np.ndarray, n_jobs: int
) -> tuple[np.ndarray, np.ndarray]:
    """Squares of the rows of ``kernel @ inv(U)``, summed, and what float32 added to the sums.

    The first columns, in float64, take up what all graphs have in common, which is most of it: the
    rounding of the others is relative to the rest.
    """
    lead, n = _LEADING, len(factor)
    own = np.ascontiguousarray(factor[:lead, :lead])
    first = solve_upper(own, kernel[:, :lead].T, transposed=True).T  # (n_new, lead)
    with blas_threads(n_jobs):
        solved = (kernel[:, lead:] - first @ factor[:lead, lead:]).astype(np.float32)
        for start in range(lead, n, _PANEL):
            done = start - lead
            panel = factor[lead : start + _PANEL, start : start + _PANEL].astype(np.float32)
            block = solved[:, done : done + _PANEL]
            block -= solved[:, :done] @ panel[:done]
            own = np.ascontiguousarray(panel[done:])
            block[:] = solve_upper(own, block.T, transposed=True, n_jobs=n_jobs).T
    rest = np.array([row @ row for row in solved.astype(np.float64)])
    return np.einsum("ij,ij->i", first, first) + rest, rest


def quadratic_forms(matrix: np.ndarray, rows: np.ndarray, n_jobs: int = 1) -> np.ndarray:
    """Return ``row @ matrix @ row`` of a symmetric matrix for every row, shape (n,)."""
    with _threads(matrix, n_jobs):
        half = blas.dtrmm(1.0, matrix.T, rows.T)  # (m, n), from one triangle: half the work
    return 2.0 * np.einsum("ji,ij->i", half, rows) - rows**2 @ np.diagonal(matrix)


@dataclass(frozen=True, eq=False)
class ScaledTargets:
    """Targets centred and, if they are numbers, of unit size, with the way back."""

    values: np.ndarray  # (n_graphs, n_columns)
    offset: np.ndarray  # (n_columns,)
    scale: float
    weights: np.ndarray  # (n_graphs,) a graph's noise variance is divided by its weight
    # (n_graphs,) 1 where the value is a lower limit, -1 where it is an upper one, else 0.
    limits: np.ndarray | None = None

    @classmethod
    def standardized(
        cls, raw: np.ndarray, weights: np.ndarray, scale: float | None
    ) -> ScaledTargets:
        """Centre the columns of ``raw``; without a ``scale``, divide by their deviation."""
        offset = np.average(raw, axis=0, weights=weights)
        centred = raw - offset
        if scale is None:
            scale = float(np.sqrt(np.average((centred**2).mean(axis=1), weights=weights)))
        if scale <= _CONSTANT * float(np.abs(raw).max(initial=0.0)):  # rounding is no spread
            if np.ptp(raw) > 0.0:
                warnings.warn(
                    "The values of y differ by so little of their size that they are taken as "
                    "equal: subtract what they have in common, or give them in a smaller unit.",
                    UserWarning,
                    stacklevel=2,
                )
            return cls(np.zeros_like(centred), offset, 1.0, weights)
        return cls(centred / scale, offset, scale, weights)

    def alike(self, raw: np.ndarray, weights: np.ndarray) -> ScaledTargets:
        """Targets of other graphs, with the offset and the scale of these."""
        return ScaledTargets((raw - self.offset) / self.scale, self.offset, self.scale, weights)

    def select(self, indices: np.ndarray | slice) -> ScaledTargets:
        limits = None if self.limits is None else self.limits[indices]
        limits = limits if limits is not None and limits.any() else None
        values, weights = self.values[indices], self.weights[indices]
        return ScaledTargets(values, self.offset, self.scale, weights, limits)


def class_columns(codes: np.ndarray, n_classes: int) -> np.ndarray:
    """Classes as numbers: ±1 for two, else +1 against -1 / (n_classes - 1) in each column."""
    if n_classes == 2:
        return np.where(codes == 1, 1.0, -1.0)[:, None]
    columns = np.full((len(codes), n_classes), -1.0 / (n_classes - 1))
    columns[np.arange(len(codes)), codes] = 1.0
    return columns


class LeaveOneOut(NamedTuple):
    """Predictions of every training graph from all the others, in closed form."""

    mean: np.ndarray  # (n, n_columns)
    variance: np.ndarray  # (n,) of the target, noise included

    def of_measurements(self, used: np.ndarray, noise: np.ndarray) -> LeaveOneOut:
        """The same with the noise of measurements (n,) instead of that of sites that was used."""
        variance = np.maximum(self.variance - (used - noise), noise)
        return self._replace(variance=np.where(used == noise, self.variance, variance))


@dataclass(frozen=True, eq=False)
class ExactPosterior:
    """Means and variances from all training graphs; ``A`` is the covariance of the targets."""

    coefficients: np.ndarray  # (n, n_columns) inv(A) y
    factor: np.ndarray  # (n, n) upper triangular U, U.T @ U == A; not read below the diagonal

    @classmethod
    def fit(
        cls, kernel: np.ndarray, noise: np.ndarray, targets: np.ndarray, n_jobs: int = 1
    ) -> ExactPosterior:
        """Condition on targets of shape (n, n_columns); ``kernel`` (n, n) is overwritten."""
        factor = _factored(kernel, noise, n_jobs)
        return cls(solve_factored(factor, targets).astype(float, copy=False), factor)

    @property
    def targets(self) -> np.ndarray:
        """What it is conditioned on, ``A @ coefficients``: (n, n_columns)."""
        upper = np.triu(self.factor)
        return upper.T @ (upper @ self.coefficients)

    def log_evidence(self, targets: np.ndarray) -> float:
        """Log of the marginal likelihood, mean over columns, up to a constant."""
        fit = float((targets * self.coefficients).sum()) / targets.shape[1]
        return -0.5 * fit - float(np.log(np.diagonal(self.factor).astype(float)).sum())

    def reduction(
        self, kernel: np.ndarray, n_jobs: int = 1, prior: float | None = None
    ) -> np.ndarray:
        """How much the training graphs reduce the variance, from ``kernel`` (n_new, n).

        With the ``prior`` variance of a graph most of the work for many new graphs is in float32.
        Those where rounding could change the standard deviation that is left by more than 5e-6 of
        it are computed again.
        """
        if prior is None or len(kernel) < _MANY or len(self.factor) < _LARGE:
            half = solve_upper(self.factor, kernel.T, transposed=True, n_jobs=n_jobs)
            return np.einsum("ij,ij->j", half, half)
        found, rounded = _mostly_single(self.factor, kernel, n_jobs)
        again = 0.5 * _ROUNDING * rounded > _TOLERATED * (prior - found)
        if again.any():
            found[again] = self.reduction(kernel[again], n_jobs)
        return found

    def joint_reduction(self, kernel: np.ndarray, n_jobs: int = 1) -> np.ndarray:
        """How much the training graphs reduce the covariance, shape (n_new, n_new)."""
        half = solve_upper(self.factor, kernel.T, transposed=True, n_jobs=n_jobs)
        with blas_threads(n_jobs):
            return half.T @ half

    def extended(
        self,
        kernel: np.ndarray,
        among: np.ndarray,
        noise: np.ndarray,
        targets: np.ndarray,
        n_jobs: int = 1,
    ) -> ExactPosterior:
        """Condition on more graphs by adding rows to the Cholesky factor.

        ``kernel`` (n_more, n) is between these and those conditioned on before, ``among``
        (n_more, n_more) and ``noise`` (n_more,) are theirs; ``targets`` are of all graphs.
        """
        n = len(self.factor)
        factor = np.zeros((len(targets), len(targets)))
        factor[:n, :n] = np.triu(self.factor)
        factor[:n, n:] = solve_upper(self.factor, kernel.T, transposed=True, n_jobs=n_jobs)
        with blas_threads(n_jobs):
            left = among - factor[:n, n:].T @ factor[:n, n:]
        own = np.diag_indices_from(left)
        left[own] += JITTER * among[own] + noise
        factor[n:, n:] = np.triu(cholesky_in_place(left, n_jobs))
        return ExactPosterior(solve_factored(factor, targets, n_jobs), factor)

    def leave_one_out(
        self,
        targets: np.ndarray,
        n_jobs: int = 1,
        copies: np.ndarray | None = None,
        first: int = 0,
    ) -> LeaveOneOut:
        """Each training graph given all others but those that share its number in ``copies``.

        Of graphs from ``first`` on, whose copies are all among them: rows of ``inv(U)`` are those
        of the inverse of the last block, which is ``(n_last / n)**3`` of the work.
        """
        triangle = inverse_of_triangle(self.factor[first:, first:].copy(), n_jobs)

        def block(group: np.ndarray) -> np.ndarray:
            rows = np.where(np.arange(len(triangle)) >= group[:, None], triangle[group], 0.0)
            return rows @ rows.T

        left_out = targets[first:], self.coefficients[first:], squares_of_rows(triangle), block
        return left_out_given(*left_out, None if copies is None else copies[first:])


def left_out_given(
    targets: np.ndarray,
    coefficients: np.ndarray,
    precision: np.ndarray,
    block: Callable[[np.ndarray], np.ndarray],
    copies: np.ndarray | None,
) -> LeaveOneOut:
    """Leave-one-out predictions from the inverse covariance of the targets.

    ``precision`` (n,) is its diagonal, ``block(group)`` its rows and columns of some graphs.
    Replicates, which share a number in ``copies`` (n,), are left out together.
    """
    mean, variance = targets - coefficients / precision[:, None], 1.0 / precision
    if copies is None:
        return LeaveOneOut(mean, variance)
    _, numbers, sizes = np.unique(copies, return_inverse=True, return_counts=True)
    for number in np.flatnonzero(sizes > 1):
        group = np.flatnonzero(numbers == number)
        covariance = np.linalg.inv(block(group))
        mean[group] = targets[group] - covariance @ coefficients[group]
        variance[group] = np.diagonal(covariance)
    return LeaveOneOut(mean, variance)


class Conditioned(NamedTuple):
    """The exact posterior of targets, sites in the place of those that are limits."""

    posterior: ExactPosterior
    values: np.ndarray  # (n, n_columns) targets, or means of sites
    noise: np.ndarray  # (n,) variances, or those of sites
    measured: np.ndarray  # (n,) variances of the noise of measurements
    log_ratio: float  # to be added to the log marginal likelihood of the values

    @classmethod
    def fit(
        cls, targets: ScaledTargets, kernel: np.ndarray, noise: float, n_jobs: int = 1
    ) -> Conditioned:
        """Condition on targets; ``kernel`` (n, n) is overwritten."""
        measured, log_ratio = noise / targets.weights, 0.0
        values, used = targets.values, measured
        if targets.limits is not None:
            from treelens.gp.censoring import conditioned_on_limits

            values, used, log_ratio = conditioned_on_limits(targets, kernel, measured, n_jobs)
        posterior = ExactPosterior.fit(kernel, used, values, n_jobs)
        return cls(posterior, values, used, measured, log_ratio)

    @property
    def log_evidence(self) -> float:
        """Log of the marginal likelihood, up to a constant."""
        return self.posterior.log_evidence(self.values) + self.log_ratio

    def leave_one_out(
        self, n_jobs: int = 1, copies: np.ndarray | None = None, first: int = 0
    ) -> LeaveOneOut:
        """Predictions of each measurement from all others; see :class:`ExactPosterior`."""
        left_out = self.posterior.leave_one_out(self.values, n_jobs, copies, first)
        return left_out.of_measurements(self.noise[first:], self.measured[first:])


@dataclass(frozen=True, eq=False)
class MeanPosterior:
    """An exact posterior out of a file: enough for means and, with a rounded factor, variances."""

    coefficients: np.ndarray  # (n, n_columns)
    # (n (n + 1) / 2,) float32, the upper triangle of the factor row by row; None where it is not
    # kept, and computed again from the training graphs.
    rounded: np.ndarray | None = None

    @classmethod
    def of(cls, posterior: ExactPosterior, with_factor: bool) -> MeanPosterior:
        """Return what a file keeps."""
        rounded = packed_triangle(posterior.factor, np.float32) if with_factor else None
        return cls(posterior.coefficients, rounded)

    @cached_property
    def unpacked(self) -> ExactPosterior | None:
        """The posterior with the factor that is kept, rounded to seven digits."""
        if self.rounded is None:
            return None
        factor = unpacked_triangle(self.rounded, len(self.coefficients))
        return ExactPosterior(self.coefficients, factor)

    def completed(self, kernel: np.ndarray, noise: np.ndarray, n_jobs: int = 1) -> ExactPosterior:
        """With the factor that variances need; ``kernel`` (n, n) is overwritten."""
        return ExactPosterior(self.coefficients, _factored(kernel, noise, n_jobs))


def packed_triangle(matrix: np.ndarray, dtype: type) -> np.ndarray:
    """Return the upper triangle of a matrix row by row, shape (n (n + 1) / 2,)."""
    packed: np.ndarray = np.empty(len(matrix) * (len(matrix) + 1) // 2, dtype)
    stop = 0
    for k, row in enumerate(matrix):
        packed[stop : (stop := stop + len(row) - k)] = row[k:]
    return packed


def unpacked_triangle(packed: np.ndarray, n: int, dtype: type = np.float64) -> np.ndarray:
    """Return the upper triangular matrix (n, n) that was packed."""
    matrix: np.ndarray = np.zeros((n, n), dtype)
    stop = 0
    for k in range(n):
        matrix[k, k:] = packed[stop : (stop := stop + n - k)]
    return matrix


def _factored(kernel: np.ndarray, noise: np.ndarray, n_jobs: int) -> np.ndarray:
    """The factor of the covariance of the targets, in the place of ``kernel``."""
    kernel[np.diag_indices_from(kernel)] *= 1.0 + JITTER
    kernel[np.diag_indices_from(kernel)] += noise
    return cholesky_in_place(kernel, n_jobs)


@dataclass(frozen=True, eq=False)
class LeftOutNumbers:
    """Predictions of each training value from all the others, and their scores.

    Weights and scales were learned from all of them, so the scores flatter a little. They are of
    exact values: a limit is no measurement to compare with.
    """

    predictions: np.ndarray  # (n_graphs,)
    std: np.ndarray  # (n_graphs,)
    rmse: float
    r2: float
    nlpd: float  # mean of minus the log predictive density
    coverage: float  # fraction of values within the 90 % interval

    def __repr__(self) -> str:
        return (
            f"LeftOutNumbers({len(self.predictions)} values: RMSE {self.rmse:.4g}, R2 "
            f"{self.r2:.3f}, NLPD {self.nlpd:.3f}, {self.coverage:.1%} within 90 % intervals)"
        )


@dataclass(frozen=True, eq=False)
class LeftOutGroups:
    """Predictions of each training value from the graphs of all other groups, and their scores.

    Groups (scaffolds) are left out whole, so that errors are those of new chemistry; a graph
    without a group is left out alone, and not scored.
    """

    predictions: np.ndarray  # (n_graphs,)
    std: np.ndarray  # (n_graphs,)
    n_groups: int
    rmse: float
    coverage: float  # fraction of values within the 90 % interval
    factor: float  # of standard deviations, for nine of ten values to be within; at least 1


@dataclass(frozen=True, eq=False)
class LeftOutClasses:
    """Predictions of each training class from all the other graphs, and their scores."""

    decisions: np.ndarray  # (n_graphs,) or (n_graphs, n_classes)
    probabilities: np.ndarray  # (n_graphs, n_classes)
    predictions: np.ndarray  # (n_graphs,)
    accuracy: float
    log_loss: float
    threshold: Threshold | None = None  # None: the most probable class is named

    def __repr__(self) -> str:
        return (
            f"LeftOutClasses({len(self.predictions)} classes: accuracy {self.accuracy:.1%}, log "
            f"loss {self.log_loss:.3f})"
        )


def left_out_numbers(
    left_out: LeaveOneOut, targets: ScaledTargets, values: np.ndarray
) -> LeftOutNumbers:
    """Leave-one-out predictions in the units of the values, and their scores."""
    mean = targets.offset[0] + targets.scale * left_out.mean[:, 0]
    std = targets.scale * np.sqrt(left_out.variance)
    exact = slice(None) if targets.limits is None else targets.limits == 0
    found = number_scores(values[exact], mean[exact], std[exact])
    names = ("rmse", "r2", "nlpd", "coverage")
    return LeftOutNumbers(mean, std, *(float(found[name] or 0.0) for name in names))


def in_units_of_targets(
    found: LeftOutNumbers, scale: TargetMap, values: np.ndarray, exact: np.ndarray | slice
) -> LeftOutNumbers:
    """Return left-out predictions, and their scores, in the units that ``values`` had.

    ``values`` (n_graphs,) are on the scale, as the predictions found are; ``exact`` (n_graphs,) are
    those that are no limits. Coverage is that of quantiles, which a map does not change.
    """
    mean, std = found.predictions, found.std
    scores = number_scores(scale.inverse(values[exact]), mean[exact], std[exact], scale)
    names = ("rmse", "r2", "nlpd", "coverage")
    return LeftOutNumbers(
        scale.inverse_mean(mean, std),
        scale.inverse_std(mean, std),
        *(float(scores[name] or 0.0) for name in names),
    )


def left_out_groups(model: FittedGP, groups: np.ndarray, n_jobs: int = 1) -> LeftOutGroups:
    """Leave whole groups out; ``groups`` (n_graphs,) are texts, empty where a graph has none."""
    posterior, values = model.full_posterior(n_jobs), model.training.targets
    limits = model.training.limits
    if not isinstance(posterior, ExactPosterior):
        raise ValueError(
            "Scaffolds are left out of an exact posterior only, and this model predicts through "
            "landmarks: use intervals='posterior', or fit with a larger exact_size."
        )
    inside = groups != ""
    names, numbers = np.unique(groups[inside], return_inverse=True)
    if len(names) < _FEWEST_GROUPS:
        raise ValueError(
            f"The training graphs have {len(names)} scaffolds, too few to measure errors on new "
            f"ones ({_FEWEST_GROUPS} or more are needed): use intervals='posterior'."
        )
    together = len(names) + np.arange(len(groups))
    together[inside] = numbers
    found = posterior.leave_one_out(posterior.targets, n_jobs, together)
    mean = model.target_offset[0] + model.target_scale * found.mean[:, 0]
    std = model.target_scale * np.sqrt(found.variance)
    scored = inside if limits is None else inside & (limits == 0)
    scores = number_scores(values[scored], mean[scored], std[scored])
    largest = float(np.quantile((np.abs(values - mean) / std)[scored], 0.9))
    rmse, coverage = float(scores["rmse"] or 0.0), float(scores["coverage"] or 0.0)
    return LeftOutGroups(mean, std, len(names), rmse, coverage, max(1.0, largest / NINETY))


def left_out_classes(
    decisions: np.ndarray,
    codes: np.ndarray,
    classes: np.ndarray,
    slope: float,
    asked: float | str = "auto",
) -> LeftOutClasses:
    """Leave-one-out classes and probabilities, their scores, and the threshold asked for."""
    probabilities = calibrated(decisions, slope)
    threshold = choose_threshold(asked, probabilities, codes)
    predicted = probabilities.argmax(axis=1) if threshold is None else threshold.name(probabilities)
    own = probabilities[np.arange(len(codes)), codes]
    log_loss = max(0.0, -float(np.mean(np.log(np.maximum(own, 1e-300)))))
    return LeftOutClasses(
        decisions[:, 0] if decisions.shape[1] == 1 else decisions,
        probabilities,
        classes[predicted],
        float(np.mean(predicted == codes)),
        log_loss,
        threshold,
    )
