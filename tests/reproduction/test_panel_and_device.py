"""Pages on classes of molecules, on one GPU and on atom labels: from rows to what they say."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import numpy as np
import pytest
from reproduction.data import StudyOptions
from reproduction.rows import read_rows

from reproduction import device_page, panel, trees

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results"


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("panel", panel.write_panel),
        ("device", device_page.write_device),
        ("trees", trees.write_trees),
    ],
)
def test_the_pages_are_those_of_the_rows(name, write, tmp_path):
    rows = RESULTS / f"{name}.jsonl"
    if not rows.exists():
        pytest.skip(f"there are no rows of {name}")
    write(tmp_path, read_rows(rows))
    assert (tmp_path / f"{name}.md").read_text() == (RESULTS / f"{name}.md").read_text()


def _row(method, fold, value, name="S", split="random"):
    scores = dict.fromkeys(panel.SCORES, value)
    return {"set": name, "split": split, "fold": fold, "method": method, "seconds": 2.0, **scores}


def test_means_errors_and_losses():
    rows = [_row("treelens", k, v) for k, v in enumerate((0.8, 0.9))]
    rows += [_row("ecfp_forest", k, v) for k, v in enumerate((0.9, 0.9))]
    rows += [_row("treelens", 0, 0.9, "T"), _row("treelens", 1, 0.9, "T")]
    rows += [_row("ecfp_svm", 0, 0.7, "T"), _row("ecfp_svm", 1, 0.8, "T")]
    summary = panel.panel_summary(rows)
    ours = summary["S"]["random"]["treelens"]
    assert ours["roc_auc"] == pytest.approx(0.85)
    assert ours["roc_auc_error"] == pytest.approx(np.std([0.8, 0.9], ddof=1) / np.sqrt(2))
    told = panel.where_we_lose(summary)
    assert "S, random folds: 0.050 behind the ECFP4 forest" in told
    assert "T," not in told


def test_the_panel_runs_and_resumes(tmp_path, monkeypatch):
    pytest.importorskip("rdkit", reason="RDKit is not installed")
    folder = tmp_path / "smiles"
    folder.mkdir()
    chains = ["C" * n for n in range(1, 15)]
    lines = [f"{c}{end},{label}" for c in chains for end, label in (("O", 1), ("N", 0))]
    with gzip.open(folder / "TINY.csv.gz", "wt") as file:
        file.write("smiles,label\n" + "\n".join(lines) + "\n")
    monkeypatch.setenv("TREELENS_DATA", str(tmp_path))
    monkeypatch.setattr(panel, "N_FOLDS", 2)
    asked = StudyOptions(tmp_path, sets=["TINY"], methods=["treelens_uniform"], n_jobs=1)
    monkeypatch.setattr(panel, "folds_of", _random_only)
    panel.run(asked)
    rows = read_rows(tmp_path / "panel.jsonl")
    assert [row["fold"] for row in rows] == [0, 1]
    assert min(row["roc_auc"] for row in rows) > 0.9
    panel.run(asked)
    assert read_rows(tmp_path / "panel.jsonl") == rows


def _random_only(graphs, y):
    """All chains are one scaffold, and make no folds."""
    half = np.arange(len(y)) % 4 < 2
    return {"random": [(np.flatnonzero(half), np.flatnonzero(~half))] * 2}


def test_what_the_guide_says_of_the_gpu_is_in_the_rows():
    rows = read_rows(RESULTS / "device.jsonl")
    steps = {row["set"]: row for row in rows if row["what"] == "steps"}
    seconds = {row["what"]: row["seconds"] for row in rows if row["what"].startswith("fit on")}
    text = (ROOT / "docs" / "scaling.md").read_text()
    found = re.search(r"41,120 \(HIV\) \| ([\d.]+) s \| ([\d.]+) s \|", text)
    assert float(found[1]) == pytest.approx(steps["HIV"]["kernel"], abs=0.006)
    assert float(found[2]) == pytest.approx(steps["HIV"]["evaluation"], abs=0.05)
    found = re.search(r"([\d.]+) s, weights learned on all of them; (\d+) s on two cores", text)
    assert float(found[1]) == pytest.approx(seconds["fit on cuda"], abs=0.05)
    assert float(found[2]) == pytest.approx(seconds["fit on cpu"], abs=0.5)


def test_trees_are_compared_on_splits_that_all_have(tmp_path):
    rows = [
        {"set": "S", "split": split, "trees": name, "rmse": 1.0 + k}
        for split in (0, 1)
        for k, name in enumerate(trees.TREES)
    ]
    rows.append({"set": "S", "split": 2, "trees": "fine", "rmse": 100.0})
    trees.write_trees(tmp_path, rows)
    text = (tmp_path / "trees.md").read_text()
    assert "| S | 1.000 | 2.000 | 3.000 | 4.000 |" in text
    assert "| mean, relative to the default | -66.7 % | -33.3 % | +0.0 % | +33.3 % |" in text
