"""How strongly patterns move the graphs that hold them, for all candidates at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from treelens.explain.fragment_seen import ExplainedGraphs, parent_of

_LEAST_CAP, _CAP_SHARE = 60, 0.02
SURE = 2.0  # standard errors that an effect must be away from 0


def support_cap(n_graphs: int) -> float:
    """Graphs beyond these make a pattern better known, not more important.

    Of many graphs it is a share of them, so that all of the data twice has the order of the data.

    Examples
    --------
    >>> support_cap(188), support_cap(6506)
    (60, 130.12)
    """
    return max(_LEAST_CAP, _CAP_SHARE * n_graphs)


def are_sure(mean: np.ndarray, square: np.ndarray) -> np.ndarray:
    """Whether means are away from 0 by more than their errors' due."""
    return np.abs(mean) > SURE * np.sqrt(square)


class Grouped(NamedTuple):
    """Lists of nodes, one per pattern, grouped by graph."""

    flat: np.ndarray  # (n_entries,) the nodes, pattern by pattern
    starts: np.ndarray  # (n_groups,) first entry of each group
    sizes: np.ndarray  # (n_groups,)
    owner: np.ndarray  # (n_groups,) position of the pattern
    graph: np.ndarray  # (n_groups,)
    support: np.ndarray  # (n_patterns,)

    @classmethod
    def of(cls, seen: ExplainedGraphs, nodes: list[np.ndarray]) -> Grouped:
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


class Rivals(NamedTuple):
    """All candidates with their parents, of which the nodes that do not carry them are compared.

    The others' sums are the parent's less the candidate's own, graph by graph: lists of the nodes
    themselves would be much longer, since many candidates share a common parent.
    """

    own: Grouped
    depths: np.ndarray  # (n_candidates,)
    size: np.ndarray  # (n_candidates,) nodes of an occurrence, on average
    covered: np.ndarray  # (n_candidates,) nodes of all occurrences in a graph, on average
    near: Grouped  # nodes of the candidate's occurrences that carry its parent
    parents: Grouped
    parent_depths: np.ndarray  # (n_parents,) how far to look around a parent's carriers
    owner: np.ndarray  # (n_pairs,) a candidate, and a graph where others carry its parent
    parent_group: np.ndarray  # (n_pairs,)
    near_group: np.ndarray  # (n_pairs,) -1 where the graph does not hold the candidate
    others: np.ndarray  # (n_pairs,) how many nodes elsewhere carry the parent
    n_others: np.ndarray  # (n_candidates,) in how many graphs

    @classmethod
    def of(cls, seen: ExplainedGraphs, patterns: np.ndarray) -> Rivals:
        chosen = patterns.tolist()
        own = Grouped.of(seen, [seen.carriers(v) for v in chosen])
        depths = np.array([seen.depth_of(v) for v in chosen])
        held = [seen.balls(seen.carriers(v), d) for v, d in zip(chosen, depths, strict=True)]
        nodes = [np.unique(ball.indices) for ball in held]
        size = np.array([ball.nnz / ball.shape[0] for ball in held])
        covered = np.array([len(x) for x in nodes]) / own.support
        # Around a parent's carriers one looks as far as around the candidate's own.
        above = np.array([(parent_of(seen, v), d) for v, d in zip(chosen, depths, strict=True)])
        owner = np.flatnonzero(above[:, 0] >= 0)
        unique, place = np.unique(above[owner], axis=0, return_inverse=True)
        parents = Grouped.of(seen, [seen.carriers(v) for v in unique[:, 0].tolist()])
        carriers = {v: seen.carriers(v) for v in unique[:, 0].tolist()}
        near = Grouped.of(seen, [
            np.intersect1d(nodes[k], carriers.get(int(v), nodes[k]), assume_unique=True)
            for k, v in enumerate(above[:, 0].tolist())
        ])  # fmt: skip
        pairs = _pairs(near, parents, owner, place.ravel(), len(seen.graphs))
        n_others = np.bincount(pairs[0], minlength=len(patterns))
        return cls(own, depths, size, covered, near, parents, unique[:, 1], *pairs, n_others)

    def effects(self, seen: ExplainedGraphs, phi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What the nodes of an occurrence have together: mean, square of its standard error."""
        around = self._around(seen, phi)
        return self.own.means_and_squares(self.own.taken(around, self.depths))

    def scores(self, seen: ExplainedGraphs, phi: np.ndarray) -> np.ndarray:
        """How strongly each candidate moves the graphs that hold it; 0 if not surely."""
        around = self._around(seen, phi)
        mean, square = self.own.means_and_squares(self.own.taken(around, self.depths))
        near = self.near.sums(self.near.taken(around, self.depths))
        rest = self.parents.sums(self.parents.taken(around, self.parent_depths))[self.parent_group]
        rest -= np.where(self.near_group >= 0, near[self.near_group], 0.0)
        usual, usual_square = _over_graphs(rest / self.others, self.owner, self.n_others)
        beyond = mean - usual
        sure = are_sure(beyond, square + usual_square)
        agreed = np.sign(mean) * (sure & (np.sign(mean) == np.sign(beyond)))
        per_node = np.minimum(np.abs(mean), np.abs(beyond)) / self.size
        known = np.minimum(self.own.support, support_cap(len(seen.graphs)))
        # 1 where the effect is the same in all graphs, near 0 where it varies more than it is.
        size = mean**2 + square * self.own.support
        alike = np.abs(mean) / np.sqrt(np.where(size > 0, size, 1.0))
        return agreed * per_node * alike * np.sqrt(self.covered * known)

    def _around(self, seen: ExplainedGraphs, phi: np.ndarray) -> dict[int, np.ndarray]:
        """Sums of ``phi`` within each depth of every node."""
        return {depth: seen.all_balls[depth] @ phi for depth in np.unique(self.depths).tolist()}


def _pairs(
    own: Grouped, parents: Grouped, owner: np.ndarray, place: np.ndarray, n_graphs: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Candidates and the graphs where others carry their parents: see :class:`Rivals`.

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
