"""Fragments of graphs that are no molecules: ranges of degrees, labels alone, siblings, words."""

from __future__ import annotations

import re
import warnings

import networkx as nx
import numpy as np
import pytest

import treelens as tl
from treelens.errors import DegreeLabelsWarning
from treelens.explain.plain_words import with_degree_ranges

ROLES = ("professor", "student", "post-doc", "technician")
CHEMISTRY = re.compile(r"molecul|\batoms?\b|smarts|smiles|scaffold|compound|chemi", re.IGNORECASE)


def _collection(graphs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegreeLabelsWarning)
        return tl.as_graph_collection(graphs)


@pytest.fixture(scope="module")
def networks():
    """Networks without labels, with hubs and at random, and a model of which are which."""
    seeds = range(30)
    hubs = [nx.barabasi_albert_graph(25 + seed % 9, 2, seed=seed) for seed in seeds]
    others = [nx.gnm_random_graph(25 + seed % 9, 46 + 2 * (seed % 9), seed=seed) for seed in seeds]
    graphs, y = _collection([*hubs, *others]), np.repeat(["hubs", "random"], len(seeds))
    return graphs, y, tl.GraphClassifier().fit(graphs, y)


@pytest.fixture(scope="module")
def teams():
    """Trees of people; the target counts the professors that a student stands next to."""
    rng, graphs, y = np.random.default_rng(0), [], []
    for seed in range(80):
        graph = nx.random_labeled_tree(int(rng.integers(6, 14)), seed=seed)
        labels = {node: ROLES[rng.integers(4)] for node in graph}
        nx.set_node_attributes(graph, labels, "label")
        y.append(sum({labels[u], labels[v]} == {"professor", "student"} for u, v in graph.edges))
        graphs.append(graph)
    graphs = tl.as_graph_collection(graphs)
    return graphs, np.array(y, float) + rng.normal(0, 0.1, 80)


def test_many_degrees_are_searched_in_ranges_and_few_are_not(networks):
    graphs = networks[0]
    coarse = with_degree_ranges(graphs)
    for label, degree in zip(coarse[0].node_labels, graphs[0].node_labels, strict=True):
        first, _, last = label.removesuffix("+").partition("-")
        assert int(first) <= degree
        assert label.endswith("+") or degree <= int(last or first)
    assert coarse.node_alphabet[-1].endswith("+")
    rings = _collection([nx.cycle_graph(4), nx.path_graph(4)])
    assert with_degree_ranges(rings) is rings


def test_networks_are_explained_by_numbers_of_edges_and_hubs(networks):
    table = networks[2].fragments_
    assert table["name"].str.contains("hub with").any()
    assert re.fullmatch(r"node with \d( to \d+)? edges?", table.loc[1, "name"])
    assert table.loc[1, "depth"] == 0
    for name, depth in zip(table["name"], table["depth"], strict=True):
        assert bool(re.match(r"(node|hub) with(out)? ", name)) == (depth < 2)
        assert not re.search(r"\d-\d", name)


def test_an_item_of_a_collection_keeps_its_degrees_as_labels(networks):
    graphs, _, model = networks
    whole = model.explain(graphs[3:4]).node_contributions
    np.testing.assert_array_equal(model.explain(graphs[3]).node_contributions, whole)
    assert "degrees" in repr(model.explain(graphs[3]))
    labelled = nx.path_graph(3)
    nx.set_node_attributes(labelled, "a", "label")
    with pytest.raises(tl.errors.GraphDataError, match="graph 0 are degrees"):
        tl.as_graph_collection([graphs[0], tl.as_graph_collection([labelled])[0]])


def test_siblings_that_act_alike_are_one_row(teams):
    graphs, y = teams
    table = tl.GraphRegressor().fit(graphs, y).fragments(graphs, y, min_support=3)
    joined = table[table["pattern"].str.contains(r"\|")]
    assert len(joined)
    for row in joined.to_dict("records"):
        root, choices = re.fullmatch(r"([\w-]+)\(.*\{(.*)\}\)", row["pattern"]).groups()
        assert row["name"].startswith(f"{root} with ")
        assert set(choices.split("|")) <= set(ROLES)
        assert all(choice in row["name"] for choice in choices.split("|"))
        # Every graph that is counted has the root with each neighbour that has no choice.
        fixed = row["pattern"][len(root) + 1 :].partition("{")[0].rstrip(",").split(",")
        places = _roots(graphs, root, [x for x in fixed if x], choices.split("|"))
        assert row["support"] == len(places)
    assert table["name"][table["name"] != ""].is_unique
    several = table[table["name"].str.contains("with the neighbours")]
    for name, pattern in zip(several["name"], several["pattern"], strict=True):
        assert ("either " in name) == ("|" in pattern)


