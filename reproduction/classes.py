"""Classes by evidence on the TU sets: nested nowhere, since nothing is chosen by validation.

TREELENS_DATA=... python -m reproduction evidence --out docs/results
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

import treelens as tl
from reproduction.data import StudyOptions
from reproduction.protocol import N_OUTER, outer_split
from reproduction.rows import RowFile, versions

SETS = ("MUTAG", "PTC_MR", "PTC_DGCNN", "ENZYMES", "PROTEINS", "NCI1", "DD")
METHODS = ("evidence_uniform", "evidence_depths", "evidence_branches")
N_REPETITIONS = {"DD": 1}


def run(asked: StudyOptions) -> None:
    """Make the rows that are missing."""
    rows = RowFile(asked.out / "evidence.jsonl", ("set", "method", "repetition", "fold"))
    for name in asked.sets or SETS:
        graphs, y = tl.load_dataset(name)
        codes = np.unique(y, return_inverse=True)[1]
        for repetition in range(asked.repeats or N_REPETITIONS.get(name, 10)):
            for fold in range(N_OUTER):
                train, test = outer_split(codes, repetition, fold, seed=0)
                for method in asked.methods or METHODS:
                    row = {"set": name, "method": method, "repetition": repetition, "fold": fold}
                    if row in rows:
                        continue
                    found = fit_and_score(
                        method, graphs, y, train, test, asked.n_jobs, asked.device
                    )
                    rows.append({**row, **found, "device": asked.device, **versions()})
                    print(row, found["accuracy"], f"{found['seconds']:.1f} s", flush=True)


def fit_and_score(
    method: str,
    graphs: Any,
    y: np.ndarray,
    train: np.ndarray,
    test: np.ndarray,
    n_jobs: int,
    device: str,
) -> dict[str, Any]:
    """Accuracy of one method on one fold."""
    start = time.perf_counter()
    weights = method.removeprefix("evidence_")
    model = tl.GraphClassifier(weights=weights, device=device, n_jobs=n_jobs, random_state=0)
    model.fit(graphs[train], y[train])
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
    }
    if len(model.classes_) == 2:
        found["auc"] = float(roc_auc_score(codes, probabilities[:, 1]))
    return found
