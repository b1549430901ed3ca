"""Names of label codes agree with the molecules behind them."""

import numpy as np
from reproduction.label_names import with_label_names

import treelens as tl
from treelens.patterns.vocabulary import PatternVocabulary


def test_codes_become_elements_and_bonds():
    nitro = ([(0, 1), (1, 2), (1, 3)], {0: 0, 1: 1, 2: 2, 3: 2}, {(0, 1): 1, (1, 2): 2, (1, 3): 2})
    graphs = tl.as_graph_collection([nitro])
    named = with_label_names(graphs, "MUTAG")
    vocabulary, _ = PatternVocabulary.fit(named, depth=1, edge_labels=True)
    assert "N(-C,=O,=O)" in vocabulary.texts(np.arange(vocabulary.n_patterns))
    coded, _ = PatternVocabulary.fit(graphs, depth=1, edge_labels=True)
    every = np.arange(coded.n_patterns)
    assert with_label_names(coded, "MUTAG").texts(every) == vocabulary.texts(every)
    # Unknown data sets and labels keep their codes.
    graphs = tl.as_graph_collection([([(0, 1)], {0: 3, 1: 8})])
    assert with_label_names(graphs, "NCI1") is graphs
    assert with_label_names(graphs, "MUTAG")[0].node_labels == ("F", 8)


def test_ptc_names_agree_with_the_smiles_of_the_same_molecules(data_folder):
    coded, y = tl.load_dataset("PTC_MR", folder=data_folder)
    smiles, y_smiles = tl.load_dataset("PTC_MR_smiles", folder=data_folder)

    def formulas(graphs, classes):
        labels = (graph.node_labels for graph in graphs)
        return sorted((sorted(x), int(c)) for x, c in zip(labels, classes, strict=True))

    assert formulas(with_label_names(coded, "PTC_MR"), y) == formulas(smiles, y_smiles)
