"""Which patterns to show: those that move predictions, each group once.

Every node has a number ``phi``, what the patterns centred at it add to the prediction of its graph.
Models differ in which atom of a group they credit, so the *effect* of a pattern is about all nodes
of an occurrence, those within its depth of the centre: the sum of ``phi`` over them, averaged first
within a graph, then over graphs. What it says *beyond its parent*, the pattern that it refines, is
the same less what surrounds the parent's carriers elsewhere. A pattern's score is

    the smaller of the two, for one node
    * how alike it acts in all graphs (mean over root mean square)
    * sqrt(nodes that it covers in a graph * graphs that hold it, up to a cap),

so that a group spread over many atoms counts by its sum, as one sums what varies at random.

A group is seen from each of its atoms, and by ever deeper patterns. So the search goes from shallow
patterns to deep ones, at each depth from the highest score on, and whatever a pattern explains is
taken off: from each node of its occurrences the mean of ``phi`` over the nodes of the same label.
What remains of a pattern that says the same again is nothing; of one that says more, it is that.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import sparse

from treelens.graphs.collection import GraphCollection
from treelens.patterns.forest import PatternForest
from treelens.patterns.vocabulary import NodeColors

SUPPORT_CAP = 60  # graphs beyond these make a pattern better known, not more important
_SURE = 2.0  # standard errors that an effect must be away from 0
_LEAST = 0.1  # of the highest score: what adds less is not worth a row


@dataclass(frozen=True, eq=False)
class SeenGraphs:
    """Graphs, the patterns at their nodes, and what these add.

    Attributes
    ----------
    forest : PatternForest
    graphs : GraphCollection
    colors : NodeColors
        A row per level of the forest.
    phi : ndarray, shape (n_nodes,)
        What the patterns centred at each node add to the prediction of its graph.
    """

    forest: PatternForest
    graphs: GraphCollection
    colors: NodeColors
    phi: np.ndarray

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
        return int(np.searchsorted(self.forest.level_offsets, pattern, side="right")) - 1

    def depth_of(self, pattern: int) -> int:
        return int(self.forest.level_depths[self.level_of(pattern)])

    def carriers(self, pattern: int) -> np.ndarray:
        """The nodes that carry a pattern, ascending."""
        level = self.level_of(pattern)
        order, starts = self.nodes_by_color[level]
        color = pattern - int(self.forest.level_offsets[level])
        return order[starts[color] : starts[color + 1]]

    @cached_property
    def _steps(self) -> sparse.csr_array:
        """Which nodes one step reaches, the node itself among them: (n_nodes, n_nodes)."""
        graphs, n = self.graphs, self.graphs.n_nodes
        first = np.repeat(graphs.node_offsets[:-1], graphs.sizes)  # neighbours count from here
        ends = graphs.neighbors + np.repeat(first, np.diff(graphs.neighbor_offsets))
        ones = np.ones(len(ends), dtype=np.int8)
        arcs = sparse.csr_array((ones, ends, graphs.neighbor_offsets), shape=(n, n))
        return (arcs + sparse.eye_array(n, dtype=np.int8, format="csr")).tocsr()

    @cached_property
    def all_balls(self) -> tuple[sparse.csr_array, ...]:
        """The balls of every depth around all nodes."""
        everywhere = np.arange(self.graphs.n_nodes)
        return tuple(self.balls(everywhere, depth) for depth in range(self.forest.depth + 1))

    def balls(self, roots: np.ndarray, depth: int) -> sparse.csr_array:
        """Which nodes lie within ``depth`` steps of each root: ones, (n_roots, n_nodes)."""
        n = self.graphs.n_nodes
        reached = sparse.csr_array(
            (np.ones(len(roots), dtype=np.int8), (np.arange(len(roots)), roots)),
            shape=(len(roots), n),
        )
        for _ in range(depth):
            reached = (reached @ self._steps).tocsr()
            reached.data[:] = 1  # how many ways lead there does not matter, and could overflow
        return reached


class GraphMeans(NamedTuple):
    """A number averaged within graphs, then over them."""

    mean: float
    error: float  # standard error over graphs; NaN with fewer than two
    n_graphs: int


def mean_over_graphs(values: np.ndarray, graphs: np.ndarray) -> GraphMeans:
    """The mean over graphs of the means within them, and its standard error.

    Examples
    --------
    >>> mean_over_graphs(np.array([1.0, 3.0, 4.0]), np.array([0, 0, 5]))
    GraphMeans(mean=3.0, error=1.0, n_graphs=2)
    """
    _, place, counts = np.unique(graphs, return_inverse=True, return_counts=True)
    return _summary(np.bincount(place, weights=values, minlength=len(counts)) / counts)


def _summary(per_graph: np.ndarray) -> GraphMeans:
    n = len(per_graph)
    error = float(per_graph.std(ddof=1) / np.sqrt(n)) if n > 1 else float("nan")
    return GraphMeans(float(per_graph.mean()) if n else float("nan"), error, n)


class Fragment(NamedTuple):
    """A pattern that was taken, and what was left of ``phi`` for it when it was.

    ``effect`` is about all nodes of an occurrence, those within the pattern's depth of its centre;
    ``beyond`` about the same nodes, less the nodes around the parent's other carriers, both of
    what the fragments taken before had left.
    """

    patterns: tuple[int, ...]  # the first is the strongest; others are the same but for fine labels
    depth: int
    roots: np.ndarray  # the nodes that carry one of the patterns, ascending
    score: float  # what it was ordered by, with its sign
    effect: GraphMeans
    total: float  # over all occurrences in a graph, each node once
    beyond: GraphMeans

    @property
    def is_sure(self) -> bool:
        """Whether it surely adds to what is said already, in the direction of its effect."""
        mean, error, _ = self.beyond
        return mean * self.effect.mean > 0 and abs(mean) > _SURE * error


def search_fragments(
    seen: SeenGraphs, n_fragments: int, min_support: int, max_depth: int
) -> list[Fragment]:
    """Take the strongest pattern, take off what it explains, and so on.

    Parameters
    ----------
    seen : SeenGraphs
    n_fragments : int
        At most so many.
    min_support : int
        Patterns in fewer graphs are left out.
    max_depth : int
        So are those that reach further, and those that are a single node.
    """
    phi = seen.phi.copy()
    taken: list[Fragment] = []
    for depth in range(1, max_depth + 1):
        patterns = find_candidates(seen, min_support, depth)
        if len(patterns):
            taken += _search_depth(
                seen, phi, patterns, max((abs(f.score) for f in taken), default=0)
            )
    return sorted(taken, key=lambda fragment: -abs(fragment.score))[:n_fragments]


def _search_depth(
    seen: SeenGraphs, phi: np.ndarray, patterns: np.ndarray, highest: float
) -> list[Fragment]:
    """The same among patterns of one depth; ``phi`` is what shallower ones have left."""
    rivals, kinds = _Rivals.of(seen, patterns), _kinds(seen, patterns)
    effects = rivals.effects(seen, seen.phi)
    taken: list[Fragment] = []
    open_, score = _are_sure(*effects), rivals.scores(seen, phi)
    while True:
        score[~open_ | (np.sign(score) != np.sign(effects[0]))] = 0.0
        best = int(np.abs(score).argmax())
        highest = max(highest, abs(float(score[best])))
        if abs(score[best]) <= _LEAST * highest:
            return taken
        joined = _alike(kinds, score, *effects, best)
        fragment = _described(seen, phi, tuple(patterns[joined].tolist()), float(score[best]))
        open_[joined if fragment.is_sure else best] = False
        if fragment.is_sure:
            taken.append(fragment)
            take_off(seen, phi, fragment)
            score = rivals.scores(seen, phi)


def _are_sure(mean: np.ndarray, square: np.ndarray) -> np.ndarray:
    """Whether means are away from 0 by more than their errors' due."""
    return np.abs(mean) > _SURE * np.sqrt(square)


