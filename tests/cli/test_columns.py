"""Tables of all kinds: other file formats, covariates and descriptors, limits."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rdkit import Chem

import treelens as tl
from cli.conftest import ALCOHOLS, AMINES, FAST, QUICK, SMALL, ok, refused, run, write_csv
from treelens.cli import predicting
from treelens.estimators.fit_report import FitReport

SMILES = ALCOHOLS + AMINES
VALUES = [round(0.37 * s.count("C") + 2.0 * s.count("N"), 3) for s in SMILES]

# --- kinds of files -----------------------------------------------------------------------------

NEW = [("n1", "CCCCO", 1.48), ("n2", "CCCN", 3.11)]


def write_table(path: Path, rows: list[tuple[str, str, float]]) -> Path:
    names, smiles, values = zip(*rows, strict=True)
    if path.suffix == ".csv":
        return write_csv(path, rows, "id,smiles,value")
    if path.suffix == ".parquet":
        pytest.importorskip("pyarrow", reason="needs pyarrow to write Parquet")
        pd.DataFrame(rows, columns=["id", "smiles", "value"]).to_parquet(path)
        return path
    blocks = [
        f"{name}{Chem.MolToMolBlock(Chem.MolFromSmiles(s))}>  <value>\n{value}\n\n$$$$\n"
        for name, s, value in zip(names, smiles, values, strict=True)
    ]
    path.write_bytes(gzip.compress("".join(blocks).encode()))
    return path


@pytest.mark.parametrize("name", ["x.csv", "x.parquet", "x.sdf.gz"])
def test_the_same_molecules_from_every_kind_of_file(name, tmp_path):
    # Of numbers without noise the search magnifies the last digits of descriptors.
    options = [*SMALL, "--descriptors", "no"]
    rows = [(f"m{k}", s, y) for k, (s, y) in enumerate(zip(SMILES, VALUES, strict=True))]
    data, new = write_table(tmp_path / name, rows), write_table(tmp_path / f"new-{name}", NEW)
    model, out = tmp_path / "m.treelens", tmp_path / "p.csv"
    ok("fit", data, "--target", "value", "--out", model, *options)
    done = ok("predict", model, new, "--target", "value", "--out", out)
    table = pd.read_csv(out)
    known = tl.GraphRegressor(depth=1, descriptors=False, random_state=0)
    known.fit([Chem.MolFromSmiles(s) for s in SMILES], VALUES)
    expected = known.predict([Chem.MolFromSmiles(s) for _, s, _ in NEW])
    assert table["prediction"].tolist() == pytest.approx(expected.tolist(), rel=1e-5)
    assert table.iloc[:, 1].tolist() == ["n1", "n2"]  # what names the rows, whatever it is called
    assert table["smiles"].tolist() == ["CCCCO", "CCCN"]
    assert "RMSE" in done.err


def test_a_sheet_for_every_command(tmp_path):
    openpyxl = pytest.importorskip("openpyxl", reason="needs openpyxl")
    book = openpyxl.Workbook()
    book.active.append(["smiles", "value"])
    book.active.append(["C", 1])
    sheet = book.create_sheet("Assay 2")
    sheet.append(["smiles", "value"])
    for row in zip(SMILES, VALUES, strict=True):
        sheet.append(row)
    data, model, out = (tmp_path / name for name in ("x.xlsx", "m.treelens", "out"))
    book.save(data)
    which = ("--sheet", "Assay 2")
    fitted = ok("fit", data, *which, "--target", "value", "--out", model, *SMALL)
    assert f"{len(SMILES)} molecules" in fitted.out
    assert "sheets" not in fitted.err
    ok("predict", model, data, *which, "--out", out)
    assert len(pd.read_csv(out)) == len(SMILES)
    for command in ("explain", "fragments"):
        ok(command, model, data, *which, "-o", out)
    refused(run("suggest", model, data, *which), "the model was fitted to all of them")
    refused(run("predict", model, data, "--sheet", "Assay 3"), "no sheet 'Assay 3'")
    refused(run("predict", model, "CCO", *which), "no Excel workbook")
    done = run("fit", data, "--out", model)
    assert "--sheet NAME reads another" in done.err


def test_parquet_without_its_library_says_what_to_install(tmp_path, monkeypatch):
    data = tmp_path / "x.parquet"
    data.write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)  # as if it were not there
    done = run("fit", data, "--target", "value", "--out", tmp_path / "m", *SMALL)
    assert done.code == 1
    assert "pip install pyarrow" in done.err


# --- covariates ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every molecule at two temperatures, by two labs one of which reads too high."""
    rng = np.random.default_rng(0)
    rows = []
    for smiles in SMILES * 2:
        warmth, lab = rng.normal(300, 10), rng.choice(["A", "B"])
        value = 0.2 * len(smiles) + 0.1 * (warmth - 300) + 1.0 * (lab == "A")
        rows.append((smiles, round(value, 3), round(warmth, 2), lab))
    folder = tmp_path_factory.mktemp("measured")
    return write_csv(folder / "measured.csv", rows, "smiles,value,temperature,lab")


