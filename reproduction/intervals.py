"""Do 90 % intervals hold 90 %? On random folds and on new scaffolds, before and after widening."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import treelens as tl
from reproduction.data import StudyOptions, load_molecules
from treelens.evaluation.metrics import NINETY
from treelens.evaluation.splits import DistinctKFold, ScaffoldKFold

SETS = ("FreeSolv", "ESOL", "CHEMBL219_Ki", "Lipophilicity")
FOLDS = {"scaffold": ScaffoldKFold, "random": DistinctKFold}
N_FOLDS = 5


def run(options: StudyOptions) -> None:
    """Make the rows that are missing."""
    with options.rows("intervals", ("set", "split", "fold")) as rows:
        for name in options.sets or SETS:
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
        "factor": left_out.factor, "left_out_coverage": left_out.coverage,
        "rmse": float(np.sqrt(np.mean((data.values[test] - mean) ** 2))),
        "left_out_rmse": left_out.rmse,
        "half_width": float(np.mean(NINETY * std)), "n_train": len(train), "n_test": len(test),
        "n_scaffolds": left_out.n_groups, "seconds": time.perf_counter() - start,
    }  # fmt: skip
