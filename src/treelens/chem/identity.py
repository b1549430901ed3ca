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
from treelens.graphs.content import structure_hashes


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


def stereo_matters(graphs: GraphCollection) -> bool:
    """Whether labels of atoms or bonds depend on stereochemistry or isotopes."""
    recipe = graphs.recipe
    return recipe.tells_stereo if isinstance(recipe, MoleculeRecipe) else True
