"""Cells of continuous attributes as a view of their own."""

import numpy as np
import pytest

import treelens as tl
from treelens.gp.data import CountedView
from treelens.views import ViewSettings


@pytest.fixture(scope="module")
def letters():
    """An N and a Z are the same path of four nodes at other places."""
    nx = pytest.importorskip("networkx")
    rng = np.random.default_rng(0)
    corners = {"N": [(0, 0), (0, 1), (1, 0), (1, 1)], "Z": [(0, 1), (1, 1), (0, 0), (1, 0)]}
    names = np.array(["N", "Z"] * 20)
    found = []
    for name in names:
        graph = nx.path_graph(4)
        for node, corner in enumerate(corners[name]):
            x, y = corner + rng.normal(0, 0.15, 2)
            graph.add_node(node, label="o", x=x, y=y)
        found.append(graph)
    return tl.as_graph_collection(found, node_attributes=["x", "y"]), names


@pytest.fixture(scope="module")
def fitted(letters):
    graphs, names = letters
    views = [tl.WLPatterns(), tl.AttributeCells()]
    return tl.GraphClassifier(1, views=views, n_jobs=1).fit(graphs[:30], names[:30])


def test_a_view_of_cells_predicts_explains_and_is_stored(letters, fitted, tmp_path):
    graphs, names = letters
    assert fitted.views_ == ["patterns", "attributes"]
    assert fitted.score(graphs[30:], names[30:]) == 1.0
    # patterns of labels are the same in all graphs: their view leaves attributes alone
    assert fitted.shares_["attributes"] > 0.99
    explanation = fitted.explain(graphs[31])
    total = explanation.base + explanation.node_contributions.sum()
    total += explanation.rest["contribution"].sum()
    assert total == pytest.approx(explanation.decision)
    table = explanation.attribute_contributions
    assert set(table["attribute"]) <= {"x", "y", "labels"}
    of_cells = table.loc[table["attribute"] != "labels", "contribution"].sum()
    assert of_cells == pytest.approx(explanation.view_contributions["attributes"])
    fitted.save(tmp_path / "letters.treelens")
    loaded = tl.load(tmp_path / "letters.treelens")
    np.testing.assert_allclose(loaded.predict_proba(graphs), fitted.predict_proba(graphs))


def test_cells_of_a_view_are_those_that_patterns_count_next_to_labels(letters):
    graphs, _ = letters
    settings = ViewSettings(2)
    together, alone = (
        tl.WLPatterns().fit(graphs, settings),
        tl.AttributeCells().fit(graphs, settings),
    )
    assert isinstance(alone, CountedView)
    n = alone.source.n_patterns
    assert alone.source.texts(range(n)) == together.source.texts(
        range(together.source.n_deviating, together.source.n_patterns)
    )
    both = together.histograms.to_sparse().toarray()[:, together.source.n_deviating :]
    np.testing.assert_array_equal(alone.histograms.to_sparse().toarray(), both)
    parents = together.source.parents[together.source.n_deviating :]
    expected = np.where(parents >= 0, parents - together.source.n_deviating, -1)
    np.testing.assert_array_equal(alone.source.parents, expected)


def test_graphs_without_attributes_have_no_cells():
    graphs, y = tl.make_synthetic(n_per_substructure=5, random_state=0)
    with pytest.raises(tl.errors.GraphDataError, match="these graphs have none"):
        tl.GraphClassifier(1, views=[tl.WLPatterns(), tl.AttributeCells()]).fit(graphs, y)
