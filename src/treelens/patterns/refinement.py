"""Weisfeiler-Lehman refinement of a whole collection at once, with perfect hashing.

Colours are numbered per depth in order of first appearance; -1 is a colour that is not in the
vocabulary. A node's *child keys* are ``neighbour colour * n_edge_labels + edge code``, sorted:
together with the node's own colour they are its pattern one depth further.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from treelens.array_checks import check_array, check_offsets
from treelens.graphs.collection import GraphCollection
from treelens.parallel import run_in_shares
from treelens.patterns import _compiled

# Tests weaken the hash by this mask to force collisions; it never changes a result.
HASH_MASK = np.uint64(0xFFFFFFFFFFFFFFFF)


def offsets_of(sizes: np.ndarray | list[int]) -> np.ndarray:
    """Return where runs of these sizes begin, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


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

    @cached_property
    def signatures(self) -> np.ndarray:
        """A 64-bit hash of every pattern: own colour, number of children, sum of mixed keys.

        A sum needs no sorting, and the mixing keeps its terms from cancelling.
        """
        sums = np.zeros(len(self.child_keys) + 1, dtype=np.uint64)  # they wrap around
        np.cumsum(_mix(self.child_keys), out=sums[1:])
        totals = sums[self.child_offsets[1:]] - sums[self.child_offsets[:-1]]
        own = self.own.astype(np.int64) + 1 + (np.diff(self.child_offsets) << 32)
        return _mix(totals ^ _mix(own)) & HASH_MASK

    def numbered(
        self, others: PatternLevel, add: bool, n_jobs: int = 1
    ) -> tuple[np.ndarray, PatternLevel]:
        """Return the colours of other patterns, and the level with those that are new.

        The patterns of this level differ, and have the colours 0, 1, ... A new pattern gets the
        next colour with ``add``, else -1.
        """
        n_known, n = len(self), len(self) + len(others)
        both = PatternLevel(
            np.concatenate([self.own, others.own]),
            np.concatenate([self.child_offsets, others.child_offsets[1:] + self.child_offsets[-1]]),
            np.concatenate([self.child_keys, others.child_keys]),
        )
        signatures = np.concatenate([self.signatures, others.signatures])
        room = n if add else n_known
        slots = np.full(1 << max(4, int(2 * room - 1).bit_length()), _compiled.UNSEEN, np.int32)
        founders, colors = np.empty(room, np.int32), np.empty(n, np.int32)

        def number(first: int, last: int, n_founders: int, more: bool) -> int:
            return _compiled.number_patterns(
                first, last, more, n_founders, both.own, both.child_offsets, both.child_keys,
                signatures, slots, founders, colors,
            )  # fmt: skip

        n_founders = number(0, n if add else n_known, 0, True)
        if not add:
            run_in_shares(
                lambda first, last: number(n_known + first, n_known + last, n_founders, False),
                len(others), n_jobs,
            )  # fmt: skip
        return colors[n_known:], both.take(founders[:n_founders]) if add else self

    def check(self, n_below: int, n_edge_labels: int) -> None:
        """Raise ``ValueError`` unless own colours and child keys exist one depth down."""
        check_array(self.own, "own", np.int32, (None,), 0, n_below)
        n_keys = n_below * n_edge_labels
        check_array(self.child_keys, "child_keys", np.int64, (None,), 0, n_keys)
        check_offsets(self.child_offsets, "child_offsets", len(self), len(self.child_keys))
        if len(PatternLevel.empty().numbered(self, True)[1]) < len(self):
            raise ValueError("the patterns of one depth must differ from each other")

    def take(self, positions: np.ndarray) -> PatternLevel:
        """Return some of the patterns."""
        sizes = np.diff(self.child_offsets)[positions]
        offsets = offsets_of(sizes)
        entries = np.repeat(self.child_offsets[positions] - offsets[:-1], sizes)
        entries += np.arange(offsets[-1])
        return PatternLevel(self.own[positions], offsets, self.child_keys[entries])

    def with_edge_labels(self, old: int, new: int) -> PatternLevel:
        """Return the patterns with keys for ``new`` instead of ``old`` edge labels."""
        if old == 0:  # no edge has been seen, so there are no keys
            return self
        keys = self.child_keys // old * new + self.child_keys % old
        return PatternLevel(self.own, self.child_offsets, keys)


def _mix(values: np.ndarray) -> np.ndarray:
    """Finaliser of the splitmix64 generator: a bijection of 64-bit words with good avalanche."""
    x = values.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


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
    n_arcs = np.diff(offsets[graphs.node_offsets])  # of each graph
    neighbors = graphs.neighbors + np.repeat(graphs.node_offsets[:-1], n_arcs)
    for h, level in enumerate(levels):
        keys = refined[h][neighbors].astype(np.int64)
        if edge_codes is not None:
            unseen = (keys < 0) | (edge_codes < 0)
            keys = np.where(unseen, _compiled.UNSEEN, keys * n_edge_labels + edge_codes)
        _sort_runs(offsets, keys, n_jobs)
        nodes = PatternLevel(refined[h], offsets, keys)
        refined[h + 1], wider = level.numbered(nodes, extend, n_jobs)
        new_levels.append(wider)
    return refined, tuple(new_levels)


def _sort_runs(offsets: np.ndarray, keys: np.ndarray, n_jobs: int) -> None:
    def share(first: int, last: int) -> None:
        _compiled.sort_runs(first, last, offsets, keys)

    run_in_shares(share, len(offsets) - 1, n_jobs)
