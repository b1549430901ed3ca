"""Cross-validation of several models on the same splits, and paired tests of their scores."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from treelens.evaluation.metrics import CLASS_SCORES, NUMBER_SCORES, class_scores, number_scores
from treelens.evaluation.splits import Split
from treelens.evaluation.statistics import corrected_t_test, holm
from treelens.targets import Targets, check_class_labels, positive_code


def cross_validate(
    models: Mapping[str, Any],
    graphs: Any,
    y: np.ndarray | Targets,
    splits: Sequence[Split],
    *,
    positive: Any = None,
    fit_options: Mapping[str, Mapping[str, Any]] | None = None,
    progress: Callable[[str, float], None] = lambda name, seconds: None,
) -> dict[str, dict[str, Any]]:
    """Fit copies of each model to the training part of every split and score the test part.

    Parameters
    ----------
    models : mapping of str to estimator
        With ``fit`` and ``predict``; classifiers with ``predict_proba``, too.
    graphs, y : GraphCollection and ndarray or Targets, shape (n_graphs,)
        With classes, or numbers where the models are regressors. Limits and noise are given to the
        models whose ``fit`` takes them; limits count as values for the others.
    splits : sequence of (train, test)
    positive : optional
        With two classes, the one of recall, precision and PR AUC; by default the second, or the
        first if the second negates it.
    fit_options : mapping, optional
        By model, further arguments of its ``fit``, such as ``covariates``.
    progress : callable
        Called with the name of each finished model and its seconds.

    Returns
    -------
    dict
        By model: ``scores`` (by score, one entry per split; None where it is undefined),
        ``seconds``, and ``n_one_class``: in how many splits one class was predicted throughout. For
        regressors also ``r2`` of the test predictions of all splits together, which does not depend
        on how the targets happened to vary in each.

    Examples
    --------
    >>> import treelens as tl
    >>> from treelens.evaluation.splits import DistinctKFold
    >>> graphs, y = tl.make_synthetic(n_per_substructure=5, random_state=0)
    >>> splits = list(DistinctKFold(2, random_state=0).split(graphs, y))
    >>> found = cross_validate({"ours": tl.GraphClassifier(depth=1)}, graphs, y, splits)
    >>> len(found["ours"]["scores"]["roc_auc"])
    2
    """
    from sklearn.base import clone, is_regressor

    found: dict[str, dict[str, Any]] = {}
    known = y if isinstance(y, Targets) else Targets(y)
    y = known.values
    if not all(map(is_regressor, models.values())):
        check_class_labels(y)
    every = np.unique(y)
    if positive is None and (default := positive_code(every)) is not None:
        positive = every[default]
    for name, model in models.items():
        start = time.perf_counter()
        rows, means = [], []
        for train, test in splits:
            options = (fit_options or {}).get(name, {})
            takes_all = "limits" in inspect.signature(model.fit).parameters
            learned = known[train] if takes_all else y[train]
            fitted = clone(model).fit(graphs[train], learned, **options)
            if is_regressor(fitted):
                mean, std = predicted_numbers(fitted, graphs[test])
                means.append(mean)
                rows.append(number_scores(y[test], mean, std))
            else:
                classes = fitted.classes_
                two = len(classes) == len(every) == 2
                code = codes_among(np.array([positive]), classes)[0] if two else None
                predicted = codes_among(fitted.predict(graphs[test]), classes)
                truth = codes_among(y[test], classes)
                chances = fitted.predict_proba(graphs[test])
                rows.append(class_scores(truth, predicted, chances, code))
        seconds = time.perf_counter() - start
        names = [score for score in (*NUMBER_SCORES, *CLASS_SCORES) if score in rows[0]]
        found[name] = {
            "scores": {score: [row[score] for row in rows] for score in names},
            "n_one_class": sum(row.get("names_one_class", False) for row in rows),
            "seconds": seconds,
        }
        if means:
            truth = np.concatenate([y[test] for _, test in splits])
            pooled = number_scores(truth, np.concatenate(means))
            found[name] |= {"r2": pooled["r2"], "r2_std": None}
        progress(name, seconds)
    return found


def predicted_numbers(model: Any, graphs: Any) -> tuple[np.ndarray, np.ndarray | None]:
    """Predicted numbers and, where the model has them, standard deviations."""
    if "return_std" in inspect.signature(model.predict).parameters:
        return model.predict(graphs, return_std=True)
    return model.predict(graphs), None


def codes_among(values: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Positions among classes, compared as strings; -1 for a value that is not there."""
    places = {str(name): code for code, name in enumerate(classes.tolist())}
    return np.array([places.get(str(value), -1) for value in values.tolist()], dtype=np.int64)


def mean_scores(scores: Mapping[str, Sequence[float | None]]) -> dict[str, Any]:
    """Means over splits, and under ``NAME_std`` standard deviations; None where undefined."""
    found: dict[str, Any] = {}
    for name, values in scores.items():
        known = np.array([value for value in values if value is not None], dtype=float)
        found[name] = float(known.mean()) if len(known) else None
        found[f"{name}_std"] = float(known.std()) if len(known) > 1 else None
    return found


def paired_tests(
    scores: Mapping[str, Sequence[float | None]],
    test_to_train: float,
    rival_of: Callable[[str], str | None],
) -> list[dict[str, Any]]:
    """Each model against its rival on the splits of both, by the corrected resampled t-test.

    ``scores`` are those of each model, one per split; ``test_to_train`` is the size of the test
    parts divided by that of the training parts; ``rival_of`` names the model that one is tested
    against, or None.

    Returns
    -------
    list of dict
        ``model``, ``against``, ``difference``, ``standard_error``, ``interval`` (95 %), ``p_value``
        and ``p_holm``, which is corrected for all the tests of the list; with a single split these
        four are None. Two models are tested against each other once.
    """
    tests: list[dict[str, Any]] = []
    done: set[frozenset[str]] = set()
    for name in scores:
        rival = rival_of(name)
        if rival is None or frozenset((name, rival)) in done:
            continue
        done.add(frozenset((name, rival)))
        both = zip(scores[name], scores[rival], strict=True)
        known = [pair for pair in both if None not in pair]
        if not known:
            continue
        first, second = np.array(known, dtype=float).T
        test = corrected_t_test(first, second, test_to_train)
        tests.append(
            {
                "model": name,
                "against": rival,
                "difference": test.difference,
                "standard_error": test.standard_error,
                "interval": test.interval,
                "p_value": test.p_value,
            }
        )
    adjusted = holm([test["p_value"] for test in tests])
    return [{**test, "p_holm": p} for test, p in zip(tests, adjusted, strict=True)]
