"""Graphs shown one by one, and matched pairs."""

from __future__ import annotations

import numpy as np
import pytest

import treelens as tl
from treelens.report.cards import differing_nodes, drawing_data, striking_pairs


@pytest.mark.parametrize("name", ["numbers", "classes", "svm"])
def test_contributions_add_up(name, cases, summaries):
    model, graphs, _ = cases[name]
    rows = summaries[name]["cards"]["rows"]
    assert 4 <= len(rows) <= 12
    assert len({row["index"] for row in rows}) == len(rows)
    for row in rows:
        explained = model.explain(graphs[1::2][row["index"]])
        np.testing.assert_allclose(
            row["contributions"], explained.node_contributions, rtol=1e-4, atol=1e-5
        )
        total = row["base"] + row["covariates"] + sum(row["contributions"])
        assert total == pytest.approx(row["decision"], abs=1e-3)
        if name == "numbers":
            assert row["decision"] == pytest.approx(row["predicted"], abs=1e-4)
        for pattern, _ in row["patterns"]:
            assert str(pattern) in summaries[name]["pattern_texts"]


def test_a_few_graphs_are_shown_in_their_order(cases):
    model, graphs, _ = cases["numbers"]
    rows = model.summary(graphs[1:11])["cards"]["rows"]
    assert [row["index"] for row in rows] == list(range(10))
    assert {row["kind"] for row in rows} == {"all"}


def test_kinds_of_cards(cases):
    model, graphs, y = cases["classes"]
    wrong = np.where(np.arange(len(y)) < 8, -y, y)
    rows = model.summary(graphs, wrong)["cards"]["rows"]
    worst = [row for row in rows if row["kind"] == "worst"]
    assert all(row["class"] != row["predicted"] for row in worst)
    sure = [row["probability"] for row in worst]
    assert sure == sorted(sure, reverse=True)
    assert {row["kind"] for row in rows} == {"worst", "uncertain", "similar"}


def test_neighbours_are_training_graphs_with_their_targets(cases, summaries):
    model = cases["numbers"][0]
    for row in summaries["numbers"]["cards"]["rows"]:
        for near in row["neighbors"]:
            assert near["value"] == pytest.approx(model.train_values_[near["index"]])
            assert near["drawing"]["molecule"]["smiles"] == near["name"]


def test_large_graphs_and_long_labels():
    long = tl.as_graph_collection(
        [([(k, k + 1) for k in range(200)], dict.fromkeys(range(201), 0))]
    )
    assert drawing_data(long[0]) is None
    small = tl.as_graph_collection([([(0, 1)], {0: "x" * 99, 1: "b"})])
    assert len(drawing_data(small[0])["labels"][0]) == 40


def test_pairs_are_the_most_similar_of_different_classes():
    smiles = [f"{'C' * k}{end}" for k in range(1, 8) for end in ("O", "N")]
    model = tl.GraphClassifier(depth=1).fit(smiles, ["alcohol", "amine"] * 7)
    pairs, n = striking_pairs(model.model_)
    assert n == 14
    targets = model.model_.training.targets
    assert all(targets[pair.one] != targets[pair.other] for pair in pairs)
    assert len({x for pair in pairs for x in pair[:2]}) == 2 * len(pairs)
    similarity = [pair.similarity for pair in pairs]
    assert similarity == sorted(similarity, reverse=True)
    near = model.explain(smiles[pairs[0].one], n_neighbors=14).neighbors["similarity"]
    assert near[pairs[0].other] == pytest.approx(similarity[0])
    for side in model.summary()["pairs"]["rows"][0]["sides"]:
        end = {"alcohol": "O", "amine": "N"}[side["class"]]
        marked = side["drawing"]["highlight"]["nodes"]
        assert [side["drawing"]["labels"][k] for k in marked] == [end]


def test_pairs_of_numbers_are_cliffs(cases):
    model = cases["numbers"][0]
    pairs, values = striking_pairs(model.model_)[0], model.train_values_
    index = [abs(values[p.one] - values[p.other]) / (1 - p.similarity) for p in pairs]
    assert index == sorted(index, reverse=True)


def test_what_differs_in_other_graphs():
    path = ([(0, 1), (1, 2)], {0: "a", 1: "b", 2: "c"})
    pair = tl.as_graph_collection([path, ([(0, 1)], {0: "a", 1: "b"})])
    assert differing_nodes(pair) == ((1, 2), (1,))
    assert differing_nodes(pair[[0, 0]]) == ((), ())
