"""Where a Gaussian process may be believed.

A Gaussian process says how sure it is, but it takes the noise to be the same everywhere. Its own
leave-one-out errors tell where that is wrong: a new graph whose nearest training graphs were hard
to predict will be hard, too. So the error to expect is the predictive standard deviation, corrected
by how surprising the values of the nearest training graphs were,

    std * sqrt((3 + sum w z) / (3 + sum w)),      w = T²,   z = squared error left out / its mean

over the twenty nearest by the learned Tanimoto similarity ``T``. Nothing is fitted here; the limits
of what counts as inside are set by the training graphs themselves, each left out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from treelens.gp.model import FittedGP, view_blocks
from treelens.gp.posterior import ExactPosterior
from treelens.kernels.weighted import nearest_graphs
from treelens.patterns.histograms import Features, GraphViews

N_NEIGHBORS = 20
PRIOR_NEIGHBOR_WEIGHT = 3.0  # pseudo-count that shrinks the local error ratio to 1
_MOST_LEFT_OUT = 500  # training graphs that limits are set by
_INSIDE = 0.975  # of them, by each of the two limits


class Neighbourhood(NamedTuple):
    """Of each new graph."""

    nearest: np.ndarray  # (n_graphs,) position of the most similar training graph
    similarity: np.ndarray  # (n_graphs,) to it, from 0 to 1
    surprise: np.ndarray  # (n_graphs,) of the nearest: 1 where they were as hard as usual


def expected_error(std: np.ndarray, around: Neighbourhood) -> np.ndarray:
    """Standard deviations corrected by how hard the neighbours were, shape (n_graphs,)."""
    return std * np.sqrt(around.surprise)


@dataclass(frozen=True, eq=False)
class Domain:
    """Where a model may be believed, by limits of what counts as inside."""

    model: FittedGP
    train: GraphViews  # all training graphs
    surprise: np.ndarray  # (n_train,) squared leave-one-out errors over their mean
    largest_error: float = np.inf  # to expect of a graph inside, in the units of the targets
    least_similarity: float = 0.0  # of a graph inside to the nearest training graph

    @classmethod
    def of(cls, model: FittedGP, residuals: np.ndarray, n_jobs: int = 1) -> Domain:
        """Set the limits by leave-one-out errors (n_train, n_columns)."""
        assert model.training is not None
        squares = (residuals**2).mean(axis=1)
        surprise = squares / max(float(squares.mean()), np.finfo(float).tiny)
        domain = cls(model, model.training_graphs, surprise)
        # How far off limits are is not known; landmarks are known too well to the posterior.
        able = np.arange(len(squares))[model.training.exact]
        if len(model.basis_indices) < len(squares):
            able = np.setdiff1d(able, model.basis_indices)
        left_out = np.sort(np.random.default_rng(0).permutation(able)[:_MOST_LEFT_OUT])
        some = domain.train.select(left_out)
        around = domain._around(some.patterns, n_jobs, left_out)
        expected = expected_error(left_out_std(model, some, left_out, n_jobs), around)
        return replace(
            domain,
            largest_error=float(np.quantile(expected, _INSIDE)),
            least_similarity=float(np.quantile(around.similarity, 1.0 - _INSIDE)),
        )

    def around(self, weighed: Features, n_jobs: int = 1) -> Neighbourhood:
        """Return the training graphs around new ones, by their patterns."""
        blocks = view_blocks(GraphViews((weighed,)), weighed.pairs.n_graphs)
        parts = [self._around(block.patterns, n_jobs) for block in blocks]
        return Neighbourhood(*map(np.concatenate, zip(*parts, strict=True)))

    def _around(
        self, some: Features, n_jobs: int, left_out: np.ndarray | None = None
    ) -> Neighbourhood:
        """``left_out``: the training graph that each one is, which is not its own neighbour."""
        near, alike = nearest_graphs(some, self.train.patterns, N_NEIGHBORS, left_out, n_jobs)
        weight = alike**2
        hard = PRIOR_NEIGHBOR_WEIGHT + (weight * self.surprise[near]).sum(axis=1)
        return Neighbourhood(
            near[:, 0], alike[:, 0], hard / (PRIOR_NEIGHBOR_WEIGHT + weight.sum(axis=1))
        )

    def holds(self, expected: np.ndarray, around: Neighbourhood) -> np.ndarray:
        """Which graphs are inside, shape (n_graphs,)."""
        return (expected <= self.largest_error) & (around.similarity >= self.least_similarity)


def left_out_std(
    model: FittedGP, some: GraphViews, left_out: np.ndarray, n_jobs: int = 1
) -> np.ndarray:
    """Standard deviations of new measurements of some training graphs, each left out."""
    posterior = model._full_posterior(n_jobs)
    if isinstance(posterior, ExactPosterior):
        units = np.zeros((len(left_out), len(posterior.factor)))
        units[np.arange(len(left_out)), left_out] = 1.0
        variance = 1.0 / posterior.reduction(units)  # one over the diagonal of the inverse
    else:  # one graph of many hardly moves a posterior through landmarks
        rows = model.kernel_rows(some, n_jobs)
        left = np.maximum(model.kernel.variance - posterior.reduction(rows), 0.0)
        variance = left + model.noise
    return model.target_scale * np.sqrt(variance)
