"""Fragments on the page: those of the estimator, or why there are none."""

from __future__ import annotations

import re

import pytest

import treelens as tl
from report.conftest import outline_of
from treelens.report import summarize_evidence
from treelens.report.evidence_page import render_evidence


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
    strongest = summary["fragments"]["strongest"]
    assert 1 <= len(strongest) <= 3
    assert re.findall(r"<title>Fragment (\d+):", first) == [str(row["rank"]) for row in strongest]
    sizes = [abs(row["effect"]) for row in strongest]
    assert sizes == sorted(sizes, reverse=True)
    for row in summary["fragments"]["rows"]:
        assert f"<title>Fragment {row['rank']}: " in page
    assert page.index('id="fragments"') < page.index('id="pattern-table"')


def test_names_replace_codes_in_fragments(mutag):
    graphs, y = mutag
    model = tl.GraphClassifier(depth=1).fit(graphs[::4], y[::4])
    rows = model.summary(graphs[1::4], y[1::4], names="MUTAG")["fragments"]["rows"]
    assert all(re.match(r"[A-Z]", row["pattern"]) for row in rows)
    assert {"C", "N", "O"} <= {label for row in rows for label in row["picture"]["labels"]}
