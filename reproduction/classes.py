"""Classes: TU data sets, molecules beside fingerprint models, all of HIV, and rare classes."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score

import treelens as tl
from reproduction.data import StudyOptions, load_classes
from reproduction.protocol import N_OUTER, outer_split
from treelens.estimators.baselines import (
    BoostingClassifier,
    EcfpForestClassifier,
    EcfpGPClassifier,
)
from treelens.evaluation.metrics import class_scores
from treelens.evaluation.splits import DistinctKFold, ScaffoldKFold
from treelens.kernels.fingerprints import folded_counts, molecules_behind
from treelens.models.thresholds import choose_threshold

TU_SETS = ("MUTAG", "PTC_MR", "PTC_DGCNN", "ENZYMES", "PROTEINS", "NCI1", "DD")
# Uniform weights have the depth of the largest evidence; rows of an earlier version, those called
# evidence, depth 4.
TU_METHODS: dict[str, dict[str, Any]] = {
    "gp_default": {},
    "gp_uniform": {"weights": "uniform"},
    "gp_depths": {"weights": "depths"},
    "gp_branches": {"weights": "branches"},
    "evidence_uniform": {"weights": "uniform", "depth": 4},
    "evidence_depths": {"weights": "depths", "depth": 4},
    "evidence_branches": {"weights": "branches", "depth": 4},
}
TU_REPETITIONS = {"DD": 1}
PANEL_SETS = ("PTC_MR", "BBBP", "Ames_Hansen2009", "HIV")
PANEL_METHODS: dict[str, Callable[..., Any]] = {
    "default": tl.GraphClassifier,
    "uniform": lambda **options: tl.GraphClassifier(
        weights="uniform", descriptors=False, **options
    ),
    "branches": lambda **options: tl.GraphClassifier(
        weights="branches", descriptors=False, **options
    ),
    "svc": lambda **options: tl.GraphSVC(scoring="roc_auc", progress=False, **options),
    "svc_uniform": lambda **options: tl.GraphSVC(
        scoring="roc_auc", weight_radius=0.0, progress=False, **options
    ),
    "ecfp_forest": EcfpForestClassifier,
    "ecfp_gp_radii": EcfpGPClassifier,
    "boosting": BoostingClassifier,
}
OURS = ("default", "uniform", "branches")
PANEL_SCORES = ("roc_auc", "pr_auc", "mcc", "accuracy")
N_FOLDS = 5
# Set -> how many molecules, and which share of them positive.
RARE_SETS = {"Ames_Hansen2009": (1500, 0.09), "HIV": (3000, 0.035)}
# Name -> threshold; None: the model's own.
RARE_METHODS = {"default": None, "named at 0.5": 0.5, "recall=0.9": "recall=0.9"}
N_RARE_FOLDS = 3


# --- TU data sets -----------------------------------------------------------------------------


def run_tu(options: StudyOptions) -> None:
    """Gaussian processes on the folds of Table 2."""
    with options.rows("evidence", ("set", "method", "repetition", "fold")) as rows:
        for name in options.sets or TU_SETS:
            graphs, y = tl.load_dataset(name)
            codes = np.unique(y, return_inverse=True)[1]
            for repetition in range(options.repeats or TU_REPETITIONS.get(name, 10)):
                for fold in range(N_OUTER):
                    train, test = outer_split(codes, repetition, fold, seed=0)
                    for method in options.methods or list(TU_METHODS)[:4]:
                        key = {
                            "set": name, "method": method, "repetition": repetition, "fold": fold,
                        }  # fmt: skip
                        rows.add(key, tu_scores, method, graphs, y, train, test, options)


def tu_scores(
    method: str, graphs: Any, y: np.ndarray, train: np.ndarray, test: np.ndarray,
    options: StudyOptions,
) -> dict[str, Any]:  # fmt: skip
    """Return the scores of one method on one fold."""
    start = time.perf_counter()
    model = tl.GraphClassifier(
        **TU_METHODS[method], device=options.device, n_jobs=options.n_jobs, random_state=0
    ).fit(graphs[train], y[train])  # fmt: skip
    probabilities = model.predict_proba(graphs[test])
    codes = np.searchsorted(model.classes_, y[test])
    own = probabilities[np.arange(len(test)), codes]
    found: dict[str, Any] = {
        "accuracy": float(np.mean(probabilities.argmax(axis=1) == codes)),
        "log_loss": -float(np.mean(np.log(np.maximum(own, 1e-300)))),
        "loo_accuracy": model.loo_.accuracy,
        "evidence": model.evidence_,
        "converged": model.converged_,
        "seconds": time.perf_counter() - start,
        "device": options.device,
    }
    if len(model.classes_) == 2:
        found["auc"] = float(roc_auc_score(codes, probabilities[:, 1]))
    return found


# --- molecules beside fingerprint models --------------------------------------------------------


def run_panel(options: StudyOptions) -> None:
    """The default model beside fingerprint models on random and on scaffold folds."""
    with options.rows("panel", ("set", "split", "fold", "method")) as rows:
        for name in options.sets or PANEL_SETS:
            graphs, y = load_classes(name)
            # Of HIV, matrices of all pairs and inner folds of a forest would take days.
            methods = options.methods or (OURS if name == "HIV" else tuple(PANEL_METHODS))
            for split, kind in (("random", DistinctKFold), ("scaffold", ScaffoldKFold)):
                folds = kind(N_FOLDS, random_state=0).split(graphs, y)
                for fold, (train, test) in enumerate(folds):
                    for method in methods:
                        key = {"set": name, "split": split, "fold": fold, "method": method}
                        rows.add(key, panel_scores, method, graphs, y, train, test, options)


def panel_scores(
    method: str, graphs: Any, y: np.ndarray, train: np.ndarray, test: np.ndarray,
    options: StudyOptions,
) -> dict[str, Any]:  # fmt: skip
    """Return the scores of one method on one fold."""
    settings: dict[str, Any] = {"n_jobs": options.n_jobs, "random_state": 0}
    if method in OURS:
        settings["device"] = options.device
    start = time.perf_counter()
    model = PANEL_METHODS[method](**settings).fit(graphs[train], y[train])
    fitted = time.perf_counter()
    found = class_scores(
        y[test], model.predict(graphs[test]), model.predict_proba(graphs[test]), positive=1
    )
    return {
        **{score: found[score] for score in PANEL_SCORES},
        "seconds": fitted - start, "predict_seconds": time.perf_counter() - fitted,
        "n_train": len(train), "n_test": len(test), "device": options.device,
    }  # fmt: skip


# --- all of HIV -------------------------------------------------------------------------------


def run_hiv(options: StudyOptions) -> None:
    """All molecules of HIV in folds of whole scaffolds: the default model and an ECFP4 forest."""
    with options.rows("hiv", ("fold", "method")) as rows:
        graphs, y = tl.load_dataset("HIV")
        y = np.asarray(y)
        folds = ScaffoldKFold(N_FOLDS, random_state=0).split(graphs)
        for fold, (train, test) in enumerate(folds):
            for method in options.methods or ("default", "ecfp_forest"):
                fit = _hiv_model if method == "default" else _hiv_forest
                key = {"fold": fold, "method": method}
                rows.add(key, _hiv_row, fit, graphs, y, train, test, options.n_jobs)


def _hiv_row(
    fit: Callable[..., dict[str, Any]], graphs: Any, y: np.ndarray, train: np.ndarray,
    test: np.ndarray, n_jobs: int,
) -> dict[str, Any]:  # fmt: skip
    start, before = time.perf_counter(), time.process_time()
    found = fit(graphs, y, train, test, n_jobs)
    return {
        **found, "n_train": len(train), "n": len(test), "n_positive": int(y[test].sum()),
        "seconds": time.perf_counter() - start, "cpu_seconds": time.process_time() - before,
        "gigabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }  # fmt: skip


def _hiv_model(
    graphs: Any, y: np.ndarray, train: np.ndarray, test: np.ndarray, n_jobs: int
) -> dict[str, Any]:
    model = tl.GraphClassifier(n_jobs=n_jobs, random_state=0).fit(graphs[train], y[train])
    codes = np.searchsorted(model.classes_, model.predict(graphs[test]))
    return class_scores(y[test], codes, model.predict_proba(graphs[test]), positive=1)


def _hiv_forest(
    graphs: Any, y: np.ndarray, train: np.ndarray, test: np.ndarray, n_jobs: int
) -> dict[str, Any]:
    table = folded_counts(molecules_behind(graphs)).astype(np.float32)
    forest = RandomForestClassifier(500, n_jobs=n_jobs, random_state=0)
    probabilities = forest.fit(table[train], y[train]).predict_proba(table[test])
    return class_scores(y[test], probabilities.argmax(axis=1), probabilities, positive=1)


# --- rare classes -----------------------------------------------------------------------------


def run_rare(options: StudyOptions) -> None:
    """Rare classes: thinned Ames and a part of HIV under several thresholds."""
    with options.rows("rare", ("set", "fold", "method")) as rows:
        for name in options.sets or RARE_SETS:
            graphs, y = thinned(name, *RARE_SETS[name])
            splits = DistinctKFold(N_RARE_FOLDS, random_state=0).split(graphs, y)
            for fold, (train, test) in enumerate(splits):
                key = {"set": name, "fold": fold}
                for kind, methods in (
                    (tl.GraphClassifier, RARE_METHODS),
                    (EcfpForestClassifier, {"ecfp_forest": None}),
                ):
                    if all({**key, "method": method} in rows for method in methods):
                        continue
                    model = kind(n_jobs=options.n_jobs, random_state=0).fit(graphs[train], y[train])
                    sizes = {"n": len(y), "n_positive": int(y.sum())}
                    for method, threshold in methods.items():
                        row = {**key, "method": method, **sizes}
                        rows.add(row, rare_scores, model, graphs[test], y[test], threshold)


def rare_scores(model: Any, graphs: Any, y: np.ndarray, threshold: Any) -> dict[str, Any]:
    """Return the scores of a fitted model under a threshold, which changes the classes alone."""
    probabilities = model.predict_proba(graphs)
    codes = np.searchsorted(model.classes_, model.predict(graphs))
    if threshold is not None:
        at = choose_threshold(threshold, model.loo_.probabilities, model.train_codes_)
        codes = probabilities.argmax(axis=1) if at is None else at.name(probabilities)
    return class_scores(y, codes, probabilities, positive=1)


def thinned(name: str, n: int, share: float) -> tuple[Any, np.ndarray]:
    """Draw ``n`` molecules, that share of them positive."""
    graphs, y = tl.load_dataset(name)
    rng, n_positive = np.random.default_rng(0), round(n * share)
    positive, negative = (rng.permutation(np.flatnonzero(y == c)) for c in (1, 0))
    kept = np.sort(np.concatenate([positive[:n_positive], negative[: n - n_positive]]))
    return graphs[kept], np.asarray(y)[kept]
