"""Continuous attributes of nodes as patterns: cells of many binnings, at many resolutions.

The attributes of a node are averaged with those of its neighbours, zero to ``n_steps`` times. At
every step several randomised trees divide the space of attributes: each cell is split at the median
of the training nodes in it, along one attribute, so that a cell reads ``"charge <= -0.1 and x >
0.52"``. A cell is a pattern; the cell that it was split from is its parent; how often the nodes of
a graph fall into each cell is counted like any other pattern.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from treelens.array_checks import check_array, check_labels, check_offsets
from treelens.graphs.collection import GraphCollection
from treelens.parallel import run_in_shares
from treelens.patterns import _compiled_cells

N_TREES = 8
N_RESOLUTIONS = 6
MOST_STEPS = 2  # averaging over more makes the nodes of a graph alike
_FEWEST_NODES = 8  # in a cell that is split
_MOST_NODES = 20_000  # that thresholds are found from
_SEED = 0


@dataclass(frozen=True, eq=False)
class AttributeCells:
    """Trees of cells, fitted to the attributes of training nodes.

    Levels are numbered tree by tree, in each step by step, in each from the coarsest resolution
    (two cells) on. A cell of the last resolution but one, or the whole space, has a *split*; its
    children are numbered one after the other in the next resolution, and a cell without a split
    goes on there as one.

    Attributes
    ----------
    names : tuple of str
        Of the attributes, in the order of the columns.
    n_trees, n_steps, n_resolutions : int
        Steps beside the attributes themselves, which are step 0.
    split_offsets : ndarray of int64, shape (n_trees * (n_steps + 1) * n_resolutions + 1,)
        Where the splits that lead to each level begin.
    attribute : ndarray of int32, shape (n_splits,)
        The column that is compared; -1 where the cell is not split.
    threshold : ndarray of float64, shape (n_splits,)
        Larger values go to the second child.
    missing : ndarray of bool, shape (n_splits,)
        Whether the second child takes the nodes without a value, and the first all others.
    first_child : ndarray of int32, shape (n_splits,)
    """

    names: tuple[str, ...]
    n_trees: int
    n_steps: int
    n_resolutions: int
    split_offsets: np.ndarray
    attribute: np.ndarray
    threshold: np.ndarray
    missing: np.ndarray
    first_child: np.ndarray

    def validate(self) -> None:
        """Raise ``ValueError`` unless every split leads to cells of the next resolution."""
        check_labels(self.names, "names")
        n_splits = len(self.attribute)
        check_offsets(self.split_offsets, "split_offsets", self.n_levels, n_splits)
        check_array(self.attribute, "attribute", np.int32, (None,), -1, len(self.names))
        check_array(self.threshold, "threshold", np.float64, (n_splits,))
        check_array(self.missing, "missing", np.bool_, (n_splits,))
        check_array(self.first_child, "first_child", np.int32, (n_splits,))
        for level in range(self.n_levels):
            splits = slice(*self.split_offsets[level : level + 2].tolist())
            sizes = 1 + (self.attribute[splits] >= 0)
            n_above = self.level_sizes[level - 1] if level % self.n_resolutions else 1
            expected = np.cumsum(sizes) - sizes
            if len(sizes) != n_above or (self.first_child[splits] != expected).any():
                raise ValueError("splits must lead to the cells of the next resolution")

    @property
    def n_levels(self) -> int:
        return self.n_trees * (self.n_steps + 1) * self.n_resolutions

    @cached_property
    def level_sizes(self) -> np.ndarray:
        """Number of cells of each level, shape (n_levels,)."""
        total = np.concatenate([[0], np.cumsum(1 + (self.attribute >= 0))])
        return np.diff(total[self.split_offsets])

    @property
    def level_steps(self) -> np.ndarray:
        """Step of each level, shape (n_levels,)."""
        return np.arange(self.n_levels) // self.n_resolutions % (self.n_steps + 1)

    @property
    def level_groups(self) -> np.ndarray:
        """Step and resolution of each level as one number: trees share them; (n_levels,)."""
        return np.arange(self.n_levels) % ((self.n_steps + 1) * self.n_resolutions)

    @cached_property
    def parents(self) -> tuple[np.ndarray, ...]:
        """For each level, the cell of the level before that each cell was split from.

        At the first resolution -1.
        """
        found = []
        for level in range(self.n_levels):
            splits = slice(*self.split_offsets[level : level + 2].tolist())
            sizes = 1 + (self.attribute[splits] >= 0)
            above = np.repeat(np.arange(len(sizes)), sizes)
            found.append(above if level % self.n_resolutions else np.full(len(above), -1))
        return tuple(found)

    # --- fit and transform ------------------------------------------------------------------

    @classmethod
    def fit(
        cls,
        graphs: GraphCollection,
        n_steps: int,
        n_trees: int = N_TREES,
        n_resolutions: int = N_RESOLUTIONS,
    ) -> AttributeCells:
        """Find thresholds from the nodes of training graphs that have attributes."""
        values = averaged(graphs, n_steps)  # (n_steps + 1, n_nodes, n_attributes)
        if values.shape[1] > _MOST_NODES:
            order = np.random.default_rng(_SEED).permutation(values.shape[1])
            values = values[:, np.sort(order[:_MOST_NODES])]
        units = _spread(values[0])
        units[units == 0.0] = 1.0
        splits = [
            level
            for tree in range(n_trees)
            for step in range(n_steps + 1)
            for level in _grow(
                values[step], units, n_resolutions, np.random.default_rng((_SEED, tree, step))
            )
        ]
        sizes = [len(level) for level in splits]
        table = [split for level in splits for split in level]
        children = [_first_children(level) for level in splits]
        names = tuple(graphs.attribute_names)
        return cls(
            names, n_trees, n_steps, n_resolutions,
            np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            np.array([split[0] for split in table], dtype=np.int32),
            np.array([split[1] for split in table], dtype=np.float64),
            np.array([split[2] for split in table], dtype=np.bool_),
            np.concatenate(children).astype(np.int32),
        )  # fmt: skip

    def transform(self, graphs: GraphCollection, n_jobs: int = 1) -> np.ndarray:
        """Return the cell of every node at every level, shape (n_levels, n_nodes)."""
        values = averaged(graphs, self.n_steps)
        cells = np.empty((self.n_levels, graphs.n_nodes), dtype=np.int32)

        def share(first: int, last: int) -> None:
            for start in range(0, self.n_levels, self.n_resolutions):
                _compiled_cells.cells_of_nodes(
                    first, last, values[int(self.level_steps[start])],
                    self.split_offsets[start : start + self.n_resolutions],
                    self.attribute, self.threshold, self.missing, self.first_child,
                    cells[start : start + self.n_resolutions],
                )  # fmt: skip

        run_in_shares(share, graphs.n_nodes, n_jobs)
        return cells

    # --- reading ----------------------------------------------------------------------------

    def bounds(self, level: int, cell: int) -> dict[str, tuple[float, float] | bool]:
        """Return what a cell asks of each attribute.

        An interval ``low < value <= high``, or True where the value must be missing. Nodes without
        a value that is asked for are in the cells of low values, unless they have one of their own.
        """
        found: dict[str, tuple[float, float] | bool] = {}
        for split, second in self._path(level, cell):
            name = self.names[self.attribute[split]]
            threshold = float(self.threshold[split])
            known = found.get(name, (-np.inf, np.inf))
            if self.missing[split]:
                found[name] = True if second else known
            elif isinstance(known, tuple):
                low, high = known
                found[name] = (threshold, high) if second else (low, threshold)
        return found

    def text(self, level: int, cell: int) -> str:
        """Return a cell in words: ``"charge <= -0.1, x > 0.52 (mean over 1 step)"``."""
        parts = []
        for name, bound in self.bounds(level, cell).items():
            if isinstance(bound, bool):
                parts.append(f"{name} missing")
                continue
            low, high = bound
            if np.isfinite(low) and np.isfinite(high):
                parts.append(f"{low:.3g} < {name} <= {high:.3g}")
            elif np.isfinite(low):
                parts.append(f"{name} > {low:.3g}")
            else:
                parts.append(f"{name} <= {high:.3g}" if np.isfinite(high) else f"{name} known")
        step = int(self.level_steps[level])
        where = f" (mean over {step} step{'s' if step > 1 else ''})" if step else ""
        return (", ".join(parts) or "any value") + where

    def _path(self, level: int, cell: int) -> list[tuple[int, bool]]:
        """Splits on the way to a cell, and whether each was left by its second child."""
        path: list[tuple[int, bool]] = []
        for k in range(level, level - level % self.n_resolutions - 1, -1):
            start, stop = self.split_offsets[k : k + 2].tolist()
            above = int(np.searchsorted(self.first_child[start:stop], cell, side="right")) - 1
            if self.attribute[start + above] >= 0:
                path.insert(0, (start + above, cell > self.first_child[start + above]))
            cell = above
        return path


def averaged(graphs: GraphCollection, n_steps: int) -> np.ndarray:
    """Return the attributes after 0, 1, ... steps, shape (n_steps + 1, n_nodes, n_attributes).

    Each step takes the mean of a node's own values and the mean of its neighbours'. Missing values
    are left out of means; a value is missing where the node and all its neighbours lack it.
    """
    values = graphs.node_attributes
    assert values is not None
    owner = np.repeat(np.arange(graphs.n_nodes), np.diff(graphs.neighbor_offsets))
    first = np.repeat(graphs.node_offsets[:-1], graphs.sizes)  # of the graph of each node
    shape = (graphs.n_nodes, graphs.n_nodes)
    ones = np.ones(len(owner))
    adjacency = sparse.csr_array((ones, (owner, graphs.neighbors + first[owner])), shape=shape)
    steps = [np.ascontiguousarray(values, dtype=np.float64)]
    for _ in range(n_steps):
        own = steps[-1]
        known = ~np.isnan(own)
        n_known = adjacency @ known.astype(np.float64)
        total = adjacency @ np.where(known, own, 0.0)
        around = np.divide(total, n_known, out=own.copy(), where=n_known > 0)
        steps.append(np.where(known, 0.5 * (own + around), around))
    return np.array(steps)


Split = tuple[int, float, bool]  # attribute or -1, threshold, whether missing values go apart


def _grow(
    values: np.ndarray, units: np.ndarray, n_resolutions: int, rng: np.random.Generator
) -> list[list[Split]]:
    """Return the splits of one tree, by resolution; ``values`` (n_nodes, n_attributes)."""
    cells, levels = [np.arange(len(values))], []
    for _ in range(n_resolutions):
        splits, children = [], []
        for cell in cells:
            inside = values[cell]
            attribute, threshold, missing = split = _choose_split(inside, units, rng)
            splits.append(split)
            if attribute < 0:
                children.append(cell)
                continue
            column = inside[:, attribute]
            second = np.isnan(column) if missing else column > threshold
            children += [cell[~second], cell[second]]
        levels.append(splits)
        cells = children
    return levels


def _choose_split(inside: np.ndarray, units: np.ndarray, rng: np.random.Generator) -> Split:
    """Split at the median of a random one among the attributes that vary most in a cell."""
    n_attributes = len(units)
    tried = rng.permutation(n_attributes)[: (n_attributes + 1) // 2]
    factors = rng.uniform(0.5, 1.0, len(tried))
    if len(inside) < _FEWEST_NODES:
        return -1, 0.0, False
    score = factors * _spread(inside[:, tried]) / units[tried]
    if not score.max() > 0.0:  # constant here: is any other attribute not?
        tried = np.arange(n_attributes)
        score = _spread(inside) / units
    attribute = int(tried[np.argmax(score)])
    column = inside[:, attribute]
    absent = np.isnan(column)
    if _FEWEST_NODES <= absent.sum() <= len(column) - _FEWEST_NODES:
        return attribute, 0.0, True
    present = column[~absent]
    if not len(present) or present.min() == present.max():
        return -1, 0.0, False
    threshold = float(np.median(present))
    if threshold >= present.max():
        threshold = float(present[present < present.max()].max())
    return attribute, threshold, False


def _spread(values: np.ndarray) -> np.ndarray:
    """Standard deviation of each column, missing values aside."""
    known = ~np.isnan(values)
    n = np.maximum(known.sum(axis=0), 1)
    filled = np.where(known, values, 0.0)
    centred = np.where(known, values - filled.sum(axis=0) / n, 0.0)
    return np.sqrt((centred**2).sum(axis=0) / n)


def _first_children(splits: list[Split]) -> np.ndarray:
    sizes = np.array([1 + (attribute >= 0) for attribute, *_ in splits])
    return np.cumsum(sizes) - sizes
