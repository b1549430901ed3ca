"""Views of a fitted model: patterns and tables of numbers of new graphs."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from treelens.array_checks import LARGEST, check_array, check_positive
from treelens.errors import GraphDataError, first_few
from treelens.graphs.collection import GraphCollection
from treelens.graphs.kinds import DESCRIPTOR_PREFIX, PLAIN, kind_of_facts, summed_numbers
from treelens.maps import NormalScores
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


DESCRIPTORS = "rdkit"
Rows = Sequence[Any] | np.ndarray | None  # of the table that graphs were read from, from 0
_FARTHEST = 10.0  # standard deviations: one odd descriptor must not drown all others
_MOST_CLASSES = 50
_DIGITS = 9  # of scores: sums over atoms in another order give the same ones
_FEW_TEXTS = 0.2  # texts among fewer than this share of the values are mistakes, not classes


@dataclass(frozen=True)
class CovariateColumn:
    """One column: numbers, or if ``classes`` are named, one of these."""

    name: str  # in ``graph_data``; "rdkit:MolLogP" is computed where it is not there
    mean: float = 0.0  # of the training graphs
    spread: float = 1.0
    classes: tuple[str, ...] = ()
    scores: NormalScores | None = None  # of a descriptor, in the place of mean and spread

    @classmethod
    def of(cls, name: str, values: np.ndarray, rows: Rows = None) -> CovariateColumn:
        """Describe a column of the training graphs, which are at ``rows`` of their table."""
        numbers, texts = _numbers(name, values, rows)
        if not texts:
            known = numbers[np.isfinite(numbers)]
            if name.startswith(DESCRIPTOR_PREFIX):
                # Some descriptors are not defined for any of a few molecules: they say nothing.
                return cls(name, scores=NormalScores.fit(known if len(known) else np.zeros(1)))
            if not len(known):
                raise GraphDataError(f"The covariate {name!r} is empty: leave it out.")
            spread = float(known.std())
            return cls(name, float(known.mean()), spread if spread > 0 else 1.0)
        named = [str(value) for value in values if not _is_missing(value)]
        if len(texts) < _FEW_TEXTS * len(named):
            raise GraphDataError(
                f"The covariate {name!r} holds numbers, but for {len(texts)} of {len(named)} "
                f"graphs, the first at {_place(rows, values, texts[0])}: correct or empty it."
            )
        classes = tuple(sorted(set(named)))
        if len(classes) > _MOST_CLASSES:
            raise GraphDataError(
                f"The covariate {name!r} is no column of numbers ({_place(rows, values, 0)}), and "
                f"has {len(classes)} different values: is it an id?"
            )
        return cls(name, classes=classes)

    def encoded(self, values: np.ndarray, rows: Rows = None) -> np.ndarray:
        """Standardised numbers (n, 1), or one column per class (n, n_classes).

        Descriptors become normal scores, so that far values cannot drown all others. A missing
        number is the mean (of a descriptor, the median), a class that training never saw is none
        of them.
        """
        if self.classes:
            texts = np.array([str(value) for value in values])
            same = texts[:, None] == np.array(self.classes)
            new = [k for k in np.flatnonzero(~same.any(axis=1)) if not _is_missing(values[k])]
            if new:
                warnings.warn(
                    f"The covariate {self.name!r} has values that training never saw, for "
                    f"{len(new)} of {len(values)} graphs, the first {str(texts[new[0]])!r}: they "
                    "count as not known.",
                    stacklevel=2,
                )
            return same.astype(float) / np.sqrt(2.0)  # of different classes: distance one
        numbers, wrong = _numbers(self.name, values, rows)
        if wrong:
            raise GraphDataError(
                f"The covariate {self.name!r} holds numbers in the training graphs, but not here "
                f"at {_place(rows, values, wrong[0])}. Correct it, or leave it empty."
            )
        if self.scores is not None:
            found = np.round(self.scores.forward(numbers), _DIGITS)
            return np.where(np.isfinite(found), found, 0.0)[:, None]
        table = np.clip((numbers - self.mean) / self.spread, -_FARTHEST, _FARTHEST)
        return np.where(np.isfinite(table), table, 0.0)[:, None]

    @property
    def width(self) -> int:
        """How many numbers it becomes."""
        return len(self.classes) or 1

    def slope(self, value: float) -> float:
        """Return how fast the number of a column of numbers rises with its value."""
        if self.scores is not None:
            return float(self.scores.slope(np.asarray(value)))
        return 1.0 / self.spread

    def decoded(self, numbers: np.ndarray) -> np.ndarray:
        """Return values (n,) that are encoded as exactly these numbers."""
        if self.classes:
            names = np.array([*self.classes, ""], dtype=object)
            return names[np.where(numbers.any(axis=1), numbers.argmax(axis=1), len(self.classes))]
        wanted = numbers[:, 0]
        if self.scores is not None:
            return self.scores.inverse(wanted)
        far = np.where(np.abs(wanted) == _FARTHEST, 2.0, 1.0)  # beyond the limit, whatever it was
        found = nearby = self.mean + self.spread * wanted * far
        for step in (1, -1, 2, -2, 3, -3):  # rounding: the value itself is a few floats away
            wrong = self.encoded(found)[:, 0] != wanted
            found = np.where(wrong, nearby + step * np.spacing(nearby), found)
        return found


@dataclass(frozen=True)
class CovariateTable:
    """Which columns there are, and how they become numbers."""

    columns: tuple[CovariateColumn, ...]

    @classmethod
    def fit(cls, graphs: GraphCollection, names: Sequence[str]) -> CovariateTable:
        """Learn means, spreads and classes from training graphs."""
        wanted: list[str] = []
        kind = kind_of_facts(graphs.graph_data)
        for name in names:
            more = kind.number_names("all") if name == DESCRIPTORS else [name]
            wanted += [column for column in more if column not in wanted]
        values = columns_of(graphs, wanted)
        rows = graphs.graph_data.get("row")
        return cls(tuple(CovariateColumn.of(name, values[name], rows) for name in wanted))

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    @property
    def ends(self) -> np.ndarray:
        """Where the numbers of each column end, shape (n_columns,)."""
        return np.cumsum([column.width for column in self.columns])

    def start(self) -> np.ndarray:
        """Return the numbers that explanations begin with, shape (n_numbers,).

        Of sums over nodes those of a graph without any; else the mean (of a descriptor the
        median), or no class.
        """
        summed = summed_numbers(self.names)
        begin = np.zeros(1)
        parts = [
            column.encoded(begin)[0] if column.name in summed else np.zeros(column.width)
            for column in self.columns
        ]
        return np.concatenate(parts)

    def joined(self, other: CovariateTable) -> CovariateTable:
        """Return a table with the columns of both, each once."""
        known = set(self.names)
        more = tuple(column for column in other.columns if column.name not in known)
        return CovariateTable(self.columns + more)

    def encode(self, graphs: GraphCollection) -> np.ndarray:
        """Numbers for the kernel, shape (n_graphs, n_numbers)."""
        values = columns_of(graphs, self.names)
        rows = graphs.graph_data.get("row")
        _say_what_is_missing(values)
        return np.hstack([column.encoded(values[column.name], rows) for column in self.columns])

    def decode(self, numbers: np.ndarray) -> dict[str, np.ndarray]:
        """Return values by column that :meth:`encode` makes these numbers of."""
        ends = self.ends
        parts = np.split(numbers, ends[:-1], axis=1)
        return {c.name: c.decoded(part) for c, part in zip(self.columns, parts, strict=True)}


def _say_what_is_missing(values: Mapping[str, np.ndarray]) -> None:
    """Warn of empty cells of covariates; descriptors that are not defined are no news."""
    empty = {
        name: sum(map(_is_missing, column.tolist()))
        for name, column in values.items()
        if not name.startswith(DESCRIPTOR_PREFIX)
    }
    if some := [f"{n} of {name!r}" for name, n in empty.items() if n]:
        warnings.warn(
            f"Cells of covariates are empty ({first_few(some)}): numbers count as the mean of the "
            "training graphs, classes as none of those known.",
            stacklevel=2,
        )


def with_covariates(graphs: GraphCollection, given: Any) -> tuple[GraphCollection, list[str]]:
    """Return graphs that hold the covariates given, by name or as a table, and their names."""
    if isinstance(given, str):
        return graphs, [given]
    named = isinstance(given, Mapping) or hasattr(given, "columns")
    if not named and np.ndim(given) and len(given) and all(isinstance(x, str) for x in given):
        return graphs, [str(name) for name in given]
    import pandas as pd  # models without such covariates need not wait for it

    try:
        table = pd.DataFrame(given)
    except (TypeError, ValueError) as error:
        raise GraphDataError(f"covariates are no table with one row per graph: {error}") from None
    names = [str(name) if named else f"covariate {k + 1}" for k, name in enumerate(table)]
    for name in names:
        if name in (DESCRIPTORS, "smiles", "mol") or names.count(name) > 1:
            raise GraphDataError(
                f"covariates: a column cannot be called {name!r} (it means something else, or "
                "stands twice). Rename it."
            )
    if len(table) != len(graphs):
        raise GraphDataError(f"covariates have {len(table)} rows for {len(graphs)} graphs.")
    columns = {name: table.iloc[:, k].to_numpy() for k, name in enumerate(names)}
    return graphs.with_data(columns), names


def columns_of(graphs: GraphCollection, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Values by column: from ``graph_data``, or descriptors computed from the molecules."""
    missing = [name for name in names if name not in graphs.graph_data]
    unknown = [name for name in missing if not name.startswith(DESCRIPTOR_PREFIX)]
    if unknown:
        raise GraphDataError(
            f"The covariate {unknown[0]!r} is missing: give the table as covariates=..., or "
            "graphs.with_data({...})."
        )
    found = {name: graphs.graph_data[name] for name in names if name not in missing}
    if missing:
        kind = kind_of_facts(graphs.graph_data)
        if kind is PLAIN:
            raise GraphDataError(
                "Descriptors are computed from molecules, and these graphs were not read from any: "
                "read them with read_smiles, or leave 'rdkit' out of the covariates."
            )
        found |= kind.numbers(graphs, missing)
    return found


