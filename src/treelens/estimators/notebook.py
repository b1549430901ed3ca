"""HTML of a fitted Gaussian process for notebooks: scores, warnings, patterns; all escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from treelens.evaluation.metrics import CLASS_SCORES, NUMBER_SCORES, class_scores, number_scores

_SHARES = ("accuracy", "balanced_accuracy", "recall", "precision", "coverage")
_N_PATTERNS = 5


def model_html(model: Any) -> str:
    """A fitted :class:`GraphRegressor` or :class:`GraphClassifier` as HTML."""
    lines = [
        f"<p><b>{escape(type(model).__name__)}</b>: {escape(_facts(model))}</p>",
        "<p>Leave-one-out scores (each training graph predicted from all the others):</p>",
        _table(["score", "value"], _scores(model)),
        f"<p>{escape(str(model.learning_gain_))}</p>",
        *(f"<p>⚠ {escape(text)}</p>" for text in model_warnings(model)),
        f"<p>The {_N_PATTERNS} heaviest patterns:</p>",
        _table(["pattern", "weight", "training graphs"], _patterns(model)),
    ]
    return f'<div class="treelens-model">{"".join(lines)}</div>'


def model_warnings(model: Any) -> list[str]:
    """Reasons to distrust a model."""
    found = []
    if not model.converged_:
        found.append("The search for the weights did not converge.")
    if hasattr(model, "classes_") and len(np.unique(model.loo_.predictions)) == 1:
        found.append(
            f"Every graph is predicted to be {model.loo_.predictions[0]!s}: the model does not "
            "distinguish classes, and its accuracy is the share of that class."
        )
    return found


def _facts(model: Any) -> str:
    """Numbers of graphs and patterns; classes and the threshold of a rare one."""
    n_graphs, n_patterns = model.model_.training.histograms.n_graphs, len(model.weights_)
    trees = ", ".join(model.model_.weighted.forest.trees)
    facts = f"{n_graphs:,} graphs, {n_patterns:,} patterns to depth {model.depth} ({trees})"
    if not hasattr(model, "classes_"):
        return facts
    counts = np.bincount(model.train_codes_, minlength=len(model.classes_))
    named = zip(model.classes_.tolist(), counts.tolist(), strict=True)
    facts += "; classes " + ", ".join(f"{name} ({n:,})" for name, n in named)
    if model.threshold_ is None:
        return facts
    rare, value = model.classes_.tolist()[model.threshold_.code], model.threshold_.value
    return f"{facts}; {rare} is predicted from a probability of {value:.3g} on"


def _scores(model: Any) -> list[tuple[str, str]]:
    left_out = model.loo_
    if hasattr(model, "classes_"):
        named = np.searchsorted(model.classes_, left_out.predictions)
        found = class_scores(model.train_codes_, named, left_out.probabilities)
        titles = CLASS_SCORES
    else:
        exact, values = model.model_.training.exact, model.train_values_
        found = number_scores(values[exact], left_out.predictions[exact], left_out.std[exact])
        titles = NUMBER_SCORES
    return [
        (title, f"{100 * found[name]:.1f} %" if name in _SHARES else f"{found[name]:.4g}")
        for name, (title, _) in titles.items()
        if found[name] is not None
    ]


def _patterns(model: Any) -> list[tuple[str, str, str]]:
    support = model.model_.training.histograms.support
    heaviest = np.argsort(-model.weights_ * (support > 1), kind="stable")[:_N_PATTERNS]
    texts = model.model_.weighted.forest.texts(heaviest)
    return [
        (text, f"{model.weights_[pattern]:.3g}", str(int(support[pattern])))
        for text, pattern in zip(texts, heaviest, strict=True)
    ]


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
