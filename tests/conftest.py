"""Fixtures shared by all rooms: where real data is found, and small graphs to play with."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections import Counter
from pathlib import Path

# Tests run in two processes: their OpenMP threads would wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numba
import numpy as np
import pytest
from hypothesis import settings

from treelens import GraphCollection, read_tudataset


def pytest_configure(config: pytest.Config) -> None:
    """No example has a deadline; without numba hashes wrap aloud, and examples take long."""
    settings.register_profile("compiled", deadline=None)
    settings.register_profile("interpreted", deadline=None, max_examples=25)
    settings.load_profile("interpreted" if numba.config.DISABLE_JIT else "compiled")
    if numba.config.DISABLE_JIT:
        config.addinivalue_line("filterwarnings", "ignore:overflow encountered in scalar")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say in a line each what was not run, and why."""
    reasons = Counter(
        report.longrepr[2].removeprefix("Skipped: ")
        for report in terminalreporter.getreports("skipped")
        if isinstance(report.longrepr, tuple)
    )
    for reason, count in reasons.most_common():
        terminalreporter.write_line(f"skipped {count}: {reason}")
    if expected := len(terminalreporter.getreports("xfailed")):
        terminalreporter.write_line(
            f"xfailed {expected}: scikit-learn's checks of estimators that take tables, not graphs"
        )


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder with ``tu/NAME.zip`` and ``smiles/NAME.csv.gz``, or a skip that says why."""
    folder = os.environ.get("TREELENS_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("needs real data sets: set TREELENS_DATA to a folder with tu/ and smiles/")
    return Path(folder)


@pytest.fixture(scope="session")
def mutag() -> tuple[GraphCollection, np.ndarray]:
    """MUTAG from the data folder, else the copy in the grakel wheel, or a skip that says why."""
    places = [Path(os.environ.get("TREELENS_DATA") or "nowhere", "tu", "MUTAG.zip")]
    grakel = importlib.util.find_spec("grakel")
    if grakel is not None and grakel.origin is not None:
        places.append(Path(grakel.origin).parent / "tests" / "data" / "MUTAG")
    for place in places:
        if place.exists():
            return read_tudataset(place)
    pytest.skip("needs MUTAG: install grakel, or set TREELENS_DATA to a folder with tu/")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def browser():
    """Chromium, or a skip that says why there is none."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    place = shutil.which("chromium") or shutil.which("chromium-browser")
    if place is None:
        pytest.skip("needs a browser: install Debian's chromium package")
    with playwright.sync_playwright() as driver:
        words = (
            "headless no-sandbox disable-gpu no-first-run disable-background-networking "
            "disable-component-update disable-sync disable-quic"
        )
        options = [f"--{word}" for word in words.split()]
        found = driver.chromium.launch(executable_path=place, args=options)
        yield found
        found.close()
