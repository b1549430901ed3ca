"""The report in a real browser."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pandas as pd
import pytest

import treelens as tl
from report.conftest import EVIL, EVIL_CLASS, Visit

AXE = Path(__file__).parents[2] / "node_modules" / "axe-core" / "axe.min.js"
WIDTHS = {"desktop": {"width": 1280, "height": 900}, "phone": {"width": 375, "height": 800}}


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["numbers", "classes", "svm"])
def test_layout(browser, reports, name, scheme, width):
    size = {"width": width, "height": 900}
    visit = Visit(browser, reports[name], viewport=size, color_scheme=scheme)
    page = visit.page
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    if width == 1280:
        assert page.locator("#glance").bounding_box()["height"] <= 900  # the first screen
    visit.open_all()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    ink, paper = (
        page.evaluate(f"getComputedStyle(document.body).{name}")
        for name in ("color", "backgroundColor")
    )
    brightness = [sum(map(int, color[4:-1].split(","))) for color in (ink, paper)]
    assert (brightness[0] > brightness[1]) == (scheme == "dark")
    visit.close()


def test_tables_are_sorted_and_filtered(browser, reports, cases):
    n = len(cases["numbers"][2][1::2])
    visit = Visit(browser, reports["numbers"])
    page = visit.page
    visit.open_all()
    assert visit.values("fragment-table", 1) == sorted(visit.values("fragment-table", 1))
    page.locator("#fragment-table thead button").nth(1).press("Enter")  # by effect
    effects = visit.values("fragment-table", 2)
    assert len(effects) > 1
    assert effects == sorted(effects, reverse=True)
    assert page.locator("#fragment-table [aria-sort]").get_attribute("aria-sort") == "descending"
    page.locator("#pattern-table thead button").nth(4).click()  # by weight
    weights = visit.values("pattern-table", 5)
    assert weights == sorted(weights, reverse=True)
    assert len(visit.values("prediction-table", 2)) == 15
    page.locator('[data-for="prediction-table"] button').click()
    page.locator("#prediction-table thead button").nth(5).click()  # by error
    errors = visit.values("prediction-table", 5)
    assert len(errors) == n
    assert errors == sorted(errors, reverse=True)
    page.locator('[data-for="prediction-table"] input').fill("(=O)O")
    shown = page.locator("#prediction-table tbody tr:visible").all()
    assert shown
    assert all("(=O)O" in row.inner_text() for row in shown)
    visit.close()


def test_the_threshold_slider_by_keyboard(browser, reports, cases):
    model, graphs, y = cases["classes"]
    chances = model.predict_proba(graphs[1::2])[:, 1]
    truth = y[1::2] == model.classes_[1]
    visit = Visit(browser, reports["classes"])
    page = visit.page
    page.locator(".threshold summary").press("Enter")
    slider = page.locator("#threshold")
    for key in ("Home", "End", "PageDown", "ArrowLeft"):
        slider.press(key)
        at = int(slider.input_value()) / 100
        named = chances >= at
        shown = {
            x: page.locator(f"#threshold-{x}").inner_text() for x in ("found", "alarms", "rest")
        }
        assert shown == {
            "found": str((named & truth).sum()),
            "alarms": str((named & ~truth).sum()),
            "rest": str((~named & ~truth).sum()),
        }
        assert slider.get_attribute("aria-valuetext") == f"{round(100 * at)} %"
    page.locator("#threshold-reset").press("Enter")
    assert slider.input_value() == "50"
    visit.close()


def test_downloads_need_no_network(browser, reports):
    visit = Visit(browser, reports["numbers"])
    saved = {}
    for link in visit.page.locator("a.download").all():
        with visit.page.expect_download() as download:
            link.press("Enter")
        saved[download.value.suggested_filename] = pd.read_csv(download.value.path())
    assert set(saved) == {"fragments.csv", "predictions.csv"}
    assert {"smarts", "effect", "error", "support", "examples"} <= set(saved["fragments.csv"])
    visit.close()


def test_hostile_text_stays_text(browser, hostile, tmp_path):
    graphs, y = hostile
    path = tl.GraphClassifier(depth=1).fit(graphs, y).report(tmp_path / "r.html", graphs, y)
    visit = Visit(browser, path)
    visit.open_all()
    page = visit.page
    assert EVIL in page.locator("#patterns").inner_text()
    assert EVIL in page.locator("#fragments").inner_text()
    assert EVIL_CLASS in page.locator("h1").inner_text()
    assert page.title() != "owned"
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 2
    visit.close()


def test_other_scripts_do_not_run(browser, reports, tmp_path):
    """The policy of the page is a second wall: markup that slipped in could not run."""
    altered = tmp_path / "altered.html"
    page = reports["numbers"].read_text(encoding="utf-8")
    altered.write_text(page.replace("</main>", f"{EVIL}</main>"), encoding="utf-8")
    visit = Visit(browser, altered)
    assert visit.page.title() != "owned"
    assert any("Content Security Policy" in problem for problem in visit.problems)
    assert visit.page.locator("[data-for=fragment-table]").is_visible()  # our own script ran
    visit.page.context.close()


def test_print_takes_about_two_pages(browser, reports):
    for path in reports.values():
        visit = Visit(browser, path)
        printed = visit.page.pdf(format="A4")
        assert len(re.findall(rb"/Type\s*/Page\b", printed)) <= 2
        visit.close()


# --- accessibility --------------------------------------------------------------------------------


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
    visit = Visit(
        browser, reports[name], viewport=WIDTHS[width], color_scheme=scheme, bypass_csp=True
    )
    assert violations(visit, axe) == []
    visit.open_all()
    assert violations(visit, axe) == []
    visit.page.context.close()
