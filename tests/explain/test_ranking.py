"""Rankings are stable, separation is a correlation, and error bars measure what they say."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from treelens.explain.ranking import class_separation, rank_patterns, weight_stability
from treelens.graphs.synthetic import make_random_graphs
from treelens.patterns.histograms import PatternHistograms
from treelens.patterns.vocabulary import PatternVocabulary


@pytest.fixture(scope="module")
def histograms():
    graphs = make_random_graphs(40, n_nodes=(5, 12), n_labels=3, random_state=5)
    return PatternHistograms.from_colors(*PatternVocabulary.fit(graphs, depth=2))


@pytest.fixture(scope="module")
def codes():
    return np.random.default_rng(6).integers(0, 3, 40)


def test_ranking_does_not_depend_on_the_order_before(rng):
    table = pd.DataFrame(
        {
            "pattern": [f"p{k % 3}" for k in range(30)],
            "depth": np.arange(30) % 2,
            "weight": rng.integers(0, 3, 30).astype(float),
            "support": rng.integers(1, 4, 30),
        }
    )
    for by in ("weight", "support", "depth"):
        ranked = rank_patterns(table, by)
        assert ranked[by].is_monotonic_decreasing
        pd.testing.assert_frame_equal(
            rank_patterns(table.sample(frac=1, random_state=1), by), ranked
        )
    with pytest.raises(ValueError, match="'beauty'"):
        rank_patterns(table, "beauty")


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        # weight, then support (many first), depth (shallow first), text, id
        ("weight", ["f", "b", "d", "c", "a1", "a2", "e"]),
        ("support", ["e", "f", "b", "d", "c", "a1", "a2"]),
    ],
)
def test_ties_are_broken_by_support_then_depth_then_text_then_id(by, expected):
    rows = {  # text, depth, weight, support
        "a2": ("a", 2, 1.0, 3), "a1": ("a", 2, 1.0, 3), "b": ("b", 0, 1.0, 5),
        "c": ("c", 1, 1.0, 3), "d": ("d", 0, 1.0, 3), "e": ("e", 0, 0.5, 9), "f": ("f", 3, 2.0, 9),
    }  # fmt: skip
    table = pd.DataFrame.from_dict(
        rows, orient="index", columns=["pattern", "depth", "weight", "support"]
    )
    assert rank_patterns(table, by).index.tolist() == expected


def test_separation_of_two_classes_is_the_absolute_correlation(histograms, codes):
    two = np.minimum(codes, 1)
    found = class_separation(histograms, two, 2)
    frequencies = histograms.to_sparse("frequencies").toarray()
    varies = frequencies.std(axis=0) > 1e-9
    expected = [abs(np.corrcoef(column, two)[0, 1]) for column in frequencies.T[varies]]
    np.testing.assert_allclose(found[varies], expected, atol=1e-10)
    assert not found[~varies].any()


def test_separation_of_three_classes_is_the_correlation_ratio(histograms, codes):
    found = class_separation(histograms, codes, 3)
    frequencies = histograms.to_sparse("frequencies").toarray()
    for pattern in range(0, histograms.n_patterns, 9):
        x = frequencies[:, pattern]
        between = sum((codes == c).sum() * (x[codes == c].mean() - x.mean()) ** 2 for c in range(3))
        assert found[pattern] == pytest.approx(np.sqrt(between / ((x - x.mean()) ** 2).sum()))


@pytest.mark.parametrize("how", ["folds", "bootstrap"])
def test_error_bars_measure_the_spread_of_a_mean(how, histograms, codes):
    """Learning the mean of a number per graph has the well-known standard error."""
    values = np.random.default_rng(8).normal(size=40)
    found = weight_stability(
        lambda indices: np.full(histograms.n_patterns, values[indices].mean()),
        histograms, codes, how=how, n_resamples=40, random_state=0,
    )  # fmt: skip
    common = int(histograms.support.argmax())
    standard_error = values.std(ddof=1) / np.sqrt(40)
    assert found.error[common] == pytest.approx(standard_error, rel=0.01 if how == "folds" else 0.4)
    assert found.mean[common] == pytest.approx(values.mean(), abs=0.1)
    assert found.n_resamples[common] == 40


def test_resamples_without_a_pattern_do_not_count(histograms, codes):
    found = weight_stability(
        lambda indices: np.ones(histograms.n_patterns), histograms, codes, n_resamples=4
    )
    alone = histograms.support == 1
    assert (found.n_resamples[alone] == 3).all()
    assert (found.n_resamples[~alone] >= 2).all()
    assert not np.nan_to_num(found.error).any()


def test_resamples_keep_the_classes(histograms, codes):
    seen = []

    def learn(indices):
        seen.append(np.bincount(codes[indices], minlength=3))
        return np.ones(histograms.n_patterns)

    weight_stability(learn, histograms, codes, how="bootstrap", n_resamples=3, random_state=0)
    assert all((counts == np.bincount(codes)).all() for counts in seen)
    seen.clear()
    weight_stability(learn, histograms, codes, how="folds", n_resamples=4, random_state=0)
    assert np.ptp(np.array(seen), axis=0).max() <= 1


@pytest.mark.parametrize(("options", "message"), [({"how": "guess"}, "guess"),
                                                  ({"n_resamples": 1}, "2 or more")])  # fmt: skip
def test_wrong_options_are_named(options, message, histograms, codes):
    with pytest.raises(ValueError, match=message):
        weight_stability(lambda indices: indices, histograms, codes, **options)
