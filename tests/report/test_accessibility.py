"""What axe-core, the checker of accessibility, has to say about the pages: nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from report.conftest import Visit

AXE = Path(__file__).parents[2] / "node_modules" / "axe-core" / "axe.min.js"
WIDTHS = {"desktop": {"width": 1280, "height": 900}, "phone": {"width": 375, "height": 800}}


@pytest.fixture(scope="module")
def axe():
    """The checker as a script; ``.ci/axe`` fetches it."""
    path = Path(os.environ.get("AXE_CORE") or AXE)
    if not path.is_file():
        pytest.skip("needs axe-core: AXE_CORE=$(.ci/axe), or npm install --no-save axe-core")
    return path.read_text(encoding="utf-8")


def violations(visit, axe):
    visit.page.evaluate(axe)
    found = visit.page.evaluate("axe.run()")["violations"]
    return [(rule["id"], rule["nodes"][0]["html"]) for rule in found]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["numbers", "classes", "svm"])
def test_the_report_folded_and_unfolded(browser, reports, axe, name, width, scheme):
    visit = Visit(browser, reports[name], viewport=WIDTHS[width], color_scheme=scheme,
                  bypass_csp=True)  # fmt: skip
    assert violations(visit, axe) == []
    visit.open_all()
    assert violations(visit, axe) == []
    visit.page.context.close()
