"""Fixtures shared by all rooms: where real data is found, and small graphs to play with."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder with ``tu/NAME.zip`` and ``smiles/NAME.csv.gz``, or a skip that says why."""
    folder = os.environ.get("TREELENS_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("needs real data sets: set TREELENS_DATA to a folder with tu/ and smiles/")
    return Path(folder)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)
