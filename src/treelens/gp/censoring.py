"""Targets of which only a limit is known (``> 10``): a censored Gaussian likelihood.

A measurement is the value of the Gaussian process plus normal noise. Where it is known only to lie
above a limit ``l``, its likelihood is ``Phi((f - l) / sigma)``; below, ``Phi((l - f) / sigma)``.
Expectation propagation replaces each of these factors by a Gaussian one, a *site*: a target with a
noise variance of its own. The rest of the Gaussian process then works on these as on measurements.

Factors are log-concave, so that variances of sites are positive and never below that of the noise.
A limit that is certain to hold has a site of very large variance: it says nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import special

from treelens.gp import _compiled
from treelens.gp.evidence import Evidence, EvidenceParameters, EvidenceProblem
from treelens.gp.landmarks import LandmarkFit
from treelens.gp.posterior import (
    JITTER,
    ExactPosterior,
    LeaveOneOut,
    Targets,
    cholesky_in_place,
    inverse_in_place,
    solve_factored,
    solve_upper,
)
from treelens.kernels.gram import mirrored

if TYPE_CHECKING:
    from typing_extensions import Self

_SIGNS: dict[Any, int] = {"<": -1, "=": 0, ">": 1, -1: -1, 0: 0, 1: 1}
_FEWEST_EXACT = 2
# Sites say at least so much, relative to what is known without them: no variance is infinite.
_LEAST_PRECISION = 1e-6
_TOLERANCE, _MOST_SWEEPS = 1e-6, 60
_ROUGH, _MOST_PASSES = 0.02, 15  # through landmarks


def check_limits(limits: Any, n_graphs: int) -> np.ndarray | None:
    """Return -1 for upper limits, 1 for lower ones, 0 for exact values; None if all are exact."""
    if limits is None:
        return None
    given = np.asarray(limits)
    if given.shape != (n_graphs,):
        raise ValueError(
            f"limits must have one entry per graph, shape ({n_graphs},); got shape {given.shape}."
        )
    signs = [_SIGNS.get(x) for x in given.tolist()]
    if None in signs:
        wrong = signs.index(None)
        raise ValueError(
            "limits must be '<' (-1), '=' (0) or '>' (1) for each graph; got "
            f"{given.tolist()[wrong]!r} at position {wrong}."
        )
    n_exact = signs.count(0)
    if n_exact < _FEWEST_EXACT:
        raise ValueError(
            f"{n_exact} of {n_graphs} values are exact, the others limits: a regressor needs at "
            "least 2 exact ones."
        )
    return None if n_exact == n_graphs else np.array(signs, dtype=np.int64)


def log_densities(
    values: np.ndarray, mean: np.ndarray, variance: np.ndarray, limits: np.ndarray | None
) -> np.ndarray:
    """Log predictive densities, of limits the log probabilities that they hold, shape (n,).

    ``values`` and ``mean`` are (n, n_columns), ``variance`` (n,) includes noise.
    """
    squares = ((values - mean) ** 2).mean(axis=1)
    exact = -0.5 * (squares / variance + np.log(2 * np.pi * variance))
    if limits is None:
        return exact
    held = special.log_ndtr(limits * (mean - values)[:, 0] / np.sqrt(variance))
    return np.where(limits == 0, exact, held)


# --- expectation propagation ----------------------------------------------------------------------


class Limits(NamedTuple):
    """Graphs of which a limit is known."""

    values: np.ndarray  # (c,)
    signs: np.ndarray  # (c,) 1 for lower limits, -1 for upper ones
    noise: np.ndarray  # (c,) variances

    @classmethod
    def among(cls, values: np.ndarray, signs: np.ndarray, noise: np.ndarray) -> Self:
        """The limits among targets (n, 1); ``signs`` (n,) are 0 where these are exact."""
        limited = signs != 0
        return cls(values[limited, 0], signs[limited], noise[limited])

    def scaled(self, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
        """How far the limits are on the right side, in standard deviations of measurements."""
        return self.signs * (mean - self.values) / np.sqrt(variance + self.noise)


class Sites(NamedTuple):
    """Gaussian factors in the place of limits, and the predictions without each of them."""

    mean: np.ndarray  # (c,)
    variance: np.ndarray  # (c,)
    cavity_mean: np.ndarray  # (c,)
    cavity_variance: np.ndarray  # (c,)

    def log_ratio(self, limits: Limits) -> float:
        """Log of the probabilities that limits hold over the densities of the sites."""
        total = self.cavity_variance + self.variance
        sites = -0.5 * ((self.mean - self.cavity_mean) ** 2 / total + np.log(2 * np.pi * total))
        held = special.log_ndtr(limits.scaled(self.cavity_mean, self.cavity_variance))
        return float((held - sites).sum())


def fit_sites(
    limits: Limits, mean: np.ndarray, covariance: np.ndarray, start: Sites | None = None,
    n_jobs: int = 1,
) -> Sites:  # fmt: skip
    """Update one site after the other until none changes.

    ``mean`` (c,) and ``covariance`` (c, c) are the prior's; ``start`` are sites of similar
    parameters.
    """
    sites, precision = limits.values.copy(), np.full(len(mean), _LEAST_PRECISION)
    if start is not None:
        sites, precision = start.mean.copy(), 1.0 / start.variance
    for _ in range(_MOST_SWEEPS):
        factor = _factored(covariance, 1.0 / precision, n_jobs)
        half = solve_upper(factor, covariance, transposed=True, n_jobs=n_jobs)
        after = mean + covariance @ solve_factored(factor, (sites - mean)[:, None])[:, 0]
        change = _compiled.site_sweep(
            *limits, after, np.ascontiguousarray(covariance - half.T @ half), sites, precision,
            _LEAST_PRECISION,
        )  # fmt: skip
        if change < _TOLERANCE:
            break
    factor = _factored(covariance, 1.0 / precision, n_jobs)
    alpha = solve_factored(factor, (sites - mean)[:, None])[:, 0]
    diagonal = np.diagonal(inverse_in_place(factor, n_jobs))
    left = np.maximum(1.0 / diagonal - 1.0 / precision, JITTER * np.diagonal(covariance))
    return Sites(sites, 1.0 / precision, sites - alpha / diagonal, left)


def _factored(covariance: np.ndarray, variance: np.ndarray, n_jobs: int) -> np.ndarray:
    matrix = covariance.copy()
    matrix[np.diag_indices_from(matrix)] += variance
    return cholesky_in_place(matrix, n_jobs)


def _given_exact(
    covariance: np.ndarray, values: np.ndarray, limited: np.ndarray, n_jobs: int
) -> tuple[np.ndarray, np.ndarray]:
    """Mean (c,) and covariance (c, c) of limits given exact values, noise on their diagonal."""
    exact = ~limited
    if not exact.any():  # in a part of the graphs
        return np.zeros(len(limited)), covariance
    factor = cholesky_in_place(covariance[np.ix_(exact, exact)], n_jobs)
    across = covariance[np.ix_(exact, limited)]
    half = solve_upper(factor, across, transposed=True, n_jobs=n_jobs)  # (n_exact, c)
    mean = across.T @ solve_factored(factor, values[exact, None])[:, 0]
    own = covariance[np.ix_(limited, limited)] - half.T @ half
    own[np.diag_indices_from(own)] += JITTER * np.diagonal(covariance)[limited]
    return mean, own


# --- hooks of the Gaussian process ----------------------------------------------------------------


class Conditioned(NamedTuple):
    """The exact posterior of targets, sites in the place of those that are limits."""

    posterior: ExactPosterior
    values: np.ndarray  # (n, n_columns) targets, or means of sites
    noise: np.ndarray  # (n,) variances, or those of sites
    measured: np.ndarray  # (n,) variances of the noise of measurements
    log_ratio: float  # to be added to the log marginal likelihood of the values

    @classmethod
    def fit(cls, targets: Targets, kernel: np.ndarray, noise: float, n_jobs: int = 1) -> Self:
        """Condition on targets; ``kernel`` (n, n) is overwritten."""
        values, measured = targets.values, noise / targets.weights
        if targets.limits is None:
            posterior = ExactPosterior.fit(kernel, measured, values, n_jobs)
            return cls(posterior, values, measured, measured, 0.0)
        limited, limits = targets.limits != 0, Limits.among(values, targets.limits, measured)
        covariance = kernel.copy()
        covariance[np.diag_indices_from(covariance)] += np.where(limited, 0.0, measured)
        prior = _given_exact(covariance, values[:, 0], limited, n_jobs)
        sites = fit_sites(limits, *prior, n_jobs=n_jobs)
        values, used = with_sites(targets, measured, sites.mean, sites.variance)
        posterior = ExactPosterior.fit(kernel, used, values, n_jobs)
        return cls(posterior, values, used, measured, sites.log_ratio(limits))

    @property
    def log_evidence(self) -> float:
        """Log of the marginal likelihood, up to a constant."""
        return self.posterior.log_evidence(self.values) + self.log_ratio

    def leave_one_out(self, n_jobs: int = 1, copies: np.ndarray | None = None) -> LeaveOneOut:
        """Predictions of each measurement from all others; see :class:`ExactPosterior`."""
        left_out = self.posterior.leave_one_out(self.values, n_jobs, copies)
        return of_measurements(left_out, self.noise, self.measured)


def with_sites(
    targets: Targets, variances: np.ndarray, sites: np.ndarray, of_sites: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return targets and noise variances with those of sites in the place of limits."""
    assert targets.limits is not None
    limited = targets.limits != 0
    values, variances = targets.values.copy(), variances.copy()
    values[limited, 0], variances[limited] = sites, of_sites
    return values, variances


