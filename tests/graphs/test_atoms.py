"""Labels of atoms against what RDKit says of each atom, in any combination of parts."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from treelens.graphs.atoms import (
    ATOM_PARTS,
    FINE_PARTS,
    atom_parts,
    different_keys,
    ordered_name,
)
from treelens.graphs.molecules import molecules_to_collection, smiles_to_collection
from treelens.patterns.forest import usual_trees

Chem = pytest.importorskip("rdkit.Chem", reason="needs RDKit: pip install 'treelens[chem]'")

SMILES = [
    "C[C@H](N)C(=O)[O-]", "c1cc[nH]c1", "[13CH3]C1CCC1", "C[N+](C)(C)C", "[2H]O[2H]", "[Fe+2]",
    "C[C@@H](O)[C@H](F)Cl", "*c1ccccc1", "O=S(=O)(O)c1ccc2ccccc2c1", "[C-]#[O+]",
]  # fmt: skip


def naive_label(atom, parts) -> str:
    """One part after the other, in words."""
    from rdkit.Chem import rdCIPLabeler

    rdCIPLabeler.AssignCIPLabels(atom.GetOwningMol())
    small = atom.GetIsAromatic() and "aromatic" in parts
    name = str(atom.GetIsotope()) if "isotope" in parts and atom.GetIsotope() else ""
    if "element" in parts:
        name += atom.GetSymbol().lower() if small else atom.GetSymbol()
    elif small:
        name += "a"
    n_h = atom.GetTotalNumHs()
    name += {0: "", 1: "H"}.get(n_h, f"H{n_h}") if "hydrogens" in parts else ""
    charge = atom.GetFormalCharge()
    name += f"{charge:+d}" if "charge" in parts and charge else ""
    name += "@" if "ring" in parts and atom.IsInRing() and not small else ""
    name += f"D{atom.GetDegree()}" if "degree" in parts else ""
    if "chirality" in parts and atom.HasProp("_CIPCode"):
        name += "_" + atom.GetProp("_CIPCode")
    return name or "-"


@pytest.mark.parametrize("size", [1, 2, 3, 8])
def test_every_combination_of_parts(size) -> None:
    molecules = [Chem.MolFromSmiles(s) for s in SMILES]
    for parts in combinations(ATOM_PARTS, size):
        graphs = smiles_to_collection(SMILES, atom_label="+".join(parts))
        for graph, molecule in zip(graphs, molecules, strict=True):
            assert graph.node_labels == tuple(naive_label(a, parts) for a in molecule.GetAtoms())


def test_fine_labels_say_all_that_the_labels_say() -> None:
    """The tree of fine labels refines the other one: a fine label has one plain label."""
    for label in ("element", "degree+chirality", "element+isotope"):
        graphs = smiles_to_collection(SMILES, atom_label=label)
        plain_of: dict[int, set[int]] = {}
        for fine, plain in zip(graphs.fine_codes, graphs.node_codes, strict=True):
            plain_of.setdefault(int(fine), set()).add(int(plain))
        assert all(len(found) == 1 for found in plain_of.values())
        expected = FINE_PARTS | atom_parts(label)
        molecule = Chem.MolFromSmiles(SMILES[0])
        assert graphs[0].fine_labels == tuple(naive_label(a, expected) for a in molecule.GetAtoms())


def test_mirror_images_differ_only_where_that_is_looked_at() -> None:
    pair = ["C[C@H](N)O", "C[C@@H](N)O"]
    plain = smiles_to_collection(pair)
    assert plain[0].node_labels == plain[1].node_labels
    chiral = smiles_to_collection(pair, atom_label="element+chirality")
    assert {chiral[0].node_labels[1], chiral[1].node_labels[1]} == {"C_R", "C_S"}
    of_molecules = molecules_to_collection(
        [Chem.MolFromSmiles(s) for s in pair], atom_label="element+chirality"
    )
    assert [g.node_labels for g in of_molecules] == [g.node_labels for g in chiral]


def test_sides_of_double_bonds() -> None:
    smiles = ["C/C=C/C", r"C/C=C\C", "CC=CC", "c1ccccc1"]
    graphs = smiles_to_collection(smiles, bond_label="order+stereo")
    assert [graph.edge_labels[1] for graph in graphs] == ["=E", "=Z", "=", ":"]
    assert usual_trees(graphs) == ("labels", "fine", "fine+edges")
    plain = smiles_to_collection(smiles)
    assert plain[0].edge_labels == plain[1].edge_labels == ("-", "=", "-")
    assert usual_trees(plain) == ("labels", "fine")
    assert [g.edges for g in plain] == [g.edges for g in graphs]


def test_names_are_put_in_order_and_checked() -> None:
    assert smiles_to_collection(["C"], atom_label="ring+element").recipe.atom_label == (
        "element+ring"
    )
    assert ordered_name(frozenset(ATOM_PARTS)) == "+".join(ATOM_PARTS)
    for bad in ("", "element+", "element+element", "colour", "Element", 3):
        with pytest.raises(ValueError, match="atom_label must be of"):
            smiles_to_collection(["C"], atom_label=bad)
    with pytest.raises(ValueError, match=r"bond_label must be one of 'order'.*got 'type'"):
        smiles_to_collection(["C"], bond_label="type")


@pytest.mark.parametrize("largest", [1 << 10, 1 << 23, 1 << 40])
def test_different_keys_are_those_of_numpy(largest) -> None:
    keys = np.random.default_rng(0).integers(0, largest, 500)
    for found, expected in zip(
        different_keys(keys), np.unique(keys, return_inverse=True), strict=True
    ):
        assert found.tolist() == expected.tolist()
    assert [len(part) for part in different_keys(keys[:0])] == [0, 0]
