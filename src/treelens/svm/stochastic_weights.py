"""Learning weights from drawn pairs, for more graphs than all pairs of which can be looked at."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from treelens.pairwise.losses import choose_margins
from treelens.pairwise.settings import limited
from treelens.patterns.histograms import PatternHistograms
from treelens.patterns.pairs import PairFeatures
from treelens.svm.landmarks import landmark_positions

# Graphs whose distances give the learner's margins: all pairs of so few cost next to nothing.
_MARGIN_GRAPHS = 1000


def learn_weights_linearly(
    histograms: PatternHistograms,
    codes: np.ndarray,
    kind: str,
    radius: float,
    learner: Any,
    seed: int,
    most_steps: int | None = None,
) -> Any:
    """Learn weights without ever looking at all pairs, whatever their number.

    The stochastic solver draws pairs; margins left to the data come from the distances within a
    sample. ``learner`` is an unfitted :class:`treelens.PairwiseWeights`, which keeps its solver.
    """
    learner = clone(learner) if most_steps is None else limited(learner, n_steps=most_steps)
    learner.set_params(radius=radius)
    if histograms.n_graphs > _MARGIN_GRAPHS:
        picked = landmark_positions(
            histograms.n_graphs, _MARGIN_GRAPHS, np.random.default_rng(seed)
        )
        sample = PairFeatures.from_histograms(histograms.select_graphs(picked), kind)
        margins = choose_margins(learner.margins, learner.sigma, learner.b, sample)
        learner.set_params(margins=(margins.alpha1, margins.alpha2), sigma=margins.sigma)
    return learner.fit(PairFeatures.from_histograms(histograms, kind), codes)
