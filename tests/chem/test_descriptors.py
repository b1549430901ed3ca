"""RDKit's descriptors as columns, and Crippen's from known atoms: the numbers that RDKit gives."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from treelens.chem import descriptors
from treelens.chem.descriptors import COMPACT_DESCRIPTORS, descriptor_names, rdkit_descriptors
from treelens.chem.molecules import molecules_to_collection, smiles_to_collection
from treelens.chem.parsing import parsed_smiles

Chem = pytest.importorskip("rdkit.Chem")
# Hydrogens of oxygen depend on atoms two bonds away. Then: bonds that turn or do not, donors and
# acceptors; rings, and bonds between them; triangles; atoms or bonds that labels do not describe in
# full; radicals; large ones.
SMILES = [
    "CCO",
    "Oc1ccccc1",
    "CC(=O)O",
    "OO",
    "ON=C",
    "OS(=O)(=O)C",
    "OC=C",
    "OC(=N)C",
    "O=CC",
    "O=C",
    "O=Cc1ccccc1",
    "O=C(c1ccccc1)C",
    "O=C(N)N",
    "O=C(Cl)Cl",
    "[O-]C(=O)C",
    "[O-][N+](=O)C",
    "O=C=O",
    "CN(C)C",
    "Nc1ccccc1",
    "CN=[N+]=[N-]",
    "C[N+](C)(C)C",
    "[NH4+]",
    "c1cc[nH]c1",
    "c1cc[n+](C)cc1",
    "CC#N",
    "C=C=C",
    "CC(C)(F)Cl",
    "BrC(I)=C",
    "CS(=O)C",
    "c1ccsc1",
    "CP(=O)(O)O",
    "FC(F)(F)c1ccncc1",
    "C/C=C/C",
    "CC1CC1",
    "O=c1cc[nH]cc1",
    "c1ccc2ccccc2c1",
    "O",
    "C",
    "[13CH4]",
    "[2H]CO",
    "[H][H]",
    "[Na+].[Cl-]",
    "C[Si](C)(C)C",
    "CB(O)O",
    "CN(C)(C)->O",
    "N->[Cu+2]",
    "C[Hg]C",
    "CCCC",
    "CC(F)(F)F",
    "CCC(F)(F)F",
    "CCC(Cl)(Cl)Cl",
    "CCC(Br)(Br)Br",
    "CCC(C)(C)C",
    "CCC(C)(C)CC",
    "CCC(=O)NCC",
    "CCC(=O)OCC",
    "CCC(=S)SCC",
    "CCC(=O)S",
    "CCC(=N)N(CC)CC",
    "CCC(=O)n1cccc1",
    "OC#N",
    "CCC#CCC",
    "CCN=C(CC)NCC",
    "CC[NH+]=C(N)NCC",
    "CCS(=O)(=O)NCC",
    "CCNC(=O)NCC",
    "CCON",
    "SCC",
    "SO",
    "NP",
    "CCC(=C)NC",
    "NC=NC",
    "C1CN=C(N1)C",
    "C1CCNC(=O)C1",
    "N1C=NC(=C2N=CNC2)C1",
    "COC(=O)CC",
    "C[NH+](C)C",
    "C[NH2+]C",
    "[NH3+]CC([O-])=O",
    "c1cc[nH+]cc1",
    "[O-][n+]1ccccc1",
    "Cn1cccc1",
    "c1ccoc1",
    "c1c[nH]cn1",
    "CCn1ccnc1",
    "C[S-]",
    "[S-]c1ccccc1",
    "CSC",
    "[OH-]",
    "[OH3+]",
    "N",
    "S",
    "F",
    "c1cnoc1",
    "c1ccccc1-c1ccccc1",
    "C1CCCCC1C1CCCCC1",
    "C1CCC2(CC1)CCCC2",
    "C1CC2CCC1CC2",
    "C1CCC2CCCCC2C1",
    "C1CC1=C1CC1",
    "O=C1C=CC(=O)C=C1",
    "C12C3C4C1C5C2C3C45",
    "c1ccc2c(c1)Cc1ccccc1-2",
    "C1=CC2=CC=CC2=C1",
    "N1(CC1)C1CC1",
    "C1CO1",
    "C1CN1",
    "CN1CC1C1CO1",
    "N1C2CC12",
    "P12P3P1P23",
    "C1CCOCCOCCOCCOCC1",
    "[13CH3]CC[C@H](O)/C=C/CO",
    "[2H]C([2H])([2H])CC",
    "[H]OCC",
    "[H+].[Cl-]",
    "CC |^1:0|",
    "*CCO",
    "[Fe]",
    "C[Pt](Cl)(N)N",
    "CCCC[Sn](C)(C)C",
    "CC[Se]CC",
    "c1cc[se]c1",
    "OB(O)CCC",
    "F[B-](F)(F)F",
    "C[Si](C)(C)CC",
    "[CH3]",
    "C[CH]CC",
    "[O]CC",
    "CC[N]CC",
    "[CH2]CC=O",
    "CC~C",
    "CCO.CCN",
    "[Xe]",
    "F[P-](F)(F)(F)(F)F",
    "[O-]Cl(=O)(=O)=O",
    "CC[N+](=O)[O-]",
    "CCN=[N+]=[N-]",
    "[C-]#[O+]",
    "CC[N+]#[C-]",
    "N#N",
    "NC(C)C(=O)" * 60 + "O",
    "C" * 501,
    "C1" + "CCO" * 30 + "C1",
]


def by_rdkit(molecules) -> np.ndarray:
    """Every descriptor of every molecule by RDKit's own function."""
    from rdkit.Chem import Descriptors

    functions = {**dict(Descriptors._descList), "FormalCharge": Chem.GetFormalCharge}
    return np.array([[functions[name](m) for name in COMPACT_DESCRIPTORS] for m in molecules])