def through_landmarks(fit: LandmarkFit, landmarks: np.ndarray, targets: Targets) -> LandmarkFit:
    """Return the same graphs with sites in the place of limits.

    All sites are updated together, half of the way, as each update is a pass over all graphs.
    """
    if targets.limits is None:
        return fit
    limited, limits = targets.limits != 0, Limits.among(fit.targets, targets.limits, fit.noise)
    mean, precision = limits.values, np.full(len(limits.values), _LEAST_PRECISION)
    for _ in range(_MOST_PASSES):
        values, noise = with_sites(targets, fit.noise, mean, 1.0 / precision)
        fit = replace(fit, targets=values, noise=noise)
        left_out = fit.through(landmarks)[1]
        left = left_out.variance[limited] - 1.0 / precision
        left = np.clip(left, JITTER, fit.kernel.variance)
        new, sharper = _compiled.matched_sites(
            *limits, left_out.mean[limited, 0], left, _LEAST_PRECISION
        )
        change = float((np.abs(sharper - precision) * left / (1.0 + sharper * left)).max())
        natural = 0.5 * (precision * mean + sharper * new)
        precision = 0.5 * (precision + sharper)
        mean = natural / precision
        if change < _ROUGH:
            break
    return fit


def of_measurements(left_out: LeaveOneOut, used: np.ndarray, noise: np.ndarray) -> LeaveOneOut:
    """Leave-one-out variances with the noise of measurements instead of that of sites."""
    variance = np.maximum(left_out.variance - (used - noise), noise)
    return left_out._replace(variance=np.where(used == noise, left_out.variance, variance))


