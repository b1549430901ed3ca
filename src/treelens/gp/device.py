"""Marginal likelihood, exact posterior and predictions on a GPU, to some fifty thousand graphs.

Two matrices of pairs are held, the sums over patterns and the covariance, which is overwritten by
its factor, its inverse and the slopes in turn, and as much as one of them for products on the way.
Factor and inverse are computed by blocks in the matrix's own place, so that nearly all arithmetic
is in products of large matrices; vendor routines for the inverse take three times the arithmetic or
a second matrix. All numbers are in double precision and agree with the CPU's to rounding.

``arrays`` is CuPy, or NumPy under the simulator. Matrices are C-ordered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from treelens.gp.evidence import EvidenceParameters, EvidenceProblem
from treelens.gp.landmarks import LandmarkPosterior
from treelens.gp.levels import own_gradient
from treelens.gp.posterior import (
    JITTER,
    LeaveOneOut,
    MeanPosterior,
    NotPositiveDefiniteError,
    left_out_given,
)
from treelens.gp.terms import CountedTerm, TermSlopes, weight_slopes
from treelens.kernels.base import Term
from treelens.kernels.device import (
    Device,
    device_mixture,
    device_sums,
    mixture_numbers,
    put_lists,
    put_rows,
)
from treelens.parallel import batches
from treelens.patterns.histograms import Features, GraphViews, PairFeatures

if TYPE_CHECKING:
    from treelens.gp.model import FittedGP

BLOCK = 2048
_BYTES_PER_PAIR = 24


def check_device(name: str) -> None:
    """Refuse a device that is not there before any work is done."""
    if name != "cpu":
        Device.open(name)


def largest_on_device(name: str) -> int | None:
    """How many graphs a device has room for; None where nobody can say (a simulated one)."""
    free = Device.open(name).free_bytes()
    return None if free is None else int((free / _BYTES_PER_PAIR) ** 0.5)


def factor_on_device(matrix: Any, arrays: Any) -> Any:
    """Overwrite the upper triangle with ``U``, where ``U.T @ U`` is the matrix."""
    for here in batches(len(matrix), BLOCK):
        rest = slice(here.start, None)
        if here.start:
            above = matrix[: here.start]
            matrix[here, rest] -= above[:, here].T @ above[:, rest]
        corner = _upper_factor(matrix[here, here], arrays)
        matrix[here, here] = corner
        if here.stop < len(matrix):
            later = slice(here.stop, None)
            matrix[here, later] = _inverse_upper(corner, arrays).T @ matrix[here, later]
    return matrix


def invert_on_device(factor: Any, arrays: Any) -> Any:
    """Overwrite an upper factor ``U`` with the whole of ``inv(U.T @ U)``."""
    blocks = list(batches(len(factor), BLOCK))
    for k, here in enumerate(blocks):  # inv(U), block column by block column
        corner = _inverse_upper(arrays.triu(factor[here, here]), arrays)
        if here.start:
            above = factor[: here.start, here] @ corner
            for rows in blocks[:k]:  # what lies below the diagonal is no part
                inner = slice(rows.start, here.start)
                factor[rows, here] = -(factor[rows, inner] @ above[inner])
        factor[here, here] = corner
        factor[here, : here.start] = 0.0
    for k, here in enumerate(blocks):  # inv(U) inv(U).T; a block is not needed once it is written
        for columns in blocks[k:]:
            rest = slice(columns.start, None)
            factor[here, columns] = factor[here, rest] @ factor[columns, rest].T
    for here in blocks:
        factor[here.stop :, here] = factor[here, here.stop :].T
    return factor


def solve_on_device(factor: Any, right: Any, arrays: Any) -> Any:
    """``inv(U.T @ U) @ right`` for ``right`` of shape (n, p)."""
    half = half_solve_on_device(factor, right, arrays)
    return _solve_triangular(arrays)(factor, half, lower=False)


def half_solve_on_device(factor: Any, right: Any, arrays: Any) -> Any:
    """``inv(U.T) @ right``: its squared columns sum to the quadratic forms of ``right``."""
    return _solve_triangular(arrays)(factor, right, trans=1, lower=False)


def _upper_factor(corner: Any, arrays: Any) -> Any:
    symmetric = arrays.triu(corner) + arrays.triu(corner, 1).T
    try:
        factor = arrays.linalg.cholesky(symmetric).T
    except np.linalg.LinAlgError:
        factor = arrays.full_like(symmetric, np.nan)
    if not bool(arrays.isfinite(factor).all()):  # CuPy says nothing, and returns no numbers
        raise NotPositiveDefiniteError
    return arrays.ascontiguousarray(factor)


def _inverse_upper(corner: Any, arrays: Any) -> Any:
    return _solve_triangular(arrays)(corner, arrays.eye(len(corner)), lower=False)


def _solve_triangular(arrays: Any) -> Any:
    if arrays is np:
        from scipy.linalg import solve_triangular
    else:
        from cupyx.scipy.linalg import solve_triangular
    return solve_triangular


class DeviceCovariance:
    """The covariance of the targets of some graphs (``features`` of counts) on a device."""

    def __init__(self, features: PairFeatures, name: str) -> None:
        self.features = features
        self.device = Device.open(name)
        n = features.n_graphs
        self.device.check_room(
            _BYTES_PER_PAIR * n * n + 24 * len(features.rows.values),
            f"{n} graphs",
            "learn on fewer graphs (learning_size) or condition through landmarks (exact_size).",
        )
        support = np.diff(features.lists.offsets)
        self.rows = put_rows(self.device, features.rows, support, least=2)
        self.lists = put_lists(self.device, features.lists, n)
        self.sums = self.device.arrays.empty((n, n))
        self.matrix = self.device.arrays.empty((n, n))

    def factor(self, weights: np.ndarray, term: Term, noise: np.ndarray) -> np.ndarray:
        """Fill ``sums``, and ``matrix`` with its upper factor; return graphs' own sums, (n,)."""
        own, arrays = self.features.diagonal(weights), self.device.arrays
        diagonal = self.device.put(own)
        device_sums(self.device, self.rows, self.lists, weights, self.sums)
        device_mixture(term, self.sums, diagonal, diagonal, out=self.matrix)
        covariances = self.device.put(term.amplitude * (1.0 + JITTER) + noise)
        arrays.fill_diagonal(self.matrix, covariances)
        factor_on_device(self.matrix, arrays)
        return own

    def solved_and_inverted(self, targets: np.ndarray) -> tuple[Any, Any]:
        """``inv(A) @ targets`` and ``inv(A)``, which overwrites the factor."""
        arrays, held = self.device.arrays, self.device.put(targets)
        return solve_on_device(self.matrix, held, arrays), invert_on_device(self.matrix, arrays)

    def gather(self) -> np.ndarray:
        """``sum over pairs i < j of matrix_ij min(count_iv, count_jv)``, shape (n_patterns,)."""
        from treelens.kernels import _compiled_device as compiled

        rows, lists = self.rows, self.lists
        gathered = self.device.arrays.zeros(len(rows.patterns))
        compiled.gather_minima[rows.n_graphs, compiled.THREADS](
            rows.offsets,
            rows.patterns,
            rows.counts,
            lists.starts,
            lists.graphs,
            lists.counts,
            self.matrix,
            gathered,
        )
        patterns, values = self.device.get(rows.patterns), self.device.get(gathered)
        return 0.5 * np.bincount(patterns, values, self.features.n_patterns)


