"""The page in a real browser."""

from __future__ import annotations

import re

import pandas as pd
import pytest

from serve.conftest import EVIL, serving


@pytest.fixture
def page(browser, address):
    """The page, whose errors and foreign requests fail the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    problems, requests = [], []
    page.on("console", lambda message: problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    page.goto(address)
    yield page
    assert [text for text in problems if "status of 4" not in text] == []
    assert [url for url in requests if not url.startswith((address, "data:", "blob:"))] == []
    context.close()


def ask(page, text):
    page.fill("#smiles", text)
    page.click("#predict")
    page.wait_for_selector("#table:not([hidden])")


def test_paste_look_and_edit(page, models):
    ask(page, f"CCCCO butanol\nC1CC broken\nCCCC(=O)O {EVIL}")
    page.wait_for_selector(".compound")
    assert page.title() != "owned"
    rows = page.locator("#table tbody tr")
    assert rows.count() == 3
    assert "cannot parse" in rows.nth(1).inner_text()
    assert EVIL in rows.nth(2).inner_text()
    cards = page.locator(".compound")
    assert cards.count() == 3
    value = models["logS"].predict(["CCCCO"])[0]
    assert cards.nth(0).locator(".value").inner_text() == f"{value:.2f}".replace("-", "−")
    assert cards.nth(0).locator(".neighbors figure > svg").count() == 3
    assert cards.nth(0).locator("svg").first.locator("ellipse, path").count() > 5
    line = cards.nth(0).locator("p", has_text="(base)").inner_text().replace("−", "-")
    *parts, total = (float(x) for x in re.findall(r"[+-]?\d+\.\d+", line))
    assert sum(parts) == pytest.approx(total, abs=1e-9)
    assert total == pytest.approx(value, abs=0.011)
    assert cards.nth(2).locator(".difference").count() == 0
    page.fill("#edit", "CCCCN")
    page.wait_for_selector(".difference")
    change = models["logS"].predict(["CCCCN"])[0] - value
    shown = f"{change:+.2f}".replace("-", "−")
    assert cards.nth(0).locator(".difference").inner_text().startswith(shown)
    page.fill("#edit", "CCCC(")
    page.wait_for_selector("#edit-status.error")
    rows.nth(2).locator("button").click()  # back to another row: no difference
    page.locator(".difference").first.wait_for(state="detached")
    assert page.locator("#edit").input_value() == "CCCC(=O)O"


def test_a_cell_of_a_panel_opens_the_card_of_its_endpoint(browser, panel_bench, panel):
    from treelens.serve.app import make_app

    with serving(make_app(panel_bench)) as port:
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        problems = []
        page.on("console", lambda message: problems.append(message.text))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto(f"http://127.0.0.1:{port}")
        ask(page, f"CCCCO butanol\nC1CC broken\nCCCC(=O)O {EVIL}")
        page.wait_for_selector(".compound")
        cells = page.locator("#table tbody tr").nth(2).locator("td")
        assert cells.count() == 3
        assert page.evaluate("document.documentElement.scrollWidth") == 1280
        cells.nth(1).click()
        page.wait_for_selector(".compound h2:text('Kd (nM)')")
        assert page.locator(".compound").count() == 1
        assert page.locator("td.open").count() == 1
        page.fill("#edit", "CCCCN")
        page.wait_for_selector("#edited:not([hidden]) td")
        value = panel.predict(["CCCCN"])[0, 0]
        shown = page.locator("#edited td button").first.inner_text()
        assert float(shown.replace("−", "-")) == pytest.approx(value, abs=0.006)
        assert problems == []
        page.close()


def test_upload_and_download(page, tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("compound,structure\none,CCCO\ntwo,CCCN\n")
    page.set_input_files("#file", path)
    page.wait_for_selector(".compound")
    with page.expect_download() as download:
        page.click("#download")
    saved = pd.read_csv(download.value.path())
    assert saved["compound"].tolist() == ["one", "two"]
    assert {"logS_prediction", "logS_lower_90", "acid_class"} <= set(saved)


def test_errors_are_shown(page):
    page.click("#predict")
    assert "at least one" in page.locator("#status.error").inner_text()
    page.fill("#smiles", "C" * 201)
    with page.expect_response("**/api/predict") as answer:
        page.click("#predict")
    assert answer.value.status == 413
    page.get_by_text("201 characters").wait_for()


@pytest.mark.parametrize("width", [1280, 390])
def test_layout(page, width):
    page.set_viewport_size({"width": width, "height": 900})
    ask(page, "CCCCO\nCCCN")
    page.wait_for_selector(".compound")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_interface_page(page, address):
    page.goto(f"{address}/docs")
    assert "/api/cards" in page.locator("main").inner_text()
