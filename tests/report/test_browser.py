"""The report in a real browser."""

from __future__ import annotations

import pytest

import treelens as tl
from report.conftest import QUICK
from treelens.report import write_report

EVIL = "<script>document.title='owned'</script>"
EVIL_CLASS = "</script><img src=x onerror=\"document.title='owned'\">"


class Visit:
    """A page that was opened, with what went wrong and what it asked for."""

    def __init__(self, browser, path, **options) -> None:
        self.page = browser.new_context(**options).new_page()
        self.problems: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.problems.append(message.text))
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())

    def texts(self) -> list[str]:
        rows = self.page.locator("#pattern-table tbody:visible")
        return [row.get_attribute("data-text") for row in rows.all()]

    def numbers(self, key: str) -> list[float]:
        rows = self.page.locator("#pattern-table tbody:visible")
        return [float(row.get_attribute(f"data-{key}")) for row in rows.all()]

    def close(self) -> None:
        self.page.context.close()
        assert self.problems == []
        assert [url for url in self.requests if not url.startswith(("file:", "data:"))] == []


@pytest.fixture(scope="module")
def report(learned, synthetic, tmp_path_factory):
    return write_report(learned, tmp_path_factory.mktemp("report") / "report.html", *synthetic)


@pytest.fixture
def visit(browser, report):
    found = Visit(browser, report)
    yield found
    found.close()


def test_sorting(visit):
    assert visit.numbers("weight") == sorted(visit.numbers("weight"), reverse=True)
    head = visit.page.locator('th[data-key="support"]')
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    assert visit.numbers("support") == sorted(visit.numbers("support"), reverse=True)
    head.get_by_role("button").press("Enter")
    assert head.get_attribute("aria-sort") == "ascending"
    assert visit.numbers("support") == sorted(visit.numbers("support"))
    assert visit.page.locator("[aria-sort]").count() == 1
    visit.page.locator('th[data-key="text"] button').click()
    assert visit.texts() == sorted(visit.texts())


def test_filtering(visit):
    page = visit.page
    assert len(visit.texts()) == 25
    page.locator("#all-patterns").click()
    assert len(visit.texts()) == 100
    page.locator("#pattern-text").fill("0(0,1,2)")
    assert visit.texts()
    assert all("0(0,1,2)" in text for text in visit.texts())
    page.locator("#pattern-depth").select_option("1")
    assert visit.texts() == ["0(0,1,2)"]
    assert page.locator("#pattern-count").inner_text() == "1 of 100 patterns"
    page.locator("#pattern-class").select_option(label="-1")
    assert visit.texts() == []
    page.get_by_role("button", name="Show all", exact=True).click()
    assert len(visit.texts()) == 100


def test_a_pattern_opens_and_shows_where_it_occurs(visit):
    button = visit.page.locator(".more").first
    button.press("Enter")
    assert button.get_attribute("aria-expanded") == "true"
    more = visit.page.locator("#" + button.get_attribute("aria-controls"))
    assert more.locator(".large-tree svg").is_visible()
    assert more.locator(".occurrence svg circle").count() > 4
    button.click()
    assert not more.is_visible()


def test_a_click_on_a_point_shows_its_graph(visit, synthetic):
    page, (graphs, _) = visit.page, synthetic
    page.locator('.point[data-place="7"]').dispatch_event("click")
    assert page.locator("#panel-title").inner_text() == "Graph 7"
    drawing = page.locator("#panel-drawing")
    assert drawing.is_visible()
    assert drawing.locator("circle").count() == graphs[7].n_nodes
    labels = drawing.locator(".node-label").all_text_contents()
    assert labels == [str(label) for label in graphs[7].node_labels]
    assert page.locator("#panel-patterns li").count() == 6
    assert "Predicted" in page.locator("#panel-verdict").inner_text()


def test_a_point_can_be_hit_by_the_mouse(visit):
    visit.page.locator(".point").last.scroll_into_view_if_needed()
    visit.page.locator(".point").last.click()
    assert visit.page.locator("#panel-drawing circle").count() > 0


def test_the_keyboard_is_enough(visit):
    page = visit.page
    page.locator("#graph-map").focus()
    page.keyboard.press("ArrowRight")
    first = page.locator("#panel-title").inner_text()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("+")
    assert page.locator("#panel-title").inner_text() != first
    page.locator("#graph-number").fill("3")
    page.locator("#graph-number").press("Enter")
    assert page.locator("#panel-title").inner_text() == "Graph 3"
    page.locator("#examples .show-graph").first.press("Enter")
    wanted = page.locator("#examples .show-graph").first.inner_text()
    assert page.locator("#panel-title").inner_text() == wanted


def test_the_map_hides_a_class(visit, synthetic):
    _, y = synthetic
    button = visit.page.locator('[data-show-class="0"]')
    button.click()
    assert button.get_attribute("aria-pressed") == "false"
    assert visit.page.locator(".point:not([display])").count() == (y == 1).sum()
    button.click()
    assert visit.page.locator(".point:not([display])").count() == len(y)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_needs_no_scrolling_sideways(browser, report, scheme):
    small = Visit(browser, report, viewport={"width": 360, "height": 740}, color_scheme=scheme)
    small.page.locator(".more").first.click()
    small.page.locator("#examples .show-graph").first.click()
    assert small.page.evaluate("document.documentElement.scrollWidth") <= 360
    ink, paper = (
        small.page.evaluate(f"getComputedStyle(document.body).{name}")
        for name in ("color", "backgroundColor")
    )
    brightness = [sum(map(int, color[4:-1].split(","))) for color in (ink, paper)]
    assert (brightness[0] > brightness[1]) == (scheme == "dark")
    small.close()


def test_labels_and_classes_stay_text(browser, tmp_path):
    star = ([(0, 1), (0, 2)], {0: EVIL, 1: "b", 2: EVIL}, {(0, 1): EVIL, (0, 2): "x"})
    path = ([(0, 1), (1, 2)], {0: "b", 1: EVIL, 2: "b"}, {(0, 1): "x", (1, 2): EVIL})
    graphs, y = tl.as_graph_collection([star, path] * 6), [EVIL_CLASS, "plain"] * 6
    model = tl.GraphSVC("exponential", 1, 0, **QUICK).fit(graphs, y)
    visit = Visit(browser, write_report(model, tmp_path / "report.html", graphs, y))
    page = visit.page
    assert EVIL in "".join(visit.texts())
    for button in page.locator(".more").all():
        button.click()
    page.locator(".point").first.dispatch_event("click")
    assert EVIL in page.locator("#panel-patterns").inner_text()
    assert (
        EVIL_CLASS in page.locator("#panel-verdict").inner_text() + page.locator("h1").inner_text()
    )
    assert page.title() != "owned"
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 2
    visit.close()


def test_a_script_that_is_not_ours_does_not_run(browser, report, tmp_path):
    """The policy of the page is a second wall: even markup that slipped in could not run."""
    altered = tmp_path / "altered.html"
    page = report.read_text(encoding="utf-8")
    altered.write_text(page.replace("</main>", f"{EVIL}</main>"), encoding="utf-8")
    visit = Visit(browser, altered)
    assert visit.page.title() != "owned"
    assert any("Content Security Policy" in problem for problem in visit.problems)
    assert visit.page.locator(".point").count() > 0  # our own script ran
    visit.page.context.close()
