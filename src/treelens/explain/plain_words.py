"""Fragments of graphs that are no molecules: the labels they are searched by, and their names.

Where degrees serve as labels, graphs with hubs have so many different ones that hardly any
neighbourhood occurs twice. Fragments of such graphs are searched among ranges of degrees, and named
"node with 2 edges, to a node with 3 edges and a hub with 17+ edges". The model stays as it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import reduce
from operator import and_
from typing import Any, NamedTuple

import numpy as np

from treelens.explain.fragment_search import ExplainedGraphs, Fragment
from treelens.graphs.collection import GraphCollection
from treelens.graphs.kinds import PLAIN, FragmentWriter, kind_of_facts
from treelens.patterns.forest import PatternForest
from treelens.patterns.vocabulary import edge_text

_MOST_DEGREES = 8  # different ones up to which each is searched by itself
_SINGLE_DEGREES = range(5)  # larger ones fall into ranges: 5-8, 9-16, ...
_LEAST_SHARE = 0.005  # of the nodes in the last range
_WAYS = {"->": "to ", "<-": "from "}  # edges of directed graphs, to nodes that are named by degrees
_MOST_CHOICES = 4  # labels of one neighbour that a name lists


def is_plain(graphs: GraphCollection) -> bool:
    """Whether nothing is known of graphs but nodes, edges and their labels."""
    return kind_of_facts(graphs.graph_data) is PLAIN


def with_degree_ranges(graphs: GraphCollection) -> GraphCollection:
    """Return graphs with ranges of degrees as labels, where many different degrees are labels.

    Examples
    --------
    >>> import warnings
    >>> from treelens import as_graph_collection
    >>> stars = [[(0, k) for k in range(1, n)] for n in range(2, 22)]
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")  # degrees serve as labels
    ...     graphs = as_graph_collection([(edges, None) for edges in stars])
    >>> with_degree_ranges(graphs).node_alphabet
    ('1', '2', '3', '4', '5-8', '9-16', '17+')
    """
    if not graphs.degree_labels or len(graphs.node_alphabet) <= _MOST_DEGREES:
        return graphs
    degrees = np.array(graphs.node_alphabet, dtype=np.int64)[graphs.node_codes]
    doubled = 2 ** np.arange(2, 32) + 1
    enough = [n for n in doubled.tolist() if (degrees >= n).mean() >= _LEAST_SHARE]
    starts = np.array([*_SINGLE_DEGREES, *enough])
    ends = [*(starts[1:] - 1).tolist(), None]
    names = [_range_name(a, b) for a, b in zip(starts.tolist(), ends, strict=True)]
    codes = np.searchsorted(starts, degrees, side="right") - 1
    used, codes = np.unique(codes, return_inverse=True)
    return graphs.relabelled(codes.astype(np.int32), [names[k] for k in used.tolist()])


def _range_name(first: int, last: int | None) -> str:
    return f"{first}+" if last is None else f"{first}-{last}" if last > first else str(first)


class _Neighbor(NamedTuple):
    label: Any
    edge: str  # the label of the edge to it, as patterns write it


def _in_order(node: _Neighbor) -> tuple[int, str, str]:
    """Return what orders neighbours: ranges of degrees by where they begin, labels by name."""
    digits = str(node.label).removesuffix("+").partition("-")[0]
    return int(digits) if digits.isdecimal() else 0, str(node.label), node.edge


class _Star(NamedTuple):
    """A node with its neighbours, of which the last may be one of several."""

    root: Any
    around: list[_Neighbor]
    choices: list[_Neighbor]

    def __str__(self) -> str:
        around = [f"{edge}{label}" for label, edge in self.around]
        if self.choices:
            around.append(f"{{{'|'.join(f'{x.edge}{x.label}' for x in self.choices)}}}")
        return f"{self.root}({','.join(around)})"


class PlainWriter(FragmentWriter):
    """Names of fragments by labels of nodes, or by degrees where these are the labels."""

    def __init__(self, explained: ExplainedGraphs, degrees: bool) -> None:
        super().__init__(explained)
        self.degrees = degrees
        alphabet = explained.forest.vocabularies[0].node_alphabet
        self.hubs = {label for label in alphabet if str(label).endswith("+")} if degrees else set()

    def name(self, fragment: Fragment) -> str:
        star = _star_of(self.explained.forest, fragment)
        if star is None:
            return ""
        root = self._node(star.root) if self.degrees else _label_words(star.root)
        if not fragment.depth:
            return f"any {root}" if isinstance(star.root, str) and not self.degrees else root
        counts = Counter(star.around)
        around = [self._neighbor(node, counts[node]) for node in dict.fromkeys(star.around)]
        if star.choices:
            around.append(self._choice(star.choices))
        if not around:
            return "node without edges" if self.degrees else f"{root} without neighbours"
        if self.degrees:
            neighbors = [*star.around, *star.choices]
            lead = "" if any(node.edge in _WAYS for node in neighbors) else "to "
            return f"{root}, {lead}{_listed(around)}"
        if len(star.around) + bool(star.choices) == 1:
            return f"{root} with one neighbour, {around[0]}"
        either = "either " if star.choices else ""
        return f"{root} with the neighbours {_listed([*around[:-1], either + around[-1]])}"

    def pattern(self, fragment: Fragment) -> str | None:
        """Return the text of patterns that differ in one neighbour; None of others."""
        star = _star_of(self.explained.forest, fragment) if len(fragment.patterns) > 1 else None
        return None if star is None else str(star)

    def _node(self, label: object, n: int = 1) -> str:
        kind = "hub" if label in self.hubs else "node"
        return f"{kind}{'s' if n > 1 else ''} with {_edges(label)}"

    def _neighbor(self, node: _Neighbor, n: int) -> str:
        if self.degrees:
            way = _WAYS.get(node.edge, node.edge)
            return f"{way}{'a' if n == 1 else n} {self._node(node.label, n)}"
        times = "" if n == 1 else f"{n} × "
        return f"{times}{node.edge}{_label_words(node.label)}"

    def _choice(self, choices: Sequence[_Neighbor]) -> str:
        write, ways = _range_words if self.degrees else _label_words, {x.edge for x in choices}
        way = _WAYS.get(min(ways), "") if self.degrees and len(ways) == 1 else ""
        words = [f"{'' if way else x.edge}{write(x.label)}" for x in choices]
        if len(words) > _MOST_CHOICES:
            words = [*words[: _MOST_CHOICES - 1], f"{len(words) - _MOST_CHOICES + 1} other labels"]
        listed = _listed(words, "or")
        return f"{way}a node with {listed} edges" if self.degrees else listed


def _range_words(label: object) -> str:
    return str(label).replace("-", " to ")


def _label_words(label: object) -> str:
    """Return a label; one that is no word is called a label."""
    return label if isinstance(label, str) else f"label {label}"


def _edges(label: object) -> str:
    return "1 edge" if str(label) == "1" else f"{_range_words(label)} edges"


def _listed(words: Sequence[str], last: str = "and") -> str:
    return f" {last} ".join(part for part in (", ".join(words[:-1]), words[-1]) if part)


def _star_of(forest: PatternForest, fragment: Fragment) -> _Star | None:
    """Return a fragment of depth 0 or 1 as a star; None where its patterns differ in more."""
    if fragment.depth > 1:
        return None
    stars = []
    for pattern in fragment.patterns:
        tree, number = forest.place(pattern)
        vocabulary = forest.vocabularies[tree]
        color = number - int(vocabulary.level_offsets[fragment.depth])
        pairs = vocabulary.children(1, color)[1] if fragment.depth else ()
        around = [_Neighbor(vocabulary.node_alphabet[k], edge_text(edge)) for edge, k in pairs]
        stars.append((vocabulary.root_label(fragment.depth, color), Counter(around)))
    root, common = stars[0][0], reduce(and_, (around for _, around in stars))
    rest = [list((around - common).elements()) for _, around in stars]
    if any(label != root for label, _ in stars) or {len(nodes) for nodes in rest} not in ({0}, {1}):
        return None
    choices = {node for nodes in rest for node in nodes}
    return _Star(root, sorted(common.elements(), key=_in_order), sorted(choices, key=_in_order))
