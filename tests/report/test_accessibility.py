"""What axe-core, the checker of accessibility, has to say about the pages: nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import treelens as tl
from report.conftest import Visit
from treelens.report.comparison_page import write_comparison

AXE = Path(__file__).parents[2] / "node_modules" / "axe-core" / "axe.min.js"
WIDTHS = {"desktop": {"width": 1280, "height": 900}, "phone": {"width": 375, "height": 800}}


@pytest.fixture(scope="module")
def axe() -> str:
    """The checker as a script; ``.ci/axe`` fetches it."""
    path = Path(os.environ.get("AXE_CORE") or AXE)
    if not path.is_file():
        pytest.skip("needs axe-core: AXE_CORE=$(.ci/axe), or npm install --no-save axe-core")
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def comparisons(number_model, molecules, class_model, synthetic, tmp_path_factory):
    """Pages on two models of numbers, and of classes of graphs that are no molecules."""
    folder = tmp_path_factory.mktemp("compared")
    given = {"numbers": (number_model, molecules, tl.GraphRegressor),
             "classes": (class_model, synthetic, tl.GraphClassifier)}  # fmt: skip
    pages = {}
    for name, (model, (graphs, y), kind) in given.items():
        flat = kind(depth=0).fit(graphs[::2], y[::2])
        found = model.compare(flat, graphs[1::2], y[1::2])
        pages[name] = write_comparison(found, folder / f"{name}.html", ("deep", "flat"))
    return pages


def violations(visit: Visit, axe: str) -> list[tuple[str, str]]:
    visit.page.evaluate(axe)
    found = visit.page.evaluate("axe.run()")["violations"]
    return [(rule["id"], rule["nodes"][0]["html"]) for rule in found]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["numbers", "classes"])
def test_the_report_folded_and_unfolded(browser, evidence_reports, axe, name, width, scheme):
    visit = Visit(browser, evidence_reports[name], viewport=WIDTHS[width], color_scheme=scheme,
                  bypass_csp=True)  # fmt: skip
    assert violations(visit, axe) == []
    visit.open_all()
    assert violations(visit, axe) == []
    visit.page.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["numbers", "classes"])
def test_a_comparison(browser, comparisons, axe, name, width, scheme):
    visit = Visit(browser, comparisons[name], viewport=WIDTHS[width], color_scheme=scheme,
                  bypass_csp=True)  # fmt: skip
    assert violations(visit, axe) == []
    visit.page.context.close()


@pytest.mark.parametrize("name", ["numbers", "classes"])
def test_a_phone_scrolls_tables_and_not_the_comparison(browser, comparisons, name):
    visit = Visit(browser, comparisons[name], viewport=WIDTHS["phone"])
    wide = visit.page.evaluate("document.documentElement.scrollWidth")
    assert wide <= WIDTHS["phone"]["width"]
    visit.close()
