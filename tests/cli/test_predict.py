"""Predictions for new graphs: rows, columns, and what is told of them."""

from __future__ import annotations

import numpy as np
import pandas as pd

import treelens as tl
from cli.conftest import MOLECULES, QUICK, run, write_csv


def test_predict_keeps_unreadable_rows_empty(model, tmp_path):
    data = write_csv(tmp_path / "new.csv", [("CCCCO",), ("no molecule",), ("CCCCCN",)], "smiles")
    out = tmp_path / "predictions.csv"
    done = run("predict", model, data, "--out", out)
    assert done.code == 0, done.err
    assert "1 of 3 rows could not be read" in done.err
    assert "row 2 (line 3) 'no molecule'" in done.err
    table = pd.read_csv(out, float_precision="round_trip")
    assert list(table.columns) == [
        "row", "smiles", "class", "probability", "decision", "out_of_vocabulary",
        "probability alcohol", "probability amine", "problem",
    ]  # fmt: skip
    assert table["class"].tolist()[::2] == ["alcohol", "amine"]
    assert table.iloc[1, 2:8].isna().all()
    assert table["problem"][1] == "non-ring atom 0 marked aromatic"
    expected = tl.load(model)
    np.testing.assert_array_equal(
        table["decision"][[0, 2]], expected.decision_function(["CCCCO", "CCCCCN"])
    )
    assert table["probability"][0] == expected.predict_proba(["CCCCO"])[0, 0]


def test_predict_prints_csv_or_json_and_counts_hits(model, molecules):
    done = run("predict", model, molecules, "--target", "label")
    assert len(done.out.splitlines()) == 41
    assert "Accuracy: 100.0 %" in done.err
    done = run("predict", model, molecules, "--target", "label", "--json")
    assert done.data["accuracy"] == 1.0
    assert done.data["predictions"][0]["class"] == "alcohol"


def test_predict_says_when_the_graphs_are_strange(model, tmp_path):
    data = write_csv(tmp_path / "new.csv", [("[Si][Ge]",), ("[Se][Ge]",)], "smiles")
    done = run("predict", model, data)
    assert done.code == 0
    assert "Training never saw 100.0 %" in done.err


def test_predict_with_several_classes(tmp_path):
    rows = [*MOLECULES, *((f"{'C' * n}F", "fluoride") for n in range(2, 12))]
    data = write_csv(tmp_path / "three.csv", rows)
    assert run("fit", data, "-o", tmp_path / "m.treelens", *QUICK).code == 0
    done = run("predict", tmp_path / "m.treelens", data, "--target", "label", "--json")
    assert done.data["accuracy"] > 0.9
    row = done.data["predictions"][-1]
    assert row["class"] == "fluoride"
    assert row["probability"] == max(row[f"probability {c}"] for c in done.data["predicted"])
