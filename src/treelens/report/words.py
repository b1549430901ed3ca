"""What the numbers of a summary mean, in sentences."""

from __future__ import annotations

from typing import Any

_SCORE_WORDS = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "roc_auc": "area under the ROC curve",
}
_FORM_WORDS = {
    "exponential": "two graphs are alike when the shares of their nodes that carry each pattern "
    "agree, with weights; similarity falls off exponentially with the distance",
    "metric": "the distance adds up, with weights, how much the shares of nodes that carry each "
    "pattern differ; similarity falls off exponentially with it",
    "tanimoto": "two graphs are alike in as much as they hold the same patterns equally often: "
    "what they share, with weights, divided by what either holds",
    "tanimoto-exponential": "what two graphs share, with weights, divided by what either holds; "
    "similarity falls off exponentially with the rest",
    "assignment": "the best matching of the nodes of two graphs, with weights on the patterns "
    "that matched nodes share",
    "subtree": "the number of pairs of nodes that carry the same pattern, with weights",
    "linear": "the share of nodes that two graphs have in common, pattern by pattern, with weights",
    "subtree-cosine": "the number of pairs of nodes that carry the same pattern, with weights, "
    "freed of the size of the graphs",
}
_SIGNIFICANT = 0.05


def score_words(scoring: str) -> str:
    return _SCORE_WORDS.get(scoring, scoring)


def form_words(form: str) -> str:
    return _FORM_WORDS.get(form, form)


def verdict_on_learning(gain: dict[str, Any] | None) -> str:
    """One of "not tried", "helped", "maybe", "no difference" and "did not help"."""
    if gain is None:
        return "not tried"
    if gain["difference"] > 0:
        return "helped" if gain["p_value"] < _SIGNIFICANT else "maybe"
    return "no difference" if gain["difference"] == 0 else "did not help"


def learning_words(
    gain: dict[str, Any] | None, verdict: str, radius: float, scoring: str
) -> tuple[str, str]:
    """A headline and an explanation of whether learned weights beat uniform ones."""
    used = "learned" if radius > 0 else "uniform"
    if gain is None:
        return (
            f"The weights are {used}; nothing was compared",
            f"The search was told to try {used} weights only, so there is nothing to compare "
            "them with. Leave radius at 'auto' to find out whether learning helps.",
        )
    headline = {
        "helped": "Learning the weights helped",
        "maybe": "Learning the weights may have helped a little",
        "no difference": "Learning the weights made no difference",
        "did not help": "Learning the weights did not help",
    }[verdict]
    return headline, f"{_comparison(gain, scoring)} {_conclusion(verdict, used)}"


def _comparison(gain: dict[str, Any], scoring: str) -> str:
    return (
        f"In the inner cross-validation the best learned weights reached "
        f"{_points(gain['learned_score'])} and the best uniform ones "
        f"{_points(gain['uniform_score'])} ({score_words(scoring)}): a difference of "
        f"{100 * gain['difference']:+.1f} points with a standard error of "
        f"{100 * gain['standard_error']:.1f} (one-sided p = {gain['p_value']:.2f})."
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
