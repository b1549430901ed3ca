"""What ``treelens info`` shows of a model file."""

from __future__ import annotations

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
    found = run("info", model, "--json").data
    table = found["recipe"]["table"]
    assert (table["transform"], table["units"]) == ("log10", "nM")
    assert found["kernel"]["noise"] == tl.load(model).model_.noise
