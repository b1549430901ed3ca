"""Tables in pages: blocks are those of their rows, and prose quotes no other numbers."""

import re
from pathlib import Path

import pytest

pytest.importorskip("rdkit")

from reproduction.__main__ import pages_of, publish
from reproduction.blocks import PageError, decimals_in, filled, prose_of, tables_of
from reproduction.pages import rows_of
from reproduction.tables import FIGURES, TABLES, draw_figures, tables_from

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results"
PAGES = pages_of(RESULTS)
TABLE = tables_from(RESULTS)
# What the prose quotes of others, and settings that are no measurements.
PUBLISHED = {
    "0.0001": "step of the paper's Algorithm 1, its section 5",
    "0.01": "step of the program that the paper's authors released",
    "0.58": "the paper's Table 2, PTC_MR: 65.44 less 64.86",
    "0.00005": "(0.01)^2 / 2, how far exp(-x) is from its tangent at 0.01",
    "0.05": "level of tests",
    "0.9": "quantile of distances that our margins are",
    "14.3": "mean number of nodes of PTC_MR, rounded from Table 1",
    "3.10": "the oldest Python",
}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_block_is_that_of_the_rows(page):
    text = page.read_text(encoding="utf-8")
    assert filled(text, TABLE, page.name) == text, "python -m reproduction pages --out docs/results"


@pytest.mark.parametrize(
    ("page", "tables"),
    [
        *((page, tables_of(page.read_text(encoding="utf-8"))) for page in PAGES[:-1]),
        (ROOT / "docs" / "paper.md", tables_of((RESULTS / "paper.md").read_text(encoding="utf-8"))),
        (
            ROOT / "README.md",
            ["expansion", "assays", "errica", "error-bars"],
        ),
    ],
    ids=lambda value: f"{value.parent.name}-{value.stem}" if isinstance(value, Path) else "",
)
def test_prose_quotes_only_numbers_of_its_tables(page, tables):
    text = page.read_text(encoding="utf-8")
    assert not re.search(r"^ *%", text, re.MULTILINE), "a comment to Sphinx"
    quoted = decimals_in(prose_of(text))
    known = set().union(*(decimals_in(TABLE(name)) for name in tables))
    assert quoted - known - set(PUBLISHED) == set()


def with_rows(figures):
    """The names of figures whose studies all have rows."""
    return {n for n, figure in figures.items() if all(rows_of(RESULTS, s) for s in figure.studies)}


def test_every_table_and_figure_that_has_rows_is_shown():
    texts = [page.read_text(encoding="utf-8") for page in PAGES]
    shown = {name for text in texts for name in tables_of(text)}
    assert {name for name in TABLES if TABLE(name)} == shown
    texts.append((ROOT / "README.md").read_text(encoding="utf-8"))
    for name in with_rows(FIGURES):
        assert any(f"figures/{name}.png)" in text for text in texts), name


def test_figures_are_drawn_from_the_rows(tmp_path):
    (tmp_path / "rows").symlink_to(RESULTS / "rows")
    drawn = draw_figures(tmp_path)
    assert {path.stem for path in drawn} == with_rows(FIGURES)
    assert len(drawn) > 5
    for path in drawn:
        assert path.read_bytes().startswith(b"\x89PNG")


# --- the marks ----------------------------------------------------------------------------------

BEGIN, END = "<!-- table: one -->", "<!-- end -->"


def test_only_what_lies_between_the_marks_is_replaced():
    text = f"before\n\n{BEGIN}\nold\n\nolder\n{END}\nbetween\n{BEGIN}\n{END}\nafter 0.5\n"
    new = filled(text, lambda name: f"| {name} | 0.25 |")
    table = f"{BEGIN}\n| one | 0.25 |\n{END}"
    assert new == f"before\n\n{table}\nbetween\n{table}\nafter 0.5\n"
    assert filled(new, lambda name: f"| {name} | 0.25 |") == new
    assert tables_of(new) == ["one", "one"]
    assert decimals_in(prose_of(new)) == {"0.5"}


def test_code_and_links_are_no_prose():
    text = "x 1.5 `2.5` [here](file-3.5.md)\n```python\n4.5\n```\n<!-- 5.5 -->\n−6.5 % and 1,207.5"
    assert decimals_in(prose_of(text)) == {"1.5", "6.5", "207.5"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<!-- table: hiv -->\n| a |\n", "line 1: no <!-- end --> after"),
        (
            "<!-- table: hiv -->\n<!-- table: hiv -->",
            "line 1: no <!-- end --> before the next",
        ),
        (f"text\n{END}\n", "line 2: <!-- end --> ends no table"),
        (f"{BEGIN}\n{END}", "There is no table 'one': choose among standing"),
    ],
)
def test_what_cannot_be_filled_is_an_error(text, message):
    with pytest.raises(PageError, match=message):
        filled(text, TABLE)


def test_a_table_without_rows_is_an_error_in_a_page_and_left_out_of_a_list(tmp_path):
    out = tmp_path / "docs" / "results"
    out.mkdir(parents=True)
    (out / "rows").mkdir()
    (out / "rows" / "million.jsonl").symlink_to(RESULTS / "rows" / "million.jsonl")
    (path,) = publish(out)
    text = path.read_text(encoding="utf-8")
    assert path.name == "tables.md"
    assert "| 1,000,000 |" in text
    assert text.count("## ") == 1
    (out / "speed.md").write_text("<!-- table: device -->\n<!-- end -->\n", encoding="utf-8")
    with pytest.raises(PageError, match="no rows for 'device'"):
        publish(out)
