"""Names of well-known groups: each fits its own molecules, and nearly all of its row."""

from types import SimpleNamespace

import numpy as np
import pytest

from treelens.explain.smarts import GROUPS, group_name

Chem = pytest.importorskip("rdkit.Chem")


def test_group_names_fit_their_own_molecules():
    """Nitro is no nitroso, although both are N=O."""
    queries = {name: Chem.MolFromSmarts(smarts) for name, smarts in GROUPS.items()}
    assert all(query is not None for query in queries.values())
    for smiles, name, is_one in (
        ("Cc1ccccc1[N+](=O)[O-]", "nitroso", False),
        ("CN(C)N=O", "N-nitroso", True),
        ("C1CO1", "epoxide", True),
        ("C1CCOC1", "epoxide", False),
        ("Nc1ccccc1", "primary aromatic amine", True),
        ("CC(=O)Nc1ccccc1", "primary aromatic amine", False),
    ):
        assert Chem.MolFromSmiles(smiles).HasSubstructMatch(queries[name]) is is_one, smiles


class Offsets:
    """The parts of a GraphCollection that naming uses: places of nodes, and how many graphs."""

    def __init__(self, node_offsets):
        self.node_offsets = np.asarray(node_offsets)

    def __len__(self):
        return len(self.node_offsets) - 1


class OneBall:
    """The parts of ExplainedGraphs that naming uses: the atoms around one root of one molecule."""

    def __init__(self, atoms):
        self.graph_of_node = np.zeros(99, dtype=int)
        self.graphs = Offsets([0, 99])
        self.atoms = np.array(atoms)

    def balls(self, roots, depth):
        return SimpleNamespace(indices=self.atoms, indptr=np.array([0, len(self.atoms)]))


@pytest.mark.parametrize(
    ("smiles", "atoms", "name"),
    [
        ("Clc1ccccc1", [1, 0, 2, 6], "aryl chloride"),  # three of four atoms are of a benzene ring
        ("c1ccccc1", [0, 1, 5], "benzene ring"),
        ("c1ccccc1C", [5, 4, 0, 6], "methyl on an aromatic ring"),
        ("Oc1ccccc1", [1, 0, 2, 6], "phenol"),
        ("Clc1ccccc1O", [1, 0, 2, 6, 7], ""),  # no group has both chlorine and oxygen
    ],
)
def test_a_name_leaves_out_no_atom_but_carbon(smiles, atoms, name):
    molecule = Chem.MolFromSmiles(smiles)
    fragment = SimpleNamespace(roots=np.array([0]), depth=1)
    assert group_name(OneBall(atoms), fragment, lambda graph: molecule) == name


@pytest.mark.parametrize(("n_amines", "n_amides", "name"), [
    (19, 1, "tertiary aliphatic amine"), (9, 1, ""), (2, 2, ""),
    (594, 6, "tertiary aliphatic amine"), (558, 42, ""),
])  # fmt: skip
def test_a_name_must_fit_95_percent_of_the_occurrences(n_amines, n_amides, name):
    amine, amide = Chem.MolFromSmiles("CN(C)C"), Chem.MolFromSmiles("CN(C)C=O")
    n = n_amines + n_amides
    seen = OneBall([0, 1, 2, 3])
    seen.graph_of_node = np.arange(n)
    seen.graphs = Offsets(np.zeros(n + 1, dtype=int))
    seen.balls = lambda roots, depth: SimpleNamespace(
        indices=np.tile(seen.atoms, len(roots)), indptr=4 * np.arange(len(roots) + 1)
    )
    fragment = SimpleNamespace(roots=np.arange(n), depth=1)
    order = np.random.default_rng(0).permutation(n)
    found = group_name(seen, fragment, lambda graph: amine if order[graph] < n_amines else amide)
    assert found == name


@pytest.mark.parametrize(("n_others", "name"), [(4, "phenol"), (5, "phenol (some)")])
def test_a_name_is_marked_where_most_molecules_with_the_group_lack_the_fragment(n_others, name):
    """Four molecules have the fragment; others have the group without it."""
    phenol, benzene = Chem.MolFromSmiles("Oc1ccccc1"), Chem.MolFromSmiles("c1ccccc1")
    seen = OneBall([1, 0, 2, 6])
    seen.graph_of_node = np.arange(30)
    seen.graphs = Offsets(np.zeros(31, dtype=int))
    seen.balls = lambda roots, depth: SimpleNamespace(
        indices=np.tile(seen.atoms, len(roots)), indptr=4 * np.arange(len(roots) + 1)
    )
    fragment = SimpleNamespace(roots=np.arange(4), depth=1)
    assert group_name(seen, fragment, lambda g: phenol if g < 4 + n_others else benzene) == name
