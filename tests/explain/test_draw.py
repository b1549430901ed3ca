"""Drawings as SVG and PNG: colours, marks, molecules; all text escaped."""

from __future__ import annotations

import io
import re
from xml.etree import ElementTree

import networkx as nx
import numpy as np
import pytest
from scipy.sparse import csgraph

import treelens as tl
from strategies import make_random_graphs
from treelens.explain.draw import (
    Style,
    TreeNode,
    draw_graph,
    draw_pattern,
    node_positions,
    tree_scene,
    unfold_within,
)
from treelens.explain.fragment_search import occurrence_at
from treelens.explain.scene import AGAINST, FOR, NEUTRAL, Disc
from treelens.graphs.collection import Graph
from treelens.patterns.vocabulary import PatternVocabulary

SVG = "{http://www.w3.org/2000/svg}"
EVIL = "<script>alert('&\"')</script>"


def _texts(svg):
    return [element.text for element in ElementTree.fromstring(svg).iter(f"{SVG}text")]


@pytest.fixture(scope="module")
def molecules():
    """No two atoms alike; RDKit numbers the bonds in another order than the graph its edges."""
    pytest.importorskip("rdkit")
    return tl.as_graph_collection(["O=C(N)c1ccncc1"])


def png_size(data):
    from PIL import Image

    image = Image.open(io.BytesIO(data))
    assert image.format == "PNG"
    return image.size


def test_text_is_escaped_and_png_has_the_size_of_the_style(molecules):
    for graph in (molecules[0], Graph((EVIL, "<b>"), ((0, 1),), (EVIL,))):
        svg = draw_graph(graph, np.ones(graph.n_nodes), style=Style(title=EVIL, toward=EVIL))
        root = ElementTree.fromstring(svg)
        assert root.find(f"{SVG}title").text == EVIL
        assert "<script" not in svg
        assert {"script", "b"}.isdisjoint(element.tag.removeprefix(SVG) for element in root.iter())
    assert "<b>" in _texts(svg)
    path = Graph(("a", "$x_1$", "c"), ((0, 1), (1, 2)), ("=", "word"))
    style = Style(width=200, height=100)
    assert png_size(draw_graph(path, format="png", style=style)) == (400, 200)
    data = draw_graph(molecules[0], np.linspace(-1, 1, 9), format="png", style=style)
    assert png_size(data) == (400, 2 * (100 + 34))
    with pytest.raises(ValueError, match="node_contributions has 4 entries"):
        draw_graph(path, np.zeros(4))


def test_a_pattern_is_drawn_as_its_tree():
    graphs = tl.as_graph_collection([([(0, 1), (1, 2)], {0: "C", 1: EVIL, 2: "O"})])
    vocabulary, _ = PatternVocabulary.fit(graphs, depth=2)
    pattern = vocabulary.n_patterns - 1
    svg = draw_pattern(vocabulary, pattern)
    assert sorted(_texts(svg))[:3] == ["<scri…", "C", "O"]
    text = vocabulary.texts(np.array([pattern]))[0]
    assert ElementTree.fromstring(svg).find(f"{SVG}title").text == f"pattern {text}"
    assert "<title>pattern mine</title>" in draw_pattern(vocabulary, pattern, title="mine")
    assert png_size(draw_pattern(vocabulary, 0, format="png"))[0] > 0
    # Layers that are cut are dots.
    star = [(0, k) for k in range(1, 30)]
    graphs = tl.as_graph_collection([(star, dict.fromkeys(range(30), "a"))])
    vocabulary, _ = PatternVocabulary.fit(graphs, depth=1)
    centre = int(vocabulary.level_offsets[1])
    assert _texts(draw_pattern(vocabulary, centre, max_nodes=10)) == ["a", "…"]
    assert len(_texts(draw_pattern(vocabulary, centre))) == 30


