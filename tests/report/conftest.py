"""Small models to report on, and a browser to open the reports in."""

from __future__ import annotations

import shutil
from html.parser import HTMLParser

import numpy as np
import pytest

import treelens as tl
from treelens.report import summarize
from treelens.report.render import render

QUICK = {"gamma": 1.0, "C": 10.0, "cv": 2, "random_state": 0, "progress": False}
BROWSER_OPTIONS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
]


EVIL = "<script>document.title='owned'</script>"
EVIL_CLASS = "</script><img src=x onerror=\"document.title='owned'\">"
VOID = {"meta", "link", "input", "br", "img", "hr"}


class Outline(HTMLParser):
    """Checks that elements nest, and collects ids and what would be fetched."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.fetched: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.tags.append(tag)
        self.ids += [found["id"]] if "id" in found else []
        self.fetched += [found[k] for k in ("src", "href") if k in found and found[k][:1] != "#"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, f"</{tag}> closes something else"

    def handle_startendtag(self, tag, attributes):
        pass


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

    def open_all(self) -> None:
        """What is folded away, as a reader would open it."""
        for details in self.page.locator("details").all():
            details.evaluate("details => details.open = true")

    def numbers(self, key: str) -> list[float]:
        rows = self.page.locator("#pattern-table tbody:visible")
        return [float(row.get_attribute(f"data-{key}")) for row in rows.all()]

    def close(self) -> None:
        self.page.context.close()
        assert self.problems == []
        assert [url for url in self.requests if not url.startswith(("file:", "data:"))] == []


def outline_of(page: str) -> Outline:
    outline = Outline()
    outline.feed(page)
    assert outline.open == []
    return outline


@pytest.fixture(scope="session")
def synthetic():
    return tl.make_synthetic(n_per_substructure=8, random_state=0)


@pytest.fixture(scope="session")
def learned(synthetic):
    """A model with learned weights, trained on three quarters of the synthetic graphs."""
    graphs, y = synthetic
    train = np.arange(len(y)) % 4 != 0
    return tl.GraphSVC("wwl", 2, 3.0, **QUICK).fit(graphs[train], y[train])


@pytest.fixture(scope="session")
def molecules():
    """Small molecules with a made-up number that element counts and a ring decide."""
    pytest.importorskip("rdkit")
    chains = ["C" * n for n in range(1, 11)]
    ends = ["O", "N", "Cl", "C(=O)O", "c1ccccc1", "C1CCCC1"]
    smiles = [chain + end for chain in chains for end in ends]
    worth = {"O": 2.0, "N": 1.0, "Cl": -1.0, "C(=O)O": 3.0, "c1ccccc1": -3.0, "C1CCCC1": -2.5}
    noise = np.random.default_rng(0).normal(0.0, 0.1, len(smiles))
    clean = [-0.5 * len(chain) + worth[end] for chain in chains for end in ends]
    return tl.as_graph_collection(smiles), np.array(clean) + noise


@pytest.fixture(scope="session")
def number_model(molecules):
    """A regressor on every second molecule."""
    graphs, y = molecules
    return tl.GraphRegressor(depth=2).fit(graphs[::2], y[::2])


@pytest.fixture(scope="session")
def class_model(synthetic):
    """A Gaussian process for classes on every second of the synthetic graphs."""
    graphs, y = synthetic
    return tl.GraphClassifier(depth=2).fit(graphs[::2], y[::2])


@pytest.fixture(scope="session")
def evidence_reports(number_model, molecules, class_model, synthetic, tmp_path_factory):
    folder = tmp_path_factory.mktemp("evidence")
    given = {"numbers": (number_model, molecules), "classes": (class_model, synthetic)}
    return {
        name: model.report(folder / f"{name}.html", graphs[1::2], y[1::2])
        for name, (model, (graphs, y)) in given.items()
    }


@pytest.fixture(scope="session")
def summary(learned, synthetic):
    return summarize(learned.model_, *synthetic)


@pytest.fixture(scope="session")
def browser():
    """Chromium, or a skip that says why there is none."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    place = shutil.which("chromium") or shutil.which("chromium-browser")
    if place is None:
        pytest.skip("needs a browser: install Debian's chromium package")
    with playwright.sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=place, args=BROWSER_OPTIONS)
        yield found
        found.close()


@pytest.fixture(scope="session")
def page(summary):
    return render(summary)


@pytest.fixture(scope="session")
def of_numbers(number_model, molecules):
    graphs, y = molecules
    return number_model.summary(graphs[1::2], y[1::2])


@pytest.fixture(scope="session")
def of_classes(class_model, synthetic):
    graphs, y = synthetic
    return class_model.summary(graphs[1::2], y[1::2])
