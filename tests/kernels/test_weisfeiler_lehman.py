"""Distances and kernels of the paper, built on sums over pairs."""

from __future__ import annotations

import numpy as np
import pytest

from kernels.test_gram import ATOL, dense_rows, tables_of
from treelens.kernels.weisfeiler_lehman import (
    exponential,
    linear_kernel,
    metric_distance,
    paper_distance,
)

pytestmark = pytest.mark.interpreted


def test_the_metric_is_half_the_weighted_l1_distance(rng: np.random.Generator) -> None:
    train, new = tables_of("wasserstein")
    weights = rng.random(train.n_patterns)
    diagonal = {side: pairs.diagonal(weights) for side, pairs in [("train", train), ("new", new)]}
    a, b = dense_rows(new)[:, None, :], dense_rows(train)[None, :, :]
    found = metric_distance(
        new,
        train,
        weights,
        left_diagonal=diagonal["new"],
        right_diagonal=diagonal["train"],
        n_jobs=2,
    )
    np.testing.assert_allclose(found, 0.5 * np.abs(a - b) @ weights, atol=ATOL)
    within = metric_distance(
        train, None, weights, left_diagonal=diagonal["train"], right_diagonal=diagonal["train"]
    )
    assert (within == within.T).all()
    np.testing.assert_allclose(np.diag(within), 0.0, atol=ATOL)


def test_the_paper_distance_and_the_kernels(rng: np.random.Generator) -> None:
    train, new = tables_of("wasserstein")
    weights = rng.random(train.n_patterns)
    sums = linear_kernel(new, train, weights)
    distance = paper_distance(new, train, weights, offset=2.0)
    np.testing.assert_allclose(distance, 2.0 - sums, atol=ATOL)
    np.testing.assert_allclose(
        exponential(distance.copy(), 0.3, n_jobs=2), np.exp(-0.3 * distance), rtol=1e-15
    )


def test_by_default_the_paper_distance_of_a_graph_with_itself_is_zero() -> None:
    train, _ = tables_of("wasserstein")
    n_depths = len(train.level_offsets) - 1
    shares = np.full(
        train.n_patterns, 1.0 / n_depths
    )  # the relative frequencies of every depth add up to one
    scale = float(train.diagonal(shares)[0])
    distance = paper_distance(train, None, shares / scale)
    np.testing.assert_allclose(np.diag(distance), 0.0, atol=ATOL)
