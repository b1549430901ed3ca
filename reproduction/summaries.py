"""From rows to tables: means, spreads and paired tests, as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from treelens.evaluation.validation import corrected_paired_test

Rows = Sequence[dict[str, Any]]


def by_set_and_method(rows: Rows) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """Rows grouped by data set, then by method, both in order of first appearance."""
    grouped: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for row in rows:
        grouped.setdefault(row["set"], {}).setdefault(row["method"], []).append(row)
    return grouped


def regression_summary(rows: Rows) -> dict[str, dict[str, dict[str, Any]]]:
    """Mean and spread over splits, per set and method."""
    return {
        name: {method: _mean_scores(found) for method, found in methods.items()}
        for name, methods in by_set_and_method(rows).items()
    }


def _mean_scores(rows: Rows) -> dict[str, Any]:
    summary: dict[str, Any] = {
        "rmse": float(np.mean([row["rmse"] for row in rows])),
        "std": float(np.std([row["rmse"] for row in rows], ddof=1)) if len(rows) > 1 else 0.0,
        "n_splits": len(rows),
        "seconds": float(np.mean([row["seconds"] for row in rows])),
    }
    for score in ("nlpd", "coverage"):
        if all(score in row for row in rows):
            summary[score] = float(np.mean([row[score] for row in rows]))
    return summary


def assay_summary(rows: Rows) -> dict[str, dict[str, dict[str, float]]]:
    """Errors on each assay of MoleculeACE."""
    return {
        name: {
            method: {"rmse": found[0]["rmse"], "rmse_cliff": found[0]["rmse_cliff"]}
            for method, found in methods.items()
        }
        for name, methods in by_set_and_method(rows).items()
    }


def class_summary(rows: Rows) -> dict[str, dict[str, dict[str, Any]]]:
    """Mean accuracy, and the spread of the repetitions' means (of folds if there is one only)."""
    summary: dict[str, dict[str, dict[str, Any]]] = {}
    for name, methods in by_set_and_method(rows).items():
        for method, found in methods.items():
            groups: dict[int, list[float]] = {}
            for row in found:
                groups.setdefault(row["repetition"], []).append(row["accuracy"])
            means = [float(np.mean(group)) for group in groups.values()]
            spread = means if len(means) > 1 else next(iter(groups.values()))
            summary.setdefault(name, {})[method] = {
                "accuracy": 100 * float(np.mean([row["accuracy"] for row in found])),
                "std": 100 * float(np.std(spread, ddof=1)) if len(spread) > 1 else 0.0,
                "n_folds": len(found),
                "seconds": float(np.mean([row["seconds"] for row in found])),
            }
    return summary


def paired_gain(
    rows: Rows, name: str, better: str, than: str, score: str, keys: Sequence[str], ratio: float
) -> dict[str, float] | None:
    """How much one method's score exceeds another's on the same splits, with the corrected test.

    ``ratio`` is the size of a test part divided by that of its training part.
    """
    methods = by_set_and_method(rows).get(name, {})
    sides = [
        {tuple(row[key] for key in keys): row[score] for row in methods.get(method, [])}
        for method in (better, than)
    ]
    common = sorted(set(sides[0]) & set(sides[1]))
    if not common:
        return None
    difference = np.array([sides[0][key] - sides[1][key] for key in common])
    mean, error, p_value = corrected_paired_test(difference, ratio)
    return {"difference": mean, "error": error, "p_value": p_value, "n": len(common)}