class CensoredEvidence(Evidence):
    """As :class:`~treelens.gp.evidence.Evidence`, with the marginal likelihood of limits.

    At the sites that expectation propagation ends with, its marginal likelihood does not change
    with the sites, so that the gradient is the one of the Gaussian problem with these sites held
    fixed; only the noise of limits has a slope of its own.
    """

    def __init__(self, problem: EvidenceProblem) -> None:
        assert problem.limits is not None
        # Sites are written into copies of these two; what is computed from graphs is kept.
        super().__init__(replace(problem, targets=problem.targets.copy(),
                                 noise_factors=problem.noise_factors.copy()))  # fmt: skip
        self._limited = problem.limits != 0
        self._known = Limits.among(problem.targets, problem.limits, problem.noise_factors)
        self._sites: Sites | None = None

    def __call__(self, parameters: EvidenceParameters, learned: str) -> tuple[float, np.ndarray]:
        value, gradient = super().__call__(parameters, learned)
        limits, sites = self._limits(parameters), self._sites
        assert sites is not None
        total = sites.cavity_variance + sites.variance
        alpha = (sites.mean - sites.cavity_mean) / total
        # The Gaussian problem took the variances of sites for multiples of the noise's.
        gradient[3] -= 0.5 * float((sites.variance * (1.0 / total - alpha**2)).sum())
        z = limits.scaled(sites.cavity_mean, sites.cavity_variance)
        share = limits.noise / (sites.cavity_variance + limits.noise)
        ratio = np.sqrt(2.0 / np.pi) / special.erfcx(-z / np.sqrt(2.0))  # phi(z) / Phi(z)
        gradient[3] += 0.5 * float((ratio * z * share).sum())
        return value, gradient

    def _limits(self, parameters: EvidenceParameters) -> Limits:
        return self._known._replace(noise=parameters.noise * self._known.noise)

    def _factored(self, parameters: EvidenceParameters, learned: str) -> Any:
        value, factor, alpha = super()._factored(parameters, learned)
        assert self._sites is not None
        return value - self._sites.log_ratio(self._limits(parameters)), factor, alpha

    def _covariance(self, parameters: EvidenceParameters) -> np.ndarray:
        """Find the sites; their variances are on the diagonal, their means among the targets."""
        problem, limited = self.problem, self._limited
        problem.noise_factors[limited] = 0.0
        upper = super()._covariance(parameters)
        prior = _given_exact(mirrored(upper.copy()), problem.targets[:, 0], limited, problem.n_jobs)
        limits = self._limits(parameters)
        self._sites = sites = fit_sites(limits, *prior, self._sites, problem.n_jobs)
        problem.targets[limited, 0] = sites.mean
        problem.noise_factors[limited] = sites.variance / parameters.noise
        own = np.flatnonzero(limited)
        upper[own, own] += sites.variance
        return upper
