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
Where a pattern with coarser labels says nearly as much, that is taken: which of the two scores a
little higher is a matter of chance, and another sample of the data would turn it round.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from treelens.explain.fragment_scores import SURE, Rivals, are_sure
from treelens.explain.fragment_seen import (
    ExplainedGraphs,
    GraphMeans,
    mean_over_graphs,
    other_carriers,
)

_LEAST = 0.1  # of the highest score: what adds less is not worth a row
_NEARLY = 0.9  # of a score, for a pattern that says the same with coarser labels


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
        return mean * self.effect.mean > 0 and abs(mean) > SURE * error


def search_fragments(
    seen: ExplainedGraphs, n_fragments: int, min_support: int, max_depth: int
) -> list[Fragment]:
    """Take the strongest pattern, take off what it explains, and so on.

    Parameters
    ----------
    seen : ExplainedGraphs
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
    seen: ExplainedGraphs, phi: np.ndarray, patterns: np.ndarray, highest: float
) -> list[Fragment]:
    """The same among patterns of one depth; ``phi`` is what shallower ones have left."""
    coarse = _coarser(seen, patterns)
    rivals, kinds = Rivals.of(seen, patterns), _kinds(seen, patterns, coarse)
    effects = rivals.effects(seen, seen.phi)
    taken: list[Fragment] = []
    open_, score = are_sure(*effects), rivals.scores(seen, phi)
    while True:
        score[~open_ | (np.sign(score) != np.sign(effects[0]))] = 0.0
        best = int(np.abs(score).argmax())
        if abs(score[best]) <= _LEAST * highest:
            return taken
        best = _plainest(patterns, coarse, score, best)
        joined = _alike(kinds, score, *effects, best)
        fragment = _described(seen, phi, tuple(patterns[joined].tolist()), float(score[best]))
        open_[joined if fragment.is_sure else best] = False
        if fragment.is_sure:
            taken.append(fragment)
            highest = max(highest, abs(fragment.score))
            take_off(seen, phi, fragment)
            score = rivals.scores(seen, phi)


def _alike(
    kinds: np.ndarray, score: np.ndarray, effect: np.ndarray, square: np.ndarray, best: int
) -> np.ndarray:
    """The best candidate, then its siblings whose effects cannot be told from its own.

    ``Cl(CH2)`` and ``Cl(CH)`` are chlorine on carbon; so is ``Cl(c)``, but it acts otherwise.
    """
    differ = are_sure(effect - effect[best], square + square[best])
    alike = (kinds == kinds[best]) & (score * score[best] > 0) & ~differ
    alike[best] = False
    return np.concatenate([[best], np.flatnonzero(alike)])


def _plainest(patterns: np.ndarray, coarse: np.ndarray, score: np.ndarray, best: int) -> int:
    """The candidate with the coarsest labels that scores nearly as high as the best."""
    least = _NEARLY * score[best] * np.sign(score[best])
    while True:
        place = int(np.searchsorted(patterns, coarse[best]))
        known = place < len(patterns) and patterns[place] == coarse[best]
        if not known or score[place] * np.sign(score[best]) < least:
            return best
        best = place


def _coarser(seen: ExplainedGraphs, patterns: np.ndarray) -> np.ndarray:
    """What each pattern is to coarser labels; -1 where no tree has them: (n_candidates,)."""
    forest, found = seen.forest, np.full(len(patterns), -1)
    for k, pattern in enumerate(patterns.tolist()):
        level = forest.coarser_level(*forest.levels[seen.level_of(pattern)])
        if level >= 0:
            color = seen.colors.colors[level, seen.carriers(pattern)[0]]
            found[k] = forest.level_offsets[level] + color
    return found


def _kinds(seen: ExplainedGraphs, patterns: np.ndarray, coarse: np.ndarray) -> np.ndarray:
    """The same number for siblings, which are one to coarser labels: (n_candidates,).

    Siblings refine the same pattern. Where no tree has coarser labels, each is its own kind.
    """
    keys = np.column_stack(
        [seen.forest.parents[patterns], np.where(coarse >= 0, coarse, ~patterns)]
    )
    return np.unique(keys, axis=0, return_inverse=True)[1].ravel()


def find_candidates(seen: ExplainedGraphs, min_support: int, depth: int) -> np.ndarray:
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


def _n_graphs(seen: ExplainedGraphs, nodes: np.ndarray) -> int:
    graphs = seen.graph_of_node[nodes]  # ascending, as the nodes are
    return int((graphs[1:] != graphs[:-1]).sum()) + 1 if len(graphs) else 0


def take_off(seen: ExplainedGraphs, phi: np.ndarray, fragment: Fragment) -> None:
    """Subtract from ``phi``, in place, what a fragment explains of the nodes of its occurrences.

    A pattern knows its nodes by the labels that its tree looks at, so that is all that it can
    explain: ``C(C,C,N)`` takes the mean of all such nitrogens off an amine's, and leaves the rest.
    """
    nodes = np.unique(seen.balls(fragment.roots, fragment.depth).indices)
    labels = seen.colors.colors[_label_level(seen, fragment.patterns[0]), nodes]
    _, part = np.unique(labels, return_inverse=True)
    means = np.bincount(part, weights=phi[nodes]) / np.bincount(part)
    phi[nodes] -= means[part]


def _label_level(seen: ExplainedGraphs, pattern: int) -> int:
    """The level of the labels that a pattern's tree looks at."""
    level = seen.level_of(pattern)
    while seen.forest.level_depths[level] > 0:
        level = int(seen.forest.level_before[level])
    return level


def _described(
    seen: ExplainedGraphs, phi: np.ndarray, patterns: tuple[int, ...], score: float
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
