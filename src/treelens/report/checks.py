"""Checks of a model and of the graphs of a report: sentences, each with a level of concern."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from treelens.explain.expansion import expansion_of
from treelens.gp.fitting import REFINE_MANY
from treelens.gp.model import FittedGP
from treelens.kernels.nearest import nearest_graphs
from treelens.patterns.features import select_features
from treelens.report.formats import percent
from treelens.report.predicted import PredictedGraphs, histogram_keys

_MOST_COMPARED = 400
_UNUSUAL = 0.05  # of the training graphs
_NOMINAL, _MARGIN = 0.9, 0.02


def checks_of(
    model: Any,
    given: PredictedGraphs | None,
    validation: dict[str, Any] | None,
    scores: dict[str, Any] | None,
    noun: str,
) -> list[dict[str, Any]]:
    """Return sentences with a ``level``, "fine", "notice" or "alarm", the most serious first."""
    found = [_convergence(model), _sample(model, noun)]
    if validation is not None:
        if validation.get("names_one_class"):
            text = f"In validation every training {noun} is put into the same class: the model "
            found.append(("alarm", text + "does not separate the classes."))
        found.append(_coverage(validation, f"training {noun}s in leave-one-out"))
    if scores is not None:
        found.append(_coverage(scores, "the test set"))
    if given is not None:
        found += [
            _trained_on(given, noun),
            _outside(given, noun) if given.in_domain is not None else _far(model, given, noun),
            _unseen(model, given, noun),
            _wide(model, given, noun),
            _contradictions(given, noun),
        ]
    order = ("alarm", "notice", "fine")
    rows = [{"level": item[0], "text": item[1]} for item in found if item is not None]
    return sorted(rows, key=lambda row: order.index(row["level"]))  # the sort is stable


Check = tuple[str, str] | None


def _convergence(model: Any) -> Check:
    if isinstance(model, FittedGP):
        assert model.record is not None
        n_steps, more = len(model.record.history), "max_steps"
        if not model.record.converged and n_steps >= REFINE_MANY:
            return "fine", f"The search for the weights made all of its {n_steps} steps."
        converged = model.record.converged
    elif model.choice.learned is None:
        return None
    else:
        converged, more = model.choice.learned.converged, "iterations"
    if converged:
        return "fine", "The search for the weights converged."
    return "alarm", (
        f"The search for the weights stopped before it converged: more {more} may change weights "
        "and predictions."
    )


def _sample(model: Any, noun: str) -> Check:
    n_in_all = model.training.n_in_all
    if n_in_all is None:
        return None
    return "notice", (
        f"The model was fitted to {n_in_all:,} {noun}s in blocks. It keeps a sample of "
        f"{len(model.training.targets):,} of them, which validation scores and neighbours come "
        f"from; the other training {noun}s cannot be told from new ones."
    )


def _trained_on(given: PredictedGraphs, noun: str) -> Check:
    n = int(given.in_training.sum())
    if not n:
        return "fine", f"None of the {noun}s has the pattern counts of a training {noun}."
    text = f"{_share(n, len(given), noun)} have exactly the pattern counts of a training {noun}."
    if given.truth is None:
        return "notice", text
    level = "alarm" if n > 0.1 * len(given) else "notice"
    return level, f"{text} They are left out of the test scores."


def _outside(given: PredictedGraphs, noun: str) -> Check:
    assert given.in_domain is not None
    n = int((~given.in_domain).sum())
    return _level(n, len(given)), (
        f"{_share(n, len(given), noun)} are outside the domain of applicability: less similar to "
        f"any training {noun}, or with a larger expected error, than nearly all training {noun}s."
    )


def _far(model: Any, given: PredictedGraphs, noun: str) -> Check:
    limit = usual_similarity(model)
    n = int((given.similarity < limit).sum())
    return _level(n, len(given)), (
        f"{_share(n, len(given), noun)} are less similar to any training {noun} than 95 % of the "
        f"training {noun}s are to another one (similarity below {limit:.2f})."
    )


def usual_similarity(model: Any) -> float:
    """Return the fifth percentile of the similarity of training graphs to their nearest one."""
    train = model.training_graphs
    chosen = np.random.default_rng(0).permutation(train.pairs.n_graphs)[:_MOST_COMPARED]
    near = nearest_graphs(select_features(train, chosen), train, model.weights, 1, chosen)
    return float(np.quantile(near.similarity[:, 0], _UNUSUAL))


def _unseen(model: Any, given: PredictedGraphs, noun: str) -> Check:
    limit = expansion_of(model).usual_out_of_vocabulary
    n = int((given.predictions.out_of_vocabulary > limit).sum())
    return _level(n, len(given)), (
        f"In {_share(n, len(given), noun)} more than {percent(limit, 0)} of the patterns do not "
        f"occur in the training {noun}s."
    )


def _wide(model: Any, given: PredictedGraphs, noun: str) -> Check:
    if given.classes is not None:
        return None
    limit = float(np.quantile(model.record.left_out.std, 1.0 - _UNUSUAL))
    n = int((given.std > limit).sum())
    return _level(n, len(given)), (
        f"{_share(n, len(given), noun)} have wider intervals than 95 % of the training {noun}s in "
        "leave-one-out."
    )


def _contradictions(given: PredictedGraphs, noun: str) -> Check:
    """Return how many graphs have the same patterns and different classes."""
    if given.truth is None or given.classes is None:
        return None
    groups: dict[Any, list[int]] = defaultdict(list)
    keys = histogram_keys(given.predictions.graphs.histograms)
    for key, code in zip(keys, given.truth.tolist(), strict=True):
        groups[key].append(code)
    conflicts = [codes for codes in groups.values() if len(set(codes)) > 1]
    n = sum(map(len, conflicts))
    if not n:
        return "fine", f"No two {noun}s with the same patterns are in different classes."
    lost = sum(len(codes) - int(np.bincount(codes).max()) for codes in conflicts)
    return "notice", (
        f"{_share(n, len(given), noun)} have the same patterns as one of another class: no weights "
        f"can reach more than {percent(1.0 - lost / len(given))} accuracy."
    )


def _coverage(scores: dict[str, Any], what: str) -> Check:
    if "coverage_interval" not in scores:
        return None
    low, high = scores["coverage_interval"]
    text = f"contain {percent(scores['coverage'], 0)} of the measured values of {what}"
    if high < _NOMINAL - _MARGIN:
        return "alarm", f"The 90 % intervals are too narrow: they {text}."
    if low > _NOMINAL + _MARGIN:
        return "notice", f"The 90 % intervals are wider than necessary: they {text}."
    return "fine", f"The 90 % intervals {text}."


def _share(n: int, n_all: int, noun: str) -> str:
    share = "under 1 %" if 0 < n < 0.01 * n_all else percent(n / n_all, 0)
    return f"{n:,} of the {n_all:,} {noun}s ({share})"


def _level(n: int, n_all: int) -> str:
    """Twice as many unusual graphs as in training are worth a notice."""
    return "alarm" if n > 0.3 * n_all else "notice" if n > 2 * _UNUSUAL * n_all else "fine"
