"""What the numbers of a search mean, in sentences that fit them."""

from __future__ import annotations

import pytest

from treelens.report.words import learning_words, score_words, verdict_on_learning

GAIN = {
    "difference": 0.021, "standard_error": 0.01, "p_value": 0.02, "learned_score": 0.9,
    "uniform_score": 0.879,
}  # fmt: skip


@pytest.mark.parametrize(
    ("gain", "verdict"),
    [
        (None, "not tried"),
        (GAIN, "helped"),
        ({**GAIN, "p_value": 0.05}, "maybe"),
        ({**GAIN, "p_value": 0.4}, "maybe"),
        ({**GAIN, "difference": 0.0, "p_value": 0.01}, "no difference"),
        ({**GAIN, "difference": -0.1, "p_value": 0.01}, "did not help"),
    ],
)
def test_verdicts(gain, verdict) -> None:
    assert verdict_on_learning(gain) == verdict


def test_scores_have_names_and_unknown_ones_their_own() -> None:
    assert score_words("roc_auc") == "area under the ROC curve"
    assert score_words("mcc") == "mcc"


def test_a_sentence_has_the_numbers_in_points() -> None:
    headline, words = learning_words(GAIN, "helped", 1.0, "accuracy")
    assert headline == "Learning the weights helped"
    for part in ("reached 90.0 %", "uniform ones 87.9 % (accuracy)", "+2.1 points", "error of 1.0",
                 "p = 0.02", "uses learned weights"):  # fmt: skip
        assert part in words


@pytest.mark.parametrize(("radius", "used"), [(0.0, "uniform"), (0.5, "learned"), (2.0, "learned")])
def test_the_weights_in_use_are_named_whatever_the_verdict(radius, used) -> None:
    for verdict in ("maybe", "no difference", "did not help"):
        _, words = learning_words({**GAIN, "difference": -0.021}, verdict, radius, "accuracy")
        assert f"uses {used} weights" in words
        assert "-2.1 points" in words
        assert ("do not count on the gain" in words) == (verdict == "maybe")
        assert ("the simpler choice" in words) == (verdict != "maybe")
    headline, words = learning_words(None, "not tried", radius, "accuracy")
    assert headline == f"The weights are {used}; nothing was compared"
    assert f"told to try {used} weights only" in words
