"""Every atom and every bond of a drawing has the colour of its own contribution, sign included."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest

import treelens as tl
from treelens.explain.decode import find_occurrences
from treelens.explain.draw import Style, draw_graph
from treelens.explain.palette import AGAINST, FOR, NEUTRAL
from treelens.graphs.collection import Graph
from treelens.patterns.vocabulary import PatternVocabulary

SVG = "{http://www.w3.org/2000/svg}"
# No two atoms alike, and bonds that RDKit numbers in another order than the graph its edges.
SMILES = "O=C(N)c1ccncc1"


@pytest.fixture(scope="module")
def molecules():
    pytest.importorskip("rdkit")
    return tl.as_graph_collection([SMILES])


def hex_of(value: float, limit: float) -> str:
    """The colour by hand: neutral at 0, orange for, blue against."""
    end = FOR if value > 0 else AGAINST
    share = abs(value) / limit
    return "#" + "".join(
        f"{round(n + share * (e - n)):02x}" for n, e in zip(NEUTRAL, end, strict=True)
    )


def assert_colours(found: dict, expected: dict) -> None:
    """The same keys, and colours that agree up to RDKit's way of rounding."""
    assert set(found) == set(expected)
    for key, color in expected.items():
        assert rgb_of(found[key]) == pytest.approx(rgb_of(color), abs=1), key


def rgb_of(color: str) -> tuple[int, ...]:
    return tuple(bytes.fromhex(color[1:]))


def distinct_values(n: int, seed: int) -> np.ndarray:
    """Of both signs, none near another, in no order."""
    values = np.linspace(-1.0, 1.0, n)
    return np.random.default_rng(seed).permutation(values)


def style_of(element: ElementTree.Element, name: str) -> str:
    return re.search(rf"(?:^|;){name}:([^;]+)", element.get("style", "") + ";")[1].lower()


def atom_fills(svg: str) -> dict[int, str]:
    """Fill by atom, as RDKit names its discs."""
    discs = ElementTree.fromstring(svg).iter(f"{SVG}ellipse")
    return {int(disc.get("class").removeprefix("atom-")): style_of(disc, "fill") for disc in discs}


def bond_fills(svg: str) -> dict[tuple[int, ...], str]:
    """Fill by the two atoms of a bond; the black lines of the bonds have none."""
    fills = {}
    for path in ElementTree.fromstring(svg).iter(f"{SVG}path"):
        atoms = tuple(sorted(map(int, re.findall(r"atom-(\d+)", path.get("class", "")))))
        if len(atoms) == 2 and style_of(path, "fill") not in ("none", "#000000"):
            assert fills.setdefault(atoms, style_of(path, "fill")) == style_of(path, "fill")
    return fills


def test_orange_speaks_for_and_blue_against():
    assert FOR[0] > FOR[2]
    assert AGAINST[0] < AGAINST[2]


# --- molecules --------------------------------------------------------------------------------


def test_every_atom_has_its_own_colour(molecules):
    graph = molecules[0]
    values = distinct_values(graph.n_nodes, seed=1)
    fills = atom_fills(draw_graph(graph, values, style=Style(legend=False)))
    assert_colours(fills, {atom: hex_of(value, 1.0) for atom, value in enumerate(values)})


def test_every_bond_has_its_own_colour(molecules):
    graph = molecules[0]
    values = distinct_values(len(graph.edges), seed=2)
    svg = draw_graph(graph, np.zeros(graph.n_nodes), values, style=Style(legend=False))
    expected = {tuple(sorted(e)): hex_of(v, 1.0) for e, v in zip(graph.edges, values, strict=True)}
    assert_colours(bond_fills(svg), expected)


