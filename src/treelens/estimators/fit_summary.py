"""A fitted model in numbers (scores of left-out graphs, weights, covariates), and as HTML."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import is_regressor

from treelens.evaluation.metrics import (
    CLASS_SCORES,
    NUMBER_SCORES,
    class_scores,
    number_scores,
    sure_predictions,
)
from treelens.evaluation.validation import codes_among
from treelens.patterns.features import select_features

_MOST_GRAPHS = 1000  # training graphs from which the part of covariates is computed
_SHARES = ("accuracy", "balanced_accuracy", "recall", "precision", "coverage")
_N_PATTERNS = 5  # that a notebook shows


def fit_summary(model: Any) -> dict[str, Any]:
    """Return leave-one-out scores of a Gaussian process, or cross-validated ones of an SVM."""
    if not hasattr(model, "loo_"):
        return _svc_summary(model)
    return {
        "leave_one_out": _number_scores(model) if is_regressor(model) else _class_scores(model),
        "learning_gain": vars(model.learning_gain_),
        "covariates": covariate_facts(model),
        "evidence": model.evidence_,
        "converged": model.converged_,
        "n_steps": len(model.history_),
        "depth": model.best_depth_,
        "weights": model.best_weights_,
        "descriptors": model.uses_descriptors_,
        "trees": list(model.model_.weighted.forest.trees),
    }


def _number_scores(model: Any) -> dict[str, Any]:
    """Return leave-one-out scores of measured values, and of how many limits they keep."""
    found, exact, limits = model.loo_, model.model_.training.exact, model.train_limits_
    values, counts = model.train_values_[exact], None
    if limits is not None:
        beyond = limits * (found.predictions - model.train_values_) > 0
        counts = {"lower": int((limits > 0).sum()), "upper": int((limits < 0).sum()),
                  "held": int(beyond.sum()), "exact": int((limits == 0).sum())}  # fmt: skip
    return {
        "model": number_scores(values, found.predictions[exact], found.std[exact]),
        "mean": {"rmse": float(values.std()), "r2": 0.0},
        "limits": counts,
    }


def _class_scores(model: Any) -> dict[str, Any]:
    """Return leave-one-out scores; recall and precision are of the second class, as effects are."""
    codes, chances = model.train_codes_, model.loo_.probabilities
    predicted = codes_among(model.loo_.predictions, model.classes_)
    two = len(model.classes_) == 2
    counts = np.bincount(codes)
    scores = {
        "model": class_scores(codes, predicted, chances, 1 if two else None),
        "positive": str(model.classes_[1]) if two else None,
        "majority": {"accuracy": float(counts.max() / counts.sum())},
        "sure": sure_predictions(codes, predicted, chances),
        "threshold": None,
    }
    if model.threshold_ is not None:
        value, code = model.threshold_
        rare = class_scores(codes, predicted, chances, code)
        scores["threshold"] = {
            "class": str(model.classes_[code]), "value": value, "rule": str(model.threshold),
            "recall": rare["recall"], "precision": rare["precision"],
            "accuracy_most_probable": float(np.mean(chances.argmax(axis=1) == codes)),
        }  # fmt: skip
    return scores


def _svc_summary(model: Any) -> dict[str, Any]:
    """Return cross-validated scores of the best settings with uniform and with learned weights."""
    codes, scoring = model.train_codes_, model.best_params_["scoring"]
    counts = np.bincount(codes)
    majority = {"accuracy": counts.max() / counts.sum(), "roc_auc": 0.5}
    rows: dict[str, Any] = {}
    for name, wanted in (("uniform", lambda c: c.weight_radius == 0),
                         ("learned", lambda c: c.weight_radius > 0)):  # fmt: skip
        best = model.cv_results_.best(wanted)
        found = None if best is None else model.cv_results_.scores[best]
        rows[name] = None if best is None or found is None else {
            "mean": float(np.mean(found)), "standard_deviation": float(np.std(found)),
            "n_splits": len(found), **best._asdict(),
        }  # fmt: skip
    return {
        "scoring": scoring,
        "scores": {"majority": float(majority.get(scoring, 1.0 / len(counts))), **rows},
        "learning_gain": model.learning_gain_,
        "choice": model.best_params_,
    }


def covariate_facts(model: Any) -> dict[str, Any] | None:
    """Return how much covariates and structure add to the fitted values; None without any."""
    fitted = model.model_
    if fitted.covariates is None:
        return None
    some = np.random.default_rng(0).permutation(fitted.training.histograms.n_graphs)
    graphs = select_features(fitted.training_graphs, some[:_MOST_GRAPHS])
    added = fitted.from_covariates(graphs)  # (n, n_columns)
    whole = fitted.kernel_rows(graphs, model._n_jobs()) @ fitted.coefficients.T
    return {
        "names": fitted.covariates.table.names,
        "spread": float(added.std(axis=0).mean()),
        "spread_of_structure": float((whole - added).std(axis=0).mean()),
        "length": fitted.covariates.scales.length,
    }


# --- notebooks ------------------------------------------------------------------------------------


def model_html(model: Any) -> str:
    """Return a fitted Gaussian process as HTML: scores, warnings, heaviest patterns; escaped."""
    regressor, gp = is_regressor(model), model.model_
    support = gp.training.histograms.support
    facts = (
        f"{gp.training.histograms.n_graphs:,} graphs, {len(model.weights_):,} patterns to depth "
        f"{model.best_depth_} ({', '.join(gp.weighted.forest.trees)})"
    )
    warnings = [] if model.converged_ else ["The search for the weights did not converge."]
    if not regressor:
        classes, counts = model.classes_.tolist(), np.bincount(model.train_codes_).tolist()
        named = [f"{name} ({n:,})" for name, n in zip(classes, counts, strict=True)]
        facts += "; classes " + ", ".join(named)
        if model.threshold_ is not None:
            value, code = model.threshold_
            facts += f"; {classes[code]} is predicted from a probability of {value:.3g} on"
        if len(np.unique(model.loo_.predictions)) == 1:
            warnings.append(
                f"Every graph is predicted to be {model.loo_.predictions[0]!s}: the model does not "
                "distinguish classes, and its accuracy is the share of that class."
            )
    found = (_number_scores(model) if regressor else _class_scores(model))["model"]
    titles = NUMBER_SCORES if regressor else CLASS_SCORES
    scores = {
        title: f"{100 * found[name]:.1f} %" if name in _SHARES else f"{found[name]:.4g}"
        for name, (title, _) in titles.items()
        if found[name] is not None
    }
    heaviest = np.argsort(-model.weights_ * (support > 1), kind="stable")[:_N_PATTERNS]
    patterns = {
        "pattern": gp.weighted.forest.texts(heaviest),
        "weight": [f"{weight:.3g}" for weight in model.weights_[heaviest]],
        "training graphs": support[heaviest],
    }
    lines = [
        f"<p><b>{escape(type(model).__name__)}</b>: {escape(facts)}</p>",
        "<p>Leave-one-out scores (each training graph predicted from all the others):</p>",
        pd.DataFrame(scores.items(), columns=["score", "value"]).to_html(index=False),
        f"<p>{escape(str(model.learning_gain_))}</p>",
        *(f"<p>⚠ {escape(text)}</p>" for text in warnings),
        f"<p>The {_N_PATTERNS} heaviest patterns:</p>",
        pd.DataFrame(patterns).to_html(index=False),
    ]
    return f'<div class="treelens-model">{"".join(lines)}</div>'