def test_nodes_do_not_overlap_and_components_stand_side_by_side():
    star = node_positions(Graph(("a",) * 9, tuple((0, k) for k in range(1, 9))))[1:]
    assert (np.linalg.norm(star[:, None] - star, axis=2) + 9.0 * np.eye(8)).min() > 0.5
    large = node_positions(make_random_graphs(1, n_nodes=(900, 900), random_state=3)[0])
    assert np.isfinite(large).all()
    assert len(np.unique(large.round(6), axis=0)) > 800
    places = node_positions(Graph(("a",) * 6, ((0, 2), (2, 4), (1, 3))))  # the largest first
    large, small = places[[0, 2, 4], 0], places[[1, 3], 0]
    assert large.max() < small.min() <= small.max() < places[5, 0]


def test_stress_is_at_a_minimum():
    """Moving any node in any direction increases the stress."""
    for graph in make_random_graphs(4, (5, 12), n_labels=2, random_state=0):
        steps = csgraph.shortest_path(nx.to_numpy_array(graph.to_networkx()), unweighted=True)
        if np.isinf(steps).any():
            continue

        def stress(points, steps=steps):
            gaps = np.linalg.norm(points[:, None] - points, axis=2)
            return np.sum((gaps - steps)[steps > 0] ** 2 / steps[steps > 0] ** 2)

        points = node_positions(graph)
        for node in range(graph.n_nodes):
            for move in ([0.2, 0.0], [-0.2, 0.0], [0.0, 0.2], [0.0, -0.2]):
                moved = points.copy()
                moved[node] += move
                assert stress(moved) > stress(points)


@pytest.mark.parametrize(
    ("bond", "dashed"), [("-", "f"), ("=", "ff"), ("#", "fff"), (":", "ft"), (None, "f")]
)
def test_bonds_are_single_double_triple_or_aromatic_lines(bond, dashed):
    graph = Graph(("a", "b"), ((0, 1),), None if bond is None else (bond,))
    groups = ElementTree.fromstring(draw_graph(graph)).iter(f"{SVG}g")
    lines = [(g.find(f"{SVG}path"), "stroke-dasharray" in g.attrib) for g in groups]
    found = [
        is_dashed
        for path, is_dashed in lines
        if path is not None
        for _ in path.get("d").split("M")[1:]
    ]
    assert found == [sign == "t" for sign in dashed]


def test_parents_stand_in_layers_over_their_children():
    parents, layers = (-1, 0, 0, 1, 1, 2), (0, 1, 1, 2, 2, 2)
    tree = [TreeNode(p, layer, "x", None, False) for p, layer in zip(parents, layers, strict=True)]
    discs = [mark for mark in tree_scene(tree, "tree").marks if isinstance(mark, Disc)][1:]
    x, y = np.array([disc.center for disc in discs]).T
    np.testing.assert_allclose((x - x[3]) / (x[4] - x[3]), [1.25, 0.5, 2, 0, 1, 2])
    np.testing.assert_allclose((y - y[0]) / (y[1] - y[0]), layers)


def hex_of(value, limit):
    """The colour by hand: neutral at 0, orange for, blue against."""
    end = FOR if value > 0 else AGAINST
    share = abs(value) / limit
    return "#" + "".join(
        f"{round(n + share * (e - n)):02x}" for n, e in zip(NEUTRAL, end, strict=True)
    )


def assert_colours(found, expected):
    """The same keys, and colours that agree up to RDKit's way of rounding."""
    assert set(found) == set(expected) != set()
    for key, color in expected.items():
        channels = [tuple(bytes.fromhex(text[1:])) for text in (found[key], color)]
        assert channels[0] == pytest.approx(channels[1], abs=1), key


def distinct_values(n, seed):
    """Of both signs, none near another, in no order."""
    values = np.linspace(-1.0, 1.0, n)
    return np.random.default_rng(seed).permutation(values)


def style_of(element, name):
    return re.search(rf"(?:^|;){name}:([^;]+)", element.get("style", "") + ";")[1].lower()


