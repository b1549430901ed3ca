"""Reading in blocks: the same model whatever the blocks, and messages that name the row."""

from __future__ import annotations

import zipfile

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from treelens.scale.streaming_parts import joined_histograms

import treelens as tl
from treelens.estimators.streaming import StreamingGraphClassifier
from treelens.graphs.blocks import CollectionBlocks, SmilesBlocks, loaded
from treelens.graphs.errors import GraphDataError, InvalidMoleculesWarning
from treelens.graphs.tu_blocks import TUBlocks
from treelens.patterns.histograms import PatternHistograms
from treelens.patterns.vocabulary import PatternVocabulary
from treelens.scale.executors import JoblibExecutor

SETTINGS = {"depth": 2, "weight_radius": 1.0, "n_components": 64, "random_state": 0}
SMILES = ["CCO", "CCN", "c1ccccc1", "CC(=O)O", "CCCl", "C1CC1", "CO", "CN", "CCCC", "OCCO"]


@pytest.fixture(scope="module")
def whole(mutag):
    graphs, y = mutag
    return StreamingGraphClassifier(**SETTINGS).fit([(graphs, y)])


@pytest.fixture
def table(tmp_path):
    """A function that writes SMILES and classes to a file and gives its path."""

    def write(smiles, name="molecules.csv"):
        rows = [f"{s},{i % 2}" for i, s in enumerate(smiles)]
        path = tmp_path / name
        path.write_text("smiles,label\n" + "\n".join(rows) + "\n")
        return path

    return write


@pytest.mark.parametrize("block_size", [7, 50])
def test_the_model_does_not_depend_on_the_blocks(mutag, whole, block_size):
    graphs, y = mutag
    model = StreamingGraphClassifier(**SETTINGS).fit(CollectionBlocks(graphs, y, block_size))
    assert model.vocabulary_.feature_names().tolist() == whole.vocabulary_.feature_names().tolist()
    np.testing.assert_array_equal(model.pattern_support_, whole.pattern_support_)
    np.testing.assert_array_equal(model.weights_, whole.weights_)
    assert model.alpha_ == whole.alpha_
    np.testing.assert_allclose(
        model.decision_function(graphs), whole.decision_function(graphs), atol=1e-7
    )


def test_processes_give_the_same_model(mutag, whole):
    graphs, y = mutag
    blocks = CollectionBlocks(graphs, y, 50)
    model = StreamingGraphClassifier(**SETTINGS).fit(blocks, executor=JoblibExecutor(2))
    np.testing.assert_array_equal(model.weights_, whole.weights_)
    np.testing.assert_allclose(
        model.decision_function(graphs), whole.decision_function(graphs), atol=1e-7
    )


def test_it_learns_and_explains(mutag, whole):
    graphs, y = mutag
    assert whole.score(graphs, y) > 0.85
    explanation = whole.explain(graphs[0])
    decision = whole.decision_function(graphs[:1])[0]
    assert explanation.decision == pytest.approx(decision)
    assert explanation.base + explanation.node_contributions.sum() == pytest.approx(decision)


def test_the_support_is_that_of_all_graphs(mutag, whole):
    graphs, _ = mutag
    histograms = PatternHistograms.from_colors(*PatternVocabulary.fit(graphs, 2, True))
    expected = histograms.support[histograms.support >= 2]
    np.testing.assert_array_equal(whole.pattern_support_, expected)


def test_a_bound_on_the_patterns_holds_and_keeps_the_common_ones(mutag, whole):
    graphs, y = mutag
    model = StreamingGraphClassifier(**SETTINGS, max_patterns=100)
    model.fit(CollectionBlocks(graphs, y, 20))
    assert model.vocabulary_.n_patterns <= 100
    most_common = whole.vocabulary_.feature_names()[np.argsort(-whole.pattern_support_)[:20]]
    assert set(most_common) <= set(model.vocabulary_.feature_names())


