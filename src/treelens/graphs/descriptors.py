"""RDKit's descriptors of molecules, as columns of numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import numpy as np

from treelens.graphs.collection import GraphCollection
from treelens.graphs.duplicates import mixed, run_sums
from treelens.graphs.molecules import MOST_ATOMS_IN_A_MATRIX

PREFIX = "rdkit:"
_CRIPPEN = ("MolLogP", "MolMR")
# Cheap descriptors of what a graph kernel represents least well: size, polarity and flexibility of
# the whole molecule. Names are RDKit's, but for the formal charge, which it does not list.
COMPACT_DESCRIPTORS = (
    "MolLogP", "MolMR", "TPSA", "LabuteASA", "MolWt", "HeavyAtomCount", "NumHeteroatoms",
    "NumHDonors", "NumHAcceptors", "NHOHCount", "NOCount", "NumRotatableBonds", "RingCount",
    "NumAromaticRings", "NumAliphaticRings", "NumSaturatedRings", "NumAromaticHeterocycles",
    "FractionCSP3", "HallKierAlpha", "Kappa2", "FormalCharge",
)  # fmt: skip


def rdkit_descriptors(
    molecules: Sequence[Any],
    names: Sequence[str] | None = None,
    graphs: GraphCollection | None = None,
) -> np.ndarray:
    """Descriptors of RDKit molecules, shape (n_molecules, n_descriptors); NaN where undefined.

    ``names`` are RDKit's, ``"MolLogP"``; by default all of :func:`descriptor_names`. ``graphs``
    that were read from these molecules save time.
    """
    from rdkit import Chem, rdBase
    from rdkit.Chem import Descriptors

    functions = dict(Descriptors._descList)
    functions |= {"FormalCharge": Chem.GetFormalCharge, "Kappa2": _kappa2}
    names = descriptor_names() if names is None else names
    columns: dict[str, np.ndarray] = {}
    with rdBase.BlockLogs():
        if graphs is not None and set(_CRIPPEN) & set(names):
            columns |= zip(_CRIPPEN, crippen_descriptors(graphs, molecules).T, strict=True)
        others = [name for name in names if name not in columns]
        chosen = [functions[name] for name in others]
        found = np.array([[_number(f, molecule) for f in chosen] for molecule in molecules])
    columns |= zip(others, found.reshape(-1, len(others)).T, strict=True)
    table = np.column_stack([columns[name] for name in names])
    table[~np.isfinite(table) | (np.abs(table) > 1e12)] = np.nan  # some overflow
    return table


def descriptor_names() -> list[str]:
    """All descriptors that RDKit has, in its order."""
    from rdkit.Chem import Descriptors

    return [name for name, _ in Descriptors._descList]


def _number(function: Any, molecule: Any) -> float:
    try:
        return float(function(molecule))
    except (ValueError, ZeroDivisionError, RuntimeError):
        return float("nan")


def _kappa2(molecule: Any) -> float:
    """Kier's second shape index, without listing the paths of two bonds."""
    from rdkit import Chem
    from rdkit.Chem import rdMolDescriptors

    n, alpha = molecule.GetNumAtoms(), rdMolDescriptors.CalcHallKierAlpha(molecule)
    if n > MOST_ATOMS_IN_A_MATRIX or molecule.GetNumHeavyAtoms() < n:
        return rdMolDescriptors.CalcKappa2(molecule)
    degrees = Chem.GetAdjacencyMatrix(molecule).sum(axis=0)
    n_paths = 0.5 * float(degrees @ (degrees - 1))
    squared = (n_paths + alpha) ** 2
    return (n + alpha - 1.0) * (n + alpha - 2.0) ** 2 / squared if squared > 0.0 else 0.0


# --- Crippen's logP and molar refractivity --------------------------------------------------------
# RDKit adds the contributions of all atoms, hydrogens included, and finds each of them by matching
# 110 SMARTS, which takes longer than parsing the molecule. A contribution depends on an atom and
# its bonds, and of oxygen also on the bonds of its neighbours: RDKit is asked once for each such
# environment.

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
    """Return a number for each atom with its bonds, of oxygen also with those of its neighbours."""
    names = [str(name).rstrip("@") for name in graphs.fine_alphabet or ()]
    own = _hashed(names)[graphs.fine_codes]  # (n_nodes,)
    element = _hashed([re.sub(r"H\d*", "", name) for name in names])[graphs.fine_codes]
    bond = _hashed([str(name).rstrip("EZ") for name in graphs.edge_alphabet or ()])
    n_arcs = np.diff(graphs.neighbor_offsets[graphs.node_offsets])
    end = graphs.neighbors + np.repeat(graphs.node_offsets[:-1], n_arcs)

    def around(numbers: np.ndarray) -> np.ndarray:
        return run_sums(mixed(numbers[end] + bond[graphs.edge_codes]), graphs.neighbor_offsets)

    near = around(element)
    is_oxygen = np.array([name[:1] in "Oo" for name in names])[graphs.fine_codes]
    return mixed(own + mixed(near + np.where(is_oxygen, around(mixed(element + near)), 0)))


def _hashed(names: Sequence[str]) -> np.ndarray:
    digests = [blake2b(name.encode(), digest_size=8).digest() for name in names]
    return np.frombuffer(b"".join(digests), dtype=np.uint64)


def _contributions(molecule: Any) -> list[tuple[float, float]]:
    """The contributions of every heavy atom together with its hydrogens."""
    from rdkit import Chem
    from rdkit.Chem.rdMolDescriptors import _CalcCrippenContribs

    whole, n = Chem.AddHs(molecule), molecule.GetNumAtoms()
    parts = np.array(_CalcCrippenContribs(whole))
    owner = [*range(n), *(atom.GetNeighbors()[0].GetIdx() for atom in list(whole.GetAtoms())[n:])]
    return list(zip(*(np.bincount(owner, column, n).tolist() for column in parts.T), strict=True))
