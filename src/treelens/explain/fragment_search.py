"""The search for fragments: patterns that move predictions, each functional group once.

Every node has a number ``phi``, what the patterns centred at it add to the prediction of its graph,
with its part of descriptors. Models differ in which atom of a group they credit, so the *effect* of
a pattern is the sum of ``phi`` over all nodes of an occurrence, those within its depth of the
centre, averaged first within a graph, then over graphs. The *conditional effect* is the effect less
the mean around other nodes that carry the parent, the pattern that this one refines. A pattern's
score is

    the smaller of the two, for one node
    * how consistent it is over graphs (mean over root mean square)
    * sqrt(nodes that it covers in a graph * graphs that have it, up to a cap),

so that a group spread over many atoms counts by its sum.

A group has patterns at each of its atoms, and ever deeper ones. So the search goes from shallow
patterns to deep ones, at each depth from the highest score on, and subtracts what a pattern
explains: from each node of its occurrences the mean of ``phi`` over the nodes of the same label.
Nothing is left for a pattern that repeats another; for one that adds to it, the addition is left.
A pattern with coarser labels is preferred where it scores nearly as high. Of graphs that are no
molecules, single nodes are fragments, too, compared with all other nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from scipy import sparse

from treelens.errors import check_whole
from treelens.graphs.collection import GraphCollection
from treelens.patterns.forest import PatternForest
from treelens.patterns.source import PatternSource, balls_of
from treelens.patterns.vocabulary import NodeColors

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

SlicedT = TypeVar("SlicedT", np.ndarray, range, Sequence[Any])

_LEAST = 0.1  # of the highest score: patterns with less are left out
_NEARLY = 0.9  # of a score, for a pattern with coarser labels
_COMMON = 0.95  # of the graphs: fragments in so many do not distinguish graphs
_LEAST_CAP, _CAP_SHARE = 60, 0.02
_SIGNIFICANT = 2.0  # standard errors
_MOSTLY = 0.5  # of the variance of what nodes add: labels that explain more come before patterns


class GraphMeans(NamedTuple):
    """A number averaged within graphs, then over them."""

    mean: float
    error: float  # standard error over graphs; NaN with fewer than two
    n_graphs: int


class Fragment(NamedTuple):
    """A pattern that moves predictions."""

    patterns: tuple[int, ...]  # the strongest first; others differ in fine labels only
    depth: int
    roots: np.ndarray  # the nodes that carry one of the patterns, ascending
    score: float  # what it was ordered by, with its sign
    effect: GraphMeans
    total: float  # over all occurrences in a graph, each node once
    beyond: GraphMeans  # the conditional effect, without the fragments found before

    @property
    def is_significant(self) -> bool:
        """Whether its effect is beyond two standard errors."""
        return abs(self.effect.mean) > _SIGNIFICANT * self.effect.error

    def signed(self, sign: float, error: float) -> Fragment:
        """The same with a sign, and with an error beside that over graphs."""
        effect = GraphMeans(
            sign * self.effect.mean, float(np.hypot(self.effect.error, error)), self.effect.n_graphs
        )
        beyond = self.beyond._replace(mean=sign * self.beyond.mean)
        return self._replace(effect=effect, total=sign * self.total, beyond=beyond)


def search_fragments(
    explained: ExplainedGraphs, n_fragments: int, min_support: int, labels: bool = False
) -> list[Fragment]:
    """Take the strongest pattern of enough support, subtract what it explains, and so on.

    With ``labels``, what counts is what nodes add beyond the mean node, which is the effect of
    size, and single nodes are fragments, too: first where their labels explain most of what nodes
    add, else by what larger fragments leave. Fragments that differ in the label of one neighbour
    are joined where their effects do not differ.
    """
    check_whole("n_fragments", n_fragments, 0)
    check_whole("min_support", min_support, 1)
    # Fragments in 95 % or more of the graphs are subtracted, but not returned.
    if not explained.forest.depth:
        return _effects_of_labels(explained, min_support)[:n_fragments]
    usual = explained.phi.mean() if labels and len(explained.phi) else 0.0
    phi = explained.phi - usual
    taken: list[Fragment] = []
    depths = [*range(1, explained.forest.depth + 1)]
    if labels:
        first = _share_of_labels(explained) > _MOSTLY
        depths = [0, *depths] if first else [*depths, 0]
    for depth in depths:
        patterns = find_candidates(explained, min_support, depth)
        if len(patterns):
            highest = max((abs(f.score) for f in taken), default=0.0)
            taken += _search_depth(explained, phi, patterns, highest)
    taken = _joined_siblings(explained, taken) if labels else taken
    sizes = sizes_for_ranking(np.array([fragment.score for fragment in taken]))
    return [taken[k] for k in np.argsort(-sizes, kind="stable")[:n_fragments]]


def _share_of_labels(explained: ExplainedGraphs) -> float:
    """Return the share of the variance of ``phi`` that is between labels of nodes."""
    phi, labels = explained.phi, explained.colors.colors[0]
    counts = np.bincount(labels)
    means = np.bincount(labels, weights=phi) / np.maximum(counts, 1)
    total = float(((phi - phi.mean()) ** 2).sum())
    return float(counts @ (means - phi.mean()) ** 2) / total if total else 0.0


def _joined_siblings(explained: ExplainedGraphs, taken: list[Fragment]) -> list[Fragment]:
    """Join fragments that differ in the label of one neighbour, where their effects do not."""
    cores = [_cores_of(explained.forest, fragment) for fragment in taken]
    found, left = [], list(range(len(taken)))
    left.sort(key=lambda k: -abs(taken[k].score))
    while left:
        first = left.pop(0)
        groups = [
            [k for k in left if core in cores[k] and _act_alike(taken[first], taken[k])]
            for core in sorted(cores[first])
        ]
        siblings = max(groups, key=len, default=[])
        left = [k for k in left if k not in siblings]
        found.append(_joined(explained, [taken[k] for k in [first, *siblings]]))
    return found


def _cores_of(forest: PatternForest, fragment: Fragment) -> set[tuple[int, ...]]:
    """Return what is left of a pattern of depth 1 without any one of its neighbours."""
    if fragment.depth != 1 or len(fragment.patterns) > 1:
        return set()
    tree, number = forest.place(fragment.patterns[0])
    level = forest.vocabularies[tree].levels[0]
    color = number - int(forest.vocabularies[tree].level_offsets[1])
    keys = level.child_keys[level.child_offsets[color] : level.child_offsets[color + 1]].tolist()
    return {(tree, int(level.own[color]), *keys[:k], *keys[k + 1 :]) for k in range(len(keys))}


def _act_alike(one: Fragment, other: Fragment) -> bool:
    """Whether the effects of two fragments have one sign and no significant difference."""
    difference = abs(one.effect.mean - other.effect.mean)
    error = float(np.hypot(one.effect.error, other.effect.error))
    return one.score * other.score > 0 and difference <= _SIGNIFICANT * error


def _joined(explained: ExplainedGraphs, parts: list[Fragment]) -> Fragment:
    """Return fragments of one depth as one, with the means of their conditional effects."""
    if len(parts) == 1:
        return parts[0]
    first, patterns = parts[0], [pattern for part in parts for pattern in part.patterns]
    whole = _fragment_of(explained, explained.phi, patterns, first.score)
    shares = np.array([part.beyond.n_graphs for part in parts], dtype=float)
    shares /= shares.sum()
    means, errors = (np.array([getattr(p.beyond, x) for p in parts]) for x in ("mean", "error"))
    error = float(np.sqrt(shares**2 @ errors**2))
    return whole._replace(beyond=GraphMeans(float(shares @ means), error, whole.effect.n_graphs))


def _effects_of_labels(explained: ExplainedGraphs, min_support: int) -> list[Fragment]:
    """One fragment for each label with an effect, where the patterns are single nodes."""
    found = []
    for pattern in find_candidates(explained, min_support, 0).tolist():
        roots = explained.carriers(pattern)
        effect = mean_over_graphs(explained.phi[roots], explained.graph_of_node[roots])
        if abs(effect.mean) > _SIGNIFICANT * effect.error:
            total = float(explained.phi[roots].sum()) / effect.n_graphs
            found.append(Fragment((pattern,), 0, roots, effect.mean, effect, total, effect))
    sizes = sizes_for_ranking(np.array([fragment.score for fragment in found]))
    return [found[k] for k in np.argsort(-sizes, kind="stable")]


def _search_depth(
    explained: ExplainedGraphs, phi: np.ndarray, patterns: np.ndarray, highest: float
) -> list[Fragment]:
    """Fragments among patterns of one depth; from ``phi`` shallower ones are subtracted."""
    forest, candidates = explained.forest, Candidates(explained, patterns)
    coarse = np.full(len(patterns), -1)  # the same patterns with coarser labels, where a tree has
    for k, pattern in enumerate(patterns.tolist()):
        level = forest.coarser_level(*forest.levels[explained.level_of(pattern)])
        if level >= 0:
            color = explained.colors.colors[level, explained.carriers(pattern)[0]]
            coarse[k] = forest.level_offsets[level] + color
    # Patterns of one parent that coarser labels do not distinguish are of one kind.
    keys = [forest.parents[patterns], np.where(coarse >= 0, coarse, ~patterns)]
    kinds = np.unique(np.column_stack(keys), axis=0, return_inverse=True)[1].ravel()
    around = explained.all_balls[candidates.depth] @ explained.phi
    effects = candidates.effects(explained.by_graph(around))
    taken: list[Fragment] = []
    open_, score = _significant(*effects), candidates.scores(explained, phi)
    while True:
        score[~open_ | (np.sign(score) != np.sign(effects[0]))] = 0.0
        best = int(sizes_for_ranking(score).argmax())
        if abs(score[best]) <= _LEAST * highest:
            return taken
        best = _coarsest(patterns, coarse, score, best)
        # Its siblings whose effects do not differ significantly are joined: Cl(CH2) and Cl(CH) are
        # chlorine on carbon; so is Cl(c), but it acts otherwise.
        differ = _significant(effects[0] - effects[0][best], effects[1] + effects[1][best])
        alike = (kinds == kinds[best]) & (score * score[best] > 0) & ~differ
        alike[best] = False
        joined = np.concatenate([[best], np.flatnonzero(alike)])
        fragment = _fragment_of(explained, phi, patterns[joined].tolist(), float(score[best]))
        # Whether it adds to the fragments found before, in the direction of its effect.
        mean, error, _ = fragment.beyond
        adds = mean * fragment.effect.mean > 0 and abs(mean) > _SIGNIFICANT * error
        open_[joined if adds else best] = False
        if adds:
            if not fragment.depth or fragment.effect.n_graphs < _COMMON * len(explained.graphs):
                taken.append(fragment)
                highest = max(highest, abs(fragment.score))
            subtract_effect(explained, phi, fragment)
            score = candidates.scores(explained, phi)


def _coarsest(patterns: np.ndarray, coarse: np.ndarray, score: np.ndarray, best: int) -> int:
    """The candidate with the coarsest labels that scores nearly as high as the best."""
    least = _NEARLY * score[best] * np.sign(score[best])
    while True:
        place = int(np.searchsorted(patterns, coarse[best]))
        known = place < len(patterns) and patterns[place] == coarse[best]
        if not known or score[place] * np.sign(score[best]) < least:
            return best
        best = place


def sizes_for_ranking(values: np.ndarray) -> np.ndarray:
    """Absolute values relative to the largest, rounded: the last digits do not decide ties."""
    sizes = np.abs(values)
    return np.round(sizes / max(sizes.max(initial=0.0), np.finfo(float).tiny), 6)


def find_candidates(explained: ExplainedGraphs, min_support: int, depth: int) -> np.ndarray:
    """Patterns of one depth in enough graphs that fewer nodes carry than carry their parents.

    Of patterns carried by the same nodes, the one with the finest labels is a candidate.
    """
    forest = explained.forest
    known: dict[bytes, int] = {}
    for level, (tree, level_depth) in enumerate(forest.levels):
        if level_depth != depth or tree == len(forest.trees):  # cells are not fragments
            continue
        enough = np.diff(explained.nodes_by_color[level][1]) >= min_support
        for pattern in (forest.level_offsets[level] + np.flatnonzero(enough)).tolist():
            nodes = explained.carriers(pattern)
            parent = int(forest.parents[pattern])
            same = parent >= 0 and len(explained.carriers(parent)) == len(nodes)
            graphs = explained.graph_of_node[nodes]  # ascending, as the nodes are
            support = int((graphs[1:] != graphs[:-1]).sum()) + (len(graphs) > 0)
            if support >= min_support and not (same and depth > 1):
                known[nodes.tobytes()] = pattern  # finer trees come later
    return np.array(sorted(known.values()), dtype=np.int64)


def subtract_effect(explained: ExplainedGraphs, phi: np.ndarray, fragment: Fragment) -> None:
    """Subtract from ``phi``, in place, what a fragment explains of the nodes of its occurrences."""
    # A pattern distinguishes nodes by the labels of its tree, so it explains means of each label.
    nodes = explained.covered(fragment.roots, fragment.depth)
    level = explained.level_of(fragment.patterns[0])
    while explained.forest.level_depths[level] > 0:
        level = int(explained.forest.level_before[level])
    part = np.unique(explained.colors.colors[level, nodes], return_inverse=True)[1]
    phi[nodes] -= (np.bincount(part, weights=phi[nodes]) / np.bincount(part))[part]


def _fragment_of(
    explained: ExplainedGraphs, phi: np.ndarray, patterns: list[int], score: float
) -> Fragment:
    """The fragment of joined patterns; from ``phi`` earlier fragments are subtracted."""
    depth = explained.depth_of(patterns[0])
    roots = np.sort(np.concatenate([explained.carriers(pattern) for pattern in patterns]))
    others = np.unique(np.concatenate([other_carriers(explained, pattern) for pattern in patterns]))
    balls, graphs = explained.balls(roots, depth), explained.graph_of_node[roots]
    others = np.setdiff1d(others, balls.indices)
    left = mean_over_graphs(balls @ phi, graphs)
    usual = mean_over_graphs(explained.balls(others, depth) @ phi, explained.graph_of_node[others])
    beyond = GraphMeans(
        left.mean - (usual.mean if usual.n_graphs else 0.0),
        float(np.hypot(left.error, usual.error if usual.n_graphs > 1 else 0.0)),
        left.n_graphs,
    )
    total = float(explained.phi[np.unique(balls.indices)].sum()) / left.n_graphs
    effect = mean_over_graphs(balls @ explained.phi, graphs)
    return Fragment(tuple(patterns), depth, roots, score, effect, total, beyond)


# --- scores of all candidates at once ---------------------------------------------------------


def _significant(mean: np.ndarray, square: np.ndarray) -> np.ndarray:
    """Whether means differ from 0, by the squares of their standard errors."""
    return np.abs(mean) > _SIGNIFICANT * np.sqrt(square)


def _over_graphs(
    sums: sparse.csr_array, per_node: sparse.csr_array
) -> tuple[np.ndarray, np.ndarray]:
    """Means over the graphs of each pattern, and the squares of their standard errors."""
    inner, n = sums.multiply(per_node), np.maximum(np.diff(per_node.indptr), 1)
    mean = inner.sum(axis=1) / n
    spread = np.maximum(inner.power(2).sum(axis=1) / n - mean**2, 0.0)
    return mean, spread / np.maximum(n - 1, 1)


class Candidates:
    """Patterns of one depth, and other nodes that carry their parents, to compare with."""

    # Matrices have a row per candidate and a column per node or graph. The sums of the others are
    # the parent's less the candidate's own: lists of the nodes themselves would be much longer.

    def __init__(self, explained: ExplainedGraphs, patterns: np.ndarray) -> None:
        self.depth, n_nodes = explained.depth_of(patterns[0]), len(explained.phi)

        def ones(lists: list[np.ndarray]) -> sparse.csr_array:
            offsets = np.cumsum([0, *map(len, lists)])
            flat = np.concatenate(lists)
            return sparse.csr_array((np.ones(len(flat)), flat, offsets), (len(lists), n_nodes))

        carriers = [explained.carriers(v) for v in patterns.tolist()]
        balls = [explained.balls(roots, self.depth) for roots in carriers]
        nodes = [np.unique(ball.indices) for ball in balls]
        above = [parent_of(explained, v) for v in patterns.tolist()]
        elsewhere = {v: explained.carriers(v) for v in sorted(set(above) - {-1})}
        # The last row is for those without a parent: single nodes are compared with all others.
        elsewhere[-1] = np.arange(0 if self.depth else n_nodes)
        self.own, self.parents = ones(carriers), ones(list(elsewhere.values()))
        self.near = ones(
            [  # nodes of the candidate's occurrences that carry its parent
                np.intersect1d(x, elsewhere[v], assume_unique=True)
                for x, v in zip(nodes, above, strict=True)
            ]
        )
        self.place = np.array([list(elsewhere).index(v) for v in above])  # rows of the parents
        in_graphs = explained.by_graph(np.ones(n_nodes))
        # One over the number of nodes that carry it in a graph, and of those elsewhere.
        self.per_own = (self.own @ in_graphs).power(-1.0)
        others = (self.parents @ in_graphs)[self.place] - self.near @ in_graphs
        self.per_other = others.power(-1.0)
        self.support = np.diff(self.per_own.indptr)  # graphs
        # Nodes of an occurrence, and of all occurrences in a graph, on average.
        self.size = np.array([ball.nnz / ball.shape[0] for ball in balls])
        self.covered = np.array([len(x) for x in nodes]) / self.support

    def effects(self, around: sparse.csr_array) -> tuple[np.ndarray, np.ndarray]:
        """Means and squared standard errors of sums over the balls around nodes, by graph."""
        return _over_graphs(self.own @ around, self.per_own)

    def scores(self, explained: ExplainedGraphs, phi: np.ndarray) -> np.ndarray:
        """The score of each candidate, 0 where its effect is not significant."""
        around = explained.by_graph(explained.all_balls[self.depth] @ phi)
        mean, square = self.effects(around)
        rest = (self.parents @ around)[self.place] - self.near @ around
        usual, usual_square = _over_graphs(rest, self.per_other)
        beyond = mean - usual
        certain = _significant(beyond, square + usual_square)
        agreed = np.sign(mean) * (certain & (np.sign(mean) == np.sign(beyond)))
        per_node = np.minimum(np.abs(mean), np.abs(beyond)) / self.size
        # Beyond some support a pattern is better known, but not more important. With many graphs
        # that is a share of them, so that duplicating all data keeps the order.
        most = max(_LEAST_CAP, _CAP_SHARE * len(explained.graphs))
        known = np.minimum(self.support, most)
        # 1 where the effect is the same in all graphs, near 0 where it varies more than it is.
        size = mean**2 + square * self.support
        alike = np.abs(mean) / np.sqrt(np.where(size > 0, size, 1.0))
        return agreed * per_node * alike * np.sqrt(self.covered * known)


# --- graphs and the patterns at their nodes ---------------------------------------------------


@dataclass(frozen=True, eq=False)
class ExplainedGraphs:
    """Graphs, the patterns at their nodes, and what these add to predictions."""

    forest: PatternForest
    graphs: GraphCollection
    colors: NodeColors  # a row per level of the forest
    phi: np.ndarray  # (n_nodes,) what each node adds

    @cached_property
    def graph_of_node(self) -> np.ndarray:
        return np.repeat(np.arange(len(self.graphs)), self.graphs.sizes)

    @cached_property
    def nodes_by_color(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """For each level, the nodes ordered by colour, and where each colour begins."""
        sizes = np.diff(self.forest.level_offsets)
        found = []
        for row, size in zip(self.colors.colors, sizes.tolist(), strict=True):
            order = np.argsort(row, kind="stable")
            found.append((order, np.searchsorted(row[order], np.arange(size + 1))))
        return found

    def level_of(self, pattern: int) -> int:
        return int(self.forest.level_of(pattern))

    def depth_of(self, pattern: int) -> int:
        return int(self.forest.level_depths[self.level_of(pattern)])

    def carriers(self, pattern: int) -> np.ndarray:
        """The nodes that carry a pattern, ascending."""
        level = self.level_of(pattern)
        order, starts = self.nodes_by_color[level]
        color = pattern - int(self.forest.level_offsets[level])
        return order[starts[color] : starts[color + 1]]

    @cached_property
    def all_balls(self) -> tuple[sparse.csr_array, ...]:
        """The nodes within each depth of every node: ones, (n_nodes, n_nodes) for each depth."""
        return tuple(balls_of(self.graphs, self.forest.depth))

    def by_graph(self, values: np.ndarray) -> sparse.csr_array:
        """Values of the nodes in the columns of their graphs: (n_nodes, n_graphs)."""
        n, shape = len(values), (len(values), len(self.graphs))
        return sparse.csr_array((values, self.graph_of_node, np.arange(n + 1)), shape)

    def balls(self, roots: np.ndarray, depth: int) -> sparse.csr_array:
        """The nodes within ``depth`` steps of each root: ones, (n_roots, n_nodes)."""
        return self.all_balls[depth][roots]

    def covered(self, roots: np.ndarray, depth: int) -> np.ndarray:
        """The nodes within ``depth`` steps of any root, ascending."""
        return np.unique(self.balls(roots, depth).indices)


def mean_over_graphs(values: np.ndarray, graphs: np.ndarray) -> GraphMeans:
    """The mean over graphs of the means within them, and its standard error."""
    _, place, counts = np.unique(graphs, return_inverse=True, return_counts=True)
    per_graph = np.bincount(place, weights=values, minlength=len(counts)) / counts
    n = len(per_graph)
    error = float(per_graph.std(ddof=1) / np.sqrt(n)) if n > 1 else float("nan")
    return GraphMeans(float(per_graph.mean()) if n else float("nan"), error, n)


def other_carriers(explained: ExplainedGraphs, pattern: int) -> np.ndarray:
    """Nodes that carry the parent and lie in no occurrence of the pattern."""
    parent = parent_of(explained, pattern)
    if parent < 0:
        own = explained.carriers(pattern)
        n_others = 0 if explained.depth_of(pattern) else len(explained.phi)
        return np.setdiff1d(np.arange(n_others), own, assume_unique=True)
    covered = explained.covered(explained.carriers(pattern), explained.depth_of(pattern))
    return np.setdiff1d(explained.carriers(parent), covered, assume_unique=True)


def parent_of(explained: ExplainedGraphs, pattern: int) -> int:
    """The pattern's nearest ancestor that other nodes carry as well; -1 where there is none."""
    n_own, parent = len(explained.carriers(pattern)), int(explained.forest.parents[pattern])
    while parent >= 0 and len(explained.carriers(parent)) == n_own:
        parent = int(explained.forest.parents[parent])
    return parent


