"""The content of the report on a Gaussian process, as plain data."""

from __future__ import annotations

from typing import Any

import numpy as np

import treelens
from treelens.explain.contributions import explain_seen
from treelens.explain.expansion import KernelExpansion, expansion_of
from treelens.explain.layout import is_molecule
from treelens.explain.names import LabelNames, named_forest, with_label_names
from treelens.gp.model import FittedGP
from treelens.kernels.nearest import nearest_graphs
from treelens.parallel import one_blas_thread
from treelens.patterns.features import select_features
from treelens.report.details import drawable, explained_graph, molecule_data
from treelens.report.diagnostics import class_balance
from treelens.report.domain_section import domain_section
from treelens.report.doubts import doubts_about
from treelens.report.downloads import prediction_columns
from treelens.report.effects import effect_section, measured_effects
from treelens.report.evidence_scores import given_scores, left_out_scores
from treelens.report.fragment_section import fragment_section
from treelens.report.held import Held
from treelens.report.matched_pairs import pair_section
from treelens.report.patterns import LARGEST_DRAWN, short_texts
from treelens.report.plain import plain_summary
from treelens.report.said import SaidOfGraphs, said_of

_MOST_CASES = 12
MOST_LISTED = 300  # rows of the table of predictions; the download holds more
_EXAMPLES_OF_A_KIND = 4
_N_NEAREST = 3
_DIGITS = 6  # of contributions: enough for sums to come out as shown


def summarize_evidence(
    model: FittedGP,
    X: Any = None,
    y: Any = None,
    *,
    names: str | LabelNames | None = None,
    n_jobs: int = 1,
    held: Held | None = None,
) -> dict[str, Any]:
    """Everything that the report on a Gaussian process shows, as data that ``json.dumps`` takes.

    Parameters
    ----------
    model : FittedGP
        ``model_`` of a fitted ``GraphRegressor`` or ``GraphClassifier``.
    X, y : graphs and their values or classes, optional
        What to show and to score, not the training graphs; without them the summary is about the
        model alone.
    names : str or LabelNames, optional
        Names for label codes: a data set of ``treelens.explain.names.LABEL_NAMES`` or your own.
    held : Held, optional
        What the estimator can add: its domain of applicability, its training graphs.

    Returns
    -------
    dict
        With the keys ``treelens`` (version), ``kind`` ("numbers" or "classes"), ``model``,
        ``learning``, ``left_out`` (leave-one-out scores on the training graphs), ``doubts``,
        ``fragments`` (of the graphs given or else of the training graphs; None without either),
        ``pairs`` (training graphs that are alike and differ in their targets, None where there is
        none), ``patterns``, ``pattern_texts``, and, about the graphs given or else None, ``given``,
        ``scores`` (of those that training did not hold), ``domain``, ``cases``, ``examples`` and
        ``predictions``.

    Examples
    --------
    >>> import treelens as tl
    >>> graphs, y = tl.make_synthetic(n_per_substructure=5, random_state=0)
    >>> model = tl.GraphClassifier(depth=2).fit(graphs[::2], y[::2])
    >>> found = summarize_evidence(model.model_, graphs[1::2], y[1::2])
    >>> found["kind"], found["scores"]["n_graphs"], found["left_out"]["n_graphs"]
    ('classes', 20, 20)
    """
    held = held or Held()
    given = said_of(model, X, y, names, n_jobs, held.domain)
    forest = model.weighted.forest
    forest = forest if names is None else named_forest(forest, names)
    left_out = left_out_scores(model)
    scores = None if given is None else given_scores(model, given)
    with one_blas_thread():
        patterns = effect_section(model, forest, given, measured_effects(model, given))
        examples = None if given is None else _examples(model, given, held, names)
        fragments = fragment_section(model, forest, given, held, names, n_jobs)
        pairs = pair_section(model, held, names)
    named = {p for row in (examples or {"rows": []})["rows"] for p, _ in row["patterns"]}
    return plain_summary(
        {
            "treelens": treelens.__version__,
            "kind": "numbers" if model.classes is None else "classes",
            "model": describe_evidence(model),
            "learning": _learning(model),
            "left_out": left_out,
            "scores": scores,
            "doubts": doubts_about(model, given, left_out, scores),
            "fragments": fragments,
            "domain": domain_section(model, given, held),
            "pairs": pairs,
            "patterns": patterns,
            "pattern_texts": short_texts(forest, named),
            "given": None if given is None else _given(given),
            "cases": None if given is None else _cases(given),
            "examples": examples,
            "predictions": None if given is None else prediction_columns(given),
        }
    )


# --- the model --------------------------------------------------------------------------------


def describe_evidence(model: FittedGP) -> dict[str, Any]:
    """What the model is made of."""
    assert model.training is not None
    assert model.record is not None
    classes, targets, forest = model.classes, model.training.targets, model.weighted.forest
    return {
        "classes": [] if classes is None else [str(label) for label in classes.tolist()],
        "training_classes": None if classes is None else class_balance(targets, classes),
        "training_values": _spread(targets) if classes is None else None,
        "n_training_graphs": len(targets),
        "n_in_all": model.training.n_in_all,
        "n_basis_graphs": model.basis.n_graphs,
        "n_patterns": forest.n_patterns,
        "trees": list(forest.trees),
        "depth": forest.depth,
        "weights": model.record.learned,
        "noise": float(model.target_scale * np.sqrt(model.noise)),
        "amplitude": float(model.target_scale * np.sqrt(model.scales.amplitude)),
        "gamma": model.scales.gamma,
        "covariates": [] if model.covariates is None else model.covariates.table.names,
        "rho": model.scales.rho,
        "share": model.scales.share,
    }


