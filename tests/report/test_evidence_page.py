"""The page on a Gaussian process: well formed, true to its summary, and harmless."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import treelens as tl
from report.conftest import EVIL, EVIL_CLASS, outline_of
from treelens.report import effects, write_evidence_report
from treelens.report.evidence_page import render_evidence
from treelens.report.units import Units


@pytest.mark.parametrize("name", ["of_numbers", "of_classes"])
def test_the_page_is_well_formed_and_fetches_nothing(name, request):
    page = render_evidence(request.getfixturevalue(name))
    outline = outline_of(page)
    assert len(set(outline.ids)) == len(outline.ids)
    sections = {"glance", "fragments", "scores", "domain", "examples", "cases", "patterns"}
    assert sections | {"learning", "model"} <= set(outline.ids)
    assert outline.fetched[0] == "data:,"
    tables = outline.fetched[1:]
    assert len(tables) == 2
    assert all(table.startswith("data:text/csv;charset=utf-8;base64,") for table in tables)
    # Names of vocabularies in drawings, not addresses that anything asks for.
    names = {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    outside = set(re.findall(r"https?://[^\s\"'<)]+", page))
    assert outside <= names | {"http://www.rdkit.org/xml"}
    assert not re.search(r"\bnan\b|\bNaN\b|\binf\b|>None<", page)


def test_numbers_of_the_page_are_those_of_the_summary(of_numbers):
    words = re.sub(r"<[^>]+>", "", render_evidence(of_numbers))
    in_units = Units.of(of_numbers["model"]["training_values"])
    assert of_numbers["learning"]["sentence"] in words
    assert f"off by {in_units(of_numbers['scores']['rmse'])}" in words
    for row in of_numbers["examples"]["rows"]:
        assert f"= {in_units(row['predicted'])}" in words
    for doubt in of_numbers["doubts"]:
        assert doubt["text"] in words


@pytest.mark.parametrize("name", ["of_numbers", "of_classes"])
def test_sums_come_out_as_they_are_shown(name, request):
    summary = request.getfixturevalue(name)
    words = re.sub(r"<[^>]+>", "", render_evidence(summary)).replace("\N{MINUS SIGN}", "-")
    sums = re.findall(r"(\S+) \(base\) (\S+) \((?:atoms|nodes)\) = (\S+)", words)
    assert len(sums) == len(summary["examples"]["rows"])
    for (base, rest, total), row in zip(sums, summary["examples"]["rows"], strict=True):
        assert float(base) + float(rest) == pytest.approx(float(total), abs=1e-9)
        assert float(total) == pytest.approx(row["decision"], abs=0.0051)
        assert float(rest) == pytest.approx(sum(row["contributions"]), abs=0.0101)


@pytest.mark.parametrize("model", ["number_model", "class_model"])
def test_a_page_without_truth(model, request):
    fitted = request.getfixturevalue(model)
    graphs, _ = request.getfixturevalue("molecules" if model == "number_model" else "synthetic")
    page = render_evidence(fitted.summary(graphs[:1]))
    assert "examples" in outline_of(page).ids
    assert "Test set" not in page


def test_many_classes_and_uniform_weights(synthetic):
    graphs, _ = synthetic
    y = np.asarray(graphs.graph_data["substructure"], int)  # eight classes
    model = tl.GraphClassifier(depth=1, weights="uniform").fit(graphs[::2], y[::2])
    page = render_evidence(model.summary(graphs[1::2], y[1::2]))
    outline_of(page)
    assert "What tells 8 classes of graphs apart" in page
    assert "nothing was learned" in page


def test_a_model_of_landmarks(molecules):
    graphs, y = molecules
    settings = {"exact_size": 20, "n_landmarks": 10, "learning_size": 20, "random_state": 0}
    model = tl.GraphRegressor(depth=1, **settings).fit(graphs[::2], y[::2])
    found = model.summary(graphs[1::2], y[1::2])
    json.dumps(found, allow_nan=False)
    assert found["model"]["n_basis_graphs"] < found["model"]["n_training_graphs"]
    basis = set(model.model_.basis_indices.tolist())
    assert {row["neighbors"][0]["index"] for row in found["examples"]["rows"]} <= basis
    assert "landmarks among them" in render_evidence(found)
    outline_of(render_evidence(model.summary()))


def test_names_instead_of_codes(mutag):
    graphs, y = mutag
    model = tl.GraphClassifier(depth=1).fit(graphs[::4], y[::4])
    found = model.summary(graphs[1::4], y[1::4], names="MUTAG")
    assert "O(N)" in [row["text"] for row in found["patterns"]["rows"]]
    assert {"C", "N", "O"} <= set(found["examples"]["rows"][0]["labels"])


def test_labels_and_classes_are_escaped():
    star = ([(0, 1), (0, 2)], {0: EVIL, 1: "b", 2: EVIL}, {(0, 1): EVIL, (0, 2): "x"})
    path = ([(0, 1), (1, 2)], {0: "b", 1: EVIL, 2: "b"}, {(0, 1): "x", (1, 2): EVIL})
    graphs = tl.as_graph_collection([star, path] * 6)
    model = tl.GraphClassifier(depth=1).fit(graphs, [EVIL_CLASS, "plain"] * 6)
    page = render_evidence(model.summary(graphs, [EVIL_CLASS, "plain"] * 6))
    outline = outline_of(page)
    assert outline.tags.count("script") == 2
    assert "img" not in outline.tags
    assert EVIL not in page
    assert EVIL_CLASS not in page


def test_molecules_from_files_of_coordinates_are_drawn_as_well(number_model):
    chem = pytest.importorskip("rdkit.Chem")
    molecules = [chem.MolFromSmiles(x) for x in ("CCO", "CCCCC", "c1ccccc1")]
    found = number_model.summary(molecules)
    json.dumps(found, allow_nan=False)
    assert render_evidence(found).count("coloured by contribution") == 3


def test_graphs_too_large_to_draw_are_named(class_model):
    long = ([(k, k + 1) for k in range(200)], dict.fromkeys(range(201), 0))
    page = render_evidence(class_model.summary([long]))
    assert "Too large to be drawn: 201 nodes" in page


def test_a_sample_of_many_graphs(number_model, molecules, monkeypatch):
    monkeypatch.setattr(effects, "MOST_GRAPHS", 5)
    found = number_model.summary(*molecules)["patterns"]
    assert found["n_graphs"] == 5


def test_writing(number_model, molecules, tmp_path):
    path = tmp_path / "report.html"
    assert number_model.report(path, molecules[0][1:9]) == path
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(FileNotFoundError, match="does not exist"):
        write_evidence_report(number_model.model_, tmp_path / "nowhere" / "report.html")
