"""What the numbers of a summary mean, in sentences."""

from __future__ import annotations

from typing import Any

_SCORE_WORDS = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "roc_auc": "area under the ROC curve",
}
_SIGNIFICANT = 0.05


def score_words(scoring: str) -> str:
    return _SCORE_WORDS.get(scoring, scoring)


def verdict_on_learning(gain: dict[str, Any] | None) -> str:
    """One of "not tried", "helped", "maybe", "no difference" and "did not help"."""
    if gain is None:
        return "not tried"
    if gain["difference"] > 0:
        p_value = gain["p_value"]  # None with a single split
        return "helped" if p_value is not None and p_value < _SIGNIFICANT else "maybe"
    return "no difference" if gain["difference"] == 0 else "did not help"


def learning_words(
    gain: dict[str, Any] | None, verdict: str, weight_radius: float, scoring: str
) -> tuple[str, str]:
    """A headline and an explanation of whether learned weights beat uniform ones."""
    used = "learned" if weight_radius > 0 else "uniform"
    if gain is None:
        return (
            f"The weights are {used}; nothing was compared",
            f"The search was told to try {used} weights only, so there is nothing to compare "
            "them with. Leave weight_radius at 'auto' to find out whether learning helps.",
        )
    headline = {
        "helped": "Learning the weights helped",
        "maybe": "Learning the weights may have helped a little",
        "no difference": "Learning the weights made no difference",
        "did not help": "Learning the weights did not help",
    }[verdict]
    return headline, f"{_comparison(gain, scoring)} {_conclusion(verdict, used)}"


def _comparison(gain: dict[str, Any], scoring: str) -> str:
    spread = (
        "."
        if gain["p_value"] is None
        else (
            f" with a standard error of {100 * gain['standard_error']:.1f} "
            f"(one-sided p = {gain['p_value']:.2f})."
        )
    )
    return (
        f"In the inner cross-validation the best learned weights reached "
        f"{_points(gain['learned_score'])} and the best uniform ones "
        f"{_points(gain['uniform_score'])} ({score_words(scoring)}): a difference of "
        f"{100 * gain['difference']:+.1f} points{spread}"
    )


def _conclusion(verdict: str, used: str) -> str:
    if verdict == "helped":
        return "That is more than chance explains easily, and the model uses learned weights."
    if verdict == "maybe":
        return (
            f"Chance alone could produce that much. The model uses {used} weights, the better of "
            "the two here; do not count on the gain."
        )
    return f"The model uses {used} weights, the simpler choice."


def _points(score: float) -> str:
    return f"{100 * score:.1f} %"
