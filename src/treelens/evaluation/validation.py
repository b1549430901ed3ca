"""Cross-validation of several models on the same splits, and paired tests of their scores."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from treelens.evaluation.metrics import (
    CLASS_SCORES,
    NUMBER_SCORES,
    class_scores,
    codes_among,
    number_scores,
)
from treelens.evaluation.splits import Split
from treelens.evaluation.statistics import (
    bootstrap_scores,
    compare_means,
    corrected_t_test,
    holm,
    percentile_interval,
    size_ratio,
)
from treelens.maps import TargetMap
from treelens.parallel import progress_ticks, working_on
from treelens.targets import Targets, check_class_labels, positive_code


@progress_ticks(None, "Comparing")
def cross_validate(
    models: Mapping[str, Any],
    graphs: Any,
    y: np.ndarray | Targets,
    splits: Sequence[Split],
    *,
    positive: object = None,
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
        ``held_out`` (a :class:`HeldOut` per split), ``seconds``, and ``n_one_class``: in how many
        splits one class was predicted throughout. For regressors also ``r2`` of the test
        predictions of all splits together, which does not depend on how the targets happened to
        vary in each.

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
        parts, means = [], []
        for number, (train, test) in enumerate(splits, start=1):
            working_on(f"{name or 'reference'}, part {number} of {len(splits)}")
            options = (fit_options or {}).get(name, {})
            takes_all = "limits" in inspect.signature(model.fit).parameters
            learned = known[train] if takes_all else y[train]
            fitted = clone(model).fit(graphs[train], learned, **options)
            if is_regressor(fitted):
                mean, std, scale = predicted_numbers(fitted, graphs[test])
                parts.append(HeldOut(partial(number_scores, scale=scale), y[test], mean, std))
                means.append(in_units(mean, std, scale))
            else:
                classes = fitted.classes_
                two = len(classes) == len(every) == 2
                code = codes_among(np.array([positive]), classes)[0] if two else None
                predicted = codes_among(fitted.predict(graphs[test]), classes)
                truth = codes_among(y[test], classes)
                chances = fitted.predict_proba(graphs[test])
                score = partial(class_scores, positive=code)
                parts.append(HeldOut(score, truth, predicted, chances))
        rows = [part.scores() for part in parts]
        seconds = time.perf_counter() - start
        names = [score for score in (*NUMBER_SCORES, *CLASS_SCORES) if score in rows[0]]
        found[name] = {
            "scores": {score: [row[score] for row in rows] for score in names},
            "n_one_class": sum(row.get("names_one_class", False) for row in rows),
            "held_out": parts,
            "seconds": seconds,
        }
        if is_regressor(model):
            truth = np.concatenate([part.truth for part in parts])
            pooled = number_scores(truth, np.concatenate(means))
            found[name] |= {"r2": pooled["r2"], "r2_std": None}
        progress(name, seconds)
    return found


class HeldOut(NamedTuple):
    """A test part: what is true of its graphs, and what a model said that had not seen them."""

    score: Callable[..., dict[str, Any]]  # of the other three
    truth: np.ndarray  # numbers, or codes of classes
    predicted: np.ndarray  # numbers as the model learned them
    surety: np.ndarray | None  # standard deviations of numbers, probabilities of classes

    def scores(self, at: np.ndarray | slice = slice(None)) -> dict[str, Any]:
        """All scores, of the graphs at some positions where these are given."""
        surety = None if self.surety is None else self.surety[at]
        return self.score(self.truth[at], self.predicted[at], surety)


def predicted_numbers(
    model: Any, graphs: object
) -> tuple[np.ndarray, np.ndarray | None, TargetMap | None]:
    """Predicted numbers and, where the model has them, standard deviations and their scale."""
    known = inspect.signature(model.predict).parameters
    if "learned_scale" in known:
        scale = model.model_.training.record.scale
        return *model.predict(graphs, return_std=True, learned_scale=True), scale
    if "return_std" in known:
        return *model.predict(graphs, return_std=True), None
    return model.predict(graphs), None, None


def in_units(mean: np.ndarray, std: np.ndarray | None, scale: TargetMap | None) -> np.ndarray:
    """Means in the units of the targets, of what :func:`predicted_numbers` returns."""
    return mean if scale is None or std is None else scale.inverse_mean(mean, std)


def mean_scores(scores: Mapping[str, Sequence[float | None]]) -> dict[str, Any]:
    """Means over splits, and under ``NAME_std`` standard deviations; None where undefined."""
    found: dict[str, Any] = {}
    for name, values in scores.items():
        known = np.array([value for value in values if value is not None], dtype=float)
        found[name] = float(known.mean()) if len(known) else None
        found[f"{name}_std"] = float(known.std()) if len(known) > 1 else None
    return found


def compare_models(
    found: Mapping[str, dict[str, Any]],
    score: str,
    greater_is_better: bool,
    splits: Sequence[Split],
    rival_of: Callable[[str], str | None],
) -> dict[str, Any]:
    """Say which models differ by a score, from what :func:`cross_validate` found on the splits.

    Returns
    -------
    dict
        ``tests`` (:func:`paired_tests`), ``level_with_best`` (:func:`level_with_best`) and
        ``intervals``: with a single split, by model, the 95 % interval of the score from a
        bootstrap of the test graphs, which the differences of the tests then have as well.
    """
    scores = {name: each["scores"][score] for name, each in found.items()}
    ratio = size_ratio([len(test) for _, test in splits], [len(train) for train, _ in splits])
    tests, drawn = paired_tests(scores, ratio, rival_of), {}
    if len(splits) == 1:  # no spread over splits, but one over the graphs of the test part
        drawn = {name: resampled(each["held_out"][0], score) for name, each in found.items()}
        for test in tests:
            apart = drawn[test["model"]] - drawn[test["against"]]
            test["interval"] = percentile_interval(apart)
    return {
        "tests": tests,
        "level_with_best": level_with_best(scores, greater_is_better, ratio),
        "intervals": {name: percentile_interval(values) for name, values in drawn.items()},
    }


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


def level_with_best(
    scores: Mapping[str, Sequence[float | None]], greater_is_better: bool, test_to_train: float
) -> tuple[str, ...] | None:
    """The best model and all that cannot be told from it, on the splits where all have the score.

    By Tukey's HSD at 5 % (:func:`~treelens.evaluation.statistics.compare_means`); None with fewer
    than two such splits or models.
    """
    known = [row for row in zip(*scores.values(), strict=True) if None not in row]
    if len(known) < 2 or len(scores) < 2:
        return None
    columns = dict(zip(scores, np.transpose(np.array(known, dtype=float)), strict=True))
    return compare_means(columns, greater_is_better, test_to_train).ties


def resampled(part: HeldOut, score: str) -> np.ndarray:
    """A score of a test part's graphs drawn with replacement, the same draws for all models."""
    if (
        isinstance(part.surety, np.ndarray) and part.surety.ndim == 2
    ):  # probabilities: one that is needed a thousand times
        part = part._replace(score=partial(part.score, only=score))
    return bootstrap_scores(lambda at: part.scores(at)[score], len(part.truth))
