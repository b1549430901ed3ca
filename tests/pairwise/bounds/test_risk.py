"""The measured side of a bound: the mean loss over pairs."""

from __future__ import annotations

import numpy as np
import pytest

from naive import learning as naive
from pairwise.bounds.test_generalization import MARGINS
from treelens.pairwise.risk import mean_pair_loss


def test_mean_pair_loss_is_the_mean_over_pairs(features, labels, rng):
    weights = rng.uniform(0, 2, features.n_patterns)
    z = naive.all_pair_features(features)
    n = features.n_graphs
    losses = np.array(
        [
            [
                naive.hinge(MARGINS.b - z[i, j] @ weights, labels[i] == labels[j], MARGINS)[0]
                for j in range(n)
            ]
            for i in range(n)
        ]
    )
    codes = labels[:n]
    assert mean_pair_loss(features, codes, weights, MARGINS) == pytest.approx(losses.mean())
    apart = losses[~np.eye(n, dtype=bool)].mean()
    assert mean_pair_loss(features, codes, weights, MARGINS, diagonal=False) == pytest.approx(apart)
    balanced = (losses * naive.ordered_pair_weights(codes, True)).sum()
    assert mean_pair_loss(features, codes, weights, MARGINS, balance=True) == pytest.approx(
        balanced
    )
    with pytest.raises(ValueError, match="balance=True needs diagonal=True"):
        mean_pair_loss(features, codes, weights, MARGINS, balance=True, diagonal=False)