def atom_fills(svg):
    """Fill by atom, as RDKit names its discs."""
    discs = ElementTree.fromstring(svg).iter(f"{SVG}ellipse")
    return {int(disc.get("class").removeprefix("atom-")): style_of(disc, "fill") for disc in discs}


def bond_fills(svg):
    """Fill by the two atoms of a bond; the black lines of the bonds have none."""
    fills = {}
    for path in ElementTree.fromstring(svg).iter(f"{SVG}path"):
        atoms = tuple(sorted(map(int, re.findall(r"atom-(\d+)", path.get("class", "")))))
        if len(atoms) == 2 and style_of(path, "fill") not in ("none", "#000000"):
            assert fills.setdefault(atoms, style_of(path, "fill")) == style_of(path, "fill")
    return fills


@pytest.mark.parametrize("limit", [None, 8.0])
def test_every_atom_and_every_bond_has_its_own_colour_on_one_scale(molecules, limit):
    graph, full = molecules[0], limit or 2.0
    atoms = distinct_values(graph.n_nodes, seed=1)
    bonds = 2.0 * distinct_values(len(graph.edges), seed=2)
    svg = draw_graph(graph, atoms, bonds, style=Style(legend=False, limit=limit))
    assert_colours(atom_fills(svg), {atom: hex_of(value, full) for atom, value in enumerate(atoms)})
    expected = {tuple(sorted(e)): hex_of(v, full) for e, v in zip(graph.edges, bonds, strict=True)}
    assert_colours(bond_fills(svg), expected)


def test_a_pattern_marks_its_own_atoms_and_bonds(molecules):
    for atom in range(molecules.n_nodes):
        place = occurrence_at(molecules, 0, atom, 0, depth=1)
        svg = draw_graph(molecules[0], highlight=place)
        fills = atom_fills(svg)
        assert set(fills) == set(place.nodes)
        others = {fill for atom, fill in fills.items() if atom != place.root}
        assert len(others) == 1
        assert fills[place.root] not in others
        assert set(bond_fills(svg)) == set(place.edges)


STAR = Graph(("a", "b", "c", "d"), ((0, 1), (0, 2), (0, 3)))


def middle_of(element):
    numbers = list(map(float, re.findall(r"-?\d+(?:\.\d+)?", element.get("d"))))
    return (numbers[0] + numbers[2]) / 2, (numbers[1] + numbers[3]) / 2


def test_every_node_and_every_edge_of_a_plain_drawing_has_its_own_colour():
    nodes, edges = np.array([0.25, -1.0, 0.5, -0.5]), np.array([1.0, -0.6, 0.3])
    root = ElementTree.fromstring(draw_graph(STAR, nodes, edges, style=Style(legend=False)))
    discs = list(root.iter(f"{SVG}circle"))
    assert [disc.get("fill") for disc in discs] == [hex_of(value, 1.0) for value in nodes]
    text_at = {float(word.get("x")): word.text for word in root.iter(f"{SVG}text")}
    assert [text_at[float(disc.get("cx"))] for disc in discs] == list(STAR.node_labels)
    bands = {
        group.get("stroke"): middle_of(path)
        for group in root.iter(f"{SVG}g")
        for path in group.iter(f"{SVG}path")
        if group.get("stroke").startswith("#") and len(group.get("stroke")) == 7
    }
    assert list(bands) == [hex_of(value, 1.0) for value in edges]
    points = np.array([(float(disc.get("cx")), float(disc.get("cy"))) for disc in discs])
    for (u, v), middle in zip(STAR.edges, bands.values(), strict=True):
        assert middle == pytest.approx(tuple((points[u] + points[v]) / 2), abs=0.2)
    svg = draw_graph(STAR, np.array([0.5, 0, 0, 0]), edges, style=Style(limit=2.0))
    first = next(ElementTree.fromstring(svg).iter(f"{SVG}circle"))
    assert first.get("fill") == hex_of(0.5, 2.0)  # one scale, which can be set