def test_atoms_and_bonds_share_a_scale_which_can_be_given(molecules):
    graph = molecules[0]
    atoms, bonds = np.zeros(graph.n_nodes), np.zeros(len(graph.edges))
    atoms[2], bonds[4] = -1.0, 2.0
    for limit in (None, 8.0):
        svg = draw_graph(graph, atoms, bonds, style=Style(legend=False, limit=limit))
        bond = tuple(sorted(graph.edges[4]))
        found = {"atom": atom_fills(svg)[2], "bond": bond_fills(svg)[bond]}
        full = 2.0 if limit is None else limit
        assert_colours(found, {"atom": hex_of(-1.0, full), "bond": hex_of(2.0, full)})


def test_a_pattern_marks_its_own_atoms_and_bonds(molecules):
    vocabulary, _ = PatternVocabulary.fit(molecules, depth=1, edge_labels=True)
    for pattern in range(int(vocabulary.level_offsets[1]), vocabulary.n_patterns):
        place = find_occurrences(vocabulary, molecules, [pattern])[pattern][0]
        svg = draw_graph(molecules[0], highlight=place)
        fills = atom_fills(svg)
        assert set(fills) == set(place.nodes)
        others = {fill for atom, fill in fills.items() if atom != place.root}
        assert len(others) == 1
        assert fills[place.root] not in others
        assert set(bond_fills(svg)) == set(place.edges)


# --- other graphs -----------------------------------------------------------------------------

STAR = Graph(("a", "b", "c", "d"), ((0, 1), (0, 2), (0, 3)))


def middle_of(element: ElementTree.Element) -> tuple[float, float]:
    numbers = list(map(float, re.findall(r"-?\d+(?:\.\d+)?", element.get("d"))))
    return (numbers[0] + numbers[2]) / 2, (numbers[1] + numbers[3]) / 2


def test_every_node_of_a_plain_drawing_has_its_own_colour():
    values = np.array([0.25, -1.0, 0.5, -0.5])
    root = ElementTree.fromstring(draw_graph(STAR, values, style=Style(legend=False)))
    discs, words = list(root.iter(f"{SVG}circle")), list(root.iter(f"{SVG}text"))
    assert [disc.get("fill") for disc in discs] == [hex_of(value, 1.0) for value in values]
    text_at = {float(word.get("x")): word.text for word in words}
    assert [text_at[float(disc.get("cx"))] for disc in discs] == list(STAR.node_labels)


def test_every_edge_of_a_plain_drawing_has_its_own_colour():
    values = np.array([1.0, -0.5, 0.25])
    svg = draw_graph(STAR, np.zeros(4), values, style=Style(legend=False))
    root = ElementTree.fromstring(svg)
    points = np.array([(float(d.get("cx")), float(d.get("cy"))) for d in root.iter(f"{SVG}circle")])
    bands = {}
    for group in root.iter(f"{SVG}g"):
        for path in group.iter(f"{SVG}path"):
            if group.get("stroke").startswith("#") and len(group.get("stroke")) == 7:
                bands[group.get("stroke")] = middle_of(path)
    assert list(bands) == [hex_of(value, 1.0) for value in values]
    for (u, v), middle in zip(STAR.edges, bands.values(), strict=True):
        assert middle == pytest.approx(tuple((points[u] + points[v]) / 2), abs=0.2)


@pytest.mark.parametrize("engine", ["plain", "rdkit"])
def test_the_legend_has_against_and_its_blue_on_the_left(engine, molecules):
    values = distinct_values(molecules[0].n_nodes, seed=3)
    svg = draw_graph(molecules[0], values, engine=engine, style=Style(toward="x"))
    root = ElementTree.fromstring(svg)
    place = {word.text: float(word.get("x")) for word in root.iter(f"{SVG}text")}
    assert place["against x"] < place["-1"] < place["0"] < place["+1"] < place["for x"]
    bars = [g for g in root.iter(f"{SVG}g") if g.get("stroke-width") == "9"]
    at = {bar.get("stroke"): middle_of(bar.find(f"{SVG}path"))[0] for bar in bars}
    assert min(at, key=at.get) == hex_of(-1.0, 1.0)
    assert max(at, key=at.get) == hex_of(1.0, 1.0)
