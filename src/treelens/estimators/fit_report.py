"""What a fit found, as one object, as plain data for commands, and as HTML for notebooks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.base import is_regressor

from treelens.estimators.panel_summary import endpoint_facts
from treelens.evaluation.metrics import CLASS_SCORES, NUMBER_SCORES, class_scores
from treelens.explain.fragments import confounders, fragment_smiles, measured_with_and_without
from treelens.graphs.collection import GraphCollection
from treelens.graphs.kinds import noun_of
from treelens.models.fitted import FittedModel
from treelens.models.scores import held_out_scores
from treelens.targets import positive_code

if TYPE_CHECKING:
    from treelens.estimators.base import FittedEstimator

_NOT_SHOWN = ("candidates", "words")  # of the settings of a kernel
_N_FRAGMENTS = 5  # that a fit shows
# Beyond these, finding fragments takes longer than fitting.
_MOST_CLASSES, _MOST_SEARCHED = 2, 3000
_MOST_SHOWN = 1500  # training graphs of a model whose fragments a notebook shows: about a second


@dataclass(frozen=True, eq=False)
class FitReport:
    """What a fit found: the one source of terminal, notebook, report and JSON."""

    model: FittedModel  # of one endpoint
    n_jobs: int = 1

    @cached_property
    def held_out(self) -> dict[str, Any] | None:
        """Scores of training graphs that are predicted without themselves, and their charts."""
        return held_out_scores(self.model)

    @cached_property
    def views(self) -> dict[str, float]:
        """The share of each view in the variance that they explain."""
        return self.model.shares(self.n_jobs)

    @cached_property
    def covariates(self) -> dict[str, Any] | None:
        """How much covariates and structure add to the fitted values; None without any."""
        if (spreads := self.model.spreads_of_parts(self.n_jobs)) is None:
            return None
        structure, added = spreads
        names = self.model.covariate_names
        return {"names": names, "spread": added, "spread_of_structure": structure}

    @property
    def trees(self) -> list[str]:
        """The trees of Weisfeiler-Lehman patterns in use."""
        return list(self.model.expansion.source.all_trees)

    def scores(self) -> dict[str, Any]:
        """Return held-out scores beside those of the mean or the most frequent class."""
        found = self.held_out or {}
        names = CLASS_SCORES if "majority_share" in found else NUMBER_SCORES
        scores: dict[str, Any] = {"model": {name: found.get(name) for name in names}}
        if names is NUMBER_SCORES:
            return {
                **scores,
                "mean": {"rmse": found.get("reference_rmse"), "r2": 0.0},
                "limits": _kept_limits(self.model),
                "r2_on_scale": self._r2_on_scale(),
            }
        scores["model"]["names_one_class"] = found["names_one_class"]
        classes, code = self.model.classes, positive_code(self.model.classes)
        return {
            **scores,
            "positive": None if code is None or classes is None else str(classes[code]),
            "majority": {"accuracy": found["majority_share"]},
            "sure": found["sure"],
            "threshold": _threshold_scores(self.model),
        }

    def _r2_on_scale(self) -> float | None:
        """Return R2 on a scale that was chosen, as squared errors in units are of large values."""
        found, training = self.model.held_out, self.model.training
        if training.record.hidden is None or found is None:
            return None
        values, exact = training.targets, training.exact
        error = np.mean((values[exact] - found.predicted[exact]) ** 2)
        return float(1.0 - error / np.var(values[exact]))

    def to_settings(self) -> dict[str, Any]:
        """Return the kernel, what it was chosen by, and how the search for weights ended."""
        facts, search = {**self.model.settings(), "views": self.views}, self.model.search_end
        if search is not None:
            facts |= {"converged": bool(search.converged), "n_iterations": search.n_steps}
        return facts


def _kept_limits(model: FittedModel) -> dict[str, int] | None:
    """Return how many limits there are, and how many predictions are on their side."""
    training, found = model.training, model.held_out
    limits = training.limits
    if limits is None or found is None:
        return None
    return {
        "lower": int((limits > 0).sum()),
        "upper": int((limits < 0).sum()),
        "held": int((limits * (found.predicted - training.targets) > 0).sum()),
        "exact": int((limits == 0).sum()),
    }


def _threshold_scores(model: FittedModel) -> dict[str, Any] | None:
    """Return what a tuned threshold does to the class that it names; None without one."""
    found, threshold, classes = model.held_out, model.threshold, model.classes
    if threshold is None or found is None or found.probabilities is None or classes is None:
        return None
    codes, chances = model.training.targets[found.known], found.probabilities[found.known]
    rare = class_scores(codes, found.predicted[found.known], chances, threshold.code)
    return {
        "class": str(classes[threshold.code]),
        "value": threshold.value,
        "recall": rare["recall"],
        "precision": rare["precision"],
        "accuracy_most_probable": float(np.mean(chances.argmax(axis=1) == codes)),
    }


def fit_summary(model: Any) -> dict[str, Any]:
    """Return what the terminal says of a fit, as plain data."""
    if model.model_.method == "svc":
        return _svc_summary(model.model_)
    found = FitReport(model.model_, model._n_jobs())
    scores = found.scores()
    if scores.get("threshold"):
        scores["threshold"]["rule"] = str(model.threshold)
    return {
        "leave_one_out": scores,
        "learning_gain": vars(model.learning_gain_),
        "covariates": found.covariates,
        "evidence": model.evidence_,
        "converged": model.converged_,
        "n_steps": len(model.history_),
        "depth": model.best_depth_,
        "weights": model.best_weights_,
        "descriptors": model.uses_descriptors_,
        "trees": found.trees,
    }


def _svc_summary(model: Any) -> dict[str, Any]:
    """Return cross-validated scores of the best settings with uniform and with learned weights."""
    search, best_params = model.choice.cv_results, model.choice.best_params
    counts, scoring = np.bincount(model.training.targets), best_params["scoring"]
    majority = {"accuracy": counts.max() / counts.sum(), "roc_auc": 0.5}
    rows: dict[str, Any] = {}
    for name, learned in (("uniform", False), ("learned", True)):
        best = search.best(lambda c, learned=learned: (c.weight_radius > 0) == learned)
        found = search.scores.get(best)
        rows[name] = (
            None
            if best is None
            else {
                "mean": float(np.mean(found)),
                "standard_deviation": float(np.std(found)),
                "n_splits": len(found),
                **best._asdict(),
            }
        )
    return {
        "scoring": scoring,
        "scores": {"majority": float(majority.get(scoring, 1.0 / len(counts))), **rows},
        "learning_gain": model.choice.learning_gain,
        "choice": best_params,
    }


# --- what was learned from, and what a model has --------------------------------------------------


def first_fragments(model: Any, graphs: GraphCollection, n: int | None) -> dict[str, Any]:
    """Return the first rows of ``fragments_``; ``n=None``: a few, unless it takes long."""
    classes, targets = model.model_.classes, model.model_.training.reported
    n_classes = None if classes is None else len(classes)
    too_long = None
    if n is None and n_classes is not None and n_classes > _MOST_CLASSES:
        too_long = f"{n_classes} classes"
    elif n is None and len(graphs) > _MOST_SEARCHED:
        too_long = f"{len(graphs):,} {noun_of(graphs.recipe)}"
    if too_long or n == 0:
        return {"fragments": [], "no_fragments_for": too_long, "none": None}
    table = model.fragments(graphs, n_fragments=_N_FRAGMENTS if n is None else n, smarts=False)
    rows = []
    for rank, picture in table["drawing"].items():
        has = picture.holders
        both = measured_with_and_without(has, targets, n_classes)
        if classes is not None:  # shares of the class that effects speak of
            label = str(table.loc[rank].get("class_label", table.attrs["toward"]))
            code = classes.astype(str).tolist().index(label)
            both = both[0][code], None if both[1] is None else both[1][code]
        rows.append(
            {
                "rank": rank,
                **table.drop(columns="drawing").loc[rank].to_dict(),
                "smiles": fragment_smiles(picture.graph, picture.place),
                "measured_with": both[0],
                "measured_without": both[1],
                "confounders": confounders(graphs, has, targets, classes),
            }
        )
    attrs = {name: table.attrs[name] for name in ("toward", "none")}
    return {"fragments": rows, "no_fragments_for": None, **attrs}


def pattern_summary(model: Any, n: int, order: str = "auto") -> dict[str, Any]:
    """Return the first ``n`` patterns, one dict each, and how the graphs were read."""
    learned = model.model_.learning.learned
    facts = {
        "noun": noun_of(model.recipe_),
        "recipe": None if model.recipe_ is None else model.recipe_.to_plain(),
        "learned": learned,
        "n_patterns": len(model.weights_),
    }
    if not n:
        return {**facts, "patterns": [], "compared": ""}
    table = model.patterns_  # sorted by weight already
    shares = table.filter(regex="^frequency ")
    if "mean_with" in table:
        table["difference"] = table["mean_with"] - table["mean_without"]
        compared = "with - without"
    elif (code := positive_code(model.classes_)) is not None:
        table["difference"] = shares.iloc[:, code] - shares.iloc[:, 1 - code]
        compared = f"{model.classes_[code]} - {model.classes_[1 - code]}"
    else:
        table["difference"] = shares.max(axis=1) - shares.min(axis=1)
        compared = "largest - smallest"
    if order == "auto":
        order = "weight" if learned else "difference"
    if order != "weight":
        table = table.sort_values(order, ascending=False, kind="stable", key=abs)
    rows = table.head(n).reset_index().to_dict("records")
    return {**facts, "patterns": rows, "compared": compared}


def model_facts(model: Any) -> dict[str, Any]:
    """Return what a model was fitted to, its kernel and its sizes."""
    recipe, training = model.recipe_, model.model_.training
    if training.smiles is not None:
        kept = "SMILES" + ("" if training.names is None else ", names") + " and values kept"
    else:
        kept = "pattern counts and values kept"
        if noun_of(recipe) == "molecules":
            kept = f"SMILES and names left out; {kept}"
    if model.model_.endpoint_names:
        return {
            "kind": type(model).__name__,
            "task": "several",
            "recipe": None if recipe is None else recipe.to_plain(),
            "recipe_in_words": "not known" if recipe is None else str(recipe),
            "training_data": kept,
            "views": model.model_.shares(),
            "sizes": {
                "graphs": len(training.targets),
                "cells": int((~np.isnan(training.targets)).sum()),
                "patterns": len(model.weights_),
            },
            **endpoint_facts(model),
        }
    return {
        "kind": type(model).__name__,
        "task": "regression" if is_regressor(model) else "classification",
        "classes": None if is_regressor(model) else model.classes_.astype(str).tolist(),
        "recipe": None if recipe is None else recipe.to_plain(),
        "recipe_in_words": "not known" if recipe is None else str(recipe),
        "training_data": kept,
        "target": training.record.to_plain(),
        "target_in_words": training.record.in_words,
        **_kernel_facts(model),
    }


def _kernel_facts(model: FittedEstimator) -> dict[str, Any]:
    """Return the kernel, the shares of views, and sizes."""
    fitted = model.model_
    found = FitReport(fitted, model._n_jobs())
    settings = {name: x for name, x in fitted.settings().items() if name not in _NOT_SHOWN}
    return {
        "kernel": {**settings, "trees": found.trees},
        "views": found.views,
        "sizes": {
            "graphs": len(fitted.training.targets),
            "graphs_in_all": fitted.training.n_in_all,
            "basis_graphs": len(fitted.expansion.basis_indices),
            "patterns": len(fitted.weights),
        },
        "levels": fitted.learning.levels,
        "covariates": found.covariates,
        "learning": fitted.learning.sentence,
    }


def model_html(model: Any) -> str:
    """Return a fitted Gaussian process as HTML: scores, warnings, fragments; escaped."""
    forest, training = model.model_.patterns.source, model.model_.training
    lines = [
        f"{type(model).__name__}: {len(model.weights_):,} patterns to depth {model.best_depth_} "
        f"({', '.join(forest.all_trees)}) of {len(training.targets):,} graphs",
        str(model.learning_gain_),
    ]
    if not model.converged_:
        lines.append("⚠ The search for the weights did not converge.")
    found = FitReport(model.model_, model._n_jobs()).scores()["model"]
    if found.get("names_one_class"):
        lines.append("⚠ All graphs are put into one class: it does not distinguish classes.")
    titles = NUMBER_SCORES if is_regressor(model) else CLASS_SCORES
    scores = [(title, found[name]) for name, (title, _) in titles.items()]
    table = pd.DataFrame(scores, columns=["leave-one-out score", "value"]).dropna()
    parts = [f"<p>{escape(line)}</p>" for line in lines]
    parts += [table.to_html(index=False, float_format="{:.4g}".format), _fragments_html(model)]
    return f'<div class="treelens-model">{"".join(parts)}</div>'


def _fragments_html(model: FittedEstimator) -> str:
    """Return the first fragments with their drawings; a sentence where finding them takes long."""
    graphs, classes = model._train_graphs, model.model_.classes
    several = classes is not None and len(classes) > _MOST_CLASSES
    if graphs is None or several or len(graphs) > _MOST_SHOWN:
        return "<p>The fragments with the largest effects: model.fragments_</p>"
    table = model.fragments(graphs, n_fragments=_N_FRAGMENTS, smarts=False)
    if not len(table):
        return f"<p>{escape(str(table.attrs['none']))}</p>"
    return str(table[["name", "pattern", "effect", "error", "support", "drawing"]]._repr_html_())
