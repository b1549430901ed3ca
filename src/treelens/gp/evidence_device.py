"""The evidence and its gradient on a GPU: :func:`evidence_objective`, step by step.

Two matrices of pairs are held, the sums over patterns and the covariance, which is overwritten by
its factor, its inverse and the slopes in turn: 16 bytes a pair of graphs, and as much as one of
them again for the products on the way. All numbers are in double precision and agree with the
CPU's to rounding.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from treelens.gp.evidence import (
    JITTER,
    EvidenceParameters,
    EvidenceProblem,
    own_gradient,
    prior_value,
    scale_slopes,
    weight_slopes,
)
from treelens.gp.factor_device import factor_on_device, invert_on_device, solve_on_device
from treelens.kernels.device import Device, device_mixture, device_sums, put_lists, put_rows
from treelens.kernels.mixture import MixtureScales, MixtureSlopes
from treelens.patterns.pairs import PairFeatures

_BYTES_PER_PAIR = 24


def largest_on_device(name: str) -> int | None:
    """How many graphs a device has room for; None where nobody can say (a simulated one)."""
    free = Device.open(name).free_bytes()
    return None if free is None else int((free / _BYTES_PER_PAIR) ** 0.5)


class DeviceCovariance:
    """The covariance of the targets of some graphs, on a device: made, factored, inverted.

    Parameters
    ----------
    features : PairFeatures
        Of counts.
    name : str
        ``"cuda"``, ``"cuda:1"``, ...
    """

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

    def make(self, weights: np.ndarray, scales: MixtureScales, noise: np.ndarray) -> np.ndarray:
        """Fill ``sums`` and ``matrix``; the sums of graphs with themselves, shape (n,)."""
        own = self.features.diagonal(weights)
        diagonal = self.device.put(own)
        device_sums(self.device, self.rows, self.lists, weights, self.sums)
        device_mixture(scales, self.sums, diagonal, diagonal, out=self.matrix)
        covariances = self.device.put(scales.amplitude * (1.0 + JITTER) + noise)
        self.device.arrays.fill_diagonal(self.matrix, covariances)
        return own

    def factor(self) -> Any:
        """Overwrite the matrix by its upper factor."""
        return factor_on_device(self.matrix, self.device.arrays)

    def solve(self, targets: np.ndarray) -> Any:
        """``inv(A) @ targets``, after :meth:`factor`."""
        return solve_on_device(self.matrix, self.device.put(targets), self.device.arrays)

    def invert(self) -> Any:
        """Overwrite the factor by the inverse."""
        return invert_on_device(self.matrix, self.device.arrays)

    def gather(self, matrix: Any) -> np.ndarray:
        """``sum over pairs i < j of matrix_ij min(count_iv, count_jv)``, shape (n_patterns,)."""
        from treelens.kernels import _compiled_device as compiled

        rows, lists = self.rows, self.lists
        gathered = self.device.arrays.zeros(len(rows.patterns))
        compiled.gather_minima[rows.n_graphs, compiled.THREADS](
            rows.offsets, rows.patterns, rows.counts,
            lists.starts, lists.graphs, lists.counts, matrix, gathered,
        )  # fmt: skip
        patterns, values = self.device.get(rows.patterns), self.device.get(gathered)
        return 0.5 * np.bincount(patterns, values, self.features.n_patterns)


class DeviceEvidence:
    """Objective and gradient on one device; call it with parameters.

    Parameters
    ----------
    problem : EvidenceProblem
    device : str
        ``"cuda"``, or ``"cuda:1"`` for the second GPU.
    """

    def __init__(self, problem: EvidenceProblem, device: str) -> None:
        if problem.covariates is not None:
            raise ValueError("Covariates are learned on the CPU only: use device='cpu'.")
        self.problem = problem
        self.covariance = DeviceCovariance(problem.features, device)

    def __call__(self, parameters: EvidenceParameters, learned: str) -> tuple[float, np.ndarray]:
        """The objective and its gradient, as :func:`evidence_objective` gives them."""
        problem, covariance = self.problem, self.covariance
        weights, scales = problem.weights(parameters), parameters.kernel_scales()
        diagonal = covariance.make(weights, scales, parameters.noise * problem.noise_factors)
        factor = covariance.factor()
        alpha = covariance.solve(problem.targets)  # (n, n_columns)
        value = self._surprise(factor, alpha) + prior_value(problem, parameters)
        on_diagonal, own_slopes, totals = self._slopes(scales, diagonal, alpha)
        gradient = scale_slopes(
            problem, parameters, MixtureSlopes(own_slopes, totals, np.zeros(2)), on_diagonal
        )
        if learned == "uniform":
            return value, gradient
        by_weight = covariance.gather(covariance.matrix) + own_gradient(
            problem.features, own_slopes
        )
        parts = weight_slopes(problem, parameters, weights * by_weight, learned)
        return value, np.concatenate([gradient, *parts])

    def value(self, parameters: EvidenceParameters) -> float:
        """The objective alone."""
        return self(parameters, "uniform")[0]

    def _surprise(self, factor: Any, alpha: Any) -> float:
        """Half of the targets' quadratic form, and of the log determinant."""
        get = self.covariance.device.get
        targets = self.problem.targets
        fit = float((targets * get(alpha)).sum()) / targets.shape[1]
        return 0.5 * fit + float(np.log(get(factor.diagonal())).sum())

    def _slopes(
        self, scales: MixtureScales, diagonal: np.ndarray, alpha: Any
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Slopes in the matrix's diagonal, in graphs' own sums, and in the scales.

        Those in the sums of pairs are left in the place of the matrix.
        """
        from treelens.kernels import _compiled_device as compiled

        covariance, device = self.covariance, self.covariance.device
        inverse, n = covariance.invert(), self.problem.n_graphs
        mean_square = (device.get(alpha) ** 2).mean(axis=1)
        on_diagonal = 0.5 * (device.get(inverse.diagonal()) - mean_square)
        totals = device.arrays.empty((n, 5))
        compiled.mixture_slopes[n, compiled.THREADS](
            covariance.sums, device.put(diagonal), *scales.as_tuple(),
            device.arrays.ascontiguousarray(alpha), inverse, totals,
        )  # fmt: skip
        by_graph = device.get(totals)
        return on_diagonal, by_graph[:, 0], 0.5 * by_graph[:, 1:].sum(axis=0)
