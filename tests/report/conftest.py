"""Small models to report on, and a browser to open the reports in."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

import treelens as tl
from treelens.report import summarize

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


@pytest.fixture(scope="session")
def synthetic():
    return tl.make_synthetic(n_per_substructure=8, random_state=0)


@pytest.fixture(scope="session")
def learned(synthetic):
    """A model with learned weights, trained on three quarters of the synthetic graphs."""
    graphs, y = synthetic
    train = np.arange(len(y)) % 4 != 0
    return tl.GraphSVC("exponential", 2, 3.0, **QUICK).fit(graphs[train], y[train])


@pytest.fixture(scope="session")
def summary(learned, synthetic):
    return summarize(learned, *synthetic)


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