def _alike(
    kinds: np.ndarray, score: np.ndarray, effect: np.ndarray, square: np.ndarray, best: int
) -> np.ndarray:
    """The best candidate, then its siblings whose effects cannot be told from its own.

    ``Cl(CH2)`` and ``Cl(CH)`` are chlorine on carbon; so is ``Cl(c)``, but it acts otherwise.
    """
    differ = _are_sure(effect - effect[best], square + square[best])
    alike = (kinds == kinds[best]) & (score * score[best] > 0) & ~differ
    alike[best] = False
    return np.concatenate([[best], np.flatnonzero(alike)])


def _kinds(seen: SeenGraphs, patterns: np.ndarray) -> np.ndarray:
    """The same number for siblings, which are one to coarser labels: (n_candidates,).

    Siblings refine the same pattern. Where no tree has coarser labels, each is its own kind.
    """
    forest, keys = seen.forest, []
    for pattern in patterns.tolist():
        tree, depth = forest.levels[seen.level_of(pattern)]
        level = forest.coarser_level(tree, depth)
        coarse = (
            seen.colors.colors[level, seen.carriers(pattern)[0]] if level >= 0 else -1 - pattern
        )
        keys.append((int(forest.parents[pattern]), int(coarse)))
    return np.unique(np.array(keys), axis=0, return_inverse=True)[1].ravel()


