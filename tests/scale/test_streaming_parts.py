"""The growing vocabulary of blocks."""

import numpy as np

import treelens as tl
from treelens.graphs.blocks import CollectionBlocks
from treelens.patterns import merging
from treelens.scale import streaming_parts
from treelens.scale.streaming_parts import Tally, count_part

GRAPHS, CLASSES = tl.make_synthetic(n_per_substructure=10, random_state=0)


def _counts(block_size, depth=2):
    parts = CollectionBlocks(GRAPHS, CLASSES, block_size)
    return [count_part(part, k, depth, False) for k, part in enumerate(parts)]


def test_merging_in_a_tree_gives_what_merging_one_by_one_gives():
    for block_size in (1, 7, 30, 1000):
        tally, counts = Tally(2, False, None), _counts(block_size)
        known, support = counts[0].vocabulary, counts[0].support
        for k, found in enumerate(counts):
            tally.add(found)
            if k:
                old = known.level_offsets
                known, ids = merging.merge_vocabularies(known, found.vocabulary)
                shifts = np.repeat(known.level_offsets[:-1] - old[:-1], np.diff(old))
                grown = np.zeros(known.n_patterns, dtype=np.int64)
                grown[np.arange(len(support)) + shifts] = support
                grown[ids] += found.support
                support = grown
        assert (tally.vocabulary.feature_names() == known.feature_names()).all()
        assert (tally.support == support).all()


def test_each_pattern_is_merged_as_often_as_the_parts_can_be_halved(monkeypatch):
    """One by one, the table of what is known would be gone over once for every part."""
    honest, sizes = merging.merge_vocabularies, []

    def counted(known, added):
        sizes.append(known.n_patterns + added.n_patterns)
        return honest(known, added)

    monkeypatch.setattr(streaming_parts, "merge_vocabularies", counted)
    counts, tally = _counts(1), Tally(2, False, None)
    for found in counts:
        tally.add(found)
    total = sum(found.vocabulary.n_patterns for found in counts)
    assert tally.vocabulary.n_patterns < total
    assert sum(sizes) <= total * (1 + np.ceil(np.log2(len(counts))))


def test_what_overflows_goes_as_soon_as_it_does():
    tally, counts = Tally(2, False, 40), _counts(10)
    for found in counts:
        tally.add(found)
        assert tally.vocabulary.n_patterns <= 40
