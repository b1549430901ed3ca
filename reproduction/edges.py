"""How often a choice lies at an edge of its grid, where a wider grid might have done better."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from reproduction.pages import markdown_table

# parameter -> its values in ascending order, for one row
GridOf = Callable[[Mapping[str, Any]], Mapping[str, Sequence[Any]]]
NOTEWORTHY = 0.1


class Edge(NamedTuple):
    """One end of the grid of one parameter."""

    parameter: str
    end: str  # "lowest" or "highest"
    value: Any

    @property
    def text(self) -> str:
        return f"{self.parameter} {self.value:g} ({self.end})"


def edge_shares(
    rows: Iterable[Mapping[str, Any]], grid_of: GridOf, choice: str = "choice"
) -> dict[Edge, float]:
    """Share of the rows whose choice is an end of its grid, for every end that was chosen.

    A parameter with one value, and one that a row has no grid or no number for, has no edge.

    Examples
    --------
    >>> rows = [{"choice": {"C": 10.0}}, {"choice": {"C": 1.0}}]
    >>> edge_shares(rows, lambda row: {"C": (0.1, 1.0, 10.0)})
    {Edge(parameter='C', end='highest', value=10.0): 0.5}
    """
    rows = list(rows)
    found = Counter(edge for row in rows for edge in _edges_of(row.get(choice) or {}, grid_of(row)))
    return {edge: n / len(rows) for edge, n in sorted(found.items())}


def touching(
    rows: Iterable[Mapping[str, Any]], grid_of: GridOf, choice: str = "choice"
) -> float | None:
    """Share of the choices with at least one parameter at an edge; None without choices."""
    hits = [
        bool(_edges_of(row[choice], grid_of(row))) for row in rows if row.get(choice) is not None
    ]
    return sum(hits) / len(hits) if hits else None


def _edges_of(choice: Mapping[str, Any], grid: Mapping[str, Sequence[Any]]) -> list[Edge]:
    found = []
    for parameter, values in grid.items():
        value = choice.get(parameter)
        if value is None or len(values) < 2:
            continue
        if value == values[0]:
            found.append(Edge(parameter, "lowest", value))
        elif value == values[-1]:
            found.append(Edge(parameter, "highest", value))
    return found


def noteworthy(shares: Mapping[Edge, float]) -> list[str]:
    """What a page has to say: the edges with more than a tenth of the choices.

    Examples
    --------
    >>> noteworthy({Edge("C", "highest", 100.0): 0.61, Edge("depth", "lowest", 1): 0.05})
    ['C 100 (highest) 61 %']
    """
    return [
        f"{edge.text} {100 * share:.0f} %" for edge, share in shares.items() if share > NOTEWORTHY
    ]


def edge_parts(
    rows: Sequence[Mapping[str, Any]],
    grid_of: GridOf,
    line_of: Callable[[Mapping[str, Any]], str],
    column_of: Callable[[Mapping[str, Any]], str],
    choice: str = "choice",
) -> list[str]:
    """A sentence and a table: for every method and data set the edges that were often chosen."""
    cells: dict[tuple[str, str], list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        if row.get(choice) is not None and grid_of(row):
            cells[line_of(row), column_of(row)].append(row)
    lines = list(dict.fromkeys(line for line, _ in cells))
    columns = list(dict.fromkeys(column for _, column in cells))
    kept = [row for part in cells.values() for row in part]
    share = touching(kept, grid_of, choice)
    if share is None:
        return []
    text = (
        f"{100 * share:.0f} % of {len(kept):,} choices have some parameter at an edge of its grid, "
        "where a wider grid might have chosen otherwise. The table names every edge that takes "
        f"more than {100 * NOTEWORTHY:.0f} % of a method's choices on a data set."
    )
    table = [
        [line, *(_cell(cells.get((line, column), ()), grid_of, choice) for column in columns)]
        for line in lines
    ]
    return [text, markdown_table(["", *columns], table)]


def _cell(rows: Sequence[Mapping[str, Any]], grid_of: GridOf, choice: str) -> str:
    if not rows:
        return ""
    return "; ".join(noteworthy(edge_shares(rows, grid_of, choice))) or "none"
