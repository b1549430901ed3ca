"""Molecules as RDKit draws them, with the colours of contributions."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest

from explain.test_draw import png_size
from treelens.explain.decode import find_occurrences
from treelens.explain.draw import (
    Style,
    draw_graph,
)
from treelens.graphs.collection import Graph
from treelens.patterns.vocabulary import PatternVocabulary


def test_molecules_are_drawn_by_rdkit(nitrobenzene):
    graph = nitrobenzene[0]
    style = Style(width=250, height=200)
    svg = draw_graph(graph, np.linspace(-1, 1, 9), np.linspace(-1, 1, 9), style=style)
    ElementTree.fromstring(svg)
    assert "bond-0" in svg  # a class that RDKit gives to its lines
    data = draw_graph(graph, np.linspace(-1, 1, 9), format="png", style=style)
    assert png_size(data) == (500, 2 * (200 + 34))
    assert "bond-0" not in draw_graph(graph, engine="plain")


def test_a_pattern_is_shown_in_a_molecule(nitrobenzene):
    vocabulary, _ = PatternVocabulary.fit(nitrobenzene, depth=1, edge_labels=True)
    pattern = vocabulary.n_patterns - 1
    place = find_occurrences(vocabulary, nitrobenzene, [pattern])[pattern][0]
    plain, marked = draw_graph(nitrobenzene[0]), draw_graph(nitrobenzene[0], highlight=place)
    assert marked.count("<ellipse") - plain.count("<ellipse") == len(place.nodes)


def test_only_molecules_can_be_left_to_rdkit():
    with pytest.raises(ValueError, match="engine='plain'"):
        draw_graph(Graph(("a",), ()), engine="rdkit")
