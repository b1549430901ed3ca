"""Tables with every trouble: one line for each, nothing lost, and what a model keeps of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rdkit import Chem

import treelens as tl
from cli.conftest import ALCOHOLS, AMINES, MOLECULES, QUICK, SMALL, run, write_csv
from cli.test_bad_input import refused
from treelens.cli.console import InputError
from treelens.cli.data import read_data, read_training_data, read_training_sets
from treelens.cli.reading import Reading

# nM, over three powers of ten: three times as much for each carbon.
VALUES = [round(2.0 * 1.5 ** s.count("C") * (4.0 if "N" in s else 1.0), 2) for s in
          ALCOHOLS + AMINES]  # fmt: skip
HEADER = ["Compound ID", "Structure", "IC50 (nM)", "Class", "comment"]


def messy_rows() -> list[list[str]]:
    rows = [
        [f"CMP-{i:03}", s, str(v), "amine" if "N" in s else "alcohol", ""]
        for i, (s, v) in enumerate(zip(ALCOHOLS + AMINES, VALUES, strict=True), 1)
    ]
    rows[3][1] += ".Cl"  # a salt
    rows[4][1] = rows[4][1].replace("O", "[O-]") + ".[Na+]"
    rows[5][2], rows[6][2] = "", "n.d."  # no label
    rows[7][2] = ">10000"  # a remark
    rows.append(["CMP-041", "OCCC", rows[1][2], "alcohol", "the second one, backwards"])
    rows.append(["CMP-042", "NCCC", "99999", "alcohol", "contradicts"])
    rows.append(["CMP-043", "C1CC", "12", "alcohol", "a ring that is open"])
    rows.append(["CMP-044", "CN(C)(C)(C)C", "12", "amine", "café"])
    return rows


def write_messy(path: Path, separator: str = ";", encoding: str = "cp1252") -> Path:
    lines = [separator.join(row) for row in [HEADER, *messy_rows()]]
    path.write_bytes("\r\n".join(lines).encode(encoding))
    return path


@pytest.fixture(scope="module")
def messy(tmp_path_factory) -> Path:
    return write_messy(tmp_path_factory.mktemp("messy") / "messy.csv")


@pytest.fixture(scope="module")
def model(messy) -> Path:
    path = messy.with_name("m.treelens")
    done = run("fit", messy, "--target", "IC50 (nM)", "--transform", "log10", "--standardize",
               "-o", path, *SMALL)  # fmt: skip
    assert done.code == 0, done.err
    return path


# --- one line for each trouble ------------------------------------------------------------------


def test_every_trouble_has_its_line_and_no_row_is_lost(messy, tmp_path):
    done = run("fit", messy, "--target", "IC50 (nM)", "--transform", "log10", "--standardize",
               "-o", tmp_path / "m", *SMALL, "--json")  # fmt: skip
    assert done.code == 0, done.err
    expected = [
        "is not UTF-8",
        "the SMILES are those of column 'Structure'",
        "--standardize changed 2 of 42 molecules: 2 reduced to the largest fragment, 1 neutralised",
        "2 of 44 rows (5 %) hold no molecule that RDKit can read: row 43 (line 44) 'C1CC' (no "
        "SMILES: RDKit cannot parse it), row 44 (line 45) 'CN(C)(C)(C)C' (Explicit valence for "
        "atom # 1 N",
        "holds numbers, but something else in 1 row: row 8 (line 9) '>10000'",
        "missing in 3 of 44 rows: row 6 (line 7), row 7 (line 8), row 8 (line 9)",
        "holds numbers: fitting a regression",
        "1 repeated molecule with values far apart: row 22 (CMP-022): 27.0, row 42 (CMP-042): "
        "99999",
        "2 rows repeat the molecule of another row: each molecule counts once",
    ]
    notes = done.data["notes"]
    assert len(notes) == len(expected)
    for note, words in zip(notes, expected, strict=True):
        assert words in note
    table = done.data["recipe"]["table"]
    counts = table["counts"]
    lost = ("rows without a readable molecule", "rows without a label, left out",
            "rows of repeated molecules (merge)")  # fmt: skip
    assert counts["graphs"] == counts["rows"] - sum(counts[what] for what in lost) == 37
    assert table["source"] == "messy.csv"
    assert (table["smiles"], table["ids"]) == ("Structure", ["Compound ID"])


@pytest.mark.parametrize("name", ["x.tsv", "x.csv", "x.xlsx", "x.csv.gz"])
def test_the_same_rows_in_any_kind_of_table(messy, tmp_path, name):
    expected = read_training_data(str(messy), "Class")
    path, rows = tmp_path / name, messy_rows()
    if name == "x.xlsx":
        pytest.importorskip("openpyxl")
        pd.DataFrame(rows, columns=HEADER).to_excel(path, index=False)
    else:
        pd.DataFrame(rows, columns=HEADER).to_csv(path, sep="\t" if "tsv" in name else ",",
                                                  index=False)  # fmt: skip
    found = read_training_data(str(path), "Class")
    assert found.y.tolist() == expected.y.tolist()
    assert found.rows.tolist() == expected.rows.tolist()
    assert [g.node_labels for g in found.graphs] == [g.node_labels for g in expected.graphs]


def test_values_over_many_powers_of_ten_call_for_a_logarithm(messy):
    notes: list[str] = []
    read_training_data(str(messy), "IC50 (nM)", note=notes.append, task="auto")
    assert any("--transform log10 probably serves better" in note for note in notes)


# --- predictions ---------------------------------------------------------------------------------


def test_predictions_carry_ids_and_come_in_the_units_of_the_table(messy, model, tmp_path):
    done = run("predict", model, messy, "--target", "IC50 (nM)", "-o", tmp_path / "p.csv")
    assert done.code == 0, done.err
    assert "3 rows without 'IC50 (nM)': predicted, and not scored." in done.err
    assert "RMSE of log10: " in done.err
    table = pd.read_csv(tmp_path / "p.csv")
    assert list(table.columns) == [
        "row", "Compound ID", "smiles", "standard_smiles", "prediction", "std_log10", "lower_90",
        "upper_90", "out_of_vocabulary", "in_domain", "expected_error_log10", "similarity",
        "problem",
    ]  # fmt: skip
    assert table["Compound ID"].tolist() == [row[0] for row in messy_rows()]
    assert table["standard_smiles"][[3, 4]].tolist() == [ALCOHOLS[3], ALCOHOLS[4]]
    mean, std = tl.load(model).predict(ALCOHOLS[:3], return_std=True)
    np.testing.assert_allclose(table["prediction"][:3], 10**mean)
    np.testing.assert_allclose(table["upper_90"][:3], 10 ** (mean + 1.6448536 * std), rtol=1e-6)
    np.testing.assert_allclose(table["lower_90"][:3], 10 ** (mean - 1.6448536 * std), rtol=1e-6)
    assert table["problem"][42] == "no SMILES: RDKit cannot parse it"
    assert table["prediction"][:42].notna().all()


def test_scores_are_those_of_rows_with_a_truth(messy, model):
    found = run("predict", model, messy, "--target", "IC50 (nM)", "--json").data
    rows = messy_rows()
    known = [i for i, row in enumerate(rows[:42]) if i not in (5, 6, 7)]
    said = np.log10([found["predictions"][i]["prediction"] for i in known])
    truth = np.log10([float(rows[i][2]) for i in known])
    assert found["n_scored"] == len(known) == 39
    assert found["rmse"] == pytest.approx(np.sqrt(np.mean((said - truth) ** 2)))


def test_other_columns_can_be_asked_for(messy, model, tmp_path):
    for ids, expected in (("Class,Compound ID", ["Class", "Compound ID"]), ("none", []),
                          ("all", ["Compound ID", "IC50 (nM)", "Class", "comment"])):  # fmt: skip
        assert run("predict", model, messy, "--id", ids, "-o", tmp_path / "p.csv").code == 0
        columns = list(pd.read_csv(tmp_path / "p.csv").columns)
        assert columns[1 : 1 + len(expected)] == expected
        assert columns[1 + len(expected)] == "smiles"
    refused(run("predict", model, messy, "--id", "number"), "no column 'number' (--id)")


def test_a_column_with_one_of_our_names_is_kept_beside_ours(tmp_path):
    rows = [(s, c, f"name {i}", i) for i, (s, c) in enumerate(MOLECULES)]
    data = write_csv(tmp_path / "x.csv", rows, "smiles,label,class,row")
    assert run("fit", data, "-o", tmp_path / "m", *QUICK).code == 0
    run("predict", tmp_path / "m", data, "--id", "class,row", "-o", tmp_path / "p.csv")
    table = pd.read_csv(tmp_path / "p.csv")
    assert list(table.columns[:4]) == ["row", "class (given)", "row (given)", "smiles"]
    assert table["class (given)"].tolist() == [f"name {i}" for i in range(40)]


def test_an_sdf_brings_names_properties_and_smiles(tmp_path):
    with Chem.SDWriter(str(tmp_path / "x.sdf")) as writer:
        for i, (smiles, label) in enumerate(MOLECULES):
            molecule = Chem.MolFromSmiles(smiles)
            molecule.SetProp("_Name", f"M{i}")
            molecule.SetProp("batch", str(i % 3))
            molecule.SetProp("label", label)
            writer.write(molecule)
    assert run("fit", tmp_path / "x.sdf", "-o", tmp_path / "m", *QUICK).code == 0
    args = ["predict", tmp_path / "m", tmp_path / "x.sdf", "-o", tmp_path / "p.csv"]
    assert run(*args).code == 0
    table = pd.read_csv(tmp_path / "p.csv")
    assert list(table.columns[:4]) == ["row", "name", "smiles", "class"]
    assert table["name"].tolist() == [f"M{i}" for i in range(40)]
    assert table["smiles"].tolist() == [Chem.CanonSmiles(s) for s, _ in MOLECULES]
    assert run(*args, "--id", "name,batch").code == 0
    assert pd.read_csv(tmp_path / "p.csv")["batch"].tolist() == [i % 3 for i in range(40)]


# --- what a model keeps --------------------------------------------------------------------------


def test_info_shows_what_a_model_was_fitted_to(model):
    shown = run("info", model)
    assert shown.code == 0, shown.err
    text = " ".join(shown.out.split())
    for words in ("kind GraphRegressor", "predicts log10 of 'IC50 (nM)'", "file messy.csv",
                  "molecules in column Structure", "rows named by Compound ID", "rows 44",
                  "standardize=('fragment', 'uncharge', 'tautomer')", "gamma", "noise",
                  "trees labels, fine", "graphs 37", "labels, depth 1"):  # fmt: skip
        assert words in text, words
    found = run("info", model, "--json").data
    assert found["recipe"]["table"]["transform"] == "log10"
    assert found["recipe"]["table"]["units"] == "nM"
    assert found["kernel"]["noise"] == tl.load(model).model_.noise


def test_the_report_is_on_the_scale_that_was_learned(messy, model, tmp_path):
    page = tmp_path / "r.html"
    assert run("explain", model, messy, "--target", "IC50 (nM)", "-o", page).code == 0


def test_a_scale_needs_numbers_above_zero(tmp_path):
    rows = [(s, v if i else 0) for i, (s, v) in enumerate(zip(ALCOHOLS, VALUES, strict=False))]
    data = write_csv(tmp_path / "x.csv", rows, "smiles,value")
    done = run("fit", data, "--transform", "log10", "-o", tmp_path / "m", *SMALL)
    refused(done, "'value' must be above 0, but row 1 holds 0 (1 such rows)")
    refused(run("fit", data, "--transform", "log2", "-o", tmp_path / "m"), "one of none, log10, ln")


# --- several targets -----------------------------------------------------------------------------


def test_several_targets_one_model_each(messy, tmp_path):
    out = tmp_path / "m.treelens"
    args = ["fit", messy, "--target", "IC50 (nM),Class", "-o", out, *SMALL, "--top", 0]
    done = run(*args)
    assert done.code == 0, done.err
    assert "All targets" in done.out
    numbers = tl.load(tmp_path / "m-IC50_nM.treelens")
    classes = tl.load(tmp_path / "m-Class.treelens")
    assert isinstance(numbers, tl.GraphRegressor)
    assert isinstance(classes, tl.GraphClassifier)
    assert not out.exists()
    found = run(*args, "--json").data["models"]
    assert [each["data"]["target"] for each in found] == ["IC50 (nM)", "Class"]
    assert [each["data"]["n_graphs"] for each in found] == [37, 39]
    refused(run("fit", messy, "--target", "Class,kind", "-o", out), "no column 'kind' (--target)")
    with pytest.raises(InputError, match="one column, please"):
        read_training_data(str(messy), "IC50 (nM),Class", task="auto")


def test_the_molecules_of_several_targets_are_parsed_once(messy, monkeypatch):
    from treelens.graphs.gathering import Molecules

    calls = []
    real = Molecules.extend
    monkeypatch.setattr(
        Molecules, "extend", lambda self, given: calls.append(1) or real(self, given)
    )
    sets = read_training_sets(str(messy), "IC50 (nM),Class", task="auto")
    assert (len(sets), len(calls)) == (2, 1)


# --- what a chemist looks for --------------------------------------------------------------------


def test_lines_of_separators_are_no_rows(tmp_path):
    lines = ["id,smiles,label", *(f"m{k},{s},{c}" for k, (s, c) in enumerate(MOLECULES))]
    lines[5:5] = [",,", "", " , ,"]
    data = tmp_path / "x.csv"
    data.write_text("\n".join([*lines, *[",,"] * 30]) + "\n")
    notes: list[str] = []
    found = read_training_data(str(data), note=notes.append)
    assert (found.n_rows, len(found.graphs), notes) == (40, 40, [])
    assert found.table.place(3) == "row 4 (line 5)"
    assert found.table.place(4) == "row 5 (line 9)"


def test_salts_that_are_read_whole_are_told(tmp_path):
    data = write_csv(tmp_path / "x.csv", [*MOLECULES, ("CCC(C)N.Cl", "amine")])
    notes: list[str] = []
    read_training_data(str(data), note=notes.append)
    said = "1 of 41 molecules hold several fragments (salts, solvents), the first in row 41: they "
    assert [note for note in notes if note.startswith(said)]
    notes.clear()
    read_training_data(str(data), note=notes.append, reading=Reading(standardize="fragment"))
    assert not any("several fragments" in note for note in notes)


def test_a_metal_that_standardising_takes_away_is_told(tmp_path):
    odd = ["CC(=O)[O-].[Na+]", "[Fe+2].c1cc[cH-]c1.c1cc[cH-]c1", "[Cu]C"]
    rows = [*MOLECULES, *((smiles, "amine") for smiles in odd)]
    notes: list[str] = []
    data = write_csv(tmp_path / "x.csv", rows)
    read_training_data(str(data), note=notes.append, reading=Reading(standardize="all"))
    told = next(note for note in notes if note.startswith("--standardize changed"))
    assert told.endswith("1 lost a metal (Fe), the first in row 42: is what is left what was "
                         "measured?")  # fmt: skip


def test_a_name_of_two_molecules_is_told(tmp_path):
    rows = [(f"m{k}", *row) for k, row in enumerate(MOLECULES)]
    rows += [("m0", "OCC", "alcohol"), ("m1", "CCCCCCBr", "amine"), ("", "C", "amine"),
             ("", "CC", "amine")]  # fmt: skip
    data = write_csv(tmp_path / "x.csv", rows, "id,smiles,label")
    notes: list[str] = []
    read_training_data(str(data), note=notes.append)
    assert "column 'id' names different molecules alike: 'm1' (rows 2, 42)." in notes


def test_an_inchi_is_called_that(tmp_path):
    rows = [*MOLECULES, ("InChI=1S/CH4/h1H4", "amine")]
    notes: list[str] = []
    read_training_data(str(write_csv(tmp_path / "x.csv", rows)), note=notes.append)
    assert "(an InChI, and a SMILES was expected)" in notes[0]


def test_repeats_of_several_targets_name_the_target(tmp_path):
    rows = [(s, k, k % 7 + k / 9) for k, (s, _) in enumerate(MOLECULES)]
    data = write_csv(tmp_path / "x.csv", [*rows, ("OCC", 5, 1.5)], "smiles,a,b")
    notes: list[str] = []
    read_training_sets(str(data), "a,b", note=notes.append, task="regression")
    said = "1 row repeats the molecule of another row: each molecule counts once"
    assert [note.split(said)[0] for note in notes if said in note] == ["a: ", "b: "]


# --- columns -------------------------------------------------------------------------------------


def test_only_a_model_without_a_target_is_predicted_with_any_table(messy, model):
    assert read_data(str(messy)).y is None
    assert run("predict", model, messy, "--json").data.get("rmse") is None
