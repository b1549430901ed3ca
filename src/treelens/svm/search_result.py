"""Settings that were tried, how each scored, and which were chosen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypedDict

import numpy as np

from treelens.kernels.table import KERNELS


class BestParams(TypedDict, total=False):
    """What a search chose, and what "auto" stood for."""

    kernel: str
    depth: int
    weight_radius: float
    gamma: float | None
    C: float
    edge_labels: bool
    include_depth_zero: bool
    scoring: str
    class_weight: Any
    rare_class: dict[str, Any] | None
    score: float
    n_candidates: int
    n_splits: int
    approximation: str
    n_components: int
    scored_on: str


class Candidate(NamedTuple):
    """One point of the grid. Ordered so that, among equals, the simpler one comes first."""

    weight_radius: float
    depth: int
    kernel: str
    gamma: float | None
    C: float

    @property
    def base(self) -> Base:
        return Base(KERNELS[self.kernel].pair_feature, self.depth, self.weight_radius)


class Base(NamedTuple):
    """What candidates share: one matrix of sums per split."""

    kind: str
    depth: int
    weight_radius: float


@dataclass
class SearchResult:
    """Scores of all candidates that were tried.

    Attributes
    ----------
    scores : dict of Candidate to list
        One score per split; a candidate that left the race has fewer.
    decisions : dict of Candidate to ndarray, shape (n_graphs, n_outputs)
        Held-out decision values, averaged over repetitions, of candidates that finished; NaN
        for graphs that no split held out.
    margins : dict of Candidate to ndarray, shape (n_graphs, n_outputs)
        The same of what is linear in the kernel: of several classes the mean margins.
    losses : dict of Candidate to list
        Hinge loss per split, which tells candidates of equal score apart.
    n_splits : int
    test_to_train : float
        Size of a validation part divided by the size of its training part.
    """

    n_splits: int
    test_to_train: float
    scores: dict[Candidate, list[float]] = field(default_factory=dict)
    losses: dict[Candidate, list[float]] = field(default_factory=dict)
    decisions: dict[Candidate, np.ndarray] = field(default_factory=dict, metadata={"nan": True})
    margins: dict[Candidate, np.ndarray] = field(default_factory=dict)

    def finished(self) -> list[Candidate]:
        """Candidates scored on every split, the simpler first."""
        done = [c for c, x in self.scores.items() if len(x) == self.n_splits]
        return sorted(done, key=lambda c: tuple(-1.0 if x is None else x for x in c))

    def best(self, keep: Callable[[Candidate], bool] = lambda c: True) -> Candidate | None:
        """The best finished candidate: by score, then by hinge loss, then the simplest."""
        candidates = [c for c in self.finished() if keep(c)]
        return max(candidates, key=self._merit, default=None)

    def winner(self) -> Candidate:
        """The best of all: the leader of a race always finishes."""
        winner = self.best()
        assert winner is not None
        return winner

    def _merit(self, candidate: Candidate) -> tuple[float, float]:
        loss = float(np.mean(self.losses[candidate]))
        return round(self.mean(candidate), 12), -round(loss, 12)

    def mean(self, candidate: Candidate) -> float:
        return float(np.mean(self.scores[candidate]))
