"""Which graphs are the same molecule, whatever way it is written.

Two molecules are the same where their canonical SMILES are. Writing these takes about as long as
reading the molecules, so it is done only for graphs that a quick hash cannot tell apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from treelens.chem.molecules import smiles_by_recipe
from treelens.chem.parsing import molecules_behind, parsed_smiles, quiet, rdkit, smiles_parser
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


def comparable_smiles(smiles: list[str], others: Sequence[Any], recipe: object) -> dict[str, str]:
    """Return the standard form of each molecule, where its formula is that of another.

    Tautomers have the same formula, so that the search for those of all others is saved.
    """
    if "tautomer" not in steps_of(recipe):
        return dict(zip(smiles, smiles, strict=True))
    from rdkit.Chem.rdMolDescriptors import CalcMolFormula

    formulas = set(map(CalcMolFormula, others))
    different = list(dict.fromkeys(smiles))
    molecules = zip(different, parsed_smiles(different), strict=True)
    some = [text for text, molecule in molecules if CalcMolFormula(molecule) in formulas]
    own = dict(zip(some, standard_smiles(some, recipe), strict=True))
    return {text: own.get(text, text) for text in different}


def steps_of(recipe: object) -> tuple[str, ...]:
    """Return the steps by which molecules of a recipe are standardised."""
    return recipe.standardize if isinstance(recipe, MoleculeRecipe) else ()


def standard_smiles(smiles: list[str], recipe: object, tautomers: bool = True) -> list[str]:
    """Return canonical SMILES as the model reads molecules; ``tautomers``: the canonical ones."""
    steps = tuple(step for step in steps_of(recipe) if tautomers or step != "tautomer")
    if not steps or not smiles:
        return smiles
    read = smiles_by_recipe(smiles, MoleculeRecipe.of("smiles", standardize=steps))
    return [rdkit().MolToSmiles(molecule) for molecule in molecules_behind(read)]
