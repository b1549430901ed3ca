"""Limits on the command line: fit, evaluate and predict."""

from __future__ import annotations

import numpy as np
import pytest

import treelens as tl
from cli.conftest import ALCOHOLS, AMINES, FAST, SMALL, ok, refused, run, write_csv

TRUTH = [0.37 * s.count("C") + 2.0 * s.count("N") for s in ALCOHOLS + AMINES]
LIMIT = 4.5
CELLS = [f">{LIMIT}" if value > LIMIT else f"{value:.3f}" for value in TRUTH]
N_LIMITS = sum(cell.startswith(">") for cell in CELLS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("limits")
    smiles = ALCOHOLS + AMINES
    write_csv(folder / "cells.csv", list(zip(smiles, CELLS, strict=True)), "smiles,value")
    signs = [cell[:1].replace(">", "'>'") if cell[0] == ">" else "'='" for cell in CELLS]
    bare = [cell.strip(">") for cell in CELLS]
    rows = list(zip(smiles, bare, signs, strict=True))
    write_csv(folder / "column.csv", rows, "smiles,value,relation")
    return folder


def test_fit_uses_limits_and_predict_scores_measured_values(folder, tmp_path):
    done = ok("fit", folder / "cells.csv", "--target", "value", "--out", tmp_path / "m", *SMALL)
    sentence = f"{N_LIMITS} of 40 values are lower limits (>4.5): used as limits"
    assert sentence in done.out
    assert sentence in done.err
    assert f"those of the {40 - N_LIMITS} measured values" in done.out
    model = tl.load(tmp_path / "m")
    assert model.train_limits_.sum() == N_LIMITS
    assert model.predict(["CCCCCCCCCCCCN"])[0] > 5.0
    rows = [*zip(ALCOHOLS + AMINES, CELLS, strict=True), ("CCCCN", "")]
    test = write_csv(tmp_path / "test.csv", rows, "smiles,value")
    done = run("predict", tmp_path / "m", test, "--target", "value", "--out", tmp_path / "p.csv")
    assert f"{N_LIMITS} rows have limits: predicted, not scored" in done.err
    assert "1 row without 'value': predicted, not scored" in done.err
    args = ["fit", folder / "column.csv", "--target", "value", "--qualifier", "relation", *SMALL,
            "--out", tmp_path / "n", "--json"]  # fmt: skip
    found = run(*args).data
    assert found["leave_one_out"]["limits"]["lower"] == N_LIMITS
    other = tl.load(tmp_path / "n")
    np.testing.assert_allclose(other.predict(["CCCCN"]), model.predict(["CCCCN"]))


def test_evaluate_scores_measured_values(folder):
    models = "gp,ecfp_forest"
    done = ok("evaluate", folder / "cells.csv", "--target", "value", "--models", models, *FAST,
              "--json")  # fmt: skip
    (note,) = [note for note in done.data["notes"] if "not scored" in note]
    assert "ecfp_forest: limits are taken for values" in note
    assert done.data["n_tested"] == (40 - N_LIMITS) // 2
    column = run("evaluate", folder / "column.csv", "--target", "value", "--models", "gp",
                 "--qualifier", "relation", *FAST, "--json").data  # fmt: skip
    assert column["models"][0]["rmse"] == pytest.approx(done.data["models"][0]["rmse"])


def test_what_cannot_be_asked_for(folder, tmp_path):
    args = ["fit", folder / "column.csv", "--out", tmp_path / "m", *SMALL]
    refused(run(*args, "--target", "value", "--qualifier", "smiles"), "--qualifier", "'CCO'")
    asked = ["--qualifier", "relation"]
    refused(run(*args, "--target", "relation", "--task", "classification", *asked), "classes")
    refused(run(*args, "--target", "value,relation", *asked), "one --target")
