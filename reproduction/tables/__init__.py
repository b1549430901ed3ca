"""All tables and figures that pages show, by name: each is made from rows alone."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

from reproduction.blocks import PageError
from reproduction.pages import FromRows, rows_of
from reproduction.tables import (
    decisions,
    explanations,
    field,
    graphs,
    molecules,
    paper,
    speed,
    standing,
)

TABLES: dict[str, FromRows] = {
    **standing.TABLES,
    **molecules.TABLES,
    **graphs.TABLES,
    **field.TABLES,
    **explanations.TABLES,
    **decisions.TABLES,
    **speed.TABLES,
    **paper.TABLES,
}
FIGURES: dict[str, FromRows] = {
    **standing.FIGURES,
    **molecules.FIGURES,
    **field.FIGURES,
    **decisions.FIGURES,
    **paper.FIGURES,
}


def tables_from(out: Path) -> Callable[[str], str]:
    """Return what makes a table by name from the rows in a folder; empty where there are none."""
    read = cache(lambda study: rows_of(out, study))

    @cache
    def table(name: str) -> str:
        if name not in TABLES:
            raise PageError(f"There is no table {name!r}: choose among {', '.join(TABLES)}.")
        make, studies = TABLES[name]
        found = [read(study) for study in studies]
        return str(make(*found)) if found[0] else ""

    return table


def draw_figures(out: Path) -> list[Path]:
    """Draw the figures of all studies that have rows in a folder."""
    drawn = []
    for make, studies in FIGURES.values():
        found = [rows_of(out, study) for study in studies]
        if all(found):
            drawn.append(make(out / "figures", *found))
    return [path for path in drawn if path is not None]