def test_smiles_are_read_in_blocks_as_they_are_at_once(table):
    path = table(SMILES)
    graphs, y = tl.read_smiles(path)
    blocks = list(loaded(SmilesBlocks(path, block_size=3)))
    assert [len(block.graphs) for block in blocks] == [3, 3, 3, 1]
    np.testing.assert_array_equal(np.concatenate([block.y for block in blocks]), y)
    rows = np.concatenate([block.graphs.graph_data["row"] for block in blocks])
    assert rows.tolist() == graphs.graph_data["row"].tolist()
    names = [graph.node_labels for block in blocks for graph in block.graphs]
    assert names == [graph.node_labels for graph in graphs]


def test_a_bad_row_is_named_by_its_number_in_the_file(table):
    path = table([*SMILES[:7], "not a molecule", *SMILES[7:]])
    with pytest.raises(GraphDataError, match=r"row 8 \(line 9\) 'not a molecule'"):
        list(loaded(SmilesBlocks(path, block_size=3)))
    with pytest.warns(InvalidMoleculesWarning, match=r"row 8 \(line 9\)"):
        blocks = list(loaded(SmilesBlocks(path, block_size=3, on_invalid="skip")))
    rows = np.concatenate([block.graphs.graph_data["row"] for block in blocks])
    assert rows.tolist() == [0, 1, 2, 3, 4, 5, 6, 8, 9, 10]


def test_a_block_of_bad_rows_alone_is_left_out(table):
    path = table([*SMILES[:2], "x", "y", *SMILES[2:]])
    with pytest.warns(InvalidMoleculesWarning):
        blocks = list(loaded(SmilesBlocks(path, block_size=2, on_invalid="skip")))
    assert sum(len(block.graphs) for block in blocks) == len(SMILES)


@pytest.mark.filterwarnings("ignore::treelens.graphs.errors.InvalidMoleculesWarning")
def test_a_model_from_a_file_with_bad_rows(table):
    path = table([*SMILES, "bad one"] * 4)
    blocks = SmilesBlocks(path, block_size=5, on_invalid="skip")
    model = StreamingGraphClassifier(depth=1, n_components=16, random_state=0).fit(blocks)
    assert model.n_graphs_ == 40
    assert set(model.predict(["CCO", "CC"])) <= {0, 1}


def test_mistakes_are_named(mutag, tmp_path):
    graphs, y = mutag
    model = StreamingGraphClassifier(**SETTINGS)
    with pytest.raises(TypeError, match="read several times"):
        model.fit(iter([(graphs, y)]))
    with pytest.raises(GraphDataError, match="two classes or more"):
        model.fit([(graphs, np.zeros(len(y)))])
    with pytest.raises(GraphDataError, match="no classes"):
        model.fit(CollectionBlocks(graphs, None))
    with pytest.raises(GraphDataError, match=r"CollectionBlocks: .* 188 graphs but 3 targets"):
        model.fit(CollectionBlocks(graphs, y[:3]))
    with pytest.raises(ValueError, match="block_size"):
        list(CollectionBlocks(graphs, y, 0))
    with pytest.raises(GraphDataError, match="not a file"):
        list(SmilesBlocks(tmp_path / "none.csv"))


@pytest.mark.parametrize(
    ("bad_block", "message"),
    [
        (lambda graphs, y: (graphs, None), "holds no classes"),
        (lambda graphs, y: (graphs, y[:3]), "188 graphs but 3 targets"),
        (lambda graphs, y: (graphs, 1), "one class or value per graph"),
        (lambda graphs, y: ([1, 2], [0, 1]), "item 0 is int 1"),
        (lambda graphs, y: (["CCO", 3], [0, 1]), "item 1 is int 3"),
        (lambda graphs, y: graphs, r"is GraphCollection.*or a list of \(graphs, y\) pairs"),
        (lambda graphs, y: ("CO", 1), r"is tuple \('CO', 1\): expected SmilesBlocks"),
        (lambda graphs, y: "CO", r"is str 'CO': expected SmilesBlocks"),
        (lambda graphs, y: None, r"is NoneType None: expected SmilesBlocks"),
    ],
)
def test_a_bad_block_is_named_by_its_number(mutag, bad_block, message):
    model = StreamingGraphClassifier(depth=1, n_components=16)
    with pytest.raises(GraphDataError, match=rf"^Block 1 \(counted from 0\).*{message}"):
        model.fit([mutag, bad_block(*mutag)])


