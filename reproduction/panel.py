"""Classes of molecules: the default model beside what a chemist would run, two kinds of folds.

TREELENS_DATA=... python -m reproduction panel --out docs/results
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import treelens as tl
from reproduction.data import StudyOptions
from reproduction.pages import command_line, markdown_table, write_json, write_page
from reproduction.rows import RowFile, versions
from treelens.estimators.baselines import (
    EcfpForestClassifier,
    EcfpGPClassifier,
    EcfpSVC,
)
from treelens.evaluation.metrics import class_scores
from treelens.evaluation.splits import DistinctKFold, ScaffoldKFold

SETS = ("PTC_MR", "BBBP", "Ames_Hansen2009", "HIV")
N_FOLDS = 5
METHODS: dict[str, Callable[..., Any]] = {
    "treelens": tl.GraphClassifier,
    "treelens_uniform": lambda **options: tl.GraphClassifier(weights="uniform", **options),
    "ecfp_forest": EcfpForestClassifier,
    "ecfp_gp": EcfpGPClassifier,
    "ecfp_svm": EcfpSVC,
}
OURS = ("treelens", "treelens_uniform")
NAMES = {
    "treelens": "treelens",
    "treelens_uniform": "treelens, uniform weights",
    "ecfp_forest": "ECFP4 forest",
    "ecfp_gp": "ECFP Tanimoto GP",
    "ecfp_svm": "ECFP Tanimoto SVM",
}
SCORES = ("roc_auc", "pr_auc", "mcc", "accuracy")


def run(asked: StudyOptions) -> None:
    """Make the rows that are missing."""
    rows = RowFile(asked.out / "panel.jsonl", ("set", "split", "fold", "method"))
    for name in asked.sets or SETS:
        graphs, y = read_classes(name)
        for split, folds in folds_of(graphs, y).items():
            for fold, (train, test) in enumerate(folds):
                for method in asked.methods or methods_for(name):
                    row = {"set": name, "split": split, "fold": fold, "method": method}
                    add_row(rows, row, graphs, y, train, test, asked)


def methods_for(name: str) -> tuple[str, ...]:
    """Of HIV, matrices of all pairs and inner folds of a forest would take days."""
    return OURS if name == "HIV" else tuple(METHODS)


def read_classes(name: str) -> tuple[Any, np.ndarray]:
    """Molecules with 1 for the positive class and 0 for the other."""
    from reproduction.data import data_folder

    path = data_folder() / f"smiles/{name}.csv.gz"
    graphs, y = tl.read_smiles(path, target="label", on_invalid="skip")
    return graphs, (np.asarray(y) == np.max(y)).astype(int)


def folds_of(graphs: Any, y: np.ndarray) -> dict[str, list[tuple[np.ndarray, np.ndarray]]]:
    """Random folds, the same molecule never in two of them, and folds of whole scaffolds."""
    return {
        "random": list(DistinctKFold(N_FOLDS, random_state=0).split(graphs, y)),
        "scaffold": list(ScaffoldKFold(N_FOLDS, random_state=0).split(graphs, y)),
    }


def add_row(
    rows: RowFile, row: dict[str, Any], graphs: Any, y: np.ndarray,
    train: np.ndarray, test: np.ndarray, asked: StudyOptions,
) -> None:  # fmt: skip
    """Fit and score ``row["method"]`` on one fold, unless the file holds that row already."""
    if row in rows:
        return
    options: dict[str, Any] = {"n_jobs": asked.n_jobs, "random_state": 0}
    if row["method"] in OURS:
        options["device"] = asked.device
    start = time.perf_counter()
    model = METHODS[row["method"]](**options).fit(graphs[train], y[train])
    fitted = time.perf_counter()
    chances = model.predict_proba(graphs[test])
    found = class_scores(y[test], model.predict(graphs[test]), chances, positive=1)
    times = {"seconds": fitted - start, "predict_seconds": time.perf_counter() - fitted}
    sizes = {"n_train": len(train), "n_test": len(test), "device": asked.device}
    rows.append({**row, **{k: found[k] for k in SCORES}, **times, **sizes, **versions()})
    print(row, round(found["roc_auc"] or 0.0, 4), f"{times['seconds']:.1f} s", flush=True)


def panel_summary(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Set, kind of folds, method: mean scores, errors of the means, seconds.

    Of the folds that every method has which has any.
    """
    groups: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for row in rows:
        if row["fold"] in _common_folds(rows, row["set"], row["split"]):
            groups.setdefault((row["set"], row["split"], row["method"]), []).append(row)
    summary: dict[str, Any] = {}
    for (name, split, method), found in groups.items():
        means = {score: float(np.mean([row[score] for row in found])) for score in SCORES}
        error = float(np.std([row["roc_auc"] for row in found], ddof=1) / len(found) ** 0.5)
        seconds = float(np.mean([row["seconds"] for row in found]))
        entry = {**means, "roc_auc_error": error, "seconds": seconds, "n_folds": len(found)}
        summary.setdefault(name, {}).setdefault(split, {})[method] = entry
    return summary


