"""``--covariates`` and ``--descriptors``: fitted, predicted, compared, and refused by name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import treelens as tl
from cli.conftest import ALCOHOLS, AMINES, QUICK, SMALL, ok, refused, run, write_csv
from treelens.cli import predict
from treelens.estimators.fit_summary import covariate_facts

SMILES = ALCOHOLS + AMINES


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
    done = ok("fit", measured, "--covariates", "temperature,lab", "--out", out, *SMALL,
              "--descriptors", "no")  # fmt: skip
    assert "from temperature, lab." in done.out
    assert (
        "40 rows repeat the molecule of another row: 40 of them under other covariates" in done.err
    )
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
    assert run("info", model, "--json").data["covariates"]["names"] == ["temperature", "lab"]
    report = measured.with_name("report.html")
    ok("explain", model, measured, "--out", report)
    ok("fragments", model, measured)


def test_the_parts_of_covariates_and_structure_are_those_of_the_same_values(measured, model):
    """Both of what the model says of its training graphs: they add up to it."""
    loaded = tl.load(model)
    facts = covariate_facts(loaded)
    said = tl.read_table(measured, model=loaded).graphs
    table = loaded.predict_table(said)
    structure = table["prediction"] - table["from_covariates"]
    assert facts["spread"] == pytest.approx(table["from_covariates"].std(ddof=0), rel=1e-9)
    assert facts["spread_of_structure"] == pytest.approx(structure.std(ddof=0), rel=1e-9)


def test_the_parts_of_several_classes(measured):
    graphs, _ = tl.read_smiles(measured, target=None)
    given = pd.read_csv(measured)
    y = np.arange(len(graphs)) % 3
    fitted = tl.GraphClassifier(depth=1, n_jobs=1)
    fitted.fit(graphs, y, covariates={"temperature": given["temperature"]})
    said = fitted.decision_function(graphs.with_data({"temperature": given["temperature"]}))
    facts = covariate_facts(fitted)
    assert 0 <= facts["spread_of_structure"] <= said.std(axis=0).mean() + facts["spread"]


def test_evaluate_puts_them_beside_structure_alone(measured: Path):
    done = ok("evaluate", measured, "--covariates", "temperature,lab", "--models", "gp",
              "--folds", "3", "--json", *SMALL)  # fmt: skip
    scores = {row["model"]: row for row in done.data["models"]}
    assert set(scores) == {"gp+covariates", "gp"}
    (test,) = done.data["tests"]
    assert (test["model"], test["against"]) == ("gp+covariates", "gp")


def test_descriptors_are_covariates(measured: Path):
    out = measured.with_name("descriptors.treelens")
    done = ok("fit", measured, "--descriptors", "rdkit", "--out", out, *SMALL)
    assert "descriptors of the molecules" in done.out
    ok("predict", out, measured)


def test_a_file_without_the_column_is_refused(measured: Path, model: Path, tmp_path: Path):
    poor = write_csv(tmp_path / "poor.csv", [(s, "A") for s in SMILES], "smiles,lab")
    for given in (poor, "CCO"):
        refused(run("predict", model, given), "has no column 'temperature'")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--covariates", "pressure"], "has no column 'pressure'"),
        (["--covariates", ","], "--covariates is empty"),
        (["--covariates", "value", "--target", "value"], "what is to be predicted"),
        (["--covariates", "smiles"], "is the molecules"),
        (["--descriptors", "mordred"], "mordred"),
        (["--covariates", "lab", *QUICK], "option of --method gp"),
    ],
)
def test_what_cannot_be_is_said(measured: Path, options: list[str], message: str):
    refused(run("fit", measured, "--out", measured.with_name("no.treelens"), *options), message)
    assert not measured.with_name("no.treelens").exists()


def test_a_cell_that_is_no_number_is_named_by_its_row(measured, model, tmp_path, monkeypatch):
    lines = measured.read_text().splitlines()
    cells = lines[8].split(",")
    lines[8] = ",".join([*cells[:2], "warm", cells[3]])
    lines.insert(3, "C(C,1.0,300.0,A")  # which cannot be read, so that graphs and rows differ
    wrong = tmp_path / "wrong.csv"
    wrong.write_text("\n".join(lines) + "\n")
    fitted = run("fit", wrong, "--covariates", "temperature,lab", "--out", tmp_path / "m", *SMALL)
    assert fitted.code == 2
    assert "for 1 of 80 graphs, the first at row 9: 'warm'" in fitted.err
    out = tmp_path / "p.csv"
    for rows in (5000, 4):
        monkeypatch.setattr(predict, "CHUNK_ROWS", rows)
        done = run("predict", model, wrong, "--out", out, "--jobs", 1)
        assert done.code == 2
        assert "row 9: 'warm'" in done.err
