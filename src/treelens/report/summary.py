"""The content of the report as plain data."""

from __future__ import annotations

from typing import Any

import numpy as np

import treelens
from treelens.explain.names import LabelNames
from treelens.kernels.table import KERNELS
from treelens.report.details import GraphDetails, choose_graphs, explain_graphs
from treelens.report.diagnostics import class_balance, diagnose, known_from_training
from treelens.report.given import GivenGraphs, facts_of, look_at
from treelens.report.graph_map import map_of_graphs
from treelens.report.patterns import (
    pattern_section,
    short_texts,
    shown_vocabulary,
    weights_by_depth,
)
from treelens.report.plain import plain_summary
from treelens.report.scores import held_out_scores, score_decisions, share_right
from treelens.report.words import learning_words, score_words, verdict_on_learning
from treelens.svm.model import FittedSVM, model_bound
from treelens.svm.search import Candidate

_MOST_EXAMPLES = 12
_MOST_CANDIDATES = 10


def summarize(
    model: FittedSVM,
    X: Any = None,
    y: Any = None,
    *,
    names: str | LabelNames | None = None,
    n_jobs: int = 1,
) -> dict[str, Any]:
    """Everything that the report shows, as data that ``json.dumps`` takes.

    Parameters
    ----------
    model : FittedSVM
        ``model_`` of a fitted ``GraphSVC``.
    X, y : graphs and their classes, optional
        What to show and to score; without them the summary is about the model alone.
    names : str or LabelNames, optional
        Names for label codes: a data set of ``treelens.explain.names.LABEL_NAMES`` or your own.
    n_jobs : int

    Returns
    -------
    dict
        With the keys ``treelens`` (version), ``model``, ``candidates``, ``learning``,
        ``held_out`` (scores of the inner cross-validation), ``patterns``, ``weights``, ``bound``,
        and, about the graphs given or else None, ``data``, ``scores``, ``map``, ``graphs``
        and ``examples``.

    Examples
    --------
    >>> import treelens as tl
    >>> graphs, y = tl.make_synthetic(n_per_substructure=5, random_state=0)
    >>> model = tl.GraphSVC("wwl", 2, 0, 1.0, 10.0).fit(graphs, y)
    >>> found = summarize(model.model_, graphs, y)
    >>> found["model"]["n_training_graphs"], found["scores"]["accuracy"]
    (40, 1.0)
    """
    given = look_at(model, X, y, names, n_jobs)
    vocabulary = shown_vocabulary(model, names)
    details = GraphDetails()
    about_graphs: dict[str, Any] = dict.fromkeys(("data", "scores", "map", "graphs", "examples"))
    if given is not None:
        details, about_graphs = _about_graphs(model, given)
    named = {pattern for row in details.rows for pattern, _ in row["patterns"]}
    return plain_summary(
        {
            "treelens": treelens.__version__,
            "model": describe_model(model),
            "candidates": leading_candidates(model),
            "learning": describe_learning(model),
            "held_out": held_out_scores(model),
            "patterns": pattern_section(model, vocabulary, given, details.influence),
            "pattern_texts": short_texts(vocabulary, named),
            "weights": weights_by_depth(model),
            "bound": model_bound(model, 0.05),
            **about_graphs,
        }
    )


def _about_graphs(model: FittedSVM, given: GivenGraphs) -> tuple[GraphDetails, dict[str, Any]]:
    chosen = choose_graphs(given)
    details = explain_graphs(model, given, chosen)
    known = known_from_training(model, given)
    examples = {
        "most_uncertain": facts_of(given, given.most_uncertain[:_MOST_EXAMPLES]),
        "most_wrong": facts_of(given, given.most_wrong[:_MOST_EXAMPLES]),
        "n_wrong": None if given.codes is None else len(given.most_wrong),
    }
    return details, {
        "data": diagnose(model, given, known),
        "scores": _scores(given, known),
        "map": map_of_graphs(model, given, chosen),
        "graphs": {"n_all": len(given), "n_shown": len(chosen), "rows": details.rows},
        "examples": examples,
    }


def _scores(given: GivenGraphs, known: np.ndarray) -> dict[str, Any] | None:
    """Scores on all graphs given and, as ``new_graphs``, on those unlike any training graph."""
    if given.codes is None:
        return None
    scores = score_decisions(given.codes, given.decisions, given.classes)
    return {**scores, "new_graphs": share_right(given.codes[~known], given.predicted[~known])}


# --- the model --------------------------------------------------------------------------------


def describe_model(model: FittedSVM) -> dict[str, Any]:
    """What the model is, and how it was chosen."""
    best, training, vocabulary = model.choice.best_params, model.training, model.patterns.vocabulary
    return {
        **best,
        "formula": KERNELS[best["kernel"]].formula,
        "kernel_words": KERNELS[best["kernel"]].words,
        "score_words": score_words(best["scoring"]),
        "classes": [str(label) for label in model.classes.tolist()],
        "training_classes": class_balance(training.targets, model.classes),
        "n_training_graphs": training.histograms.n_graphs,
        "n_support_graphs": len(getattr(model.decision, "basis_indices", ())),
        "n_patterns": training.histograms.n_patterns,
        "first_depth": training.histograms.first_depth,
        "node_labels": len(vocabulary.node_alphabet),
        "degree_labels": vocabulary.degree_labels,
        "recipe": None if model.recipe is None else str(model.recipe),
    }


def leading_candidates(model: FittedSVM) -> list[dict[str, Any]]:
    """The best settings of the search, with the mean and the spread of their scores."""
    result, best = model.choice.cv_results, dict(model.choice.best_params)
    ordered = sorted(result.finished(), key=result.mean, reverse=True)[:_MOST_CANDIDATES]
    chosen = tuple(best[name] for name in Candidate._fields)
    return [
        {
            **candidate._asdict(),
            "score": result.mean(candidate),
            "spread": float(np.std(result.scores[candidate])),
            "chosen": tuple(candidate) == chosen,
        }
        for candidate in ordered
    ]


def describe_learning(model: FittedSVM) -> dict[str, Any]:
    """Whether learning beat uniform weights, and how the weights were found."""
    gain, best = model.choice.learning_gain, model.choice.best_params
    verdict = verdict_on_learning(gain)
    headline, words = learning_words(gain, verdict, best["weight_radius"], best["scoring"])
    return {
        "verdict": verdict,
        "headline": headline,
        "words": words,
        "gain": gain,
        "curve": None if model.choice.learned is None else _curve(model.choice.learned),
    }


def _curve(result: Any) -> dict[str, Any]:
    return {
        "objective": result.history,
        "gaps": result.gaps,
        "converged": result.converged,
        "n_iter": result.n_iter,
        "solver": result.solver,
    }