def some_of(values: SlicedT, most: int) -> SlicedT:
    """Every second, third, ... of them, so that there are at most so many."""
    return values[:: max(1, -(-len(values) // most))]


# --- occurrences and texts ----------------------------------------------------------------------


def pattern_texts(forest: PatternSource, patterns: ArrayLike) -> list[str]:
    """The text form of patterns; fine labels mark ring atoms by ``;R``, for ``@`` is chirality."""
    patterns = np.asarray(patterns, dtype=np.int64)
    return [
        text.replace("@", ";R") if str(tree).startswith("fine") else text
        for text, tree in zip(forest.texts(patterns), forest.tree_names(patterns), strict=True)
    ]


class Occurrence(NamedTuple):
    """Where a pattern occurs in a graph."""

    root: int  # the node that carries the pattern; -1: nodes to highlight without one
    nodes: tuple[int, ...]  # within the depth of the root, nearest first
    edges: tuple[tuple[int, int], ...]  # of the pattern's tree, smaller node first
    graph_index: int = 0  # position of the graph in its collection
    pattern: int = -1


def occurrence_at(
    graphs: GraphCollection, graph_index: int, row: int, pattern: int, depth: int
) -> Occurrence:
    """The occurrence of a pattern at row ``row`` of the node arrays of the collection."""
    graph, root = graphs[graph_index], row - int(graphs.node_offsets[graph_index])
    reached, edges = {root: None}, list[tuple[int, int]]()
    for _ in range(depth):
        edges = [(u, v) for u, v in graph.edges if u in reached or v in reached]
        reached |= dict.fromkeys(chain.from_iterable(edges))  # the nearer ones stay in front
    return Occurrence(root, tuple(reached), tuple(edges), graph_index, pattern)
