"""Did learning help? The paired test and what is compared."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from treelens.evaluation.validation import corrected_paired_test
from treelens.svm.gain import learning_gain
from treelens.svm.search_result import Candidate, SearchResult

UNIFORM = Candidate(0.0, 2, "tanimoto", None, 1.0)
LEARNED = UNIFORM._replace(weight_radius=1.0)


def result_of(scores: dict[Candidate, list[float]], n_splits: int = 4) -> SearchResult:
    losses = {c: [1.0] * len(x) for c, x in scores.items()}
    return SearchResult(n_splits, 0.25, dict(scores), losses)


def test_without_correction_it_is_the_paired_t_test(rng):
    left, right = rng.normal(0.1, 1.0, 12), rng.normal(0.0, 1.0, 12)
    mean, error, p_value = corrected_paired_test(left - right, 0.0)
    expected = stats.ttest_rel(left, right, alternative="greater")
    assert p_value == pytest.approx(expected.pvalue, rel=1e-10)
    assert mean / error == pytest.approx(expected.statistic, rel=1e-10)


def test_the_correction_widens_the_error(rng):
    """Nadeau and Bengio: the variance of the mean is (1/n + n_test/n_train) times the spread."""
    differences = rng.normal(0.1, 1.0, 10)
    _, plain, p_plain = corrected_paired_test(differences, 0.0)
    _, corrected, p_corrected = corrected_paired_test(differences, 1 / 9)
    assert corrected / plain == pytest.approx(np.sqrt((1 / 10 + 1 / 9) / (1 / 10)))
    assert p_plain < p_corrected < 0.5


def test_a_gain_and_a_loss_are_told_apart(rng):
    differences = 0.05 + 0.01 * rng.normal(size=10)
    assert corrected_paired_test(differences, 1 / 9)[2] < 0.01
    assert corrected_paired_test(-differences, 1 / 9)[2] > 0.99


@pytest.mark.parametrize("differences", [[0.1], [0.0, 0.0], [0.02, 0.02, 0.02], [-0.1, -0.1]])
def test_without_spread_there_is_no_evidence(differences):
    mean, error, p_value = corrected_paired_test(np.array(differences), 0.25)
    assert (error, p_value) == (0.0, 0.5)
    assert mean == pytest.approx(differences[0])


def test_the_best_of_both_kinds_are_compared():
    weaker, stronger = LEARNED, LEARNED._replace(weight_radius=3.0)
    scores = {
        UNIFORM: [0.5, 0.6, 0.7, 0.8],
        UNIFORM._replace(depth=1): [0.4, 0.4, 0.4, 0.4],
        weaker: [0.5, 0.5, 0.5, 0.5],
        stronger: [0.6, 0.8, 0.8, 0.8],
    }
    gain = learning_gain(result_of(scores))
    assert gain is not None
    assert gain["difference"] == pytest.approx(0.1)
    assert (gain["uniform_score"], gain["learned_score"]) == pytest.approx((0.65, 0.75))
    assert gain["learned_candidate"] == stronger._asdict()
    assert gain["uniform_candidate"] == UNIFORM._asdict()
    expected = corrected_paired_test(np.array([0.1, 0.2, 0.1, 0.0]), 0.25)
    assert (gain["difference"], gain["standard_error"], gain["p_value"]) == pytest.approx(expected)


@pytest.mark.parametrize(
    "scores",
    [
        {UNIFORM: [0.5] * 4},
        {LEARNED: [0.5] * 4},
        {UNIFORM: [0.5] * 4, LEARNED: [0.1, 0.1]},  # left the race after two splits
    ],
)
def test_nothing_to_compare(scores):
    assert learning_gain(result_of(scores)) is None
