"""Contributions to a linear model on explicit features."""

from __future__ import annotations

import numpy as np
import pytest

import treelens as tl
from scale.test_approximation import FAST


@pytest.mark.parametrize("kernel", ["laplacian", "wwl"])
def test_contributions_of_random_features_are_those_of_the_path(mutag, kernel):
    """Against the integral of slopes along the path, taken numerically."""
    graphs, y = mutag
    model = tl.GraphSVC(kernel, weight_radius=0, approximation="random-fourier", **FAST)
    model.fit(graphs[:60], y[:60])
    features = model.model_.patterns.features(graphs[100:101], None)
    decide = model.model_.decision
    bases, terms = decide.contributions(features)
    values = features.pairs.rows.values

    def decision(frequencies: np.ndarray) -> float:
        from dataclasses import replace

        from treelens.patterns.histograms import SparseRows

        rows = SparseRows(features.pairs.rows.offsets, features.pairs.rows.indices, frequencies)
        pairs = replace(features.pairs, rows=rows, lists=rows.transposed(features.pairs.n_patterns))
        unseen = features.diagonal - features.pairs.diagonal()
        return float(decide.outputs(type(features)(pairs, pairs.diagonal() + unseen))[0, 0])

    assert decision(0 * values) == pytest.approx(bases[0])
    steps = (np.arange(400) + 0.5) / 400
    for entry in (0, len(values) // 2):
        bump = np.zeros_like(values)
        bump[entry] = 1e-6
        slopes = [(decision(t * values + bump) - decision(t * values - bump)) / 2e-6 for t in steps]
        expected = values[entry] * np.mean(slopes)
        assert terms[0, entry] == pytest.approx(expected, rel=2e-2, abs=2e-3)
