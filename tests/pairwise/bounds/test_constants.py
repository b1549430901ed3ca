"""The constants against losses, gradients and similarities of pairs written out."""

from __future__ import annotations

import numpy as np
import pytest

from naive import learning as naive
from treelens.pairwise.constants import (
    constants_of,
    largest_pair_factor,
    loss_constants,
    reachable_similarity,
)
from treelens.pairwise.constraints import CONSTRAINT_SETS
from treelens.pairwise.objective import Margins

MARGINS = Margins(alpha1=0.8, alpha2=0.4, sigma=0.15)


def losses_and_gradients(z, labels, weights, margins):
    """Loss (n_pairs,) and gradient (n_pairs, n_patterns) of all ordered pairs."""
    n = len(z)
    losses, gradients = [], []
    for i in range(n):
        for j in range(n):
            distance = margins.b - z[i, j] @ weights
            loss, slope = naive.hinge(distance, labels[i] == labels[j], margins)
            losses.append(loss)
            gradients.append(-slope * z[i, j])
    return np.array(losses), np.array(gradients)


@pytest.mark.parametrize("constraint", ["ball", "box"])
def test_no_pair_exceeds_the_constants(features, labels, rng, constraint):
    """At random weights of the constraint, far out and near the knots of the hinges."""
    radii = np.array([0.5, 1.0, 2.0])
    constants = constants_of(features, MARGINS, radii, box=constraint == "box")
    allowed = CONSTRAINT_SETS[constraint](features.level_offsets, radii)
    z = naive.all_pair_features(features)
    points = [allowed.project(1 + rng.normal(size=features.n_patterns)) for _ in range(4)]
    points += [points[0] + 1e-3 * rng.normal(size=features.n_patterns)]
    gradients = []
    for weights in points:
        losses, gradient = losses_and_gradients(z, labels, weights, MARGINS)
        assert losses.max() <= constants.loss_bound
        assert np.linalg.norm(gradient, axis=1).max() <= constants.lipschitz * (1 + 1e-12)
        gradients.append(gradient)
    for a in range(len(points)):
        for b in range(a):
            change = np.linalg.norm(gradients[a] - gradients[b], axis=1).max()
            moved = np.linalg.norm(points[a] - points[b])
            assert change <= constants.smoothness * moved * (1 + 1e-9)


def test_constants_are_reached(features, labels):
    """They are the smallest that hold: a pair of graphs with itself reaches each of them."""
    z = naive.all_pair_features(features)
    norms = np.linalg.norm(z, axis=2)
    steep = Margins(alpha1=9.0, alpha2=-9.0, sigma=0.1)  # all hinges at slope 1
    losses, gradients = losses_and_gradients(z, labels, np.zeros(features.n_patterns), steep)
    constants = constants_of(features, steep, np.zeros(3))
    assert constants.pair_norm == pytest.approx(norms.max(), rel=1e-12)
    assert np.linalg.norm(gradients, axis=1).max() == pytest.approx(constants.lipschitz)
    assert losses.max() == pytest.approx(constants.loss_bound)  # d = b at weights 0


def test_loss_bound_is_the_papers_where_distances_are_not_negative():
    margins = Margins(alpha1=1.0, alpha2=0.5, sigma=0.1, b=2.0)
    expected = max(2.0 - 0.05 - 0.5, 1.0 - 0.05)
    assert loss_constants(0.5, margins).loss_bound == pytest.approx(expected)
    assert loss_constants(0.5, margins, largest_similarity=2.0).loss_bound == pytest.approx(
        expected
    )
    below_zero = loss_constants(0.5, margins, largest_similarity=5.0)  # distances down to -3
    assert below_zero.loss_bound == pytest.approx(4.0 - 0.05)


def test_loss_bound_holds_for_smoothing_wider_than_the_margins():
    """There the paper's formula, of the linear pieces, would be too small."""
    margins = Margins(alpha1=0.2, alpha2=0.8, sigma=1.0, b=1.0)
    bound = loss_constants(0.5, margins).loss_bound
    assert bound == pytest.approx(0.02)
    assert bound > max(1.0 - 0.5 - 0.8, 0.2 - 0.5)


@pytest.mark.parametrize("constraint", ["ball", "box"])
def test_reachable_similarity_is_the_largest_one(features, constraint):
    """The linear minimiser of -Z, pair by pair, finds no more and reaches it."""
    radii = np.array([0.3, 0.6, 0.9])
    allowed = CONSTRAINT_SETS[constraint](features.level_offsets, radii)
    z = naive.all_pair_features(features).reshape(-1, features.n_patterns)
    largest = max(pair @ allowed.linear_minimizer(-pair) for pair in z)
    reachable = reachable_similarity(features, radii, box=constraint == "box")
    assert reachable == pytest.approx(largest, rel=1e-9)


@pytest.mark.parametrize("balance", [True, False])
def test_pair_factor_is_the_largest_weight_in_the_mean(labels, balance):
    weights = naive.ordered_pair_weights(labels, balance)
    assert largest_pair_factor(labels, balance) == pytest.approx(weights.max() * weights.size)


def test_factor_scales_all_but_the_pair_norm():
    plain, scaled = (loss_constants(0.5, MARGINS, pair_factor=f) for f in (1.0, 3.0))
    assert scaled.pair_norm == plain.pair_norm
    for name in ("lipschitz", "smoothness", "loss_bound"):
        assert getattr(scaled, name) == pytest.approx(3 * getattr(plain, name))
