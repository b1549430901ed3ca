"""What atoms add to descriptors, against RDKit's descriptors of the whole molecules."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from treelens import as_graph_collection
from treelens.chem import atom_terms as module
from treelens.chem.atom_terms import atom_terms, terms_table
from treelens.chem.descriptors import COMPACT_DESCRIPTORS, descriptor_names, rdkit_descriptors
from treelens.chem.molecules import smiles_to_collection
from treelens.chem.parsing import molecules_behind
from treelens.graphs.kinds import kind_of_facts, summed_numbers

pytest.importorskip("rdkit")
STRANGE = [
    "C[N+](C)(C)CC(=O)[O-]",
    "[13CH4]",
    "[Na+].[Cl-]",
    "O",
    "OB(O)c1ccccc1",
    "C[Si](C)(C)C",
    "c1ccc2c(c1)[nH]c1ccccc12",
    "CC(C)(C)S(=O)(=O)N1CCOCC1",
    "N#CC(=O)NC(=O)C(F)(F)F",
    "[O-][n+]1ccccc1",
    "C1CC2CCC1C2",
]


@pytest.fixture(scope="module")
def graphs():
    from rdkit import RDConfig

    path = Path(RDConfig.RDContribDir, "FreeWilson", "data", "CHEMBL2321810.smi")
    lines = path.read_text().splitlines()
    return as_graph_collection([*STRANGE, *(line.split()[0] for line in lines[::25])])


def summed(graphs, terms):
    owner = np.repeat(np.arange(len(graphs)), graphs.sizes)
    return np.bincount(owner, terms, len(graphs))


@pytest.mark.parametrize("fast", [True, False])
def test_terms_add_up_to_the_descriptors_of_rdkit(graphs, fast, monkeypatch):
    """Those from labels, where there are any, and those that RDKit is asked for."""
    if not fast:
        monkeypatch.setattr(module, "usual_molecules", lambda graphs: np.zeros(len(graphs), bool))
    molecules, names = molecules_behind(graphs), [*COMPACT_DESCRIPTORS, *descriptor_names()]
    expected = dict(zip(names, rdkit_descriptors(molecules, names).T, strict=True))
    found = atom_terms(graphs, molecules, names)
    assert len(found) > 170
    assert set(COMPACT_DESCRIPTORS) - set(found) == {"Kappa2"}
    for name, terms in found.items():
        known = np.isfinite(expected[name])
        np.testing.assert_allclose(
            summed(graphs, terms)[known], expected[name][known], rtol=1e-6, atol=2e-3, err_msg=name
        )


def test_terms_belong_to_the_atoms_that_have_them():
    (acid,) = [as_graph_collection(["CC(=O)O"])]
    names = ("NumHDonors", "NHOHCount", "TPSA", "HeavyAtomCount", "NumRotatableBonds", "fr_COO")
    found = atom_terms(acid, molecules_behind(acid), names)
    assert found["NumHDonors"].tolist() == found["NHOHCount"].tolist() == [0, 0, 0, 1]
    assert (found["TPSA"] > 0).tolist() == [False, False, True, True]
    assert found["HeavyAtomCount"].tolist() == [1, 1, 1, 1]
    butane = as_graph_collection(["CCCC"])
    assert atom_terms(butane, molecules_behind(butane), names)["NumRotatableBonds"].tolist() == [
        0,
        0.5,
        0.5,
        0,
    ]
    rings = as_graph_collection(["Cc1ccccc1"])
    found = atom_terms(rings, molecules_behind(rings), ["RingCount", "NumAromaticRings"])
    assert found["RingCount"].tolist() == found["NumAromaticRings"].tolist() == [0, *[1 / 6] * 6]


def test_hydrogens_that_are_nodes_add_nothing_of_their_own():
    graphs = smiles_to_collection(["CCO", "[H][H]"], hydrogens=True)
    kind, name = kind_of_facts(graphs.graph_data), "rdkit:MolWt"
    terms = kind.node_terms(graphs, [name])[name]
    assert (terms[3:9] == 0).all()
    assert summed(graphs, terms)[0] == pytest.approx(46.069)
    even = kind.even_shares(graphs)
    np.testing.assert_allclose(even, [1 / 3] * 3 + [0.0] * 6 + [0.5] * 2)


def test_the_names_of_sums_are_known_without_molecules():
    names = ["rdkit:MolLogP", "rdkit:Kappa2", "heat", "rdkit:fr_COO"]
    assert summed_numbers(names) == {"rdkit:MolLogP", "rdkit:fr_COO"}
    assert summed_numbers(["heat"]) == set()
    assert len(terms_table()) > 170
