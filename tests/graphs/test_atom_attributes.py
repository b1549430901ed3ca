"""Numbers of atoms: RDKit's own sums, missing values, functions and recipes."""

from pathlib import Path

import numpy as np
import pytest

import treelens as tl
from treelens.graphs.errors import GraphDataError
from treelens.graphs.molecules import molecules_to_collection, smiles_to_collection
from treelens.graphs.recipe import GraphRecipe

Chem = pytest.importorskip("rdkit.Chem", reason="needs RDKit")
SMILES = ["CC(=O)Oc1ccccc1C(=O)O", "C[NH3+]", "CN1C=NC2=C1C(=O)N(C(=O)N2C)C"]


def columns(graphs: tl.GraphCollection) -> dict[str, np.ndarray]:
    return dict(zip(graphs.attribute_names, graphs.node_attributes.T, strict=True))


def test_contributions_add_up_to_the_descriptors_of_rdkit() -> None:
    from rdkit.Chem import Crippen, rdMolDescriptors

    names = ["crippen", "tpsa", "labute", "estate"]
    graphs = smiles_to_collection(SMILES, hydrogens=True, atom_attributes=names)
    found = columns(graphs)
    assert tuple(found) == ("crippen logP", "crippen MR", "tpsa", "labute", "estate")
    for index, smiles in enumerate(SMILES):
        molecule, graph = Chem.AddHs(Chem.MolFromSmiles(smiles)), graphs[index]
        assert sum(graph.node_attributes["crippen logP"]) == pytest.approx(
            Crippen.MolLogP(molecule)
        )
        assert sum(graph.node_attributes["crippen MR"]) == pytest.approx(Crippen.MolMR(molecule))
        assert sum(graph.node_attributes["tpsa"]) == pytest.approx(
            rdMolDescriptors.CalcTPSA(molecule)
        )
        # of the surface, a part belongs to hydrogens that are no atoms
        hydrogens = rdMolDescriptors._CalcLabuteASAContribs(molecule)[1]
        assert sum(graph.node_attributes["labute"]) + hydrogens == pytest.approx(
            rdMolDescriptors.CalcLabuteASA(molecule)
        )


def test_charges_add_up_and_are_missing_for_elements_without_parameters() -> None:
    graphs = smiles_to_collection(
        [*SMILES, "C[Se]C"], hydrogens=True, atom_attributes=["gasteiger"]
    )
    for graph, charge in zip(graphs[:3], (0, 1, 0), strict=True):
        assert sum(graph.node_attributes["gasteiger"]) == pytest.approx(charge, abs=1e-6)
    assert np.isnan(graphs[3].node_attributes["gasteiger"]).any()


def test_new_molecules_get_the_same_attributes(tmp_path) -> None:
    options = {"atom_attributes": ["gasteiger", "crippen"], "atom_label": "element+charge"}
    path = tmp_path / "x.csv"
    path.write_text("smiles,label\n" + "".join(f"{s},{i}\n" for i, s in enumerate(SMILES)))
    expected = smiles_to_collection(SMILES, **options)
    recipe = GraphRecipe.from_plain(expected.recipe.to_plain())
    assert recipe == expected.recipe
    assert "atom_attributes" in str(recipe)
    for graphs in (
        tl.read_smiles(path, **options)[0],
        tl.read_table(path, target="label", **options).graphs,
        next(iter(tl.SmilesBlocks(path, **options))).load().graphs,
        molecules_to_collection([Chem.MolFromSmiles(s) for s in SMILES], **options),
        tl.as_graph_collection(SMILES, recipe=recipe),
        tl.as_graph_collection([Chem.MolFromSmiles(s) for s in SMILES], recipe=recipe),
        tl.as_graph_collection(list(expected)),
    ):
        assert graphs.attribute_names == expected.attribute_names
        np.testing.assert_array_equal(graphs.node_attributes, expected.node_attributes)
    assert smiles_to_collection(SMILES).node_attributes is None


def numbers(molecule) -> dict:
    return {"z": [atom.GetAtomicNum() for atom in molecule.GetAtoms()], "none": np.full(
        molecule.GetNumAtoms(), np.nan)}  # fmt: skip


def test_a_function_of_the_molecule() -> None:
    graphs = smiles_to_collection(SMILES, atom_attributes=numbers)
    assert graphs[1].node_attributes["z"] == (6.0, 7.0)
    assert np.isnan(columns(graphs)["none"]).all()
    again = tl.as_graph_collection(SMILES, recipe=graphs.recipe)
    np.testing.assert_array_equal(again.node_attributes, graphs.node_attributes)
    stored = GraphRecipe.from_plain(graphs.recipe.to_plain())
    with pytest.raises(GraphDataError, match=r"numbers.*does not keep functions"):
        tl.as_graph_collection(SMILES, recipe=stored)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda m: {"q": [1.0]}, r"Graph 0: .*each of 13 atoms"),
        (lambda m: {"q": ["x"] * m.GetNumAtoms()}, "must give a number"),
        (lambda m: {str(m.GetNumAtoms()): np.zeros(m.GetNumAtoms())}, r"Graph 1: .*'13'"),
        (lambda m: {"q": np.full(m.GetNumAtoms(), np.inf)}, "inf .*'q'"),
    ],
)
def test_functions_that_do_not_fit(function, words) -> None:
    with pytest.raises(GraphDataError, match=words):
        smiles_to_collection(SMILES, atom_attributes=function)


def test_unknown_names() -> None:
    with pytest.raises(ValueError, match=r"'gasteiger'.*got \['mulliken'\]"):
        smiles_to_collection(SMILES, atom_attributes=["mulliken"])


def test_molecules_of_an_sdf(tmp_path) -> None:
    path = Path(tmp_path / "x.sdf")
    with Chem.SDWriter(str(path)) as writer:
        writer.write(Chem.MolFromSmiles(SMILES[0]))
    graphs, _ = tl.read_smiles(path, target=None, atom_attributes="tpsa")
    assert graphs.attribute_names == ("tpsa",)
