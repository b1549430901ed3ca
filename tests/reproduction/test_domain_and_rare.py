"""The pages on the domain of applicability and on rare classes say what their rows say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from reproduction.rows import read_rows

from reproduction import domain, rare

RESULTS = Path(__file__).parents[2] / "docs" / "results"


@pytest.fixture(scope="module")
def rows():
    return read_rows(RESULTS / "domain.jsonl")


def test_the_furthest_third_has_the_larger_errors(rows):
    """On each of three sets at least one and a half times the error of the nearest third."""
    told = {
        name: np.mean([r["ratio"] for r in rows if r["set"] == name and r["split"] != "scaffold"])
        for name in ("ESOL", "Lipophilicity", "CHEMBL219_Ki")
    }
    assert min(told.values()) >= 1.5, told
    assert all(row["far"] / row["near"] == pytest.approx(row["ratio"]) for row in rows)
    assert all(row["salt_is_outside"] for row in rows)


def test_the_pages_are_those_of_the_rows(rows, tmp_path):
    domain.write_domain(tmp_path, rows)
    rare.write_rare(tmp_path, read_rows(RESULTS / "rare.jsonl"))
    for name in ("domain.md", "rare.md"):
        assert (tmp_path / name).read_text() == (RESULTS / name).read_text()


def test_rare_classes_are_named_out_of_the_box():
    found = read_rows(RESULTS / "rare.jsonl")
    for name in rare.SETS:
        mean = {
            method: {s: np.mean([r[s] for r in found if (r["set"], r["method"]) == (name, method)])
                     for s in ("mcc", "recall", "roc_auc")}
            for method in rare.OURS
        }  # fmt: skip
        assert mean["default"]["mcc"] > mean["named at 0.5"]["mcc"] + 0.05
        assert mean["default"]["recall"] > 2 * mean["named at 0.5"]["recall"]
        assert mean["recall=0.9"]["recall"] > 0.75


def test_thirds_are_ordered_by_the_expected_error():
    order, error = np.array([3.0, 1.0, 2.0]), np.array([6.0, 2.0, 100.0])
    assert domain._ratio_by(order, error) == 3.0
