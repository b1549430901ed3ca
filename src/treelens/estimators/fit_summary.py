"""A fitted model in numbers: scores of left-out graphs, weights, covariates, as plain data."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_regressor

from treelens.evaluation.metrics import class_scores, number_scores, sure_predictions
from treelens.evaluation.validation import codes_among
from treelens.patterns.features import select_features

_MOST_GRAPHS = 1000  # training graphs from which the part of covariates is computed


def fit_summary(model: Any) -> dict[str, Any]:
    """Return leave-one-out scores of a Gaussian process, or cross-validated ones of an SVM."""
    return _process_summary(model) if hasattr(model, "loo_") else _svc_summary(model)


def _process_summary(model: Any) -> dict[str, Any]:
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
    found, exact = model.loo_, model.model_.training.exact
    values = model.train_values_[exact]
    return {
        "model": number_scores(values, found.predictions[exact], found.std[exact]),
        "mean": {"rmse": float(values.std()), "r2": 0.0},
        "limits": _limit_counts(model),
    }


def _limit_counts(model: Any) -> dict[str, int] | None:
    """How many training values are limits, and on the right side of how many predictions are."""
    limits = model.train_limits_
    if limits is None:
        return None
    beyond = limits * (model.loo_.predictions - model.train_values_) > 0
    return {"lower": int((limits > 0).sum()), "upper": int((limits < 0).sum()),
            "held": int(beyond.sum()), "exact": int((limits == 0).sum())}  # fmt: skip


def _class_scores(model: Any) -> dict[str, Any]:
    """Leave-one-out scores; recall and precision are of the second class, as effects are."""
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
    """Cross-validated scores of the best settings with uniform and with learned weights."""
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
    """How much covariates add to the fitted values, apart from structure; None without any."""
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