@pytest.fixture(scope="module")
def model(measured: Path) -> Path:
    out = measured.with_name("model.treelens")
    done = ok(
        "fit",
        measured,
        "--covariates",
        "temperature,lab",
        "--out",
        out,
        *SMALL,
        "--descriptors",
        "no",
    )
    assert "from temperature, lab." in done.out
    assert "40 rows repeat the molecule of another row: 40 of them under other cov" in done.err
    assert "They were kept" not in done.err  # at another temperature it is another measurement
    return out


def test_every_command_uses_covariates(measured: Path, model: Path):
    out = measured.with_name("predictions.csv")
    ok("predict", model, measured, "--out", out)
    table, given = pd.read_csv(out), pd.read_csv(measured)
    effect = 0.1 * (given["temperature"] - 300) + (given["lab"] == "A")
    assert np.corrcoef(table["from_covariates"], effect)[0, 1] > 0.95
    assert np.corrcoef(table["prediction"], given["value"])[0, 1] > 0.95
    assert "Beside the structure: temperature, lab." in run("info", model).out
    found = run("info", model, "--json").data["covariates"]
    assert found["names"] == ["temperature", "lab"]
    ok("explain", model, measured, "--out", measured.with_name("report.html"))
    ok("fragments", model, measured)
    # the parts of covariates and of structure add up to what the model says
    facts = FitReport(tl.load(model).model_).covariates
    structure = table["prediction"] - table["from_covariates"]
    assert facts["spread"] == pytest.approx(table["from_covariates"].std(ddof=0), rel=1e-5)
    assert facts["spread_of_structure"] == pytest.approx(structure.std(ddof=0), rel=1e-5)
    done = ok(
        "evaluate",
        measured,
        "--covariates",
        "temperature,lab",
        "--models",
        "gp",
        "--folds",
        "3",
        "--json",
        *SMALL,
    )
    assert {row["model"] for row in done.data["models"]} == {"gp+covariates", "gp"}
    (test,) = done.data["tests"]
    assert (test["model"], test["against"]) == ("gp+covariates", "gp")


def test_all_descriptors_can_be_asked_for(measured: Path):
    out = measured.with_name("descriptors.treelens")
    done = ok("fit", measured, "--descriptors", "all", "--out", out, *SMALL)
    assert "descriptors of the molecules" in done.out
    ok("predict", out, measured)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--covariates", "pressure"], "has no column 'pressure'"),
        (["--covariates", "value", "--target", "value"], "what is to be predicted"),
        (["--covariates", "smiles"], "is the molecules"),
        (["--descriptors", "mordred"], "mordred"),
        (["--covariates", "lab", *QUICK], "option of --method gp"),
    ],
)
def test_what_cannot_be_a_covariate(measured: Path, options: list[str], message: str):
    refused(run("fit", measured, "--out", measured.with_name("no.treelens"), *options), message)
    assert not measured.with_name("no.treelens").exists()


def test_covariates_that_are_missing_or_no_numbers(measured, model, tmp_path, monkeypatch):
    poor = write_csv(tmp_path / "poor.csv", [(s, "A") for s in SMILES], "smiles,lab")
    for given in (poor, "CCO"):
        refused(run("predict", model, given), "has no column 'temperature'")
    lines = measured.read_text().splitlines()
    cells = lines[8].split(",")
    lines[8] = ",".join([*cells[:2], "warm", cells[3]])
    lines.insert(3, "C(C,1.0,300.0,A")  # which cannot be read, so that graphs and rows differ
    wrong = tmp_path / "wrong.csv"
    wrong.write_text("\n".join(lines) + "\n")
    args = ["fit", wrong, "--covariates", "temperature,lab", "--out", tmp_path / "m", *SMALL]
    refused(run(*args), "for 1 of 80 graphs, the first at row 9: 'warm'")
    monkeypatch.setattr(predicting, "CHUNK_ROWS", 4)
    refused(run("predict", model, wrong, "--jobs", 1), "row 9: 'warm'")