def _roots(graphs, root, fixed, choices):
    """Graphs with a node that has just these neighbours, one of them of several labels."""
    wanted = [sorted([*fixed, choice]) for choice in choices]
    found = set()
    for k, graph in enumerate(graphs):
        around = [[] for _ in graph.node_labels]
        for u, v in graph.edges:
            around[u].append(graph.node_labels[v])
            around[v].append(graph.node_labels[u])
        same = zip(graph.node_labels, around, strict=True)
        found |= {k for label, labels in same if label == root and sorted(labels) in wanted}
    return found


def test_neighbours_of_directed_graphs_are_named_by_the_way_of_the_edge():
    growing = [nx.gn_graph(20, seed=seed) for seed in range(20)]
    redirected = [nx.gnr_graph(20, 0.3, seed=seed) for seed in range(20)]
    graphs = _collection([*growing, *redirected])
    table = tl.GraphClassifier(depth=1).fit(graphs, np.repeat([0, 1], 20)).fragments_
    stars = table[table["pattern"].str.contains(r"\(")]
    for name, pattern in zip(stars["name"], stars["pattern"], strict=True):
        for sign, way in (("->", "to"), ("<-", "from")):
            found = re.search(rf"(, |and ){way} (a|\d+) (node|hub)", name)
            assert (sign in pattern) == bool(found), (name, pattern)


def test_labels_of_edges_stand_before_neighbours_that_are_named_by_degrees():
    growing = [nx.gn_graph(20, seed=seed) for seed in range(20)]
    redirected = [nx.gnr_graph(20, 0.3, seed=seed) for seed in range(20)]
    for seed, graph in enumerate([*growing, *redirected]):
        rng = np.random.default_rng(seed)
        labels = {edge: ("wire", "pipe")[rng.integers(2)] for edge in graph.edges}
        nx.set_edge_attributes(graph, labels, "label")
    graphs = _collection([*growing, *redirected])
    for some in (graphs, _collection([x.to_undirected() for x in [*growing, *redirected]])):
        model = tl.GraphClassifier(depth=1).fit(some, np.repeat([0, 1], 20))
        table = model.fragments(some, np.repeat([0, 1], 20), min_support=2)
        named = table[table["pattern"].str.contains("wire|pipe") & (table["name"] != "")]
        assert len(named)
        for name, pattern in zip(named["name"], named["pattern"], strict=True):
            assert not re.search(r"[<>:]|to to|(wire|pipe)-", name)
            for label in ("wire", "pipe"):
                stands = re.search(rf"by {label} (to|from) (a|\d+) (node|hub)", name)
                assert (label in pattern) == bool(stands), (name, pattern)


def test_degrees_little_above_the_usual_one_make_no_hub():
    """Most nodes have 3 edges, some 4, and so few have 5 to 9 that the last range begins at 4."""
    graphs = [nx.random_regular_graph(3, 24, seed=seed) for seed in range(60)]
    for graph in graphs[:30]:
        graph.add_edges_from(sorted(nx.maximal_matching(nx.complement(graph)))[:3])
    rare = nx.havel_hakimi_graph([9, 8, 7, 6, 5, 1, *[2] * 10])
    graphs = _collection([*graphs, rare])
    assert with_degree_ranges(graphs).node_alphabet[-1] == "4+"
    y = np.repeat(["more", "fewer"], [30, 31])
    names = tl.GraphClassifier(depth=1).fit(graphs, y).fragments_["name"]
    assert names.str.contains("node with 4+ edges", regex=False).any()
    assert not names.str.contains("hub").any()


def test_at_depth_0_fragments_are_labels(teams):
    graphs = teams[0]
    y = np.array([graph.node_labels.count("professor") for graph in graphs], float)
    table = tl.GraphRegressor(depth=0, views=[tl.WLPatterns()]).fit(graphs, y).fragments_
    assert table["name"].tolist() == ["any professor"]
    np.testing.assert_allclose(table["effect"], 1.0, atol=0.3)


def test_a_fragment_of_several_classes_has_one_name(teams):
    graphs, y = teams
    classes = np.digitize(y, np.quantile(y, [0.33, 0.67]))
    table = tl.GraphClassifier(depth=1).fit(graphs, classes).fragments_
    by_name = table[table["name"] != ""].groupby("name")["pattern"]
    assert by_name.nunique().max() == 1
    assert not table.duplicated(["class_label", "name"]).any()


def test_reports_of_graphs_have_no_word_of_chemistry(networks, tmp_path):
    graphs, y, model = networks
    model.report(tmp_path / "report.html", graphs[:4], y[:4])
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    page = re.sub(r"<(script|style).*?</\1>|data:[^\"']+|<[^>]+>", " ", page, flags=re.DOTALL)
    assert "numbers of edges" in page
    assert CHEMISTRY.search(page) is None