def test_what_is_no_iterable_of_blocks_is_refused(mutag):
    graphs, y = mutag
    model = StreamingGraphClassifier(depth=1, n_components=16)
    with pytest.raises(TypeError, match=r"y was given beside them: pass CollectionBlocks"):
        model.fit(graphs, y)
    for given in (graphs, graphs[:2], None, 3, "molecules.csv"):
        with pytest.raises(TypeError, match=r"SmilesBlocks, CollectionBlocks, TUBlocks or a list"):
            model.fit(given)
    with pytest.raises(TypeError, match=r"iterator can be read once.* TUBlocks"):
        model.fit(iter([mutag]))


def test_a_block_may_hold_graphs_of_any_kind():
    model = StreamingGraphClassifier(depth=1, n_components=16, random_state=0)
    blocks = [(SMILES[:5], [0, 1, 0, 1, 0]), (SMILES[5:], [1, 0, 1, 0, 1])]
    at_once = CollectionBlocks(SMILES, [0, 1] * 5)
    np.testing.assert_allclose(
        model.fit(blocks).decision_function(SMILES), model.fit(at_once).decision_function(SMILES)
    )


class Unread:
    """Blocks that must not be looked at."""

    def __iter__(self):
        raise AssertionError("read too early")


def test_an_odd_number_of_features_is_refused_before_reading():
    with pytest.raises(ValueError, match=r"n_components must be an even number .* got 65"):
        StreamingGraphClassifier(n_components=65).fit(Unread())


@pytest.mark.parametrize("setting", [{"on_invalid": "nope"}, {"on_invalid": "warn"}])
def test_what_to_do_about_bad_rows_is_as_in_read_smiles(table, setting):
    path = table([*SMILES, "bad one"])
    for read in (tl.read_smiles, SmilesBlocks):
        with pytest.raises(ValueError, match=r"on_invalid must be one of 'raise', 'skip'; got"):
            read(path, **setting)
        with pytest.raises(ValueError, match=r"atom_label must be of .*; got 'colour'"):
            read(path, atom_label="colour")


# --- predicting ---------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::treelens.graphs.errors.InvalidMoleculesWarning")
def test_molecules_are_predicted_in_blocks(table, tmp_path):
    model = StreamingGraphClassifier(depth=1, n_components=16, random_state=0)
    model.fit(SmilesBlocks(table(SMILES * 3)))
    path = tmp_path / "new.csv"
    path.write_text("\n".join(["smiles", *SMILES[:4], "bad", "bad too", *SMILES[4:]]) + "\n")
    blocks = SmilesBlocks(path, target=None, block_size=2, on_invalid="skip")
    np.testing.assert_allclose(model.decision_function(blocks), model.decision_function(SMILES))
    np.testing.assert_array_equal(model.predict(blocks), model.predict(SMILES))
    path.write_text("smiles\nbad\n")
    with pytest.raises(GraphDataError, match="The blocks hold 0 graphs"):
        model.predict(blocks)


def test_all_kinds_of_blocks_are_predicted(mutag, whole):
    graphs, y = mutag
    expected = whole.decision_function(graphs)
    for blocks in (
        CollectionBlocks(graphs, None, 50),
        list(CollectionBlocks(graphs, y, 50)),
        [(graphs[:100], None), (list(graphs[100:]), y[100:])],
    ):
        np.testing.assert_allclose(whole.decision_function(blocks), expected)
    with pytest.raises(GraphDataError, match=r"Block 1 .*188 graphs but 3 targets"):
        whole.predict([(graphs, y), (graphs, y[:3])])


