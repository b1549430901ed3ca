"""Refinement and the vocabulary: one name whichever way graphs come, trees that unfold right."""

from itertools import pairwise
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from naive import patterns as naive
from strategies import collections
from treelens import as_graph_collection
from treelens.errors import GraphDataError
from treelens.graphs.build import build_collection
from treelens.graphs.collection import GraphCollection
from treelens.patterns import _compiled
from treelens.patterns import vocabulary as vocabulary_module
from treelens.patterns.vocabulary import LONGEST_TEXT, PatternTree, PatternVocabulary, unique_names

pytestmark = pytest.mark.interpreted


@pytest.fixture
def path() -> GraphCollection:
    """C - C = O"""
    return build_collection([3], np.array([[0, 1], [1, 2]]), list("CCO"), list("-="))


def same_vocabulary(a: PatternVocabulary, b: PatternVocabulary) -> bool:
    return (
        (a.node_alphabet, a.edge_alphabet, a.directed)
        == (b.node_alphabet, b.edge_alphabet, b.directed)
        and a.depth == b.depth
        and all(
            np.array_equal(x.own, y.own)
            and np.array_equal(x.child_offsets, y.child_offsets)
            and np.array_equal(x.child_keys, y.child_keys)
            for x, y in zip(a.levels, b.levels, strict=True)
        )
    )


@pytest.fixture(scope="module", params=[2**64 - 1, 0x7, 0])
def any_hash(request: pytest.FixtureRequest):
    """A weak hash, which forces collisions, changes nothing."""
    with patch.object(vocabulary_module, "HASH_MASK", np.uint64(request.param)):
        yield


@pytest.mark.usefixtures("any_hash")
@pytest.mark.parametrize("edge_labels", [False, True])
@settings(max_examples=40)
@given(data=st.data())
def test_blocks_give_the_ids_of_the_whole(edge_labels: bool, data: st.DataObject) -> None:
    graphs = data.draw(collections(min_graphs=2, edge_labels=edge_labels, directed=None))
    cut = data.draw(st.integers(0, len(graphs)))
    whole, colors = PatternVocabulary.fit(graphs, 3, edge_labels)
    blocks = PatternVocabulary.empty(3, edge_labels)
    parts = []
    for block in (graphs[:cut], graphs[cut:]):
        blocks, block_colors = blocks.extend(block)
        parts.append(block_colors.colors)
    assert np.concatenate(parts, axis=1).tolist() == colors.colors.tolist()
    assert same_vocabulary(whole, blocks)


def test_blocks_whose_edge_alphabet_grows() -> None:
    def star(bonds: str) -> GraphCollection:
        edges = [(0, i + 1) for i in range(len(bonds))]
        return build_collection([len(bonds) + 1], np.array(edges), ["C"] * (len(bonds) + 1), bonds)

    blocks = PatternVocabulary.empty(2, edge_labels=True)
    trees = []
    for bonds in ("--", "-=", "#=-", "--"):
        blocks, colors = blocks.extend(star(bonds))
        hub = int(blocks.level_offsets[1] + colors.colors[1, 0])
        trees.append(str(blocks.tree(hub)))
    assert trees == ["C(-C,-C)", "C(-C,=C)", "C(#C,-C,=C)", "C(-C,-C)"]
    assert blocks.edge_alphabet == ("-", "=", "#")
    # Names from before the alphabet grew still mean the same, and are still recognised.
    first_hub = int(blocks.level_offsets[1] + blocks.transform(star("--")).colors[1, 0])
    assert str(blocks.tree(first_hub)) == "C(-C,-C)"
    assert (blocks.transform(star("=#-")).colors[1:] >= 0).all()


def test_a_slice_counts_only_the_labels_it_holds() -> None:
    graphs = build_collection([1, 1], np.empty((0, 2)), ["b", "a"])
    vocabulary, _ = PatternVocabulary.fit(graphs[:1], 1)
    assert vocabulary.node_alphabet == ("b",)
    assert vocabulary.transform(graphs).colors.tolist() == [[0, -1], [0, -1]]


