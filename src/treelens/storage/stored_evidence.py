"""A fitted Gaussian process in a model file, and back.

The forest of patterns with its weights, the counts of the training graphs, the kernel and the
posterior. Of an exact posterior the Cholesky factor is left out, which is as large as the kernel
matrix: a loaded model computes it from the rest when variances are first asked for.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import numpy as np

from treelens.gp.covariates import CovariateColumn, CovariateTable, FittedCovariates
from treelens.gp.landmarks import LandmarkPosterior
from treelens.gp.leave_one_out import LearningGain, scored_classes, scored_numbers
from treelens.gp.model import (
    EvidenceRecord,
    FittedGP,
    WeightedForest,
)
from treelens.gp.posterior import MeanPosterior
from treelens.gp.search import STAGES
from treelens.kernels.mixture import CovariateScales, MixtureScales
from treelens.models.thresholds import Threshold
from treelens.models.training import TrainingGraphs
from treelens.patterns.forest import TREES, PatternForest
from treelens.patterns.histograms import PatternHistograms
from treelens.storage.archive import Contents
from treelens.storage.stored import Stored
from treelens.storage.stored_patterns import (
    get_lists,
    get_recipe,
    get_vocabulary,
    plain_value,
    put_lists,
    put_recipe,
    put_vocabulary,
)
from treelens.storage.stored_records import checked_class_labels

_LARGEST_LOG = 200.0  # exp of it stays below what any number of a model may be
_FASTEST_DECAY = 1e6  # beyond, what rounds off the sums would decide; learned are far smaller ones
_MOST_EVALUATIONS = 2**62


def put_process(model: FittedGP, into: Contents) -> None:
    """Everything about a fitted Gaussian process."""
    assert model.training is not None
    into.data["task"] = "regression" if model.classes is None else "classification"
    put_recipe(model.recipe, into)
    _put_forest(model.weighted, into)
    put_lists(model.training.histograms, into)
    _put_posterior(model, into)
    _put_covariates(model.covariates, into)
    _put_targets(model, into)
    into.data["n_in_all"] = model.training.n_in_all
    _put_record(model, into)


def task_of(stored: Stored) -> str:
    """What the model of a file predicts: "classification" or "regression"."""
    task: str = stored.value("task", str)
    if task not in ("classification", "regression"):
        raise stored.error("'task' should be one of classification, regression")
    return task


def get_process(stored: Stored, learned: str) -> FittedGP:
    """The model of a file; ``learned`` says what was: "uniform", "depths" or "branches"."""
    weighted = _get_forest(stored)
    forest = weighted.forest
    histograms = get_lists(stored, forest.level_offsets, 0, forest.level_depths)
    if histograms.n_graphs < 2:
        raise stored.error("the array 'train_n_nodes' should name two graphs or more")
    classes = checked_class_labels(stored) if task_of(stored) == "classification" else None
    model = _get_posterior(stored, weighted, histograms, _n_columns(classes))
    slope, targets, left_out = _get_targets(stored, classes, histograms.n_graphs)
    return replace(
        model,
        classes=classes,
        slope=slope,
        training=TrainingGraphs(histograms, targets, _get_n_in_all(stored, histograms.n_graphs)),
        recipe=get_recipe(stored),
        record=_get_record(stored, learned, left_out),
        covariates=_get_covariates(stored, histograms.n_graphs),
    )


def _n_columns(classes: np.ndarray | None) -> int:
    return 1 if classes is None or len(classes) == 2 else len(classes)


# --- patterns and their weights -------------------------------------------------------------


def _put_forest(weighted: WeightedForest, into: Contents) -> None:
    forest = weighted.forest
    into.data["trees"] = list(forest.trees)
    for number, (vocabulary, roots) in enumerate(
        zip(forest.vocabularies, forest.roots, strict=True)
    ):
        put_vocabulary(vocabulary, into, f"tree_{number}_")
        into.arrays[f"tree_{number}_roots"] = roots
    into.arrays["log_weights"], into.arrays["level_weights"] = (
        weighted.log_weights,
        weighted.level_weights,
    )


def _get_forest(stored: Stored) -> WeightedForest:
    trees = stored.value("trees", list)
    known = all(isinstance(tree, str) and tree in TREES for tree in trees)
    if not trees or not known or len(set(trees)) < len(trees):
        raise stored.error(f"'trees' should be different ones among {', '.join(TREES)}")
    vocabularies = tuple(get_vocabulary(stored, f"tree_{k}_") for k in range(len(trees)))
    for k, (tree, vocabulary) in enumerate(zip(trees, vocabularies, strict=True)):
        if vocabulary.depth != vocabularies[0].depth:
            raise stored.error(f"'tree_{k}_depth' should be that of the other trees")
        if vocabulary.uses_edge_labels != TREES[tree][1]:
            raise stored.error(f"'tree_{k}_edge_alphabet' is not what the tree {tree!r} looks at")
    plain = PatternForest(tuple(trees), vocabularies, tuple(np.empty(0, np.int64) for _ in trees))
    roots = tuple(_get_roots(stored, plain, tree) for tree in range(len(trees)))
    forest = PatternForest(plain.trees, vocabularies, roots)
    logs = stored.floats("log_weights", (forest.n_patterns,), -_LARGEST_LOG)
    if logs.max(initial=0.0) > _LARGEST_LOG:
        raise stored.error(f"the array 'log_weights' should hold numbers up to {_LARGEST_LOG:g}")
    weighted = WeightedForest(
        forest, logs, stored.floats("level_weights", (len(forest.levels),), 0.0)
    )
    stored.check_floats(weighted.weights, "the product of level_weights and exp(log_weights)", 0.0)
    return weighted


def _get_roots(stored: Stored, forest: PatternForest, tree: int) -> np.ndarray:
    """Where the first level of a tree hangs: on patterns of the level before, or nowhere."""
    level = next(k for k, (owner, _) in enumerate(forest.levels) if owner == tree)
    sizes, before = np.diff(forest.level_offsets), int(forest.level_before[level])
    low, below = (-1, 0) if before < 0 else (0, int(sizes[before]))
    return stored.integers(f"tree_{tree}_roots", np.int64, (int(sizes[level]),), low, below)


# --- kernel and posterior -------------------------------------------------------------------


def _put_posterior(model: FittedGP, into: Contents) -> None:
    into.data["scales"] = asdict(model.scales)
    into.data["noise"] = float(model.noise)
    into.data["target_scale"] = float(model.target_scale)
    into.arrays["target_offset"] = model.target_offset
    into.arrays["coefficients"] = model.posterior.coefficients
    if isinstance(model.posterior, LandmarkPosterior):
        into.arrays["landmarks"] = model.basis_indices.astype(np.int64, copy=False)
        gain = model.posterior.precision_gain  # symmetric: half of it is all of it
        into.arrays["precision_gain"] = gain[np.triu_indices(len(gain))]
    else:
        assert model.sample_weights is not None
        into.arrays["sample_weights"] = model.sample_weights


def _get_posterior(
    stored: Stored, weighted: WeightedForest, histograms: PatternHistograms, n_columns: int
) -> FittedGP:
    n_graphs, sample_weights = histograms.n_graphs, None
    posterior: LandmarkPosterior | MeanPosterior
    if stored.has_array("landmarks"):
        indices = _get_landmarks(stored, n_graphs)
        basis = histograms.select_graphs(indices)
        coefficients = stored.floats("coefficients", (len(indices), n_columns))
        posterior = LandmarkPosterior(coefficients, _get_gain(stored, len(indices)))
    else:
        basis, indices = histograms, np.arange(n_graphs)
        posterior = MeanPosterior(stored.floats("coefficients", (n_graphs, n_columns)))
        sample_weights = stored.floats("sample_weights", (n_graphs,), 0.0)
        if not (sample_weights > 0).all():
            raise stored.error("the array 'sample_weights' should hold numbers above 0")
    noise = stored.number(stored.value("noise", float), "'noise'", 0.0, above=True)
    scale = stored.number(stored.value("target_scale", float), "'target_scale'", 0.0, above=True)
    return FittedGP(
        weighted, _get_scales(stored), noise, basis, indices, posterior,
        stored.floats("target_offset", (n_columns,)), scale, sample_weights,
    )  # fmt: skip


def _get_landmarks(stored: Stored, n_graphs: int) -> np.ndarray:
    indices = stored.integers("landmarks", np.int64, (None,), 0, n_graphs)
    if not len(indices) or (np.diff(indices) <= 0).any():
        raise stored.error("the array 'landmarks' should ascend, and not be empty")
    return indices


def _get_gain(stored: Stored, n: int) -> np.ndarray:
    gain = np.zeros((n, n))
    gain[np.triu_indices(n)] = stored.floats("precision_gain", (n * (n + 1) // 2,))
    return gain + np.triu(gain, 1).T


def _get_scales(stored: Stored) -> MixtureScales:
    scales = stored.record(MixtureScales, stored.value("scales", dict), "'scales'", 0.0)
    if scales.share > 1.0 or scales.amplitude == 0.0:
        raise stored.error("'scales' should hold an amplitude above 0 and a share of at most 1")
    if max(scales.gamma, scales.rho) > _FASTEST_DECAY:
        raise stored.error(f"gamma and rho in 'scales' should be at most {_FASTEST_DECAY:g}")
    return scales


# --- covariates -----------------------------------------------------------------------------


def _put_covariates(covariates: FittedCovariates | None, into: Contents) -> None:
    if covariates is None:
        return
    columns = [asdict(column) for column in covariates.table.columns]
    into.data["covariates"] = [{**c, "classes": list(c["classes"])} for c in columns]
    into.data["covariate_scales"] = asdict(covariates.scales)
    into.arrays["covariates"] = covariates.training


def _get_covariates(stored: Stored, n_graphs: int) -> FittedCovariates | None:
    """Columns beside the graphs; files from before there were any lack them."""
    if not stored.has_value("covariates"):
        return None
    columns = tuple(_get_column(stored, known) for known in stored.value("covariates", list))
    if not columns or len({column.name for column in columns}) < len(columns):
        raise stored.error("'covariates' should hold columns of different names")
    known = stored.value("covariate_scales", dict)
    scales = stored.record(CovariateScales, known, "'covariate_scales'", 0.0)
    if scales.length == 0.0:
        raise stored.error("'covariate_scales' should hold a length above 0")
    width = sum(len(column.classes) or 1 for column in columns)
    training = stored.floats("covariates", (n_graphs, width))
    return FittedCovariates(CovariateTable(columns), scales, training)


def _get_column(stored: Stored, known: Any) -> CovariateColumn:
    if not isinstance(known, dict) or set(known) != {"name", "mean", "spread", "classes"}:
        raise stored.error("'covariates' should hold columns with name, mean, spread and classes")
    name, classes = known["name"], known["classes"]
    if not isinstance(name, str) or not isinstance(classes, list):
        raise stored.error("'covariates' should hold columns with a name and a list of classes")
    if not all(isinstance(value, str) for value in classes):
        raise stored.error(f"the classes of the covariate {name!r} should be texts")
    mean = stored.number(known["mean"], f"the mean of {name!r}")
    spread = stored.number(known["spread"], f"the spread of {name!r}", 0.0, above=True)
    return CovariateColumn(name, mean, spread, tuple(classes))


# --- targets and what was said of them ------------------------------------------------------


def _put_targets(model: FittedGP, into: Contents) -> None:
    assert model.training is not None
    assert model.record is not None
    left_out = model.record.left_out
    if model.classes is None:
        into.arrays["train_values"] = model.training.targets
        into.arrays["loo_predictions"], into.arrays["loo_std"] = left_out.predictions, left_out.std
        return
    into.data["classes"] = plain_value(model.classes, "a class")
    into.data["slope"] = model.slope
    threshold = model.threshold
    into.data["threshold"] = None if threshold is None else threshold._asdict()
    into.arrays["train_codes"] = model.training.targets.astype(np.int64, copy=False)
    decisions = left_out.decisions
    into.arrays["loo_decisions"] = decisions[:, None] if decisions.ndim == 1 else decisions


def _get_targets(
    stored: Stored, classes: np.ndarray | None, n_graphs: int
) -> tuple[float | None, np.ndarray, Any]:
    """Slope, targets and left-out predictions; the scores of these are computed again."""
    if classes is None:
        values = stored.floats("train_values", (n_graphs,))
        std = stored.floats("loo_std", (n_graphs,), 0.0)
        if not (std > 0).all():
            raise stored.error("the array 'loo_std' should hold numbers above 0")
        predictions = stored.floats("loo_predictions", (n_graphs,))
        return None, values, scored_numbers(predictions, std, values)
    codes = stored.integers("train_codes", np.int64, (n_graphs,), 0, len(classes))
    slope = stored.number(stored.value("slope", float), "'slope'", 0.0, above=True)
    decisions = stored.floats("loo_decisions", (n_graphs, _n_columns(classes)))
    threshold = _get_threshold(stored, len(classes))
    return slope, codes, scored_classes(decisions, codes, classes, slope, threshold)


def _get_n_in_all(stored: Stored, n_graphs: int) -> int | None:
    """How many graphs the training graphs are a sample of; older files do not say."""
    known = stored.value("n_in_all", int, type(None)) if stored.has_value("n_in_all") else None
    return None if known is None else stored.whole(known, "'n_in_all'", n_graphs, 2**62)


def _get_threshold(stored: Stored, n_classes: int) -> Threshold | None:
    """What a rare class is named by; files from before there were thresholds have none."""
    known = stored.value("threshold", dict, type(None)) if stored.has_value("threshold") else None
    if known is None:
        return None
    threshold = stored.record(Threshold, known, "'threshold'")
    if n_classes != 2 or not 0.0 < threshold.value <= 1.0 or threshold.code > 1:
        raise stored.error(
            "'threshold' should hold a value above 0 and up to 1 and a code of 0 or 1, and be of "
            "two classes"
        )
    return threshold


# --- the search -----------------------------------------------------------------------------


def _put_record(model: FittedGP, into: Contents) -> None:
    assert model.record is not None
    gain, history = model.record.learning_gain, model.record.history
    into.data["converged"] = bool(model.record.converged)
    into.data["learning_gain"] = asdict(gain)
    stages = [STAGES.index(stage) for stage in history["stage"]]
    into.arrays["history_stage"] = np.array(stages, dtype=np.int64)
    into.arrays["history_n_evaluations"] = history["n_evaluations"].to_numpy(np.int64)
    for name in ("evidence", "gradient_norm"):
        into.arrays[f"history_{name}"] = history[name].to_numpy(np.float64)


def _get_record(stored: Stored, learned: str, left_out: Any) -> EvidenceRecord:
    import pandas as pd

    stages = stored.integers("history_stage", np.int64, (None,), 0, len(STAGES))
    shape = (len(stages),)
    if not len(stages):
        raise stored.error("the array 'history_stage' should not be empty")
    history = pd.DataFrame(
        {
            "stage": [STAGES[stage] for stage in stages.tolist()],
            "evidence": stored.floats("history_evidence", shape),
            "gradient_norm": stored.floats("history_gradient_norm", shape, 0.0, nan=True),
            "n_evaluations": stored.integers(
                "history_n_evaluations", np.int64, shape, 0, _MOST_EVALUATIONS
            ),
        }
    )
    converged = stored.value("converged", bool)
    gain = stored.record(LearningGain, stored.value("learning_gain", dict), "'learning_gain'")
    return EvidenceRecord(learned, history, converged, gain, left_out)