def find_candidates(seen: SeenGraphs, min_support: int, depth: int) -> np.ndarray:
    """Patterns of one depth in enough graphs that fewer nodes carry than carry their parents.

    Patterns carried by the very same nodes are one candidate: the one with the finest labels,
    which says most. Where a shallower pattern has the same carriers, it says the same already.
    """
    forest = seen.forest
    known: dict[bytes, int] = {}
    for level, (_, level_depth) in enumerate(forest.levels):
        if level_depth != depth:
            continue
        enough = np.diff(seen.nodes_by_color[level][1]) >= min_support  # a quick first look
        for pattern in (forest.level_offsets[level] + np.flatnonzero(enough)).tolist():
            nodes = seen.carriers(pattern)
            parent = int(forest.parents[pattern])
            same = parent >= 0 and len(seen.carriers(parent)) == len(nodes)
            if _n_graphs(seen, nodes) >= min_support and not (same and depth > 1):
                known[nodes.tobytes()] = pattern  # finer trees come later
    return np.array(sorted(known.values()), dtype=np.int64)


def _n_graphs(seen: SeenGraphs, nodes: np.ndarray) -> int:
    graphs = seen.graph_of_node[nodes]  # ascending, as the nodes are
    return int((graphs[1:] != graphs[:-1]).sum()) + 1 if len(graphs) else 0


def take_off(seen: SeenGraphs, phi: np.ndarray, fragment: Fragment) -> None:
    """Subtract from ``phi``, in place, what a fragment explains of the nodes of its occurrences.

    A pattern knows its nodes by the labels that its tree looks at, so that is all that it can
    explain: ``C(C,C,N)`` takes the mean of all such nitrogens off an amine's, and leaves the rest.
    """
    nodes = np.unique(seen.balls(fragment.roots, fragment.depth).indices)
    labels = seen.colors.colors[_label_level(seen, fragment.patterns[0]), nodes]
    _, part = np.unique(labels, return_inverse=True)
    means = np.bincount(part, weights=phi[nodes]) / np.bincount(part)
    phi[nodes] -= means[part]


def _label_level(seen: SeenGraphs, pattern: int) -> int:
    """The level of the labels that a pattern's tree looks at."""
    level = seen.level_of(pattern)
    while seen.forest.level_depths[level] > 0:
        level = int(seen.forest.level_before[level])
    return level


def _described(
    seen: SeenGraphs, phi: np.ndarray, patterns: tuple[int, ...], score: float
) -> Fragment:
    """What patterns that count as one add; ``phi`` is what earlier ones have left."""
    depth = seen.depth_of(patterns[0])
    roots = np.sort(np.concatenate([seen.carriers(pattern) for pattern in patterns]))
    others = np.unique(np.concatenate([other_carriers(seen, pattern) for pattern in patterns]))
    held, graphs = seen.balls(roots, depth), seen.graph_of_node[roots]
    others = np.setdiff1d(others, held.indices)
    left = mean_over_graphs(held @ phi, graphs)
    usual = mean_over_graphs(seen.balls(others, depth) @ phi, seen.graph_of_node[others])
    beyond = GraphMeans(
        left.mean - (usual.mean if usual.n_graphs else 0.0),
        float(np.hypot(left.error, usual.error if usual.n_graphs > 1 else 0.0)),
        left.n_graphs,
    )
    total = float(seen.phi[np.unique(held.indices)].sum()) / left.n_graphs
    effect = mean_over_graphs(held @ seen.phi, graphs)
    return Fragment(patterns, depth, roots, score, effect, total, beyond)


