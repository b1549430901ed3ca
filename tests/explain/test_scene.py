"""Where the marks of a drawing stand: lines, discs and words."""

from __future__ import annotations

import numpy as np
import pytest

from treelens.explain.decode import Occurrence, TreeNode
from treelens.explain.draw import (
    Style,
    _sideways,
    graph_scene,
    tree_scene,
)
from treelens.explain.palette import diverging_rgb, to_hex
from treelens.explain.scene import Disc, Lines, Words
from treelens.graphs.collection import Graph
from treelens.graphs.synthetic import make_random_graphs


def _marks(scene, kind) -> list:
    return [mark for mark in scene.marks if isinstance(mark, kind)]


def _plain_scene(graph: Graph, **settings):
    return graph_scene(graph, None, None, None, Style(**settings))


def _distances_beside(scene) -> dict[bool, list[float]]:
    """How far each line of a single edge runs beside the line through its ends, by dashing."""
    a, b = (np.array(disc.center) for disc in _marks(scene, Disc))
    across = np.array([a[1] - b[1], b[0] - a[0]]) / np.linalg.norm(b - a)
    found: dict[bool, list[float]] = {False: [], True: []}
    for lines in _marks(scene, Lines):
        for start, end in lines.segments:
            assert (end - start) == pytest.approx(b - a)  # alongside, and as long
            found[lines.dashed].append(round(float((start - a) @ across), 6))
    return found


@pytest.mark.parametrize(
    ("bond", "n_solid", "n_dashed"),
    [("-", 1, 0), ("=", 2, 0), ("#", 3, 0), (":", 1, 1), (None, 1, 0)],
)
def test_bonds_are_lines_on_both_sides_of_the_middle(bond, n_solid, n_dashed):
    graph = Graph(("a", "b"), ((0, 1),), None if bond is None else (bond,))
    scene = _plain_scene(graph)
    beside = _distances_beside(scene)
    assert (len(beside[False]), len(beside[True])) == (n_solid, n_dashed)
    places = np.sort(beside[False] + beside[True])
    assert places == pytest.approx(-places[::-1])  # as far to the left as to the right
    assert len(set(places)) == len(places)
    radius = _marks(scene, Disc)[0].radius
    assert np.abs(places).max() < radius
    assert all(
        0 < lines.width < np.diff(places).min(initial=radius) for lines in _marks(scene, Lines)
    )


@pytest.mark.parametrize("end", [(3.0, 4.0), (0.0, -2.0), (-1.0, 5.0)])
def test_a_shift_sideways_is_at_right_angles_and_as_long_as_asked(end):
    segment = np.array([(1.0, 1.0), np.add(end, 1.0)])
    shift = _sideways(segment, 2.5)[0]
    assert shift @ (segment[1] - segment[0]) == pytest.approx(0.0)
    assert np.linalg.norm(shift) == pytest.approx(2.5)


def test_other_edge_labels_are_written_beside_the_middle():
    scene = _plain_scene(Graph(("a", "b"), ((0, 1),), ("word",)))
    a, b = (np.array(disc.center) for disc in _marks(scene, Disc))
    (words,) = (mark for mark in _marks(scene, Words) if mark.text == "word")
    shift = np.array(words.center) - (a + b) / 2
    assert shift @ (b - a) == pytest.approx(0, abs=1e-6)
    assert 0 < np.linalg.norm(shift) < _marks(scene, Disc)[0].radius


def test_drawings_are_centred_and_keep_their_margin():
    for n, width, height in ((2, 320, 240), (9, 200, 300), (40, 300, 120)):
        scene = _plain_scene(make_random_graphs(1, n_nodes=(n, n), random_state=n)[0],
                             width=width, height=height)  # fmt: skip
        discs = _marks(scene, Disc)
        low = np.min([disc.center for disc in discs], axis=0)
        high = np.max([disc.center for disc in discs], axis=0)
        assert (low + high) / 2 == pytest.approx([width / 2, height / 2])
        assert (low - discs[0].radius > 0).all()
        assert (high + discs[0].radius < [width, height]).all()


def test_long_labels_are_written_smaller_and_tiny_discs_stay_empty():
    path = Graph(("C", "Cl", "sulfur"), ((0, 1), (1, 2)))
    sizes = {words.text: words.size for words in _marks(_plain_scene(path), Words)}
    assert sizes["C"] >= sizes["Cl"] > sizes["sulfur"]  # six letters are not cut
    many = make_random_graphs(1, n_nodes=(400, 400), random_state=0)[0]
    assert not _marks(_plain_scene(many, width=100, height=100), Words)


def test_texts_are_cut_after_sixteen_letters():
    assert Words((0, 0), 10, "x" * 16).shown == "x" * 16
    assert Words((0, 0), 10, "x" * 17).shown == "x" * 15 + "…"


def test_edges_are_coloured_on_a_common_scale_with_nodes():
    path = Graph(("a", "b", "c"), ((0, 1), (1, 2)))
    scene = graph_scene(path, np.array([1.0, 0.0, 0.0]), np.array([-2.0, 1.0]), None, Style())
    bands = [mark.color for mark in _marks(scene, Lines)][:2]
    assert bands == [to_hex(diverging_rgb(value, 2.0)) for value in (-2.0, 1.0)]
    assert _marks(scene, Disc)[0].fill == to_hex(diverging_rgb(1.0, 2.0))
    given = graph_scene(path, np.array([1.0, 0.0, 0.0]), None, None, Style(limit=4.0))
    assert _marks(given, Disc)[0].fill == to_hex(diverging_rgb(1.0, 4.0))


def test_the_root_of_a_pattern_is_marked_most():
    path = Graph(("a", "b", "c", "d"), ((0, 1), (1, 2), (2, 3)))
    place = Occurrence(0, 1, 0, 1, (0, 1, 2), ((0, 1), (1, 2)))
    discs = _marks(graph_scene(path, None, None, place, Style()), Disc)
    marked, (ring, *nodes) = discs[:3], discs[3:]
    assert marked[1].radius > marked[0].radius == marked[2].radius > nodes[0].radius
    assert ring.center == nodes[1].center == marked[1].center
    assert marked[1].radius > ring.radius > nodes[1].radius


def test_trees_stand_in_layers_with_parents_over_their_children():
    parents, layers = (-1, 0, 0, 1, 1, 2), (0, 1, 1, 2, 2, 2)
    tree = [
        TreeNode(parent, layer, name, None, False)
        for parent, layer, name in zip(parents, layers, "rxyuvw", strict=True)
    ]
    scene = tree_scene(tree, "tree")
    mark, *discs = _marks(scene, Disc)
    x, y = np.array([disc.center for disc in discs]).T
    assert mark.center == discs[0].center
    assert mark.radius > discs[0].radius
    assert np.diff(x[3:]) == pytest.approx([x[4] - x[3]] * 2)
    assert x[4] - x[3] > 2 * discs[0].radius
    assert x[1] == pytest.approx((x[3] + x[4]) / 2)
    assert x[2] == pytest.approx(x[5])
    assert x[0] == pytest.approx((x[1] + x[2]) / 2)
    steps = [y[1] - y[0], y[3] - y[1]]
    assert steps[0] == pytest.approx(steps[1])
    assert steps[0] > 2 * discs[0].radius
    assert (y[1], y[3], y[4]) == pytest.approx((y[2], y[4], y[5]))
    assert (scene.width, scene.height) == pytest.approx((x.max() + x.min(), y.max() + y.min()))
