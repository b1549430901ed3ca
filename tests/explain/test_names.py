"""Codes of public data sets become the names of elements and bonds."""

from __future__ import annotations

import numpy as np

import treelens as tl
from treelens.explain.names import LABEL_NAMES, LabelNames, named_vocabulary, with_label_names
from treelens.patterns.vocabulary import PatternVocabulary


def test_codes_become_elements_and_bonds():
    nitro = ([(0, 1), (1, 2), (1, 3)], {0: 0, 1: 1, 2: 2, 3: 2}, {(0, 1): 1, (1, 2): 2, (1, 3): 2})
    graphs = tl.as_graph_collection([nitro])
    named = with_label_names(graphs, "MUTAG")
    vocabulary, _ = PatternVocabulary.fit(named, depth=1, edge_labels=True)
    assert "N(-C,=O,=O)" in vocabulary.texts(np.arange(vocabulary.n_patterns))
    coded, _ = PatternVocabulary.fit(graphs, depth=1, edge_labels=True)
    every = np.arange(coded.n_patterns)
    assert named_vocabulary(coded, "MUTAG").texts(every) == vocabulary.texts(every)


def test_unknown_data_sets_and_labels_keep_their_codes():
    graphs = tl.as_graph_collection([([(0, 1)], {0: 3, 1: 8})])
    assert with_label_names(graphs, "NCI1") is graphs
    own = LabelNames({3: "C"}, {}, "mine")
    assert with_label_names(graphs, own)[0].node_labels == ("C", 8)
    vocabulary, _ = PatternVocabulary.fit(graphs, depth=1)
    assert named_vocabulary(vocabulary, "NCI1") is vocabulary


def test_ptc_names_agree_with_the_smiles_of_the_same_molecules(data_folder):
    coded, y = tl.load_dataset("PTC_MR", folder=data_folder)
    smiles, y_smiles = tl.load_dataset("PTC_MR_smiles", folder=data_folder)

    def formulas(graphs, classes):
        labels = (graph.node_labels for graph in graphs)
        return sorted((sorted(x), int(c)) for x, c in zip(labels, classes, strict=True))

    assert formulas(with_label_names(coded, "PTC_MR"), y) == formulas(smiles, y_smiles)


def test_mutag_names_give_sound_valences(data_folder):
    graphs, _ = tl.load_dataset("MUTAG", folder=data_folder)
    order = {":": 1.5, "-": 1, "=": 2, "#": 3}
    most = {"C": 4.5, "N": 4, "O": 3, "F": 1, "I": 1, "Cl": 1, "Br": 1}
    n_over, n_atoms = 0, 0
    for graph in with_label_names(graphs, "MUTAG"):
        valence = np.zeros(graph.n_nodes)
        for (u, v), label in zip(graph.edges, graph.edge_labels, strict=True):
            valence[[u, v]] += order[label]
        n_over += sum(x > most[a] for a, x in zip(graph.node_labels, valence, strict=True))
        n_atoms += graph.n_nodes
    assert n_over <= 2 < n_atoms  # two carbons of the data set carry five bonds
    assert set(LABEL_NAMES["MUTAG"].nodes) == set(graphs.node_alphabet)
