"""Crippen's logP and molar refractivity, from atoms that were met before.

RDKit adds the contributions of all atoms, hydrogens included, and finds each of them by matching
110 SMARTS, which takes longer than parsing the molecule. A contribution depends on an atom and its
bonds, and of oxygen also on the bonds of its neighbours: RDKit is asked once for each such
environment.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import numpy as np

from treelens.graphs.collection import GraphCollection

# Labels of other atoms do not tell all bonds apart (dative ones count as single).
_USUAL = re.compile(r"(C|N|O|F|P|S|Cl|Br|I|c|n|o|p|s)(H\d*)?([+-]\d+)?@?")
_known: dict[int, tuple[float, float]] = {}  # of an atom with its hydrogens, by environment
_MOST_KNOWN = 100_000


def crippen_descriptors(graphs: GraphCollection, molecules: Sequence[Any]) -> np.ndarray:
    """``MolLogP`` and ``MolMR`` of the molecules behind graphs, shape (n_graphs, 2)."""
    from rdkit.Chem.rdMolDescriptors import CalcCrippenDescriptors

    n, graph_of = len(graphs), np.repeat(np.arange(len(graphs)), graphs.sizes)
    usual = _are_usual(graphs, graph_of)
    found = np.empty((n, 2))
    for graph in np.flatnonzero(~usual).tolist():
        found[graph] = CalcCrippenDescriptors(molecules[graph])
    if not usual.any():
        return found
    keys = _environments(graphs)
    nodes = np.flatnonzero(usual[graph_of])
    different, first, which = np.unique(keys[nodes], return_index=True, return_inverse=True)
    if len(_known) > _MOST_KNOWN:
        _known.clear()
    table = np.empty((len(different), 2))
    for k, (key, node) in enumerate(zip(different.tolist(), nodes[first].tolist(), strict=True)):
        if key not in _known:
            graph = graph_of[node]
            rows = slice(graphs.node_offsets[graph], graphs.node_offsets[graph + 1])
            _known.update(zip(keys[rows].tolist(), _contributions(molecules[graph]), strict=True))
        table[k] = _known[key]
    sums = [np.bincount(graph_of[nodes], column[which], n) for column in table.T]
    found[usual] = np.column_stack(sums)[usual]
    return found


def _are_usual(graphs: GraphCollection, graph_of: np.ndarray) -> np.ndarray:
    """Whether labels tell all that contributions depend on, shape (n_graphs,)."""
    names, recipe = graphs.fine_alphabet, graphs.recipe
    if names is None or graphs.edge_codes is None or recipe is None or recipe.reader != "smiles":
        return np.zeros(len(graphs), dtype=bool)
    known = np.array([_USUAL.fullmatch(str(name)) is not None for name in names], dtype=bool)
    strange = np.bincount(graph_of, ~known[graphs.fine_codes], len(graphs)) > 0
    return ~strange & [">" not in text and "<" not in text for text in graphs.graph_data["smiles"]]


def _environments(graphs: GraphCollection) -> np.ndarray:
    """A number for each atom with its bonds, of oxygen also with those of its neighbours."""
    names = [str(name).rstrip("@") for name in graphs.fine_alphabet or ()]
    own = _hashed(names)[graphs.fine_codes]  # (n_nodes,)
    element = _hashed([re.sub(r"H\d*", "", name) for name in names])[graphs.fine_codes]
    bond = _hashed([str(name).rstrip("EZ") for name in graphs.edge_alphabet or ()])
    offsets, n_arcs = graphs.neighbor_offsets, np.diff(graphs.neighbor_offsets[graphs.node_offsets])
    end = graphs.neighbors + np.repeat(graphs.node_offsets[:-1], n_arcs)

    def around(numbers: np.ndarray) -> np.ndarray:
        """Sums over the neighbours of each atom."""
        sums = np.cumsum(_mixed(numbers[end] + bond[graphs.edge_codes]), dtype=np.uint64)
        sums = np.concatenate([np.zeros(1, dtype=np.uint64), sums])
        return sums[offsets[1:]] - sums[offsets[:-1]]

    near = around(element)
    is_oxygen = np.array([name[:1] in "Oo" for name in names])[graphs.fine_codes]
    return _mixed(own + _mixed(near + np.where(is_oxygen, around(_mixed(element + near)), 0)))


def _hashed(names: Sequence[str]) -> np.ndarray:
    digests = [blake2b(name.encode(), digest_size=8).digest() for name in names]
    return np.frombuffer(b"".join(digests), dtype=np.uint64)


def _mixed(numbers: np.ndarray) -> np.ndarray:
    """Numbers of 64 bits with all bits mixed (the finaliser of SplitMix64)."""
    numbers = (numbers ^ numbers >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ numbers >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return numbers ^ numbers >> np.uint64(31)


def _contributions(molecule: Any) -> list[tuple[float, float]]:
    """The contributions of every heavy atom together with its hydrogens."""
    from rdkit import Chem
    from rdkit.Chem.rdMolDescriptors import _CalcCrippenContribs

    whole, n = Chem.AddHs(molecule), molecule.GetNumAtoms()
    parts = np.array(_CalcCrippenContribs(whole))
    owner = [*range(n), *(atom.GetNeighbors()[0].GetIdx() for atom in list(whole.GetAtoms())[n:])]
    return list(zip(*(np.bincount(owner, column, n).tolist() for column in parts.T), strict=True))
