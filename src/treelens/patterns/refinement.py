"""Weisfeiler-Lehman refinement of a whole collection at once, with perfect hashing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from treelens.array_checks import check_array, check_offsets
from treelens.graphs.collection import GraphCollection
from treelens.parallel import run_in_shares
from treelens.patterns import _compiled

# Tests weaken the hash by this mask to force collisions; it never changes a result.
HASH_MASK = np.uint64(0xFFFFFFFFFFFFFFFF)
_MOST_COLLISIONS = 8  # of different patterns
_NO_EDGE_CODES = np.empty(0, dtype=np.int32)


@dataclass(frozen=True, eq=False)
class PatternLevel:
    """The patterns of one depth: own colour and child keys, both one depth down.

    Keys are ``neighbour colour * n_edge_labels + edge code`` (just the colour without edge labels),
    sorted within a pattern. Of directed graphs, an edge code is ``edge code * 2 + direction``.
    """

    own: np.ndarray  # (n_colors,) int32
    child_offsets: np.ndarray  # (n_colors + 1,) int64
    child_keys: np.ndarray  # int64

    @classmethod
    def empty(cls) -> PatternLevel:
        return cls(np.empty(0, np.int32), np.zeros(1, np.int64), np.empty(0, np.int64))

    def __len__(self) -> int:
        return len(self.own)

    def signatures(self) -> np.ndarray:
        """Return a hash of every pattern, shape (n_colors,)."""
        known = np.empty(len(self), dtype=np.uint64)
        _compiled.signatures_of_patterns(self.own, self.child_offsets, self.child_keys, known)
        return known & HASH_MASK

    def check(self, n_below: int, n_edge_labels: int) -> None:
        """Raise ``ValueError`` unless own colours and child keys exist one depth down."""
        check_array(self.own, "own", np.int32, (None,), 0, n_below)
        n_keys = n_below * n_edge_labels
        check_array(self.child_keys, "child_keys", np.int64, (None,), 0, n_keys)
        check_offsets(self.child_offsets, "child_offsets", len(self), len(self.child_keys))
        equal = np.unique(self.signatures(), return_counts=True)[1].max(initial=0)
        if equal > _MOST_COLLISIONS:  # a hash table of them would be as slow as a list
            raise ValueError("the patterns of one depth must differ from each other")

    def followed_by(self, other: PatternLevel) -> PatternLevel:
        """Return these patterns followed by others of the same depth and kind."""
        if not len(self):
            return other
        return PatternLevel(
            np.concatenate([self.own, other.own]),
            np.concatenate([self.child_offsets, other.child_offsets[1:] + self.child_offsets[-1]]),
            np.concatenate([self.child_keys, other.child_keys]),
        )

    def select(self, keep: np.ndarray, below: np.ndarray, n_edge_labels: int) -> PatternLevel:
        """Return some of the patterns, with the new ids ``below`` of those one depth down."""
        degrees = np.diff(self.child_offsets)
        keys = self.child_keys[np.repeat(keep, degrees)]
        own, children = below[self.own[keep]], below[keys // n_edge_labels]
        if (own < 0).any() or (children < 0).any():
            raise ValueError("keep contains a pattern without the patterns that it is made of.")
        return PatternLevel(
            own.astype(np.int32),
            np.concatenate([[0], np.cumsum(degrees[keep])]).astype(np.int64),
            children * n_edge_labels + keys % n_edge_labels,
        )

    def with_edge_labels(self, old: int, new: int) -> PatternLevel:
        """Return the patterns with keys for ``new`` instead of ``old`` edge labels."""
        if old == 0:  # no edge has been seen, so there are no keys
            return self
        keys = self.child_keys // old * new + self.child_keys % old
        return PatternLevel(self.own, self.child_offsets, keys)


def refine(
    graphs: GraphCollection,
    colors: np.ndarray,
    edge_codes: np.ndarray | None,
    n_edge_labels: int,
    levels: tuple[PatternLevel, ...],
    extend: bool,
    n_jobs: int = 1,
) -> tuple[np.ndarray, tuple[PatternLevel, ...]]:
    """Return the colours at every depth (depth + 1, n_nodes), and the levels.

    ``colors`` are those at depth 0, ``levels`` the known patterns from depth 1 on. Unknown ones are
    added to the levels with ``extend``; otherwise their colour is -1.
    """
    refined = np.empty((len(levels) + 1, graphs.n_nodes), dtype=np.int32)
    refined[0] = colors
    offsets, new_levels = graphs.neighbor_offsets, []
    for h, level in enumerate(levels):
        keys, signatures = _child_keys(graphs, refined[h], edge_codes, n_edge_labels, n_jobs)
        _look_up_level(refined[h], offsets, keys, signatures, level, refined[h + 1], n_jobs)
        if not extend:
            continue
        founders = np.empty(graphs.n_nodes, dtype=np.int32)
        n_new = _compiled.number_new_patterns(
            refined[h], offsets, keys, signatures, _empty_table(graphs.n_nodes), len(level),
            founders, refined[h + 1],
        )  # fmt: skip
        founders = founders[:n_new]
        degrees = np.diff(offsets)[founders]
        child_offsets = np.concatenate([[0], np.cumsum(degrees)]).astype(np.int64)
        entries = np.repeat(offsets[founders] - child_offsets[:-1], degrees)
        entries += np.arange(child_offsets[-1])
        new = PatternLevel(refined[h][founders], child_offsets, keys[entries])
        new_levels.append(level.followed_by(new))
    return refined, tuple(new_levels) if extend else levels


def _child_keys(
    graphs: GraphCollection,
    colors: np.ndarray,
    edge_codes: np.ndarray | None,
    n_edge_labels: int,
    n_jobs: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the sorted child keys (n_arcs,) and the signatures (n_nodes,) of all nodes."""
    keys = np.empty(len(graphs.neighbors), dtype=np.int64)
    signatures = np.empty(graphs.n_nodes, dtype=np.uint64)

    def share(first: int, last: int) -> None:
        _compiled.child_keys_of_nodes(
            first, last, graphs.node_offsets, graphs.neighbor_offsets, graphs.neighbors,
            _NO_EDGE_CODES if edge_codes is None else edge_codes,
            0 if edge_codes is None else n_edge_labels, colors, keys, signatures,
        )  # fmt: skip

    run_in_shares(share, len(graphs), n_jobs)
    signatures &= HASH_MASK
    return keys, signatures


def _look_up_level(
    colors: np.ndarray, key_offsets: np.ndarray, keys: np.ndarray, signatures: np.ndarray,
    level: PatternLevel, new_colors: np.ndarray, n_jobs: int,
) -> None:  # fmt: skip
    """Fill ``new_colors`` with the patterns of a level: -1 where it lacks the pattern."""
    if not len(level):
        new_colors[:] = _compiled.UNSEEN
        return
    known = level.signatures()
    slots = _empty_table(len(level))
    _compiled.fill_slots(slots, known)

    def share(first: int, last: int) -> None:
        _compiled.look_up_patterns(
            first, last, colors, key_offsets, keys, signatures, slots, known,
            level.own, level.child_offsets, level.child_keys, new_colors,
        )  # fmt: skip

    run_in_shares(share, len(colors), n_jobs)


def _empty_table(room: int) -> np.ndarray:
    """Return the slots of an open-addressed table, at most half full with ``room`` patterns."""
    size = 1 << max(4, int(2 * room - 1).bit_length())
    return np.full(size, _compiled.UNSEEN, dtype=np.int32)
