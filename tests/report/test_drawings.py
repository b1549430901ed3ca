"""Drawings of the report on a Gaussian process, each with words for those who cannot see it."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest

from treelens.explain.scene import HIGHLIGHT
from treelens.report.drawings import (
    draw_example,
    draw_fragment,
    draw_legend,
    draw_neighbor,
    draw_side,
)
from treelens.report.evidence_page import render_evidence
from treelens.report.units import Units


class Pictures(HTMLParser):
    """Outermost drawings: their attributes, and whether anything and a title is inside."""

    def __init__(self) -> None:
        super().__init__()
        self.level, self.found = 0, []

    def handle_starttag(self, tag, attributes):
        if self.level:
            self.found[-1]["inside"].add(tag)
        elif tag == "svg":
            self.found.append({**dict(attributes), "inside": set()})
        self.level += tag == "svg"

    def handle_endtag(self, tag):
        self.level -= tag == "svg"


def test_every_picture_has_words(number_model, molecules, class_model, synthetic):
    for model, (graphs, y) in ((number_model, molecules), (class_model, synthetic)):
        pictures = Pictures()
        pictures.feed(render_evidence(model.summary(graphs[1::2], y[1::2])))
        drawn = [x for x in pictures.found if x["inside"]]  # others are drawn when they are opened
        assert len(drawn) > 20
        for picture in drawn:
            hidden = picture.get("aria-hidden") == "true"
            assert hidden or "aria-label" in picture or "title" in picture["inside"]


ROW = {
    "index": 3, "name": None, "labels": ["C", "N", "O"], "edges": [0, 1, 1, 2],
    "edge_labels": ["-", "="], "molecule": None, "drawn": True, "toward": "b",
    "contributions": [0.1, -0.9, 0.5],
}  # fmt: skip
IN_UNITS = Units(1)


def test_the_words_name_the_strongest_nodes_first():
    picture = draw_example(ROW, 0.9, IN_UNITS)
    assert "Graph 3 coloured by contribution; the strongest: N 1 −0.9, O 2 +0.5, C 0" in picture
    assert draw_example({**ROW, "drawn": False}, 0.9, IN_UNITS) is None


def test_names_are_cut_and_escaped():
    named = draw_example({**ROW, "name": "<b>" + 99 * "x"}, 0.9, IN_UNITS)
    assert "Graph 3 (&lt;b&gt;" + 57 * "x" + ")" in named
    assert "<b>" not in named


def test_a_fragment_is_highlighted_in_its_graph():
    picture = {**ROW, "root": 1, "nodes": [1, 2], "tree_edges": [[1, 2]], "graph": "CN=O"}
    row = {"rank": 2, "title": "nitroso", "depth": 1, "effect": -0.5, "picture": picture}
    drawn = draw_fragment(row, IN_UNITS)
    words = "Fragment 2: nitroso, 2 nodes highlighted in graph CN=O; effect −0.5"
    assert words in drawn
    assert HIGHLIGHT in drawn
    assert draw_fragment({**row, "picture": None}, IN_UNITS) is None


def test_a_neighbour_has_its_class_or_its_value():
    row = {"index": 7, "name": "x", "similarity": 0.876, "picture": ROW}
    assert "Training graph x, b; similarity 0.88" in draw_neighbor({**row, "class": "b"}, IN_UNITS)
    assert "Training graph x, 2.5; similarity" in draw_neighbor({**row, "value": 2.51}, IN_UNITS)
    assert draw_neighbor({**row, "picture": None}, IN_UNITS) is None


def test_one_side_of_a_pair_shows_what_the_other_has_not_got():
    side = {**ROW, "class": None, "value": 1.0, "nodes": [0, 1]}
    drawn = draw_side(side, IN_UNITS)
    assert "Training graph 3, 1.0; nodes 0, 1 highlighted" in drawn
    assert HIGHLIGHT in drawn
    same = draw_side({**side, "nodes": [], "class": "b"}, IN_UNITS)
    assert "Training graph 3, b; nothing highlighted" in same
    assert HIGHLIGHT not in same


def test_the_legend_names_a_class_only_where_all_drawings_speak_of_it():
    assert "for b" in draw_legend([ROW, ROW], 0.9)
    mixed = draw_legend([ROW, {**ROW, "toward": "a"}], 0.9)
    assert "for the class" in mixed
    assert "for b" not in mixed
    assert "raises" in draw_legend([{**ROW, "toward": None}], 0.9)
    assert draw_legend([], 0.9) is None
    assert draw_legend([ROW], 0.0) is None


def test_molecules_of_files_of_coordinates_keep_their_hydrogens():
    chem = pytest.importorskip("rdkit.Chem")
    block = chem.MolToMolBlock(chem.AddHs(chem.MolFromSmiles("O")))
    row = {
        **ROW, "labels": ["O", "H", "H"], "edges": [0, 1, 0, 2], "edge_labels": ["-", "-"],
        "molecule": {"mol": block},
    }  # fmt: skip
    assert "bond-1" in draw_example(row, 0.9, IN_UNITS)  # drawn by RDKit, with both bonds
