"""Vocabularies of blocks against the vocabulary of everything."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strategies import collections
from treelens.patterns.histograms import PatternHistograms
from treelens.patterns.merging import merge_vocabularies, select_patterns
from treelens.patterns.vocabulary import PatternVocabulary


def assert_same(left: PatternVocabulary, right: PatternVocabulary) -> None:
    assert left.node_alphabet == right.node_alphabet
    assert left.edge_alphabet == right.edge_alphabet
    for a, b in zip(left.levels, right.levels, strict=True):
        np.testing.assert_array_equal(a.own, b.own)
        np.testing.assert_array_equal(a.child_offsets, b.child_offsets)
        np.testing.assert_array_equal(a.child_keys, b.child_keys)


@pytest.mark.parametrize("edge_labels", [False, True])
@settings(deadline=None, max_examples=50)
@given(data=st.data())
def test_merging_blocks_gives_the_ids_of_reading_all_at_once(edge_labels, data):
    graphs = data.draw(collections(min_graphs=2, max_graphs=8, edge_labels=edge_labels))
    cut = data.draw(st.integers(1, len(graphs) - 1))
    whole, _ = PatternVocabulary.fit(graphs, 2, edge_labels)
    merged = PatternVocabulary.empty(2, edge_labels)
    for block in (graphs[:cut], graphs[cut:]):
        local, _ = PatternVocabulary.fit(block, 2, edge_labels)
        merged, ids = merge_vocabularies(merged, local)
        assert merged.feature_names()[ids].tolist() == local.feature_names().tolist()
    assert_same(merged, whole)


@settings(deadline=None, max_examples=50)
@given(data=st.data())
def test_a_minimum_support_leaves_a_vocabulary_that_recognises_the_rest(data):
    graphs = data.draw(collections(min_graphs=3, max_graphs=8, edge_labels=True))
    whole, colors = PatternVocabulary.fit(graphs, 2, True)
    counts = PatternHistograms.from_colors(whole, colors)
    keep = counts.support >= 2
    small = select_patterns(whole, keep)
    found = PatternHistograms.from_colors(small, small.transform(graphs))
    expected = counts.select_patterns(keep)
    for name in ("offsets", "graphs", "counts", "level_offsets", "unseen"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    names = whole.feature_names()[keep]
    assert small.feature_names().tolist() == names.tolist()


def test_a_pattern_cannot_be_kept_without_its_parts(mutag):
    vocabulary, _ = PatternVocabulary.fit(mutag[0][:5], 1)
    keep = np.ones(vocabulary.n_patterns, dtype=bool)
    keep[0] = False
    with pytest.raises(ValueError, match="made of"):
        select_patterns(vocabulary, keep)


def test_vocabularies_of_different_kinds_are_refused(mutag):
    shallow, deep = (PatternVocabulary.fit(mutag[0][:3], depth)[0] for depth in (1, 2))
    with pytest.raises(ValueError, match="depths 1 and 2"):
        merge_vocabularies(shallow, deep)
