"""Rows of a table that belong to graphs by their ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from treelens.array_checks import is_frame
from treelens.errors import GraphDataError, first_few
from treelens.graphs.collection import GraphCollection
from treelens.graphs.tables import TABLE_ENDINGS, read_text_table

if TYPE_CHECKING:
    import pandas as pd

_PREFIX = ": "  # between the name of a table and that of a column
ROW = "row"  # of the table that graphs were read from, from 0: the id of rows of an array


@dataclass(frozen=True, eq=False)
class KeyedRows:
    """A table with a column of ids."""

    name: str
    on: str
    rows: pd.DataFrame  # by id, the column of ids left out

    @classmethod
    def of(cls, given: object, on: str, name: str | None = None) -> KeyedRows:
        """Return the rows of a DataFrame or of a file; an error says what is wrong with its ids."""
        if isinstance(given, (str, Path)):
            frame, name = _frame_of(Path(given), on), name or Path(given).name.split(".")[0]
        elif is_frame(given):
            frame, name = given, name or "table"
        else:
            raise TypeError(
                f"A table is a DataFrame or the path of a file; got {type(given).__name__}. Give "
                "an array in the order of the graphs as fit(graphs, y, covariates=array)."
            )
        columns = [str(column) for column in frame.columns]
        if on not in columns:
            raise GraphDataError(
                f"The table {name!r} has no column {on!r} of ids: it has {first_few(columns)}. Say "
                "which one in tl.Table(..., on=...)."
            )
        rows = frame.set_axis(columns, axis=1).set_index(on)
        rows.index = rows.index.map(_text)
        if not len(rows.columns) or rows.columns.has_duplicates:
            raise GraphDataError(f"The table {name!r} needs columns of different names.")
        twice = rows.index[rows.index.duplicated()]
        if len(twice):
            raise GraphDataError(
                f"The table {name!r} has two rows of the id {twice[0]!r} ({len(twice)} such rows): "
                "keep one for each id."
            )
        return cls(name, on, rows)

    @property
    def columns(self) -> list[str]:
        """Names of the columns as graphs carry them."""
        return [f"{self.name}{_PREFIX}{column}" for column in self.rows.columns]

    def joined(self, graphs: GraphCollection) -> GraphCollection:
        """Return graphs that carry the row of each; an error names the ids that have none."""
        ids = ids_of(graphs, self.on, self.name)
        missing = [each for each in ids if each not in self.rows.index]
        if missing:
            raise GraphDataError(
                f"The table {self.name!r} has no row for {len(missing)} of {len(ids)} graphs, the "
                f"first {first_few(missing)}: add rows, with empty cells where nothing is known."
            )
        found = self.rows.loc[ids]
        pairs = zip(self.columns, found.columns, strict=True)
        return graphs.with_data({own: found[column].to_numpy() for own, column in pairs})


def ids_of(graphs: GraphCollection, on: str, table: str) -> list[str]:
    """Return the id of each graph as text."""
    known = graphs.graph_data.get(on, None if on == ROW else graphs.names)
    if known is None:
        raise GraphDataError(
            f"The table {table!r} needs ids of the graphs, and these have none: read them with a "
            f"column of names, or give graphs.with_names(ids) or graphs.with_data({{{on!r}: ids}})."
        )
    return [_text(each) for each in np.asarray(known).tolist()]


def rows_by_name(given: object, wanted: Sequence[tuple[str, str]]) -> list[KeyedRows]:
    """Return what ``predict(tables=given)`` gives for the tables of a model, (name, on) each."""
    if not wanted:
        raise ValueError("The model has no table (tl.Table) among its views: leave tables out.")
    if not isinstance(given, Mapping):
        if len(wanted) > 1:
            names = first_few([name for name, _ in wanted])
            raise ValueError(f"The model has several tables: give {{name: table}} for {names}.")
        given = {wanted[0][0]: given}
    unknown = sorted(set(given) - {name for name, _ in wanted})
    if unknown:
        names = first_few([name for name, _ in wanted])
        raise ValueError(f"{unknown[0]!r} is no table of this model, which has {names}.")
    return [KeyedRows.of(given[name], on, name) for name, on in wanted if name in given]


def with_rows(
    graphs: GraphCollection, given: object, wanted: Sequence[tuple[str, str]]
) -> GraphCollection:
    """Return graphs that carry their rows of the tables of a model."""
    for rows in rows_by_name(given, wanted):
        graphs = rows.joined(graphs)
    return graphs


def _text(value: object) -> str:
    """Return an id as text: 7.0, as a column with gaps has it, is the id 7."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip()


def usual_ids(path: Path, ids: str | None = None) -> str:
    """Return the column that a file has its ids in: called as those of the data, or ``"id"``."""
    if path.suffix.lower() == ".npy":
        return ROW
    return ids if ids is not None and ids in read_text_table(path).columns else "id"


def _frame_of(path: Path, on: str) -> pd.DataFrame:
    import pandas as pd

    if path.suffix.lower() in (".npy", ".npz"):
        if on != ROW or path.suffix.lower() == ".npz":
            raise GraphDataError(
                f"{path} holds an array, which has no ids: tl.Table(path, on='row') takes a .npy "
                "file with a row for each row of the table that graphs were read from; for other "
                "graphs give fit(graphs, y, covariates=numpy.load(path))."
            )
        values = np.load(path, allow_pickle=False)
        if values.ndim != 2 or values.dtype.kind not in "fiub":
            raise GraphDataError(
                f"{path} holds an array of shape {values.shape} and type {values.dtype}: expected "
                "numbers, one row for each row of the data."
            )
        frame = pd.DataFrame(values, columns=[str(k) for k in range(values.shape[1])])
        return frame.assign(**{ROW: np.arange(len(frame))})
    if not path.name.lower().removesuffix(".gz").endswith(TABLE_ENDINGS):
        raise GraphDataError(
            f"{path} is no table: one ends in {first_few(list(TABLE_ENDINGS))} or in .gz after it."
        )
    table = read_text_table(path)
    return pd.DataFrame({name: table.column(name, "table") for name in table.columns})
