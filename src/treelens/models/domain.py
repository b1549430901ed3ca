"""Where a model may be believed.

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
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from treelens.graphs.kinds import noun_of
from treelens.kernels.weighted import Nearest, nearest_graphs
from treelens.patterns.histograms import Features, GraphViews

if TYPE_CHECKING:
    from treelens.models.fitted import FittedModel

N_NEIGHBORS = 20
PRIOR_NEIGHBOR_WEIGHT = 3.0  # pseudo-count that shrinks the local error ratio to 1


class Neighbourhood(NamedTuple):
    """Of each new graph."""

    nearest: np.ndarray  # (n_graphs,) position of the most similar training graph
    similarity: np.ndarray  # (n_graphs,) to it, from 0 to 1
    surprise: np.ndarray  # (n_graphs,) of the nearest: 1 where they were as hard as usual


def expected_error(std: np.ndarray, around: Neighbourhood) -> np.ndarray:
    """Standard deviations corrected by how hard the neighbours were, shape (n_graphs,)."""
    found: np.ndarray = std * np.sqrt(around.surprise)
    return found


def neighbourhood(found: Nearest, surprise: np.ndarray) -> Neighbourhood:
    """Return how hard the nearest training graphs were, of which ``surprise`` is known."""
    near, alike = found
    weight = alike**2
    hard = PRIOR_NEIGHBOR_WEIGHT + (weight * surprise[near]).sum(axis=1)
    return Neighbourhood(
        near[:, 0], alike[:, 0], hard / (PRIOR_NEIGHBOR_WEIGHT + weight.sum(axis=1))
    )


@dataclass(frozen=True, eq=False)
class Domain:
    """Where a model may be believed, by limits of what counts as inside."""

    train: GraphViews  # all training graphs
    surprise: np.ndarray  # (n_train,) squared leave-one-out errors over their mean
    largest_error: float = np.inf  # to expect of a graph inside, in the units of the targets
    least_similarity: float = 0.0  # of a graph inside to the nearest training graph

    def around(self, weighed: Features, n_jobs: int = 1) -> Neighbourhood:
        """Return the training graphs around new ones, by their patterns."""
        blocks = GraphViews((weighed,)).blocks()
        parts = [self.around_block(block.patterns, n_jobs) for block in blocks]
        return Neighbourhood(*map(np.concatenate, zip(*parts, strict=True)))

    def around_block(
        self, some: Features, n_jobs: int, left_out: np.ndarray | None = None
    ) -> Neighbourhood:
        """Return the same of a few graphs.

        ``left_out``: the training graph that each one is, which is not its own neighbour.
        """
        found = nearest_graphs(some, self.train.patterns, N_NEIGHBORS, left_out, n_jobs)
        return neighbourhood(found, self.surprise)

    def holds(self, expected: np.ndarray, around: Neighbourhood) -> np.ndarray:
        """Which graphs are inside, shape (n_graphs,)."""
        return (expected <= self.largest_error) & (around.similarity >= self.least_similarity)


def compared_alone(model: FittedModel, noun: str) -> str | None:
    """Return what a model of depth 0 compares, of which different graphs may have the same.

    None where the model sees what is joined to what.
    """
    forest = model.forest
    if forest is None or forest.depth > 0 or forest.cells is not None:
        return None
    return "atoms" if noun == "molecule" else "labels"


def about_depth(model: FittedModel) -> list[str]:
    """Return what similarities of a model of depth 0 do not say."""
    noun = noun_of(model.recipe)
    alone = compared_alone(model, noun.rstrip("s"))
    if alone is None:
        return []
    return [
        f"The model has depth 0: its similarities compare {alone} alone. Different {noun} of the "
        f"same {alone} have a similarity of 1, and may be in its domain."
    ]
