"""The table of fragments: a DataFrame that can be looked at."""

from __future__ import annotations

from html import escape
from typing import Any, ClassVar

import pandas as pd

from treelens.explain.decode import Occurrence
from treelens.explain.draw import Style, draw_graph
from treelens.graphs.collection import Graph

_MOST_SHOWN = 40


class FragmentTable(pd.DataFrame):
    """Fragments with their effects, one a row, the most important first.

    A DataFrame like any other; in a notebook each row has a drawing, and :meth:`draw` makes one.
    ``attrs["size"]`` is what size does, apart from structure; ``attrs["toward"]`` the class that
    positive effects speak for (None where numbers are predicted).
    """

    _metadata: ClassVar[list[str]] = ["pictures"]
    pictures: dict[int, tuple[Graph, Occurrence]] | None = None

    @property
    def _constructor(self) -> type[FragmentTable]:
        return FragmentTable

    def draw(self, rank: int, *, width: int = 260, height: int = 180, format: Any = "svg") -> Any:
        """One fragment, highlighted in a small graph that holds it.

        Parameters
        ----------
        rank : int
            The row, from 1 on.
        width, height : int
        format : {"svg", "png"}

        Returns
        -------
        str or bytes
            An SVG with a text for those who cannot see it, or a PNG.
        """
        if self.pictures is None or rank not in self.pictures:
            raise KeyError(f"There is no fragment {rank!r}; the ranks are {list(self.index)}.")
        graph, place = self.pictures[rank]
        style = Style(width, height, legend=False, title=self.text(rank))
        return draw_graph(graph, highlight=place, style=style, format=format)

    def text(self, rank: int) -> str:
        """What a drawing shows, in words."""
        row = self.loc[rank]
        what = row["name"] or row["pattern"]
        graph, place = (self.pictures or {})[rank]
        where = f" in graph {place.graph_index if graph.name is None else graph.name}"
        return (
            f"Fragment {rank}: {what}, {len(place.nodes)} nodes highlighted{where}; effect "
            f"{row['effect']:+.2f} ± {row['error']:.2f}, in {row['support']} graphs"
        )

    def _repr_html_(self) -> str:
        """Rows with drawings, for notebooks; everything that comes from data is escaped."""
        needed = {"name", "pattern", "effect", "error", "support"}
        if not needed <= set(self.columns) or self.pictures is None:
            return str(pd.DataFrame(self).to_html(max_rows=60, notebook=True))
        columns = [c for c in self.columns if c not in ("error", "conditional_error")]
        head = "".join(f'<th scope="col">{escape(str(c))}</th>' for c in ["", *columns])
        rows = "".join(self._html_row(rank, columns) for rank in self.index[:_MOST_SHOWN])
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"

    def _html_row(self, rank: int, columns: list[str]) -> str:
        drawing = self.draw(rank) if self.pictures and rank in self.pictures else ""
        cells = "".join(f"<td>{escape(self._cell(rank, c))}</td>" for c in columns)
        return "".join(["<tr><td>", drawing, "</td>", cells, "</tr>"])

    def _cell(self, rank: int, column: str) -> str:
        value: Any = self.loc[rank, column]
        errors = {"effect": "error", "conditional_effect": "conditional_error"}
        if column in errors and errors[column] in self.columns:
            error: Any = self.loc[rank, errors[column]]
            return f"{value:+.3f} ± {error:.3f}"
        if isinstance(value, float):
            return f"{value:+.3f}"
        return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
