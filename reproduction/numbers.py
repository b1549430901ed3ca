"""Numbers of molecules: ESOL, FreeSolv and Lipophilicity on random 80/20 splits.

TREELENS_DATA=... python -m reproduction regression --out docs/results
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import treelens as tl
from reproduction.data import Molecules, StudyOptions, load_molecules
from reproduction.rivals import rival_numbers
from reproduction.rows import RowFile, versions
from treelens.evaluation.metrics import number_scores

SETS = ("FreeSolv", "ESOL", "Lipophilicity")
METHODS = (
    "treelens",
    "treelens_depths",
    "treelens_uniform",
    "treelens_descriptors",
    "ecfp_gp",
    "ecfp4_gp",
    "ecfp_forest",
    "ecfp_boosting",
)
N_SPLITS = 20
_WEIGHTS = {
    "treelens": "branches",
    "treelens_depths": "depths",
    "treelens_uniform": "uniform",
    "treelens_descriptors": "branches",  # with RDKit's descriptors as covariates
}


def run(asked: StudyOptions) -> None:
    """Make the rows that are missing."""
    rows = RowFile(asked.out / "regression.jsonl", ("set", "method", "split"))
    for name in asked.sets or SETS:
        data = load_molecules(name)
        for split, train, test in random_splits(len(data.values), asked.repeats or N_SPLITS):
            for method in asked.methods or METHODS:
                row = {"set": name, "method": method, "split": split}
                add_row(rows, row, data, train, test, asked)


def add_row(
    rows: RowFile,
    row: dict[str, Any],
    data: Molecules,
    train: np.ndarray,
    test: np.ndarray,
    asked: StudyOptions,
) -> None:
    """Fit and score ``row["method"]`` on one split, unless the file holds that row already."""
    if row in rows:
        return
    found = fit_and_score(
        row["method"], data.graphs, data.smiles, data.values, train, test, asked.n_jobs,
        asked.device,
    )  # fmt: skip
    del found["errors"]
    rows.append({**row, **found, "device": asked.device, **versions()})
    print(row, round(found["rmse"], 4), f"{found['seconds']:.1f} s", flush=True)


def random_splits(n: int, n_splits: int) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """80/20 splits, numbered by their seeds: the settings were chosen on seeds from 100 on."""
    for seed in range(n_splits):
        order = np.random.default_rng(seed).permutation(n)
        n_train = int(0.8 * n)
        yield seed, order[:n_train], order[n_train:]


def fit_and_score(
    method: str,
    graphs: Any,
    smiles: Sequence[str],
    values: np.ndarray,
    train: np.ndarray,
    test: np.ndarray,
    n_jobs: int,
    device: str = "cpu",
) -> dict[str, Any]:
    """Errors of one method on one split."""
    start = time.perf_counter()
    extra: dict[str, Any] = {}
    if method in _WEIGHTS:
        model = tl.GraphRegressor(
            weights=_WEIGHTS[method], device=device, n_jobs=n_jobs, random_state=0
        )
        covariates = "rdkit" if method == "treelens_descriptors" else None
        model.fit(graphs[train], values[train], covariates=covariates)
        mean, std = model.predict(graphs[test], return_std=True)
        extra = {
            "evidence": model.evidence_,
            "loo_rmse": model.loo_.rmse,
            "gain": model.learning_gain_.difference,
            "n_evaluations": int(
                model.history_.groupby("stage", sort=False)["n_evaluations"].max().sum()
            ),
            "converged": model.converged_,
        }
    else:
        mean, std = rival_numbers(method, [smiles[i] for i in train], values[train],
                           [smiles[i] for i in test], n_jobs)  # fmt: skip
    seconds = time.perf_counter() - start
    return {
        **{name: x for name, x in number_scores(values[test], mean, std).items() if x is not None},
        **extra,
        "seconds": seconds,
        "n_train": len(train),
        "errors": (values[test] - mean).tolist(),
    }
