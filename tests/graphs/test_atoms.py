"""Labels of atoms against RDKit's atoms, in any combination of parts."""

from itertools import combinations

import numpy as np
import pytest

from treelens.graphs.atoms import ATOM_PARTS, FINE_PARTS, atom_parts, ordered_name
from treelens.graphs.molecules import smiles_to_collection
from treelens.patterns.forest import usual_trees

Chem = pytest.importorskip("rdkit.Chem", reason="needs RDKit: pip install rdkit")

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


def test_fine_labels_refine_the_labels() -> None:
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


def invariant(z, degree, hydrogens, charge, mass, ring) -> np.ndarray:
    """RDKit's connectivity invariants (the hash of Boost), vectorised."""
    seed = np.zeros(np.shape(z), dtype=np.uint32)
    for values in (z, np.add(degree, hydrogens), hydrogens, charge, mass):
        mixed = np.asarray(values).astype(np.uint32) + np.uint32(0x9E3779B9)
        seed = seed ^ (mixed + (seed << np.uint32(6)) + (seed >> np.uint32(2)))
    last = np.uint32(1) + np.uint32(0x9E3779B9) + (seed << np.uint32(6)) + (seed >> np.uint32(2))
    return np.where(ring, seed ^ last, seed)


@pytest.mark.parametrize("hydrogens", [False, True])
def test_atoms_do_not_depend_on_the_molecules_before(hydrogens) -> None:
    smiles = ["O", "[2H]O[2H]", "[H]O[2H]", "C[2H]", "C", "CC", "[H][H]", "*C", "c1ccccc1"]
    smiles.append("C1=CCC=CC1")
    for order in (smiles, smiles[::-1]):
        graphs = smiles_to_collection(order, atom_label="element+hydrogens", hydrogens=hydrogens)
        for graph, text in zip(graphs, order, strict=True):
            alone = smiles_to_collection([text], hydrogens=hydrogens)[0]
            assert graph.fine_labels == alone.fine_labels
            molecule = Chem.MolFromSmiles(text)
            molecule = Chem.AddHs(molecule) if hydrogens else molecule
            assert graph.fine_labels == tuple(
                naive_label(atom, FINE_PARTS) for atom in molecule.GetAtoms()
            )


def test_invariants_are_different_for_different_atoms() -> None:
    """Atoms are told apart by a hash: no two atoms that molecules may have must share one."""
    from rdkit.Chem.rdMolDescriptors import GetConnectivityInvariants

    for smiles in SMILES:
        molecule = Chem.MolFromSmiles(smiles)
        if molecule.GetNumHeavyAtoms() < molecule.GetNumAtoms():
            continue  # hydrogens that are atoms count as hydrogens of their neighbours
        table = Chem.GetPeriodicTable()
        parts = [
            (
                atom.GetAtomicNum(), atom.GetDegree(), atom.GetTotalNumHs(), atom.GetFormalCharge(),
                int(atom.GetMass() - table.GetAtomicWeight(atom.GetAtomicNum())), atom.IsInRing(),
            )
            for atom in molecule.GetAtoms()
        ]  # fmt: skip
        expected = invariant(*np.array(parts).T)
        assert list(GetConnectivityInvariants(molecule)) == expected.tolist()
    grid = (range(119), range(7), range(5), range(-3, 5), [0], [0, 1])  # all elements
    heavy = ([1, 6, 7, 8, 15, 16, 17, 53], range(5), range(5), [-1, 0, 1], range(-7, 9), [0, 1])
    atoms = np.concatenate(
        [np.stack(np.meshgrid(*x, indexing="ij"), -1).reshape(-1, 6) for x in (grid, heavy)]
    )
    atoms = np.unique(atoms, axis=0)
    assert len(np.unique(invariant(*atoms.T))) == len(atoms) > 60_000
