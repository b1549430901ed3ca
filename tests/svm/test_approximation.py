"""The classifier on explicit features: near the exact one, explained, saved."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import treelens as tl
from treelens import Graph
from treelens.svm.approximation import APPROXIMATIONS

FAST = {"depth": 2, "gamma": 1.0, "C": 10.0, "n_components": 256, "random_state": 0}


@pytest.fixture(scope="module")
def models(mutag):
    """One fitted model per approximation, with learned weights; even graphs train."""
    graphs, y = mutag
    return {
        name: tl.GraphSVC(approximation=name, weight_radius=1.0, **FAST).fit(graphs[::2], y[::2])
        for name in APPROXIMATIONS
    }


@pytest.mark.parametrize("name", list(APPROXIMATIONS))
def test_decisions_are_near_those_of_the_exact_machine(mutag, name):
    graphs, y = mutag
    kernel = "wwl-linear" if name == "unary" else "wwl"
    settings = {
        "kernel": kernel,
        "depth": 2,
        "weight_radius": 0,
        "gamma": 1.0,
        "C": 10.0,
        "random_state": 0,
    }
    exact = tl.GraphSVC(cv=2, **settings).fit(graphs[::2], y[::2])
    near = tl.GraphSVC(approximation=name, **settings).fit(graphs[::2], y[::2])
    decisions = exact.decision_function(graphs), near.decision_function(graphs)
    assert stats.spearmanr(*decisions).statistic > 0.9  # another loss, so not the same numbers
    assert exact.score(graphs, y) - near.score(graphs, y) < 0.03


@pytest.mark.parametrize("kernel", ["wl-oa", "wl-subtree", "wl-subtree-cosine"])
def test_unary_features_are_the_exact_machine_on_unbalanced_classes_too(mutag, kernel):
    graphs, y = mutag
    codes = (np.asarray(y) == y[0]).astype(int)
    few = np.flatnonzero(codes == codes.min())[:25]
    rows = np.sort(np.concatenate([np.flatnonzero(codes != codes.min()), few]))
    settings = {"kernel": kernel, "depth": 2, "weight_radius": 0, "C": 1.0, "random_state": 0}
    exact = tl.GraphSVC(cv=2, **settings).fit(graphs[rows], codes[rows])
    near = tl.GraphSVC(approximation="unary", **settings).fit(graphs[rows], codes[rows])
    assert np.mean(exact.predict(graphs) == near.predict(graphs)) > 0.97
    decisions = exact.decision_function(graphs), near.decision_function(graphs)
    assert np.corrcoef(*decisions)[0, 1] > 0.97


def test_bins_leave_out_scales_that_too_few_grids_can_see():
    graphs, y = tl.make_synthetic(n_per_substructure=10, random_state=0)
    settings = {
        "approximation": "random-binning",
        "depth": 2,
        "weight_radius": 0,
        "random_state": 0,
    }
    chosen = tl.GraphSVC(n_components=512, **settings).fit(graphs, y).best_params_
    assert chosen["gamma"] * 512 / 2 >= 100
    assert chosen["scored_on"] == "the exact kernel"
    only = tl.GraphSVC(n_components=64, gamma=0.1, **settings).fit(graphs, y)
    assert only.best_params_["gamma"] == 0.1  # what the user asks for is done


@pytest.mark.parametrize("name", list(APPROXIMATIONS))
def test_saving_and_loading_keeps_every_number(mutag, models, name, tmp_path):
    graphs, _ = mutag
    models[name].save(tmp_path / "model.treelens")
    loaded = tl.load(tmp_path / "model.treelens")
    for method in ("decision_function", "predict_proba"):
        np.testing.assert_array_equal(
            getattr(loaded, method)(graphs), getattr(models[name], method)(graphs)
        )


def test_three_classes_and_a_search():
    graphs, y = tl.make_synthetic(n_per_substructure=8, random_state=0)
    three = np.array(["a", "b", "c"])[(np.arange(len(y)) // 8) % 3]
    model = tl.GraphSVC(
        depth=[1, 2], weight_radius=[0, 1.0], gamma=[1.0, 3.0], C=[1.0, 10.0], random_state=0,
        approximation="random-binning", n_components=128,
    ).fit(graphs, three)  # fmt: skip
    assert model.decision_function(graphs).shape == (len(y), 3)
    assert model.score(graphs, three) > 0.8
    assert model.best_params_["n_candidates"] == 16
    assert model.learning_gain_ is not None


def test_results_do_not_depend_on_the_number_of_threads(mutag):
    graphs, y = mutag
    one, two = (
        tl.GraphSVC(approximation="random-binning", weight_radius=1.0, n_jobs=n, **FAST)
        .fit(graphs[:80], y[:80])
        .decision_function(graphs)
        for n in (1, 2)
    )
    np.testing.assert_array_equal(one, two)


def test_many_bins_give_the_decisions_of_the_exact_machine(mutag):
    """The same loss on nearly the same kernel: not only the same order, the same numbers."""
    graphs, y = mutag
    settings = {"depth": 2, "weight_radius": 0, "gamma": 3.0, "C": 10.0, "random_state": 0}
    exact = tl.GraphSVC("wwl", cv=2, **settings).fit(graphs[::2], y[::2])
    near = tl.GraphSVC("wwl", approximation="random-binning", n_components=8192, **settings).fit(
        graphs[::2], y[::2]
    )
    wanted, found = exact.decision_function(graphs), near.decision_function(graphs)
    assert np.corrcoef(wanted, found)[0, 1] > 0.99
    assert np.abs(wanted - found).mean() < 0.1 * np.abs(wanted).mean()


def test_a_report_on_random_bins(mutag, models, tmp_path):
    graphs, y = mutag
    path = tmp_path / "report.html"
    models["random-binning"].report(path, graphs[1:20:2], y[1:20:2])
    assert "</html>" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["random-binning", "nystroem", "unary"])
def test_classes_without_a_majority_among_their_look_alikes_are_told_apart(name):
    """45 % of the graphs of a kind are of its class: that class, not a random one, is named."""
    rng = np.random.default_rng(0)
    codes = np.arange(420) % 10
    kinds = np.where(rng.random(420) < 0.45, codes, rng.integers(10, size=420))
    graphs = [Graph((f"kind {kind}", "C", "CNO"[rng.integers(3)]), ((0, 1), (1, 2)))
              for kind in kinds]  # fmt: skip
    graphs = tl.as_graph_collection(graphs)
    model = tl.GraphSVC(
        "wl-oa" if name == "unary" else "wwl", 1, 0, 1.0, [1.0, 10.0],
        approximation=name, n_components=256, random_state=0,
    ).fit(graphs[:300], codes[:300])  # fmt: skip
    best = np.mean(kinds[300:] == codes[300:])  # of those who name the class of the kind
    assert model.score(graphs[300:], codes[300:]) > best - 0.08


def test_forms_that_an_approximation_lacks_are_refused(mutag):
    graphs, y = mutag
    with pytest.raises(ValueError, match="features for the kernels laplacian, wwl"):
        tl.GraphSVC("tanimoto", approximation="random-binning").fit(graphs, y)