def other_carriers(seen: SeenGraphs, pattern: int) -> np.ndarray:
    """Nodes that carry the parent and lie in no occurrence of the pattern."""
    parent = _parent_of(seen, pattern)
    if parent < 0:
        return np.empty(0, dtype=np.int64)
    held = np.unique(seen.balls(seen.carriers(pattern), seen.depth_of(pattern)).indices)
    return np.setdiff1d(seen.carriers(parent), held, assume_unique=True)


def _parent_of(seen: SeenGraphs, pattern: int) -> int:
    """The pattern's nearest ancestor that other nodes carry as well; -1 where there is none."""
    n_own, parent = len(seen.carriers(pattern)), int(seen.forest.parents[pattern])
    while parent >= 0 and len(seen.carriers(parent)) == n_own:
        parent = int(seen.forest.parents[parent])
    return parent


# --- all candidates at once -------------------------------------------------------------------


class _Grouped(NamedTuple):
    """Lists of nodes, one per pattern, grouped by graph."""

    flat: np.ndarray  # (n_entries,) the nodes, pattern by pattern
    starts: np.ndarray  # (n_groups,) first entry of each group
    sizes: np.ndarray  # (n_groups,)
    owner: np.ndarray  # (n_groups,) position of the pattern
    graph: np.ndarray  # (n_groups,)
    support: np.ndarray  # (n_patterns,)

    @classmethod
    def of(cls, seen: SeenGraphs, nodes: list[np.ndarray]) -> _Grouped:
        flat = np.concatenate([*nodes, np.empty(0, dtype=np.int64)])
        owner = np.repeat(np.arange(len(nodes)), [len(x) for x in nodes])
        graphs, new = seen.graph_of_node[flat], np.ones(len(flat), dtype=bool)
        new[1:] = (owner[1:] != owner[:-1]) | (graphs[1:] != graphs[:-1])
        starts = np.flatnonzero(new)
        sizes = np.diff(np.append(starts, len(flat)))
        support = np.bincount(owner[starts], minlength=len(nodes))
        return cls(flat, starts, sizes, owner[starts], graphs[starts], support)

    def taken(self, around: dict[int, np.ndarray], depths: np.ndarray) -> np.ndarray:
        """Values at the nodes, of the array that belongs to each pattern's depth."""
        values = np.empty(len(self.flat))
        per_entry = np.repeat(depths[self.owner], self.sizes)
        for depth, array in around.items():
            here = per_entry == depth
            values[here] = array[self.flat[here]]
        return values

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Sums within groups of what is aligned with ``flat``."""
        return np.add.reduceat(values, self.starts)

    def means_and_squares(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        inner = self.sums(values) / self.sizes
        return _over_graphs(inner, self.owner, self.support)


def _over_graphs(
    inner: np.ndarray, owner: np.ndarray, support: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Means over the graphs of each pattern, and the squares of their standard errors."""
    n, counts = len(support), np.maximum(support, 1)
    mean = np.bincount(owner, weights=inner, minlength=n) / counts
    off = np.bincount(owner, weights=(inner - mean[owner]) ** 2, minlength=n)
    return mean, off / (counts * np.maximum(counts - 1, 1))


