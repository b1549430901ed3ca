"""SMARTS match the very atoms that carry a pattern or fragment; names fit nearly all of them."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import treelens as tl
from explain.test_fragment_search import seen_of
from treelens.chem.examples import example_table, has_examples
from treelens.chem.groups import GROUPS, GroupNames
from treelens.chem.molecules import molecule_of, smiles_to_collection
from treelens.chem.smarts import MoleculeFragmentWriter, forest_smarts, pattern_smarts
from treelens.errors import DegreeLabelsWarning
from treelens.explain.fragment_search import find_candidates
from treelens.patterns.forest import PatternForest
from treelens.patterns.vocabulary import PatternVocabulary

KINDS = ("element", "element+charge", "element+aromatic")
N_PER_DEPTH = 10
DEPTH = 4

# A single atom, salts, dummies (one of them aromatic), isotopes, hydrogens as atoms, ions, metals
# with dative bonds either way, a quadruple bond.
ODDITIES = [
    "C",
    "[Na+].[Cl-]",
    "[H][H]",
    "[2H]C([2H])[2H]",
    "[13CH3]C",
    "*C",
    "[*+]CC",
    "*1ccccc1",
    "C[*:1]",
    "[NH4+].[Cl-]",
    "C[N+](C)(C)C",
    "[O-][N+](=O)c1ccccc1",
    "c1cc[se]c1",
    "C#N",
    "[NH3]->[Fe](Cl)Cl",
    "[Fe]<-[NH3]",
    "Cl[Pt](Cl)(<-[NH3])<-[NH3]",
    "C[Hg]C",
    "[Re]$[Re]",
    "C1CC1",
    "C1CCCCC1",
    "C12C3C4C1C5C2C3C45",
    "CC(C)(C)C",
    "[O-]S(=O)(=O)[O-]",
    "[Fe+2]",
    "O",
]


def atoms_matched(molecules, smarts):
    """(molecule, atom) of every match, in order."""
    from rdkit import Chem

    query = Chem.MolFromSmarts(smarts)
    assert query is not None, smarts
    assert query.GetNumAtoms() == 1
    return sorted(
        (g, atom)
        for g, molecule in enumerate(molecules)
        for (atom,) in molecule.GetSubstructMatches(query, maxMatches=100_000)
    )


def atoms_carrying(graphs, colors, color):
    rows = np.flatnonzero(colors == color)
    molecule = np.searchsorted(graphs.node_offsets, rows, side="right") - 1
    atoms = rows - graphs.node_offsets[molecule]
    return list(zip(molecule.tolist(), atoms.tolist(), strict=True))


def check_all(patterns, graphs, colors, smarts_of, n_per_level=N_PER_DEPTH):
    """Compare some patterns of every level."""
    molecules, rng = [molecule_of(graph) for graph in graphs], np.random.default_rng(0)
    for level, (start, stop) in enumerate(pairwise(patterns.level_offsets.tolist())):
        for pattern in rng.permutation(np.arange(start, stop))[:n_per_level].tolist():
            smarts = smarts_of(pattern)
            assert smarts is not None, patterns.texts(np.array([pattern]))[0]
            carrying = atoms_carrying(graphs, colors.colors[level], pattern - start)
            assert carrying, "a pattern occurs"
            assert atoms_matched(molecules, smarts) == carrying, smarts


def check_vocabulary(graphs, atom_label, edge_labels, n_per_level=N_PER_DEPTH):
    vocabulary, colors = PatternVocabulary.fit(graphs, DEPTH, edge_labels)
    smarts_of = partial(pattern_smarts, vocabulary, atom_label=atom_label)
    check_all(vocabulary, graphs, colors, smarts_of, n_per_level)


def check_forest(graphs, trees, depth, n_per_level=N_PER_DEPTH):
    forest, colors = PatternForest.fit(graphs, depth, trees)
    smarts_of = partial(forest_smarts, forest, max_length=20_000)
    check_all(forest, graphs, colors, smarts_of, n_per_level)


@pytest.fixture(scope="module")
def inhibitors(tmp_path_factory):
    """SMILES of the molecules that come with RDKit, as ``treelens demo`` reads them."""
    if not has_examples():
        pytest.skip("needs RDKit with its Contrib folder")
    path = example_table(tmp_path_factory.mktemp("inhibitors") / "table.csv")
    return pd.read_csv(path)["smiles"].tolist()


@pytest.mark.parametrize("edge_labels", [True, False])
@pytest.mark.parametrize("atom_label", [*KINDS, "element with hydrogens"])
def test_molecules_of_the_demo(inhibitors, atom_label, edge_labels):
    kind, _, hydrogens = atom_label.partition(" with ")
    some = inhibitors[:100] if hydrogens else inhibitors
    graphs = smiles_to_collection(some, atom_label=kind, hydrogens=bool(hydrogens))
    check_vocabulary(graphs, kind, edge_labels)


@pytest.mark.parametrize("hydrogens", [True, False])
@pytest.mark.parametrize("edge_labels", [True, False])
@pytest.mark.parametrize("atom_label", KINDS)
def test_oddities(atom_label, edge_labels, hydrogens):
    graphs = smiles_to_collection(ODDITIES, atom_label=atom_label, hydrogens=hydrogens)
    check_vocabulary(graphs, atom_label, edge_labels, n_per_level=10_000)


def test_both_trees_of_molecules(inhibitors):
    check_forest(smiles_to_collection(inhibitors), ("labels", "fine", "fine+edges"), 3)


@pytest.mark.parametrize("hydrogens", [True, False])
def test_fine_labels_of_oddities(hydrogens):
    graphs = smiles_to_collection(ODDITIES, hydrogens=hydrogens)
    check_forest(graphs, ("structure", "labels", "fine", "fine+edges"), 2, n_per_level=10_000)


def test_none_where_labels_are_no_atoms_or_degrees():
    graphs = tl.as_graph_collection([([(0, 1)], {0: "C", 1: "carbonyl"})])
    vocabulary, _ = PatternVocabulary.fit(graphs, depth=1)
    found = [pattern_smarts(vocabulary, pattern) for pattern in range(vocabulary.n_patterns)]
    assert found == ["[#6]", None, None, None]
    assert pattern_smarts(vocabulary, 0, "what I made up") is None
    for label in ("CO", "cO", "C+0", "C+", "+1", 6, None, ("C", 1), "carbonyl", "CH2@@", "Xx", ""):
        odd = PatternVocabulary((label,), None, ())
        assert [pattern_smarts(odd, 0, kind) for kind in (*KINDS, "fine")] == [None] * 4
    with pytest.warns(DegreeLabelsWarning):
        graphs = tl.as_graph_collection([nx.path_graph(3)])
    vocabulary, _ = PatternVocabulary.fit(graphs, depth=1)
    assert pattern_smarts(vocabulary, vocabulary.n_patterns - 1) is None


def test_none_for_a_bond_that_smarts_does_not_know():
    graphs = smiles_to_collection(["C~O", "C=O"])
    vocabulary, _ = PatternVocabulary.fit(graphs, depth=1, edge_labels=True)
    texts = vocabulary.texts(np.arange(vocabulary.n_patterns))
    unknown = next(p for p, text in enumerate(texts) if text.startswith("C(order 0"))
    assert pattern_smarts(vocabulary, unknown) is None
    assert pattern_smarts(vocabulary, texts.index("C(=O)")) == "[$([#6;D1]=[#8])]"
    check_vocabulary(graphs, "element", edge_labels=False)


def test_none_where_it_would_be_too_long():
    graphs = smiles_to_collection(["C12C3C4C1C5C2C3C45"])  # three neighbours everywhere
    vocabulary, _ = PatternVocabulary.fit(graphs, depth=3)
    whole = pattern_smarts(vocabulary, 3)
    assert whole is not None
    assert pattern_smarts(vocabulary, 3, max_length=len(whole)) == whole
    assert pattern_smarts(vocabulary, 3, max_length=len(whole) - 1) is None
    complete = [(u, v) for v in range(12) for u in range(v)]
    graphs = tl.as_graph_collection([(complete, dict.fromkeys(range(12), "C"))])
    vocabulary, _ = PatternVocabulary.fit(graphs, depth=60)  # 11 ** 60 leaves
    assert pattern_smarts(vocabulary, vocabulary.n_patterns - 1) is None


Chem = pytest.importorskip("rdkit.Chem")


@pytest.mark.parametrize("atom_label", KINDS)
@pytest.mark.parametrize("trees", [("labels", "fine"), ("labels+edges",)])
def test_what_is_written_finds_the_atoms_that_carry_the_pattern(atom_label, trees):
    smiles = ["CC(=O)O", "CCO", "OC(C)C", "c1ccccc1O", "CC(=O)OC", "C1CC1O", "CC[O-]"]
    graphs = smiles_to_collection(smiles, atom_label=atom_label)
    seen, n_written = seen_of(graphs, lambda g, n: 1, trees), 0
    writer = MoleculeFragmentWriter(seen)
    for pattern in [*find_candidates(seen, 2, 1).tolist(), *find_candidates(seen, 2, 2).tolist()]:
        roots, depth = seen.carriers(pattern), seen.depth_of(pattern)
        fragment = SimpleNamespace(patterns=[pattern], roots=roots, depth=depth)
        smarts = writer.text(fragment)
        n_written += smarts is not None
        found = {
            int(offset) + match[0]
            for graph, offset in enumerate(seen.graphs.node_offsets[:-1])
            for match in writer.molecule(graph).GetSubstructMatches(
                Chem.MolFromSmarts(smarts), uniquify=False
            )
        }
        assert found == set(roots.tolist()), smarts
        assert not writer.is_exact("[*]", fragment, range(len(seen.graphs)))
        assert not writer.is_exact("C(", fragment, [0])
    assert n_written > 3


def test_fragments_are_written_from_the_centre_on_and_rings_are_closed():
    seen = seen_of(["C1NSC1", "C1NSC1C", "CCC"], lambda g, n: 1, ("labels",))
    writer = MoleculeFragmentWriter(seen)
    texts = seen.forest.texts(np.arange(seen.forest.n_patterns))
    pattern = next(k for k, text in enumerate(texts) if text == "S(C(C,S),N(C,S))")
    fragment = SimpleNamespace(patterns=[pattern], roots=seen.carriers(pattern), depth=2)
    smarts = writer.text(fragment)
    assert smarts.startswith("[#16;D2]1") or smarts.startswith("[#16;D2]~1")
    assert Chem.MolFromSmiles("C1NSC1").HasSubstructMatch(Chem.MolFromSmarts(smarts))
    assert not Chem.MolFromSmiles("CNSCC").HasSubstructMatch(Chem.MolFromSmarts(smarts))


def test_single_atoms_of_salts_are_written():
    salts = ["CC(=O)[O-].[Na+]", "[Na+].[Cl-]", "CCO", "CCC(=O)O", "[K+].[Cl-]", "CCN"] * 4
    y = [float("." in smiles) + 0.1 * len(smiles) for smiles in salts]
    model = tl.GraphRegressor(depth=0, random_state=0).fit(salts, y)
    found = model.fragments(salts).loc[:, "smarts"].dropna()
    single = [text for text in found if len(Chem.MolFromSmarts(text).GetAtoms()) == 1]
    assert "[#11;A;h0;+1;R0;D0]" in single
    assert len(single) == len(found)


# --- names ----------------------------------------------------------------------------------------


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


class Molecules(list):
    """The parts of a GraphCollection that naming uses: nodes of every graph are counted from 0."""

    @property
    def node_offsets(self):
        return np.zeros(len(self) + 1, dtype=int)


def name_of(atoms, molecules, n_having=None):
    """The name of a fragment of these atoms, which the first molecules have."""

    def balls(roots, depth):
        starts = len(atoms) * np.arange(len(roots) + 1)
        return SimpleNamespace(indices=np.tile(atoms, len(roots)), indptr=starts)

    graphs = Molecules(Chem.MolFromSmiles(smiles) for smiles in molecules)
    seen = SimpleNamespace(graphs=graphs, graph_of_node=np.arange(len(graphs)), balls=balls)
    fragment = SimpleNamespace(roots=np.arange(n_having or len(graphs)), depth=1)
    return GroupNames(seen, graphs.__getitem__).name(fragment)


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
    assert name_of(atoms, [smiles]) == name


@pytest.mark.parametrize(
    ("n_amines", "n_amides", "name"),
    [
        (18, 2, "tertiary aliphatic amine"),
        (8, 1, ""),
        (2, 2, ""),
        (594, 6, "tertiary aliphatic amine"),
        (528, 72, ""),
    ],
)
def test_a_name_must_fit_90_percent_of_the_occurrences(n_amines, n_amides, name):
    molecules = ["CN(C)C"] * n_amines + ["CN(C)C=O"] * n_amides
    assert name_of([0, 1, 2, 3], np.random.default_rng(0).permutation(molecules).tolist()) == name


@pytest.mark.parametrize(
    ("n_acids", "name"), [(10, "carboxylic acid"), (9, "carboxylic acid"), (8, "hydroxyl")]
)
def test_the_most_specific_group_is_named(n_acids, name):
    molecules = ["OC(C)=O"] * n_acids + ["OC(C)C"] * (10 - n_acids)
    assert name_of([0, 1], molecules) == name


@pytest.mark.parametrize(("n_others", "name"), [(4, "phenol"), (5, "phenol (some)")])
def test_a_name_is_marked_where_most_molecules_with_the_group_lack_the_fragment(n_others, name):
    """Four molecules have the fragment; others have the group without it."""
    molecules = ["Oc1ccccc1"] * (4 + n_others) + ["c1ccccc1"] * (26 - n_others)
    assert name_of([1, 0, 2, 6], molecules, 4) == name
