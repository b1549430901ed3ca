"""The pages on landmarks and on HIV: from rows to what they say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from reproduction.data import StudyOptions
from reproduction.rows import read_rows

import treelens as tl
from reproduction import hiv, landmarks

RESULTS = Path(__file__).parents[2] / "docs" / "results"


@pytest.mark.parametrize(
    ("name", "write"), [("landmarks", landmarks.write_landmarks), ("hiv", hiv.write_hiv)]
)
def test_the_pages_are_those_of_the_rows(name, write, tmp_path):
    rows = RESULTS / f"{name}.jsonl"
    if not rows.exists():
        pytest.skip(f"there are no rows of {name}")
    write(tmp_path, read_rows(rows))
    assert (tmp_path / f"{name}.md").read_text() == (RESULTS / f"{name}.md").read_text()


def test_the_difference_of_landmarks_is_paired_over_folds(tmp_path):
    rows = [
        {"set": "NCI1", "fold": fold, "method": method, "accuracy": accuracy, "roc_auc": 0.9,
         "seconds": 1.0}
        for method, told in (("exact", (0.80, 0.90)), ("hard", (0.79, 0.91)))
        for fold, accuracy in enumerate(told)
    ]  # fmt: skip
    rows.append({**rows[0], "fold": 2, "accuracy": 0.1})  # a fold that only the exact one has
    landmarks.write_landmarks(tmp_path, rows)
    text = (tmp_path / "landmarks.md").read_text()
    assert "| 85.00 | 0.00 ± 1.00 | 0.9000 | 1 | 2 |" in text


def test_landmarks_that_are_all_graphs_score_as_the_exact_model(monkeypatch, tmp_path):
    monkeypatch.setattr(landmarks, "N_LANDMARKS", 30)
    graphs, y = tl.make_synthetic(n_per_substructure=6, random_state=0)
    train, test = np.arange(0, len(y), 2), np.arange(1, len(y), 2)
    asked = StudyOptions(tmp_path, n_jobs=1)
    fold = landmarks._Fold(graphs[train], y[train], graphs[test], y[test], asked)
    monkeypatch.setattr(landmarks, "N_LANDMARKS", len(train))
    exact = fold.score("exact")
    for method in landmarks.CHOICES:
        found = fold.score(method)
        assert found["accuracy"] == exact["accuracy"]
        assert found["roc_auc"] == pytest.approx(exact["roc_auc"], abs=1e-3)


def test_hiv_compares_folds_that_both_have(tmp_path):
    rows = [
        {"fold": fold, "method": method, "n": 100, "n_positive": 5, "seconds": 2.0,
         "cpu_seconds": 1.0,
         **dict.fromkeys(hiv.SCORES, value)}
        for fold in (0, 1)
        for method, value in (("treelens", 0.8), ("ecfp_forest", 0.7))
    ]  # fmt: skip
    hiv.write_hiv(tmp_path, [*rows, {**rows[0], "fold": 2}])
    text = (tmp_path / "hiv.md").read_text()
    assert "| difference | 0.100 ± 0.000 |" in text
    assert "2 of 5 folds" in text
    hiv.write_hiv(tmp_path, [row for row in rows if row["method"] == "treelens"])
    alone = (tmp_path / "hiv.md").read_text()
    assert "difference |" not in alone
    assert "| treelens, default | 0.800 ± 0.000 |" in alone
