"""``treelens fragments``."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import treelens as tl
from cli.conftest import SMALL, run, write_csv
from treelens.cli.main import app

SMILES = [*("C" * k + "c1ccccc1[N+](=O)[O-]" for k in range(1, 9)),
          *("C" * k + "c1ccccc1O" for k in range(1, 9))]  # fmt: skip


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fragments")
    y = np.array([1] * 8 + [0] * 8)
    tl.GraphClassifier(depth=1).fit(SMILES, y).save(folder / "m.tlm")
    lines = ["smiles,class", *(f"{s},{c}" for s, c in zip(SMILES, y, strict=True))]
    (folder / "data.csv").write_text("\n".join(lines) + "\n")
    return folder


def test_table_json_and_csv(files):
    runner = CliRunner()
    model, data = str(files / "m.tlm"), str(files / "data.csv")
    shown = runner.invoke(app, ["fragments", model, data, "--csv", str(files / "f.csv")])
    assert shown.exit_code == 0, shown.output
    assert "nitro" in shown.output
    assert "Size, apart from structure" in shown.output
    assert (files / "f.csv").read_text().splitlines()[0].startswith("rank,name,smarts")
    told = runner.invoke(
        app, ["fragments", model, data, "--json", "--target", "class", "--top", "3"]
    )
    result = json.loads(told.stdout)
    assert len(result["fragments"]) <= 3
    assert result["left_out"]
    assert result["fragments"][0]["support 1"] + result["fragments"][0]["support 0"] > 0


def test_rows_that_fit_left_out_become_no_test_set(tmp_path, monkeypatch):
    """Molecules with contradictory classes are not learned, and no test of the model either."""
    rows = [(s, "acid" if k < 8 else "base") for k, s in enumerate(SMILES)]
    rows += [(s, "base") for s in SMILES[:3]]
    data = write_csv(tmp_path / "x.csv", rows)
    model, given = tmp_path / "m.treelens", []
    assert run("fit", data, "-o", model, *SMALL, "--fragments", 0).code == 0
    monkeypatch.setattr(
        tl.GraphClassifier, "report", lambda self, path, X, y, **_: given.append((X, y))
    )
    done = run("explain", model, data, "--target", "label", "-o", tmp_path / "r.html")
    assert done.code == 0, done.err
    ((graphs, y),) = given
    fitted = tl.load(model)
    assert len(graphs) == len(y) == len(fitted.train_codes_) == 13
    assert y.tolist() == fitted.classes_[fitted.train_codes_].tolist()
    one = write_csv(tmp_path / "one.csv", [("CCO", "acid")])  # too little to learn, not to explain
    assert run("explain", model, one, "--target", "label", "-o", tmp_path / "r.html").code == 0