def _spread(values: np.ndarray) -> dict[str, float]:
    return {
        "mean": float(values.mean()),
        "std": float(values.std()),
        "least": float(values.min()),
        "most": float(values.max()),
    }


def _learning(model: FittedGP) -> dict[str, Any]:
    """What learning changed: the sentence, the weights by level and the search."""
    record = model.record
    assert record is not None
    gain, history = record.learning_gain, record.history
    return {
        "sentence": gain.sentence,
        "difference": gain.difference,
        "standard_error": gain.standard_error,
        "learned": gain.learned,
        "uniform": gain.uniform,
        "converged": bool(record.converged),
        "evidence": record.evidence,
        "history": {
            "stage": history["stage"].tolist(),
            "evidence": history["evidence"].tolist(),
            "n_evaluations": history["n_evaluations"].tolist(),
        },
        "levels": _levels(model),
    }


def _levels(model: FittedGP) -> list[dict[str, Any]]:
    """Each tree and depth: its weight, its patterns' weights, its part of all similarity."""
    forest, basis = model.weighted.forest, model.basis
    per_pattern = np.repeat(np.arange(basis.n_patterns), basis.support)
    counts = np.bincount(per_pattern, weights=basis.counts, minlength=basis.n_patterns)
    total = float(model.weights @ counts)
    levels = []
    for k, (tree, depth) in enumerate(forest.levels):
        here = slice(int(forest.level_offsets[k]), int(forest.level_offsets[k + 1]))
        weights = model.weights[here]
        levels.append(
            {
                "tree": forest.trees[tree],
                "depth": depth,
                "name": forest.level_names[k],
                "n_patterns": len(weights),
                "weight": model.weighted.level_weights[k],
                "least": weights.min(initial=np.inf),
                "most": weights.max(initial=0.0),
                "share": float(weights @ counts[here]) / total if total > 0 else 0.0,
            }
        )
    return levels


# --- the graphs given -------------------------------------------------------------------------


def _given(given: SaidOfGraphs) -> dict[str, Any]:
    sizes = given.graphs.sizes
    return {
        "n_graphs": len(given),
        "n_known": int(given.same_as_training.sum()),
        "n_nodes": {"mean": sizes.mean(), "least": sizes.min(), "most": sizes.max()},
        "molecules": is_molecule(given.graphs[0]),
        "similarity": np.quantile(given.similarity, [0.05, 0.5, 0.95]),
    }


def _cases(given: SaidOfGraphs) -> dict[str, Any]:
    """The predictions to look at first."""
    wrong = given.most_wrong
    return {
        "most_wrong": [given.facts(i) for i in wrong[:_MOST_CASES].tolist()],
        "most_uncertain": [given.facts(i) for i in given.most_uncertain[:_MOST_CASES].tolist()],
        "all": [given.facts(i) for i in range(min(len(given), MOST_LISTED))],
        "n_wrong": None if given.truth is None or given.classes is None else len(wrong),
    }


def _examples(
    model: FittedGP,
    given: SaidOfGraphs,
    held: Held,
    names: str | LabelNames | None,
) -> dict[str, Any]:
    """A dozen graphs to draw, each with what its nodes add to the prediction."""
    expansion, rows, taken = expansion_of(model), [], set[int]()
    kinds = {
        "worst": given.most_wrong,
        "uncertain": given.most_uncertain,
        "typical": given.most_typical,
    }
    for kind, order in kinds.items():
        fresh = [i for i in order.tolist() if i not in taken][:_EXAMPLES_OF_A_KIND]
        taken.update(fresh)
        for index in fresh:
            explanation = explain_seen(
                given.graphs, given.said.graphs, index, expansion, n_neighbors=0
            )
            graph = given.shown[index]
            rows.append(
                {
                    "kind": kind,
                    **explained_graph(graph, explanation, _DIGITS),
                    **given.facts(index),
                    "neighbors": _nearest(expansion, given, index, held, names),
                    "drawn": graph.n_nodes <= LARGEST_DRAWN,
                    "molecule": molecule_data(graph),
                }
            )
    return {"rows": rows}


def _nearest(
    expansion: KernelExpansion,
    given: SaidOfGraphs,
    index: int,
    held: Held,
    names: str | LabelNames | None,
) -> list[dict[str, Any]]:
    """The training graphs most like one graph, with their values or classes."""
    one = select_features(given.said.graphs.features, np.array([index]))
    near = nearest_graphs(one, expansion.basis, expansion.weights, _N_NEAREST)
    order, similarity = near.positions[0], near.similarity[0]
    name, targets = expansion.basis_targets(order)
    return [
        {
            "index": graph,
            "name": held.training_name(graph),
            "similarity": alike,
            "picture": _drawn_training(held, graph, names),
            "value" if name == "value" else "class": target if name == "value" else str(target),
        }
        for graph, alike, target in zip(
            expansion.basis_indices[order].tolist(), similarity.tolist(), targets.tolist(),
            strict=True,
        )
    ]  # fmt: skip


def _drawn_training(
    held: Held, index: int, names: str | LabelNames | None
) -> dict[str, Any] | None:
    """A training graph to draw; None where it is not at hand, or too large."""
    if held.train_graphs is None or held.train_graphs.sizes[index] > LARGEST_DRAWN:
        return None
    one = held.train_graphs[index : index + 1]
    graph = (one if names is None else with_label_names(one, names))[0]
    return {**drawable(graph), "molecule": molecule_data(graph)}