@pytest.mark.usefixtures("any_hash")
@pytest.mark.parametrize("edge_labels", [False, True])
@settings(max_examples=40)
@given(data=st.data())
def test_transform_knows_training_patterns_and_only_those(
    edge_labels: bool, data: st.DataObject
) -> None:
    kind = {"edge_labels": edge_labels, "directed": data.draw(st.booleans())}
    train, new = data.draw(collections(**kind)), data.draw(collections(**kind))
    vocabulary, colors = PatternVocabulary.fit(train, 3, edge_labels)
    assert vocabulary.transform(train).colors.tolist() == colors.colors.tolist()
    found = vocabulary.transform(new).colors
    known = naive.nested_colors(train, 3, edge_labels)
    asked = naive.nested_colors(new, 3, edge_labels)
    for depth in range(4):
        color_of = dict(zip(known[depth], colors.colors[depth].tolist(), strict=True))
        assert found[depth].tolist() == [color_of.get(x, -1) for x in asked[depth]]


def test_an_unseen_edge_label_makes_both_ends_unseen(path: GraphCollection) -> None:
    vocabulary, _ = PatternVocabulary.fit(path, 1, edge_labels=True)
    other = build_collection([3], np.array([[0, 1], [1, 2]]), list("CCO"), list("-#"))
    assert vocabulary.transform(other).colors.tolist() == [[0, 0, 1], [0, -1, -1]]


DIRECTED = build_collection([2], np.array([[0, 1]]), list("ab"), directed=True)
UNDIRECTED = build_collection([2], np.array([[0, 1]]), list("ab"))


@pytest.mark.filterwarnings("ignore::treelens.errors.DegreeLabelsWarning")
def test_graphs_of_different_kinds_are_not_mixed(path: GraphCollection) -> None:
    with pytest.raises(GraphDataError, match=r"edge_labels=True.*no edge labels"):
        PatternVocabulary.fit(UNDIRECTED, 1, edge_labels=True)
    degrees = as_graph_collection([([(0, 1), (1, 2)],)])
    for known, other, message in (
        (path, degrees, "with node labels"),
        (degrees, path, "without node labels"),
        (DIRECTED, UNDIRECTED, "directed=True"),
        (UNDIRECTED, DIRECTED, "directed=False"),
    ):
        vocabulary, _ = PatternVocabulary.fit(known, 1)
        for use in (vocabulary.transform, vocabulary.extend):
            with pytest.raises(GraphDataError, match=message):
                use(other)


def as_tree(pattern, depth: int) -> PatternTree:
    """A nested colour of the naive twin as the tree it stands for."""
    if depth == 0:
        return PatternTree(pattern)
    own, children = pattern
    subtrees = [(bond, as_tree(child, depth - 1)) for bond, child in children]
    key = {id(t): ("" if b is None else b) + str(t) for b, t in subtrees}
    subtrees.sort(key=lambda child: key[id(child[1])])
    return PatternTree(as_tree(own, depth - 1).label, tuple(subtrees))


@pytest.mark.parametrize("edge_labels", [False, True])
@settings(max_examples=40)
@given(data=st.data())
def test_trees_unfold_to_what_the_nodes_see(edge_labels: bool, data: st.DataObject) -> None:
    graphs = data.draw(collections(edge_labels=edge_labels, directed=None))
    vocabulary, colors = PatternVocabulary.fit(graphs, 2, edge_labels)
    nested = naive.nested_colors(graphs, 2, edge_labels)
    for depth in range(3):
        for node, pattern in enumerate(nested[depth]):
            id_ = int(vocabulary.level_offsets[depth] + colors.colors[depth, node])
            tree = as_tree(pattern, depth)
            assert vocabulary.tree(id_) == tree
            assert vocabulary.depth_of(id_) == depth
            text = str(tree)
            text = text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"
            assert vocabulary.texts([id_]) == [text]


def test_texts_and_names(path: GraphCollection) -> None:
    plain, _ = PatternVocabulary.fit(path, 1)
    assert plain.feature_names().tolist() == ["0:C", "0:O", "1:C(C)", "1:C(C,O)", "1:O(C)"]
    assert plain.feature_names(1).tolist() == ["1:C(C)", "1:C(C,O)", "1:O(C)"]
    bonds, _ = PatternVocabulary.fit(path, 1, edge_labels=True)
    assert bonds.texts([2, 3, 4]) == ["C(-C)", "C(-C,=O)", "O(=C)"]
    numbers = build_collection([2], np.array([[0, 1]]), [1, 2], [3])
    vocabulary, _ = PatternVocabulary.fit(numbers, 1, edge_labels=True)
    assert vocabulary.texts([2, 3]) == ["1(3:2)", "2(3:1)"]  # labels stay apart
    assert [str(vocabulary.tree(k)) for k in (2, 3)] == ["1(3:2)", "2(3:1)"]


