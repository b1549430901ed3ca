"""Table 2 from rows: means, numbers of folds, tests."""

import numpy as np
import pytest
from reproduction.accuracy import compare, summarize
from reproduction.protocol import N_OUTER
from scipy import stats


def row(repetition, fold, accuracy):
    key = {"dataset": "MUTAG", "method": "wwl", "repetition": repetition, "fold": fold, "seed": 0}
    return {**key, "accuracy": accuracy}


def test_mean_and_deviation_are_over_repetition_means(rng):
    table = rng.uniform(0.7, 0.9, (3, N_OUTER))
    rows = [row(*key, accuracy) for key, accuracy in np.ndenumerate(table)]
    cell = summarize(rows)["MUTAG"]["wwl"]
    means = 100 * table.mean(axis=1)
    assert cell["mean"] == pytest.approx(means.mean(), abs=1e-3)
    assert cell["std"] == pytest.approx(means.std(ddof=1), abs=1e-3)
    assert cell["n_folds"] == 30
    unfinished = row(3, 0, 0.0)  # does not count beside finished repetitions
    assert summarize([*rows, unfinished])["MUTAG"]["wwl"] == cell


def test_comparison_by_hand(rng):
    first, second = (
        {(r, f): value for (r, f), value in np.ndenumerate(rng.normal(size=(4, 3)))}
        for _ in range(2)
    )
    found = compare(first, second, n_outer=3)
    apart = np.array([first[key] - second[key] for key in sorted(first)])
    assert found.difference == pytest.approx(apart.mean())
    means = apart.reshape(4, 3).mean(axis=1)
    expected = stats.ttest_1samp(means, 0.0, alternative="greater").pvalue
    assert found.p_repetitions == pytest.approx(expected)
    assert compare(second, first, n_outer=3).p_repetitions == pytest.approx(1 - expected)
    error = np.sqrt((1 / 12 + 1 / 2) * apart.var(ddof=1))
    assert found.p_corrected == pytest.approx(2 * stats.t.sf(abs(apart.mean()) / error, 11))
    with pytest.raises(ValueError, match="no fold in common"):
        compare(first, {(9, 9): 1.0})
