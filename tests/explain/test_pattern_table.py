"""Tables of patterns, rankings and separation of classes."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd
import pytest

from strategies import random_collection
from treelens.explain.pattern_table import (
    class_shares,
    pattern_table,
    rank_patterns,
)
from treelens.graphs.synthetic import make_random_graphs
from treelens.patterns.forest import PatternForest
from treelens.patterns.histograms import PatternHistograms
from treelens.patterns.vocabulary import PatternVocabulary

DEPTH = 2
CLASSES = np.array(["blue", "green", "red"])


@pytest.fixture(scope="module")
def graphs():
    return random_collection(np.random.default_rng(3), 21, max_nodes=8)


@pytest.fixture(scope="module")
def codes():
    return np.random.default_rng(4).integers(3, size=21)


def shares_by_hand(graphs, colors, codes) -> dict[tuple[int, int], np.ndarray]:
    """(depth, colour) -> mean over the graphs of each class of the share of nodes that carry it."""
    totals: Counter = Counter()
    for graph in range(len(graphs)):
        nodes = range(graphs.node_offsets[graph], graphs.node_offsets[graph + 1])
        for depth in range(DEPTH + 1):
            for node in nodes:
                totals[depth, int(colors[depth][node]), codes[graph]] += 1 / len(nodes)
    sizes = np.bincount(codes)
    keys = {(depth, color) for depth, color, _ in totals}
    return {k: np.array([totals[(*k, c)] / sizes[c] for c in range(3)]) for k in keys}


@pytest.mark.parametrize("first_depth", [0, 1])
def test_content_by_hand(graphs, codes, first_depth):
    vocabulary, colors = PatternVocabulary.fit(graphs, DEPTH, edge_labels=True)
    histograms = PatternHistograms.from_colors(vocabulary, colors).select_depths(first_depth, DEPTH)
    weights = np.random.default_rng(5).random(histograms.n_patterns)
    table = pattern_table(
        PatternForest.of_vocabulary(vocabulary), histograms, weights, codes, CLASSES
    )
    by_hand = shares_by_hand(graphs, colors.colors, codes)
    assert len(table) == histograms.n_patterns == sum(d >= first_depth for d, _ in by_hand)
    assert list(table.columns) == [
        "pattern", "tree", "depth", "weight", "support",
        "frequency blue", "frequency green", "frequency red", "class",
    ]  # fmt: skip
    for pattern_id, row in table.iterrows():
        color = pattern_id - vocabulary.level_offsets[row["depth"]]
        shares = by_hand[row["depth"], color]
        np.testing.assert_allclose([row[f"frequency {c}"] for c in CLASSES], shares, atol=1e-12)
        assert row["class"] == CLASSES[np.round(shares, 12).argmax()]
        assert row["pattern"] == str(vocabulary.tree(pattern_id))
        assert vocabulary.depth_of(pattern_id) == row["depth"]
        assert row["weight"] == weights[pattern_id - vocabulary.level_offsets[first_depth]]
        holders = {g for g in range(len(graphs)) if color in _colors_in(graphs, colors, g, row)}
        assert row["support"] == len(holders)


def _colors_in(graphs, colors, graph, row) -> set[int]:
    nodes = slice(graphs.node_offsets[graph], graphs.node_offsets[graph + 1])
    return set(colors.colors[row["depth"]][nodes].tolist())


def test_order(graphs, codes):
    vocabulary, colors = PatternVocabulary.fit(graphs, DEPTH)
    histograms = PatternHistograms.from_colors(vocabulary, colors)
    weights = np.random.default_rng(5).choice([0.5, 1.0, 2.0], size=histograms.n_patterns)
    table = pattern_table(
        PatternForest.of_vocabulary(vocabulary), histograms, weights, codes, CLASSES
    )
    keys = list(zip(-table["weight"], -table["support"], table["depth"], table["pattern"],
                    strict=True))  # fmt: skip
    assert keys == sorted(keys)
    assert sorted(table.index) == list(range(vocabulary.n_patterns))


def test_a_class_without_graphs_has_no_mass(graphs, codes):
    histograms = PatternHistograms.from_colors(*PatternVocabulary.fit(graphs, 0))
    np.testing.assert_array_equal(class_shares(histograms, codes, 4)[:, 3], 0.0)


@pytest.fixture(scope="module")
def histograms():
    graphs = make_random_graphs(40, n_nodes=(5, 12), n_labels=3, random_state=5)
    return PatternHistograms.from_colors(*PatternVocabulary.fit(graphs, depth=2))


@pytest.fixture(scope="module")
def three_classes():
    return np.random.default_rng(6).integers(0, 3, 40)


def test_ranking_does_not_depend_on_the_order_before(rng):
    table = pd.DataFrame(
        {
            "pattern": [f"p{k % 3}" for k in range(30)],
            "depth": np.arange(30) % 2,
            "weight": rng.integers(0, 3, 30).astype(float),
            "support": rng.integers(1, 4, 30),
        }
    )
    for by in ("weight", "support", "depth"):
        ranked = rank_patterns(table, by)
        assert ranked[by].is_monotonic_decreasing
        pd.testing.assert_frame_equal(
            rank_patterns(table.sample(frac=1, random_state=1), by), ranked
        )
    with pytest.raises(ValueError, match="'beauty'"):
        rank_patterns(table, "beauty")


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        # weight, then support (many first), depth (shallow first), text, id
        ("weight", ["f", "b", "d", "c", "a1", "a2", "e"]),
        ("support", ["e", "f", "b", "d", "c", "a1", "a2"]),
    ],
)
def test_ties_are_broken_by_support_then_depth_then_text_then_id(by, expected):
    rows = {  # text, depth, weight, support
        "a2": ("a", 2, 1.0, 3), "a1": ("a", 2, 1.0, 3), "b": ("b", 0, 1.0, 5),
        "c": ("c", 1, 1.0, 3), "d": ("d", 0, 1.0, 3), "e": ("e", 0, 0.5, 9), "f": ("f", 3, 2.0, 9),
    }  # fmt: skip
    table = pd.DataFrame.from_dict(
        rows, orient="index", columns=["pattern", "depth", "weight", "support"]
    )
    assert rank_patterns(table, by).index.tolist() == expected
