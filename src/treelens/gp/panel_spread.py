"""How wide predictions of a panel are, by how well similar training graphs were predicted.

Errors of an assay may differ by regions: near its limits there is less noise than between. The
variance of an endpoint is multiplied by ``exp(level) * surprise ** slope``, where ``surprise`` is
about the squared errors of similar training graphs, each left out, over their variances. Level and
slope are the most likely ones for clusters of graphs that are predicted from the other clusters.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from treelens.array_checks import check_array
from treelens.kernels.weighted import nearest_of
from treelens.models.domain import N_NEIGHBORS, neighbourhood

FEWEST = 100  # cells of an endpoint from which it is learned
_BOUNDS = ((0.0, 2.0), (0.0, 1.5))  # of level and slope: no interval is narrower on the whole
_SPREAD = 0.5  # of their priors around 0


@dataclass(frozen=True, eq=False)
class LocalSpread:
    """Factors of the variances of one endpoint."""

    level: float
    slope: float
    surprise: np.ndarray  # (n_measured,) of the training graphs that were measured

    def validate(self) -> None:
        """Raise ``ValueError`` where stored factors make no sense."""
        for value, (low, high) in zip((self.level, self.slope), _BOUNDS, strict=True):
            if not low <= value <= high:
                raise ValueError(f"a factor of variances must be from {low} to {high}")
        check_array(self.surprise, "surprise", np.float64, (len(self.surprise),), 0.0)

    @property
    def is_none(self) -> bool:
        """Whether all factors are one."""
        return self.level == 0.0 and self.slope == 0.0

    def factors(self, similarity: np.ndarray) -> np.ndarray:
        """Return the factors of graphs from similarities to the measured ones, (n, n_measured)."""
        found = local_surprise(similarity, self.surprise)
        return np.exp(self.level) * found**self.slope


def local_surprise(similarity: np.ndarray, surprise: np.ndarray) -> np.ndarray:
    """Return the mean surprise of the most similar graphs, shrunk to one: (n_graphs,)."""
    nearest = nearest_of(similarity, min(N_NEIGHBORS, similarity.shape[1]))
    return neighbourhood(nearest, surprise).surprise


def most_likely_factors(
    errors: np.ndarray, variances: np.ndarray, surprise: np.ndarray, n_ways: int
) -> tuple[float, float]:
    """Return level and slope from errors (n,), their variances and the surprise around them.

    Each cell is predicted in ``n_ways``, which count as one.
    """
    logs = np.log(surprise)

    def objective(at: np.ndarray) -> tuple[float, np.ndarray]:
        log_factor = at[0] + at[1] * logs
        squares = errors**2 / (variances * np.exp(log_factor))
        pull = 0.5 * (1.0 - squares) / n_ways
        value = 0.5 * (log_factor + squares).sum() / n_ways + 0.5 * (at / _SPREAD) @ (at / _SPREAD)
        return float(value), np.array([pull.sum(), pull @ logs]) + at / _SPREAD**2

    found = minimize(objective, np.zeros(2), jac=True, method="L-BFGS-B", bounds=_BOUNDS).x
    return float(found[0]), float(found[1])
