"""Fragments written out as SMARTS: what is written finds the very atoms."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from explain.test_fragment_search import seen_of
from treelens.explain.decode import Occurrence, occurrence_at
from treelens.explain.fragment_search import find_candidates
from treelens.explain.fragment_smarts import (
    FragmentWriter,
    _condition,
    _distances,
    _linear,
    _ring_bonds,
    _spread,
)

Chem = pytest.importorskip("rdkit.Chem")
RING = Occurrence(0, 2, 0, 0, (0, 1, 2, 3), ((0, 1), (0, 2), (1, 3), (2, 3)))
STAR = Occurrence(0, 1, 0, 1, (0, 1, 2, 4), ((0, 1), (1, 2), (1, 4)))
ATOMS = {0: "[#6]", 1: "[#7]", 2: "[#8]", 3: "[#16]", 4: "[#9]"}


def test_branches_stand_in_brackets_and_the_root_first() -> None:
    assert _linear(STAR, ATOMS, None) == "[#7](~[#6])(~[#8])~[#9]"
    bonds = {(0, 1): "-", (1, 2): "=", (1, 4): ":"}
    assert _linear(STAR, ATOMS, bonds) == "[#7](-[#6])(=[#8]):[#9]"


def test_rings_are_closed_by_numbers() -> None:
    text = _linear(RING, ATOMS, None)
    assert text.count("~1") == 2
    query, ring = Chem.MolFromSmarts(text), Chem.MolFromSmiles("C1NSO1")
    assert ring.HasSubstructMatch(query)
    assert not Chem.MolFromSmiles("NCOS").HasSubstructMatch(query)


def test_distances_and_the_edges_that_close_a_ring() -> None:
    assert _distances(RING) == {0: 0, 1: 1, 2: 1, 3: 2}
    assert len(_ring_bonds(RING)) == 1
    assert list(_ring_bonds(STAR)) == []


@pytest.mark.parametrize(
    ("atom", "condition"),
    [
        ("[#6]", "#6"),
        ("[$(a~b)]", "$(a~b)"),
        ("[#6;D3]", "$([#6;D3])"),
        ("[#6,#7]", "$([#6,#7])"),
        ("[$([#6;D3])]", "$([#6;D3])"),
    ],
)
def test_several_conditions_are_bracketed_before_others_join_them(atom, condition) -> None:
    assert _condition(atom) == condition


@pytest.mark.parametrize(("n", "most"), [(0, 3), (3, 3), (4, 3), (100, 7)])
def test_some_are_spread_over_the_whole(n: int, most: int) -> None:
    chosen = _spread(np.arange(n), most)
    assert len(chosen) <= most
    assert chosen == sorted(set(chosen))
    assert not n or (chosen[0] == 0 and chosen[-1] >= n - 1 - n // len(chosen))


def test_what_is_written_finds_the_atoms_that_carry_the_pattern() -> None:
    seen = seen_of(["CC(=O)O", "CCO", "OC(C)C", "c1ccccc1O", "CC(=O)OC", "C1CC1O"], lambda g, n: 1)
    writer, n_written = FragmentWriter(seen, "element"), 0
    for pattern in find_candidates(seen, 2, 1).tolist():
        roots, depth = seen.carriers(pattern), seen.depth_of(pattern)
        fragment = SimpleNamespace(patterns=[pattern], roots=roots, depth=depth)
        smarts = writer.smarts(fragment)
        n_written += smarts is not None
        found = {
            int(offset) + match[0]
            for graph, offset in enumerate(seen.graphs.node_offsets[:-1])
            for match in writer.molecule(graph).GetSubstructMatches(
                Chem.MolFromSmarts(smarts), uniquify=False
            )
        }
        assert found == set(roots.tolist()), smarts
        assert not writer.is_exact("[*]", fragment, range(len(seen.graphs)))
        assert not writer.is_exact("C(", fragment, [0])
    assert n_written > 3


def test_an_occurrence_is_written_with_all_its_atoms() -> None:
    seen = seen_of(["CC(=O)O"], lambda g, n: 1)
    place = occurrence_at(seen.graphs, 0, 1, 0, 1)
    assert set(place.nodes) == {0, 1, 2, 3}
    atoms = dict.fromkeys(place.nodes, "[*]")
    assert Chem.MolFromSmarts(_linear(place, atoms, None)).GetNumAtoms() == 4
