"""Atoms and bonds of molecules: those that RDKit has."""

import tracemalloc

import pytest

from graphs.test_molecules import MOLECULES, Chem
from treelens.graphs import gathering
from treelens.graphs.errors import GraphDataError, InvalidMoleculesWarning
from treelens.graphs.molecules import smiles_to_collection

SYMBOLS = {"SINGLE": "-", "DOUBLE": "=", "TRIPLE": "#", "AROMATIC": ":", "DATIVE": "-"}


@pytest.mark.parametrize("smiles", MOLECULES)
@pytest.mark.parametrize("hydrogens", [False, True])
def test_atoms_and_bonds_are_as_rdkit_has_them(smiles, hydrogens) -> None:
    graph = smiles_to_collection([smiles], hydrogens=hydrogens)[0]
    molecule = Chem.MolFromSmiles(smiles)
    molecule = Chem.AddHs(molecule) if hydrogens else molecule
    assert graph.node_labels == tuple(atom.GetSymbol() for atom in molecule.GetAtoms())
    expected = {
        tuple(sorted((bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()))): SYMBOLS[
            str(bond.GetBondType())
        ]
        for bond in molecule.GetBonds()
    }
    assert dict(zip(graph.edges, graph.edge_labels, strict=True)) == expected


@pytest.mark.parametrize("smiles", ["C~C", "[Na]~[Cl]"])
def test_bonds_without_an_order_are_kept(smiles) -> None:
    graph = smiles_to_collection([smiles])[0]
    assert graph.edges == ((0, 1),)
    assert graph.edge_labels == ("order 0",)


def test_half_a_surrogate_pair_is_no_molecule() -> None:
    with pytest.raises(GraphDataError, match=r"1 of 2 molecules .* graph 1 'C\\ud800'"):
        smiles_to_collection(["C", "C\ud800"])
    with pytest.warns(InvalidMoleculesWarning):
        assert len(smiles_to_collection(["C", "\udcff"], on_invalid="skip")) == 1


def test_large_molecules_take_no_dense_matrix() -> None:
    n_atoms = 3000  # 72 MB as a dense matrix
    tracemalloc.start()
    graph = smiles_to_collection(["C" * n_atoms])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert graph.n_edges == n_atoms - 1
    assert graph[0].edges[:2] == ((0, 1), (1, 2))
    assert peak < 10 * 2**20


def test_bonds_one_by_one_are_those_of_the_matrix(monkeypatch) -> None:
    by_matrix = list(smiles_to_collection(MOLECULES))
    monkeypatch.setattr(gathering, "MOST_ATOMS_IN_A_MATRIX", 0)
    assert list(smiles_to_collection(MOLECULES)) == by_matrix


def test_rdkit_missing_says_what_to_install(monkeypatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "rdkit", None)
    with pytest.raises(ImportError, match="pip install rdkit"):
        smiles_to_collection(["C"])
