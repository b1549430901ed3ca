"""Models and kernels of graphs with continuous attributes."""

from __future__ import annotations

import re
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from sklearn.base import clone

import treelens as tl
from treelens.errors import GraphDataError
from treelens.gp.landmarks import LandmarkPosterior
from treelens.graphs.blocks import CollectionBlocks

KINDS = {
    "classes": tl.GraphClassifier(1, "depths", views=[tl.WLPatterns()], n_jobs=1),
    "numbers": tl.GraphRegressor(1, "branches", views=[tl.WLPatterns()], n_jobs=1),
    "svc": tl.GraphSVC(
        "wwl",
        depth=1,
        gamma=1.0,
        C=10.0,
        weight_radius=0,
        n_jobs=1,
        cv=2,
        random_state=0,
        progress=False,
    ),
}
KERNELS = [tl.WLSubtree(2), tl.WLOptimalAssignment(2), tl.WassersteinWL(2)]


def drawn(n: int, seed: int = 0, shift: float = 0.0, names=("charge", "noise")):
    """Random graphs; the class says which way charges lean, labels say nothing."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    graphs = []
    for k in range(n):
        graph = nx.gnp_random_graph(7 + k % 3, 0.35, seed=seed + k)
        for node in graph:
            values = (rng.normal() + 1.5 * y[k] + shift, rng.normal())
            graph.add_node(
                node, label="ab"[rng.integers(2)], **dict(zip(names, values, strict=True))
            )
        graphs.append(graph)
    return tl.as_graph_collection(graphs, node_attributes=list(names)), y


def without_attributes(graphs):
    return replace(graphs, node_attributes=None, attribute_names=(), _known_good=True)


@pytest.fixture(scope="module")
def data():
    graphs, y = drawn(60)
    return graphs[:40], y[:40], graphs[40:], y[40:]


@pytest.fixture(scope="module")
def models(data):
    graphs, y, _, _ = data
    return {name: clone(model).fit(graphs, y) for name, model in KINDS.items()}


def test_models_learn_what_labels_do_not_tell(data, models):
    graphs, y, new, expected = data
    blind = tl.GraphClassifier(depth=1, views=[tl.WLPatterns(attributes="ignore")], n_jobs=1).fit(
        graphs, y
    )
    assert blind.score(new, expected) < 0.75
    assert models["classes"].score(new, expected) > 0.85
    assert models["svc"].score(new, expected) > 0.85
    assert models["numbers"].score(new, expected) > 0.4


@pytest.mark.parametrize("kind", KINDS)
def test_contributions_add_up(data, models, kind):
    model, new = models[kind], data[2]
    decide = model.predict if kind == "numbers" else model.decision_function
    sums = {"charge": 0.0, "noise": 0.0, "labels": 0.0}
    for k in range(len(new)):
        found = model.explain(new[k])
        assert found.decision == pytest.approx(decide(new[k : k + 1])[0])
        rest = found.decision - found.base
        assert found.node_contributions.sum() == pytest.approx(rest)
        table = found.attribute_contributions
        assert table["contribution"].sum() == pytest.approx(found.view_contributions.iloc[0])
        assert set(table["attribute"]) == set(sums)
        assert set(table["steps"]) == {0, 1}
        for name, part in table["contribution"].abs().groupby(table["attribute"]):
            sums[name] += part.sum()
    assert sums["charge"] > (1.0 if kind == "svc" else 1.5) * sums["noise"]  # the one that decides


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_gives_the_same_model(data, models, kind, tmp_path):
    model, new = models[kind], data[2]
    model.save(tmp_path / "model.treelens")
    again = tl.load(tmp_path / "model.treelens")
    np.testing.assert_array_equal(again.predict(new), model.predict(new))
    first, second = (m.explain(new[0]).pattern_contributions for m in (model, again))
    assert first.equals(second)
    renamed, _ = drawn(2, names=("charge", "other"))
    with pytest.raises(GraphDataError, match="noise"):
        again.predict(renamed)


def test_a_report_has_shares_of_attributes_with_escaped_names(tmp_path):
    name = "<b>charge</b>"
    graphs, y = drawn(40, names=(name, "noise"))
    model = tl.GraphClassifier(depth=1, n_jobs=1).fit(graphs, y)
    page = model.report(tmp_path / "report.html", graphs, y).read_text(encoding="utf-8")
    assert name not in page
    table = page.partition('id="attribute-table"')[2].partition("</table>")[0]
    shares = [float(share) for share in re.findall(r"--part:([\d.]+)", table)]
    assert len(shares) == 5  # two attributes, own and over neighbours, and labels
    assert sum(shares) == pytest.approx(1.0, abs=0.005)
    assert table.index(">&lt;b&gt;charge") < table.index(">noise<")  # the largest first


@pytest.mark.parametrize("kind", KINDS)
def test_ignored_attributes_are_as_if_not_there(data, kind):
    graphs, y, new, _ = data
    own = {"attributes": "ignore"}
    settings = own if kind == "svc" else {"views": [tl.WLPatterns(**own)]}
    ignoring = clone(KINDS[kind]).set_params(**settings).fit(graphs, y)
    plain = clone(KINDS[kind]).fit(without_attributes(graphs), y)
    np.testing.assert_array_equal(ignoring.weights_, plain.weights_)
    np.testing.assert_array_equal(ignoring.predict(new), plain.predict(without_attributes(new)))


@pytest.mark.parametrize("kind", KINDS)
def test_thresholds_come_from_training_graphs_alone(data, models, kind):
    """What else is predicted, near or far, changes no prediction."""
    model, new = models[kind], data[2]
    decide = model.predict if kind == "numbers" else model.decision_function
    alone = decide(new[:3])
    far, _ = drawn(30, seed=9, shift=100.0)
    mixed = tl.as_graph_collection([*new[:3], *far])
    np.testing.assert_allclose(decide(mixed)[:3], alone, rtol=1e-9)
    np.testing.assert_allclose(decide(new[:1]), alone[:1], rtol=1e-9)


def test_landmarks_and_blocks_take_attributes(data):
    graphs, y, new, expected = data
    settings = {"depth": 1, "weights": "depths", "exact_size": 30, "n_landmarks": 25, "n_jobs": 1}
    model = tl.GraphRegressor(**settings).fit(graphs, y)
    assert isinstance(model.model_.posterior, LandmarkPosterior)
    assert np.mean((model.predict(new) > 0.5) == expected) > 0.85
    models = [
        tl.GraphClassifier(**settings).fit(CollectionBlocks(graphs, y, size)) for size in (7, 40)
    ]
    first, second = (model.decision_function(new) for model in models)
    np.testing.assert_allclose(first, second, rtol=1e-6, atol=1e-8)
    assert models[0].score(new, expected) > 0.85


@pytest.mark.filterwarnings("ignore:.*are copies of others")
def test_weights_of_edges_change_predictions():
    """Graphs of one shape and one label, told apart by the weights of their edges alone."""
    rng = np.random.default_rng(0)
    graphs, y = [], np.arange(40) % 2
    for heavy in y:
        graph = nx.cycle_graph(6)
        nx.set_node_attributes(graph, "a", "label")
        for edge in graph.edges:
            graph.edges[edge]["weight"] = rng.normal() + 2.0 * heavy
        graphs.append(graph)
    collection = tl.as_graph_collection(graphs, edge_attributes=["weight"])
    model = tl.GraphClassifier(depth=1, n_jobs=1).fit(collection[:30], y[:30])
    assert model.score(collection[30:], y[30:]) > 0.85
    blind = tl.GraphClassifier(depth=1, views=[tl.WLPatterns(attributes="ignore")], n_jobs=1).fit(
        collection[:30], y[:30]
    )
    assert np.ptp(blind.decision_function(collection[30:])) == pytest.approx(0.0, abs=1e-9)
    assert "weight" in set(model.explain(collection[30]).attribute_contributions["attribute"])


def test_missing_values_are_predicted_and_can_decide():
    graphs, y = drawn(40)
    values = graphs.node_attributes.copy()
    rng = np.random.default_rng(1)
    owner = np.repeat(np.arange(len(graphs)), graphs.sizes)
    values[:, 0] = rng.normal(size=len(values))  # only whether it is there tells the class
    values[(y[owner] == 1) & (rng.random(len(values)) < 0.5), 0] = np.nan
    gaps = replace(graphs, node_attributes=values, _known_good=False)
    model = tl.GraphClassifier(depth=1, n_jobs=1).fit(gaps[:30], y[:30])
    assert model.score(gaps[30:], y[30:]) >= 0.8
    cells = model.model_.views[-1].source
    assert any("charge missing" in text for text in cells.texts(range(cells.n_patterns)))


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: type(kernel).__name__)
def test_kernels_with_attributes_are_kernels(data, kernel):
    graphs, _, new, _ = data
    gram = kernel.fit_transform(graphs)
    np.testing.assert_allclose(gram, gram.T, rtol=1e-12)
    assert np.linalg.eigvalsh(gram).min() > -1e-8 * np.linalg.eigvalsh(gram).max()
    np.testing.assert_allclose(kernel.transform(graphs), gram, rtol=1e-9)
    ignoring = type(kernel)(2, attributes="ignore")
    plain = ignoring.fit_transform(graphs)
    assert np.abs(plain - gram).max() > 1e-3
    np.testing.assert_allclose(type(kernel)(2).fit_transform(without_attributes(graphs)), plain)
    assert kernel.transform(new).shape == (len(new), len(graphs))
    names = kernel.feature_map_names()
    assert len(names) == len(kernel.weights_)
    assert any("charge" in str(name) for name in names)