class DeviceEvidence:
    """:class:`~treelens.gp.evidence.Evidence` on a device."""

    def __init__(self, problem: EvidenceProblem, device: str) -> None:
        self.problem = problem
        (term,) = problem.terms  # patterns, and nothing else
        assert isinstance(term, CountedTerm)
        self.term = term
        self.covariance = DeviceCovariance(term.features, device)

    def __call__(self, parameters: EvidenceParameters, learned: str) -> tuple[float, np.ndarray]:
        problem, covariance, (own,) = self.problem, self.covariance, parameters.terms
        weights, term = self.term.weights(own), self.term.term(own)
        diagonal = covariance.factor(weights, term, parameters.noise * problem.noise_factors)
        half_log_determinant = np.log(covariance.device.get(covariance.matrix.diagonal())).sum()
        alpha, inverse = covariance.solved_and_inverted(problem.targets)  # (n, n_columns), (n, n)
        fit = (problem.targets * covariance.device.get(alpha)).sum() / problem.targets.shape[1]
        value = float(0.5 * fit + half_log_determinant) + problem.prior_value(parameters)
        on_diagonal, own_slopes, scales = self._slopes(term, diagonal, alpha, inverse)
        scales[-1] += term.amplitude * (1.0 + JITTER) * float(on_diagonal.sum())
        by_log_noise = parameters.noise * float(on_diagonal @ problem.noise_factors)
        slopes = TermSlopes(scales, np.empty(0), np.empty(0))
        if learned != "uniform":
            by_weight = covariance.gather() + own_gradient(self.term.features, own_slopes)
            by_log_weight = weights * by_weight
            slopes = TermSlopes(scales, *weight_slopes(self.term, own, by_log_weight, learned))
        return value, problem.gradient([slopes], parameters, by_log_noise)

    def value(self, parameters: EvidenceParameters) -> float:
        """The objective alone."""
        return self(parameters, "uniform")[0]

    def _slopes(
        self, term: Term, diagonal: np.ndarray, alpha: Any, inverse: Any
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Slopes in the diagonal, in own sums, in scales; in pairs, in the place of the inverse."""
        from treelens.kernels import _compiled_device as compiled

        covariance, device = self.covariance, self.covariance.device
        n = self.problem.n_graphs
        mean_square = (device.get(alpha) ** 2).mean(axis=1)
        on_diagonal = 0.5 * (device.get(inverse.diagonal()) - mean_square)
        totals = device.arrays.empty((n, 5))
        compiled.mixture_slopes[n, compiled.THREADS](
            covariance.sums,
            device.put(diagonal),
            *mixture_numbers(term),
            device.arrays.ascontiguousarray(alpha),
            inverse,
            totals,
        )
        by_graph = device.get(totals)
        gamma, rho, amplitude, share = 0.5 * by_graph[:, 1:].sum(axis=0)
        share *= term.kernel.share * (1.0 - term.kernel.share)  # type: ignore[attr-defined]
        return on_diagonal, by_graph[:, 0], np.array([gamma, rho, share, amplitude])


def condition_on_device(
    graphs: Features,
    term: Term,
    noise: np.ndarray,
    targets: np.ndarray,
    device: str,
    copies: np.ndarray | None = None,
) -> tuple[MeanPosterior, LeaveOneOut]:
    """The posterior given targets (n, n_columns), and each graph left out, together with copies.

    The factor stays behind: what a CPU would do with one of a GPU's size is not worth the way.
    """
    covariance = DeviceCovariance(graphs.pairs, device)
    assert graphs.weights is not None
    covariance.factor(graphs.weights, term, noise)
    get, (alpha, inverse) = covariance.device.get, covariance.solved_and_inverted(targets)
    coefficients = get(alpha)

    def block(group: np.ndarray) -> np.ndarray:
        return get(inverse[group][:, group])

    precision = get(inverse.diagonal()).copy()
    left_out = left_out_given(targets, coefficients, precision, block, copies)
    return MeanPosterior(coefficients), left_out


class DevicePredictor:
    """Means and variances of a fitted model, on a device."""

    def __init__(self, model: FittedGP, name: str) -> None:
        self.model = model
        self.device = Device.open(name)
        basis = model.basis_graphs.patterns
        self.lists = put_lists(self.device, basis.pairs.lists, basis.pairs.n_graphs)
        self.support = np.diff(basis.pairs.lists.offsets)
        self.diagonal = self.device.put(basis.diagonal)
        self._factor: Any = None

    def decide(self, graphs: GraphViews, variance: bool) -> tuple[np.ndarray, np.ndarray]:
        """Means and variances, the latter empty if not asked for."""
        model, device, patterns = self.model, self.device, graphs.patterns
        counts = put_rows(device, patterns.pairs.rows, self.support)
        sums = device_sums(device, counts, self.lists, model.weights)
        own = device.put(patterns.diagonal)
        rows = device_mixture(model.patterns_term, sums, own, self.diagonal, out=sums)
        mean = model.target_offset + device.get(rows @ device.put(model.coefficients.T))
        if not variance:
            return mean, np.empty(0)
        if isinstance(model.posterior, LandmarkPosterior):
            reduction = ((rows @ device.put(model.posterior.precision_gain)) * rows).sum(axis=1)
        else:
            if self._factor is None:
                assert model.sample_weights is not None
                covariance = DeviceCovariance(model.basis_graphs.patterns.pairs, device.name)
                noise = model.noise / model.sample_weights
                covariance.factor(model.weights, model.patterns_term, noise)
                self._factor = covariance.matrix
            half = half_solve_on_device(self._factor, rows.T, device.arrays)
            reduction = (half**2).sum(axis=0)
        return mean, model.variances(device.get(reduction))
