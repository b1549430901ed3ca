"""Views of a user's own: what they find is counted, weighed, explained, reported and stored."""

from dataclasses import dataclass

import numpy as np
import pytest

import treelens as tl
from strategies import random_collection
from treelens.errors import GraphDataError
from treelens.patterns.own_patterns import OwnPatterns

RNG = np.random.default_rng(0)
GRAPHS = random_collection(RNG, 60, max_nodes=7)


@dataclass(frozen=True)
class Edges(tl.PatternView):
    """Pairs of labels at the ends of an edge, and labels alone."""

    least: int = 0

    name = "edges"
    levels = ("label", "edge")

    def occurrences(self, graph):
        for node, label in enumerate(graph.node_labels):
            yield "label", str(label), [node]
        for ends in graph.edges if len(graph.edges) >= self.least else ():
            yield "edge", "-".join(sorted(str(graph.node_labels[k]) for k in ends)), ends


def test_counts_are_those_of_a_plain_loop():
    source, found = OwnPatterns.empty(Edges()).extend(GRAPHS[:40])
    counts = source.count(source.transform(GRAPHS))
    table, texts = counts.to_sparse().toarray(), source.texts(np.arange(source.n_patterns))
    for k, graph in enumerate(GRAPHS):
        for level, text, unseen in (("label", 0, 0), ("edge", 1, 1)):
            given = [t for name, t, _ in Edges().occurrences(graph) if name == level]
            start, stop = source.level_offsets[text : text + 2]
            known = {texts[p]: table[k, p] for p in range(start, stop) if table[k, p]}
            assert known == {t: given.count(t) for t in set(given) & set(texts[start:stop])}
            assert counts.unseen[k, unseen] == sum(t not in texts[start:stop] for t in given)
    assert found.select_graphs(np.array([3])).of_graphs == [found.of_graphs[3]]


@pytest.fixture(scope="module")
def model():
    y = np.array([len(graph.edges) for graph in GRAPHS], dtype=float) + 0.1 * RNG.normal(size=60)
    regressor = tl.GraphRegressor(weights="depths", views=[tl.WLPatterns(), Edges()], n_jobs=1)
    return regressor.fit(GRAPHS[:50], y[:50])


def test_models_predict_explain_and_report(model, tmp_path):
    assert model.views_ == ["patterns", "edges"]
    mean, std = model.predict(GRAPHS[50:], return_std=True)
    assert (std > 0).all()
    explanation = model.explain(GRAPHS[50])
    found = explanation.pattern_contributions
    assert set(found["tree"]) >= {"edges"}
    total = explanation.base + explanation.node_contributions.sum()
    assert total == pytest.approx(explanation.decision)
    assert explanation.decision == pytest.approx(mean[0])
    assert model.report(tmp_path / "r.html").exists()


def test_files_need_the_class(model, tmp_path):
    model.save(tmp_path / "m.treelens")
    loaded = tl.load(tmp_path / "m.treelens", classes=[Edges])
    assert loaded.views == [tl.WLPatterns(), Edges()]
    np.testing.assert_allclose(loaded.predict(GRAPHS[50:]), model.predict(GRAPHS[50:]))
    with pytest.raises(ValueError, match="unknown class, 'Edges'"):
        tl.load(tmp_path / "m.treelens")

    class Paths:
        pass

    with pytest.raises(TypeError, match="dataclass"):
        tl.load(tmp_path / "m.treelens", classes=[Paths])
    with pytest.raises(ValueError, match="two classes called Paths"):
        tl.load(tmp_path / "m.treelens", classes=[dataclass(frozen=True)(Paths)])


@pytest.mark.parametrize(
    "given", ["text", ("odd", "a", [0]), ("all", 3, [0]), ("all", "a", []), ("all", "a", [99])]
)
def test_occurrences_that_are_none(given):
    @dataclass(frozen=True)
    class Wrong(tl.PatternView):
        name = "wrong"

        def occurrences(self, graph):
            yield given

    with pytest.raises(GraphDataError, match="graph 0"):
        tl.GraphRegressor(views=[Wrong()]).fit(GRAPHS[:5], np.arange(5.0))


@pytest.mark.parametrize("directed", [False, True])
def test_walks_are_powers_of_the_adjacency_matrix(directed):
    graphs = random_collection(np.random.default_rng(1), 20, max_nodes=6)
    graphs = [(list(g.edges), dict(enumerate("x" * g.n_nodes))) for g in graphs if g.n_nodes]
    collection = tl.as_graph_collection(graphs, directed=directed)
    source, found = OwnPatterns.empty(tl.Walks(length=3)).extend(collection)
    table = source.count(found).to_sparse().toarray()  # one label, so a pattern for each length
    for row, graph in zip(table, collection, strict=True):
        adjacency = np.zeros((graph.n_nodes, graph.n_nodes))
        for start, end in graph.edges:
            adjacency[start, end] = 1.0
            adjacency[end, start] = 0.0 if directed and start != end else 1.0
        powers = [np.linalg.matrix_power(adjacency, k).sum() for k in (1, 2, 3)]
        assert row.tolist() == powers
