"""Contributions of patterns and nodes to the predictions of many graphs at once.

The numbers are those of :func:`treelens.explain.contributions.explain`, for thousands of graphs in
seconds. The largest term of the prediction of a training graph is its own. So graphs with the
patterns of a training graph, in any order, are explained *without that graph*: by the coefficients
that the Gaussian process would have without it, which have a closed form. With ``A`` the covariance
of the targets and ``alpha = inv(A) y``, they are

    alpha_i - alpha_g inv(A)_ig / inv(A)_gg,

zero at ``g`` itself, and the contributions add up to the leave-one-out prediction. A support vector
machine, and a Gaussian process with landmarks, have no such form: they explain all graphs by all
coefficients.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from treelens.explain import _compiled
from treelens.explain.paths import PathSlopes, slopes_of
from treelens.gp.linalg import inverse_in_place
from treelens.graphs.collection import GraphCollection
from treelens.kernels.gram import interleaved, mirrored
from treelens.models.predictions import KernelExpansion
from treelens.patterns.features import Features, RefinedGraphs, graph_keys, select_features
from treelens.patterns.histograms import SparseRows

_BLOCK, _LEAST_ROWS = 2**23, 64  # pairs of graphs, and graphs, in memory at a time

Coefficients = Callable[[np.ndarray], np.ndarray]  # of graphs at some positions: (n_graphs, n)


@dataclass(frozen=True, eq=False)
class GraphEffects:
    """What patterns add to one output of a model, for many graphs."""

    expansion: KernelExpansion
    graphs: GraphCollection
    seen: RefinedGraphs
    rows: SparseRows  # by graph: known patterns, from the first level in use on, and their effects
    base: np.ndarray  # (n_graphs,) the prediction before any known pattern is counted
    decisions: np.ndarray  # (n_graphs,) base and all effects: the prediction less covariates
    copies: list[tuple[int, ...]]  # the basis graphs that each graph was explained without

    @cached_property
    def entries(self) -> np.ndarray:
        """Place in ``rows`` of the pattern at each node, -1 if unseen: (n_levels, n_nodes)."""
        colors = self.seen.colors.colors[self.expansion.first_level :]
        owner = np.repeat(np.arange(len(self.graphs)), self.graphs.sizes)
        return entries_at(self.expansion, colors, owner, self.rows)

    @cached_property
    def counts(self) -> np.ndarray:
        """How many nodes of the graph carry the pattern of each entry of ``rows``."""
        return np.bincount(self.entries[self.entries >= 0], minlength=len(self.rows.indices))

    @cached_property
    def phi(self) -> np.ndarray:
        """What the patterns centred at each node add, shape (n_nodes,).

        A pattern's effect is divided equally among the nodes of the graph that carry it.
        """
        shares = np.append(self.rows.values / self.counts, 0.0)  # the last: unseen patterns
        return shares[self.entries].sum(axis=0)


def entries_at(
    expansion: KernelExpansion, colors: np.ndarray, graph_of_node: np.ndarray, rows: SparseRows
) -> np.ndarray:
    """Place in ``rows`` of the pattern at each node, -1 if unseen; shaped as ``colors``."""
    n_patterns = len(expansion.weights)
    owner = np.repeat(np.arange(len(rows)), np.diff(rows.offsets))
    keys = owner * n_patterns + rows.indices  # ascending
    starts = expansion.forest.level_offsets[expansion.first_level : -1] - expansion.first_pattern
    found = np.full(colors.shape, -1)
    for level, row in enumerate(colors):
        known = np.flatnonzero(row >= 0)
        found[level, known] = np.searchsorted(
            keys, graph_of_node[known] * n_patterns + int(starts[level]) + row[known]
        )
    return found


def inverse_covariance(expansion: KernelExpansion, n_jobs: int = 1) -> np.ndarray | None:
    """``inv(A)`` of the training graphs; None for models without a closed form."""
    factor = expansion.factor(n_jobs)
    return None if factor is None else mirrored(inverse_in_place(factor.copy(), n_jobs))


def training_copies(expansion: KernelExpansion, seen: RefinedGraphs) -> list[tuple[int, ...]]:
    """The basis graphs with the patterns and covariates of each graph; empty where it is new."""
    known: dict[bytes, list[int]] = defaultdict(list)
    for index, key in enumerate(graph_keys(expansion.basis)):
        known[key].append(index)
    new = np.asarray(seen.histograms.unseen.any(axis=1)).tolist()
    keys = zip(new, graph_keys(seen.features), strict=True)
    return [() if unseen else tuple(known.get(key, ())) for unseen, key in keys]


def effects_of_graphs(
    expansion: KernelExpansion,
    graphs: GraphCollection,
    output: int = 0,
    n_jobs: int = 1,
    seen: RefinedGraphs | None = None,
    inverse: np.ndarray | None = None,
) -> GraphEffects:
    """Divide the predictions of many graphs among their patterns.

    ``output`` is the code of the class with more than two classes; ``seen`` the refined graphs,
    if at hand; with ``inverse`` (:func:`inverse_covariance`) training graphs are explained without
    themselves.
    """
    seen = expansion.refine(graphs, n_jobs=n_jobs) if seen is None else seen
    copies: list[tuple[int, ...]] = [()] * len(graphs)
    if inverse is not None:  # replicates are left out together, as in leave-one-out predictions
        copies = training_copies(expansion, seen)
    alpha = expansion.coefficients[output]

    def coefficients(positions: np.ndarray) -> np.ndarray:
        """Those that explain some graphs: without their copies among the training graphs."""
        found = np.tile(alpha, (len(positions), 1))
        for row, position in zip(found, positions.tolist(), strict=True):
            group = list(copies[position])
            if group:
                columns = inverse[group]  # type: ignore[index]  # there are copies
                row -= np.linalg.solve(columns[:, group], alpha[group]) @ columns
                row[group] = 0.0
        return found

    values, ends = _divided(expansion, seen.features, coefficients, n_jobs)
    rows = seen.features.pairs.rows
    base, decisions = (float(expansion.intercepts[output]) + ends).T
    rows = SparseRows(rows.offsets, rows.indices, values)
    return GraphEffects(expansion, graphs, seen, rows, base, decisions, copies)


def effects_of_patterns(
    expansion: KernelExpansion, graphs: Features, n_jobs: int = 1
) -> sparse.csr_array:
    """What every pattern adds to the predictions of some graphs: (n_graphs, n_patterns).

    The contributions of ``explain``: of more than two classes, those to the class with the largest
    decision value.
    """
    coefficients = expansion.coefficients
    output = np.zeros(graphs.pairs.n_graphs, dtype=np.int64)
    if len(coefficients) > 1:
        kernel = expansion.kernel.matrix(graphs, expansion.basis, n_jobs)
        output = (kernel @ coefficients.T + expansion.intercepts).argmax(axis=1)
    values, _ = _divided(expansion, graphs, lambda k: coefficients[output[k]], n_jobs)
    rows = graphs.pairs.rows
    shape = (graphs.pairs.n_graphs, graphs.pairs.n_patterns)
    return sparse.csr_array((values, rows.indices, rows.offsets), shape=shape)


def _divided(
    expansion: KernelExpansion, graphs: Features, coefficients: Coefficients, n_jobs: int
) -> tuple[np.ndarray, np.ndarray]:
    """Effects aligned with the graphs' rows; for each graph the sums at both ends of the path."""
    values, ends = [np.empty(0)], np.zeros((graphs.pairs.n_graphs, 2))
    for positions, part in feature_blocks(graphs, expansion.basis.pairs.n_graphs):
        alpha, slopes = coefficients(positions), slopes_of(expansion, part, n_jobs)
        ends[positions, 0] = np.einsum("ij,ij->i", alpha, slopes.start)
        ends[positions, 1] = np.einsum("ij,ij->i", alpha, slopes.end)
        values.append(divide_slopes(expansion, part, slopes, alpha, n_jobs))
    return np.concatenate(values), ends


