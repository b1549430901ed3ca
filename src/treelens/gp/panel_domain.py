"""The domain of applicability of a panel: for each endpoint by the graphs it was measured of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from treelens.kernels.weighted import nearest_of, similarities
from treelens.models.domain import N_NEIGHBORS, Neighbourhood, expected_error, neighbourhood
from treelens.patterns.histograms import Features, GraphViews

if TYPE_CHECKING:
    from treelens.gp.panel_model import FittedPanel

_MOST_LEFT_OUT = 500  # training graphs that limits are set by
_INSIDE = 0.975  # of them, by each of the two limits


class EndpointDomain(NamedTuple):
    """Where one endpoint may be believed."""

    measured: np.ndarray  # (n_measured,) positions of the training graphs that have a value
    surprise: np.ndarray  # (n_measured,) squared left-out errors over their variances
    largest_error: float = np.inf  # to expect of a graph inside, on the scale that is learned
    least_similarity: float = 0.0  # of a graph inside to the nearest measured one

    def around(self, similarity: np.ndarray) -> Neighbourhood:
        """Return the measured graphs around others, from similarities to all training graphs."""
        own = similarity[:, self.measured]
        found = neighbourhood(nearest_of(own, min(N_NEIGHBORS, own.shape[1])), self.surprise)
        return found._replace(nearest=self.measured[found.nearest])

    def holds(self, expected: np.ndarray, around: Neighbourhood) -> np.ndarray:
        """Which graphs are inside, shape (n_graphs,)."""
        return (expected <= self.largest_error) & (around.similarity >= self.least_similarity)


@dataclass(frozen=True, eq=False)
class PanelDomain:
    """Where the endpoints of a panel may be believed."""

    train: GraphViews  # all training graphs
    endpoints: tuple[EndpointDomain, ...]

    @classmethod
    def of(cls, model: FittedPanel, n_jobs: int = 1) -> PanelDomain:
        """Return the domain, its limits set by predictions without the molecule."""
        train, found = model.training_graphs, model.record.left_out
        endpoints = []
        for k in range(len(model.endpoints)):
            truth = model.measured[:, k]
            measured = np.flatnonzero(~np.isnan(truth))
            squares = ((truth - found.new[:, k]) / found.new_std[:, k])[measured] ** 2
            surprise = squares / max(float(squares.mean()), np.finfo(float).tiny)
            domain = EndpointDomain(measured, surprise)
            order = np.random.default_rng(0).permutation(len(measured))[:_MOST_LEFT_OUT]
            some = np.sort(measured[order])
            if len(measured) < 2:
                endpoints.append(domain)
                continue
            similarity = similarities(train.select(some).patterns, train.patterns, n_jobs)
            similarity[np.arange(len(some)), some] = -1.0  # not its own neighbour
            around = _without_self(domain, similarity)
            expected = expected_error(found.new_std[some, k], around)
            endpoints.append(
                domain._replace(
                    largest_error=float(np.quantile(expected, _INSIDE)),
                    least_similarity=float(np.quantile(around.similarity, 1.0 - _INSIDE)),
                )
            )
        return cls(train, tuple(endpoints))

    def around(self, weighed: Features, n_jobs: int = 1) -> list[Neighbourhood]:
        """Return the measured training graphs around new ones, endpoint by endpoint."""
        parts: list[list[Neighbourhood]] = [[] for _ in self.endpoints]
        for block in GraphViews((weighed,)).blocks():
            similarity = similarities(block.patterns, self.train.patterns, n_jobs)
            for own, domain in zip(parts, self.endpoints, strict=True):
                own.append(domain.around(similarity))
        return [Neighbourhood(*map(np.concatenate, zip(*own, strict=True))) for own in parts]


def kept_domain(model: FittedPanel, n_jobs: int = 1) -> PanelDomain:
    """Return the domain of a panel, computed when it is first asked for."""
    if "_domain" not in model.__dict__:
        model.__dict__["_domain"] = PanelDomain.of(model, n_jobs)
    found: PanelDomain = model.__dict__["_domain"]
    return found


def _without_self(domain: EndpointDomain, similarity: np.ndarray) -> Neighbourhood:
    """Return the neighbours of training graphs, whose similarity to themselves is -1."""
    own = similarity[:, domain.measured]
    found = nearest_of(own, min(N_NEIGHBORS, own.shape[1] - 1))
    return neighbourhood(found, domain.surprise)
