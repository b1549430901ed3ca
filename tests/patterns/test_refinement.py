"""Refinement: every compiled loop against its twin, and hashing that is perfect."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from naive import patterns as naive
from strategies import collections, random_collection
from treelens.graphs.collection import GraphCollection
from treelens.patterns import _compiled, refinement
from treelens.patterns.refinement import PatternLevel, run_in_shares
from treelens.patterns.vocabulary import PatternVocabulary

WORDS = [0, 1, -1, 7, 2**31, 2**62, -(2**63)]


def fitted(graphs: GraphCollection, depth: int = 3, **options):
    vocabulary, colors = PatternVocabulary.fit(graphs, depth, **options)
    return vocabulary, colors.colors


def patterns_of_level(level: PatternLevel) -> dict[tuple, int]:
    return naive.known_patterns(level.own, level.child_offsets, level.child_keys.tolist())


# --- compiled functions against their twins -------------------------------------------------


@pytest.mark.parametrize("value", WORDS)
def test_mixing_is_splitmix64(value: int) -> None:
    assert int(_compiled._mix(np.int64(value))) == naive.mix(value)


@pytest.mark.parametrize("length", [0, 1, 2, 31, 32, 33, 100])
def test_a_run_is_sorted_and_nothing_else_moves(length: int, rng: np.random.Generator) -> None:
    values = rng.integers(-1, 20, length + 4)
    expected = values.copy()
    expected[2 : length + 2] = sorted(expected[2 : length + 2].tolist())
    _compiled._sort_run(values, 2, length + 2)
    assert values.tolist() == expected.tolist()


@pytest.mark.parametrize("keys", [[], [0], [3, 3, 5], [-1, 2**40]])
def test_signatures(keys: list[int]) -> None:
    padded = np.array([9, *keys, 9], dtype=np.int64)
    found = _compiled._signature(np.int32(4), padded, 1, 1 + len(keys))
    assert int(found) == naive.signature(4, keys)


def test_signatures_tell_own_colour_number_and_kind_of_children_apart() -> None:
    seen = [(0, []), (1, []), (0, [0]), (0, [0, 0]), (0, [1]), (1, [0]), (0, [0, 1]), (-1, [])]
    assert len({naive.signature(own, keys) for own, keys in seen}) == len(seen)


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


@pytest.mark.parametrize("mask", [2**64 - 1, 0x7, 0])
def test_slots_are_filled_by_linear_probing(mask: int, rng: np.random.Generator) -> None:
    signatures = rng.integers(0, 2**63, 9, dtype=np.uint64) & np.uint64(mask)
    slots = np.full(32, _compiled.UNSEEN, np.int32)
    _compiled.fill_slots(slots, signatures)
    assert slots.tolist() == naive.slots_of(signatures.tolist(), 32)


@pytest.mark.parametrize("with_edges", [False, True])
@pytest.mark.parametrize("mask", [2**64 - 1, 0x7, 0])
def test_learning_and_looking_up_one_level(
    with_edges: bool, mask: int, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refinement, "HASH_MASK", np.uint64(mask))
    graphs = random_collection(rng)
    edge_codes = graphs.edge_codes if with_edges else None
    n_edge_labels = 2 if with_edges else 0
    keys = naive.child_keys(graphs, graphs.node_codes, edge_codes, n_edge_labels)
    patterns = naive.patterns_of(graphs.node_codes.tolist(), keys)
    known: dict[tuple, int] = {}
    expected = naive.learn_colors(patterns, known)

    colors, (level,) = refinement.learn(
        graphs, graphs.node_codes, edge_codes, n_edge_labels, (PatternLevel.empty(),)
    )
    assert colors[1].tolist() == expected
    assert patterns_of_level(level) == known
    found = refinement.look_up(graphs, graphs.node_codes, edge_codes, n_edge_labels, (level,))
    assert found[1].tolist() == expected

    half = dict(list(known.items())[: len(known) // 2])
    fewer = PatternLevel(
        level.own[: len(half)], level.child_offsets[: len(half) + 1],
        level.child_keys[: level.child_offsets[len(half)]],
    )  # fmt: skip
    found = refinement.look_up(graphs, graphs.node_codes, edge_codes, n_edge_labels, (fewer,))
    assert found[1].tolist() == naive.look_up_colors(patterns, half)


def test_a_colour_that_does_not_fit_is_found(rng: np.random.Generator) -> None:
    graphs = random_collection(rng)
    vocabulary, colors = fitted(graphs, depth=1)
    level = vocabulary.levels[0]
    keys = naive.child_keys(graphs, colors[0], None, 0)
    patterns = naive.patterns_of(colors[0].tolist(), keys)
    flat = np.array([key for own in keys for key in own], dtype=np.int64)

    def fits(new_colors: np.ndarray) -> bool:
        return _compiled.all_colors_fit(
            0, len(graphs), graphs.node_offsets, colors[0], graphs.neighbor_offsets, flat,
            level.own, level.child_offsets, level.child_keys, new_colors,
        )  # fmt: skip

    known = patterns_of_level(level)
    assert fits(colors[1]) is naive.all_colors_fit(patterns, known, colors[1].tolist()) is True
    for node in rng.integers(0, graphs.n_nodes, 20):
        wrong = colors[1].copy()
        wrong[node] = (wrong[node] + 1) % len(level)
        assert fits(wrong) is naive.all_colors_fit(patterns, known, wrong.tolist()) is False


def test_signatures_of_patterns(rng: np.random.Generator) -> None:
    level = fitted(random_collection(rng), depth=1)[0].levels[0]
    signatures = np.empty(len(level), np.uint64)
    _compiled.signatures_of_patterns(level.own, level.child_offsets, level.child_keys, signatures)
    assert signatures.tolist() == [
        naive.signature(own, list(keys)) for own, keys in patterns_of_level(level)
    ]


# --- refinement as a whole ------------------------------------------------------------------


@pytest.mark.parametrize("edge_labels", [False, True])
@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_colours_are_the_nested_multisets(edge_labels: bool, data: st.DataObject) -> None:
    graphs = data.draw(collections(min_nodes=0, edge_labels=edge_labels))
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


def test_a_weak_hash_does_collide(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test above would be empty if the mask did not reach the hash."""
    monkeypatch.setattr(refinement, "HASH_MASK", np.uint64(0x7))
    outcomes = []
    checked = _compiled.all_colors_fit

    def watched(*arguments):
        outcomes.append(checked(*arguments))
        return outcomes[-1]

    monkeypatch.setattr(_compiled, "all_colors_fit", watched)
    fitted(random_collection(rng, 40))
    assert False in outcomes


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_the_number_of_threads_changes_nothing(n_jobs: int, rng: np.random.Generator) -> None:
    graphs, more = random_collection(rng, 40), random_collection(rng, 20)
    vocabulary, colors = fitted(graphs)
    other, other_colors = fitted(graphs, n_jobs=n_jobs)
    assert (colors == other_colors).all()
    assert (vocabulary.transform(more).colors == other.transform(more, n_jobs).colors).all()


@pytest.mark.parametrize(("n_items", "n_jobs"), [(0, 2), (3, 2), (10, 3), (10, 1), (5, 5)])
def test_shares_cover_every_item_once(n_items: int, n_jobs: int) -> None:
    shares = run_in_shares(lambda first, last: list(range(first, last)), n_items, n_jobs)
    assert [item for share in shares for item in share] == list(range(n_items))


def test_levels_of_depth_zero_are_the_labels_alone(rng: np.random.Generator) -> None:
    graphs = random_collection(rng)
    vocabulary, colors = fitted(graphs, depth=0)
    assert vocabulary.depth == 0
    assert colors.shape == (1, graphs.n_nodes)
    assert set(vocabulary.node_alphabet) == set("CNO")
