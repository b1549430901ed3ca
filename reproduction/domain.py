"""Does the applicability domain order the errors? Thirds of test molecules from near to far."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import treelens as tl
from reproduction.data import StudyOptions, load_assay, load_molecules
from treelens.evaluation.splits import ScaffoldKFold

# Set -> random splits, scaffold folds.
SETS = {"ESOL": (3, 3), "Lipophilicity": (1, 0)}
ASSAYS = ("CHEMBL219_Ki", "CHEMBL231_Ki", "CHEMBL4005_Ki")
FIRST_SEED = 10
SALT = "[Na+].[Cl-]"


def run(options: StudyOptions) -> None:
    """Make the rows that are missing."""
    with options.rows("domain", ("set", "split", "number")) as rows:
        for name in options.sets or (*SETS, *ASSAYS):
            graphs, values, splits = _data(name, options.repeats)
            for split, number, train, test in splits:
                key = {"set": name, "split": split, "number": number}
                rows.add(key, ordered_errors, graphs, values, train, test, options.n_jobs)


def _data(name: str, repeats: int | None) -> tuple[Any, np.ndarray, list[Any]]:
    if name not in SETS:
        assay = load_assay(name)
        return assay.graphs, assay.values, [("published", 0, *assay.split)]
    data = load_molecules(name)
    n, (n_random, n_scaffold) = len(data.values), (repeats, repeats) if repeats else SETS[name]
    splits: list[Any] = []
    for seed in range(FIRST_SEED, FIRST_SEED + n_random):
        order = np.random.default_rng(seed).permutation(n)
        splits.append(("random", seed, order[: int(0.8 * n)], order[int(0.8 * n) :]))
    folds = ScaffoldKFold(5, random_state=FIRST_SEED).split(data.graphs)
    splits += [("scaffold", k, *parts) for k, parts in zip(range(n_scaffold), folds, strict=False)]
    return data.graphs, data.values, splits


def ordered_errors(
    graphs: Any, values: np.ndarray, train: np.ndarray, test: np.ndarray, n_jobs: int
) -> dict[str, Any]:
    """Return errors of thirds by expected error, and inside and outside of the domain."""
    start = time.perf_counter()
    model = tl.GraphRegressor(n_jobs=n_jobs, random_state=0).fit(graphs[train], values[train])
    table = model.predict_table(graphs[test])
    error = (table["prediction"] - values[test]).to_numpy()
    near, middle, far = _thirds(table["expected_error"].to_numpy(), error)
    inside = table["in_domain"].to_numpy()
    by_std = _thirds(table["std"].to_numpy(), error)
    by_similarity = _thirds(-table["similarity"].to_numpy(), error)
    return {
        "near": near, "middle": middle, "far": far, "ratio": far / near,
        "std_ratio": by_std[2] / by_std[0], "similarity_ratio": by_similarity[2] / by_similarity[0],
        "n_test": len(test), "n_outside": int((~inside).sum()),
        "inside": _rmse(error[inside]) if inside.any() else None,
        "outside": None if inside.all() else _rmse(error[~inside]),
        "salt_is_outside": not bool(model.domain([SALT])["in_domain"].iloc[0]),
        "seconds": time.perf_counter() - start,
    }  # fmt: skip


def _thirds(order_by: np.ndarray, error: np.ndarray) -> list[float]:
    parts = np.array_split(np.argsort(order_by, kind="stable"), 3)
    return [_rmse(error[part]) for part in parts]


def _rmse(error: np.ndarray) -> float:
    return float(np.sqrt(np.mean(error**2)))
