"""The content of the report on a fitted model, as plain data: the model, its graphs, checks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

import treelens
from treelens.chem.molecules import is_molecule
from treelens.estimators.fit_report import FitReport
from treelens.explain.contributions import usual_spread
from treelens.graphs.kinds import DESCRIPTOR_PREFIX, noun_of
from treelens.kernels.weighted import nearest_graphs
from treelens.models.domain import compared_alone
from treelens.models.fitted import FittedModel
from treelens.parallel import one_blas_thread, progress_ticks, working_on
from treelens.patterns.forest import PatternForest
from treelens.patterns.histograms import graph_keys
from treelens.report.panel import summarize_panel
from treelens.report.panel_page import render_panel
from treelens.report.predicted import (
    PredictedGraphs,
    predict_graphs,
    scores_of_test_set,
)
from treelens.report.render import counted, percent, plain_summary, render
from treelens.report.sections import (
    card_section,
    chosen_cards,
    fragment_section,
    pair_section,
    pattern_section,
    training_graph,
)
from treelens.storage.files import checked_target, whole_file
from treelens.targets import positive_code

if TYPE_CHECKING:
    from treelens.estimators.base import FittedEstimator

MOST_PREDICTIONS = 20_000  # rows that the page carries
_MOST_FURTHEST = 6
_MOST_LEFT_OUT = 5000  # training molecules; of more, the inverse that scaffolds need takes minutes
_MOST_COMPARED = 400
_ALMOST_NOTHING = 0.05  # of the spread of what covariates add
_UNUSUAL = 0.05  # of the training graphs
_NOMINAL, _MARGIN = 0.9, 0.02


def summarize(estimator: FittedEstimator, X: object = None, y: object = None) -> dict[str, Any]:
    """Return everything that the report shows, as data that ``json.dumps`` takes.

    See :meth:`treelens.GraphRegressor.summary`. The keys are ``treelens`` (version), ``kind``
    ("numbers" or "classes"), ``noun`` ("molecule" or "graph"), ``model``, ``svm`` or ``gp``
    (settings; the other is None), ``learning``, ``validation`` (scores on the training graphs by
    leave-one-out, or in the cross-validation of an SVM), ``scores`` (on the test set, without
    training graphs), ``checks``, ``fragments``, ``pairs`` (similar training graphs with different
    targets), ``patterns``, and, None without graphs, ``data``, ``domain``,
    ``cards`` and ``predictions``. For a model of several endpoints see
    :func:`treelens.report.panel.summarize_panel`.
    """
    model = estimator.model_
    if model.endpoint_names:
        return summarize_panel(estimator, X, y)
    if X is not None:
        working_on("predictions")
    given = predict_graphs(estimator, X, y)
    noun = noun_of(model.recipe).removesuffix("s")
    graphs = given.graphs if given is not None else estimator._train_graphs
    if graphs is not None and is_molecule(graphs[0]):
        noun = "molecule"
    fit, scores = FitReport(model), scores_of_test_set(model, given)
    of_given, settings = dict[str, Any](), {model.method: fit.to_settings()}
    with one_blas_thread():
        if given is not None:
            of_given = {
                "data": _data(given),
                "domain": _domain(model, given),
                "cards": {"rows": list(card_section(estimator, given, chosen_cards(given)))},
                "predictions": {k: x[:MOST_PREDICTIONS] for k, x in given.columns.items()},
            }
        found = {
            "treelens": treelens.__version__,
            "kind": "numbers" if model.classes is None else "classes",
            "noun": noun,
            "model": _model(estimator, noun),
            "svm": settings.get("svc"),
            "gp": settings.get("gp"),
            "learning": _learning(model),
            "validation": fit.held_out,
            "new_scaffolds": _new_scaffolds(estimator),
            "scores": scores,
            "checks": checks_of(model, given, fit.held_out, scores, noun),
            "fragments": fragment_section(estimator, given),
            "pairs": pair_section(estimator),
            "patterns": pattern_section(model, given),
            **dict.fromkeys(("data", "domain", "cards", "predictions")),
            **of_given,
        }
    return plain_summary(found)


@progress_ticks(None, "Writing the report")
def write_report(
    estimator: FittedEstimator, path: str | Path, X: object = None, y: object = None
) -> Path:
    """Write the report on a fitted model as one HTML file that needs nothing else."""
    target = checked_target(path)  # before the work begins
    if target.suffix.lower() not in ("", ".html", ".htm"):
        raise ValueError(f"{path}: the report is an HTML page. Give a name that ends in .html.")
    summary = summarize(estimator, X, y)
    page = render_panel(summary) if summary["kind"] == "several" else render(summary)
    with whole_file(target) as file:
        file.write(page.encode("utf-8"))
    return Path(path)


def _model(estimator: Any, noun: str) -> dict[str, Any]:
    """Return facts about a model of any kind."""
    model, source = estimator.model_, estimator.model_.expansion.source
    classes, targets, recipe = model.classes, model.training.reported, model.recipe
    names, values, shares = estimator.covariates_, None, None
    if classes is None:
        values = {name: getattr(targets, name)() for name in ("mean", "std", "min", "max")}
    else:
        counts = np.bincount(targets, minlength=len(classes))
        shares = [
            {"class": str(label), "n": n, "share": n / len(targets)}
            for label, n in zip(classes.tolist(), counts.tolist(), strict=True)
        ]
    return {
        "estimator": type(estimator).__name__,
        "classes": [] if classes is None else [str(label) for label in classes.tolist()],
        "positive": None if (code := positive_code(classes)) is None else str(classes[code]),
        "training_classes": shares,
        "training_values": values,
        "spread": usual_spread(model),
        "scale": None if (hidden := model.training.record.hidden) is None else hidden.in_words,
        "target": model.training.record.in_words,
        "n_training_graphs": len(targets),
        "n_limits": 0 if model.training.limits is None else int((model.training.limits != 0).sum()),
        "n_in_all": model.training.n_in_all,
        "n_basis_graphs": len(model.expansion.basis_indices),
        "n_patterns": len(model.weights),
        "trees": list(source.all_trees),
        "depth": source.depth,
        "alone": compared_alone(model, noun),
        "degree_labels": any(
            vocabulary.degree_labels
            for part in model.expansion.parts
            if isinstance(part.source, PatternForest)
            for vocabulary in part.source.vocabularies
        ),
        "recipe": None if recipe is None else str(recipe),
        "covariates": [name for name in names if not name.startswith(DESCRIPTOR_PREFIX)],
        "descriptors": [
            name.removeprefix(DESCRIPTOR_PREFIX)
            for name in names
            if name.startswith(DESCRIPTOR_PREFIX)
        ],
    }


def _learning(model: FittedModel) -> dict[str, Any]:
    """Return which weights are used and how they compare with others on held-out graphs."""
    learning = model.learning
    return {
        "sentence": learning.sentence,
        "measure": learning.measure,
        "compared": [row._asdict() for row in learning.compared],
        "levels": _levels(model),
    }


def _levels(model: FittedModel) -> list[Any]:
    """Return the weights of every depth of every tree, and its part of all similarity."""
    source, weights = model.expansion.source, model.expansion.weights
    counts = np.asarray(model.training.histograms.to_sparse("counts").sum(axis=0)).ravel()
    levels = source.level_of(np.arange(len(weights)) + model.expansion.first_pattern)
    table = pd.DataFrame({"weight": weights, "part": weights * counts})
    grouped = table.groupby(source.level_groups[levels])
    rows = grouped["weight"].agg(["mean", "min", "max"])
    rows["n_patterns"] = grouped.size()
    rows["share"] = grouped["part"].sum() / max(table["part"].sum(), np.finfo(float).tiny)
    places = [int(np.argmax(source.level_groups == group)) for group in rows.index]
    names = [source.level_names[k] for k in places]
    rows["tree"] = [name.rpartition(", depth")[0] or name for name in names]
    rows["depth"] = source.level_depths[places]
    return rows.to_dict("records")


def _new_scaffolds(estimator: Any) -> dict[str, Any] | None:
    """Return scores on training molecules whose scaffold is left out; None where there are none."""
    model = estimator.model_
    exact = getattr(model, "sample_weights", None) is not None
    if model.classes is not None or not exact or len(model.training.targets) > _MOST_LEFT_OUT:
        return None
    try:
        found = estimator.left_out_scaffolds_
    except ValueError:  # no molecules, or some that the file does not keep, or too few scaffolds
        return None
    return {name: getattr(found, name) for name in ("n_groups", "rmse", "coverage", "factor")}


def _data(given: PredictedGraphs) -> dict[str, Any]:
    sizes, n_wrong = given.graphs.sizes, None
    if given.classes is not None and given.truth is not None:
        n_wrong = int((given.predicted != given.truth)[~given.in_training].sum())
    return {
        "n_graphs": len(given),
        "n_in_training": int(given.in_training.sum()),
        "trained_words": given.trained_words,
        "has_truth": given.truth is not None,
        "n_wrong": n_wrong,
        "n_nodes": {"mean": sizes.mean(), "min": sizes.min(), "max": sizes.max()},
    }


def _domain(model: FittedModel, given: PredictedGraphs) -> dict[str, Any] | None:
    """Return how many graphs are in the domain of applicability, and those furthest outside."""
    if given.domain is None or given.in_domain is None:
        return None
    furthest = np.argsort(given.similarity, kind="stable")[:_MOST_FURTHEST].tolist()
    rows = [given.row(index) for index in furthest]
    for row in rows:
        near = training_graph(model, row["nearest"])
        row |= {k if k == "sign" else f"nearest_{k}": value for k, value in near.items()}
    quality: dict[str, Any] | None = None
    if given.truth is not None and len(given.test):
        quality = {}
        for name, wanted in (("inside", True), ("outside", False)):
            here = given.test[given.in_domain[given.test] == wanted]
            off, value = given.predicted[here] - given.truth[here], None
            if len(here):
                value = np.sqrt(np.mean(off**2)) if given.classes is None else np.mean(off == 0)
            quality[name] = {"n_graphs": len(here), "value": value}
    return {
        "n_inside": int(given.in_domain.sum()),
        "largest_error": given.domain.largest_error,
        "least_similarity": given.domain.least_similarity,
        "quality": quality,
        "furthest": rows,
    }


# --- checks -----------------------------------------------------------------------------------


def checks_of(
    model: FittedModel,
    given: PredictedGraphs | None,
    validation: dict[str, Any] | None,
    scores: dict[str, Any] | None,
    noun: str,
) -> list[dict[str, Any]]:
    """Return sentences with a ``level``, "fine", "notice" or "alarm", the most serious first."""
    found = list(_model_checks(model, noun))
    if validation is not None:
        if validation.get("names_one_class"):
            text = f"In validation every training {noun} is put into the same class: the model "
            found.append(("alarm", text + "does not separate the classes."))
        found += coverage_check(validation, f"training {noun}s in leave-one-out")
    if scores is not None:
        found += coverage_check(scores, "the test set")
    if given is not None:
        found += _graph_checks(model, given, noun)
    order = ("alarm", "notice", "fine")
    rows = [{"level": level, "text": text} for level, text in found]
    return sorted(rows, key=lambda row: order.index(row["level"]))  # the sort is stable


def _model_checks(model: FittedModel, noun: str) -> Iterator[tuple[str, str]]:
    spreads = model.spreads_of_parts(descriptors=False)
    if spreads is not None and spreads[0] < _ALMOST_NOTHING * spreads[1]:
        yield (
            "notice",
            "Graphs themselves carry almost nothing of the predictions: their part has a standard "
            f"deviation of {spreads[0]:.2g}, that of covariates {spreads[1]:.2g}. Fragments, "
            "patterns and colours explain the former only.",
        )
    search = model.search_end
    if search is not None and search.converged:
        yield "fine", "The search for the weights converged."
    elif search is not None and search.complete:
        yield "fine", f"The search for the weights made all of its {search.n_steps} steps."
    elif search is not None:
        text = "The search for the weights stopped before it converged: more "
        text += f"{search.setting} may change weights and predictions."
        yield "alarm", text
    if model.training.n_in_all is not None:
        text = (
            f"The model was fitted to {model.training.n_in_all:,} {noun}s in blocks. It keeps a "
            f"sample of {len(model.training.targets):,} of them, which validation scores and "
            f"neighbours come from; the other training {noun}s cannot be told from new ones."
        )
        yield "notice", text


def _graph_checks(model: Any, given: PredictedGraphs, noun: str) -> Iterator[tuple[str, str]]:
    n_all = len(given)

    def share(n: int) -> str:
        part = "under 1 %" if 0 < n < 0.01 * n_all else percent(n / n_all, 0)
        return f"{n:,} of the {counted(n_all, noun)} ({part})"

    def unusual(which: np.ndarray, text: str) -> tuple[str, str]:
        """Twice as many unusual graphs as in training are worth a notice."""
        n = int(which.sum())
        level = "notice" if n > 2 * _UNUSUAL * n_all else "fine"
        text = text.replace("{share}", share(n))
        if n == 1:
            text = text.replace(") are ", ") is ").replace(") have ", ") has ")
        return "alarm" if n > 0.3 * n_all else level, text

    n = int(given.in_training.sum())
    if not n:
        yield "fine", f"None of the {noun}s is a training {noun}."
    else:
        text = f"{share(n)} {given.trained_words}."
        if given.truth is not None:
            text += f" {'It is' if n == 1 else 'They are'} left out of the test scores."
        yield "alarm" if given.truth is not None and n > 0.1 * n_all else "notice", text
    if given.in_domain is not None:
        yield unusual(
            ~given.in_domain,
            f"{{share}} are outside the domain of applicability: less similar to any training "
            f"{noun}, or with a larger expected error, than nearly all training {noun}s.",
        )
    else:
        train = model.training_graphs.patterns
        chosen = np.random.default_rng(0).permutation(train.pairs.n_graphs)[:_MOST_COMPARED]
        near = nearest_graphs(train.select(chosen), train, 1, chosen)
        limit = float(np.quantile(near.similarity[:, 0], _UNUSUAL))
        yield unusual(
            given.similarity < limit,
            f"{{share}} are less similar to any training {noun} than 95 % of the training {noun}s "
            f"are to another one (similarity below {limit:.2f}).",
        )
    limit = model.training.usual_out_of_vocabulary
    yield unusual(
        given.predictions.out_of_vocabulary > limit,
        f"In {{share}} more than {percent(limit, 0)} of the patterns do not occur in the training "
        f"{noun}s.",
    )
    if given.classes is None:
        yield unusual(
            given.learned_std > np.quantile(model.held_out.std, 1.0 - _UNUSUAL),
            f"{{share}} have wider intervals than 95 % of the training {noun}s in leave-one-out.",
        )
    elif given.truth is not None:
        keys = pd.Series(graph_keys(given.predictions.graphs.features), dtype=object)
        unseen = given.predictions.out_of_vocabulary > 0
        keys[unseen] = np.flatnonzero(unseen)  # an unseen pattern equals none
        counts = pd.crosstab(keys.factorize()[0], given.truth).to_numpy()
        mixed = counts[(counts > 0).sum(axis=1) > 1]  # (n_keys, n_classes)
        text = f"No two {noun}s with the same patterns are in different classes."
        if len(mixed):
            most = 1.0 - (mixed.sum() - mixed.max(axis=1).sum()) / n_all
            text = f"{share(int(mixed.sum()))} have the same patterns as one of another class: "
            text += f"no weights can reach more than {percent(most)} accuracy."
        yield "notice" if len(mixed) else "fine", text


def coverage_check(scores: dict[str, Any], what: str) -> list[tuple[str, str]]:
    """Return whether 90 % intervals hold what they promise; nothing for classes."""
    if "coverage_interval" not in scores:
        return []
    low, high = scores["coverage_interval"]
    text = f"contain {percent(scores['coverage'], 0)} of the measured values of {what}"
    if high < _NOMINAL - _MARGIN:
        return [("alarm", f"The 90 % intervals are too narrow: they {text}.")]
    if low > _NOMINAL + _MARGIN:
        return [("notice", f"The 90 % intervals are wider than necessary: they {text}.")]
    return [("fine", f"The 90 % intervals {text}.")]
