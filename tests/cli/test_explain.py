"""``treelens explain``, ``fragments``, ``patterns`` and ``info``."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import treelens as tl
from cli.conftest import ALCOHOLS, AMINES, SMALL, ok, run, write_csv
from treelens.cli import console

SMILES = [*("C" * k + "c1ccccc1[N+](=O)[O-]" for k in range(1, 9)),
          *("C" * k + "c1ccccc1O" for k in range(1, 9))]  # fmt: skip


def test_patterns(model, tmp_path):
    done = run("patterns", model, "--top", 4, "--json")
    shown = done.data["patterns"]
    differences = [row["difference"] for row in shown]
    assert differences == sorted(differences, key=abs, reverse=True)
    assert differences == [row["frequency amine"] - row["frequency alcohol"] for row in shown]
    assert min(differences) < 0 < max(differences)
    assert "amine - alcohol" in run("patterns", model).out
    assert {"O", "N"} <= {row["pattern"] for row in shown}
    by_support = run("patterns", model, "--sort", "support", "--json").data["patterns"]
    assert by_support[0]["pattern"] == "C"
    done = run("patterns", model, "--out", tmp_path / "patterns.csv")
    assert "C(-C,-O)" in done.out
    assert len(pd.read_csv(tmp_path / "patterns.csv")) == len(tl.load(model).patterns_)
    assert run("patterns", model, "--sort", "beauty").code == 2


def test_info_shows_the_table_that_a_model_was_fitted_to(tmp_path, model):
    rows = [(f"m{k}", s, 1.5**k) for k, s in enumerate([*ALCOHOLS, *AMINES, "OCC"])]
    data = write_csv(tmp_path / "x.csv", rows, "Compound ID,Structure,IC50 (nM)")
    svc, model = model, tmp_path / "m.treelens"
    ok("fit", data, "--target", "IC50 (nM)", "--transform", "log10", "--standardize", "-o",
       model, *SMALL)  # fmt: skip
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
    assert run("info", svc, "--json").data["kernel"]["kernel"] == "wwl-linear"


@pytest.mark.parametrize(("weights", "shown"), [("uniform", False), ("depths", True)])
def test_weights_are_chosen_and_listed_where_they_differ(weights, shown, molecules, tmp_path):
    out = tmp_path / "m"
    ok("fit", molecules, "-o", out, *SMALL, "--weights", weights)
    assert tl.load(out).weights == weights
    assert ("Weight of levels" in run("info", out).out) == shown
    assert ("(weights are uniform)" in run("patterns", out).out) != shown


def test_fragments_as_a_table_as_json_and_as_csv(tmp_path, monkeypatch):
    y = [1] * 8 + [0] * 8
    tl.GraphClassifier(depth=1).fit(SMILES, np.array(y)).save(tmp_path / "m")
    data = write_csv(tmp_path / "x.csv", list(zip(SMILES, y, strict=True)), "smiles,class")
    shown = ok("fragments", tmp_path / "m", data, "--csv", tmp_path / "f.csv")
    assert "nitro" in shown.out
    assert "Size: the mean atom" in shown.out
    monkeypatch.setattr(console, "_WIDTH_OF_A_FILE", 50)
    lines = run("fragments", tmp_path / "m", data).out.splitlines()
    table = pd.read_csv(tmp_path / "f.csv")
    assert sum(" ± " in line for line in lines) == len(table)  # cut, not folded
    assert any("…" in line for line in lines)
    assert not table["smarts"].str.contains("…").any()
    assert (tmp_path / "f.csv").read_text().splitlines()[0].startswith("rank,name,smarts")
    found = run("fragments", tmp_path / "m", data, "--json", "--target", "class", "--top", 3).data
    assert len(found["fragments"]) <= 3
    assert found["left_out"]
    assert found["fragments"][0]["support 1"] + found["fragments"][0]["support 0"] > 0


def test_without_fragments_every_place_says_why(tmp_path):
    data = write_csv(tmp_path / "x.csv", list(zip(SMILES, range(16), strict=True)), "smiles,y")
    out, page = tmp_path / "m", tmp_path / "page.html"
    shown = run("fit", data, "--out", out, "--depth", 0, "--task", "regression")
    sentence = "No fragments: the patterns of this model are single atoms (depth 0)."
    assert sentence in shown.out, shown.err
    assert sentence in run("fragments", out, data).out
    ok("explain", out, data, "--out", page)
    assert sentence in page.read_text()
    table = tl.load(out).fragments(SMILES)
    assert repr(table).startswith(sentence)
    assert sentence in table._repr_html_()


def test_rows_that_fit_left_out_become_no_test_set(tmp_path, monkeypatch):
    """Molecules with contradictory classes are not learned, and no test of the model either."""
    rows = [(s, "acid" if k < 8 else "base") for k, s in enumerate(SMILES)]
    rows += [(s, "base") for s in SMILES[:3]]
    data = write_csv(tmp_path / "x.csv", rows)
    model, given = tmp_path / "m.treelens", []
    ok("fit", data, "-o", model, *SMALL, "--fragments", 0)
    monkeypatch.setattr(
        tl.GraphClassifier, "report", lambda self, path, X, y, **_: given.append((X, y))
    )
    ok("explain", model, data, "--target", "label", "-o", tmp_path / "r.html")
    ((graphs, y),) = given
    fitted = tl.load(model)
    assert len(graphs) == len(y) == len(fitted.train_codes_) == 13
    assert y.tolist() == fitted.classes_[fitted.train_codes_].tolist()
    one = write_csv(tmp_path / "one.csv", [("CCO", "acid")])  # too little to learn, not to explain
    ok("explain", model, one, "--target", "label", "-o", tmp_path / "r.html")
