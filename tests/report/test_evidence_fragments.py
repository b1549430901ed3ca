"""The first screen of the report on a Gaussian process: fragments, domain, an honest test set."""

from __future__ import annotations

import base64
import io
import re

import numpy as np
import pandas as pd
import pytest

import treelens as tl
from report.conftest import EVIL, EVIL_CLASS, outline_of
from treelens.report import summarize_evidence
from treelens.report.downloads import downloads_of
from treelens.report.evidence_page import render_evidence


@pytest.fixture(scope="module")
def of_numbers(number_model, molecules):
    graphs, y = molecules
    return number_model.summary(graphs[1::2], y[1::2])


@pytest.fixture(scope="module")
def of_classes(class_model, synthetic):
    graphs, y = synthetic
    return class_model.summary(graphs[1::2], y[1::2])


def table_of(summary, name: str) -> pd.DataFrame:
    """A table as somebody reads it who downloads it."""
    address = downloads_of(summary)[name]
    text = base64.b64decode(address.partition("base64,")[2]).decode("utf-8-sig")
    return pd.read_csv(io.StringIO(text), keep_default_na=False)


# --- fragments ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["number", "class"])
def test_fragments_are_those_of_the_estimator(name, request):
    model = request.getfixturevalue(f"{name}_model")
    graphs, y = request.getfixturevalue("molecules" if name == "number" else "synthetic")
    found = model.summary(graphs[1::2], y[1::2])["fragments"]
    table = model.fragments(graphs[1::2], y[1::2], n_fragments=len(found["rows"]))
    assert found["of_given"]
    assert len(found["rows"]) == len(table) > 2
    for row, (rank, expected) in zip(found["rows"], table.iterrows(), strict=True):
        assert row["rank"] == rank
        assert row["effect"] == pytest.approx(expected["effect"])
        assert row["error"] == pytest.approx(expected["error"])
        assert row["pattern"] == expected["pattern"]
        assert row["smarts"] == expected.get("smarts")
        assert row["support"] == expected["support"]
        assert row["examples"] == [str(x) for x in expected["examples"]]
        if name == "class":
            assert sum(n for _, n in row["by_class"]) == row["support"]


@pytest.mark.parametrize("given", [slice(0, 0), slice(0, 2)])
def test_without_graphs_enough_fragments_are_those_of_training(number_model, molecules, given):
    graphs, _ = molecules
    found = number_model.summary(graphs[given] if given.stop else None)["fragments"]
    assert not found["of_given"]
    assert found["left_out"]
    assert found["n_graphs"] == len(graphs[::2])
    expected = number_model.fragments_["effect"].tolist()[: len(found["rows"])]
    assert [row["effect"] for row in found["rows"]] == pytest.approx(expected)


def test_a_model_without_its_training_graphs_says_what_it_needs(number_model):
    found = summarize_evidence(number_model.model_)
    assert found["fragments"] is None
    assert found["domain"] is None
    page = render_evidence(found)
    assert "does not hold its training graphs" in page
    assert "text/csv" not in page
    outline_of(page)


@pytest.mark.parametrize("name", ["of_numbers", "of_classes"])
def test_the_page_leads_with_three_fragments_that_have_words(name, request):
    summary = request.getfixturevalue(name)
    page = render_evidence(summary)
    first = page[page.index('id="glance"') : page.index('id="fragments"')]
    assert re.findall(r"<title>Fragment (\d+):", first) == ["1", "2", "3"]
    for row in summary["fragments"]["rows"]:
        assert f"<title>Fragment {row['rank']}: " in page
    assert page.index('id="fragments"') < page.index('id="pattern-table"')


def test_names_replace_codes_in_fragments(mutag):
    graphs, y = mutag
    model = tl.GraphClassifier(depth=1).fit(graphs[::4], y[::4])
    rows = model.summary(graphs[1::4], y[1::4], names="MUTAG")["fragments"]["rows"]
    assert all(re.match(r"[A-Z]", row["pattern"]) for row in rows)
    assert {"C", "N", "O"} <= {label for row in rows for label in row["picture"]["labels"]}


# --- test set -----------------------------------------------------------------------------------


def test_graphs_that_were_trained_on_are_no_test_set(number_model, molecules):
    graphs, y = molecules
    found = number_model.summary(graphs[::2], y[::2])
    assert found["scores"] is None
    page = render_evidence(found)
    assert "No test set" in page
    assert "<h2>Test set</h2>" not in page


