"""Small models to report on, and a browser to open the reports in."""

from __future__ import annotations

from html.parser import HTMLParser

import numpy as np
import pytest

import treelens as tl

QUICK = {"gamma": 1.0, "C": 10.0, "cv": 2, "random_state": 0, "progress": False}
EVIL = "<script>document.title='owned'</script>"
EVIL_CLASS = "</script><img src=x onerror=\"document.title='owned'\">"
VOID = {"meta", "link", "input", "br", "img", "hr"}


class Outline(HTMLParser):
    """Checks that elements nest, and collects ids and what would be fetched."""

    def __init__(self):
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
    """A page that was opened, with its errors and its requests."""

    def __init__(self, browser, path, **options):
        self.page = browser.new_context(**options).new_page()
        self.problems: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.problems.append(message.text))
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())

    def open_all(self):
        for details in self.page.locator("details").all():
            details.evaluate("details => details.open = true")

    def values(self, table, column):
        """Numbers of the visible rows of a table."""
        rows = self.page.locator(f"#{table} tbody tr:visible").all()
        return [float(r.locator("td, th").nth(column).get_attribute("data-value")) for r in rows]

    def close(self):
        self.page.context.close()
        assert self.problems == []
        assert [url for url in self.requests if not url.startswith(("file:", "data:"))] == []


def outline_of(page):
    outline = Outline()
    outline.feed(page)
    assert outline.open == []
    return outline


@pytest.fixture(scope="session")
def synthetic():
    return tl.make_synthetic(n_per_substructure=8, random_state=0)


@pytest.fixture(scope="session")
def svm_model(synthetic):
    """An SVM with learned weights on every second of the synthetic graphs."""
    graphs, y = synthetic
    return tl.GraphSVC("wwl", 2, 3.0, **QUICK).fit(graphs[::2], y[::2])


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
def cases(number_model, class_model, svm_model, molecules, synthetic):
    """A model of each kind with all of its graphs: every second was trained on."""
    return {
        "numbers": (number_model, *molecules),
        "classes": (class_model, *synthetic),
        "svm": (svm_model, *synthetic),
    }


@pytest.fixture(scope="session")
def summaries(cases):
    """Summaries on the graphs that were not trained on."""
    return {name: model.summary(X[1::2], y[1::2]) for name, (model, X, y) in cases.items()}


@pytest.fixture(scope="session")
def reports(cases, tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports")
    return {
        name: model.report(folder / f"{name}.html", X[1::2], y[1::2])
        for name, (model, X, y) in cases.items()
    }


@pytest.fixture(scope="session")
def hostile():
    """Graphs and classes whose labels are markup."""
    star = ([(0, 1), (0, 2)], {0: EVIL, 1: "b", 2: EVIL}, {(0, 1): EVIL, (0, 2): "x"})
    path = ([(0, 1), (1, 2)], {0: "b", 1: EVIL, 2: "b"}, {(0, 1): "x", (1, 2): EVIL})
    return tl.as_graph_collection([star, path] * 6), [EVIL_CLASS, "plain"] * 6
