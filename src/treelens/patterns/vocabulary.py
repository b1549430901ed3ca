"""The names of all patterns: what each colour is made of, and how to find it again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from treelens.graphs.collection import GraphCollection, translate_codes
from treelens.graphs.errors import GraphDataError
from treelens.patterns import _compiled, refinement
from treelens.patterns.refinement import PatternLevel

# Patterns unfold into numbers of nodes that grow exponentially with the depth; a text form stops
# here, and a tree beyond this many nodes is refused.
LONGEST_TEXT = 240
MOST_TREE_NODES = 100_000


@dataclass(frozen=True)
class PatternTree:
    """A pattern unfolded into its rooted tree.

    Attributes
    ----------
    label : hashable
        Label of the root node.
    children : tuple of (edge label or None, PatternTree)
        The neighbours' subtrees, one level shallower than this tree, in a fixed order.
    """

    label: Any
    children: tuple[tuple[Any, PatternTree], ...] = ()

    def __str__(self) -> str:
        parts: list[str] = []
        todo: list[PatternTree | str] = [self]  # no recursion: trees may be deeper than its limit
        while todo:
            part = todo.pop()
            if isinstance(part, str):
                parts.append(part)
                continue
            parts.append(str(part.label))
            if part.children:
                todo.append(")")
                for edge, child in reversed(part.children):
                    todo += [child, "," + _edge_text(edge)]
                todo[-1] = "(" + _edge_text(part.children[0][0])
        return "".join(parts)


def _edge_text(edge: Any) -> str:
    """What stands before a child: nothing, a sign such as ``=``, or a word and a colon."""
    text = "" if edge is None else str(edge)
    return f"{text}:" if text[-1:].isalnum() else text


@dataclass(frozen=True, eq=False)
class NodeColors:
    """The colour of every node of a collection at every depth.

    Attributes
    ----------
    colors : ndarray of int32, shape (depth + 1, n_nodes)
        Numbered per depth; -1 where the vocabulary has never seen the pattern.
    node_offsets : ndarray, shape (n_graphs + 1,)
    """

    colors: np.ndarray
    node_offsets: np.ndarray

    def select_graphs(self, indices: np.ndarray) -> NodeColors:
        """The nodes of some graphs."""
        starts, sizes = self.node_offsets[:-1][indices], np.diff(self.node_offsets)[indices]
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(self.node_offsets.dtype)
        nodes = np.repeat(starts - offsets[:-1], sizes) + np.arange(offsets[-1])
        return NodeColors(self.colors[:, nodes], offsets)


@dataclass(frozen=True, eq=False)
class PatternVocabulary:
    """All patterns of a training collection, depths 0 to ``depth``.

    A pattern of depth ``h`` is a colour of Weisfeiler-Lehman refinement. The vocabulary keeps
    what it is made of (its own colour and the multiset of neighbour colours one depth down), so
    that it can be unfolded into a tree and recognised in new graphs. Pattern ids run through all
    depths: ``level_offsets[h] + colour``.

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
    level_offsets: np.ndarray = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        sizes = [len(self.node_alphabet), *(len(level) for level in self.levels)]
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        object.__setattr__(self, "level_offsets", offsets)

    @property
    def depth(self) -> int:
        return len(self.levels)

    @property
    def n_patterns(self) -> int:
        return int(self.level_offsets[-1])

    @property
    def uses_edge_labels(self) -> bool:
        return self.edge_alphabet is not None

    # --- learning and recognising colours ---------------------------------------------------

    @classmethod
    def empty(cls, depth: int, edge_labels: bool = False) -> PatternVocabulary:
        """A vocabulary that holds nothing yet; :meth:`extend` fills it block by block."""
        level = PatternLevel.empty()
        return cls((), () if edge_labels else None, (level,) * depth)

    @classmethod
    def fit(
        cls, graphs: GraphCollection, depth: int, edge_labels: bool = False, n_jobs: int = 1
    ) -> tuple[PatternVocabulary, NodeColors]:
        """Refine a collection and name every pattern it holds."""
        return cls.empty(depth, edge_labels).extend(graphs, n_jobs=n_jobs)

    def extend(
        self, graphs: GraphCollection, n_jobs: int = 1
    ) -> tuple[PatternVocabulary, NodeColors]:
        """A vocabulary that also holds the patterns of these graphs, and their colours.

        Ids already given never change, and new ones follow the order of first appearance, so
        reading a collection in blocks gives the same ids as reading it at once.
        """
        self._check_kind(graphs)
        colors, node_alphabet = _extended_codes(
            graphs.node_codes, graphs.node_alphabet, self.node_alphabet
        )
        known_levels = self.levels
        edge_codes, edge_alphabet = None, self.edge_alphabet
        if self.edge_alphabet is not None:
            edge_codes, edge_alphabet = _extended_codes(
                graphs.edge_codes, graphs.edge_alphabet or (), self.edge_alphabet
            )
            if edge_alphabet != self.edge_alphabet and self.n_patterns:
                known_levels = self._with_edge_alphabet(edge_alphabet).levels
        refined, levels = refinement.learn(
            graphs, colors, edge_codes, len(edge_alphabet or ()), known_levels, n_jobs
        )
        extended = PatternVocabulary(
            node_alphabet, edge_alphabet, levels, graphs.degree_labels or self.degree_labels
        )
        return extended, NodeColors(refined, graphs.node_offsets)

    def transform(self, graphs: GraphCollection, n_jobs: int = 1) -> NodeColors:
        """Colours of new graphs; patterns never seen in training are -1 and stay so."""
        self._check_kind(graphs)
        colors = _known_codes(graphs.node_codes, graphs.node_alphabet, self.node_alphabet)
        edge_codes = None
        if self.edge_alphabet is not None:
            edge_codes = _known_codes(
                graphs.edge_codes, graphs.edge_alphabet or (), self.edge_alphabet
            )
        refined = refinement.look_up(
            graphs, colors, edge_codes, len(self.edge_alphabet or ()), self.levels, n_jobs
        )
        return NodeColors(refined, graphs.node_offsets)

    def _check_kind(self, graphs: GraphCollection) -> None:
        if self.uses_edge_labels and graphs.edge_codes is None and len(graphs.neighbors):
            raise GraphDataError(
                "edge_labels=True, but these graphs carry no edge labels. Use edge_labels=False or "
                "give every edge a label."
            )
        if self.n_patterns and graphs.n_nodes and graphs.degree_labels != self.degree_labels:
            ours, theirs = ("degrees", "given labels") if self.degree_labels else (
                "given labels", "degrees")  # fmt: skip
            raise GraphDataError(
                f"The patterns were learned from graphs with {ours} as node labels; these graphs "
                f"have {theirs}. Label both the same way."
            )

    def _with_edge_alphabet(self, alphabet: tuple[Any, ...] | None) -> PatternVocabulary:
        """Rewrite the child keys for a longer list of edge labels."""
        old, new = len(self.edge_alphabet or ()), len(alphabet or ())
        levels = tuple(level.with_edge_labels(old, new) for level in self.levels)
        return PatternVocabulary(self.node_alphabet, alphabet, levels, self.degree_labels)

    # --- reading patterns -------------------------------------------------------------------

    def depth_of(self, pattern: int) -> int:
        """Depth of a pattern id."""
        self._check_pattern(pattern)
        return int(np.searchsorted(self.level_offsets, pattern, side="right")) - 1

    def tree(self, pattern: int, max_nodes: int = MOST_TREE_NODES) -> PatternTree:
        """Unfold a pattern id into its rooted tree.

        Equal subtrees are one object. A tree of more than ``max_nodes`` nodes is a
        :class:`~treelens.graphs.errors.GraphDataError`: their number grows exponentially with the
        depth. :meth:`texts` gives the beginning of any pattern, and
        :func:`treelens.explain.decode.unfold_within` its upper layers.
        """
        depth = self.depth_of(pattern)
        color = pattern - int(self.level_offsets[depth])
        needed = self._needed_colors(depth, color)
        n_nodes = self._n_tree_nodes(needed, color)
        if n_nodes > max_nodes:
            shown = f"{n_nodes:,}" if n_nodes < 10**9 else f"about 10^{len(str(n_nodes)) - 1}"
            raise GraphDataError(
                f"Pattern {pattern}, of depth {depth}, unfolds into a tree of {shown} nodes; at "
                f"most {max_nodes:,} are made. texts() gives its beginning, and "
                "treelens.explain.decode.unfold_within() its upper layers."
            )
        return self._unfolded(needed, color)

    def parent(self, pattern: int) -> int | None:
        """The pattern one depth shallower at the same node; None at depth 0."""
        depth = self.depth_of(pattern)
        if depth == 0:
            return None
        color = pattern - int(self.level_offsets[depth])
        return int(self.level_offsets[depth - 1] + self.levels[depth - 1].own[color])

    def truncated(self, depth: int) -> PatternVocabulary:
        """The same vocabulary without the patterns deeper than ``depth``."""
        return PatternVocabulary(
            self.node_alphabet, self.edge_alphabet, self.levels[:depth], self.degree_labels
        )

    def select_patterns(self, keep: np.ndarray) -> PatternVocabulary:
        """The vocabulary without the patterns that a mask leaves out; the others keep their order.

        Parameters
        ----------
        keep : ndarray of bool, shape (n_patterns,)
            With a pattern it must keep what the pattern is made of. A minimum support does: every
            graph that holds a pattern holds its parts.
        """
        masks = np.split(np.asarray(keep, dtype=bool), self.level_offsets[1:-1])
        new_ids = [np.where(mask, np.cumsum(mask) - 1, _compiled.UNSEEN) for mask in masks]
        alphabet = tuple(x for x, kept in zip(self.node_alphabet, masks[0], strict=True) if kept)
        n_edge_labels = max(1, len(self.edge_alphabet or ()))
        levels = tuple(
            level.select(mask, below, n_edge_labels)
            for level, mask, below in zip(self.levels, masks[1:], new_ids, strict=False)
        )
        return PatternVocabulary(alphabet, self.edge_alphabet, levels, self.degree_labels)

    @cached_property
    def _texts(self) -> list[str]:
        """The text form of every pattern, built level by level from those below."""
        previous = [str(label) for label in self.node_alphabet]
        texts = list(previous)
        roots = previous  # text of the root's label, per colour
        for depth in range(1, self.depth + 1):
            level = self.levels[depth - 1]
            roots = [roots[own] for own in level.own.tolist()]
            previous = [
                _cut(_composed(root, self.children(depth, color)[1], previous))
                for color, root in enumerate(roots)
            ]
            texts += previous
        return texts

    def texts(self, patterns: np.ndarray) -> list[str]:
        """The text form of several patterns, such as ``"C(C,O)"``; very long ones are cut."""
        every, chosen = self._texts, np.asarray(patterns)
        for pattern in (chosen.min(initial=0), chosen.max(initial=0)):
            if len(chosen):
                self._check_pattern(int(pattern))
        return [every[pattern] for pattern in chosen.tolist()]

    def feature_names(self, first_depth: int = 0) -> np.ndarray:
        """One name per pattern, from ``first_depth`` on: ``"1:C(C,O)"`` (depth, text form)."""
        patterns = np.arange(self.level_offsets[first_depth], self.n_patterns)
        depths = np.searchsorted(self.level_offsets, patterns, side="right") - 1
        texts = self.texts(patterns)
        return np.array([f"{d}:{t}" for d, t in zip(depths, texts, strict=True)], dtype=object)

    def _needed_colors(self, depth: int, color: int) -> list[set[int]]:
        """The colours of each depth, from 0 on, that the tree of a colour is put together from."""
        needed = [{color}]
        for level in range(depth, 0, -1):
            needed.append({c for above in needed[-1] for _, c in self.children(level, above)[1]})
        return needed[::-1]

    def _n_tree_nodes(self, needed: list[set[int]], color: int) -> int:
        """The size of the tree, which can have more digits than any array's numbers."""
        sizes = dict.fromkeys(needed[0], 1)
        for depth, colors in enumerate(needed[1:], start=1):
            sizes = {c: 1 + sum(sizes[k] for _, k in self.children(depth, c)[1]) for c in colors}
        return sizes[color]

    def _unfolded(self, needed: list[set[int]], color: int) -> PatternTree:
        """The tree, put together from the leaves up, children in the order of their texts."""
        trees = {c: PatternTree(self.node_alphabet[c]) for c in needed[0]}
        texts = {c: str(tree) for c, tree in trees.items()}
        for depth, colors in enumerate(needed[1:], start=1):
            deeper, longer = {}, {}
            for c in colors:
                pairs = list(self.children(depth, c)[1])
                pairs.sort(key=lambda pair: _edge_text(pair[0]) + texts[pair[1]])
                label = self._root_label(depth, c)
                deeper[c] = PatternTree(label, tuple((edge, trees[k]) for edge, k in pairs))
                longer[c] = _composed(str(label), pairs, texts)
            trees, texts = deeper, longer
        return trees[color]

    def _root_label(self, depth: int, color: int) -> Any:
        for level in self.levels[:depth][::-1]:
            color = int(level.own[color])
        return self.node_alphabet[color]

    def children(self, depth: int, color: int) -> tuple[int, Iterator[tuple[Any, int]]]:
        """Own colour and (edge label, neighbour colour) pairs of a colour, one depth down."""
        level = self.levels[depth - 1]
        keys = level.child_keys[level.child_offsets[color] : level.child_offsets[color + 1]]
        if self.edge_alphabet is None:
            return int(level.own[color]), ((None, key) for key in keys.tolist())
        n, alphabet = len(self.edge_alphabet), self.edge_alphabet
        pairs = ((alphabet[key % n], key // n) for key in keys.tolist())
        return int(level.own[color]), pairs

    def _check_pattern(self, pattern: int) -> None:
        if not 0 <= pattern < self.n_patterns:
            raise IndexError(
                f"Pattern {pattern} does not exist: the vocabulary holds {self.n_patterns}."
            )


def _composed(
    root: str, children: Iterable[tuple[Any, int]], below: Sequence[str] | Mapping[int, str]
) -> str:
    """``root(child,child,...)`` with sorted children, from the texts of these."""
    inside = ",".join(sorted(_edge_text(e) + below[c] for e, c in children))
    return f"{root}({inside})" if inside else root


def _cut(text: str) -> str:
    """A text that a line can hold.

    Texts that differ only behind the cut are equal as texts, so their order does not matter.
    """
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"


def _extended_codes(
    codes: np.ndarray | None, alphabet: tuple[Any, ...], known: tuple[Any, ...]
) -> tuple[np.ndarray, tuple[Any, ...]]:
    """Codes in the known alphabet, which grows by labels it lacks in order of appearance."""
    codes = np.empty(0, np.int32) if codes is None else codes
    position = {label: code for code, label in enumerate(known)}
    # Labels count as seen only where a node carries them: a slice keeps its parent's alphabet.
    first = np.full(len(alphabet), -1)
    first[codes[::-1]] = np.arange(len(codes))[::-1]  # of equal codes the earliest is written last
    present = np.flatnonzero(first >= 0)
    for code in present[np.argsort(first[present])].tolist():
        position.setdefault(alphabet[code], len(position))
    table = np.array([position.get(label, -1) for label in alphabet], dtype=np.int32)
    return (table[codes] if len(codes) else codes), tuple(position)


def _known_codes(
    codes: np.ndarray | None, alphabet: tuple[Any, ...], known: tuple[Any, ...]
) -> np.ndarray:
    return translate_codes(np.empty(0, np.int32) if codes is None else codes, alphabet, known)
