"""Which graphs are the same molecule, whatever way it is written.

Two molecules are the same where their canonical SMILES are. Writing these takes about as long as
reading the molecules, so it is done only for graphs that a quick hash cannot tell apart.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from treelens.chem.parsing import quiet, rdkit, smiles_parser
from treelens.chem.recipe import MoleculeRecipe
from treelens.graphs.collection import GraphCollection

_ROUNDS = 4
_ODD = np.uint64(0x9E3779B97F4A7C15)


class SameMolecules(NamedTuple):
    """Which graphs are the same molecule."""

    groups: np.ndarray  # (n_graphs,) the first graph that is the same molecule
    n_stereo: int  # of those that repeat another: how many are a stereoisomer or isotope of it


def same_molecules(graphs: GraphCollection) -> SameMolecules:
    """Groups of graphs that are the same molecule.

    Stereochemistry and isotopes count only where labels of atoms or bonds depend on them.

    Examples
    --------
    >>> from treelens.chem.molecules import smiles_to_collection
    >>> graphs = smiles_to_collection(["OCC", "CCN", "CCO", "C[C@H](N)O", "C[C@@H](N)O"])
    >>> same_molecules(graphs)
    SameMolecules(groups=array([0, 1, 0, 3, 3]), n_stereo=1)
    """
    chem, parse, data = rdkit(), smiles_parser(), graphs.graph_data

    def written(index: int, stereo: bool) -> str:
        known = "mol" in data
        molecule = chem.RemoveHs(data["mol"][index]) if known else parse(data["smiles"][index])
        return str(chem.MolToSmiles(molecule, isomericSmiles=stereo))

    by_hash: dict[int, list[int]] = {}
    for index, key in enumerate(structure_hashes(graphs).tolist()):
        by_hash.setdefault(key, []).append(index)
    groups, stereo, n_stereo = np.arange(len(graphs)), stereo_matters(graphs), 0
    with quiet():
        for same_hash in by_hash.values():
            first_of: dict[str, int] = {}
            for index in same_hash if len(same_hash) > 1 else ():
                first = first_of.setdefault(written(index, stereo), index)
                groups[index] = first
                if first != index and not stereo:
                    n_stereo += written(index, True) != written(first, True)
    return SameMolecules(groups, n_stereo)


def structure_hashes(graphs: GraphCollection) -> np.ndarray:
    """A number for each graph, shape (n_graphs,): equal for equal graphs, else most often not."""
    codes = graphs.node_codes if graphs.fine_codes is None else graphs.fine_codes
    degrees = np.diff(graphs.neighbor_offsets)
    first_node = np.repeat(graphs.node_offsets[:-1], graphs.sizes)  # (n_nodes,)
    ends = graphs.neighbors + np.repeat(first_node, degrees)  # (n_arcs,) among all nodes
    bonds = (
        np.zeros(len(ends), np.uint64)
        if graphs.edge_codes is None
        else mixed(graphs.edge_codes.astype(np.uint64) + np.uint64(7))
    )
    colors = mixed(codes.astype(np.uint64))
    for _ in range(_ROUNDS):
        around = run_sums(mixed(colors[ends] + bonds), graphs.neighbor_offsets)
        colors = mixed(colors * _ODD + around)
    return run_sums(colors, graphs.node_offsets)


def mixed(values: np.ndarray) -> np.ndarray:
    """Return whole numbers scattered over all of 64 bits."""
    values = (values + _ODD) * np.uint64(0xBF58476D1CE4E5B9)
    values ^= values >> np.uint64(29)
    values = values * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(32))


def run_sums(values: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Return sums of runs, modulo 2**64."""
    total = np.zeros(len(values) + 1, dtype=np.uint64)
    np.cumsum(values, out=total[1:])
    return total[offsets[1:]] - total[offsets[:-1]]


def stereo_matters(graphs: GraphCollection) -> bool:
    """Whether labels of atoms or bonds depend on stereochemistry or isotopes."""
    recipe = graphs.recipe
    return recipe.tells_stereo if isinstance(recipe, MoleculeRecipe) else True
