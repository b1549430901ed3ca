"""RDKit's descriptors as columns, and Crippen's from known atoms: the numbers that RDKit gives."""

import numpy as np
import pytest

from treelens.graphs import descriptors
from treelens.graphs.descriptors import (
    COMPACT_DESCRIPTORS,
    crippen_descriptors,
    descriptor_names,
    rdkit_descriptors,
)
from treelens.graphs.molecules import molecules_to_collection, smiles_to_collection

Chem = pytest.importorskip("rdkit.Chem")
# Hydrogens of oxygen depend on atoms two bonds away; the last ones have atoms or bonds that labels
# do not describe in full.
SMILES = [
    "CCO", "Oc1ccccc1", "CC(=O)O", "OO", "ON=C", "OS(=O)(=O)C", "OC=C", "OC(=N)C", "O=CC", "O=C",
    "O=Cc1ccccc1", "O=C(c1ccccc1)C", "O=C(N)N", "O=C(Cl)Cl", "[O-]C(=O)C", "[O-][N+](=O)C", "O=C=O",
    "CN(C)C", "Nc1ccccc1", "CN=[N+]=[N-]", "C[N+](C)(C)C", "[NH4+]", "c1cc[nH]c1", "c1cc[n+](C)cc1",
    "CC#N", "C=C=C", "CC(C)(F)Cl", "BrC(I)=C", "CS(=O)C", "c1ccsc1", "CP(=O)(O)O",
    "FC(F)(F)c1ccncc1", "C/C=C/C", "CC1CC1", "O=c1cc[nH]cc1", "c1ccc2ccccc2c1", "O", "C",
    "[13CH4]", "[2H]CO", "[H][H]", "[Na+].[Cl-]", "C[Si](C)(C)C", "CB(O)O", "CN(C)(C)->O",
    "N->[Cu+2]", "C[Hg]C",
]  # fmt: skip


@pytest.mark.parametrize("options", [{}, {"hydrogens": True}, {"bond_label": "order+stereo"},
                                     {"atom_label": "degree"}])  # fmt: skip
def test_all_molecules_and_one_by_one_have_the_numbers_of_rdkit(options, monkeypatch) -> None:
    from rdkit.Chem.rdMolDescriptors import CalcCrippenDescriptors

    monkeypatch.setattr(descriptors, "_known", {})
    graphs = smiles_to_collection(SMILES, **options)
    molecules = [Chem.MolFromSmiles(text) for text in SMILES]
    expected = [CalcCrippenDescriptors(molecule) for molecule in molecules]
    for _ in range(2):  # the second time all contributions are known
        np.testing.assert_allclose(crippen_descriptors(graphs, molecules), expected, atol=1e-10)
    for k, molecule in enumerate(molecules):
        found = crippen_descriptors(graphs[[k]], [molecule])
        np.testing.assert_allclose(found[0], expected[k], atol=1e-10)


def test_molecules_of_the_user_may_have_any_bonds() -> None:
    from rdkit.Chem.rdMolDescriptors import CalcCrippenDescriptors

    molecules = [Chem.MolFromSmiles(text) for text in ("CN(C)(C)->O", "CN(C)C", "CO")]
    found = crippen_descriptors(molecules_to_collection(molecules), molecules)
    np.testing.assert_allclose(found, [CalcCrippenDescriptors(m) for m in molecules])


def test_graphs_change_no_descriptor() -> None:
    molecules = [Chem.MolFromSmiles(text) for text in SMILES]
    plain = rdkit_descriptors(molecules, COMPACT_DESCRIPTORS)
    with_graphs = rdkit_descriptors(molecules, COMPACT_DESCRIPTORS, smiles_to_collection(SMILES))
    np.testing.assert_allclose(with_graphs, plain, atol=1e-10)
    from rdkit.Chem.rdMolDescriptors import CalcKappa2

    column = plain[:, COMPACT_DESCRIPTORS.index("Kappa2")]
    np.testing.assert_allclose(column, [CalcKappa2(molecule) for molecule in molecules])


def test_all_descriptors_by_default() -> None:
    names, found = descriptor_names(), rdkit_descriptors([Chem.MolFromSmiles("CCO")])
    assert found.shape == (1, len(names))
    assert len(set(names)) == len(names) > 100
    assert found[0, names.index("HeavyAtomCount")] == 3


@pytest.mark.parametrize("given", [np.inf, -np.inf, 2e12, -2e12, ValueError, ZeroDivisionError])
def test_what_is_no_number_is_missing(given, monkeypatch) -> None:
    from rdkit.Chem import Descriptors

    def strange(molecule) -> float:
        if isinstance(given, float):
            return given
        raise given

    monkeypatch.setattr(Descriptors, "_descList", [("strange", strange), ("one", lambda m: 1)])
    found = rdkit_descriptors([Chem.MolFromSmiles("C")])
    assert np.isnan(found[0, 0])
    assert found[0, 1] == 1.0
