"""``treelens doctor``, ``demo`` and ``datasets``: check the installation, try it, get data."""

from __future__ import annotations

import numpy as np

import treelens as tl
from cli.conftest import ok, run, tiny_tu
from treelens.cli import main
from treelens.estimators.evidence import GraphClassifier


def test_doctor(monkeypatch, tmp_path):
    done = ok("doctor", "--json")
    assert done.data["healthy"]
    assert done.data["treelens"] == tl.__version__
    real = main._version
    monkeypatch.setattr(main, "_version", lambda name: None if name == "pyarrow" else real(name))
    monkeypatch.setattr(GraphClassifier, "score", lambda self, X, y: 0.5)
    monkeypatch.setenv("TREELENS_DATA", str(tmp_path / "gone"))
    done = run("doctor")
    assert done.code == 1
    assert "gone is not a folder" in done.out
    assert "pip install pyarrow" in done.out
    assert "A tiny GraphClassifier learned nothing" in done.out


def test_the_demo_has_molecules_to_learn_from_or_made_up_graphs(monkeypatch):
    data, story = main.demo_data()
    assert (len(data.graphs), data.task, np.median(data.y)) == (1017, "regression", 6.44)
    assert f"pIC50, from {data.y.min():g} to {data.y.max():g}" in story
    monkeypatch.setattr(main, "_rdkit_examples", lambda: None)
    data, story = main.demo_data()
    assert len(data.graphs) == 160
    assert "pip install rdkit" in story


def test_the_demo_learns_and_reports_on_what_it_held_out(tmp_path, monkeypatch):
    full, story = main.demo_data()
    small = full.pick(np.arange(60))
    monkeypatch.setattr(main, "demo_data", lambda: (small, story))
    calls: list[tuple] = []
    monkeypatch.setattr(tl.GraphRegressor, "report", lambda *given, **more: calls.append(given))
    done = ok("demo", "--out", tmp_path / "demo.html", "--jobs", 1)
    assert "48 molecules; pIC50 from" in done.out
    ((fitted, path, graphs, y),) = calls
    assert (len(fitted.train_values_), len(graphs), len(y)) == (48, 12, 12)
    assert path == tmp_path / "demo.html"
    error = np.sqrt(np.mean((fitted.predict(graphs) - y) ** 2))
    assert f"On the 12 molecules held out: RMSE {error:.4g}, R2 " in done.out


def test_the_demo_scores_made_up_graphs_that_it_held_out(tmp_path, monkeypatch):
    monkeypatch.setattr(main, "_rdkit_examples", lambda: None)
    monkeypatch.setattr(GraphClassifier, "report", lambda *given, **more: None)
    done = ok("demo", "--out", tmp_path / "demo.html", "--jobs", 1)
    assert "On the 32 graphs held out: ROC AUC " in done.out
    assert ", accuracy " in done.out


def test_datasets_are_listed_described_and_verified(data_folder):
    listed = run("datasets", "list", "--folder", data_folder, "--json").data["datasets"]
    assert next(row for row in listed if row["name"] == "MUTAG")["path"].endswith("MUTAG.zip")
    facts = run("datasets", "describe", "MUTAG", "--folder", data_folder, "--json").data
    assert (facts["n_graphs"], facts["classes"]) == (188, {"-1": 63, "1": 125})
    checked = run("datasets", "verify", "MUTAG", "--folder", data_folder)
    assert checked.code == 0
    assert "MUTAG_A.txt" in checked.out
    fetched = run("datasets", "fetch", "MUTAG", "--json")
    assert fetched.code == 0
    assert fetched.data["path"].endswith("MUTAG.zip")


def test_a_damaged_data_set_fails_to_verify(tmp_path):
    folder = tiny_tu(tmp_path / "MUTAG")
    done = run("datasets", "verify", "MUTAG", "--folder", tmp_path, "--json")
    assert done.code == 1
    assert not done.data["ok"]
    assert folder.name in done.data["files"][0]["path"]
    unknown = run("datasets", "describe", "MUTAGG")
    assert unknown.code == 2
    assert "Did you mean 'MUTAG'?" in unknown.err
