"""The domain of applicability of a Gaussian process: limits set by its own training graphs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from treelens.gp.posterior import ExactPosterior
from treelens.models.domain import Domain, expected_error
from treelens.patterns.histograms import GraphViews

if TYPE_CHECKING:
    from treelens.gp.model import FittedGP

_MOST_LEFT_OUT = 500  # training graphs that limits are set by
_INSIDE = 0.975  # of them, by each of the two limits


def domain_of(model: FittedGP, residuals: np.ndarray, n_jobs: int = 1) -> Domain:
    """Return the domain of a model, its limits set by leave-one-out errors (n_train, n_columns)."""
    squares = (residuals**2).mean(axis=1)
    surprise = squares / max(float(squares.mean()), np.finfo(float).tiny)
    domain = Domain(model.training_graphs, surprise)
    # How far off limits are is not known; landmarks are known too well to the posterior.
    able = np.arange(len(squares))[model.training.exact]
    if len(model.basis_indices) < len(squares):
        able = np.setdiff1d(able, model.basis_indices)
    left_out = np.sort(np.random.default_rng(0).permutation(able)[:_MOST_LEFT_OUT])
    some = domain.train.select(left_out)
    around = domain.around_block(some.patterns, n_jobs, left_out)
    expected = expected_error(left_out_std(model, some, left_out, n_jobs), around)
    return replace(
        domain,
        largest_error=float(np.quantile(expected, _INSIDE)),
        least_similarity=float(np.quantile(around.similarity, 1.0 - _INSIDE)),
    )


def left_out_std(
    model: FittedGP, some: GraphViews, left_out: np.ndarray, n_jobs: int = 1
) -> np.ndarray:
    """Standard deviations of new measurements of some training graphs, each left out."""
    posterior = model.full_posterior(n_jobs)
    if isinstance(posterior, ExactPosterior):
        units = np.zeros((len(left_out), len(posterior.factor)))
        units[np.arange(len(left_out)), left_out] = 1.0
        variance = 1.0 / posterior.reduction(units)  # one over the diagonal of the inverse
    else:  # one graph of many hardly moves a posterior through landmarks
        rows = model.kernel_rows(some, n_jobs)
        left = np.maximum(model.kernel.variance - posterior.reduction(rows), 0.0)
        variance = left + model.noise
    return model.target_scale * np.sqrt(variance)
