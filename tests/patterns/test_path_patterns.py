"""Paths as patterns: against plain loops, and against RDKit's atom pairs and torsions."""

from collections import Counter
from itertools import pairwise, permutations

import numpy as np
import pytest

import treelens as tl
from naive import paths as naive
from strategies import random_collection
from treelens.errors import GraphDataError
from treelens.patterns import path_patterns
from treelens.patterns.histograms import SparseRows
from treelens.patterns.path_patterns import PathPatterns

pytestmark = pytest.mark.interpreted

DIRECTED = [
    ([(0, 1), (1, 2), (2, 3), (3, 0)], dict(enumerate("abcd"))),
    ([(0, 1), (2, 1), (2, 3), (3, 4)], dict(enumerate("aabba"))),
]


def _pairs(graph, farthest):
    """How many nodes have each pair of labels at each distance, the labels sorted."""
    found = Counter()
    for (a, b, distance), count in naive.triples(graph, ordered=False).items():
        if distance <= farthest:
            ends = (a, b) if graph.directed else tuple(sorted((a, b), key=str))
            found[(int(distance), *ends)] += count
    return found


def _fours(graph):
    """How many paths of four nodes have each sequence of labels, read from the smaller end."""
    arcs = {(u, v) for u, v in graph.edges}
    arcs |= set() if graph.directed else {(v, u) for u, v in arcs}
    found = Counter()
    for path in permutations(range(graph.n_nodes), 4):
        if all(step in arcs for step in pairwise(path)):
            labels = tuple(graph.node_labels[node] for node in path)
            if graph.directed:
                found[labels] += 2
            else:  # each is met from both ends
                found[min(labels, labels[::-1], key=str)] += 1
    return Counter({labels: n // 2 for labels, n in found.items()})


def _counted(source, found):
    """The same from our counts, graph by graph."""
    table, texts = source.count(found).to_sparse().toarray(), []
    alphabet = source.labels.node_alphabet
    for level, codes in enumerate(source.known):
        for row in codes.tolist():
            labels = tuple(alphabet[code] for code in row)
            if level < source.max_distance:
                ends = labels if source.labels.directed else tuple(sorted(labels, key=str))
                texts.append((level + 1, *ends))
            elif source.labels.directed:
                texts.append(labels)
            else:
                texts.append(min(labels, labels[::-1], key=str))
    for row in table:
        yield Counter({text: int(n) for text, n in zip(texts, row, strict=True) if n})


@pytest.mark.parametrize("kind", ["random", "directed"])
def test_counts_are_those_of_plain_loops(kind):
    graphs = random_collection(np.random.default_rng(0), 12, max_nodes=8)
    if kind == "directed":
        graphs = tl.as_graph_collection(DIRECTED, directed=True)
    source, found = PathPatterns.empty("labels", 3).extend(graphs)
    for graph, counts in zip(graphs, _counted(source, found), strict=True):
        assert counts == _pairs(graph, 3) + _fours(graph)


def test_molecules_have_the_atom_pairs_and_torsions_of_rdkit():
    """Torsions but for rings of three, which RDKit counts as paths that end where they begin."""
    chem = pytest.importorskip("rdkit.Chem")
    from rdkit.Chem import rdFingerprintGenerator as generators

    smiles = [
        "CCO",
        "c1ccccc1CCN",
        "CC(C)(C)OC(=O)NC1CCCC1",
        "O=C(O)c1ccccc1OC(C)=O",
        "C",
        "C#CC=C",
    ]
    graphs = tl.as_graph_collection(smiles)
    source, found = PathPatterns.empty("fine", 20).extend(graphs)
    table, first_four = source.count(found).to_sparse().toarray(), source.level_offsets[20]
    pairs = generators.GetAtomPairGenerator(minDistance=1, maxDistance=20, countSimulation=False)
    torsions = generators.GetTopologicalTorsionGenerator(countSimulation=False)
    for k, text in enumerate(smiles):
        labels = found.codes.nodes[graphs.node_offsets[k] : graphs.node_offsets[k + 1]].tolist()
        molecule = chem.MolFromSmiles(text)
        for make, ours in ((pairs, table[k, :first_four]), (torsions, table[k, first_four:])):
            bits = make.GetSparseCountFingerprint(molecule, customAtomInvariants=labels)
            expected = sorted(bits.GetNonzeroElements().values())
            assert sorted(ours[ours > 0].astype(int).tolist()) == expected


@pytest.fixture
def two_sets():
    graphs = random_collection(np.random.default_rng(1), 30, max_nodes=9)
    return graphs[:20], graphs[20:]


def test_more_graphs_keep_the_numbers_of_known_paths(two_sets):
    first, more = two_sets
    source, found = PathPatterns.empty("labels", 4).extend(first)
    wider, new = source.extend(more, n_jobs=2)
    for before, after in zip(source.known, wider.known, strict=True):
        np.testing.assert_array_equal(after[: len(before)], before)
    known, unseen = source.count(source.transform(more)), wider.count(new)
    lost = known.unseen.sum(axis=1)
    assert lost.any(), "or this shows nothing"
    total = known.to_sparse().sum(axis=1) + lost
    np.testing.assert_array_equal(total, unseen.to_sparse().sum(axis=1))
    some = np.array([3, 0, 7])
    np.testing.assert_array_equal(
        source.count(found.select_graphs(some)).to_sparse().toarray(),
        source.count(found).to_sparse().toarray()[some],
    )


def test_nodes_share_the_paths_that_they_are_on(two_sets):
    graphs = two_sets[0]
    source, found = PathPatterns.empty("labels", 2).extend(graphs)
    rows = source.count(found).rows
    shares = source.shares_of_nodes(found, rows).toarray()
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    owner = np.repeat(np.arange(len(graphs)), np.diff(rows.offsets))
    graph_of_node = np.repeat(np.arange(len(graphs)), graphs.sizes)
    assert (graph_of_node[np.nonzero(shares)[1]] == owner[np.nonzero(shares)[0]]).all()
    chain = tl.as_graph_collection([([(0, 1), (1, 2)], {0: "C", 1: "O", 2: "C"})])
    source, found = PathPatterns.empty("labels", 2).extend(chain)
    rows = source.count(found).rows
    assert source.texts(rows.indices) == ["C 1 O", "C 2 C"]
    expected = [[0.25, 0.5, 0.25], [0.5, 0.0, 0.5]]
    np.testing.assert_allclose(source.shares_of_nodes(found, rows).toarray(), expected)
    none = SparseRows(np.zeros(2, np.int64), np.empty(0, np.int32), np.empty(0))
    assert source.shares_of_nodes(found, none).shape == (0, 3)


def test_graphs_without_a_path():
    graphs = tl.as_graph_collection([([], {0: "C"}), ([(0, 0)], {0: "C"}), ([], {})])
    source, found = PathPatterns.empty("labels").extend(graphs)
    assert source.n_patterns == 0
    assert source.count(found).n_graphs == 3


def test_blocks_of_graphs_count_the_same(two_sets, monkeypatch):
    graphs = two_sets[0]
    source, found = PathPatterns.empty("labels", 3).extend(graphs)
    monkeypatch.setattr(path_patterns, "_PATHS_AT_A_TIME", 50)
    in_blocks, again = PathPatterns.empty("labels", 3).extend(graphs, n_jobs=2)
    for one, other in zip(source.known, in_blocks.known, strict=True):
        np.testing.assert_array_equal(one, other)
    counts = [
        each.count(x).to_sparse().toarray() for each, x in ((source, found), (in_blocks, again))
    ]
    np.testing.assert_array_equal(*counts)


def test_what_is_too_much_to_count(two_sets, monkeypatch):
    monkeypatch.setattr(path_patterns, "_MOST_PATHS", 3)
    with pytest.raises(GraphDataError, match="paths of four nodes, too many to count"):
        PathPatterns.empty("labels", 2).extend(two_sets[0])
    monkeypatch.setattr(path_patterns, "_MOST_PATHS", 10**9)
    monkeypatch.setattr(path_patterns, "_MOST_LABELS", 1)
    with pytest.raises(GraphDataError, match="different node labels"):
        PathPatterns.empty("labels", 2).extend(two_sets[0])
