"""Refinement: every compiled loop against its twin, and hashing that is perfect."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from naive import patterns as naive
from strategies import collections, random_collection
from treelens.graphs.collection import GraphCollection
from treelens.patterns import _compiled, vocabulary
from treelens.patterns.vocabulary import PatternLevel, PatternVocabulary

pytestmark = pytest.mark.interpreted


def fitted(graphs: GraphCollection, depth: int = 3, **options):
    known, colors = PatternVocabulary.fit(graphs, depth, **options)
    return known, colors.colors


def patterns_of_level(level: PatternLevel) -> dict[tuple, int]:
    return naive.known_patterns(level.own, level.child_offsets, level.child_keys.tolist())


def level_of(patterns) -> PatternLevel:
    return PatternLevel(
        np.array([own for own, _ in patterns], np.int32),
        np.cumsum([0, *(len(keys) for _, keys in patterns)]),
        np.array([key for _, keys in patterns for key in keys], np.int64),
    )


def test_signatures() -> None:
    words = [0, 1, -1, 7, 2**31, 2**62, -(2**63)]
    assert vocabulary._mix(np.array(words)).tolist() == [naive.mix(word) for word in words]
    runs = [[], [0], [3, 3, 5], [-1, 2**40]]
    keys = np.array([key for run in runs for key in run])
    level = PatternLevel(np.arange(4, dtype=np.int32), np.cumsum([0, *map(len, runs)]), keys)
    expected = [naive.signature(own, run) for own, run in enumerate(runs)]
    assert level.signatures.tolist() == expected


@pytest.mark.parametrize("degree", [1, 2, 5, 31, 100])
def test_runs_are_sorted(degree: int, rng: np.random.Generator) -> None:
    offsets = np.array([0, 3, 3, 3 + degree, 4 + degree])
    keys = rng.integers(-1, 50, offsets[-1])
    expected = [sorted(keys[a:b].tolist()) for a, b in pairwise(offsets)]
    for first, last in ((2, 4), (0, 2)):
        _compiled.sort_runs(first, last, offsets, keys)
    assert [keys[a:b].tolist() for a, b in pairwise(offsets)] == expected


@pytest.mark.parametrize("with_edges", [False, True])
@pytest.mark.parametrize("mask", [2**64 - 1, 0x7, 0])
@pytest.mark.parametrize("add", [False, True])
def test_looking_up_and_numbering_patterns(
    with_edges: bool, mask: int, add: bool, rng: np.random.Generator,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Half the patterns are known, some nodes unseen; others are numbered with ``add``."""
    monkeypatch.setattr(vocabulary, "HASH_MASK", np.uint64(mask))
    graphs = random_collection(rng)
    edge_codes = graphs.edge_codes if with_edges else None
    colors = np.where(rng.random(graphs.n_nodes) < 0.1, -1, graphs.node_codes).astype(np.int32)
    keys = naive.child_keys(graphs, colors, edge_codes, 2 if with_edges else 0)
    patterns = naive.patterns_of(colors.tolist(), keys)
    complete = {p for p in patterns if p[0] >= 0 and -1 not in p[1]}
    known = {p: color for color, p in enumerate(sorted(complete)[::2])}
    found, wider = level_of(known).numbered(level_of(patterns), add, n_jobs=1 if add else 3)
    assert found.tolist() == naive.look_up_patterns(patterns, known, add)
    new = [p for p in patterns if add and p in complete]
    assert list(patterns_of_level(wider)) == list(dict.fromkeys([*known, *new]))


@pytest.mark.parametrize("edge_labels", [False, True])
@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_colours_are_the_nested_multisets(edge_labels: bool, data: st.DataObject) -> None:
    graphs = data.draw(collections(min_nodes=0, edge_labels=edge_labels, directed=None))
    _, colors = fitted(graphs, edge_labels=edge_labels)
    expected = naive.numbered(naive.nested_colors(graphs, 3, edge_labels))
    assert colors.tolist() == expected.tolist()


@pytest.mark.parametrize("mask", [0, 0x7, 0xFFF])
@pytest.mark.parametrize("edge_labels", [False, True])
def test_a_weak_hash_changes_nothing(
    mask: int, edge_labels: bool, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    graphs, more = random_collection(rng, 40), random_collection(rng, 20, labels="CNOS")
    strong, colors = fitted(graphs, edge_labels=edge_labels)
    found = strong.transform(more).colors
    extended, more_colors = strong.extend(more)

    monkeypatch.setattr(vocabulary, "HASH_MASK", np.uint64(mask))
    weak, weak_colors = fitted(graphs, edge_labels=edge_labels)
    for level in weak.levels:  # or this shows nothing
        assert mask == 0xFFF or len(np.unique(level.signatures)) <= mask + 1 < len(level)
    assert weak_colors.tolist() == colors.tolist()
    assert weak.transform(more).colors.tolist() == found.tolist()
    weak_extended, weak_more_colors = weak.extend(more)
    assert weak_more_colors.colors.tolist() == more_colors.colors.tolist()
    for level, weak_level in zip(extended.levels, weak_extended.levels, strict=True):
        assert patterns_of_level(level) == patterns_of_level(weak_level)


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_the_number_of_threads_changes_nothing(n_jobs: int, rng: np.random.Generator) -> None:
    graphs, more = random_collection(rng, 40), random_collection(rng, 20)
    one, colors = fitted(graphs)
    other, other_colors = fitted(graphs, n_jobs=n_jobs)
    assert (colors == other_colors).all()
    assert (one.transform(more).colors == other.transform(more, n_jobs).colors).all()
