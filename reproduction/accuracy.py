"""Accuracies of Table 2 from its rows: means over repetitions and paired tests over folds.

The paper's test takes the means of repetitions as independent. They share the same graphs, so it
finds significance too easily. The corrected resampled test of Nadeau and Bengio (2003) works on
folds and allows for overlapping training sets. Tables show both.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from reproduction.methods import GP_METHODS, TABLE2_METHODS, WL_METHODS
from reproduction.pages import Rows, common_rows, grouped
from reproduction.protocol import N_OUTER
from reproduction.table2 import DATASETS
from treelens.evaluation.statistics import PairedTest, corrected_t_test, holm

# (repetition, fold) -> accuracy
Folds = Mapping[tuple[int, int], float]
LINES = (*TABLE2_METHODS, *GP_METHODS)
# Methods that learn weights -> the same method with uniform ones.
TWINS = {m: spec.uniform for m, spec in WL_METHODS.items() if spec.uniform and not spec.preset} | {
    "gp_branches": "gp_uniform"
}


class Comparison(NamedTuple):
    """One method against another on the folds of both."""

    # `p_repetitions` is the paper's one-sided t-test over means of repetitions; None where there
    # are fewer than two. `test` is that of Nadeau and Bengio over folds, two-sided.

    test: PairedTest
    p_repetitions: float | None

    @property
    def difference(self) -> float:
        return self.test.difference

    @property
    def p_corrected(self) -> float | None:
        return self.test.p_value


def table2_rows(
    machines: Rows, compared: Rows = (), attributes: Rows = ()
) -> list[Mapping[str, Any]]:
    """Return the rows of Table 2, and those of the Gaussian processes on the same folds."""
    # The latter by labels alone; of sets with attributes there is also the default with them.
    sets = {row["set"] for row in compared}
    beside = [r for r in attributes if r["set"] in sets and r["method"] == "auto"]
    found = [row for row in machines if row["seed"] == 0]
    for row in (*compared, *({**r, "method": "attributes"} for r in beside)):
        method = "gp_" + row["method"].removesuffix("_labels").replace("auto", "default")
        found.append({**_in_folds(row), "method": method, "dataset": row["set"]})
    return found


def _in_folds(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row that counts splits with its repetition and fold."""
    repetition, fold = divmod(row["split"], N_OUTER)
    return {**row, "repetition": repetition, "fold": fold}


def of_attributes(others: Rows, compared: Rows, by_labels: Rows) -> list[Mapping[str, Any]]:
    """Return the rows of other kernels and of our models, with attributes and by labels alone."""
    # Of our models those of the folds that all of them have.
    sets, names = {row["set"] for row in compared}, {"auto": "default", "auto_labels": "labels"}
    beside = [r for r in by_labels if r["set"] in sets and r["method"] == "auto_labels"]
    ours = [
        {**_in_folds(row), "method": names.get(row["method"], row["method"])}
        for row in (*compared, *beside)
        if row["method"] in names or not row["method"].endswith("_labels")
    ]
    known = ("wwl", "propagation", "hopper", "svc")
    kept = [row for row in others if row["method"] in known and "failed" not in row]
    return [*common_rows(ours, ["set"], ["repetition", "fold"]), *kept]


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
    return Comparison(test, paper)


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


def formulation_tests(rows: Rows) -> dict[str, list[float]]:
    """Return the p-values of other ways to learn against uniform weights, by data set."""
    found: dict[str, list[float]] = {}
    for (name, _), own in grouped(rows, "dataset", "formulation").items():
        learned, uniform = (
            {(r["repetition"], r["fold"]): float(r[score]) for r in own}
            for score in ("accuracy", "uniform_accuracy")
        )
        p_value = compare(learned, uniform).p_corrected
        found.setdefault(name, []).extend([] if p_value is None else [p_value])
    return found
