"""The study of limits: what is censored, what resumes, and what the page says."""

import numpy as np
import pytest
from reproduction.data import Molecules, StudyOptions
from reproduction.rows import read_rows

from reproduction import censored
from treelens.graphs.molecules import smiles_to_collection

pytest.importorskip("rdkit")


def test_rows_and_page(monkeypatch, tmp_path):
    smiles = [f"{'C' * n}{end}" for n in range(1, 21) for end in "ONF"]
    values = np.array([0.3 * s.count("C") + 1.5 * s.count("N") for s in smiles])
    data = Molecules(smiles_to_collection(smiles), smiles, values)
    monkeypatch.setattr(censored, "load_molecules", lambda name: data)
    options = StudyOptions(tmp_path, ["made"], ["limits", "left_out"], repeats=2, n_jobs=1)
    censored.run(options)
    path = tmp_path / "rows" / "censored.jsonl"
    before = path.read_bytes()
    censored.run(options)  # nothing is missing
    assert path.read_bytes() == before
    rows = read_rows(path)
    assert len(rows) == 8
    for row in rows:
        assert row["n_limits"] == pytest.approx(0.3 * row["n_train"], abs=3)
        assert 0 < row["n_within"] < row["n_test"]
    # A page compares all four.
    more = [
        {**row, "method": {"limits": "clipped", "left_out": "uncensored"}[row["method"]]}
        for row in rows
    ]
    with options.rows("censored", ("set", "side", "method", "split")) as file:
        for row in more:
            file.append(row)
    page = censored.write(tmp_path).read_text()
    errors = [row["rmse"] for row in rows if (row["side"], row["method"]) == ("low", "limits")]
    assert f"| made | low | {np.mean(errors):.3f} |" in page
    assert censored.write(tmp_path / "empty") is None
