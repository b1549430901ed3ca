"""Contributions to a linear model on explicit features."""

from __future__ import annotations

import numpy as np
import pytest

import treelens as tl


@pytest.fixture(scope="module")
def data():
    return tl.make_synthetic(n_per_substructure=6, random_state=0)


def fitted(data, kernel: str, approximation: str):
    graphs, y = data
    three = np.array(["a", "b", "c"])[(np.arange(len(y)) // 6) % 3]
    model = tl.GraphSVC(
        kernel, 2, 0, 1.0, 10.0, approximation=approximation, n_components=64, random_state=0
    )
    return model.fit(graphs[::2], three[::2]).model_


@pytest.mark.parametrize(
    ("kernel", "approximation"),
    [("laplacian", "random-binning"), ("wwl", "random-binning"),
     ("wl-oa", "unary"), ("wl-subtree-cosine", "unary")],
)  # fmt: skip
def test_contributions_and_bases_add_up_to_the_outputs(data, kernel, approximation):
    model = fitted(data, kernel, approximation)
    for number in (1, 7, 20):  # not among the training graphs, or with patterns never seen
        features = model.patterns.features(data[0][number : number + 1], None)
        bases, terms = model.decision.contributions(features)
        assert terms.shape == (3, len(features.pairs.rows.indices))
        expected = model.decision.outputs(features)[0]
        np.testing.assert_allclose(bases + terms.sum(axis=1), expected, atol=1e-10)
        assert np.abs(terms).max() > 0


def test_a_sum_of_minima_gives_each_pattern_what_it_alone_adds(data):
    """Unary features of a pattern do not know of the others: without it, its term is gone."""
    from dataclasses import replace

    from treelens.patterns.histograms import SparseRows

    model = fitted(data, "wl-oa", "unary")
    features = model.patterns.features(data[0][1:2], None)
    _, terms = model.decision.contributions(features)
    rows, whole = features.pairs.rows, model.decision.outputs(features)[0]
    for entry in (0, len(rows.indices) - 1):
        values = rows.values.copy()
        values[entry] = 0.0
        without = SparseRows(rows.offsets, rows.indices, values)
        pairs = replace(
            features.pairs, rows=without, lists=without.transposed(features.pairs.n_patterns)
        )
        less = model.decision.outputs(type(features)(pairs, features.diagonal))[0]
        np.testing.assert_allclose(whole - less, terms[:, entry], atol=1e-10)