def test_directions_are_written_as_arrows() -> None:
    edges = np.array([[0, 1], [2, 1]])
    graphs = build_collection([3], edges, list("abc"), ["calls", "reads"], directed=True)
    plain, _ = PatternVocabulary.fit(graphs, 1)
    assert plain.texts([3, 4, 5]) == ["a(->b)", "b(<-a,<-c)", "c(->b)"]
    labelled, _ = PatternVocabulary.fit(graphs, 1, edge_labels=True)
    assert labelled.texts([3, 4]) == ["a(-calls->b)", "b(<-calls-a,<-reads-c)"]


def test_names_that_repeat_get_numbers_that_no_other_name_has() -> None:
    assert unique_names(["a", "b", "a", "a (2)", "a"]).tolist() == [
        "a",
        "b",
        "a (3)",
        "a (2)",
        "a (4)",
    ]


def test_trees_and_texts_of_deep_patterns_are_limited() -> None:
    """In a complete graph every node of the tree has one child for each other node."""
    edges = np.array([[i, j] for i in range(6) for j in range(i)])
    vocabulary, _ = PatternVocabulary.fit(build_collection([6], edges, list("ABCDEF")), 50)
    texts = vocabulary.texts(np.arange(vocabulary.n_patterns))
    assert max(map(len, texts)) == LONGEST_TEXT
    assert texts[-1].endswith("…")
    with pytest.raises(GraphDataError, match=r"of depth 50, .* more than 100,000 nodes"):
        vocabulary.tree(vocabulary.n_patterns - 1)
    size, pattern = sum(5**k for k in range(5)), int(vocabulary.level_offsets[4])
    tree = vocabulary.tree(pattern, max_nodes=size)
    assert str(tree).count("(") == sum(5**k for k in range(4))
    with pytest.raises(GraphDataError, match=f"more than {size - 1} nodes"):
        vocabulary.tree(pattern, max_nodes=size - 1)


def test_a_deep_chain() -> None:
    """Two nodes that see each other, and each other, and so on: a chain without branches."""
    depth = 200
    pair = build_collection([2], np.array([[0, 1]]), ["a", "b"], ["="])
    vocabulary, _ = PatternVocabulary.fit(pair, depth, edge_labels=True)
    text = str(vocabulary.tree(vocabulary.n_patterns - 2))
    assert text == "(=".join("ab"[k % 2] for k in range(depth + 1)) + ")" * depth


@pytest.mark.parametrize("pattern", [-1, 5])
def test_a_pattern_that_does_not_exist(path: GraphCollection, pattern: int) -> None:
    vocabulary, _ = PatternVocabulary.fit(path, 1)
    with pytest.raises(IndexError, match=rf"Pattern {pattern} does not exist"):
        vocabulary.tree(pattern)


# --- refinement and its compiled loops, against their twins -------------------------------------


def fitted(graphs: GraphCollection, depth: int = 3, **options):
    known, colors = PatternVocabulary.fit(graphs, depth, **options)
    return known, colors.colors


@pytest.mark.parametrize("degree", [1, 2, 5, 31, 100])
def test_runs_are_sorted(degree: int, rng: np.random.Generator) -> None:
    offsets = np.array([0, 3, 3, 3 + degree, 4 + degree])
    keys = rng.integers(-1, 50, offsets[-1])
    expected = [sorted(keys[a:b].tolist()) for a, b in pairwise(offsets)]
    for first, last in ((2, 4), (0, 2)):
        _compiled.sort_runs(first, last, offsets, keys)
    assert [keys[a:b].tolist() for a, b in pairwise(offsets)] == expected


@pytest.mark.usefixtures("any_hash")
@pytest.mark.parametrize("edge_labels", [False, True])
@settings(max_examples=40)
@given(data=st.data())
def test_colours_are_the_nested_multisets(edge_labels: bool, data: st.DataObject) -> None:
    graphs = data.draw(collections(min_nodes=0, edge_labels=edge_labels, directed=None))
    _, colors = fitted(graphs, edge_labels=edge_labels)
    expected = naive.numbered(naive.nested_colors(graphs, 3, edge_labels))
    assert colors.tolist() == expected.tolist()
