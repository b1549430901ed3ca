"""The same molecule in many spellings, against canonical SMILES of every row."""

from __future__ import annotations

import random

import pytest

from treelens.graphs.molecules import molecules_to_collection, same_molecules, smiles_to_collection

Chem = pytest.importorskip("rdkit.Chem", reason="needs RDKit: pip install rdkit")

SMILES = [
    "CCO", "COC", "CC(=O)Oc1ccccc1C(=O)O", "C1CCCCC1", "C1CC1.C1CC1", "c1ccc2ccccc2c1",
    "C[C@H](N)C(=O)O", "C[C@@H](N)C(=O)O", "F/C=C/F", r"F/C=C\F", "[2H]C", "CC(C)C", "CCCC",
    "C1CCCCC1C1CCCCC1", "[NH3+]CC(=O)[O-]", "NCC(=O)O",
]  # fmt: skip


def naive_groups(smiles: list[str], stereo: bool) -> list[int]:
    first: dict[str, int] = {}
    texts = [Chem.MolToSmiles(Chem.MolFromSmiles(s), isomericSmiles=stereo) for s in smiles]
    return [first.setdefault(text, i) for i, text in enumerate(texts)]


def spellings() -> list[str]:
    """Every molecule three times, its atoms in another order each time."""
    rng, found = random.Random(0), []
    for text in SMILES * 3:
        molecule = Chem.MolFromSmiles(text)
        order = list(range(molecule.GetNumAtoms()))
        rng.shuffle(order)
        found.append(Chem.MolToSmiles(Chem.RenumberAtoms(molecule, order), canonical=False))
    rng.shuffle(found)
    return found


@pytest.mark.parametrize("label", ["element", "element+chirality+isotope"])
def test_against_canonical_smiles_of_every_row(label) -> None:
    smiles, stereo = spellings(), label != "element"
    bond_label = "order+stereo" if stereo else "order"
    graphs = smiles_to_collection(smiles, atom_label=label, bond_label=bond_label)
    same = same_molecules(graphs)
    expected = naive_groups(smiles, stereo)
    assert same.groups.tolist() == expected
    full = naive_groups(smiles, True)
    n_stereo = sum(i != expected[i] and full[i] != full[expected[i]] for i in range(len(expected)))
    assert same.n_stereo == n_stereo
    assert (n_stereo > 0) != stereo


def test_molecules_with_hydrogens_are_those_without() -> None:
    plain = [Chem.MolFromSmiles(s) for s in ("CCO", "OCC", "CCN")]
    mixed = [plain[0], Chem.AddHs(plain[1]), plain[2]]
    alike = molecules_to_collection([Chem.RemoveHs(m) for m in mixed])
    assert same_molecules(alike).groups.tolist() == [0, 0, 2]
    full = molecules_to_collection([Chem.AddHs(m) for m in plain])
    assert same_molecules(full).groups.tolist() == [0, 0, 2]


def test_real_molecules(data_folder) -> None:
    path = data_folder / "smiles" / "BBBP.csv.gz"
    if not path.exists():
        pytest.skip("needs smiles/BBBP.csv.gz in TREELENS_DATA")
    from treelens import load_dataset

    graphs, _ = load_dataset("BBBP", folder=data_folder)
    smiles = list(graphs.graph_data["smiles"])
    assert same_molecules(graphs).groups.tolist() == naive_groups(smiles, False)
