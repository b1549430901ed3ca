"""Weisfeiler-Lehman refinement with perfect hashing, and the vocabulary of patterns it gives.

Colours are numbered per depth in order of first appearance; -1 is a colour that is not in the
vocabulary. A node's own colour and its sorted *child keys*, which stand for the colours of its
neighbours and the edges to them, are its pattern one depth further.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from typing import Any

import numpy as np

from treelens.array_checks import check_array, check_labels, check_offsets
from treelens.errors import GraphDataError
from treelens.graphs.collection import GraphCollection, translate_codes
from treelens.parallel import run_in_shares
from treelens.patterns import _compiled

# The unfolded tree of a pattern grows exponentially with the depth: texts are cut at this length,
# and trees beyond this many nodes are an error.
LONGEST_TEXT = 240
MOST_TREE_NODES = 100_000
_MOST_LABELS_SHOWN = 5

# Tests weaken the hash by this mask to force collisions; it never changes a result.
HASH_MASK = np.uint64(0xFFFFFFFFFFFFFFFF)


def unique_names(names: Sequence[str]) -> np.ndarray:
    """Return names of which each stands once: those that repeat, as cut ones may, get numbers."""
    taken, times, found = set(names), dict[str, int](), list[str]()
    for name in names:
        times[name] = times.get(name, 0) + 1
        unique = name
        while times[name] > 1 and unique in taken:
            unique = f"{name} ({times[name]})"
            times[name] += int(unique in taken)
        taken.add(unique)
        found.append(unique)
    return np.array(found, dtype=object)


def offsets_of(sizes: np.ndarray | list[int]) -> np.ndarray:
    """Return where runs of these sizes begin, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def entries_of(starts: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the offsets of runs laid end to end, and the positions that are in them."""
    offsets = offsets_of(sizes)
    return offsets, np.repeat(starts - offsets[:-1], sizes) + np.arange(offsets[-1])


def arc_targets(
    graphs: GraphCollection, neighbor_offsets: np.ndarray, neighbors: np.ndarray
) -> np.ndarray:
    """Return the node that each arc leads to, numbered in the whole collection."""
    n_arcs = np.diff(neighbor_offsets[graphs.node_offsets])  # of each graph
    return neighbors + np.repeat(graphs.node_offsets[:-1], n_arcs)


@dataclass(frozen=True, eq=False)
class PatternLevel:
    """The patterns of one depth: own colour and child keys, both one depth down."""

    # Keys are `neighbour colour * n_edge_codes + edge code`, sorted within a pattern.

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
        """A 64-bit hash of every pattern: own colour, number of children and their keys."""
        return self.hashed(1)

    def hashed(self, n_jobs: int) -> np.ndarray:
        """Return the signatures, computed by so many threads."""
        found = np.empty(len(self), dtype=np.uint64)
        run_in_shares(
            lambda first, last: _compiled.hash_patterns(
                first, last, self.own, self.child_offsets, self.child_keys, found
            ),
            len(self),
            n_jobs,
        )
        return found & HASH_MASK

    def numbered(
        self, others: PatternLevel, add: bool, n_jobs: int = 1
    ) -> tuple[np.ndarray, PatternLevel]:
        """Return the colours of other patterns, and the level with those that are new."""
        # The patterns of this level differ, and have the colours 0, 1, ... A new pattern gets the
        # next colour with `add`, else -1.
        n_known, n = len(self), len(self) + len(others)
        both = PatternLevel(
            np.concatenate([self.own, others.own]),
            np.concatenate([self.child_offsets, others.child_offsets[1:] + self.child_offsets[-1]]),
            np.concatenate([self.child_keys, others.child_keys]),
        )
        signatures = np.concatenate([self.signatures, others.hashed(n_jobs)])
        room = n if add else n_known
        slots = np.full(1 << max(4, int(2 * room - 1).bit_length()), _compiled.UNSEEN, np.int32)
        founders, colors = np.empty(room, np.int32), np.empty(n, np.int32)

        def number(first: int, last: int, n_founders: int, more: bool) -> int:
            return _compiled.number_patterns(
                first,
                last,
                more,
                n_founders,
                both.own,
                both.child_offsets,
                both.child_keys,
                signatures,
                slots,
                founders,
                colors,
            )

        n_founders = number(0, n if add else n_known, 0, True)
        if not add:
            run_in_shares(
                lambda first, last: number(n_known + first, n_known + last, n_founders, False),
                len(others),
                n_jobs,
            )
        return colors[n_known:], both.take(founders[:n_founders]) if add else self

    def check(self, n_below: int, n_edge_codes: int) -> None:
        """Raise ``ValueError`` unless own colours and child keys exist one depth down."""
        check_array(self.own, "own", np.int32, (None,), 0, n_below)
        check_array(self.child_keys, "child_keys", np.int64, (None,), 0, n_below * n_edge_codes)
        check_offsets(self.child_offsets, "child_offsets", len(self), len(self.child_keys))
        if len(PatternLevel.empty().numbered(self, True)[1]) < len(self):
            raise ValueError("the patterns of one depth must differ from each other")

    def take(self, positions: np.ndarray) -> PatternLevel:
        """Return some of the patterns."""
        starts, sizes = self.child_offsets[positions], np.diff(self.child_offsets)[positions]
        offsets, entries = entries_of(starts, sizes)
        return PatternLevel(self.own[positions], offsets, self.child_keys[entries])

    def with_edge_labels(self, old: int, new: int) -> PatternLevel:
        """Return the patterns with keys for ``new`` instead of ``old`` edge labels."""
        if old == 0:  # no edge has been seen, so there are no keys
            return self
        keys = self.child_keys // old * new + self.child_keys % old
        return PatternLevel(self.own, self.child_offsets, keys)


@dataclass(frozen=True)
class PatternTree:
    """A pattern unfolded into its rooted tree."""

    label: Any  # of the root
    # edge labels (or None) and subtrees, one level shallower than this tree, in a fixed order
    children: tuple[tuple[Any, PatternTree], ...] = ()

    def __str__(self) -> str:
        return _composed(self.label, [edge_text(edge) + str(tree) for edge, tree in self.children])


def edge_text(edge: object) -> str:
    """Return the text before a child: nothing, a sign such as ``=``, or a word and a colon."""
    text = "" if edge is None else str(edge)
    return f"{text}:" if text[-1:].isalnum() else text


def _composed(root: object, children: list[str]) -> str:
    """Return ``root(child,child,...)`` with sorted children."""
    return f"{root}({','.join(sorted(children))})" if children else str(root)


@dataclass(frozen=True, eq=False)
class NodeColors:
    """The colour of every node of a collection at every depth; -1 for unseen patterns."""

    colors: np.ndarray  # (depth + 1, n_nodes) int32, numbered per depth
    node_offsets: np.ndarray  # (n_graphs + 1,)

    def select_graphs(self, indices: np.ndarray) -> NodeColors:
        """Return the colours of the nodes of some graphs."""
        starts, sizes = self.node_offsets[:-1][indices], np.diff(self.node_offsets)[indices]
        offsets, nodes = entries_of(starts, sizes)
        return NodeColors(self.colors[:, nodes], offsets)


@dataclass(frozen=True, eq=False)
class PatternVocabulary:
    """All patterns of a training collection, depths 0 to ``depth``.

    A pattern of depth ``h`` is a colour of Weisfeiler-Lehman refinement. The vocabulary stores
    what it is made of (its own colour and the multiset of neighbour colours one depth down), so
    that it can be unfolded into a tree and recognised in new graphs. Pattern ids are unique over
    all depths: ``level_offsets[h] + colour``. Of directed graphs, neighbours that edges lead to and
    those they come from count apart: ``"f(->g,<-main)"``.

    Examples
    --------
    >>> from treelens import as_graph_collection
    >>> graphs = as_graph_collection([([(0, 1), (1, 2)], {0: "C", 1: "C", 2: "O"})])
    >>> vocabulary, colors = PatternVocabulary.fit(graphs, depth=1)
    >>> colors.colors.tolist()
    [[0, 0, 1], [0, 1, 2]]
    >>> [str(vocabulary.tree(pattern)) for pattern in range(vocabulary.n_patterns)]
    ['C', 'O', 'C(C)', 'C(C,O)', 'O(C)']
    """

    node_alphabet: tuple[Any, ...]
    edge_alphabet: tuple[Any, ...] | None
    levels: tuple[PatternLevel, ...]  # depths 1, 2, ...
    degree_labels: bool = False
    directed: bool = False
    level_offsets: np.ndarray = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        sizes = [len(self.node_alphabet), *map(len, self.levels)]
        object.__setattr__(self, "level_offsets", offsets_of(sizes))

    def validate(self) -> None:
        """Raise ``ValueError`` unless labels differ and every pattern is made of known ones."""
        check_labels(self.node_alphabet, "node_alphabet")
        check_labels(self.edge_alphabet or (), "edge_alphabet")
        for n_below, level in zip(np.diff(self.level_offsets), self.levels, strict=False):
            level.check(int(n_below), self.n_edge_codes)

    @property
    def depth(self) -> int:
        return len(self.levels)

    @property
    def n_patterns(self) -> int:
        return int(self.level_offsets[-1])

    @property
    def uses_edge_labels(self) -> bool:
        return self.edge_alphabet is not None

    @property
    def n_edge_codes(self) -> int:
        """Number of different edges: edge labels, times two where graphs are directed."""
        n_labels = 1 if self.edge_alphabet is None else len(self.edge_alphabet)
        return 2 * n_labels if self.directed else n_labels

    # --- fit and transform ------------------------------------------------------------------

    @classmethod
    def empty(cls, depth: int, edge_labels: bool = False) -> PatternVocabulary:
        """Return a vocabulary without patterns; :meth:`extend` fills it block by block."""
        return cls((), () if edge_labels else None, (PatternLevel.empty(),) * depth)

    @classmethod
    def fit(
        cls, graphs: GraphCollection, depth: int, edge_labels: bool = False, n_jobs: int = 1
    ) -> tuple[PatternVocabulary, NodeColors]:
        """Refine a collection; return its vocabulary and the colours of its nodes."""
        return cls.empty(depth, edge_labels).extend(graphs, n_jobs=n_jobs)

    def extend(
        self, graphs: GraphCollection, n_jobs: int = 1
    ) -> tuple[PatternVocabulary, NodeColors]:
        """Return the vocabulary with the patterns of these graphs added, and their colours.

        Within a depth, known colours do not change and new ones follow the order of first
        appearance, so reading a collection in blocks gives the same vocabulary as at once.
        """
        self._check_kind(graphs)
        edge_alphabet = self.edge_alphabet
        if edge_alphabet is not None:
            edge_alphabet = _extended(edge_alphabet, graphs.edge_codes, graphs.edge_alphabet or ())
        wider = replace(
            self,
            edge_alphabet=edge_alphabet,
            node_alphabet=_extended(self.node_alphabet, graphs.node_codes, graphs.node_alphabet),
            degree_labels=graphs.degree_labels or self.degree_labels,
            directed=self.directed if self.n_patterns else graphs.directed,
        )
        old, new = self.n_edge_codes, wider.n_edge_codes
        if self.n_patterns and old != new:
            levels = tuple(level.with_edge_labels(old, new) for level in self.levels)
            wider = replace(wider, levels=levels)
        return wider._refined(graphs, True, n_jobs)

    def transform(self, graphs: GraphCollection, n_jobs: int = 1) -> NodeColors:
        """Return the colours of new graphs; -1 for patterns that are not in the vocabulary.

        A warning says so where none of the labels is known: they may be coded in another way.
        """
        self._check_kind(graphs)
        found = self._refined(graphs, False, n_jobs)[1]
        ours, theirs = self.node_alphabet, graphs.node_alphabet
        unknown = self.n_patterns and graphs.n_nodes and (found.colors[0] < 0).all()
        if unknown and len(theirs) > 1 and set(ours).isdisjoint(theirs):
            known, given = (", ".join(map(repr, x[:_MOST_LABELS_SHOWN])) for x in (ours, theirs))
            warnings.warn(
                f"None of these graphs has a node label of the training graphs ({known}, ...); "
                f"theirs are {given}: no pattern of them is known. Were they labelled, or renamed, "
                "in the same way?",
                stacklevel=2,
            )
        return found

    def _refined(
        self, graphs: GraphCollection, extend: bool, n_jobs: int
    ) -> tuple[PatternVocabulary, NodeColors]:
        """Return the colours of every depth; new patterns are added with ``extend``, else -1."""
        edge_codes = self.edge_codes_of(graphs)
        if self.directed and graphs.directions is not None:
            both = 2 * edge_codes + graphs.directions
            edge_codes = np.where(edge_codes < 0, _compiled.UNSEEN, both)
        refined = np.empty((self.depth + 1, graphs.n_nodes), dtype=np.int32)
        refined[0] = translate_codes(graphs.node_codes, graphs.node_alphabet, self.node_alphabet)
        offsets, levels = graphs.neighbor_offsets, []
        neighbors = arc_targets(graphs, offsets, graphs.neighbors)
        for h, level in enumerate(self.levels):
            keys = refined[h][neighbors].astype(np.int64)
            if self.uses_edge_labels or self.directed:
                unseen = (keys < 0) | (edge_codes < 0)
                keys = np.where(unseen, _compiled.UNSEEN, keys * self.n_edge_codes + edge_codes)
            sort = partial(_compiled.sort_runs, offsets=offsets, keys=keys)
            run_in_shares(sort, graphs.n_nodes, n_jobs)
            nodes = PatternLevel(refined[h], offsets, keys)
            refined[h + 1], wider = level.numbered(nodes, extend, n_jobs)
            levels.append(wider)
        return replace(self, levels=tuple(levels)), NodeColors(refined, graphs.node_offsets)

    def edge_codes_of(self, graphs: GraphCollection) -> np.ndarray:
        """Return the codes of edge labels, -1 for unknown ones; all zero where there are none."""
        if self.edge_alphabet is None or graphs.edge_codes is None:
            return np.zeros(len(graphs.neighbors), dtype=np.int32)
        return translate_codes(graphs.edge_codes, graphs.edge_alphabet or (), self.edge_alphabet)

    def _check_kind(self, graphs: GraphCollection) -> None:
        if self.uses_edge_labels and graphs.edge_codes is None and len(graphs.neighbors):
            raise GraphDataError(
                "edge_labels=True, but these graphs carry no edge labels. Use edge_labels=False or "
                "give every edge a label."
            )
        if self.n_patterns and graphs.n_nodes and graphs.degree_labels != self.degree_labels:
            ours, theirs = ("without", "some") if self.degree_labels else ("with", "none")
            raise GraphDataError(
                f"The patterns were learned from graphs {ours} node labels, and these graphs have "
                f"{theirs}: label both in the same way."
            )
        if self.n_patterns and graphs.n_nodes and graphs.directed != self.directed:
            names = ("undirected", "directed")
            raise GraphDataError(
                f"The patterns were learned from {names[self.directed]} graphs, and these are "
                f"{names[graphs.directed]}: read both with directed={self.directed}."
            )

    # --- reading patterns -------------------------------------------------------------------

    def depth_of(self, pattern: int) -> int:
        """Return the depth of a pattern id."""
        return int(self._depths_of(np.array([pattern]))[0])

    def _depths_of(self, patterns: np.ndarray) -> np.ndarray:
        unknown, n = patterns[(patterns < 0) | (patterns >= self.n_patterns)], self.n_patterns
        if len(unknown):
            raise IndexError(f"Pattern {unknown[0]} does not exist: there are {n} patterns.")
        return np.searchsorted(self.level_offsets, patterns, side="right") - 1

    def tree(self, pattern: int, max_nodes: int = MOST_TREE_NODES) -> PatternTree:
        """Unfold a pattern id into its rooted tree.

        Equal subtrees are one object. More than ``max_nodes`` nodes are a ``GraphDataError``: their
        number grows exponentially with the depth. :meth:`texts` gives the beginning of any pattern.
        """
        depth = self.depth_of(pattern)

        @cache
        def unfolded(level: int, color: int) -> tuple[PatternTree, int]:  # and its number of nodes
            below = self.children(level, color)[1] if level else ()
            found = [(edge, *unfolded(level - 1, child)) for edge, child in below]
            size = 1 + sum(n_nodes for *_, n_nodes in found)
            if size > max_nodes:
                raise GraphDataError(
                    f"Pattern {pattern}, of depth {depth}, unfolds into a tree of more than "
                    f"{max_nodes:,} nodes. texts() gives its beginning, and "
                    "treelens.explain.draw.unfold_within() its upper layers."
                )
            children = [(edge, tree) for edge, tree, _ in found]
            children.sort(key=lambda child: edge_text(child[0]) + str(child[1]))
            return PatternTree(self.root_label(level, color), tuple(children)), size

        return unfolded(depth, pattern - int(self.level_offsets[depth]))[0]

    def truncated(self, depth: int) -> PatternVocabulary:
        """Return the vocabulary without the patterns deeper than ``depth``."""
        return replace(self, levels=self.levels[:depth])

    @cached_property
    def _texts(self) -> dict[int, str]:
        """The text forms of single nodes, and of the patterns asked for so far."""
        return dict(enumerate(map(str, self.node_alphabet)))

    def text(self, depth: int, color: int) -> str:
        """Return the text form of a colour of some depth; those of its parts are kept."""
        pattern = int(self.level_offsets[depth]) + color
        if pattern not in self._texts:
            pairs = self.children(depth, color)[1]
            below = [edge_text(edge) + self.text(depth - 1, child) for edge, child in pairs]
            text = _composed(self.root_label(depth, color), below)
            cut = text[: LONGEST_TEXT - 1] + "…"
            self._texts[pattern] = text if len(text) <= LONGEST_TEXT else cut
        return self._texts[pattern]

    def texts(self, patterns: np.ndarray) -> list[str]:
        """Return the text forms of patterns, such as ``"C(C,O)"``; very long ones are cut."""
        chosen = np.asarray(patterns, dtype=np.int64)
        depths = self._depths_of(chosen)
        colors = chosen - self.level_offsets[depths]
        return [self.text(*place) for place in zip(depths.tolist(), colors.tolist(), strict=True)]

    def feature_names(self, first_depth: int = 0) -> np.ndarray:
        """Return one name per pattern from ``first_depth`` on: ``"1:C(C,O)"`` (depth, text)."""
        patterns = np.arange(self.level_offsets[first_depth], self.n_patterns)
        named = zip(self._depths_of(patterns), self.texts(patterns), strict=True)
        return unique_names([f"{depth}:{text}" for depth, text in named])

    def root_label(self, depth: int, color: int) -> Any:
        """Return the label of the node that carries a colour of some depth."""
        for level in self.levels[:depth][::-1]:
            color = int(level.own[color])
        return self.node_alphabet[color]

    def children(self, depth: int, color: int) -> tuple[int, Iterator[tuple[Any, int]]]:
        """Return own colour and (edge label, neighbour colour) pairs, one depth down."""
        level = self.levels[depth - 1]
        keys = level.child_keys[level.child_offsets[color] : level.child_offsets[color + 1]]
        edges: Sequence[Any] = (None,) if self.edge_alphabet is None else self.edge_alphabet
        if self.directed:  # edges that lead to a child, and those that come from it
            words = ["" if edge is None else f"{edge}-" for edge in edges]
            edges = [arrow for word in words for arrow in (f"-{word}>", f"<-{word}")]
        n = len(edges)
        return int(level.own[color]), ((edges[key % n], key // n) for key in keys.tolist())


def _extended(
    known: tuple[Any, ...], codes: np.ndarray | None, alphabet: tuple[Any, ...]
) -> tuple[Any, ...]:
    """Return the known alphabet with new labels, in the order in which they first appear."""
    # Labels count only where a node has them: a slice keeps the alphabet of its collection.
    present, first = np.unique([] if codes is None else codes, return_index=True)
    labels = (alphabet[int(code)] for code in present[np.argsort(first)])
    return tuple(dict.fromkeys([*known, *labels]))