@pytest.mark.parametrize("is_molecule", [True, False])
def test_the_legend_has_against_and_its_blue_on_the_left(is_molecule, molecules):
    graph = molecules[0] if is_molecule else STAR
    svg = draw_graph(graph, distinct_values(graph.n_nodes, seed=3), style=Style(toward="x"))
    root = ElementTree.fromstring(svg)
    place = {word.text: float(word.get("x")) for word in root.iter(f"{SVG}text")}
    assert place["against x"] < place["-1"] < place["0"] < place["+1"] < place["for x"]
    bars = [g for g in root.iter(f"{SVG}g") if g.get("stroke-width") == "9"]
    at = {bar.get("stroke"): middle_of(bar.find(f"{SVG}path"))[0] for bar in bars}
    assert min(at, key=at.get) == hex_of(-1.0, 1.0)
    assert max(at, key=at.get) == hex_of(1.0, 1.0)


def test_nodes_with_coordinates_stay_where_they_are():
    """y points up, a median edge is one unit long; one missing coordinate, and it is laid out."""
    places = {"x": (0.0, 0.0, 4.0), "y": (0.0, 2.0, 2.0)}
    edges = ((0, 1), (1, 2), (0, 1))
    graph = Graph(("a",) * 3, edges, node_attributes=places)
    np.testing.assert_allclose(node_positions(graph), [[0, 0], [0, -1], [2, -1]])
    gap = Graph(("a",) * 3, edges, node_attributes={**places, "y": (0.0, np.nan, 2.0)})
    np.testing.assert_allclose(node_positions(gap), node_positions(Graph(("a",) * 3, edges)))


def test_unfolding_stops_at_a_whole_layer():
    complete = [(u, v) for v in range(12) for u in range(v)]
    graphs = tl.as_graph_collection([(complete, dict.fromkeys(range(12), "a"))])
    vocabulary, _ = PatternVocabulary.fit(graphs, depth=8)  # 11 ** 8 leaves
    tree = unfold_within(vocabulary, vocabulary.n_patterns - 1, max_nodes=60)
    assert len(tree) == 12
    assert [node.cut for node in tree] == [False] + [True] * 11


def test_an_unknown_format_is_refused():
    with pytest.raises(ValueError, match="format must be one of"):
        draw_graph(Graph(("a", "b"), ((0, 1),)), format="gif")


def test_networkx_positions_place_nodes_without_being_learned_from():
    graphs = [nx.path_graph(3), nx.path_graph(3)]
    for graph in graphs:
        nx.set_node_attributes(graph, "a", "label")
        nx.set_node_attributes(graph, {0: (0, 0), 1: [2, 0], 2: np.array([2, 1])}, "pos")
    collection = tl.as_graph_collection(graphs)
    assert collection.node_attributes is None
    np.testing.assert_allclose(
        node_positions(collection[1:][0]) * 1.5, [[0, 0], [2, 0], [2, -1]], atol=1e-12
    )
    del graphs[1].nodes[2]["pos"]  # all or none
    with pytest.warns(tl.errors.IgnoredDataWarning, match="'pos'"):
        collection = tl.as_graph_collection(graphs)
    assert "positions" not in collection.graph_data


def test_long_labels_are_shortened_to_what_tells_them_apart():
    names = ("professor", "prosecutor", "student", "12345678", "H")
    graph = Graph(names, tuple((0, k) for k in range(1, 5)))
    root = ElementTree.fromstring(draw_graph(graph))
    written = {element.text for element in root.iter(f"{SVG}text")}
    assert {"prof", "pros", "stu", "H"} < written
    assert {x for x in written if x.startswith("1")} == {"12345…"}
    hints = {
        element.find(f"{SVG}title").text for element in root.iter(f"{SVG}circle") if len(element)
    }
    assert hints == set(names) - {"H"}
