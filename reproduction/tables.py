"""Accuracies of Table 2 from its rows: means over repetitions and paired tests over folds.

The paper's test takes the means of repetitions as independent. They share the same graphs, so it
finds significance too easily. The corrected resampled test of Nadeau and Bengio (2003) works on
folds and allows for overlapping training sets. Tables show both.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from reproduction.methods import GP_METHODS, TABLE2_METHODS, WL_METHODS
from reproduction.pages import Rows, rows_of
from reproduction.protocol import N_OUTER
from reproduction.table2 import DATASETS
from treelens.evaluation.statistics import corrected_t_test, holm

# (repetition, fold) -> accuracy
Folds = Mapping[tuple[int, int], float]
LINES = (*TABLE2_METHODS, *GP_METHODS)
# Methods that learn weights -> the same method with uniform ones.
TWINS = {m: spec.uniform for m, spec in WL_METHODS.items() if spec.uniform and not spec.preset} | {
    "gp_branches": "gp_uniform"
}


class Comparison(NamedTuple):
    """One method against another on the folds of both: mean difference and p-values."""

    # `p_repetitions` is the paper's one-sided t-test over means of repetitions, `p_corrected` that
    # of Nadeau and Bengio over folds, two-sided; None where there are fewer than two.

    difference: float
    p_repetitions: float | None
    p_corrected: float | None
    n_folds: int


def table2_rows(out: Path) -> list[dict[str, Any]]:
    """Return the rows of Table 2, and those of the Gaussian processes on the same folds."""
    rows = [row for row in rows_of(out, "table2") if row["seed"] == 0]
    return rows + [{**row, "dataset": row["set"]} for row in compared_rows(out)]


def compared_rows(out: Path) -> list[dict[str, Any]]:
    """Return the rows of our Gaussian processes on the folds of Table 2, by labels alone."""
    # Of sets with attributes there is also the default with them.
    found = []
    rows = rows_of(out, "compare_table2")
    sets = {row["set"] for row in rows}
    beside = [row for row in rows_of(out, "compare_attributes") if row["set"] in sets]
    rows += [{**row, "method": "attributes"} for row in beside if row["method"] == "auto"]
    for row in rows:
        repetition, fold = divmod(row["split"], N_OUTER)
        method = "gp_" + row["method"].removesuffix("_labels").replace("auto", "default")
        found.append({**row, "method": method, "repetition": repetition, "fold": fold})
    return found


def folds_of(rows: Rows) -> dict[str, dict[str, Folds]]:
    """Return ``[dataset][method][repetition, fold] -> accuracy``, in the order of the table."""
    found: dict[tuple[str, str], dict[tuple[int, int], float]] = defaultdict(dict)
    for row in rows:
        key = row["repetition"], row["fold"]
        found[row["dataset"], row["method"]][key] = float(row["accuracy"])
    return {
        name: {m: found[name, m] for m in _ordered({m for d, m in found if d == name}, LINES)}
        for name in _ordered({name for name, _ in found}, DATASETS)
    }


def _ordered(found: Iterable[str], order: Sequence[str]) -> list[str]:
    rank = {name: k for k, name in enumerate(order)}
    return sorted(found, key=lambda name: (rank.get(name, len(order)), name))


def summarize(rows: Rows) -> dict[str, dict[str, dict[str, Any]]]:
    """Return mean and standard deviation, in percent, for every data set and method."""
    # Over complete repetitions; before the first is complete, over the folds there are.
    return {
        name: {method: _summary(folds) for method, folds in methods.items()}
        for name, methods in folds_of(rows).items()
    }


def _summary(folds: Folds) -> dict[str, Any]:
    by_repetition: dict[int, list[float]] = defaultdict(list)
    for (repetition, _), value in folds.items():
        by_repetition[repetition].append(100 * value)
    complete = [values for values in by_repetition.values() if len(values) == N_OUTER]
    if not complete:
        values = [value for part in by_repetition.values() for value in part]
        return {"mean": round(float(np.mean(values)), 4), "std": None, "n_folds": len(values)}
    means = [float(np.mean(values)) for values in complete]
    std = round(float(np.std(means, ddof=1)), 4) if len(means) > 1 else None
    return {"mean": round(float(np.mean(means)), 4), "std": std, "n_folds": N_OUTER * len(means)}


def paper_p_value(first: np.ndarray, second: np.ndarray) -> float | None:
    """Return the p-value of the paper's paired t-test, one-sided, for the first being greater."""
    test = corrected_t_test(first, second)
    if test.p_value is None:
        return None
    return test.p_value / 2 if test.difference > 0 else 1 - test.p_value / 2


def compare(first: Folds, second: Folds, n_outer: int = N_OUTER) -> Comparison:
    """Test whether the first method is better than the second, and whether they differ."""
    shared = sorted(first.keys() & second.keys())
    if not shared:
        raise ValueError("The two methods have no fold in common.")
    scores = np.array([[own[key] for key in shared] for own in (first, second)])
    repetitions = np.array([repetition for repetition, _ in shared])
    complete = [r for r in np.unique(repetitions) if (repetitions == r).sum() == n_outer]
    means = [scores[:, repetitions == r].mean(axis=1) for r in complete]
    test = corrected_t_test(*scores, 1 / (n_outer - 1))
    paper = paper_p_value(*np.transpose(means)) if means else None
    return Comparison(test.difference, paper, test.p_value, len(shared))


def learning_tests(
    folds: Mapping[str, Mapping[str, Folds]],
) -> list[tuple[str, str, Comparison, float]]:
    """Compare every method that learns with its uniform twin; the last entry is Holm's p-value."""
    found = [
        (name, ours, compare(methods[ours], methods[twin]))
        for name, methods in folds.items()
        for ours, twin in TWINS.items()
        if ours in methods and twin in methods
    ]
    adjusted = holm([test.p_corrected for _, _, test in found])
    return [(*each, p) for each, p in zip(found, adjusted, strict=True) if p is not None]
