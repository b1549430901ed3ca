"""``--covariates`` and ``--descriptors``: fitted, predicted, compared, and refused by name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import treelens as tl
from cli.conftest import ALCOHOLS, AMINES, QUICK, SMALL, run, write_csv
from cli.test_bad_input import refused
from treelens.cli.covariates import covariate_facts
from treelens.cli.data import read_data, read_training_data

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
    done = run("fit", measured, "--covariates", "temperature,lab", "--out", out, *SMALL)
    assert done.code == 0, done.err
    assert "Covariates: temperature, lab." in done.out
    assert (
        "40 rows repeat the molecule of another row: 40 of them under other covariates" in done.err
    )
    assert "They were kept" not in done.err  # at another temperature it is another measurement
    return out


def test_predictions_tell_what_covariates_add(measured: Path, model: Path):
    out = measured.with_name("predictions.csv")
    assert run("predict", model, measured, "--out", out).code == 0
    table, given = pd.read_csv(out), pd.read_csv(measured)
    effect = 0.1 * (given["temperature"] - 300) + (given["lab"] == "A")
    assert np.corrcoef(table["from_covariates"], effect)[0, 1] > 0.95
    assert np.corrcoef(table["prediction"], given["value"])[0, 1] > 0.95


def test_the_model_says_what_it_asks_for(model: Path):
    assert "Covariates: temperature, lab." in run("info", model).out
    assert run("info", model, "--json").data["covariates"]["names"] == ["temperature", "lab"]


def test_the_parts_of_covariates_and_structure_are_those_of_the_same_values(measured, model):
    """Both of what the model says of its training graphs: they add up to it."""
    loaded = tl.load(model)
    facts = covariate_facts(loaded)
    said = read_data(str(measured), covariates=loaded.covariates_).graphs
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


def test_a_report_and_fragments_read_them_too(measured: Path, model: Path):
    report = measured.with_name("report.html")
    assert run("explain", model, measured, "--out", report).code == 0
    assert run("fragments", model, measured).code == 0


@pytest.fixture
def repeated(tmp_path: Path) -> Path:
    """Each alcohol twice at 25 degrees, and the first five also at 60."""
    rows = [(smiles, k, "25") for k, smiles in enumerate(ALCOHOLS)]
    rows += [(smiles, k + 1, "25.0") for k, smiles in enumerate(ALCOHOLS)]
    rows += [(smiles, k + 100, "60") for k, smiles in enumerate(ALCOHOLS[:5])]
    return write_csv(tmp_path / "repeated.csv", rows, "smiles,value,degrees")


def test_rows_are_merged_where_covariates_agree(repeated: Path):
    notes: list[str] = []
    data = read_training_data(
        str(repeated), "value", note=notes.append, task="regression", covariates=["degrees"]
    )
    assert data.y.tolist() == [*(k + 0.5 for k in range(20)), *range(100, 105)]
    assert data.graphs.graph_data["degrees"].tolist() == ["25"] * 20 + ["60"] * 5
    assert data.groups.tolist() == [*range(20), *range(5)]  # folds part no molecule
    assert notes == [
        "25 rows repeat the molecule of another row: 5 of them under other covariates (degrees), "
        "kept as measurements of their own, which 'treelens evaluate' has on one side of every "
        "split; 20 under the same ones: each molecule counts once, with the mean of its values."
    ]
    assert data.counts == {
        "rows of repeated molecules (merge)": 20,
        "rows of repeated molecules under other covariates": 5,
    }


def test_without_covariates_all_rows_of_a_molecule_are_merged(repeated: Path):
    notes: list[str] = []
    data = read_training_data(str(repeated), "value", note=notes.append, task="regression")
    assert len(data.graphs) == 20
    assert any("5 repeated molecules with values far apart" in note for note in notes)
    assert notes[-1].endswith("row: each molecule counts once, with the mean of its values.")


def test_what_was_asked_for_about_repeats_stays_so(repeated: Path):
    more = {"task": "regression", "covariates": ["degrees"]}
    for how, n in (("keep", 45), ("first", 20)):
        data = read_training_data(str(repeated), "value", duplicates=how, **more)
        assert len(data.graphs) == n


def test_evaluate_puts_them_beside_structure_alone(measured: Path):
    done = run("evaluate", measured, "--covariates", "temperature,lab", "--models", "evidence",
               "--folds", "3", "--json", *SMALL)  # fmt: skip
    assert done.code == 0, done.err
    scores = {row["model"]: row for row in done.data["models"]}
    assert set(scores) == {"evidence+covariates", "evidence"}
    (test,) = done.data["tests"]
    assert (test["model"], test["against"]) == ("evidence+covariates", "evidence")


def test_parts_read_them_too(measured: Path, model: Path):
    whole, parts = measured.with_name("whole.csv"), measured.with_name("parts.csv")
    assert run("predict", model, measured, "--out", whole).code == 0
    done = run("predict", model, measured, "--out", parts, "--part-size", 30)
    assert done.code == 0, done.err
    a, b = (pd.read_csv(path)["from_covariates"] for path in (whole, parts))
    np.testing.assert_allclose(a, b, atol=1e-8)


def test_descriptors_are_covariates(measured: Path):
    out = measured.with_name("descriptors.treelens")
    done = run("fit", measured, "--descriptors", "rdkit", "--out", out, *SMALL)
    assert done.code == 0, done.err
    assert "rdkit:" in done.out
    assert run("predict", out, measured).code == 0


def test_a_file_without_the_column_is_refused(measured: Path, model: Path, tmp_path: Path):
    poor = write_csv(tmp_path / "poor.csv", [(s,) for s in SMILES], "smiles")
    refused(run("predict", model, poor), "has no column 'temperature', which is a covariate")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--covariates", "pressure"], "has no column 'pressure'"),
        (["--covariates", ","], "names no column"),
        (["--covariates", "value", "--target", "value"], "what is to be predicted"),
        (["--covariates", "smiles"], "that column is the molecules"),
        (["--descriptors", "mordred"], "known are rdkit"),
        (["--covariates", "lab", *QUICK], "support vector machines take none"),
    ],
)
def test_what_cannot_be_is_said(measured: Path, options: list[str], message: str):
    refused(run("fit", measured, "--out", measured.with_name("no.treelens"), *options), message)
    assert not measured.with_name("no.treelens").exists()


def test_a_cell_that_is_no_number_is_named_by_its_row(measured: Path, model: Path, tmp_path: Path):
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
    for more in ([], ["--part-size", 4]):
        done = run("predict", model, wrong, "--out", out, "--jobs", 1, *more)
        assert done.code == 2
        assert "'temperature' holds numbers in the training graphs; here row 9 holds" in done.err
