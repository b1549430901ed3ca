"""Vocabularies of parts of a collection, put together or cut down.

A collection read in blocks, on one machine or on several, has one vocabulary per block. Merged in
the order of the blocks they give the ids that reading all at once would have given.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from treelens.patterns import _compiled, refinement
from treelens.patterns.refinement import PatternLevel
from treelens.patterns.vocabulary import PatternVocabulary


class Merged(NamedTuple):
    """A vocabulary, and where the patterns of the one that was added stand in it."""

    vocabulary: PatternVocabulary
    ids: np.ndarray  # (n_patterns of the added vocabulary,)


def merge_vocabularies(known: PatternVocabulary, added: PatternVocabulary) -> Merged:
    """``known`` extended by the patterns that only ``added`` holds, in the order of their ids.

    Examples
    --------
    >>> from treelens import as_graph_collection
    >>> graphs = as_graph_collection([([(0, 1)], {0: "C", 1: "C"}), ([(0, 1)], {0: "O", 1: "C"})])
    >>> both, _ = PatternVocabulary.fit(graphs, depth=1)
    >>> first, second = (PatternVocabulary.fit(graphs[i : i + 1], depth=1)[0] for i in (0, 1))
    >>> merged, ids = merge_vocabularies(first, second)
    >>> bool((merged.feature_names() == both.feature_names()).all()), ids.tolist()
    (True, [1, 0, 3, 4])
    """
    _check_same_kind(known, added)
    if not known.n_patterns:
        return Merged(added, np.arange(added.n_patterns))
    node_alphabet, colors = _joined(known.node_alphabet, added.node_alphabet)
    edge_alphabet, edge_codes = known.edge_alphabet, None
    if known.edge_alphabet is not None:
        edge_alphabet, edge_codes = _joined(known.edge_alphabet, added.edge_alphabet or ())
        known = known._with_edge_alphabet(edge_alphabet)
    levels: list[PatternLevel] = []
    ids = [colors]
    for old, new in zip(known.levels, added.levels, strict=True):
        translated = _translated(new, ids[-1], edge_codes, len(edge_alphabet or ()))
        level, colors = _merged_level(old, translated)
        levels.append(level)
        ids.append(colors)
    degree_labels = known.degree_labels or added.degree_labels
    vocabulary = PatternVocabulary(node_alphabet, edge_alphabet, tuple(levels), degree_labels)
    starts = vocabulary.level_offsets[:-1].tolist()
    return Merged(vocabulary, np.concatenate([a + x for a, x in zip(starts, ids, strict=True)]))


def select_patterns(vocabulary: PatternVocabulary, keep: np.ndarray) -> PatternVocabulary:
    """The vocabulary without the patterns that a mask leaves out; the others keep their order.

    Parameters
    ----------
    vocabulary : PatternVocabulary
    keep : ndarray of bool, shape (n_patterns,)
        With a pattern it must keep what the pattern is made of. A minimum support does: every
        graph that holds a pattern holds its parts.
    """
    masks = np.split(np.asarray(keep, dtype=bool), vocabulary.level_offsets[1:-1])
    new_ids = [np.where(mask, np.cumsum(mask) - 1, _compiled.UNSEEN) for mask in masks]
    alphabet = tuple(x for x, kept in zip(vocabulary.node_alphabet, masks[0], strict=True) if kept)
    n_edge_labels = max(1, len(vocabulary.edge_alphabet or ()))
    levels = []
    for level, mask, below in zip(vocabulary.levels, masks[1:], new_ids, strict=False):
        degrees = np.diff(level.child_offsets)
        keys = level.child_keys[np.repeat(mask, degrees)]
        own, children = below[level.own[mask]], below[keys // n_edge_labels]
        if (own < 0).any() or (children < 0).any():
            raise ValueError("keep holds a pattern without the patterns that it is made of.")
        levels.append(
            PatternLevel(
                own.astype(np.int32),
                np.concatenate([[0], np.cumsum(degrees[mask])]).astype(np.int64),
                children * n_edge_labels + keys % n_edge_labels,
            )
        )
    return PatternVocabulary(
        alphabet, vocabulary.edge_alphabet, tuple(levels), vocabulary.degree_labels
    )


def _joined(known: tuple[Any, ...], added: tuple[Any, ...]) -> tuple[tuple[Any, ...], np.ndarray]:
    """The longer alphabet, and the code in it of every label of ``added``."""
    position = {label: code for code, label in enumerate(known)}
    codes = [position.setdefault(label, len(position)) for label in added]
    return tuple(position), np.array(codes, dtype=np.int32)


def _translated(
    level: PatternLevel, colors: np.ndarray, edge_codes: np.ndarray | None, n_edge_labels: int
) -> PatternLevel:
    """A level in terms of other colours (and edge codes) one depth down."""
    if edge_codes is None:
        keys = colors[level.child_keys].astype(np.int64)
    elif len(edge_codes):
        below, edge = np.divmod(level.child_keys, len(edge_codes))
        keys = colors[below].astype(np.int64) * n_edge_labels + edge_codes[edge]
    else:
        keys = level.child_keys  # no edge, no key
    pattern = np.repeat(np.arange(len(level)), np.diff(level.child_offsets))
    return PatternLevel(
        colors[level.own].astype(np.int32),
        level.child_offsets,
        keys[np.lexsort((keys, pattern))],
    )


def _merged_level(known: PatternLevel, added: PatternLevel) -> tuple[PatternLevel, np.ndarray]:
    """The known patterns and then the new ones of ``added``, and the colours of all of those."""
    signatures = np.empty(len(added), dtype=np.uint64)
    _compiled.signatures_of_patterns(added.own, added.child_offsets, added.child_keys, signatures)
    signatures &= refinement.HASH_MASK
    colors = np.empty(len(added), dtype=np.int32)
    refinement.look_up_level(
        added.own, added.child_offsets, added.child_keys, signatures, known, colors
    )
    new = colors < 0
    colors[new] = len(known) + np.arange(np.count_nonzero(new))  # those of one level differ
    degrees = np.diff(added.child_offsets)
    founded = PatternLevel(
        added.own[new],
        np.concatenate([[0], np.cumsum(degrees[new])]).astype(np.int64),
        added.child_keys[np.repeat(new, degrees)],
    )
    return known.followed_by(founded), colors


def _check_same_kind(known: PatternVocabulary, added: PatternVocabulary) -> None:
    if known.depth != added.depth or known.uses_edge_labels != added.uses_edge_labels:
        raise ValueError(
            f"Vocabularies of one kind can be merged; these have depths {known.depth} and "
            f"{added.depth}, edge labels {known.uses_edge_labels} and {added.uses_edge_labels}."
        )
