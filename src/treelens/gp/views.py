"""Views of a fitted model: what new graphs look like to the terms of its kernel."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from treelens.array_checks import LARGEST, check_array, check_positive
from treelens.errors import GraphDataError
from treelens.gp.covariates import CovariateTable
from treelens.graphs.collection import GraphCollection
from treelens.patterns.forest import RefinedGraphs
from treelens.patterns.histograms import (
    Features,
    GraphViews,
    PairFeatures,
    PatternHistograms,
    SparseRows,
    ViewData,
)
from treelens.patterns.source import PatternSource

_LARGEST_LOG = 200.0  # of a weight
StoredView = PatternHistograms | np.ndarray  # what a model keeps of its training graphs


class FittedView(ABC):
    """A way to see graphs that a kernel compares."""

    @property
    @abstractmethod
    def name(self) -> str:
        """What the view is called."""

    @abstractmethod
    def check_stored(self, stored: Any, n_graphs: int) -> None:
        """Raise ``ValueError`` unless what is stored of the training graphs is of this view."""

    @abstractmethod
    def refine(self, graphs: GraphCollection, n_jobs: int = 1) -> RefinedGraphs | np.ndarray:
        """Return new graphs as the view shows them."""

    @abstractmethod
    def data(self, stored: Any) -> ViewData:
        """Return what the kernel compares, from what is stored of training graphs."""

    @abstractmethod
    def extended(self, graphs: GraphCollection, n_jobs: int = 1) -> tuple[FittedView, StoredView]:
        """Return the view that knows all of these graphs, too, and what it stores of them.

        The kernel of graphs known before does not change.
        """

    @abstractmethod
    def joined(self, before: Any, more: Any) -> StoredView:
        """Return what is stored of two sets of graphs, the second as the extended view has it."""


@dataclass(frozen=True, eq=False)
class WeightedPatterns(FittedView):
    """Patterns with a weight for each, known or not."""

    source: PatternSource
    log_weights: np.ndarray  # (n_patterns,) theta: deviations of a pattern and its ancestors, added
    level_weights: np.ndarray  # (n_levels,) beta: positive, one on average

    @property
    def name(self) -> str:
        return self.source.name

    def validate(self) -> None:
        n, n_levels = self.source.n_patterns, self.source.n_levels
        check_array(self.log_weights, "log_weights", np.float64, (n,), -_LARGEST_LOG, _LARGEST_LOG)
        check_array(self.level_weights, "level_weights", np.float64, (n_levels,), 0.0)
        check_array(self.weights, "weights", np.float64, (n,), 0.0, LARGEST)

    def check_stored(self, stored: Any, n_graphs: int) -> None:
        if not isinstance(stored, PatternHistograms) or stored.n_graphs != n_graphs:
            raise ValueError("there must be counts of the patterns of every training graph")
        for name in ("level_offsets", "level_depths", "level_shares"):
            if not np.array_equal(getattr(stored, name), getattr(self.source, name)):
                raise ValueError("the histograms must count the patterns of the view")
        if self.source.one_per_node:
            stored.check_every_node()

    @cached_property
    def weights(self) -> np.ndarray:
        """``beta * exp(theta)``, shape (n_patterns,)."""
        per_pattern = np.repeat(self.level_weights, self.source.level_sizes)
        return per_pattern * np.exp(self.log_weights)

    def refine(self, graphs: GraphCollection, n_jobs: int = 1) -> RefinedGraphs:
        """Refine graphs, count their patterns and make what the kernel needs of them."""
        found = self.source.transform(graphs, n_jobs)
        refined = RefinedGraphs(found, self.source.count(found), None)  # type: ignore[arg-type]
        return refined._replace(features=self.weighed(refined))

    def weighed(self, seen: RefinedGraphs) -> Features:
        """Return graphs that a view of the same patterns refined, under the weights of this one."""
        unseen = self.source.unseen_sums(seen.colors, self.log_weights, self.level_weights)
        return self.data(seen.histograms, unseen)

    def data(self, stored: PatternHistograms, unseen_sums: np.ndarray | float = 0.0) -> Features:
        return Features.of(PairFeatures.of_counts(stored), self.weights, unseen_sums)

    def extended(
        self, graphs: GraphCollection, n_jobs: int = 1
    ) -> tuple[WeightedPatterns, PatternHistograms]:
        """A new pattern has the weight of its deepest known ancestor, as unseen ones have."""
        source, found = self.source.extend(graphs, n_jobs)
        log_weights, parents = np.zeros(source.n_patterns), source.parents
        for level in range(source.n_levels):
            start, stop = source.level_offsets[level : level + 2]
            known = self.log_weights[slice(*self.source.level_offsets[level : level + 2])]
            first_new = start + len(known)
            log_weights[start:first_new] = known
            above = parents[first_new:stop]
            log_weights[first_new:stop] = np.where(above >= 0, log_weights[above], 0.0)
        view = WeightedPatterns(source, log_weights, self.level_weights)
        return view, source.count(found)

    def joined(self, before: PatternHistograms, more: PatternHistograms) -> PatternHistograms:
        """Known patterns come first within each level."""
        shift = more.level_offsets[:-1] - before.level_offsets[:-1]
        columns = np.arange(before.n_patterns) + np.repeat(shift, np.diff(before.level_offsets))
        table = before.to_sparse(dtype=np.int32)
        shape = (before.n_graphs, more.n_patterns)
        wide = sparse.csr_array((table.data, columns[table.indices], table.indptr), shape=shape)
        both = sparse.vstack([wide, more.to_sparse(dtype=np.int32)])
        lists = SparseRows.of(both.tocsc())
        return replace(
            more,
            offsets=lists.offsets,
            graphs=lists.indices,
            counts=lists.values,
            n_nodes=np.concatenate([before.n_nodes, more.n_nodes]),
            unseen=np.concatenate([before.unseen, more.unseen]),
        )


@dataclass(frozen=True, eq=False)
class NumbersTable(FittedView):
    """A table of numbers: descriptors, covariates, or one that the user gave."""

    title: str
    table: CovariateTable
    on: str | None = None  # of a user's table: what ids its rows are found by

    @property
    def name(self) -> str:
        return self.title

    def validate(self) -> None:
        columns = self.table.columns
        if not columns or len(set(self.table.names)) < len(columns):
            raise ValueError("covariates must be columns of different names")
        for column in columns:
            check_positive(column.spread, f"the standard deviation of {column.name!r}")

    def check_stored(self, stored: Any, n_graphs: int) -> None:
        width = sum(len(column.classes) or 1 for column in self.table.columns)
        check_array(stored, "covariates", np.float64, (n_graphs, width))

    def refine(self, graphs: GraphCollection, n_jobs: int = 1) -> np.ndarray:
        if self.on is not None and not set(self.table.names) <= set(graphs.graph_data):
            raise GraphDataError(
                f"The model was fitted with the table {self.title!r}, and these graphs come "
                "without their rows: give predict(X, tables=frame), with ids in its column "
                f"{self.on!r}."
            )
        return self.table.encode(graphs)

    def data(self, stored: np.ndarray) -> np.ndarray:
        return stored

    def extended(self, graphs: GraphCollection, n_jobs: int = 1) -> tuple[NumbersTable, np.ndarray]:
        return self, self.table.encode(graphs)

    def joined(self, before: np.ndarray, more: np.ndarray) -> np.ndarray:
        return np.vstack([before, more])


def select_stored(stored: StoredView, positions: np.ndarray) -> StoredView:
    """Return what is stored of some graphs."""
    if isinstance(stored, PatternHistograms):
        return stored.select_graphs(positions)
    return stored[positions]


def shown_by(views: tuple[FittedView, ...], stored: tuple[StoredView, ...]) -> GraphViews:
    """Return training graphs as kernels compare them, from what is stored of them."""
    return GraphViews(view.data(own) for view, own in zip(views, stored, strict=True))
