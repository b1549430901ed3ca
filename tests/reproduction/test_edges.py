"""Choices at an edge of their grid are counted rightly, and every page that has many says so."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path

import pytest
from reproduction.edges import Edge, edge_parts, edge_shares, noteworthy, touching
from reproduction.grids import GRIDS
from reproduction.methods import PAPER_METHODS, TABLE2_METHODS
from reproduction.rows import read_rows

from reproduction import (
    molecules_page,
    runtime_page,
    synthetic_study,
    table2_grids,
)

RESULTS = Path(__file__).parents[2] / "docs" / "results"
# table -> grid of a row, and what tells its lines and columns apart
TABLES = {
    "table2": (table2_grids.grid_of, ("method",), ("dataset",)),
    "synthetic": (synthetic_study.grid_of, ("method",), ("protect_pattern",)),
    "molecules": (molecules_page.grid_of, ("method",), ("dataset", "split")),
    "runtime": (runtime_page.grid_of, ("solver",), ("dataset",)),
}
VALUES = (0.1, 1.0, 10.0)


def chosen(*values):
    return [{"choice": {"C": value}} for value in values]


def grid(row):
    return {"C": VALUES}


def test_shares_are_of_all_rows_and_of_the_ends_alone():
    shares = edge_shares(chosen(0.1, 1.0, 10.0, 10.0), grid)
    assert shares == {Edge("C", "lowest", 0.1): 0.25, Edge("C", "highest", 10.0): 0.5}
    assert touching(chosen(0.1, 1.0, 10.0, 10.0), grid) == 0.75


@pytest.mark.parametrize("values", [(1.0,), ()])
def test_a_parameter_without_a_choice_has_no_edge(values):
    assert edge_shares(chosen(1.0), lambda row: {"C": values}) == {}
    assert edge_shares(chosen(None), grid) == {}


def test_up_to_a_tenth_is_not_worth_a_word():
    assert noteworthy({Edge("C", "lowest", 0.1): 0.1}) == []
    assert noteworthy({Edge("C", "lowest", 0.1): 0.11}) == ["C 0.1 (lowest) 11 %"]


def test_the_table_names_the_edge_where_it_was_chosen():
    rows = [{"choice": {"C": 10.0}, "m": "ours", "d": name} for name in ("A", "B")]
    rows[1]["choice"] = {"C": 1.0}
    text, table = edge_parts(rows, grid, lambda r: r["m"], lambda r: r["d"])
    assert "50 % of 2 choices" in text
    assert "| ours | C 10 (highest) 100 % | none |" in table


@pytest.mark.parametrize("name", TABLES)
def test_a_page_with_many_choices_at_an_edge_says_so(name):
    """More than a tenth of a method's choices at one edge, and not a word of it: that fails."""
    grid_of, *fields = TABLES[name]
    page = (RESULTS / f"{name}.md").read_text(encoding="utf-8")
    groups = defaultdict(list)
    for row in read_rows(RESULTS / f"{name}.jsonl"):
        shown = row.get("noise", "usual") == "usual" and row.get("seed") is not None
        if shown and row.get("choice") is not None and grid_of(row):
            groups[tuple(row[f] for part in fields for f in part)].append(row)
    assert groups
    needed = Counter(
        word for rows in groups.values() for word in noteworthy(edge_shares(rows, grid_of))
    )
    assert {word: n for word, n in needed.items() if page.count(word) < n} == {}


def test_every_choice_of_table_2_is_in_the_grid_that_its_row_names():
    """Otherwise edges would be counted against another grid than the one chosen from."""
    outside = [
        (row["dataset"], row["method"], parameter, row["choice"][parameter])
        for row in read_rows(RESULTS / "table2.jsonl")
        if row["method"] in (*TABLE2_METHODS, *PAPER_METHODS)
        for parameter, values in table2_grids.grid_of(row).items()
        if row["choice"].get(parameter) not in (None, 0.0, *values)
    ]
    assert not outside


def test_the_wide_grid_reaches_beyond_the_first_one_on_both_sides():
    first, wide = GRIDS["first"], GRIDS["wide"]
    for parameter in ("gammas", "Cs", "radii", "radii_of_many"):
        narrow, broad = getattr(first, parameter), getattr(wide, parameter)
        assert min(broad) < min(narrow)
        assert max(broad) > max(narrow)
        assert set(narrow) <= set(broad)
