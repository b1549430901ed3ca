"""Graphs and targets of a source, with the rows that they stand for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from treelens.cli.console import InputError
from treelens.cli.target import as_numbers, missing_in_words
from treelens.cli.transform import Transform, transformed

if TYPE_CHECKING:
    import numpy as np

    from treelens.graphs.collection import GraphCollection
    from treelens.graphs.tables import Table

Note = Callable[[str], None]


@dataclass(frozen=True)
class GraphData:
    """Graphs and targets, and which rows of the source they stand for.

    Attributes
    ----------
    source : str
    graphs : GraphCollection
    y : ndarray or None
        On the scale that a model learns.
    rows : ndarray of int, shape (n_graphs,)
        The row of each graph, from 0.
    n_rows : int
        Rows in the source.
    texts : list of str or None
        The SMILES of every row as given, where there are any.
    target : str or None
        The column that the targets come from.
    task : str
        ``"regression"`` where ``y`` holds numbers to predict.
    labelled : ndarray of bool, shape (n_graphs,), or None
        Which graphs have a target; None: all.
    unreadable : ndarray of int or None
        Rows without a molecule; None: all that are not in ``rows``.
    ids : dict of str to list of str
        Columns that name the rows, every row of the source.
    smiles : str or None
        The column that the SMILES come from.
    table : Table or None
    transform : Transform or None
        What led from the column to ``y``.
    units : str or None
        Of the column.
    groups : ndarray of int, shape (n_graphs,), or None
        The first graph that is the same molecule; folds must not cut through a group.
    counts : dict of str to int
        What was done about rows, in words.
    merged : tuple of ndarray of int or None
        The rows that each graph stands for, where rows were merged; None: its own.
    """

    source: str
    graphs: GraphCollection
    y: np.ndarray | None
    rows: np.ndarray
    n_rows: int
    texts: list[str] | None = None
    target: str | None = None
    task: str = "classification"
    labelled: np.ndarray | None = None
    unreadable: np.ndarray | None = None
    ids: dict[str, list[str]] = field(default_factory=dict)
    smiles: str | None = None
    table: Table | None = None
    transform: Transform | None = None
    units: str | None = None
    groups: np.ndarray | None = None
    counts: dict[str, int] = field(default_factory=dict)
    merged: tuple[np.ndarray, ...] | None = None

    @property
    def unreadable_rows(self) -> np.ndarray:
        import numpy as np

        if self.unreadable is not None:
            return self.unreadable
        missing = np.ones(self.n_rows, dtype=bool)
        missing[self.rows] = False
        return np.flatnonzero(missing)

    @property
    def n_unreadable(self) -> int:
        return len(self.unreadable_rows)

    @property
    def target_name(self) -> str:
        """The target in messages."""
        return self.target or "the class file"

    def place(self, graph: int) -> str:
        """A graph in messages: its row, and what names it."""
        row = int(self.rows[graph])
        names = [column[row] for column in self.ids.values() if column[row]]
        return f"row {row + 1}" + (f" ({names[0][:40]})" if names else "")

    def with_numbers(self, transform: Transform | None = None) -> GraphData:
        """The same with the targets as numbers on a scale, where there are any targets."""
        import numpy as np

        if self.y is None:
            return replace(self, task="regression", transform=transform)
        has = np.ones(len(self.y), dtype=bool) if self.labelled is None else self.labelled
        y = np.full(len(self.y), np.nan)
        y[has] = as_numbers(self.y[has], self.target_name, self.rows[has])
        y = transformed(y, transform, self.target_name, self.rows)
        return replace(self, y=y, task="regression", transform=transform)

    def pick(self, keep: np.ndarray) -> GraphData:
        """Some of the graphs."""
        y, labelled, groups = (
            None if values is None else values[keep]
            for values in (self.y, self.labelled, self.groups)
        )
        merged = None if self.merged is None else tuple(self.merged[k] for k in keep.tolist())
        return replace(
            self, graphs=self.graphs[keep], rows=self.rows[keep], y=y, labelled=labelled,
            groups=groups, merged=merged,
        )  # fmt: skip

    def with_labels_only(self, missing: str, note: Note) -> GraphData:
        """Without the rows that have no target (``"skip"``), or an error (``"error"``)."""
        import numpy as np

        from treelens.graphs.targets import as_target

        if self.labelled is None or self.labelled.all():
            return self
        assert self.table is not None
        assert self.target is not None
        rows = self.rows[~self.labelled]
        found = missing_in_words(self.table, self.target, rows, self.n_rows)
        if missing == "error":
            raise InputError(
                f"{found} Fill it in, remove these rows, or leave them out with --missing skip."
            )
        if len(rows) == len(self.rows):
            raise InputError(f"{found} None is left. Name another column with --target.")
        note(f"{found} They were left out.")
        left = self.pick(np.flatnonzero(self.labelled))
        assert left.y is not None
        # Among texts for what is missing, numbers were texts as well.
        y = as_target(left.y.tolist()) if left.y.dtype.kind == "U" else left.y
        counts = {**self.counts, "rows without a label, left out": len(rows)}
        return replace(left, y=y, labelled=None, counts=counts)
