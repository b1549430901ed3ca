"""The gap bounds: by hand, and against gaps that can be computed exactly."""

from __future__ import annotations

import math

import numpy as np
import pytest

from treelens.graphs.synthetic import make_synthetic
from treelens.pairwise.constants import constants_of
from treelens.pairwise.generalization import any_solver_gap, stability_gap
from treelens.pairwise.learn import learn_weights
from treelens.pairwise.objective import Margins
from treelens.pairwise.risk import mean_pair_loss
from treelens.patterns.histograms import PatternHistograms
from treelens.patterns.pairs import PairFeatures
from treelens.patterns.vocabulary import PatternVocabulary

MARGINS = Margins(alpha1=0.9, alpha2=0.3, sigma=0.2)


def test_stability_gap_by_hand():
    spread = math.sqrt(2 / 100 * math.log(2 / 0.1))
    assert stability_gap(100, 0.01, 0.9, delta=0.1) == pytest.approx(0.02 + (1 + 0.9) * spread)


def test_any_solver_gap_by_hand():
    expected = 2 * 1.5 * 0.4 / math.sqrt(50) + 0.9 / 101
    expected += 0.9 * math.sqrt(2 / 101 * math.log(10))
    assert any_solver_gap(101, 1.5, 0.4, 0.9, delta=0.1) == pytest.approx(expected)


def test_fixed_weights_need_one_side_only():
    """The pairs of a graph with itself cost M / n, and from 14 graphs on the slack covers it."""
    for n in (14, 100, 1000):
        assert any_solver_gap(n, 0.0, 0.4, 1.0) <= stability_gap(n, 0.0, 1.0)
    assert any_solver_gap(13, 0.0, 0.4, 1.0) > stability_gap(13, 0.0, 1.0)


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, float("nan")])
def test_delta_must_be_a_probability(delta):
    with pytest.raises(ValueError, match="delta must be a probability"):
        stability_gap(10, 0.0, 1.0, delta=delta)
    with pytest.raises(ValueError, match="delta must be a probability"):
        any_solver_gap(10, 1.0, 1.0, 1.0, delta=delta)


def test_too_few_graphs():
    with pytest.raises(ValueError, match="n_graphs must be at least 1"):
        stability_gap(0, 0.0, 1.0)
    with pytest.raises(ValueError, match="at least 2 to make a pair"):
        any_solver_gap(1, 1.0, 1.0, 1.0)


def test_measured_gaps_stay_below_the_bound_for_any_solver():
    """A finite population makes the risk exact; random labels make the gap as large as it gets."""
    graphs, _ = make_synthetic(10, random_state=3)
    histograms = PatternHistograms.from_colors(*PatternVocabulary.fit(graphs, 2))
    everything = PairFeatures.from_histograms(histograms)
    rng = np.random.default_rng(0)
    codes = rng.integers(2, size=len(graphs))
    radii = np.full(3, 0.8)
    constants = constants_of(everything, MARGINS, radii)
    bound = any_solver_gap(
        40, float(np.linalg.norm(radii)), constants.lipschitz, constants.loss_bound, delta=0.1
    )
    gaps = []
    for _ in range(10):
        drawn = rng.integers(len(graphs), size=40)  # with replacement: independent graphs
        features = PairFeatures.from_histograms(histograms.select_graphs(drawn))
        learned = learn_weights(
            features, codes[drawn], radius=0.8, margins=(0.9, 0.3), sigma=0.2, balance=False
        )
        here = mean_pair_loss(features, codes[drawn], learned.weights, MARGINS)
        gaps.append(mean_pair_loss(everything, codes, learned.weights, MARGINS) - here)
    assert np.mean(gaps) > 0
    assert max(gaps) <= bound
