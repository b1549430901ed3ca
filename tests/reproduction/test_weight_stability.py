"""Standard errors of weights that are learned again on resamples."""

from __future__ import annotations

import numpy as np
import pytest
from reproduction.weight_stability import weight_stability

from treelens.graphs.synthetic import make_random_graphs
from treelens.patterns.histograms import PatternHistograms
from treelens.patterns.vocabulary import PatternVocabulary

GRAPHS = make_random_graphs(40, n_nodes=(5, 12), n_labels=3, random_state=5)
CODES = np.random.default_rng(6).integers(0, 3, 40)


@pytest.fixture(scope="module")
def histograms():
    return PatternHistograms.from_colors(*PatternVocabulary.fit(GRAPHS, depth=2))


@pytest.mark.parametrize("how", ["folds", "bootstrap"])
def test_error_bars_measure_the_spread_of_a_mean(how, histograms):
    """Learning the mean of a number per graph has the well-known standard error."""
    values = np.random.default_rng(8).normal(size=40)
    found = weight_stability(
        lambda indices: np.full(histograms.n_patterns, values[indices].mean()),
        histograms, CODES, how=how, n_resamples=40, random_state=0,
    )  # fmt: skip
    common = int(histograms.support.argmax())
    standard_error = values.std(ddof=1) / np.sqrt(40)
    assert found.error[common] == pytest.approx(standard_error, rel=0.01 if how == "folds" else 0.4)
    assert found.mean[common] == pytest.approx(values.mean(), abs=0.1)
    assert found.n_resamples[common] == 40


def test_resamples_without_a_pattern_do_not_count(histograms):
    found = weight_stability(
        lambda indices: np.ones(histograms.n_patterns), histograms, CODES, n_resamples=4
    )
    alone = histograms.support == 1
    assert (found.n_resamples[alone] == 3).all()
    assert not np.nan_to_num(found.error).any()
