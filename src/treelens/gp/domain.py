"""Where a model may be believed: how much error to expect of it, and who its neighbours are.

A Gaussian process says how sure it is, but it takes the noise to be the same everywhere. Its own
leave-one-out errors tell where that is wrong: a new graph whose nearest training graphs were hard
to predict will be hard, too. So the error to expect is the predictive standard deviation, corrected
by how surprising the values of the nearest training graphs were,

    std * sqrt((3 + sum w z) / (3 + sum w)),      w = T²,   z = squared error left out / its mean

over the twenty nearest by the learned Tanimoto similarity ``T``. Nothing is fitted here; the limits
of what counts as inside are set by the training graphs themselves, each left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from treelens.gp.model import FittedGP, feature_blocks
from treelens.gp.posterior import ExactPosterior
from treelens.kernels.nearest import nearest_graphs
from treelens.patterns.features import Features, select_features

_N_NEIGHBOURS = 20
_DOUBT = 3.0  # so many neighbours' worth of trust in the standard deviation as it is
_MOST_LEFT_OUT = 500  # training graphs that limits are set by
_INSIDE = 0.975  # of them, by each of the two limits


class Neighbourhood(NamedTuple):
    """Of each new graph."""

    nearest: np.ndarray  # (n_graphs,) position of the most similar training graph
    similarity: np.ndarray  # (n_graphs,) to it, from 0 to 1
    surprise: np.ndarray  # (n_graphs,) of the nearest: 1 where they were as hard as usual


@dataclass(frozen=True, eq=False)
class Domain:
    """What a model knows about where it may be believed.

    Attributes
    ----------
    model : FittedGP
    train : Features
        All training graphs.
    surprise : ndarray, shape (n_train,)
        Squared leave-one-out errors over their mean.
    largest_error : float
        The error to expect of a graph that counts as inside, in the units of the targets.
    least_similarity : float
        To the nearest training graph, of a graph that counts as inside.
    """

    model: FittedGP
    train: Features
    surprise: np.ndarray
    largest_error: float
    least_similarity: float

    @classmethod
    def of(cls, model: FittedGP, train: Features, residuals: np.ndarray, n_jobs: int = 1) -> Domain:
        """Set the limits.

        Parameters
        ----------
        model : FittedGP
        train : Features
        residuals : ndarray, shape (n_train, n_columns)
            Leave-one-out errors.
        n_jobs : int
        """
        squares = (residuals**2).mean(axis=1)
        surprise = squares / max(float(squares.mean()), np.finfo(float).tiny)
        left_out = _drawn(model, train.pairs.n_graphs)
        some = select_features(train, left_out)
        around = neighbourhood(model, some, train, surprise, n_jobs, left_out)
        expected = expected_error(left_out_std(model, some, left_out, n_jobs), around)
        return cls(
            model, train, surprise, float(np.quantile(expected, _INSIDE)),
            float(np.quantile(around.similarity, 1.0 - _INSIDE)),
        )  # fmt: skip

    def around(self, weighed: Features, n_jobs: int = 1) -> Neighbourhood:
        """The training graphs around new ones."""
        parts = [
            neighbourhood(self.model, block, self.train, self.surprise, n_jobs)
            for block in feature_blocks(weighed, weighed.pairs.n_graphs)
        ]
        return Neighbourhood(*map(np.concatenate, zip(*parts, strict=True)))

    def holds(self, expected: np.ndarray, around: Neighbourhood) -> np.ndarray:
        """Which graphs are inside, shape (n_graphs,)."""
        return (expected <= self.largest_error) & (around.similarity >= self.least_similarity)


def expected_error(std: np.ndarray, around: Neighbourhood) -> np.ndarray:
    """Standard deviations corrected by how hard the neighbours were, shape (n_graphs,)."""
    return std * np.sqrt(around.surprise)


def neighbourhood(
    model: FittedGP,
    weighed: Features,
    train: Features,
    surprise: np.ndarray,
    n_jobs: int = 1,
    left_out: np.ndarray | None = None,
) -> Neighbourhood:
    """The nearest training graphs by learned Tanimoto similarity.

    ``left_out`` (n_graphs,): the training graph that each one is, which is not its own neighbour.
    """
    near, alike = nearest_graphs(
        weighed, train, model.weighted.weights, _N_NEIGHBOURS, left_out, n_jobs
    )
    weight = alike**2
    local = (_DOUBT + (weight * surprise[near]).sum(axis=1)) / (_DOUBT + weight.sum(axis=1))
    return Neighbourhood(near[:, 0], alike[:, 0], local)


def left_out_std(
    model: FittedGP, some: Features, left_out: np.ndarray, n_jobs: int = 1
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


def _drawn(model: FittedGP, n_train: int) -> np.ndarray:
    """Some training graphs; no landmarks, which a posterior through them knows too well."""
    everyone = np.arange(n_train)
    if model.training is not None:  # nor limits: how far off these are is not known
        everyone = everyone[model.training.exact]
    if model.basis.n_graphs < n_train:
        everyone = np.setdiff1d(everyone, model.basis_indices)
    return np.sort(np.random.default_rng(0).permutation(everyone)[:_MOST_LEFT_OUT])