def _common_folds(rows: Sequence[dict[str, Any]], name: str, split: str) -> set[int]:
    by_method: dict[str, set[int]] = {}
    for row in rows:
        if (row["set"], row["split"]) == (name, split):
            by_method.setdefault(row["method"], set()).add(row["fold"])
    return set.intersection(*by_method.values())


def write_panel(out: Path, rows: Sequence[dict[str, Any]]) -> None:
    """The page, and its numbers."""
    summary = panel_summary(rows)
    write_json(out / "panel.json", summary)
    lines = [
        [
            name, split, NAMES[method], f"{found['roc_auc']:.3f} ± {found['roc_auc_error']:.3f}",
            *(f"{found[score]:.3f}" for score in SCORES[1:]), f"{found['seconds']:.1f}",
            found["n_folds"],
        ]
        for name, splits in summary.items()
        for split, methods in splits.items()
        for method, found in sorted(methods.items(), key=lambda item: -item[1]["roc_auc"])
    ]  # fmt: skip
    parts = [
        f"Classes of molecules in {N_FOLDS} random folds (the same molecule never in two) and "
        f"{N_FOLDS} folds of whole Bemis-Murcko scaffolds. Ours has its defaults: there is nothing "
        "to tune. The rivals choose among ECFP4 bits, ECFP4 counts and (process and SVM) ECFP6 "
        "counts; the forest of 500 trees also how many features a split looks at, the SVM its C, "
        "by inner folds; the process by marginal likelihood. ± is the standard error of the mean "
        "over folds. Seconds are of one fit; those of treelens were taken where the rows say "
        "(`device`), all others on a CPU with other programs running: they give the order of "
        "size. Where some method lacks folds, all are compared on those that every one has; beside "
        "ours on HIV there is [one forest](hiv.md).",
        markdown_table(
            ["set", "folds", "model", "ROC AUC", "PR AUC", "MCC", "accuracy", "fit s", "folds"],
            lines,
        ),
        where_we_lose(summary),
    ]
    write_page(out / "panel.md", "Classes of molecules", command_line("panel"), parts)


def where_we_lose(summary: dict[str, Any]) -> str:
    """The sets and folds on which some rival has the larger area, in words."""
    lost = []
    for name, splits in summary.items():
        for split, methods in splits.items():
            ours = methods.get("treelens")
            rivals = {m: f for m, f in methods.items() if m.startswith("ecfp")}
            if ours is None or not rivals:
                continue
            best = max(rivals, key=lambda m: rivals[m]["roc_auc"])
            if rivals[best]["roc_auc"] > ours["roc_auc"]:
                behind = rivals[best]["roc_auc"] - ours["roc_auc"]
                lost.append(f"{name}, {split} folds: {behind:.3f} behind the {NAMES[best]}")
    return "Where a rival has the larger ROC AUC: " + ("; ".join(lost) or "nowhere") + "."
