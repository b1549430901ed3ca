"""Targets that are no plain numbers: limits (``> 10``), and values whose errors are known.

A measurement is the value of the Gaussian process plus normal noise. Where it is known only to lie
above a limit ``l``, its likelihood is ``Phi((f - l) / sigma)``; below, ``Phi((l - f) / sigma)``.
Expectation propagation replaces each of these factors by a Gaussian one, a *site*: a target with a
noise variance of its own. The rest of the Gaussian process then works on these as on measurements.

Factors are log-concave, so that variances of sites are positive and never below that of the noise.
A limit that is certain to hold has a site of very large variance: it says nothing.

With noise that is known of each graph, the variance of a target around the Gaussian process is
``known_i + learned``: the error of the measurement, and what patterns cannot explain. Weights of
patterns are learned with variances in these proportions, where the latter is taken to be a
twentieth of the variance of the targets; given the kernel, it then maximises the marginal
likelihood.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy

from treelens.gp import _compiled
from treelens.gp.evidence import Evidence, EvidenceParameters, EvidenceProblem
from treelens.gp.landmarks import LandmarkFit, LandmarkPosterior
from treelens.gp.posterior import (
    JITTER,
    Conditioned,
    ExactPosterior,
    LeaveOneOut,
    ScaledTargets,
    cholesky_in_place,
    inverse_in_place,
    solve_factored,
    solve_upper,
)
from treelens.kernels.gram import mirrored
from treelens.patterns.histograms import GraphViews, replicate_numbers

if TYPE_CHECKING:
    from treelens.gp.fitting import FittedEvidence

# Sites say at least so much, relative to what is known without them: no variance is infinite.
_LEAST_PRECISION = 1e-6
_TOLERANCE, _MOST_SWEEPS = 1e-6, 60
_ROUGH, _MOST_PASSES = 0.02, 15  # through landmarks
_MOST = 1500  # graphs, a random sample, that the learned part of the noise is estimated from
_USUAL = 0.05  # of the variance of the targets, that patterns do not explain
_LEAST, _LARGEST = 1e-4, 2.0  # of it, relative to the variance of the targets


class Limits(NamedTuple):
    """Graphs of which a limit is known."""

    values: np.ndarray  # (c,)
    signs: np.ndarray  # (c,) 1 for lower limits, -1 for upper ones
    noise: np.ndarray  # (c,) variances

    @classmethod
    def among(cls, values: np.ndarray, signs: np.ndarray, noise: np.ndarray) -> Limits:
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
        held = scipy.special.log_ndtr(limits.scaled(self.cavity_mean, self.cavity_variance))
        return float((held - sites).sum())

    def noise_slopes(self, limits: Limits) -> np.ndarray:
        """Return slopes of minus the logs of the probabilities that limits hold, in their noise."""
        total = self.cavity_variance + limits.noise
        z = limits.scaled(self.cavity_mean, self.cavity_variance)
        ratio = np.sqrt(2.0 / np.pi) / scipy.special.erfcx(-z / np.sqrt(2.0))  # phi(z) / Phi(z)
        return 0.5 * ratio * z / total


def fit_sites(
    limits: Limits,
    mean: np.ndarray,
    covariance: np.ndarray,
    start: Sites | None = None,
    n_jobs: int = 1,
) -> Sites:
    """Update one site after the other until none changes, from a prior and similar sites."""
    sites, precision = limits.values.copy(), np.full(len(mean), _LEAST_PRECISION)
    if start is not None:
        sites, precision = start.mean.copy(), 1.0 / start.variance
    for _ in range(_MOST_SWEEPS):
        factor = _factored(covariance, 1.0 / precision, n_jobs)
        half = solve_upper(factor, covariance, transposed=True, n_jobs=n_jobs)
        after = mean + covariance @ solve_factored(factor, (sites - mean)[:, None])[:, 0]
        change = _compiled.site_sweep(
            *limits,
            after,
            np.ascontiguousarray(covariance - half.T @ half),
            sites,
            precision,
            _LEAST_PRECISION,
        )
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


def given_exact(
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


def conditioned_on_limits(
    targets: ScaledTargets, kernel: np.ndarray, noise: np.ndarray, n_jobs: int = 1
) -> tuple[np.ndarray, np.ndarray, float]:
    """Targets and noise variances with sites in the place of limits, and :class:`Sites`' ratio."""
    assert targets.limits is not None
    limited, limits = targets.limits != 0, Limits.among(targets.values, targets.limits, noise)
    covariance = kernel.copy()
    covariance[np.diag_indices_from(covariance)] += np.where(limited, 0.0, noise)
    prior = given_exact(covariance, targets.values[:, 0], limited, n_jobs)
    sites = fit_sites(limits, *prior, n_jobs=n_jobs)
    values, used = with_sites(targets, noise, sites.mean, sites.variance)
    return values, used, sites.log_ratio(limits)


