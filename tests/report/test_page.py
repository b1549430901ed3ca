"""The page: well formed, self-contained, escaped, with the numbers of its summary."""

from __future__ import annotations

import base64
import io
import re

import numpy as np
import pandas as pd
import pytest

import treelens as tl
from report.conftest import EVIL, EVIL_CLASS, QUICK, outline_of
from treelens.report import write_report
from treelens.report.render import Units, render

KINDS = ["numbers", "classes", "svm"]


def words_of(page: str) -> str:
    return re.sub(r"<[^>]+>", "", page).replace("\N{MINUS SIGN}", "-")


@pytest.mark.parametrize("name", KINDS)
def test_well_formed_and_self_contained(summaries, name):
    page = render(summaries[name])
    outline = outline_of(page)
    assert len(set(outline.ids)) == len(outline.ids)
    sections = {"glance", "cards", "fragments", "scores", "predictions", "patterns"}
    assert sections | {"learning", "model"} <= set(outline.ids)
    assert ("pairs" in outline.ids) == (summaries[name]["pairs"] is not None)
    assert ("domain" in outline.ids) == (name != "svm")
    assert outline.fetched[0] == "data:,"
    tables = outline.fetched[1:]
    assert len(tables) == 2
    assert all(table.startswith("data:text/csv;charset=utf-8;base64,") for table in tables)
    names = {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}  # not requested
    outside = set(re.findall(r"https?://[^\s\"'<)]+", page))
    assert outside <= names | {"http://www.rdkit.org/xml"}
    assert not re.search(r"\bnan\b|\bNaN\b|\binf\b|>None<", page)
    assert render(summaries[name]) == page
    drawings = re.findall(r'<svg[^>]*role="img"[^>]*>\s*(<title>)?', page)
    assert len(drawings) > 20
    assert all(drawings)  # with a text


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("n_given", [0, 1, 5])
def test_pages_without_truth(cases, name, n_given):
    model, graphs, _ = cases[name]
    page = render(model.summary(graphs[1 : 1 + n_given] if n_given else None))
    outline = outline_of(page)
    assert ("cards" in outline.ids) == bool(n_given)
    assert "Test set" not in page
    if n_given:  # new graphs come first
        assert page.index("<h1>") < page.index('id="cards"') < page.index('id="glance"')


@pytest.mark.parametrize("name", KINDS)
def test_numbers_are_those_of_the_summary(summaries, name):
    summary = summaries[name]
    words, units = words_of(render(summary)), Units.of(summary["model"]["training_values"])
    score = summary["scores"]["rmse" if name == "numbers" else "accuracy"]
    assert (units(score) if name == "numbers" else f"{100 * score:.1f}") in words
    assert summary["learning"]["sentence"].replace("graph", summary["noun"]) in words
    for check in summary["checks"]:
        assert check["text"] in words
    sums = re.findall(
        r"(\S+) \(base\) (\S+) \((?:atoms|nodes)\)(?: (\S+) \(descriptors\))? = (\S+)", words
    )
    assert len(sums) == len(summary["cards"]["rows"])
    for (base, rest, beside, total), row in zip(sums, summary["cards"]["rows"], strict=True):
        parts = float(base) + float(rest) + float(beside or 0.0)
        assert parts == pytest.approx(float(total), abs=1e-9)
        assert float(total) == pytest.approx(row["decision"], abs=0.0051)


def test_the_first_screen_leads_with_fragments_and_molecules(summaries):
    page = render(summaries["numbers"])
    first = page[page.index('id="glance"') : page.index('id="cards"')]
    n_fragments = len(summaries["numbers"]["fragments"]["rows"])
    assert first.count("<title>Fragment ") == min(3, n_fragments) > 0
    assert page.index('id="cards"') < page.index('id="fragments"') < page.index('id="patterns"')
    assert "graph" not in words_of(first).lower().replace("graphregressor", "")