@pytest.fixture(scope="module")
def expected() -> np.ndarray:
    return by_rdkit([Chem.MolFromSmiles(text) for text in SMILES])


@pytest.mark.parametrize(
    "options", [{}, {"hydrogens": True}, {"bond_label": "order+stereo"}, {"atom_label": "degree"}]
)
def test_all_molecules_and_one_by_one_have_the_numbers_of_rdkit(
    options, expected, monkeypatch
) -> None:
    monkeypatch.setattr(descriptors, "_known", {})
    graphs = smiles_to_collection(SMILES, **options)
    molecules = parsed_smiles(SMILES, stereo=False)
    for _ in range(2):  # the second time all contributions are known
        found = rdkit_descriptors(molecules, COMPACT_DESCRIPTORS, graphs)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-10)
    for k, molecule in enumerate(molecules):
        found = rdkit_descriptors([molecule], COMPACT_DESCRIPTORS, graphs[[k]])
        np.testing.assert_allclose(found[0], expected[k], rtol=1e-12, atol=1e-10)


def test_usual_molecules_need_no_search(expected, monkeypatch) -> None:
    def refuse(function, molecule) -> float:
        raise AssertionError(f"{Chem.MolToSmiles(molecule)} was asked for")

    graphs = smiles_to_collection(SMILES)
    usual = graphs[descriptors.usual_molecules(graphs)]
    assert len(graphs) > len(usual) > 100
    molecules = parsed_smiles(usual.graph_data["smiles"])
    known = set(descriptors._from_labels(usual, molecules))
    assert known | {"NumHAcceptors"} == set(COMPACT_DESCRIPTORS)  # of which there are two versions
    names = [name for name in COMPACT_DESCRIPTORS if name in known]
    monkeypatch.setattr(descriptors, "_number", refuse)
    rdkit_descriptors(molecules, names, usual)


def test_molecules_of_the_user_may_have_any_bonds() -> None:
    molecules = [Chem.MolFromSmiles(text) for text in ("CN(C)(C)->O", "CN(C)C", "CO")]
    graphs = molecules_to_collection(molecules)
    found = rdkit_descriptors(molecules, COMPACT_DESCRIPTORS, graphs)
    np.testing.assert_allclose(found, by_rdkit(molecules))
    np.testing.assert_allclose(found, rdkit_descriptors(molecules, COMPACT_DESCRIPTORS))


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


def test_threads_may_clear_what_is_known(monkeypatch):
    monkeypatch.setattr(descriptors, "_MOST_KNOWN", 0)
    molecules, graphs = parsed_smiles(SMILES[:40]), smiles_to_collection(SMILES[:40])
    expected = rdkit_descriptors(molecules, COMPACT_DESCRIPTORS, graphs)
    with ThreadPoolExecutor(4) as threads:
        tables = threads.map(
            lambda _: rdkit_descriptors(molecules, COMPACT_DESCRIPTORS, graphs), range(40)
        )
    for table in tables:
        np.testing.assert_array_equal(table, expected)


def test_what_is_computed_together_is_what_rdkit_computes_one_by_one():
    from rdkit.Chem import Descriptors

    theirs = dict(Descriptors._descList)
    names = [n for n in theirs if n.startswith(("PEOE_VSA", "EState_VSA", "VSA_EState"))]
    assert len(names) == 35
    ours = rdkit_descriptors([Chem.MolFromSmiles(text) for text in SMILES], names)
    again = [Chem.MolFromSmiles(text) for text in SMILES]
    expected = np.array([[theirs[name](molecule) for name in names] for molecule in again])
    known = np.isfinite(expected) & (np.abs(expected) < 1e12)
    np.testing.assert_array_equal(known, np.isfinite(ours))
    np.testing.assert_allclose(ours[known], expected[known], rtol=1e-9, atol=1e-9)
