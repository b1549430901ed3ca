"""What ``treelens info`` shows of a model file."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import treelens as tl
from cli.conftest import ALCOHOLS, AMINES, QUICK, SMALL, run, write_csv


def test_info_of_a_support_vector_machine(molecules, tmp_path):
    assert run("fit", molecules, "-o", tmp_path / "m", *QUICK).code == 0
    found = run("info", tmp_path / "m", "--json").data
    assert (found["kind"], found["classes"]) == ("GraphSVC", ["alcohol", "amine"])
    assert found["kernel"]["kernel"] == "wwl-linear"
    assert found["sizes"]["graphs"] == 40


def test_info_shows_the_table_that_a_model_was_fitted_to(tmp_path):
    rows = [(f"m{k}", s, 1.5**k) for k, s in enumerate([*ALCOHOLS, *AMINES, "OCC"])]
    data = write_csv(tmp_path / "x.csv", rows, "Compound ID,Structure,IC50 (nM)")
    model = tmp_path / "m.treelens"
    done = run("fit", data, "--target", "IC50 (nM)", "--transform", "log10", "--standardize", "-o",
               model, *SMALL)  # fmt: skip
    assert done.code == 0, done.err
    text = " ".join(run("info", model).out.split())
    for words in ("kind GraphRegressor", "predicts log10 of 'IC50 (nM)'", "file x.csv",
                  "molecules in column Structure", "rows named by Compound ID", "rows 41",
                  "standardize=('fragment', 'uncharge', 'tautomer')", "noise",
                  "graphs 40"):  # fmt: skip
        assert words in text, words
    assert "SMILES, names and values kept" in text
    found = run("info", model, "--json").data
    table = found["recipe"]["table"]
    assert (table["transform"], table["units"]) == ("log10", "nM")
    assert found["kernel"]["noise"] == tl.load(model).model_.noise


def test_a_model_without_training_data_says_so(tmp_path):
    rows = [(f"cpd-{k}", s, 1.5**k) for k, s in enumerate([*ALCOHOLS, *AMINES])]
    data = write_csv(tmp_path / "x.csv", rows, "id,smiles,value")
    full, bare = tmp_path / "full.treelens", tmp_path / "bare.treelens"
    assert run("fit", data, "--target", "value", "-o", full, *SMALL).code == 0
    bare_fit = run("fit", data, "--target", "value", "--no-training-data", "-o", bare, *SMALL)
    assert bare_fit.code == 0, bare_fit.err
    assert "left out" in run("info", bare, "--json").data["training_data"]
    new = write_csv(tmp_path / "new.csv", [("CCCCO",), ("CCN",)], "smiles")
    for model, expected in ((full, ["cpd-2", "cpd-20"]), (bare, None)):
        done = run("predict", model, new, "-o", tmp_path / "p.csv")
        assert done.code == 0, done.err
        found = pd.read_csv(tmp_path / "p.csv")
        if expected is None:
            assert "nearest_name" not in found
        else:
            assert found["nearest_name"].tolist() == expected
            assert np.allclose(found["nearest_value"], [1.5**2, 1.5**20])


@pytest.mark.parametrize(("weights", "shown"), [("uniform", False), ("depths", True)])
def test_weights_of_levels_are_listed_where_they_differ(weights, shown, molecules, tmp_path):
    out = tmp_path / "m"
    assert run("fit", molecules, "-o", out, *SMALL, "--weights", weights).code == 0
    assert ("Weight of levels" in run("info", out).out) == shown
