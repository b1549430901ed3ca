"""Drawings are sound SVG or PNG, small, and never let data become markup."""

from __future__ import annotations

import io
from xml.etree import ElementTree

import numpy as np
import pytest

import treelens as tl
from treelens.explain.decode import find_occurrences
from treelens.explain.draw import (
    Style,
    draw_graph,
    draw_pattern,
)
from treelens.explain.layout import node_positions
from treelens.explain.palette import AGAINST, FOR, to_hex
from treelens.graphs.collection import Graph
from treelens.graphs.synthetic import make_random_graphs
from treelens.patterns.vocabulary import PatternVocabulary

SVG = "{http://www.w3.org/2000/svg}"
EVIL = "<script>alert('&\"')</script>"


def _texts(svg: str) -> list[str]:
    return [element.text for element in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def png_size(data: bytes) -> tuple[int, int]:
    from PIL import Image

    image = Image.open(io.BytesIO(data))
    assert image.format == "PNG"
    return image.size


# --- plain graphs -------------------------------------------------------------------------------


def test_nodes_get_the_colours_of_their_contributions():
    path = Graph(("a", "b", "c"), ((0, 1), (1, 2)))
    svg = draw_graph(path, np.array([2.0, 0.0, -2.0]), style=Style(toward="yes"))
    circles = list(ElementTree.fromstring(svg).iter(f"{SVG}circle"))
    fills = [circle.get("fill") for circle in circles]
    expected = [tuple(c / 255 for c in color) for color in (FOR, (246, 246, 246), AGAINST)]
    assert fills == [to_hex(color) for color in expected]
    assert {"a", "b", "c", "for yes", "against yes", "+2", "-2"} <= set(_texts(svg))


@pytest.mark.parametrize("text", ["CCO", None])
def test_the_ends_of_the_colours_can_be_named(text):
    graph = Graph(("C", "C", "O"), ((0, 1), (1, 2)))
    if text is not None:
        pytest.importorskip("rdkit")
        graph = tl.as_graph_collection([text])[0]
    style = Style(ends=("lowers", "raises"), toward="ignored")
    svg = draw_graph(graph, np.array([2.0, 0.0, -2.0]), style=style)
    assert "lowers" in svg
    assert "raises" in svg
    assert "against" not in svg


@pytest.mark.parametrize("engine", ["plain", "rdkit"])
def test_text_in_labels_stays_text(engine, nitrobenzene):
    style = Style(title=EVIL, toward=EVIL)
    if engine == "plain":
        graph = Graph((EVIL, "<b>"), ((0, 1),), (EVIL,))
        svg = draw_graph(graph, np.array([1.0, -1.0]), style=style)
        assert "<b>" in _texts(svg)
    else:
        svg = draw_graph(nitrobenzene[0], np.ones(9), style=style)
    root = ElementTree.fromstring(svg)
    assert root.find(f"{SVG}title").text == EVIL
    assert "<script" not in svg
    assert {"script", "b"}.isdisjoint(element.tag.removeprefix(SVG) for element in root.iter())


def test_a_drawing_takes_a_few_kilobytes():
    graphs = make_random_graphs(20, n_nodes=(28, 32), random_state=0)
    style = Style(legend=False)
    sizes = [len(draw_graph(g, np.linspace(-1, 1, g.n_nodes), style=style)) for g in graphs]
    assert np.mean(sizes) < 4500


def test_highlighting_marks_nodes_and_edges_of_the_pattern():
    graphs = make_random_graphs(5, n_nodes=(8, 12), random_state=1)
    vocabulary, _ = PatternVocabulary.fit(graphs, depth=1)
    pattern = vocabulary.n_patterns - 1
    place = find_occurrences(vocabulary, graphs, [pattern])[pattern][0]
    graph = graphs[place.graph_index]
    plain, marked = draw_graph(graph), draw_graph(graph, highlight=place)
    # One mark under every node of the pattern, and a white ring inside the root's.
    assert marked.count("<circle") - plain.count("<circle") == len(place.nodes) + 1
    assert "#009e73" in marked
    assert "#009e73" not in plain


def test_png_has_the_size_asked_for():
    path = Graph(("a", "$x_1$", "c"), ((0, 1), (1, 2)), ("=", "word"))
    style = Style(width=200, height=100)
    assert png_size(draw_graph(path, format="png", style=style)) == (400, 200)


def test_wrong_lengths_are_refused():
    with pytest.raises(ValueError, match="node_contributions has 3 entries; the graph asks for 2"):
        draw_graph(Graph(("a", "b"), ((0, 1),)), np.zeros(3))


def test_graphs_without_edges_and_with_one_node():
    for graph in (Graph(("a",), ()), Graph(("a", "b", "c"), ())):
        ElementTree.fromstring(draw_graph(graph, np.zeros(graph.n_nodes), np.zeros(0)))


# --- patterns -----------------------------------------------------------------------------------


def test_a_pattern_is_drawn_as_its_tree():
    graphs = tl.as_graph_collection([([(0, 1), (1, 2)], {0: "C", 1: EVIL, 2: "O"})])
    vocabulary, _ = PatternVocabulary.fit(graphs, depth=2)
    svg = draw_pattern(vocabulary, vocabulary.n_patterns - 1)
    assert sorted(_texts(svg))[:3] == ["<scri…", "C", "O"]
    assert png_size(draw_pattern(vocabulary, 0, format="png"))[0] > 0


def test_a_pattern_is_titled_by_its_text_or_as_asked():
    graphs = tl.as_graph_collection([([(0, 1)], {0: "C", 1: "O"})])
    vocabulary, _ = PatternVocabulary.fit(graphs, depth=1)
    pattern = vocabulary.n_patterns - 1
    titles = [ElementTree.fromstring(draw_pattern(vocabulary, pattern, title=title))
              .find(f"{SVG}title").text for title in (None, "mine")]  # fmt: skip
    assert titles == [f"pattern {vocabulary.texts(np.array([pattern]))[0]}", "pattern mine"]


def test_what_is_cut_from_a_tree_shows_as_dots():
    star = [(0, k) for k in range(1, 30)]
    graphs = tl.as_graph_collection([(star, dict.fromkeys(range(30), "a"))])
    vocabulary, _ = PatternVocabulary.fit(graphs, depth=1)
    centre = int(vocabulary.level_offsets[1])
    assert _texts(draw_pattern(vocabulary, centre, max_nodes=10)) == ["a", "…"]
    assert len(_texts(draw_pattern(vocabulary, centre))) == 30


# --- layout and colours -------------------------------------------------------------------------


def test_neighbours_are_near_and_nodes_do_not_overlap():
    for graph in make_random_graphs(10, n_nodes=(20, 30), random_state=2):
        points = node_positions(graph)
        gaps = np.linalg.norm(points[:, None] - points[None, :], axis=2)
        ends = np.array(graph.edges)
        assert np.median(gaps[ends[:, 0], ends[:, 1]]) == pytest.approx(1.0, abs=0.35)
        assert gaps[~np.eye(len(gaps), dtype=bool)].min() > 0.2


def test_stars_spread_their_leaves():
    star = Graph(("a",) * 9, tuple((0, k) for k in range(1, 9)))
    points = node_positions(star)[1:]
    gaps = np.linalg.norm(points[:, None] - points[None, :], axis=2)
    assert gaps[~np.eye(8, dtype=bool)].min() > 0.5


def test_components_stand_side_by_side():
    points = node_positions(Graph(("a",) * 5, ((0, 1), (1, 2))))
    assert points[3, 0] > points[:3, 0].max()
    assert points[4, 0] > points[3, 0]


def test_large_graphs_are_laid_out_too():
    graph = make_random_graphs(1, n_nodes=(900, 900), random_state=3)[0]
    points = node_positions(graph)
    assert np.isfinite(points).all()
    assert len(np.unique(points.round(6), axis=0)) > 800
