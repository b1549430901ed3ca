"""The summary of any model: plain data that agrees with the model, and checks."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import treelens as tl
from report.conftest import QUICK
from treelens.report.predicted import predict_graphs
from treelens.report.summary import coverage_check

KINDS = ["numbers", "classes", "svm"]


@pytest.mark.parametrize("name", KINDS)
def test_plain_data_with_the_same_keys(cases, summaries, name):
    summary, weights = summaries[name], cases[name][0].model_.weights
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary
    assert set(summary) == set(summaries["numbers"])
    assert summary["noun"] == ("molecule" if name == "numbers" else "graph")
    assert (summary["svm"] is None) == (name != "svm")
    assert (summary["gp"] is None) == (name == "svm")
    levels = summary["learning"]["levels"]
    assert sum(level["n_patterns"] for level in levels) == len(weights)
    assert sum(level["share"] for level in levels) == pytest.approx(1.0)
    assert max(level["max"] for level in levels) == pytest.approx(weights.max())


@pytest.mark.parametrize("name", KINDS)
def test_the_model_alone(cases, name):
    model, graphs, _ = cases[name]
    found = model.summary()
    json.dumps(found, allow_nan=False)
    for key in ("data", "scores", "cards", "predictions", "domain"):
        assert found[key] is None
    n_train = len(graphs[::2])
    assert found["validation"]["n_graphs"] == found["model"]["n_training_graphs"] == n_train
    assert not found["fragments"]["of_given"]
    assert found["patterns"]["rows"]


@pytest.mark.parametrize("name", KINDS)
def test_a_model_from_a_file(cases, summaries, name, tmp_path):
    model, graphs, y = cases[name]
    model.save(tmp_path / "model.treelens")
    loaded = tl.load(tmp_path / "model.treelens")
    found, expected = loaded.summary(graphs[1::2], y[1::2]), summaries[name]
    for key in ("model", "validation", "scores", "learning", "predictions"):
        assert found[key] == expected[key] or np.allclose(
            list(_numbers(found[key])), list(_numbers(expected[key])), rtol=1e-6, atol=1e-9
        )
    alone = loaded.summary()
    if loaded._train_graphs is None:
        assert alone["fragments"] is None
        assert alone["pairs"] is None


def _numbers(value):
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for part in value:
            yield from _numbers(part)
    elif isinstance(value, (int, float)):
        yield value


@pytest.mark.parametrize("in_blocks", [True, False])
def test_a_model_of_landmarks(molecules, tmp_path, in_blocks):
    graphs, y = molecules
    data = (tl.CollectionBlocks(graphs, y, 15),) if in_blocks else (graphs, y)
    model = tl.GraphRegressor(depth=1, exact_size=12, n_landmarks=6, random_state=0).fit(*data)
    model.save(tmp_path / "m.treelens")
    for fitted in (model, tl.load(tmp_path / "m.treelens")):
        found = fitted.summary(graphs, y)
        json.dumps(found, allow_nan=False)
        assert found["model"]["n_basis_graphs"] < found["model"]["n_training_graphs"]
        assert any("in blocks" in check["text"] for check in found["checks"]) == in_blocks
        if in_blocks:
            assert found["model"]["n_in_all"] == len(y)
            assert found["validation"]["n_graphs"] == 12
            assert found["scores"]["n_graphs"] == len(y) - 12


def test_learning_of_a_gaussian_process(summaries, cases):
    gain, found = cases["numbers"][0].learning_gain_, summaries["numbers"]["learning"]
    assert found["sentence"] in gain.sentence
    scores = {row["weights"]: row["score"] for row in found["compared"]}
    assert list(scores.values()) == pytest.approx(list(gain.compared.values()))
    assert sum(row["used"] for row in found["compared"]) == 1


def test_learning_of_an_svm(synthetic, summaries):
    graphs, y = synthetic
    model = tl.GraphSVC("wwl", 2, [0.0, 3.0], **QUICK).fit(graphs, y)
    found, gain = model.summary()["learning"], model.learning_gain_
    assert f"{100 * gain['difference']:+.1f}" in found["sentence"]
    scores = [row["score"] for row in found["compared"]]
    assert scores == pytest.approx([gain["uniform_score"], gain["learned_score"]])
    assert summaries["svm"]["learning"]["compared"] == []  # only one kind was tried


@pytest.mark.parametrize("name", ["numbers", "classes"])
def test_the_domain_is_that_of_the_estimator(cases, summaries, name):
    model, graphs, _ = cases[name]
    found, table = summaries[name]["domain"], model.domain(graphs[1::2])
    assert found["n_inside"] == table["in_domain"].sum()
    assert found["least_similarity"] == pytest.approx(model.domain_.least_similarity)
    furthest = table["similarity"].nsmallest(len(found["furthest"]))
    assert [row["similarity"] for row in found["furthest"]] == pytest.approx(furthest.tolist())
    inside = table["in_domain"].tolist()
    assert summaries[name]["predictions"]["in_domain"] == inside
    counted = found["quality"]["inside"]["n_graphs"] + found["quality"]["outside"]["n_graphs"]
    assert counted == summaries[name]["scores"]["n_graphs"]


def level(summary, words: str) -> str:
    (found,) = [check["level"] for check in summary["checks"] if words in check["text"]]
    return found


def test_unusual_graphs(cases):
    found = cases["numbers"][0].summary(["[Na+].[Cl-]", "FC(F)(F)I", "BrBr", "CCCO"])
    assert level(found, "do not occur") == level(found, "domain of applicability") == "alarm"
    assert 4 - found["domain"]["n_inside"] >= 3
    star = ([(0, k) for k in range(1, 9)], dict.fromkeys(range(9), "new"))
    assert level(cases["svm"][0].summary([star] * 3), "less similar") == "alarm"


def test_a_search_that_did_not_converge_comes_first(molecules):
    graphs, y = molecules
    with pytest.warns(ConvergenceWarning):
        model = tl.GraphRegressor(depth=1, max_steps=1).fit(graphs[::2], y[::2])
    first = model.summary()["checks"][0]
    assert first["level"] == "alarm"
    assert "before it converged" in first["text"]


def test_equal_graphs_of_different_classes(cases):
    model, graphs, y = cases["svm"]
    twice = [0, 0, 2, 4]
    found = model.summary(graphs[twice], [y[0], -y[0], y[2], y[4]])
    assert level(found, "another class") == "notice"
    assert level(model.summary(graphs[1::2], y[1::2]), "different classes") == "fine"


@pytest.mark.parametrize(
    ("interval", "expected"),
    [
        ((0.5, 0.8), "alarm"),
        ((0.85, 0.95), "fine"),
        ((0.905, 0.915), "fine"),
        ((0.93, 1.0), "notice"),
    ],
)
def test_coverage(interval, expected):
    scores = {"coverage": np.mean(interval), "coverage_interval": interval}
    assert coverage_check(scores, "x")[0][0] == expected
    assert coverage_check({}, "x") == []


def test_all_parts_are_about_the_same_of_two_classes(cases):
    _, graphs, y = cases["classes"]
    named = [np.where(y == y[0], *names) for names in (("active", "inactive"), ("yes", "no"))]
    train, test = np.arange(len(y)) % 3 > 0, np.arange(len(y)) % 3 == 0
    (one, first), (other, second) = (
        (model, model.summary(graphs[test], target[test]))
        for target in named
        for model in [tl.GraphClassifier(1, "uniform", n_jobs=1).fit(graphs[train], target[train])]
    )
    assert (first["model"]["positive"], second["model"]["positive"]) == ("active", "yes")
    decisions = [model.explain(graphs[0]).decision for model in (one, other)]
    # Graphs are drawn by their content, classes included, so the two searches see other parts.
    assert decisions[0] == pytest.approx(decisions[1], rel=1e-2)
    for key in ("scores", "validation"):
        assert first[key]["roc"][0]["class"] == first[key]["thresholds"]["positive"] == "active"
        parts = [[part["predicted"] for part in x[key]["reliability"]] for x in (first, second)]
        assert parts[0] == pytest.approx(parts[1], rel=1e-2)
    effects = [{row["id"]: row["effect"] for row in x["patterns"]["rows"]} for x in (first, second)]
    both = effects[0].keys() & effects[1].keys()  # patterns of nearly equal effects are the last
    assert len(both) >= 0.95 * len(effects[0])
    for k in both:
        assert effects[0][k] == pytest.approx(effects[1][k], rel=0.01, abs=3e-3)


def test_contributions_name_the_scale_that_they_are_on(molecules, tmp_path):
    """Values with a long tail: predictions are in their units, contributions on another scale."""
    graphs, _ = molecules
    rng = np.random.default_rng(0)
    y = np.exp(
        2.0 * np.array([graph.n_nodes for graph in graphs]) / 5.0 + rng.normal(size=len(graphs))
    )
    targets = tl.Targets(y, transform="normal_scores", name="half-life")
    model = tl.GraphRegressor(depth=1, max_steps=5, n_jobs=1).fit(graphs, targets)
    explanation = model.explain(graphs[0])
    assert explanation.scale == "normal scores"
    assert f"{explanation.decision:.3f} (normal scores)" in explanation.sentence
    found = model.summary(graphs, targets)
    assert found["model"]["scale"] == "normal scores"
    page = model.report(tmp_path / "r.html", graphs, targets).read_text("utf-8")
    assert page.count("on the scale of normal scores") > 1
    given = predict_graphs(model, graphs, targets)
    wide = given.learned_std > np.quantile(model.model_.record.left_out.std, 0.95)
    (said,) = (check for check in found["checks"] if "wider intervals" in check["text"])
    assert said["text"].startswith(f"{int(wide.sum())} of")
    assert (given.std > np.quantile(model.model_.record.left_out.std, 0.95)).sum() > wide.sum()
    logs = tl.GraphRegressor(depth=1, max_steps=5, n_jobs=1)
    logs.fit(graphs, tl.Targets(y, transform="log10"))
    assert logs.summary()["model"]["scale"] is None  # all of the report is on it
    assert logs.explain(graphs[0]).scale == "log10"
