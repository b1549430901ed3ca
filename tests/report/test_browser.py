"""The report in a real browser."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

import treelens as tl
from report.conftest import EVIL, EVIL_CLASS, QUICK, Visit
from treelens.explain.scene import AGAINST, FOR, NEUTRAL
from treelens.report import write_report


@pytest.fixture(scope="module")
def report(learned, synthetic, tmp_path_factory):
    return write_report(
        learned.model_, tmp_path_factory.mktemp("report") / "report.html", *synthetic
    )


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
    page.locator("#pattern-group").select_option(label="-1")
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


def drawn(svg) -> dict[str, list]:
    """What a drawing of the page shows, node by node and edge by edge."""
    circles, words = svg.locator("circle.node-rim").all(), svg.locator(".node-label").all()
    fills = [re.findall(r"\d+", circle.get_attribute("fill")) for circle in circles]
    paths = [path.get_attribute("d") for path in svg.locator(".drawn-edge").all()]
    return {
        "places": [(float(c.get_attribute("cx")), float(c.get_attribute("cy"))) for c in circles],
        "fills": [tuple(map(int, fill)) for fill in fills],
        "words_at": [float(word.get_attribute("x")) for word in words],
        "words": [word.text_content() for word in words],
        "titles": svg.locator("g title").all_text_contents(),
        "edges": [list(map(float, re.findall(r"-?[\d.]+", path))) for path in paths],
    }


@pytest.mark.parametrize("index", [7, 40])
def test_every_node_has_the_colour_of_its_own_contribution(visit, learned, synthetic, index):
    graph = synthetic[0][index]
    visit.page.locator(f'.point[data-place="{index}"]').dispatch_event("click")
    found = drawn(visit.page.locator("#panel-drawing"))
    values = learned.explain(graph).node_contributions
    limit = np.abs(values).max()
    ends = np.array([FOR if value > 0 else AGAINST for value in values])
    expected = NEUTRAL + (np.abs(values) / limit)[:, None] * (ends - NEUTRAL)
    np.testing.assert_allclose(found["fills"], expected, atol=2)
    assert np.abs(np.diff(expected, axis=0)).max() > 20, "neighbours alike would hide a shift"
    assert found["words"] == [str(label) for label in graph.node_labels]
    assert found["words_at"] == [x for x, _ in found["places"]]
    for title, label, value in zip(found["titles"], graph.node_labels, values, strict=True):
        said, number = title.split(": ")
        assert said == str(label)
        assert float(number.replace("\u2212", "-")) == pytest.approx(value, abs=0.006)
    ends_of_lines = [[*found["places"][u], *found["places"][v]] for u, v in graph.edges]
    assert found["edges"] == ends_of_lines


def test_the_legend_has_blue_against_on_the_left(visit):
    visit.page.locator(".point").first.dispatch_event("click")
    bar = visit.page.locator("#panel-legend .legend-bar")
    painted = bar.evaluate("bar => bar.style.background")
    stops = [tuple(map(int, stop)) for stop in re.findall(r"rgb\((\d+), (\d+), (\d+)\)", painted)]
    assert (stops[0], stops[-1]) == (AGAINST, FOR)
    texts = visit.page.locator("#panel-legend span").all_text_contents()
    assert texts[0].startswith("against ")
    assert texts[-1].startswith("for ")


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
    model = tl.GraphSVC("wwl", 1, 0, **QUICK).fit(graphs, y)
    visit = Visit(browser, write_report(model.model_, tmp_path / "report.html", graphs, y))
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


@pytest.mark.parametrize("word", ["constructor", "__proto__", "toString", "hasOwnProperty"])
def test_labels_that_scripts_know_as_something_else(browser, tmp_path, word):
    star = ([(0, 1), (0, 2)], {0: word, 1: "b", 2: "c"}, {(0, 1): word, (0, 2): "="})
    path = ([(0, 1), (1, 2)], {0: "b", 1: word, 2: "b"}, {(0, 1): "-", (1, 2): word})
    graphs, y = tl.as_graph_collection([star, path] * 6), [word, "plain"] * 6
    model = tl.GraphSVC("wwl", 1, 0, **QUICK).fit(graphs, y)
    visit = Visit(browser, write_report(model.model_, tmp_path / "report.html", graphs, y))
    page = visit.page
    page.locator(".point").first.dispatch_event("click")
    drawing = page.locator("#panel-drawing")
    assert drawing.locator("circle").count() == 3
    assert drawing.locator(".drawn-edge").count() == 3  # a single line and a double one
    assert drawing.locator(".edge-label").all_text_contents() == [word[:8]]
    page.locator(".more").first.click()
    assert page.locator(".occurrence svg circle").count() > 3
    assert word in page.locator("#panel-verdict").inner_text()
    visit.close()


def test_lone_surrogates_show_as_their_code(browser, tmp_path):
    """Text that was read with the wrong encoding; no file of UTF-8 can hold it as it is."""
    odd = "a\udce4"
    star = ([(0, 1), (0, 2)], {0: odd, 1: "b", 2: "c"}, {(0, 1): odd, (0, 2): "x"})
    path = ([(0, 1), (1, 2)], {0: "b", 1: odd, 2: "b"}, {(0, 1): "x", (1, 2): odd})
    graphs, y = tl.as_graph_collection([star, path] * 6), [odd, "a\udce5"] * 6
    model = tl.GraphSVC("wwl", 1, 0, **QUICK).fit(graphs, y)
    visit = Visit(browser, write_report(model.model_, tmp_path / "report.html", graphs, y))
    visit.page.locator(".point").first.dispatch_event("click")
    shown = visit.page.locator("body").inner_text()
    assert "a\\udce4" in shown
    assert "a\\udce5" in shown  # classes that differ only there stay apart
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


# --- Gaussian processes -------------------------------------------------------------------------


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["numbers", "classes"])
def test_the_report_on_a_gaussian_process(browser, evidence_reports, name, scheme, width):
    size = {"width": width, "height": 900}
    visit = Visit(browser, evidence_reports[name], viewport=size, color_scheme=scheme)
    page = visit.page
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    if width == 1280:
        assert page.evaluate("document.documentElement.scrollHeight") <= 6 * 900
        assert page.locator("#glance").bounding_box()["height"] <= 900  # the first screen
    visit.open_all()
    assert visit.numbers("size") == sorted(visit.numbers("size"), reverse=True)
    page.locator(".more").first.click()
    assert page.locator(".occurrence svg circle").count() > 0
    page.locator("#pattern-depth").select_option("1")
    assert set(visit.numbers("depth")) == {1.0}
    tree = page.locator("#pattern-group option").nth(1).inner_text()
    page.locator("#pattern-group").select_option(tree)
    shown = page.locator("#pattern-table tbody:visible").all()
    assert {row.get_attribute("data-group") for row in shown} == {tree}
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    visit.close()


def test_names_and_labels_of_a_gaussian_process_stay_text(browser, tmp_path):
    star = ([(0, 1), (0, 2)], {0: EVIL, 1: "b", 2: EVIL}, {(0, 1): EVIL, (0, 2): "x"})
    path = ([(0, 1), (1, 2)], {0: "b", 1: EVIL, 2: "b"}, {(0, 1): "x", (1, 2): EVIL})
    graphs = tl.as_graph_collection([star, path] * 6)
    model = tl.GraphClassifier(depth=1).fit(graphs, [EVIL_CLASS, "plain"] * 6)
    path = model.report(tmp_path / "report.html", graphs, [EVIL_CLASS, "plain"] * 6)
    visit = Visit(browser, path)
    page = visit.page
    visit.open_all()
    for button in page.locator(".more").all():
        button.click()
    assert EVIL in "".join(visit.texts())
    assert EVIL in page.locator("#fragments").inner_text()
    assert EVIL_CLASS in page.locator("h1").inner_text()
    assert page.title() != "owned"
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 2
    visit.close()


def test_tables_are_downloaded_without_a_network(browser, evidence_reports, number_model):
    visit = Visit(browser, evidence_reports["numbers"])
    links = visit.page.locator("a.download").all()
    saved = {}
    for link in links:
        with visit.page.expect_download() as download:
            link.press("Enter")
        saved[download.value.suggested_filename] = pd.read_csv(download.value.path())
    assert set(saved) == {"fragments.csv", "predictions.csv"}
    assert {"smarts", "effect", "error", "support", "examples"} <= set(saved["fragments.csv"])
    assert len(saved["predictions.csv"]) == len(number_model.train_values_)
    visit.close()


def test_the_threshold_slider_by_keyboard(browser, evidence_reports, class_model, synthetic):
    graphs, y = synthetic
    said = class_model.predict_proba(graphs[1::2])[:, 1]
    truth = y[1::2] == class_model.classes_[1]
    visit = Visit(browser, evidence_reports["classes"])
    page = visit.page
    page.locator(".threshold summary").press("Enter")
    slider = page.locator("#threshold")
    for key in ("Home", "End", "PageDown", "ArrowLeft"):
        slider.press(key)
        at = int(slider.input_value()) / 100
        named = said >= at
        shown = {
            x: page.locator(f"#threshold-{x}").inner_text() for x in ("found", "alarms", "rest")
        }
        assert shown == {
            "found": str((named & truth).sum()), "alarms": str((named & ~truth).sum()),
            "rest": str((~named & ~truth).sum()),
        }  # fmt: skip
        assert slider.get_attribute("aria-valuetext") == f"{round(100 * at)} %"
    slider.press("Home")
    assert page.locator("#threshold-recall").inner_text() == "100 %"
    page.locator("#threshold-reset").press("Enter")
    assert slider.input_value() == "50"
    visit.close()


def test_fragments_and_predictions_are_sorted_and_filtered(browser, evidence_reports, number_model):
    visit = Visit(browser, evidence_reports["numbers"])
    page = visit.page
    visit.open_all()

    def values(table, place):
        rows = page.locator(f"#{table} tbody tr:visible").all()
        return [float(row.locator("td, th").nth(place).get_attribute("data-value")) for row in rows]

    assert values("fragment-table", 1) == sorted(values("fragment-table", 1))  # by rank
    page.locator("#fragment-table thead button").nth(1).press("Enter")  # by effect
    effects = values("fragment-table", 2)
    assert len(effects) > 2
    assert effects == sorted(effects, reverse=True)
    assert page.locator("#fragment-table [aria-sort]").get_attribute("aria-sort") == "descending"
    assert len(values("prediction-table", 3)) == 15
    page.locator('[data-for="prediction-table"] button').click()
    page.locator("#prediction-table thead button").nth(5).click()  # by error
    errors = values("prediction-table", 5)
    assert len(errors) == len(number_model.train_values_)
    assert errors == sorted(errors, reverse=True)
    page.locator('[data-for="prediction-table"] input').fill("(=O)O")
    shown = page.locator("#prediction-table tbody tr:visible").all()
    assert shown
    assert all("(=O)O" in row.inner_text() for row in shown)
    visit.close()


def test_a_printed_report_is_about_two_pages(browser, evidence_reports):
    for path in evidence_reports.values():
        visit = Visit(browser, path)
        printed = visit.page.pdf(format="A4")
        assert len(re.findall(rb"/Type\s*/Page\b", printed)) <= 2
        visit.close()