def _numbers(name: str, values: np.ndarray, rows: Rows) -> tuple[np.ndarray, list[int]]:
    """Return floats, NaN where there is no number, and the positions of texts."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "fiu":
        numbers = values.astype(np.float64)
    else:
        import pandas as pd

        found = pd.to_numeric(np.asarray(values, dtype=object), errors="coerce")
        numbers = np.asarray(found, dtype=np.float64)
    texts = [k for k in np.flatnonzero(np.isnan(numbers)).tolist() if not _is_missing(values[k])]
    if not texts and np.isinf(numbers).any():
        place = _place(rows, values, int(np.flatnonzero(np.isinf(numbers))[0]))
        raise GraphDataError(
            f"The covariate {name!r} is infinite at {place}: correct it, or leave it empty."
        )
    return numbers, texts


def _is_missing(value: Any) -> bool:
    """None, NaN, pandas' NA, or what tables write in their place."""
    return str(value).strip().casefold() in ("", "na", "n/a", "nan", "<na>", "none", "null")


def _place(rows: Rows, values: np.ndarray, graph: int) -> str:
    """Return the value of a graph with its row in the table, from 1, or else its position."""
    row = None if rows is None else rows[graph]
    where = f"row {row + 1}" if isinstance(row, (int, np.integer)) else f"position {graph}"
    return f"{where}: {str(values[graph])[:40]!r}"
