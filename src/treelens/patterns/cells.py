"""Continuous attributes of nodes as patterns: cells of many binnings, at many resolutions.

A node has its own attributes, their means over its neighbours, the means of these means, and so on
up to ``n_steps``. With the values up to each number of steps, several randomised trees divide the
space of values: each cell is split along one of them, at a quantile of the training nodes in it, so
that a cell reads ``"charge <= -0.1, x > 0.52 (mean over 1 step)"``. A cell is a pattern; the cell
that it was split from is its parent; how often the nodes of a graph fall into each cell is counted
like any other pattern.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import sparse

from treelens.array_checks import check_array, check_labels, check_offsets
from treelens.graphs.collection import GraphCollection, check_attributes
from treelens.parallel import run_in_shares
from treelens.patterns import _compiled
from treelens.patterns.vocabulary import arc_targets, offsets_of

ATTRIBUTES = "attributes"  # the name of cells where patterns of labels have that of a tree
N_TREES = 8
N_RESOLUTIONS = 6
N_EDGE_RESOLUTIONS = 2
MOST_STEPS = 2  # means over more make the nodes of a graph alike
_QUANTILES = 0.1, 0.9  # between which a cell is split: trees shall differ
_FEWEST_NODES = 8  # in a cell that is split
_MOST_NODES = 6_000  # that thresholds are found from
_SEED = 0


@dataclass(frozen=True, eq=False)
class AttributeCells:
    """Trees of cells, fitted to the attributes of training nodes.

    Levels are numbered step by step, in each tree by tree, in each from the coarsest resolution
    (two cells) on. A cell of the last resolution but one, or the whole space, has a *split*; its
    children are numbered one after the other in the next resolution, and a cell without a split
    goes on there as one.
    """

    names: tuple[str, ...]  # of the attributes of nodes: the first columns
    edge_names: tuple[str, ...]  # of edges, of which a node has the mean: the other columns
    n_trees: int
    n_steps: int  # beside the attributes themselves, which are step 0
    n_resolutions: int
    split_offsets: np.ndarray  # (n_levels + 1,) int64, where the splits to each level begin
    attribute: np.ndarray  # (n_splits,) int32, the column that is compared; -1 where not split
    threshold: np.ndarray  # (n_splits,) float64; larger values go to the second child
    # (n_splits,) bool, whether the second child takes the nodes without a value, the first others
    missing: np.ndarray
    first_child: np.ndarray  # (n_splits,) int32

    def validate(self) -> None:
        """Raise ``ValueError`` unless every split leads to cells of the next resolution."""
        check_labels(self.columns, "names")
        n_splits = len(self.attribute)
        check_offsets(self.split_offsets, "split_offsets", self.n_levels, n_splits)
        check_array(self.attribute, "attribute", np.int32, (None,), -1, len(self.columns))
        check_array(self.threshold, "threshold", np.float64, (n_splits,))
        check_array(self.missing, "missing", np.bool_, (n_splits,))
        check_array(self.first_child, "first_child", np.int32, (n_splits,))
        for level, sizes in enumerate(self._split_sizes):
            first_child = self.first_child[slice(*self.split_offsets[level : level + 2])]
            n_above = self.level_sizes[level - 1] if level % self.n_resolutions else 1
            if len(sizes) != n_above or (first_child != np.cumsum(sizes) - sizes).any():
                raise ValueError("splits must lead to the cells of the next resolution")

    @property
    def columns(self) -> tuple[str, ...]:
        """What each column says of a node, in words."""
        own = (*self.names, *(f"{name} over edges" for name in self.edge_names))
        steps = ["", " (mean over 1 step)"]
        steps += [f" (mean over {k} steps)" for k in range(2, self.n_steps + 1)]
        return tuple(name + step for step in steps[: self.n_steps + 1] for name in own)

    @property
    def n_levels(self) -> int:
        return self.n_trees * (self.n_steps + 1) * self.n_resolutions

    @property
    def _split_sizes(self) -> list[np.ndarray]:
        """For each level, how many cells each cell of the level before is split into."""
        return np.split(1 + (self.attribute >= 0), self.split_offsets[1:-1])

    @cached_property
    def level_sizes(self) -> np.ndarray:
        """Number of cells of each level, shape (n_levels,)."""
        return np.diff(offsets_of(1 + (self.attribute >= 0))[self.split_offsets])

    @property
    def level_steps(self) -> np.ndarray:
        """Step of each level, shape (n_levels,)."""
        return np.arange(self.n_levels) // (self.n_trees * self.n_resolutions)

    @property
    def level_groups(self) -> np.ndarray:
        """Step and resolution of each level as one number: trees share them; (n_levels,)."""
        resolution = np.arange(self.n_levels) % self.n_resolutions
        return self.level_steps * self.n_resolutions + resolution

    @property
    def level_names(self) -> tuple[str, ...]:
        """The levels in words; trees share them."""
        resolutions = np.arange(self.n_levels) % self.n_resolutions + 1
        return tuple(
            f"{ATTRIBUTES}, {step} step{'' if step == 1 else 's'}, resolution {resolution}"
            for step, resolution in zip(self.level_steps, resolutions, strict=True)
        )

    @cached_property
    def parents(self) -> tuple[np.ndarray, ...]:
        """For each level, the cell of the level before that each cell was split from, or -1."""
        above = [np.repeat(np.arange(len(sizes)), sizes) for sizes in self._split_sizes]
        coarsest = range(0, self.n_levels, self.n_resolutions)
        return tuple(np.full_like(x, -1) if k in coarsest else x for k, x in enumerate(above))

    # --- fit and transform ------------------------------------------------------------------

    @classmethod
    def of_edges(cls, graphs: GraphCollection) -> AttributeCells:
        """Divide the attributes of edges themselves into two and then up to four cells."""
        values = graphs.edge_attributes
        assert values is not None
        rng = np.random.default_rng(_SEED)
        splits = _grow(values, _spread(values.T), N_EDGE_RESOLUTIONS, rng, (0.5, 0.5))
        return cls._of_splits(splits, graphs.edge_attribute_names, (), (1, 0, N_EDGE_RESOLUTIONS))

    @classmethod
    def fit(cls, graphs: GraphCollection, depth: int) -> AttributeCells:
        """Find thresholds from the attributes of the nodes and edges of training graphs."""
        n_steps = min(depth, MOST_STEPS)
        values = means_over_steps(graphs, n_steps)  # (n_nodes, (n_steps + 1) * n_attributes)
        if len(values) > _MOST_NODES:
            order = np.random.default_rng(_SEED).permutation(len(values))
            values = values[np.sort(order[:_MOST_NODES])]
        n_attributes = values.shape[1] // (n_steps + 1)
        units = np.tile(_spread(values[:, :n_attributes].T), n_steps + 1)
        splits = []
        for step in range(n_steps + 1):
            known = slice(0, (step + 1) * n_attributes)
            for tree in range(N_TREES):
                rng = np.random.default_rng((_SEED, tree, step))
                splits += _grow(values[:, known], units[known], N_RESOLUTIONS, rng)
        names, edge_names = graphs.attribute_names, graphs.edge_attribute_names
        return cls._of_splits(splits, names, edge_names, (N_TREES, n_steps, N_RESOLUTIONS))

    @classmethod
    def _of_splits(
        cls,
        splits: list[list[Split]],
        names: tuple[str, ...],
        edge_names: tuple[str, ...],
        shape: tuple[int, int, int],
    ) -> AttributeCells:
        """Lay splits out in arrays; ``shape`` is the number of trees, steps and resolutions."""
        offsets = offsets_of([len(level) for level in splits])
        attribute, threshold, missing = zip(*(x for level in splits for x in level), strict=True)
        columns = np.array(attribute, dtype=np.int32)
        children = offsets_of(1 + (columns >= 0))[:-1]  # within all levels
        return cls(
            names,
            edge_names,
            *shape,
            offsets,
            columns,
            np.array(threshold, dtype=np.float64),
            np.array(missing, dtype=np.bool_),
            (children - np.repeat(children[offsets[:-1]], np.diff(offsets))).astype(np.int32),
        )

    def truncated(self, depth: int) -> AttributeCells:
        """Return the cells that a fit up to a smaller depth would find."""
        n_steps = min(depth, self.n_steps)
        n_levels = self.n_trees * (n_steps + 1) * self.n_resolutions
        offsets = self.split_offsets[: n_levels + 1]
        n = int(offsets[-1])
        return replace(
            self,
            n_steps=n_steps,
            split_offsets=offsets,
            attribute=self.attribute[:n],
            threshold=self.threshold[:n],
            missing=self.missing[:n],
            first_child=self.first_child[:n],
        )

    def transform(self, graphs: GraphCollection, n_jobs: int = 1) -> np.ndarray:
        """Return the cell of every node at every level, shape (n_levels, n_nodes)."""
        graphs = check_attributes(graphs, self.names, self.edge_names)
        return self.cells_of(means_over_steps(graphs, self.n_steps), n_jobs)

    def cells_of(self, values: np.ndarray, n_jobs: int = 1) -> np.ndarray:
        """The cell of every row of a table at every level, shape (n_levels, n_rows)."""
        cells = np.empty((self.n_levels, len(values)), dtype=np.int32)
        values = np.ascontiguousarray(values)

        def share(first: int, last: int) -> None:
            for start in range(0, self.n_levels, self.n_resolutions):
                _compiled.cells_of_nodes(
                    first,
                    last,
                    values,
                    self.split_offsets[start : start + self.n_resolutions],
                    self.attribute,
                    self.threshold,
                    self.missing,
                    self.first_child,
                    cells[start : start + self.n_resolutions],
                )

        run_in_shares(share, len(values), n_jobs)
        return cells

    # --- reading ----------------------------------------------------------------------------

    def bounds(self, level: int, cell: int) -> dict[str, tuple[float, float] | bool]:
        """Return what a cell asks of each attribute."""
        # An interval `low < value <= high`, or True where the value must be missing. Nodes without
        # a value are in the cells of low values, unless they have one of their own.
        found: dict[str, tuple[float, float] | bool] = {}
        for split, second in self._path(level, cell):
            name = self.columns[self.attribute[split]]
            threshold = float(self.threshold[split])
            known = found.get(name, (-np.inf, np.inf))
            if self.missing[split]:
                found[name] = True if second else known
            elif isinstance(known, tuple):
                low, high = known
                found[name] = (threshold, high) if second else (low, threshold)
        return found

    def asked(self, level: int, cell: int) -> list[tuple[str, int]]:
        """Return the attributes that a cell asks for, each with the steps it is a mean over."""
        columns = sorted({int(self.attribute[split]) for split, _ in self._path(level, cell)})
        own = (*self.names, *self.edge_names)
        return [(own[column % len(own)], column // len(own)) for column in columns]

    def text(self, level: int, cell: int) -> str:
        """Return a cell in words: ``"charge <= -0.1, x > 0.52 (mean over 1 step)"``."""
        parts = []
        for name, bound in self.bounds(level, cell).items():
            name, mean, steps = name.partition(" (mean")
            if isinstance(bound, bool):
                condition = f"{name} missing"
            elif np.isfinite(bound).all():
                condition = f"{bound[0]:.3g} < {name} <= {bound[1]:.3g}"
            elif np.isfinite(bound[0]):
                condition = f"{name} > {bound[0]:.3g}"
            elif np.isfinite(bound[1]):
                condition = f"{name} <= {bound[1]:.3g}"
            else:
                condition = f"{name} known"
            parts.append(condition + mean + steps)
        return ", ".join(parts) or "any value"

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


def means_over_steps(graphs: GraphCollection, n_steps: int) -> np.ndarray:
    """Return the attributes of nodes, their means over neighbours, the means of these, and so on.

    Of each, those of nodes come first, then the means of those of edges over the edges of a node.
    Missing values are left out of means; where all are missing, or a node has no neighbours, it
    keeps the value of the step before. Shape (n_nodes, (n_steps + 1) * n_attributes).
    """
    n_nodes, offsets = graphs.n_nodes, graphs.neighbor_offsets
    ones, targets = np.ones(len(graphs.neighbors)), arc_targets(graphs, offsets, graphs.neighbors)
    adjacency = sparse.csr_array((ones, targets, offsets), shape=(n_nodes, n_nodes))
    columns = [] if graphs.node_attributes is None else [graphs.node_attributes]
    if graphs.edge_attributes is not None:
        arcs = np.arange(len(ones))
        incident = sparse.csr_array((ones, arcs, offsets), shape=(n_nodes, len(ones)))
        none = np.full((n_nodes, len(graphs.edge_attribute_names)), np.nan)
        columns.append(_known_mean(incident, graphs.edge_attributes, none))
    steps = [np.hstack(columns)]
    for _ in range(n_steps):
        steps.append(_known_mean(adjacency, steps[-1], steps[-1]))
    return np.hstack(steps)


def _known_mean(members: sparse.csr_array, values: np.ndarray, default: np.ndarray) -> np.ndarray:
    """Mean of the values that are not missing over the members of each row, or the default."""
    known = ~np.isnan(values)
    n_known = members @ known.astype(np.float64)
    total = members @ np.where(known, values, 0.0)
    return np.divide(total, n_known, out=default.copy(), where=n_known > 0)


Split = tuple[int, float, bool]  # attribute or -1, threshold, whether missing values go apart


def _grow(
    values: np.ndarray,
    units: np.ndarray,
    n_resolutions: int,
    rng: np.random.Generator,
    quantiles: tuple[float, float] = _QUANTILES,
) -> list[list[Split]]:
    """Return the splits of one tree, by resolution; ``values`` (n_nodes, n_columns)."""
    units = np.where(units == 0.0, 1.0, units)
    columns = np.ascontiguousarray(values.T)
    cells, levels = [np.arange(len(values))], []
    for _ in range(n_resolutions):
        splits, children = [], []
        for cell in cells:
            splits.append(_choose_split(columns, cell, units, rng, quantiles))
            attribute, threshold, missing = splits[-1]
            if attribute < 0:
                children.append(cell)
                continue
            column = columns[attribute, cell]
            second = np.isnan(column) if missing else column > threshold
            children += [cell[~second], cell[second]]
        levels.append(splits)
        cells = children
    return levels


def _choose_split(
    columns: np.ndarray,
    cell: np.ndarray,
    units: np.ndarray,
    rng: np.random.Generator,
    quantiles: tuple[float, float],
) -> Split:
    """Split a cell along one of the attributes that vary most in it, at a random quantile."""
    n_attributes = len(units)
    tried = rng.permutation(n_attributes)[: (n_attributes + 1) // 2]
    factors = rng.uniform(0.5, 1.0, len(tried))
    quantile = rng.uniform(*quantiles)
    if len(cell) < _FEWEST_NODES:
        return -1, 0.0, False
    score = factors * _spread(columns[tried[:, None], cell]) / units[tried]
    if not score.max() > 0.0:  # constant here: is any other attribute not?
        tried = np.arange(n_attributes)
        score = _spread(columns[:, cell]) / units
    attribute = int(tried[np.argmax(score)])
    column = columns[attribute, cell]
    present = column[~np.isnan(column)]
    if _FEWEST_NODES <= len(column) - len(present) <= len(column) - _FEWEST_NODES:
        return attribute, 0.0, True
    if not len(present) or present.min() == present.max():
        return -1, 0.0, False
    # `np.quantile` takes ten times as long for few values.
    before, rest = divmod(quantile * (len(present) - 1), 1)
    low, high = np.partition(present, [int(before), int(before) + 1])[int(before) :][:2].tolist()
    threshold = low + (high - low) * rest
    if threshold >= present.max():
        threshold = float(present[present < present.max()].max())
    return attribute, threshold, False


def _spread(columns: np.ndarray) -> np.ndarray:
    """Standard deviation of each row, missing values aside."""
    known = ~np.isnan(columns)
    n = np.maximum(known.sum(axis=1), 1)
    mean = np.where(known, columns, 0.0).sum(axis=1) / n
    centred = np.where(known, columns - mean[:, None], 0.0)
    return np.sqrt((centred**2).sum(axis=1) / n)