def test_blocks_are_predicted_one_at_a_time(mutag, whole):
    loads = []

    class Counted:
        def __init__(self, part) -> None:
            self.part = part

        def load(self):
            loads.append(self)
            return self.part.load()

    parts = [Counted(part) for part in CollectionBlocks(*mutag, 50)]
    assert len(whole.predict(parts)) == 188
    assert loads == parts  # each once, in order


def test_graphs_that_look_like_pairs_are_still_graphs():
    networkx = pytest.importorskip("networkx")
    paths = [([(0, 1)], {0: "C", 1: "O"}), ([(0, 1)], {0: "C", 1: "N"})]  # GraKeL's tuples
    model = StreamingGraphClassifier(depth=1, n_components=16, min_support=1, edge_labels=False)
    model.fit([(paths, ["a", "b"])])
    assert len(model.predict(paths)) == 2
    with pytest.raises(GraphDataError, match="NetworkX graph by itself"):
        model.predict(networkx.grid_graph((2, 2)))  # its nodes are pairs
    for given in (None, [], [[0, 1], [1, 0]]):
        with pytest.raises(GraphDataError, match="Expected"):
            model.predict(given)


def test_histograms_are_joined_as_if_counted_together(mutag):
    graphs, _ = mutag
    vocabulary, colors = PatternVocabulary.fit(graphs[:30], 1)
    together = PatternHistograms.from_colors(vocabulary, colors)
    parts = [
        PatternHistograms.from_colors(vocabulary, vocabulary.transform(graphs[a:b]))
        for a, b in ((0, 11), (11, 30))
    ]
    joined = joined_histograms(parts)
    for name in ("offsets", "graphs", "counts", "n_nodes", "unseen"):
        np.testing.assert_array_equal(getattr(joined, name), getattr(together, name))


def test_tu_files_are_read_in_blocks_as_they_are_at_once(data_folder, tmp_path):
    with zipfile.ZipFile(data_folder / "tu" / "MUTAG.zip") as archive:
        archive.extractall(tmp_path)
    graphs, y = tl.load_dataset("MUTAG")
    blocks = list(loaded(TUBlocks(tmp_path / "MUTAG", block_size=50)))
    assert [len(block.graphs) for block in blocks] == [50, 50, 50, 38]
    np.testing.assert_array_equal(np.concatenate([block.y for block in blocks]), y)
    assert [graph for block in blocks for graph in block.graphs] == list(graphs)


def test_tu_files_out_of_order_are_refused(tmp_path):
    for part, text in {
        "A": "3, 4\n1, 2\n", "graph_indicator": "1\n1\n2\n2\n", "graph_labels": "1\n0\n",
        "node_labels": "0\n0\n0\n0\n",
    }.items():  # fmt: skip
        (tmp_path / f"ODD_{part}.txt").write_text(text)
    with pytest.raises(GraphDataError, match=r"ODD_A.txt, line 2: .*in the order of the graphs"):
        list(TUBlocks(tmp_path, "ODD", block_size=1))
    (tmp_path / "ODD_A.txt").write_text("1, 2\n3, x\n")
    with pytest.raises(GraphDataError, match=r"line 2: expected integers"):
        list(TUBlocks(tmp_path, "ODD", block_size=1))
    (tmp_path / "ODD_A.txt").write_text("1, 2\n3, 5\n")
    with pytest.raises(GraphDataError, match=r"more lines than the graphs"):
        list(TUBlocks(tmp_path, "ODD", block_size=1))


def test_a_missing_class_is_named_with_its_block(mutag):
    graphs, y = mutag
    y = np.asarray(y, dtype=float)
    y[60] = np.nan
    blocks = CollectionBlocks(graphs, y, block_size=50)
    with pytest.raises(GraphDataError, match=r"Block 1 .*no class .* 1 graphs, .* position 10"):
        StreamingGraphClassifier(**SETTINGS).fit(blocks)


def test_not_fitted(mutag):
    graphs, _ = mutag
    for method in ("predict", "decision_function"):
        with pytest.raises(NotFittedError):
            getattr(StreamingGraphClassifier(), method)(graphs)
