"""Refinement: every compiled loop against its twin, and hashing that is perfect."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from naive import patterns as naive
from strategies import collections, random_collection
from treelens.graphs.build import build_collection
from treelens.graphs.collection import GraphCollection
from treelens.patterns import _compiled, refinement
from treelens.patterns.refinement import PatternLevel
from treelens.patterns.vocabulary import PatternVocabulary

pytestmark = pytest.mark.interpreted

WORDS = [0, 1, -1, 7, 2**31, 2**62, -(2**63)]


def fitted(graphs: GraphCollection, depth: int = 3, **options):
    vocabulary, colors = PatternVocabulary.fit(graphs, depth, **options)
    return vocabulary, colors.colors


def patterns_of_level(level: PatternLevel) -> dict[tuple, int]:
    return naive.known_patterns(level.own, level.child_offsets, level.child_keys.tolist())


@pytest.mark.parametrize("value", WORDS)
def test_mixing_is_splitmix64(value: int) -> None:
    assert int(_compiled._mix(np.int64(value))) == naive.mix(value)


@pytest.mark.parametrize("keys", [[], [0], [3, 3, 5], [-1, 2**40]])
def test_signatures(keys: list[int]) -> None:
    total = np.uint64(sum(naive.mix(key) for key in keys) % 2**64)
    found = _compiled._signature(np.int32(4), len(keys), total)
    assert int(found) == naive.signature(4, keys)


def keys_by_node(graphs: GraphCollection, colors: np.ndarray, edge_codes, n_edge_labels: int):
    keys = np.empty(len(graphs.neighbors), np.int64)
    signatures = np.empty(graphs.n_nodes, np.uint64)
    codes = np.empty(0, np.int32) if edge_codes is None else edge_codes
    _compiled.child_keys_of_nodes(
        0, len(graphs), graphs.node_offsets, graphs.neighbor_offsets, graphs.neighbors, codes,
        n_edge_labels, colors, keys, signatures,
    )  # fmt: skip
    bounds = graphs.neighbor_offsets
    return [keys[a:b].tolist() for a, b in pairwise(bounds)], signatures


@pytest.mark.parametrize("with_edges", [False, True])
def test_child_keys_of_nodes(with_edges: bool, rng: np.random.Generator) -> None:
    graphs = random_collection(rng, density=0.4)
    colors = rng.integers(-1, 5, graphs.n_nodes).astype(np.int32)
    edge_codes = rng.integers(-1, 3, len(graphs.neighbors)).astype(np.int32) if with_edges else None
    n_edge_labels = 3 if with_edges else 0
    keys, signatures = keys_by_node(graphs, colors, edge_codes, n_edge_labels)
    expected = naive.child_keys(graphs, colors, edge_codes, n_edge_labels)
    assert keys == expected
    assert signatures.tolist() == [
        naive.signature(int(c), k) for c, k in zip(colors, expected, strict=True)
    ]


@pytest.mark.parametrize("degree", [31, 32, 33, 100])
def test_child_keys_of_hubs_are_sorted(degree: int, rng: np.random.Generator) -> None:
    """Few neighbours are sorted by insertion, many in a heap."""
    spokes = np.stack([np.zeros(degree, int), np.arange(1, degree + 1)], axis=1)
    star = build_collection([degree + 1], spokes, ["C"] * (degree + 1))
    colors = rng.integers(-1, 50, degree + 1).astype(np.int32)
    keys, _ = keys_by_node(star, colors, None, 0)
    assert keys[0] == sorted(colors[1:].tolist())
    assert keys[1:] == [[int(colors[0])]] * degree


@pytest.mark.parametrize("mask", [2**64 - 1, 0x7, 0])
def test_slots_are_filled_by_linear_probing(mask: int, rng: np.random.Generator) -> None:
    signatures = rng.integers(0, 2**63, 9, dtype=np.uint64) & np.uint64(mask)
    slots = np.full(32, _compiled.UNSEEN, np.int32)
    _compiled.fill_slots(slots, signatures)
    assert slots.tolist() == naive.slots_of(signatures.tolist(), 32)


def table_of(signatures: list[int], size: int) -> np.ndarray:
    return np.array(naive.slots_of(signatures, size), dtype=np.int32)


@pytest.mark.parametrize("with_edges", [False, True])
@pytest.mark.parametrize("mask", [2**64 - 1, 0x7, 0])
def test_looking_up_and_numbering_patterns(
    with_edges: bool, mask: int, rng: np.random.Generator
) -> None:
    """Half the patterns are known, some nodes unseen; then all others are numbered."""
    graphs = random_collection(rng)
    edge_codes = graphs.edge_codes if with_edges else None
    colors = np.where(rng.random(graphs.n_nodes) < 0.1, -1, graphs.node_codes).astype(np.int32)
    keys, signatures = keys_by_node(graphs, colors, edge_codes, 2 if with_edges else 0)
    signatures &= np.uint64(mask)
    patterns = naive.patterns_of(colors.tolist(), keys)
    flat = np.array([key for own in keys for key in own], dtype=np.int64)
    complete = {p for p in patterns if p[0] >= 0 and -1 not in p[1]}
    known = {p: color for color, p in enumerate(sorted(complete)[::2])}
    known_signatures = [naive.signature(own, list(k)) & mask for own, k in known]

    found = np.full(graphs.n_nodes, -7, np.int32)
    for first, last in [(0, 50), (50, graphs.n_nodes)]:
        _compiled.look_up_patterns(
            first, last, colors, graphs.neighbor_offsets, flat, signatures,
            table_of(known_signatures, 256), np.array(known_signatures, np.uint64),
            np.array([own for own, _ in known], np.int32),
            np.cumsum([0, *(len(k) for _, k in known)]),
            np.array([key for _, k in known for key in k], np.int64), found,
        )  # fmt: skip
    assert found.tolist() == naive.look_up_patterns(patterns, known)

    expected, expected_founders = naive.number_new_patterns(patterns, found.tolist(), len(known))
    founders = np.empty(graphs.n_nodes, np.int32)
    n_new = _compiled.number_new_patterns(
        colors, graphs.neighbor_offsets, flat, signatures, table_of([], 512), len(known),
        founders, found,
    )  # fmt: skip
    assert found.tolist() == expected
    assert founders[:n_new].tolist() == expected_founders


def test_signatures_of_patterns(rng: np.random.Generator) -> None:
    level = fitted(random_collection(rng), depth=1)[0].levels[0]
    signatures = np.empty(len(level), np.uint64)
    _compiled.signatures_of_patterns(level.own, level.child_offsets, level.child_keys, signatures)
    assert signatures.tolist() == [
        naive.signature(own, list(keys)) for own, keys in patterns_of_level(level)
    ]


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
    vocabulary, colors = fitted(graphs, edge_labels=edge_labels)
    found = vocabulary.transform(more).colors
    extended, more_colors = vocabulary.extend(more)

    monkeypatch.setattr(refinement, "HASH_MASK", np.uint64(mask))
    weak, weak_colors = fitted(graphs, edge_labels=edge_labels)
    assert weak_colors.tolist() == colors.tolist()
    assert weak.transform(more).colors.tolist() == found.tolist()
    weak_extended, weak_more_colors = weak.extend(more)
    assert weak_more_colors.colors.tolist() == more_colors.colors.tolist()
    for level, weak_level in zip(extended.levels, weak_extended.levels, strict=True):
        assert patterns_of_level(level) == patterns_of_level(weak_level)


@pytest.mark.parametrize("mask", [0, 0x7])
def test_a_weak_hash_does_collide(
    mask: int, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test above would be empty if the mask did not reach the hash."""
    monkeypatch.setattr(refinement, "HASH_MASK", np.uint64(mask))
    graphs = random_collection(rng, 40)
    seen: list[np.ndarray] = []
    number = _compiled.number_new_patterns

    def watched(*arguments):
        seen.append(arguments[3])
        return number(*arguments)

    monkeypatch.setattr(_compiled, "number_new_patterns", watched)
    vocabulary, _ = fitted(graphs)
    for signatures, level in zip(seen, vocabulary.levels, strict=True):
        assert len(np.unique(signatures)) <= mask + 1 < len(level)


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_the_number_of_threads_changes_nothing(n_jobs: int, rng: np.random.Generator) -> None:
    graphs, more = random_collection(rng, 40), random_collection(rng, 20)
    vocabulary, colors = fitted(graphs)
    other, other_colors = fitted(graphs, n_jobs=n_jobs)
    assert (colors == other_colors).all()
    assert (vocabulary.transform(more).colors == other.transform(more, n_jobs).colors).all()