@pytest.mark.parametrize("make", [tl.GraphClassifier, tl.GraphSVC])
def test_many_classes_and_uniform_weights(synthetic, make):
    graphs, _ = synthetic
    y = np.asarray(graphs.graph_data["substructure"], int)  # eight classes
    settings = {"weights": "uniform", "depth": 1}
    if make is tl.GraphSVC:
        settings = {"kernel": "wl-subtree-cosine", "depth": 1, "weight_radius": 0, **QUICK}
    model = make(**settings).fit(graphs[::2], y[::2])
    page = render(model.summary(graphs[1::2], y[1::2]))
    outline = outline_of(page)
    assert "threshold" not in outline.ids
    assert "8 classes" in page


def test_molecules_with_coordinates_and_large_graphs(cases):
    chem = pytest.importorskip("rdkit.Chem")
    molecules = [chem.MolFromSmiles(x) for x in ("CCO", "CCCCC", "c1ccccc1")]
    page = render(cases["numbers"][0].summary(molecules))
    assert page.count("coloured by contribution") == 3
    long = ([(k, k + 1) for k in range(200)], dict.fromkeys(range(201), 0))
    assert "Too large to be drawn: 201 nodes" in render(cases["classes"][0].summary([long]))


def table_of(page: str, name: str) -> pd.DataFrame:
    data = re.search(rf'base64,([^"]+)" download="{name}\.csv"', page)[1]
    text = base64.b64decode(data).decode("utf-8-sig")
    return pd.read_csv(io.StringIO(text), keep_default_na=False)


def test_downloads(summaries, cases):
    model, graphs, y = cases["numbers"]
    found = table_of(render(summaries["numbers"]), "predictions")
    np.testing.assert_allclose(found["predicted"], model.predict(graphs[1::2]))
    np.testing.assert_allclose(found["measured"], y[1::2])
    rows = summaries["classes"]["fragments"]["rows"]
    found = table_of(render(summaries["classes"]), "fragments")
    np.testing.assert_allclose(found["effect"], [row["effect"] for row in rows])
    for label, n, *_ in rows[0]["by_class"]:
        assert found[f"support {label}"][0] == n


@pytest.mark.parametrize("make", [tl.GraphClassifier, tl.GraphSVC])
@pytest.mark.parametrize("name", ["=HYPERLINK(1)", EVIL, 'a",@b\n"', "+cmd|x"])
def test_hostile_names_labels_and_classes_stay_text(hostile, name, make):
    plain, y = hostile
    graphs = plain.with_names([name] * len(plain))
    settings = QUICK if make is tl.GraphSVC else {}
    page = render(make(depth=1, **settings).fit(graphs, y).summary(graphs, y))
    outline = outline_of(page)
    assert outline.tags.count("script") == 2
    assert "img" not in outline.tags
    assert EVIL not in page
    assert EVIL_CLASS not in page
    expected = f"'{name}" if name[0] in "=+" else name
    assert table_of(page, "predictions")["name"][0] == expected
    assert table_of(page, "fragments")["examples"][0].startswith(expected)


def test_lone_surrogates_are_shown_as_their_code():
    """Text that was read with a wrong encoding cannot be encoded as UTF-8."""
    odd = "a\udce4"
    star = ([(0, 1), (0, 2)], {0: odd, 1: "b", 2: "c"}, {(0, 1): odd, (0, 2): "x"})
    path = ([(0, 1), (1, 2)], {0: "b", 1: odd, 2: "b"}, {(0, 1): "x", (1, 2): odd})
    graphs, y = tl.as_graph_collection([star, path] * 6), [odd, "a\udce5"] * 6
    page = render(tl.GraphSVC("wwl", 1, 0, **QUICK).fit(graphs, y).summary(graphs, y))
    page.encode("utf-8")
    assert "a\\udce4" in page
    assert "a\\udce5" in page  # classes that differ only there stay apart


def test_writing(cases, tmp_path, monkeypatch):
    model, graphs, _ = cases["numbers"]
    path = tmp_path / "report.html"
    assert model.report(path, graphs[1:9]) == path
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert list(tmp_path.iterdir()) == [path]
    monkeypatch.setattr("treelens.report.summary.summarize", lambda *_, **__: pytest.fail("worked"))
    with pytest.raises(FileNotFoundError, match="does not exist"):
        write_report(model, tmp_path / "nowhere" / "report.html")
