"""The page on fidelity says what its rows say."""

from __future__ import annotations

import pytest
from reproduction.explained_models import MODELS
from reproduction.fidelity import N_SEEDS, ORDERS, SETS
from reproduction.rows import read_rows

from docs.conftest import ROOT
from reproduction import fidelity_page

RESULTS = ROOT / "docs" / "results"


@pytest.fixture(scope="module")
def rows():
    return read_rows(RESULTS / "fidelity.jsonl")


def test_the_page_and_the_summary_are_those_of_the_rows(rows, tmp_path):
    fidelity_page.write(tmp_path, rows)
    for name in ("fidelity.md", "fidelity.json"):
        assert (tmp_path / name).read_text() == (RESULTS / name).read_text(), name


def test_every_set_and_seed_is_there_with_every_molecule(rows):
    for model in MODELS:
        keys = {(row["set"], row["seed"]) for row in rows if row["model"] == model}
        assert keys == {(name, seed) for name in SETS for seed in range(N_SEEDS)}, model
    for row in rows:
        assert tuple(row["areas"]["deletion"]) == tuple(sorted(ORDERS))
        for areas in row["areas"].values():
            assert {len(values) for values in areas.values()} == {row["n_explained"]}


def test_a_forest_is_the_same_however_it_is_explained(rows):
    """Occlusion asks the forest alone, so both rows must have the same areas."""
    by_key = {(row["set"], row["seed"], row["model"]): row for row in rows}
    for (name, seed, model), row in by_key.items():
        if model == "ECFP4 forest by SHAP":
            other = by_key[name, seed, "ECFP4 forest"]
            assert row["molecules"] == other["molecules"]
            for kind, areas in row["areas"].items():
                assert areas["occlusion"] == pytest.approx(
                    other["areas"][kind]["occlusion"], abs=2e-3
                )
