"""The domain of applicability on the page: that of the estimator."""

from __future__ import annotations

import pytest

from treelens.report.evidence_page import render_evidence


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