def test_scores_leave_out_what_was_trained_on(number_model, molecules):
    graphs, y = molecules
    found = number_model.summary(graphs, y)
    new = number_model.predict(graphs[1::2]) - y[1::2]
    assert found["scores"]["n_graphs"] == len(new)
    assert found["scores"]["rmse"] == pytest.approx(np.sqrt(np.mean(new**2)))
    assert found["scores"]["points"]["index"] == list(range(1, len(y), 2))
    assert "without 30 that have exactly" in render_evidence(found)


# --- domain -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["number", "class"])
def test_the_domain_is_that_of_the_estimator(name, request):
    model = request.getfixturevalue(f"{name}_model")
    graphs, y = request.getfixturevalue("molecules" if name == "number" else "synthetic")
    summary, table = model.summary(graphs[1::2], y[1::2]), model.domain(graphs[1::2])
    found = summary["domain"]
    assert found["n_inside"] == table["in_domain"].sum()
    assert found["least_similarity"] == pytest.approx(model.domain_.least_similarity)
    furthest = table["similarity"].nsmallest(len(found["furthest"]))
    assert [row["tanimoto"] for row in found["furthest"]] == pytest.approx(furthest.tolist())
    inside = table["in_domain"].to_numpy()
    for row in found["furthest"] + summary["examples"]["rows"]:
        assert row["in_domain"] == inside[row["index"]]
    for row in found["furthest"]:
        assert row["nearest"]["index"] == table["nearest"].iloc[row["index"]]
    counted = found["quality"]["inside"]["n_graphs"] + found["quality"]["outside"]["n_graphs"]
    assert counted == summary["scores"]["n_graphs"]


def test_graphs_outside_are_marked_and_doubted(number_model):
    summary = number_model.summary(["[Na+].[Cl-]", "FC(F)(F)I", "BrBr", "CCCO"])
    outside = summary["domain"]["n_graphs"] - summary["domain"]["n_inside"]
    assert outside >= 3
    (text,) = (d["text"] for d in summary["doubts"] if "domain of applicability" in d["text"])
    assert text.startswith(f"{outside} of the 4")
    page = render_evidence(summary)
    cards = page[page.index('id="examples"') : page.index('id="cases"')]
    assert cards.count("outside the domain") == outside


# --- downloads ----------------------------------------------------------------------------------


def test_downloads_hold_the_tables(of_numbers, of_classes, number_model, molecules):
    graphs, y = molecules
    predictions = table_of(of_numbers, "predictions")
    np.testing.assert_allclose(predictions["predicted"], number_model.predict(graphs[1::2]))
    np.testing.assert_allclose(predictions["measured"], y[1::2])
    assert predictions["in_domain"].tolist() == number_model.domain(graphs[1::2])[
        "in_domain"
    ].tolist()  # fmt: skip
    fragments = table_of(of_classes, "fragments")
    rows = of_classes["fragments"]["rows"]
    np.testing.assert_allclose(fragments["effect"], [row["effect"] for row in rows])
    for label, n in rows[0]["by_class"]:
        assert fragments[f"support {label}"][0] == n


@pytest.mark.parametrize("name", ["=HYPERLINK(1)", EVIL, 'a",@b\n"', "+cmd|x"])
def test_hostile_names_stay_text_on_the_page_and_in_tables(name):
    star = ([(0, 1), (0, 2)], {0: EVIL, 1: "b", 2: EVIL}, {(0, 1): EVIL, (0, 2): "x"})
    path = ([(0, 1), (1, 2)], {0: "b", 1: EVIL, 2: "b"}, {(0, 1): "x", (1, 2): EVIL})
    unnamed = tl.as_graph_collection([star, path] * 6)
    graphs = tl.GraphCollection(**(unnamed._arguments() | {"names": [name] * len(unnamed)}))
    y = [EVIL_CLASS, "plain"] * 6
    model = tl.GraphClassifier(depth=1).fit(graphs, y)
    summary = model.summary(graphs, y)
    assert summary["fragments"]["rows"][0]["examples"][0] == name
    page = render_evidence(summary)
    outline = outline_of(page)
    assert outline.tags.count("script") == 2
    assert "img" not in outline.tags
    assert EVIL not in page
    assert EVIL_CLASS not in page
    formula = name[0] in "=+"
    told = table_of(summary, "predictions")["name"][0]
    assert told == (f"'{name}" if formula else name)
    examples = table_of(summary, "fragments")["examples"][0]
    assert examples.startswith(f"'{name}" if formula else name)