class _Rivals(NamedTuple):
    """All candidates with their parents, of which the nodes that do not carry them are compared.

    The others' sums are the parent's less the candidate's own, graph by graph: lists of the nodes
    themselves would be much longer, since many candidates share a common parent.
    """

    own: _Grouped
    depths: np.ndarray  # (n_candidates,)
    size: np.ndarray  # (n_candidates,) nodes of an occurrence, on average
    covered: np.ndarray  # (n_candidates,) nodes of all occurrences in a graph, on average
    near: _Grouped  # nodes of the candidate's occurrences that carry its parent
    parents: _Grouped
    parent_depths: np.ndarray  # (n_parents,) how far to look around a parent's carriers
    owner: np.ndarray  # (n_pairs,) a candidate, and a graph where others carry its parent
    parent_group: np.ndarray  # (n_pairs,)
    near_group: np.ndarray  # (n_pairs,) -1 where the graph does not hold the candidate
    others: np.ndarray  # (n_pairs,) how many nodes elsewhere carry the parent
    n_others: np.ndarray  # (n_candidates,) in how many graphs

    @classmethod
    def of(cls, seen: SeenGraphs, patterns: np.ndarray) -> _Rivals:
        chosen = patterns.tolist()
        own = _Grouped.of(seen, [seen.carriers(v) for v in chosen])
        depths = np.array([seen.depth_of(v) for v in chosen])
        held = [seen.balls(seen.carriers(v), d) for v, d in zip(chosen, depths, strict=True)]
        nodes = [np.unique(ball.indices) for ball in held]
        size = np.array([ball.nnz / ball.shape[0] for ball in held])
        covered = np.array([len(x) for x in nodes]) / own.support
        # Around a parent's carriers one looks as far as around the candidate's own.
        above = np.array([(_parent_of(seen, v), d) for v, d in zip(chosen, depths, strict=True)])
        owner = np.flatnonzero(above[:, 0] >= 0)
        unique, place = np.unique(above[owner], axis=0, return_inverse=True)
        parents = _Grouped.of(seen, [seen.carriers(v) for v in unique[:, 0].tolist()])
        carriers = {v: seen.carriers(v) for v in unique[:, 0].tolist()}
        near = _Grouped.of(seen, [
            np.intersect1d(nodes[k], carriers.get(int(v), nodes[k]), assume_unique=True)
            for k, v in enumerate(above[:, 0].tolist())
        ])  # fmt: skip
        pairs = _pairs(near, parents, owner, place.ravel(), len(seen.graphs))
        n_others = np.bincount(pairs[0], minlength=len(patterns))
        return cls(own, depths, size, covered, near, parents, unique[:, 1], *pairs, n_others)

    def effects(self, seen: SeenGraphs, phi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What the nodes of an occurrence have together: mean, square of its standard error."""
        around = self._around(seen, phi)
        return self.own.means_and_squares(self.own.taken(around, self.depths))

    def scores(self, seen: SeenGraphs, phi: np.ndarray) -> np.ndarray:
        """How strongly each candidate moves the graphs that hold it; 0 if not surely."""
        around = self._around(seen, phi)
        mean, square = self.own.means_and_squares(self.own.taken(around, self.depths))
        near = self.near.sums(self.near.taken(around, self.depths))
        rest = self.parents.sums(self.parents.taken(around, self.parent_depths))[self.parent_group]
        rest -= np.where(self.near_group >= 0, near[self.near_group], 0.0)
        usual, usual_square = _over_graphs(rest / self.others, self.owner, self.n_others)
        beyond = mean - usual
        sure = _are_sure(beyond, square + usual_square)
        agreed = np.sign(mean) * (sure & (np.sign(mean) == np.sign(beyond)))
        per_node = np.minimum(np.abs(mean), np.abs(beyond)) / self.size
        known = np.minimum(self.own.support, SUPPORT_CAP)
        # 1 where the effect is the same in all graphs, near 0 where it varies more than it is.
        size = mean**2 + square * self.own.support
        alike = np.abs(mean) / np.sqrt(np.where(size > 0, size, 1.0))
        return agreed * per_node * alike * np.sqrt(self.covered * known)

    def _around(self, seen: SeenGraphs, phi: np.ndarray) -> dict[int, np.ndarray]:
        """Sums of ``phi`` within each depth of every node."""
        return {depth: seen.all_balls[depth] @ phi for depth in np.unique(self.depths).tolist()}


def _pairs(
    own: _Grouped, parents: _Grouped, owner: np.ndarray, place: np.ndarray, n_graphs: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Candidates and the graphs where others carry their parents: see :class:`_Rivals`.

    ``owner`` are the candidates that have a parent, ``place`` where that stands in ``parents``.
    """
    begin = np.searchsorted(parents.owner, np.arange(len(parents.support) + 1))
    lengths = np.diff(begin)[place]
    ends = np.cumsum(lengths)
    pair_owner = np.repeat(owner, lengths)
    group = np.arange(lengths.sum()) + np.repeat(begin[place] - (ends - lengths), lengths)
    keys = own.owner * n_graphs + own.graph  # ascending
    wanted = pair_owner * n_graphs + parents.graph[group]
    found = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    own_group = np.where(keys[found] == wanted, found, -1)
    others = parents.sizes[group] - np.where(own_group >= 0, own.sizes[own_group], 0)
    kept = others > 0
    return pair_owner[kept], group[kept], own_group[kept], others[kept]
