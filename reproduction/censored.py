"""Limits in the place of values: data censored by us, so that the truth is known; and its page."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import treelens as tl
from reproduction.data import Molecules, StudyOptions, load_molecules, random_splits
from treelens.evaluation.metrics import number_scores

SETS = ("FreeSolv", "ESOL", "CHEMBL2034_Ki", "CHEMBL2835_Ki")
# Which end of the values is censored: their lowest or their highest 30 %, in the training part.
SIDES = {"low": -1, "high": 1}
METHODS = ("limits", "left_out", "clipped", "uncensored")
SHARE, N_SPLITS = 0.3, 10


def run(options: StudyOptions) -> None:
    """Make the rows that are missing."""
    with options.rows("censored", ("set", "side", "method", "split")) as rows:
        for name in options.sets or SETS:
            data = load_molecules(name)
            splits = random_splits(len(data.values), options.repeats or N_SPLITS)
            for split, train, test in splits:
                for side in SIDES:
                    for method in options.methods or METHODS:
                        key = {"set": name, "side": side, "method": method, "split": split}
                        rows.add(key, _scores, data, train, test, side, method, options.n_jobs)


def _scores(
    data: Molecules, train: np.ndarray, test: np.ndarray, side: str, method: str, n_jobs: int
) -> dict[str, Any]:
    """Return scores on all test values, and on those within the range that is measured."""
    sign, start = SIDES[side], time.perf_counter()
    true = data.values[train]
    limit = float(np.quantile(true, SHARE if sign < 0 else 1.0 - SHARE))
    limits = np.where(sign * (true - limit) > 0, sign, 0)
    values = np.where(limits != 0, limit, true)
    model = tl.GraphRegressor(n_jobs=n_jobs, random_state=0, progress=False)
    graphs = data.graphs[train]
    if method == "limits":
        model.fit(graphs, values, limits=limits)
    elif method == "left_out":
        model.fit(graphs[limits == 0], values[limits == 0])
    else:
        model.fit(graphs, values if method == "clipped" else true)
    truth = data.values[test]
    mean, std = model.predict(data.graphs[test], return_std=True)
    inside = sign * (truth - limit) <= 0
    within = number_scores(truth[inside], mean[inside], std[inside])
    return {
        **number_scores(truth, mean, std),
        **{f"{score}_within": value for score, value in within.items()},
        "limit": limit,
        "n_limits": int((limits != 0).sum()),
        "n_train": len(train),
        "n_test": len(test),
        "n_within": int(inside.sum()),
        "weights": model.best_weights_,
        "seconds": time.perf_counter() - start,
    }
