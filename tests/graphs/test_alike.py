"""New molecules are read as those of a recipe were, whatever they come as."""

from __future__ import annotations

import pytest

from treelens.graphs.alike import molecules_alike, sdf_alike, smiles_alike
from treelens.graphs.recipe import GraphRecipe

Chem = pytest.importorskip("rdkit.Chem")
RECIPES = [
    None,
    GraphRecipe.of_molecules(atom_label="element+charge"),
    GraphRecipe.of_molecules(hydrogens=True),
]
SMILES = ["C[NH3+]", "OCC"]


def labels_of(graphs) -> list[list[str]]:
    return [sorted(graph.node_labels) for graph in graphs]


@pytest.mark.parametrize("recipe", RECIPES)
def test_texts_molecules_and_files_give_the_same_graphs(recipe, tmp_path) -> None:
    molecules = [Chem.MolFromSmiles(text) for text in SMILES]
    file = tmp_path / "two.sdf"
    with Chem.SDWriter(str(file)) as writer:
        for molecule in molecules:
            writer.write(molecule)
    expected = labels_of(smiles_alike(SMILES, recipe))
    assert labels_of(molecules_alike(molecules, recipe)) == expected
    assert labels_of(sdf_alike(file, recipe)) == expected


def test_hydrogens_of_a_molecule_go_where_the_recipe_has_none() -> None:
    with_hydrogens = Chem.AddHs(Chem.MolFromSmiles("CO"))
    plain = GraphRecipe.of_molecules()
    assert labels_of(molecules_alike([with_hydrogens], plain)) == [["C", "O"]]
    # Without a recipe nobody said that they should go.
    assert len(labels_of(molecules_alike([with_hydrogens], None))[0]) == 6
    assert with_hydrogens.GetNumAtoms() == 6


def test_charges_are_seen_where_the_recipe_sees_them() -> None:
    charged = GraphRecipe.of_molecules(atom_label="element+charge")
    assert labels_of(smiles_alike(["C[NH3+]"], charged)) == [["C", "N+1"]]
    assert labels_of(smiles_alike(["C[NH3+]"], None)) == [["C", "N"]]
