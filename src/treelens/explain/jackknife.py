"""Standard errors of sums of contributions over the sample of training graphs: the jackknife."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from treelens.explain.effects import (
    GraphEffects,
    PartEffects,
    feature_blocks,
    position_blocks,
    shared_patterns,
    slopes_of,
    unseen_sums,
)
from treelens.explain.numbers import NumbersEffects, node_shares


def jackknife_errors(
    effects: GraphEffects,
    regions: list[tuple[np.ndarray, np.ndarray]],
    inverses: tuple[np.ndarray, ...] | None,
    output: int = 0,
    n_jobs: int = 1,
) -> np.ndarray:
    """Standard errors of weighted sums of ``phi`` over the sample of training graphs: (n_regions,).

    A region has nodes and their weights. The jackknife in closed form: without training graph ``g``
    a sum changes by ``r_g v_g``, with ``r_g`` the leave-one-out residual and ``v = inv(A) e``,
    where ``e_i`` is what a unit of the coefficient of observation ``i`` adds to the sum; of several
    observations of a graph these are vectors. Weights and scales of the kernel are taken as given.
    Zeros without the inverse.
    """
    if inverses is None or not regions:
        return np.zeros(len(regions))
    changes: Any = 0.0
    counted = np.zeros(len(effects.expansion.basis_indices), dtype=bool)
    for term, inverse in zip(effects.terms, inverses, strict=True):
        turned = _unit_effects(term, regions, n_jobs) @ inverse  # (n_regions, n_coefficients)
        alpha = term.expansion.coefficients[output]
        cells = term.expansion.cells
        if cells is None:
            residuals = alpha / np.diagonal(inverse)
            changes = changes + residuals * turned
            counted[:] = True
            continue
        residuals = np.empty(len(alpha))
        for group in np.split(np.arange(len(alpha)), np.flatnonzero(np.diff(cells.graphs)) + 1):
            residuals[group] = np.linalg.solve(inverse[np.ix_(group, group)], alpha[group])
        changes = changes + cells.sums(residuals * turned)
        counted[cells.graphs] = True
    changes = changes[:, counted]
    changes -= changes.mean(axis=1, keepdims=True)
    n = changes.shape[1]
    return np.sqrt((n - 1) / n * (changes**2).sum(axis=1))


def _unit_effects(
    effects: GraphEffects, regions: list[tuple[np.ndarray, np.ndarray]], n_jobs: int
) -> np.ndarray:
    """What a unit of each coefficient of an expansion adds to each region's sum of ``phi``."""
    owners = [
        np.unique(np.searchsorted(effects.graphs.node_offsets, nodes, side="right") - 1)
        for nodes, _ in regions
    ]
    chosen = np.unique(np.concatenate(owners))
    term = effects.expansion
    shape = (len(regions), len(term.basis_indices))
    total = np.zeros((len(regions), 1))
    for found in effects.parts:
        shares = found.node_shares.tocsc()
        jobs: dict[int, list[tuple[int, np.ndarray, float]]] = defaultdict(list)  # by graph
        unseen = unseen_sums(found.part, found.seen.features)
        for k, (nodes, node_weights) in enumerate(regions):
            share = shares[:, nodes] @ node_weights  # (n_entries,)
            lost = np.zeros(len(found.unseen_shares))  # what unseen patterns have of the region
            lost[nodes] = node_weights * found.unseen_shares[nodes]
            for graph in owners[k].tolist():
                here = slice(*found.rows.offsets[graph : graph + 2])
                inside = slice(*found.node_offsets[graph : graph + 2])
                jobs[graph].append((k, share[here], unseen[graph] * lost[inside].sum()))
        units = np.zeros(shape)
        _add_units(effects, found, chosen, jobs, units, n_jobs)
        total = total + term.of_cells(found.part.view, units)
    for table in effects.numbers:
        units = np.zeros(shape)
        _add_units_of_numbers(effects, table, regions, units)
        total = total + term.of_cells(table.part.view, units)
    return total


def _add_units_of_numbers(
    effects: GraphEffects,
    found: NumbersEffects,
    regions: list[tuple[np.ndarray, np.ndarray]],
    units: np.ndarray,
) -> None:
    """Add the part of one table of numbers."""
    part, offsets = found.part, effects.graphs.node_offsets
    basis = effects.expansion.basis.numbers(part.view)
    n_numbers = len(part.start)
    owner = [np.searchsorted(offsets, nodes, side="right") - 1 for nodes, _ in regions]
    chosen = np.unique(np.concatenate(owner))
    for positions in position_blocks(len(chosen), len(basis)):
        graphs = chosen[positions]
        some, rows = effects.graphs[graphs], found.rows[graphs]
        shares = node_shares(part, some, rows)
        shift = some.node_offsets[:-1] - offsets[graphs]
        for k, (nodes, weights) in enumerate(regions):
            place = np.searchsorted(graphs, owner[k])
            own = np.minimum(place, len(graphs) - 1)
            here = graphs[own] == owner[k]
            moved = weights[here, None] * shares[nodes[here] + shift[own[here]]]
            mine, which = np.unique(own[here], return_inverse=True)
            directions = np.zeros((len(mine), n_numbers))
            np.add.at(directions, which, moved)
            added = part.kernel.kernel.path_along(part.start, rows[mine], basis, directions)
            added *= part.kernel.amplitude
            for row, graph in zip(added, graphs[mine].tolist(), strict=True):
                row[list(effects.copies[graph])] = 0.0
            units[k] += added.sum(axis=0)


def _add_units(
    effects: GraphEffects,
    found: PartEffects,
    chosen: np.ndarray,
    jobs: dict[int, list[tuple[int, np.ndarray, float]]],
    units: np.ndarray,
    n_jobs: int,
) -> None:
    """Add the part of one view; ``jobs`` are regions and shares of patterns, graph by graph."""
    features, basis = found.seen.features, found.basis
    rows, weights = features.pairs.rows, found.part.weights
    basis_graphs = effects.expansion.basis.counted(found.part.view)
    for positions, some in feature_blocks(features.select(chosen), basis.n_graphs):
        slopes = slopes_of(found.part, basis_graphs, some, n_jobs)
        for place, graph in enumerate(chosen[positions].tolist()):
            here = slice(rows.offsets[graph], rows.offsets[graph + 1])
            patterns, values = rows.indices[here], rows.values[here]
            own, shares, unseen = zip(*jobs[graph], strict=True)
            weighed = np.array(shares) * weights[patterns]  # (n_regions, n_patterns)
            added = weighed @ shared_patterns(basis, patterns, values) * slopes.per_shared[place]
            added += np.outer(weighed @ values + np.array(unseen), slopes.per_own[place])
            added[:, list(effects.copies[graph])] = 0.0
            units[list(own)] += added
