"""Error bars and the applicability domain: are intervals wide enough, do they order the errors."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import treelens as tl
from reproduction.data import StudyOptions, load_assay, load_molecules
from treelens.evaluation.metrics import NINETY
from treelens.evaluation.splits import DistinctKFold, ScaffoldKFold

# Set -> random splits, scaffold folds.
DOMAIN_SETS = {"ESOL": (3, 3), "Lipophilicity": (1, 0)}
ASSAYS = ("CHEMBL219_Ki", "CHEMBL231_Ki", "CHEMBL4005_Ki")
FIRST_SEED = 10
SALT = "[Na+].[Cl-]"


def run_domain(options: StudyOptions) -> None:
    """Make the rows that are missing."""
    with options.rows("domain", ("set", "split", "number")) as rows:
        for name in options.sets or (*DOMAIN_SETS, *ASSAYS):
            graphs, values, splits = _data(name, options.repeats)
            for split, number, train, test in splits:
                key = {"set": name, "split": split, "number": number}
                rows.add(key, ordered_errors, graphs, values, train, test, options.n_jobs)


def _data(name: str, repeats: int | None) -> tuple[Any, np.ndarray, list[Any]]:
    if name not in DOMAIN_SETS:
        assay = load_assay(name)
        return assay.graphs, assay.values, [("published", 0, *assay.split)]
    data = load_molecules(name)
    n, (n_random, n_scaffold) = (
        len(data.values),
        (repeats, repeats) if repeats else DOMAIN_SETS[name],
    )
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
        "near": near,
        "middle": middle,
        "far": far,
        "ratio": far / near,
        "std_ratio": by_std[2] / by_std[0],
        "similarity_ratio": by_similarity[2] / by_similarity[0],
        "n_test": len(test),
        "n_outside": int((~inside).sum()),
        "inside": _rmse(error[inside]) if inside.any() else None,
        "outside": None if inside.all() else _rmse(error[~inside]),
        "salt_is_outside": not bool(model.domain([SALT])["in_domain"].iloc[0]),
        "seconds": time.perf_counter() - start,
    }


def _thirds(order_by: np.ndarray, error: np.ndarray) -> list[float]:
    parts = np.array_split(np.argsort(order_by, kind="stable"), 3)
    return [_rmse(error[part]) for part in parts]


def _rmse(error: np.ndarray) -> float:
    return float(np.sqrt(np.mean(error**2)))


INTERVAL_SETS = ("FreeSolv", "ESOL", "CHEMBL219_Ki", "Lipophilicity")
FOLDS = {"scaffold": ScaffoldKFold, "random": DistinctKFold}
N_FOLDS = 5


def run_intervals(options: StudyOptions) -> None:
    """Make the rows that are missing."""
    with options.rows("intervals", ("set", "split", "fold")) as rows:
        for name in options.sets or INTERVAL_SETS:
            data = load_molecules(name)
            for split, fold, train, test in _folds(data.graphs, options.repeats or N_FOLDS):
                key = {"set": name, "split": split, "fold": fold}
                rows.add(key, covered, data, train, test, options.n_jobs)


def _folds(graphs: Any, most: int) -> Iterator[tuple[str, int, np.ndarray, np.ndarray]]:
    for split, folds in FOLDS.items():
        parts = folds(N_FOLDS, random_state=0).split(graphs)
        yield from ((split, k, *part) for k, part in zip(range(most), parts, strict=False))


def covered(data: Any, train: np.ndarray, test: np.ndarray, n_jobs: int) -> dict[str, Any]:
    """Return the share of test values in their 90 % intervals, as they are and widened."""
    start = time.perf_counter()
    model = tl.GraphRegressor(n_jobs=n_jobs, random_state=0)
    model.fit(data.graphs[train], data.values[train])
    mean, std = model.predict(data.graphs[test], return_std=True)
    reach = np.abs(data.values[test] - mean) / (NINETY * std)
    left_out = model.left_out_scaffolds_
    return {
        "posterior": float(np.mean(reach <= 1.0)),
        "scaffold": float(np.mean(reach <= left_out.factor)),
        "factor": left_out.factor,
        "left_out_coverage": left_out.coverage,
        "rmse": float(np.sqrt(np.mean((data.values[test] - mean) ** 2))),
        "left_out_rmse": left_out.rmse,
        "half_width": float(np.mean(NINETY * std)),
        "n_train": len(train),
        "n_test": len(test),
        "n_scaffolds": left_out.n_groups,
        "seconds": time.perf_counter() - start,
    }
