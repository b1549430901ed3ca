"""Noise that is known of each graph, beside noise that is learned.

The variance of a target around the Gaussian process is ``known_i + learned``: the error of the
measurement, and what patterns cannot explain. Weights of patterns are learned with variances in
these proportions, where the latter is taken to be a twentieth of the variance of the targets; given
the kernel, it then maximises the marginal likelihood.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.optimize import minimize_scalar

from treelens.gp.censoring import Conditioned, of_measurements, through_landmarks
from treelens.gp.conditioning import replicate_numbers
from treelens.gp.evidence import JITTER
from treelens.gp.fitting import FittedEvidence
from treelens.gp.landmarks import LandmarkFit
from treelens.gp.linalg import cholesky_in_place, solve_upper
from treelens.gp.posterior import ExactPosterior
from treelens.gp.targets import Targets
from treelens.patterns.features import select_features

_MOST = 1500  # graphs, a random sample, that the learned part is estimated from
_USUAL = 0.05  # of the variance of the targets, that patterns do not explain
_LEAST, _LARGEST = 1e-4, 2.0  # of it, relative to the variance of the targets


def starting_weights(known: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Weights of graphs with these variances of noise, and a usual share that is not known."""
    return 1.0 / (max(_USUAL * float(np.var(targets)), np.finfo(float).tiny) + known)


def with_known_noise(
    fitted: FittedEvidence, known: np.ndarray, targets: Targets, n_jobs: int = 1
) -> tuple[FittedEvidence, Targets]:
    """Return the model with noise variances ``known + learned``, and targets of these weights.

    ``known`` (n,) is on the scale of the standardised targets. ``noise`` of the model is that of
    a measurement of median error, which is what predictions of new measurements include.
    """
    model, graphs = fitted.model, fitted.model.training_graphs
    measured = np.arange(len(known)) if targets.limits is None else np.flatnonzero(
        targets.limits == 0)  # fmt: skip
    some = np.sort(np.random.default_rng(0).permutation(measured)[:_MOST])
    part = select_features(graphs, some)
    kernel = model.kernel.matrix(part, part, n_jobs)
    learned = most_likely_noise(kernel, known[some], targets.values[some], n_jobs)
    variances, typical = known + learned, learned + float(np.median(known))
    weights = typical / variances
    targets = replace(targets, weights=weights)
    if isinstance(model.posterior, ExactPosterior):
        among = model.kernel.matrix(graphs, graphs, n_jobs)
        found = Conditioned.fit(targets, among, typical, n_jobs)
        left_out = found.leave_one_out(n_jobs, replicate_numbers(graphs))
        used = weights * (found.measured / found.noise)
        model = replace(model, noise=typical, sample_weights=used, posterior=found.posterior)
    else:
        through = LandmarkFit(model.kernel, graphs, variances, targets.values, n_jobs)
        through = through_landmarks(through, model.basis_indices, targets)
        landmarks, left_out = through.through(model.basis_indices)
        left_out = of_measurements(left_out, through.noise, variances)
        model = replace(model, noise=typical, posterior=landmarks)
    return replace(fitted, model=model, left_out=left_out), targets


def most_likely_noise(
    kernel: np.ndarray, known: np.ndarray, targets: np.ndarray, n_jobs: int = 1
) -> float:
    """Return the variance that, added to the known ones, makes the targets most likely."""

    def objective(log_noise: float) -> float:
        matrix = kernel.copy()
        own = np.diag_indices_from(matrix)
        matrix[own] += JITTER * kernel[own] + known + np.exp(log_noise)
        factor = cholesky_in_place(matrix, n_jobs)
        half = solve_upper(factor, targets, transposed=True, n_jobs=n_jobs)
        return float(0.5 * (half**2).mean(axis=1).sum() + np.log(np.diagonal(factor)).sum())

    bounds = (np.log(_LEAST), np.log(_LARGEST))
    return float(np.exp(minimize_scalar(objective, bounds=bounds, options={"xatol": 0.01}).x))
