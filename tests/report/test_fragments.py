"""Fragments and patterns of a report."""

from __future__ import annotations

import numpy as np
import pytest

import treelens as tl
from treelens.explain.fragments import confounders, measured_with_and_without
from treelens.report import fragments


@pytest.mark.parametrize("name", ["numbers", "classes", "svm"])
def test_fragments_are_those_of_the_model(name, cases, summaries):
    model, graphs, y = cases[name]
    found = summaries[name]["fragments"]
    table = model.fragments(graphs[1::2], y[1::2], n_fragments=12)
    assert found["of_given"]
    assert len(found["rows"]) == len(table) > 0
    assert [row["rank"] for row in found["strongest"]] == table.attrs["strongest"][:3]
    for row, (rank, expected) in zip(found["rows"], table.iterrows(), strict=True):
        assert (row["rank"], row["pattern"]) == (rank, expected["pattern"])
        assert row["smarts"] == expected.get("smarts")
        assert row["effect"] == pytest.approx(expected["effect"])
        assert row["error"] == pytest.approx(expected["error"])
        assert row["support"] == expected["support"]
        if name != "numbers":
            assert sum(n for _, n, *_ in row["by_class"]) == row["support"]


def test_mean_values_with_and_without(cases, summaries):
    y = cases["numbers"][2][1::2]
    for row in summaries["numbers"]["fragments"]["rows"]:
        n = row["support"]
        total = n * row["mean_with"] + (len(y) - n) * row["mean_without"]
        assert total == pytest.approx(y.sum())


@pytest.mark.parametrize("n_given", [0, 2])
def test_with_few_graphs_fragments_are_those_of_training(cases, n_given):
    model, graphs, _ = cases["numbers"]
    found = model.summary(graphs[1 : 1 + n_given] if n_given else None)["fragments"]
    assert not found["of_given"]
    assert found["left_out"]
    assert found["n_graphs"] == len(graphs[::2])
    expected = model.fragments_["effect"].tolist()[: len(found["rows"])]
    assert [row["effect"] for row in found["rows"]] == pytest.approx(expected)


def test_a_sample_of_many_graphs(cases, monkeypatch):
    model, graphs, y = cases["numbers"]
    monkeypatch.setattr(fragments, "_MOST_SEARCHED", 20)
    monkeypatch.setattr(fragments, "_MOST_EXPLAINED", 5)
    found = model.summary(graphs[1::2], y[1::2])
    assert (found["fragments"]["n_graphs"], found["fragments"]["n_all"]) == (20, 30)
    assert found["patterns"]["n_explained"] == 5
    names = set(found["predictions"]["name"])
    assert all(set(row["examples"]) <= names for row in found["fragments"]["rows"])


@pytest.mark.parametrize("name", ["numbers", "classes", "svm"])
def test_effects_of_patterns_are_those_of_explanations(name, cases, summaries):
    model, graphs, _ = cases[name]
    totals: dict[int, list[float]] = {}
    for graph in graphs[1::2]:
        found = model.explain(graph).pattern_contributions["contribution"]
        for pattern, value in found.items():
            totals.setdefault(int(pattern), []).append(value)
    rows = summaries[name]["patterns"]["rows"]
    for row in rows[:10]:
        values = totals[row["id"]]
        assert row["effect"] == pytest.approx(np.mean(values))
        size = np.abs(values).sum() / len(graphs[1::2])
        assert row["mean_absolute_effect"] == pytest.approx(size)
    sizes = [row["mean_absolute_effect"] for row in rows]
    assert sizes == sorted(sizes, reverse=True)


def test_shares_of_classes_with_and_without(cases, summaries):
    truth = np.asarray(cases["classes"][2][1::2]).astype(str)
    for row in summaries["classes"]["fragments"]["rows"]:
        for label, n, inside, outside in row["by_class"]:
            assert inside == pytest.approx(n / row["support"])
            total = n + outside * (len(truth) - row["support"])
            assert total == pytest.approx((truth == label).sum())


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


def test_a_sample_of_many_training_graphs(cases, monkeypatch):
    model, graphs, _ = cases["numbers"]
    monkeypatch.setattr(fragments, "_MOST_SEARCHED", 20)
    monkeypatch.setattr(model, "_fragments", None)
    found = model.summary()["fragments"]
    assert (found["n_graphs"], found["n_all"]) == (20, len(graphs[::2]))
    assert found["left_out"]