def divide_slopes(
    expansion: KernelExpansion,
    graphs: Features,
    slopes: PathSlopes,
    alpha: np.ndarray,
    n_jobs: int = 1,
) -> np.ndarray:
    """What each pattern adds to outputs of coefficients ``alpha`` (n_graphs, n_basis).

    Aligned with the graphs' rows; ``slopes.per_shared`` is overwritten.
    """
    pairs, basis, rows = graphs.pairs, expansion.basis.pairs, graphs.pairs.rows
    per_own = np.einsum("ij,ij->i", alpha, slopes.per_own) * pairs.scale**2
    factors = slopes.per_shared
    factors *= alpha
    factors *= pairs.scale[:, None] * basis.scale
    matched = np.empty(len(rows.indices))
    interleaved(
        lambda k, step: _compiled.pattern_sums_of_rows(
            k, step, rows.offsets, rows.indices, rows.values, basis.lists.offsets,
            basis.lists.indices, basis.lists.values, basis.minimum, factors, matched,
        ),
        n_jobs,
    )  # fmt: skip
    own = rows.values if basis.minimum else rows.values**2
    matched += np.repeat(per_own, np.diff(rows.offsets)) * own
    return expansion.weights[rows.indices] * matched


def feature_blocks(graphs: Features, n_basis: int) -> Iterator[tuple[np.ndarray, Features]]:
    """Positions and features of graphs, as many at a time as memory allows."""
    n, size = graphs.pairs.n_graphs, max(_LEAST_ROWS, _BLOCK // max(n_basis, 1))
    for start in range(0, n, size):
        positions = np.arange(start, min(start + size, n))
        yield positions, graphs if n <= size else select_features(graphs, positions)


def jackknife_errors(
    effects: GraphEffects,
    regions: list[tuple[np.ndarray, np.ndarray]],
    inverse: np.ndarray | None,
    output: int = 0,
    n_jobs: int = 1,
) -> np.ndarray:
    """Standard errors of weighted sums of ``phi`` over the sample of training graphs: (n_regions,).

    A region has nodes and their weights. The jackknife in closed form: without training graph ``g``
    a sum changes by ``r_g v_g``, with ``r_g`` the leave-one-out residual and ``v = inv(A) e``,
    where ``e_i`` is what a unit of the coefficient of basis graph ``i`` adds to the sum. Weights
    and scales of the kernel are taken as given. Zeros without the inverse.
    """
    if inverse is None or not regions:
        return np.zeros(len(regions))
    residuals = effects.expansion.coefficients[output] / np.diagonal(inverse)
    changes = residuals * (_unit_effects(effects, regions, n_jobs) @ inverse)  # (n_regions, n)
    changes -= changes.mean(axis=1, keepdims=True)
    n = len(residuals)
    return np.sqrt((n - 1) / n * (changes**2).sum(axis=1))


def _unit_effects(
    effects: GraphEffects, regions: list[tuple[np.ndarray, np.ndarray]], n_jobs: int
) -> np.ndarray:
    """What a unit of each basis graph's coefficient adds to each region's sum of ``phi``."""
    expansion, pairs = effects.expansion, effects.seen.features.pairs
    lists, offsets = expansion.basis.pairs.lists, pairs.rows.offsets
    n_basis = expansion.basis.pairs.n_graphs
    per_node = np.append(1.0 / effects.counts, 0.0)  # the last is for unseen patterns
    jobs: dict[int, list[tuple[int, slice, np.ndarray]]] = defaultdict(list)
    for k, (nodes, node_weights) in enumerate(regions):
        entries = effects.entries[:, nodes]
        share = np.bincount(
            (entries + 1).ravel(),  # entry -1 to place 0
            weights=(per_node[entries] * node_weights).ravel(),
            minlength=len(pairs.rows.indices) + 1,
        )[1:]
        owner = np.searchsorted(effects.graphs.node_offsets, nodes, side="right") - 1
        for graph in np.unique(owner).tolist():
            row = slice(int(offsets[graph]), int(offsets[graph + 1]))
            jobs[graph].append((k, row, expansion.weights[pairs.rows.indices[row]] * share[row]))
    units = np.zeros((len(regions), n_basis))
    chosen = np.array(sorted(jobs), dtype=np.int64)
    some = select_features(effects.seen.features, chosen)
    for positions, part in feature_blocks(some, n_basis):
        slopes = slopes_of(expansion, part, n_jobs)
        for place, graph in enumerate(chosen[positions].tolist()):
            for k, row, weights in jobs[graph]:
                values = pairs.rows.values[row]
                shared = _compiled.shared_sums(
                    pairs.rows.indices[row], values, weights, lists.offsets, lists.indices,
                    lists.values, True, n_basis,
                )  # fmt: skip
                added = slopes.per_shared[place] * shared
                added += slopes.per_own[place] * float(weights @ values)
                added[list(effects.copies[graph])] = 0.0
                units[k] += added
    return units
