"""The report on Gaussian processes: plain data whose numbers are right, and a page of them."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from sklearn import metrics
from sklearn.exceptions import ConvergenceWarning

import treelens as tl
from report.conftest import EVIL, EVIL_CLASS, outline_of
from treelens.report import doubts, effects, summarize_evidence, write_evidence_report
from treelens.report.evidence_page import render_evidence
from treelens.report.evidence_scores import number_scores, reliability
from treelens.report.units import Units


@pytest.fixture(scope="module")
def of_numbers(number_model, molecules):
    graphs, y = molecules
    return number_model.summary(graphs[1::2], y[1::2])


@pytest.fixture(scope="module")
def of_classes(class_model, synthetic):
    graphs, y = synthetic
    return class_model.summary(graphs[1::2], y[1::2])


# --- plain data ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["of_numbers", "of_classes"])
def test_the_summary_is_plain_data(name, request):
    summary = request.getfixturevalue(name)
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary


def test_scores_of_numbers(of_numbers, number_model, molecules):
    graphs, y = molecules
    mean, std = number_model.predict(graphs[1::2], return_std=True)
    found, truth = of_numbers["scores"], y[1::2]
    assert found["rmse"] == pytest.approx(metrics.root_mean_squared_error(truth, mean))
    assert found["mae"] == pytest.approx(metrics.mean_absolute_error(truth, mean))
    assert found["r2"] == pytest.approx(metrics.r2_score(truth, mean))
    within = np.abs(truth - mean) <= 1.6448536 * std
    assert found["coverage"] == pytest.approx(within.mean())
    nominal = found["calibration"]["nominal"].index(0.9)
    assert found["calibration"]["observed"][nominal] == pytest.approx(within.mean())


def test_left_out_scores_are_those_of_the_model(of_numbers, number_model):
    for name in ("rmse", "r2", "nlpd", "coverage"):
        assert of_numbers["left_out"][name] == pytest.approx(getattr(number_model.loo_, name))


def test_scores_of_classes(of_classes, class_model, synthetic):
    graphs, y = synthetic
    probabilities = class_model.predict_proba(graphs[1::2])
    found, truth = of_classes["scores"], y[1::2]
    assert found["log_loss"] == pytest.approx(metrics.log_loss(truth, probabilities))
    assert found["accuracy"] == np.mean(class_model.predict(graphs[1::2]) == truth)
    assert found["roc_auc"] == pytest.approx(metrics.roc_auc_score(truth, probabilities[:, 1]))
    assert of_classes["left_out"]["accuracy"] == pytest.approx(class_model.loo_.accuracy)
    assert of_classes["left_out"]["log_loss"] == pytest.approx(class_model.loo_.log_loss)


def test_reliability_with_more_than_two_classes_is_of_the_class_predicted():
    said = np.array([[0.7, 0.2, 0.1], [0.1, 0.72, 0.18], [0.5, 0.3, 0.2]])
    found = reliability(np.array([0, 2, 0]), said)
    assert [(part["n"], part["observed"]) for part in found] == [(1, 1.0), (2, 0.5)]


def test_a_scatter_of_many_graphs_is_a_fair_sample():
    rng = np.random.default_rng(0)
    values, error = rng.normal(size=5000), rng.normal(size=5000)
    found = number_scores(values, values + error, np.ones(5000), 0.0)["points"]
    assert (found["n_all"], len(found["index"])) == (5000, 800)
    np.testing.assert_array_equal(found["measured"], values[found["index"]])
    drawn = found["predicted"] - found["measured"]
    assert np.sqrt(np.mean(drawn**2)) == pytest.approx(np.sqrt(np.mean(error**2)), rel=0.1)


def test_one_measurement_has_no_r2():
    found = number_scores(np.array([1.0]), np.array([2.0]), np.array([1.0]), 0.0)
    assert found["r2"] is None
    assert found["rmse"] == 1.0


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


@pytest.mark.filterwarnings("ignore:Training never saw")
def test_effects_are_those_of_the_explanations(number_model, molecules):
    graphs, _ = molecules
    few = graphs[1:9:2]
    rows = summarize_evidence(number_model.model_, few)["patterns"]["rows"]
    added = [number_model.explain(g).pattern_contributions["contribution"] for g in few]
    for row in rows[:20]:
        held = [frame[row["id"]] for frame in added if row["id"] in frame.index]
        assert row["n_holders"] == len(held)
        assert row["effect"] == pytest.approx(np.mean(held))
        assert row["size"] == pytest.approx(np.abs(held).sum() / len(few))
        if len(held) > 1:
            expected = np.std(held, ddof=1) / np.sqrt(len(held))
            assert row["effect_error"] == pytest.approx(expected, abs=1e-12)
        else:
            assert row["effect_error"] is None
    assert [row["size"] for row in rows] == sorted((r["size"] for r in rows), reverse=True)


def test_patterns_carry_weight_support_and_exact_smarts(of_numbers, number_model, molecules):
    chem = pytest.importorskip("rdkit.Chem")
    table = number_model.patterns_
    training = [chem.MolFromSmiles(x) for x in molecules[0][::2].graph_data["smiles"]]
    for row in of_numbers["patterns"]["rows"]:
        expected = table.loc[row["id"]]
        assert (row["text"], row["support"]) == (expected["pattern"], expected["support"])
        assert row["weight"] == pytest.approx(expected["weight"])
        query = chem.MolFromSmarts(row["smarts"])
        assert sum(x.HasSubstructMatch(query) for x in training) == row["support"], row["text"]
    assert {row["forest_tree"] for row in of_numbers["patterns"]["rows"]} == {"labels", "fine"}


def test_without_graphs_effects_are_those_in_training(number_model, molecules):
    found = summarize_evidence(number_model.model_)
    for name in ("scores", "given", "cases", "examples"):
        assert found[name] is None
    assert not found["patterns"]["of_given"]
    assert found["patterns"]["n_graphs"] == len(molecules[1][::2])
    same = summarize_evidence(number_model.model_, molecules[0][::2])["patterns"]
    for ours, theirs in zip(found["patterns"]["rows"], same["rows"], strict=True):
        assert ours["size"] == pytest.approx(theirs["size"])
    outline_of(render_evidence(found))


def test_parts_of_similarity_add_up_to_all_of_it(of_numbers, number_model):
    levels = of_numbers["learning"]["levels"]
    assert sum(level["share"] for level in levels) == pytest.approx(1.0)
    given = [level["weight"] for level in levels]
    np.testing.assert_allclose(given, number_model.model_.weighted.level_weights)
    assert of_numbers["learning"]["sentence"] == number_model.learning_gain_.sentence


# --- what to distrust ---------------------------------------------------------------------------


def levels_of(summary) -> dict[str, str]:
    return {item["text"]: item["level"] for item in summary["doubts"]}


def test_memory_is_called_memory(number_model, molecules):
    graphs, y = molecules
    found = levels_of(number_model.summary(graphs[::2], y[::2]))
    (text,) = (text for text in found if "may remember" in text)
    assert found[text] == "alarm"
    assert f"{len(y[::2])} of the {len(y[::2])} graphs" in text


def test_strange_graphs_are_noticed(number_model):
    pytest.importorskip("rdkit")
    found = levels_of(number_model.summary(["[Na+].[Cl-]", "FC(F)(F)I", "BrBr"]))
    (unseen,) = (text for text in found if "never saw" in text)
    (far,) = (text for text in found if "less like any training graph" in text)
    assert found[unseen] == found[far] == "alarm"
    assert unseen.startswith("3 of the 3")


def test_a_search_that_did_not_converge_comes_first(molecules):
    graphs, y = molecules
    with pytest.warns(ConvergenceWarning):
        model = tl.GraphRegressor(depth=1, max_steps=1).fit(graphs[::2], y[::2])
    assert not model.converged_
    first = model.summary()["doubts"][0]
    assert first["level"] == "alarm"
    assert "before it converged" in first["text"]


@pytest.mark.parametrize(
    ("interval", "level"),
    [
        ((0.5, 0.8), "alarm"), ((0.85, 0.95), "fine"), ((0.905, 0.915), "fine"),
        ((0.93, 1.0), "notice"),
    ],
)  # fmt: skip
def test_intervals_are_judged_by_what_so_many_graphs_can_tell(interval, level):
    scores = {"coverage": sum(interval) / 2, "coverage_interval": interval}
    assert doubts._coverage(scores, "the test set")["level"] == level


def test_usual_similarity_is_that_of_training_graphs(number_model):
    fitted = number_model.model_
    kernel = fitted.kernel_rows(fitted.basis_graphs) / fitted.scales.amplitude
    np.fill_diagonal(kernel, 0.0)
    expected = np.quantile(kernel.max(axis=1), 0.05)
    assert doubts.usual_similarity(number_model.model_) == pytest.approx(expected)


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


# --- the page -----------------------------------------------------------------------------------


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


@pytest.mark.parametrize(
    ("std", "value", "text"),
    [
        (2.0, -3.14159, "−3.14"), (0.02, 0.5, "0.5000"), (300.0, 12345.6, "12,346"),
        (1e-9, 2.5e-9, "2.5e−09"), (0.0, 1.0, "1.00"), (2.0, -0.001, "0.00"),
    ],
)  # fmt: skip
def test_numbers_are_written_with_as_many_digits_as_their_spread_allows(std, value, text):
    assert Units.of({"std": std})(value) == text


def test_writing(number_model, molecules, tmp_path):
    path = tmp_path / "report.html"
    assert number_model.report(path, molecules[0][1:9]) == path
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(FileNotFoundError, match="does not exist"):
        write_evidence_report(number_model.model_, tmp_path / "nowhere" / "report.html")