# --- limits -------------------------------------------------------------------------------------

CELLS = [f"{value:.3f}" if value <= 4.5 else ">4.5" for value in VALUES]
N_LIMITS = CELLS.count(">4.5")


def test_fit_uses_limits_and_measured_values_are_scored(tmp_path):
    data = write_csv(tmp_path / "x.csv", list(zip(SMILES, CELLS, strict=True)), "smiles,value")
    done = ok("fit", data, "--target", "value", "--out", tmp_path / "m", *SMALL)
    sentence = f"{N_LIMITS} of 40 values are lower limits (>4.5): used as limits"
    assert sentence in done.out
    assert sentence in done.err
    assert f"those of the {40 - N_LIMITS} measured values" in done.out
    model = tl.load(tmp_path / "m")
    assert model.train_limits_.sum() == N_LIMITS
    assert model.predict(["CCCCCCCCCCCCN"])[0] > 5.0
    done = run("predict", tmp_path / "m", data, "--target", "value", "--out", tmp_path / "p.csv")
    assert f"{N_LIMITS} rows have limits: predicted, not scored" in done.err
    done = ok("evaluate", data, "--target", "value", "--models", "gp,ecfp_forest", *FAST, "--json")
    (note,) = [note for note in done.data["notes"] if "not scored" in note]
    assert "ecfp_forest: limits are taken for values" in note
    assert done.data["n_tested"] == (40 - N_LIMITS) // 2


def test_limits_by_a_column_of_qualifiers(tmp_path):
    rows = [
        (s, c.strip(">"), "'>'" if c[0] == ">" else "'='")
        for s, c in zip(SMILES, CELLS, strict=True)
    ]
    data = write_csv(tmp_path / "x.csv", rows, "smiles,value,relation")
    args, asked = ["fit", data, "--out", tmp_path / "m", *SMALL], ["--qualifier", "relation"]
    found = ok(*args, "--target", "value", *asked, "--json").data
    assert found["leave_one_out"]["limits"]["lower"] == N_LIMITS
    refused(run(*args, "--target", "value", "--qualifier", "smiles"), "--qualifier", "'CCO'")
    refused(run(*args, "--target", "relation", "--task", "classification", *asked), "classes")
    refused(run(*args, "--target", "value,relation", *asked), "there are several targets")


# --- units --------------------------------------------------------------------------------------


def test_units_are_converted_by_every_command(tmp_path):
    """Every third value is in uM: the model is that of a table in nM, and so are its scores."""
    values = [round(10.0 + 7.5 * k, 3) for k in range(len(SMILES))]
    mixed = [(v / 1e3, "uM") if k % 3 == 0 else (v, "nM") for k, v in enumerate(values)]
    plain = write_csv(tmp_path / "plain.csv", list(zip(SMILES, values, strict=True)), "smiles,IC50")
    rows = [(s, *cells) for s, cells in zip(SMILES, mixed, strict=True)]
    data = write_csv(tmp_path / "mixed.csv", rows, "smiles,IC50,IC50 unit")
    asked = ["--target", "IC50", *SMALL]
    refused(run("fit", data, *asked, "--out", tmp_path / "m"), "--unit UNIT", "uM (14)")
    ok("fit", plain, *asked, "--out", tmp_path / "p.treelens", "--fragments", 0)
    done = ok("fit", data, *asked, "--unit", "nM", "--out", tmp_path / "m", "--fragments", 0)
    assert "values were converted to nM" in done.err
    one, other = (tl.load(tmp_path / name) for name in ("p.treelens", "m"))
    assert other.model_.training.record.unit == "nM"
    np.testing.assert_allclose(other.predict(SMILES[:5]), one.predict(SMILES[:5]), rtol=1e-9)
    found, expected = (
        run("evaluate", table, "--target", "IC50", *unit, *FAST, "--json").data["models"]
        for table, unit in ((data, ["--unit", "nM"]), (plain, []))
    )
    for one, other in zip(found, expected, strict=True):
        assert one["scores"]["rmse"] == pytest.approx(other["scores"]["rmse"], rel=1e-6)
    done = run("explain", tmp_path / "m", data, "--target", "IC50", "--out", tmp_path / "r.html")
    assert "values were converted to nM" in done.err