def with_sites(
    targets: ScaledTargets, variances: np.ndarray, sites: np.ndarray, of_sites: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return targets and noise variances with those of sites in the place of limits."""
    assert targets.limits is not None
    limited = targets.limits != 0
    values, variances = targets.values.copy(), variances.copy()
    values[limited, 0], variances[limited] = sites, of_sites
    return values, variances


def through_landmarks(
    fit: LandmarkFit[GraphViews], landmarks: np.ndarray, targets: ScaledTargets
) -> tuple[LandmarkPosterior, LeaveOneOut]:
    """As :meth:`LandmarkFit.through`, with sites in the place of limits.

    All sites are updated together, half of the way, as each update is a pass over all graphs.
    """
    if targets.limits is None:
        return fit.through(landmarks)
    measured = fit.noise
    limited, limits = targets.limits != 0, Limits.among(fit.targets, targets.limits, fit.noise)
    mean, precision = limits.values, np.full(len(limits.values), _LEAST_PRECISION)
    for _ in range(_MOST_PASSES):
        values, noise = with_sites(targets, fit.noise, mean, 1.0 / precision)
        fit = replace(fit, targets=values, noise=noise)
        posterior, left_out = fit.through(landmarks)
        left = left_out.variance[limited] - 1.0 / precision
        left, without = np.clip(left, JITTER, fit.kernel.variance), left_out.mean[limited, 0]
        new, sharper = _compiled.matched_sites(*limits, without, left, _LEAST_PRECISION)
        change = float((np.abs(sharper - precision) * left / (1.0 + sharper * left)).max())
        mean = (precision * mean + sharper * new) / (precision + sharper)
        precision = 0.5 * (precision + sharper)
        if change < _ROUGH:
            break
    return posterior, left_out.of_measurements(fit.noise, measured)


class CensoredEvidence(Evidence):
    """As :class:`~treelens.gp.evidence.Evidence`, with the marginal likelihood of limits.

    It does not change with the sites at those that expectation propagation ends with: the gradient
    is that of the Gaussian problem with these held fixed, but for the noise of limits.
    """

    def __init__(self, problem: EvidenceProblem) -> None:
        assert problem.limits is not None
        # Sites are written into copies of these two; what is computed from graphs is kept.
        super().__init__(
            replace(
                problem, targets=problem.targets.copy(), noise_factors=problem.noise_factors.copy()
            )
        )
        self._limited = problem.limits != 0
        self._known = Limits.among(problem.targets, problem.limits, problem.noise_factors)
        self._sites: Sites | None = None

    def __call__(self, parameters: EvidenceParameters, learned: str) -> tuple[float, np.ndarray]:
        value, gradient = super().__call__(parameters, learned)
        limits, sites, noise = self._limits(parameters), self._sites, self.problem.n_scales - 1
        assert sites is not None
        total = sites.cavity_variance + sites.variance
        alpha = (sites.mean - sites.cavity_mean) / total
        # The Gaussian problem took the variances of sites for multiples of the noise's.
        gradient[noise] -= 0.5 * float((sites.variance * (1.0 / total - alpha**2)).sum())
        gradient[noise] += float((sites.noise_slopes(limits) * limits.noise).sum())
        return value, gradient

    def _limits(self, parameters: EvidenceParameters) -> Limits:
        return self._known._replace(noise=parameters.noise * self._known.noise)

    def _factored(self, parameters: EvidenceParameters, learned: str) -> Any:
        value, factor, alpha = super()._factored(parameters, learned)
        assert self._sites is not None
        return value - self._sites.log_ratio(self._limits(parameters)), factor, alpha

    def _covariance(self, parameters: EvidenceParameters, learned: str) -> np.ndarray:
        """Find the sites; their variances are on the diagonal, their means among the targets."""
        problem, limited = self.problem, self._limited
        problem.noise_factors[limited] = 0.0
        upper = super()._covariance(parameters, learned)
        prior = given_exact(mirrored(upper.copy()), problem.targets[:, 0], limited, problem.n_jobs)
        limits = self._limits(parameters)
        self._sites = sites = fit_sites(limits, *prior, self._sites, problem.n_jobs)
        problem.targets[limited, 0] = sites.mean
        problem.noise_factors[limited] = sites.variance / parameters.noise
        own = np.flatnonzero(limited)
        upper[own, own] += sites.variance
        return upper


def starting_weights(known: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Weights of graphs with these variances of noise, and a usual share that is not known."""
    return 1.0 / (max(_USUAL * float(np.var(targets)), np.finfo(float).tiny) + known)


def with_known_noise(
    fitted: FittedEvidence, known: np.ndarray, targets: ScaledTargets, n_jobs: int = 1
) -> tuple[FittedEvidence, ScaledTargets]:
    """Return the model with noise variances ``known + learned``, and targets of these weights.

    ``noise`` of the model, which new measurements have, is that of one of median error.
    """
    model, graphs = fitted.model, fitted.model.training_graphs
    measured = np.arange(len(known))
    if targets.limits is not None:
        measured = measured[targets.limits == 0]
    some = np.sort(np.random.default_rng(0).permutation(measured)[:_MOST])
    part = graphs.select(some)
    kernel = model.kernel.matrix(part, part, n_jobs)
    learned = most_likely_noise(kernel, known[some], targets.values[some], n_jobs)
    variances, typical = known + learned, learned + float(np.median(known))
    targets = replace(targets, weights=typical / variances)
    if isinstance(model.posterior, ExactPosterior):
        among = model.kernel.matrix(graphs, graphs, n_jobs)
        found = Conditioned.fit(targets, among, typical, n_jobs)
        copies = replicate_numbers(graphs)
        left_out = found.leave_one_out(n_jobs, copies)
        used = targets.weights * (found.measured / found.noise)
        model = replace(model, noise=typical, sample_weights=used, posterior=found.posterior)
    else:
        fit = LandmarkFit(model.kernel, graphs, variances, targets.values, n_jobs)
        landmarks, left_out = through_landmarks(fit, model.basis_indices, targets)
        model = replace(model, noise=typical, posterior=landmarks)
    return replace(fitted, model=model, left_out=left_out), targets


def most_likely_noise(
    kernel: np.ndarray, known: np.ndarray, targets: np.ndarray, n_jobs: int = 1
) -> float:
    """Return the variance that, added to the known ones, makes the targets most likely."""

    def objective(log_noise: float) -> float:
        found = ExactPosterior.fit(kernel.copy(), known + np.exp(log_noise), targets, n_jobs)
        return -found.log_evidence(targets)

    bounds = (np.log(_LEAST), np.log(_LARGEST))
    found = scipy.optimize.minimize_scalar(objective, bounds=bounds, options={"xatol": 0.01})
    return float(np.exp(found.x))
