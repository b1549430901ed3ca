"""Graphs shown one by one, matched pairs, fragments and patterns."""

from __future__ import annotations

import numpy as np
import pytest

import treelens as tl
from treelens.explain.fragments import confounders, measured_with_and_without
from treelens.report import sections
from treelens.report.sections import differing_nodes, striking_pairs

KINDS = ["numbers", "classes", "svm"]


@pytest.mark.parametrize("name", KINDS)
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
        nearest, columns = row["neighbors"][0], summaries[name]["predictions"]
        assert nearest["similarity"] == pytest.approx(columns["similarity"][row["index"]])
        total = row["base"] + sum(row["contributions"]) + sum(value for _, value in row["rest"])
        assert total == pytest.approx(row["decision"], abs=1e-3)
        if name == "numbers":
            assert row["decision"] == pytest.approx(row["predicted"], abs=1e-4)
            for near in row["neighbors"]:
                assert near["value"] == pytest.approx(model.train_values_[near["index"]])
                assert near["drawing"]["molecule"]["smiles"] == near["name"]
        strongest = explained.pattern_contributions["contribution"].head(len(row["patterns"]))
        np.testing.assert_allclose([x for _, x in row["patterns"]], strongest, rtol=1e-3)


def test_kinds_of_cards(cases):
    model, graphs, y = cases["classes"]
    wrong = np.where(np.arange(len(y)) < 8, -y, y)
    rows = model.summary(graphs, wrong)["cards"]["rows"]
    worst = [row for row in rows if row["kind"] == "worst"]
    assert all(row["class"] != row["predicted"] for row in worst)
    sure = [row["probability"] for row in worst]
    assert sure == sorted(sure, reverse=True)
    assert {row["kind"] for row in rows} == {"worst", "uncertain", "similar"}
    few = model.summary(graphs[1:11])["cards"]["rows"]  # all of them, in their order
    assert [(row["index"], row["kind"]) for row in few] == [(k, "all") for k in range(10)]


def test_pairs_are_the_most_similar_of_different_classes():
    smiles = [f"{'C' * k}{end}" for k in range(1, 8) for end in ("O", "N")]
    model = tl.GraphClassifier(depth=1).fit(smiles, ["alcohol", "amine"] * 7)
    pairs, n = striking_pairs(model.model_)
    assert n == 14
    targets = model.model_.training.targets
    assert all(targets[one] != targets[other] for one, other, _ in pairs)
    assert len({x for pair in pairs for x in pair[:2]}) == 2 * len(pairs)
    similarity = [pair[2] for pair in pairs]
    assert similarity == sorted(similarity, reverse=True)
    near = model.explain(smiles[pairs[0][0]], n_neighbors=14).neighbors["similarity"]
    assert near[pairs[0][1]] == pytest.approx(similarity[0])
    for side in model.summary()["pairs"]["rows"][0]["sides"]:
        end = {"alcohol": "O", "amine": "N"}[side["class"]]
        marked = side["drawing"]["highlight"]["nodes"]
        assert [side["drawing"]["labels"][k] for k in marked] == [end]


def test_pairs_of_numbers_are_cliffs_and_what_differs_in_other_graphs(cases):
    model = cases["numbers"][0]
    pairs, values = striking_pairs(model.model_)[0], model.train_values_
    index = [abs(values[one] - values[other]) / (1 - alike) for one, other, alike in pairs]
    assert index == sorted(index, reverse=True)
    path = ([(0, 1), (1, 2)], {0: "a", 1: "b", 2: "c"})
    pair = tl.as_graph_collection([path, ([(0, 1)], {0: "a", 1: "b"})])
    assert differing_nodes(pair) == ((1, 2), (1,))
    assert differing_nodes(pair[[0, 0]]) == ((), ())


@pytest.mark.parametrize("name", KINDS)
def test_fragments_are_those_of_the_model(name, cases, summaries):
    """Those of the training graphs, as in Python and in the terminal."""
    model, _, y = cases[name]
    found, y = summaries[name]["fragments"], np.asarray(y[::2])
    table = model.fragments_.head(24)
    assert not found["of_given"]
    assert len(found["rows"]) == len(table) > 0
    for row, (rank, expected) in zip(found["rows"], table.iterrows(), strict=True):
        assert (row["rank"], row["pattern"]) == (rank, expected["pattern"])
        assert row["smarts"] == expected.get("smarts")
        assert row["effect"] == pytest.approx(expected["effect"])
        assert row["error"] == pytest.approx(expected["error"])
        n = row["support"]
        assert n == expected["support"]
        if name == "numbers":
            total = n * row["mean_with"] + (len(y) - n) * row["mean_without"]
            assert total == pytest.approx(y.sum())
            continue
        assert sum(in_class for _, in_class, *_ in row["by_class"]) == n
        for label, in_class, inside, outside in row["by_class"]:
            assert inside == pytest.approx(in_class / n)
            total = in_class + outside * (len(y) - n)
            assert total == pytest.approx((y.astype(str) == label).sum())


def test_fragments_are_those_of_training_where_it_is_known_and_of_many_a_sample(cases, monkeypatch):
    model, graphs, y = cases["numbers"]
    for few in (None, graphs[1:3]):
        found = model.summary(few)["fragments"]
        assert (found["of_given"], found["left_out"]) == (False, True)
        assert found["n_graphs"] == len(graphs[::2])
        expected = model.fragments_["effect"].tolist()[: len(found["rows"])]
        assert [row["effect"] for row in found["rows"]] == pytest.approx(expected)
    for name in ("_MOST_SEARCHED", "_SAMPLED"):
        monkeypatch.setattr(sections, name, 20)
    monkeypatch.setattr(sections, "_MOST_EXPLAINED", 5)
    monkeypatch.setattr(model, "_fragments", None)
    found = model.summary(graphs[1::2], y[1::2])
    of_training = found["fragments"]
    assert found["patterns"]["n_explained"] == 5
    assert (of_training["n_graphs"], of_training["n_all"]) == (20, len(graphs[::2]))
    assert of_training["left_out"]
    monkeypatch.setattr(model, "_fitted_graphs", None)  # as a model that does not know them
    monkeypatch.setattr(type(model), "_train_graphs", None)
    found = model.summary(graphs[1::2], y[1::2])
    assert found["fragments"]["of_given"]
    assert (found["fragments"]["n_graphs"], found["fragments"]["n_all"]) == (20, 30)
    names = set(found["predictions"]["name"])
    assert all(set(row["examples"]) <= names for row in found["fragments"]["rows"])


def test_fragments_that_come_with_something_else_are_flagged():
    """Nitriles sit on one scaffold only, and are nearly all of one class."""
    smiles = [f"{'C' * n}c1ccc2ccccc2c1C#N" for n in range(1, 13)]
    smiles += [f"{'C' * n}{ring}" for n in range(1, 13) for ring in ("C1CCCC1", "c1ccncc1", "O")]
    graphs = tl.as_graph_collection(smiles)
    codes = np.array([0] + [1] * 11 + [0, 1, 0] * 12)
    classes = np.array(["inactive", "active"])
    found = confounders(graphs, np.arange(12), codes, classes)
    assert found == ["11 of 12 are of class active", "12 of 12 have the scaffold c1ccc2ccccc2c1"]
    assert confounders(graphs, np.arange(12, 48), codes, classes) == []
    assert confounders(graphs, np.arange(14, 48, 3)) == []  # chains share no scaffold
    assert measured_with_and_without(np.arange(12), codes.astype(float)) == pytest.approx(
        (11 / 12, 1 / 3)
    )
    assert measured_with_and_without(np.arange(48), codes, 2)[1] is None
