"""One endpoint of a panel: its explanation, fragments and neighbours, against the panel."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import treelens as tl
from strategies import random_collection
from treelens.explain.effects import effects_of_graphs, inverse_covariances
from treelens.explain.jackknife import jackknife_errors
from treelens.gp.panel import Cells, CellTable, cell_covariance
from treelens.gp.panel_model import PanelProcess
from treelens.gp.panel_posterior import ExactPanel
from treelens.gp.views import shown_by
from treelens.patterns.histograms import graph_keys

pytestmark = pytest.mark.filterwarnings("ignore")
N_TRAIN = 50


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(2)
    graphs = random_collection(rng, 60, max_nodes=10)
    hidden = graphs.sizes + rng.normal(size=60)
    table = pd.DataFrame(
        {
            "size": hidden,
            "copy": 20.0 - 2.0 * hidden + rng.normal(size=60),
            "large": np.where(hidden > np.median(hidden), "yes", "no"),
        }
    )
    table.loc[::3, "size"], table.loc[1::4, "copy"], table.loc[::5, "large"] = np.nan, np.nan, None
    return graphs, table


@pytest.fixture(scope="module")
def panel(data):
    """Both processes have a part in the predictions of each endpoint, with weights of their own."""
    graphs, table = data
    y = tl.Targets(table[:N_TRAIN], transform="none")
    model = tl.GraphPanel(depth=1, max_steps=8, n_jobs=1).fit(graphs[:N_TRAIN], y)
    alone = tuple(_process_of_one(model.model_, k) for k in range(3))
    model.model_ = replace(model.model_, alone=alone)
    return model


def _process_of_one(model, column):
    """The process of an endpoint by itself, with other weights than the joint one."""
    joint = model.joint
    views = tuple(replace(v, level_weights=v.level_weights[::-1].copy()) for v in joint.views)
    shared = tuple(between[[column]][:, [column]] for between in joint.shared)
    cells = Cells.of(CellTable.plain(model.standardised(model.training.targets)[:, [column]]))
    shown = shown_by(views, model.training.views)
    among = [k.matrix(x, x) for k, x in zip(joint.kernels, shown, strict=True)]
    spreads = np.full(len(cells.values), joint.noise[column])
    found = ExactPanel.fit(among, shared, spreads, cells)
    return PanelProcess(
        np.array([column]),
        views,
        joint.kernels,
        shared,
        joint.noise[[column]],
        cells.values,
        spreads,
        found.coefficients,
        share=0.4,
        factor=found.factor,
    )


@pytest.fixture(scope="module")
def lone(panel):
    """The same, but that endpoints have nothing but a process of their own."""
    other = tl.GraphPanel(n_jobs=1)
    alone = tuple(replace(each, share=1.0) for each in panel.model_.alone)
    other.model_ = replace(panel.model_, alone=alone)
    return other


@pytest.fixture(scope="module")
def few(data):
    """Some of the cells stand for all."""
    graphs, table = data
    y = tl.Targets(table[:N_TRAIN], transform="none")
    model = tl.GraphPanel(depth=1, max_steps=3, exact_size=60, n_landmarks=40, n_jobs=1)
    return model.fit(graphs[:N_TRAIN], y)


@pytest.mark.parametrize("name", ["size", "copy", "large"])
def test_explanations_add_up_to_the_prediction_of_the_panel(data, panel, lone, few, name):
    graphs = data[0]
    for model in (panel, lone, few):
        column = model.endpoints_.index(name)
        for k in (3, N_TRAIN + 2):  # a training graph and a new one
            found = model.explain(
                graphs[k], endpoint=name, class_label="yes" if name == "large" else None
            )
            expected = model.model_.decide(graphs[k : k + 1]).mean[0, column]
            total = found.base + found.node_contributions.sum() + found.rest["contribution"].sum()
            assert total == pytest.approx(expected, abs=1e-8)
            assert found.decision == pytest.approx(expected, abs=1e-8)
            table = found.pattern_contributions
            assert not table.reset_index().duplicated(["pattern_id", "tree"]).any()
            by_view = found.view_contributions.sum()
            assert by_view == pytest.approx(found.decision - found.base, abs=1e-8)


@pytest.mark.parametrize("name", ["size", "copy", "large"])
def test_training_graphs_are_explained_without_all_their_cells(data, panel, name):
    train, column = data[0][:N_TRAIN], panel.endpoints_.index(name)
    expansion = panel.model_.endpoint(name).expansion
    found = effects_of_graphs(expansion, train, inverses=inverse_covariances(expansion))
    model = panel.model_
    joint, single = (
        _left_out(model, place)[:, own] for place, own in ((0, column), (column + 1, 0))
    )
    expected = model.offset[column] + model.scale[column] * (0.6 * joint + 0.4 * single)
    known = ~np.isnan(expected)
    assert known.sum() == model.endpoint(name).training_positions.size
    np.testing.assert_allclose(found.decisions[known], expected[known], atol=1e-8)
    owner = np.repeat(np.arange(len(train)), train.sizes)
    total = found.base + np.bincount(owner, found.phi)
    np.testing.assert_allclose(total, found.decisions, atol=1e-8)


def _left_out(model, place):
    """Means of a dense process without all cells of each graph and its copies, NaN in gaps."""
    process, shown = model.process(place), model.shown(place)
    cells = model.cells(process)
    among = [k.matrix(x, x) for k, x in zip(process.kernels, shown, strict=True)]
    matrix = cell_covariance(among, process.shared, process.spreads, cells)
    found = np.full((N_TRAIN, cells.n_endpoints), np.nan)
    keys = list(graph_keys(model.training_graphs))
    for key in set(keys):
        own = np.array([keys[g] == key for g in cells.graphs], dtype=bool)
        solved = np.linalg.solve(matrix[np.ix_(~own, ~own)], cells.values[~own])
        found[cells.graphs[own], cells.endpoints[own]] = matrix[np.ix_(own, ~own)] @ solved
    return found


def test_the_jackknife_leaves_out_all_cells_of_a_graph(data, panel):
    """Against coefficients of both processes solved anew without each training graph."""
    new, expansion = data[0][N_TRAIN : N_TRAIN + 7], panel.model_.endpoint("copy").expansion
    inverses = inverse_covariances(expansion)
    found = effects_of_graphs(expansion, new, inverses=inverses)
    assert not any(found.copies)
    nodes = np.arange(0, new.n_nodes, 3)
    weights, sums = np.linspace(0.5, 1.5, len(nodes)), []
    (error,) = jackknife_errors(found, [(nodes, weights)], inverses)
    measured = np.unique(expansion.cells.graphs)  # others are not in the sample
    for g in measured:
        terms = []
        for term, inverse in zip(expansion.terms, inverses, strict=True):
            covariance, kept = np.linalg.inv(inverse), term.cells.graphs != g
            values = covariance @ term.coefficients[0]
            alpha = np.zeros((1, len(values)))
            alpha[0, kept] = np.linalg.solve(covariance[np.ix_(kept, kept)], values[kept])
            terms.append(replace(term, coefficients=alpha, added=()))
        changed = effects_of_graphs(replace(terms[0], added=tuple(terms[1:])), new)
        sums.append(float(weights @ changed.phi[nodes]))
    n = len(measured)
    expected = np.sqrt((n - 1) / n * ((np.array(sums) - np.mean(sums)) ** 2).sum())
    assert error == pytest.approx(expected, rel=1e-6)


def test_helps_compares_errors_with_and_without_a_sibling(panel, few):
    """Against a dense joint process, conditioned on the cells of all other graphs."""
    model = panel.model_
    process, cells = model.joint, model.cells(model.joint)
    among = [k.matrix(x, x) for k, x in zip(process.kernels, model.training_graphs, strict=True)]
    matrix = cell_covariance(among, process.shared, process.spreads, cells)
    before, after = np.zeros((2, 3, 3))
    keys = list(graph_keys(model.training_graphs))
    for key in set(keys):
        own = np.array([keys[g] == key for g in cells.graphs])
        if not own.any():
            continue
        gain = np.linalg.solve(matrix[np.ix_(~own, ~own)], matrix[np.ix_(~own, own)]).T
        off = cells.values[own] - gain @ cells.values[~own]
        left = matrix[np.ix_(own, own)] - gain @ matrix[np.ix_(~own, own)]
        for a, t in enumerate(cells.endpoints[own]):
            for b, s in enumerate(cells.endpoints[own]):
                before[t, s] += off[a] ** 2
                after[t, s] += (off[a] - left[a, b] / left[b, b] * off[b]) ** 2
    expected = 1.0 - after / before
    np.fill_diagonal(expected, np.nan)
    np.testing.assert_allclose(panel.helps_, expected, atol=1e-6)
    table = panel.sharing_
    assert table.loc["size", "helped_by"] == panel.helps_.loc["size"].idxmax()
    np.testing.assert_allclose(table["gain"], table["new"] - table["single"])
    with pytest.raises(AttributeError, match="landmarks"):
        few.helps_  # noqa: B018
    assert few.sharing_["helped_by"].isna().all()


def test_the_report_says_what_is_expected_and_how_it_came_out(data, panel, tmp_path):
    graphs, table = data
    new, truth = graphs[N_TRAIN:], table[N_TRAIN:]
    found = panel.summary(new, truth)
    json.dumps(found, allow_nan=False)
    scores = panel.scores(new, truth)
    for each in found["endpoints"]:
        n_known = each["test"]["new"]["n"]
        assert n_known <= truth[each["endpoint"]].notna().sum()
        assert 0 <= each["batch"]["outside"] <= 1
        assert each["batch"]["against_leave_one_out"] > 0
    if not found["data"]["n_in_training"]:
        size = found["endpoints"][0]["test"]["new"]["rmse"]
        assert size == pytest.approx(scores.loc["size", "rmse"])
    decisions = panel.model_.decide(new).mean
    for card in found["cards"]:
        assert [cell["endpoint"] for cell in card["endpoints"]] == panel.endpoints_
        for column, cell in enumerate(card["endpoints"]):
            total = cell["base"] + sum(cell["contributions"])
            sign = -1.0 if cell["toward"] == "no" else 1.0
            assert total == pytest.approx(sign * decisions[card["index"], column], abs=1e-3)
    without = panel.summary()
    assert without["cards"] is None
    page = panel.report(tmp_path / "panel.html", new, truth).read_text()
    assert page.count("<article") == len(found["cards"])
    panel.endpoint("large").report(tmp_path / "large.html", new[[0, 1]], ["yes", "no"])


def test_neighbours_are_graphs_with_a_value_of_the_endpoint(data, panel):
    graphs, table = data
    near = panel.explain(graphs[N_TRAIN], endpoint="size").neighbors
    np.testing.assert_allclose(near["value"], table["size"][near.index])
    every = panel.explain(graphs[N_TRAIN], endpoint="size", n_neighbors=N_TRAIN)
    assert len(every.neighbors) == table["size"][:N_TRAIN].notna().sum()


def test_fragments_have_a_row_for_each_endpoint_and_pattern(data, panel):
    graphs, table = data
    found = panel.fragments(graphs[:N_TRAIN], table[:N_TRAIN])
    assert set(found["endpoint"]) <= set(panel.endpoints_)
    assert found.index.is_unique
    one = panel.fragments(graphs[:N_TRAIN], table[:N_TRAIN], endpoint="copy")
    np.testing.assert_allclose(found.loc[found["endpoint"] == "copy", "effect"], one["effect"])
    np.testing.assert_allclose(one["effect"], panel.endpoint("copy").fragments_["effect"])
    assert one.attrs["left_out"]
    mine = panel.fragments_
    assert mine["endpoint"].tolist() == found["endpoint"].tolist()
    has = one.loc[1, "drawing"].holders
    measured = table["copy"][:N_TRAIN].dropna().to_numpy()
    assert one.loc[1, "mean_value"] == pytest.approx(measured[has].mean())


def test_an_endpoint_must_be_named_and_belongs_to_its_panel(data, panel, tmp_path):
    graphs = data[0]
    with pytest.raises(ValueError, match=r"3 endpoints .*endpoint='size'"):
        panel.explain(graphs[0])
    with pytest.raises(ValueError, match=r"one of size, copy, large; got 'weight'"):
        panel.explain(graphs[0], endpoint="weight")
    one = panel.endpoint("size")
    with pytest.raises(ValueError, match="save the panel"):
        one.save(tmp_path / "size.treelens")
    np.testing.assert_allclose(one.predict(graphs), panel.predict(graphs)[:, 0].astype(float))
    assert panel.endpoint("size") is one
    assert len(one.patterns_) == len(panel.weights_)
