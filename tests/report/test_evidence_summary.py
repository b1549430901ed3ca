"""The summary of a Gaussian process: plain data whose numbers are right."""

from __future__ import annotations

import json

import pytest


@pytest.mark.parametrize("name", ["of_numbers", "of_classes"])
def test_the_summary_is_plain_data(name, request):
    summary = request.getfixturevalue(name)
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary


def test_contributions_add_up_to_the_prediction(of_numbers, number_model, molecules):
    graphs, _ = molecules
    rows = of_numbers["examples"]["rows"]
    assert {row["kind"] for row in rows} == {"worst", "uncertain", "typical"}
    predicted = number_model.predict(graphs[1::2])
    for row in rows:
        total = row["base"] + sum(row["contributions"])
        assert total == pytest.approx(predicted[row["index"]], abs=1e-4)
        assert row["decision"] == pytest.approx(row["predicted"], abs=1e-5)
        assert row["neighbors"][0]["similarity"] == pytest.approx(row["similarity"])


def test_a_pair_of_graphs_has_one_similarity(of_numbers, number_model, molecules):
    """In the list, on the cards, in explanations and in the table of predictions."""
    graphs, _ = molecules
    table = number_model.predict_table(graphs[1::2])
    for row in of_numbers["cases"]["all"]:
        assert row["similarity"] == pytest.approx(table["similarity"].iloc[row["index"]])
    for row in of_numbers["examples"]["rows"][:3]:
        near = number_model.explain(graphs[1::2][row["index"]], n_neighbors=10**6).neighbors
        for side in row["neighbors"]:
            assert side["similarity"] == pytest.approx(near.loc[side["index"], "similarity"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"y": [1.0]}, "without X"),
        ({"X": ["CC", "CCC"], "y": [1.0]}, "2 graphs but 1 values"),
        ({"X": ["CC"], "y": ["high"]}, "not numbers"),
    ],
)
def test_what_does_not_fit_is_refused(number_model, arguments, message):
    with pytest.raises(ValueError, match=message):
        number_model.summary(**arguments)
