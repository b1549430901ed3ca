"""How the part of a prediction that follows from numbers divides among columns and nodes.

A view of numbers adds ``f(x) = sum over i of a_i k(x, x_i)`` to a prediction, with ``x`` the row of
a graph. Explanations follow ``f`` on the straight line from a fixed row, the *start*, to ``x``. The
contribution of a column is its slope, integrated on the way (integrated gradients), so those of all
columns add up to ``f(x) - f(start)``.

Some computed columns, most descriptors of molecules among them, are sums over nodes of known
*terms*. The start has the value 0 for them, that of a graph without nodes, as patterns start from a
graph without patterns; a node gets the part of the contribution that its term has in the sum. What
is left of a column that is no such sum starts from the usual value, and all nodes share it alike.
Columns that are not computed from the graphs (covariates, tables of the user's) belong to no node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from treelens.gp.views import columns_of
from treelens.graphs.collection import GraphCollection
from treelens.graphs.kinds import DESCRIPTOR_PREFIX, PLAIN, GraphKind, kind_of_facts
from treelens.models.predictions import NumbersPart

_CANCELS = 1e-4  # of the absolute terms: a sum below it says nothing of their common factor
COLUMNS = ("view", "name", "value", "reference", "contribution", "divided")


@dataclass(frozen=True, eq=False)
class NumbersEffects:
    """What the columns of one table add to one output of a model, for many graphs."""

    part: NumbersPart
    graphs: GraphCollection
    rows: np.ndarray  # (n_graphs, n_numbers)
    by_column: np.ndarray  # (n_graphs, n_columns) contributions
    phi: np.ndarray  # (n_nodes,) those of columns that are computed from the graphs, by node
    ends: np.ndarray  # (n_graphs, 2) sums over the basis at the start, and of the graphs

    def plus(self, other: NumbersEffects) -> NumbersEffects:
        """Return the sum with what the same columns add in another expansion."""
        by_column = self.by_column + other.by_column
        phi = self.phi + other.phi
        return replace(self, by_column=by_column, phi=phi, ends=self.ends + other.ends)

    def table(self, index: int, view: str, sign: float = 1.0) -> pd.DataFrame:
        """Return a row for each column: its value in a graph, the reference and what it adds."""
        given, columns = computed_columns(self.part, self.graphs), self.part.table.columns
        one = self.graphs[index : index + 1]
        values = columns_of(one, [column.name for column in columns])
        terms = kind_of_facts(one.graph_data).node_terms(one, _names(self.part, given))
        starts = self.part.table.decode(self.part.start[None, :])
        rows = [
            (
                view,
                column.name.removeprefix(DESCRIPTOR_PREFIX),
                values[column.name][0],
                0.0 if column.name in terms else starts[column.name][0],
                sign * contribution,
                ("by terms" if column.name in terms else "evenly") if own else "no",
            )
            for column, contribution, own in zip(
                columns, self.by_column[index].tolist(), given.tolist(), strict=True
            )
        ]
        return pd.DataFrame(rows, columns=list(COLUMNS))


def effects_of_numbers(
    part: NumbersPart,
    graphs: GraphCollection,
    rows: np.ndarray,
    basis: np.ndarray,
    coefficients: Callable[[np.ndarray], np.ndarray],
    blocks: Iterator[np.ndarray],
) -> NumbersEffects:
    """Divide what a table adds; ``coefficients`` and ``blocks`` are of positions of graphs."""
    kernel, amplitude, start = part.kernel.kernel, part.kernel.amplitude, part.start
    table_ends = part.table.ends
    by_column = np.empty((len(rows), len(table_ends)))
    phi, ends = np.zeros(graphs.n_nodes), np.empty((len(rows), 2))
    starting = part.kernel.matrix(start[None, :], basis)[0]
    for positions in blocks:
        alpha, some = coefficients(positions), rows[positions]
        ends[positions, 0] = alpha @ starting
        ends[positions, 1] = np.einsum("gi,gi->g", alpha, part.kernel.matrix(some, basis))
        slopes = amplitude * kernel.path(start, some, basis, alpha)  # (n_positions, n_numbers)
        slopes += _missing(slopes, some - start, ends[positions])
        contributions = slopes * (some - start)
        by_column[positions] = np.add.reduceat(contributions, _begins(table_ends), axis=1)
        first, last = graphs.node_offsets[[positions[0], positions[-1] + 1]]
        shares = node_shares(part, graphs[positions], some)
        owner = np.repeat(np.arange(len(positions)), graphs.sizes[positions])
        phi[first:last] = np.einsum("vc,vc->v", shares, slopes[owner])
    return NumbersEffects(part, graphs, rows, by_column, phi, ends)


def _begins(ends: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], ends[:-1]])


def _missing(slopes: np.ndarray, moved: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Return what slopes lack to add up to the change: rounding, or few nodes of quadrature."""
    gap = ends[:, 1] - ends[:, 0] - np.einsum("gc,gc->g", slopes, moved)
    size = np.abs(moved).sum(axis=1)
    return (gap / np.where(size > 0, size, 1.0))[:, None] * np.sign(moved)


def computed_columns(part: NumbersPart, graphs: GraphCollection) -> np.ndarray:
    """Return which columns are computed from the graphs, shape (n_columns,)."""
    known = kind_of_facts(graphs.graph_data) is not PLAIN
    return np.array([known and name.startswith(DESCRIPTOR_PREFIX) for name in part.table.names])


def _names(part: NumbersPart, which: np.ndarray) -> list[str]:
    return [name for name, own in zip(part.table.names, which.tolist(), strict=True) if own]


def node_shares(part: NumbersPart, graphs: GraphCollection, rows: np.ndarray) -> np.ndarray:
    """Return how nodes share the ways of numbers from the start to ``rows``: (n_nodes, n_numbers).

    Times the slopes of the numbers these are contributions. In a column that is computed from the
    graphs those of the nodes of a graph add up to its way; others are 0.
    """
    given, moved = computed_columns(part, graphs), rows - part.start
    shares = np.zeros((graphs.n_nodes, moved.shape[1]))
    if not given.any():
        return shares
    kind: GraphKind = kind_of_facts(graphs.graph_data)
    owner, even = np.repeat(np.arange(len(graphs)), graphs.sizes), kind.even_shares(graphs)
    terms = kind.node_terms(graphs, _names(part, given))
    numbers: dict[Any, int] = dict(zip(part.table.names, part.table.ends.tolist(), strict=True))
    for column in part.table.columns:
        place = numbers[column.name] - 1
        left, own = moved[:, place], terms.get(column.name)
        if column.name not in _names(part, given):
            continue
        if own is not None:
            total, size = (np.bincount(owner, x, len(graphs)) for x in (own, np.abs(own)))
            usable = np.abs(total) > _CANCELS * size
            rises = np.where(usable, left / np.where(usable, total, 1.0), column.slope(0.0))
            shares[:, place] = rises[owner] * own
            left = left - rises * total
        shares[:, place] += left[owner] * even
    return shares
