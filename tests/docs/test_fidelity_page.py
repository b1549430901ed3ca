"""The page on fidelity says what its rows say."""

from __future__ import annotations

import pytest
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
    keys = {(row["set"], row["seed"]) for row in rows if row["model"] == "treelens"}
    assert keys == {(name, seed) for name in SETS for seed in range(N_SEEDS)}
    for row in rows:
        assert tuple(row["areas"]["deletion"]) == tuple(sorted(ORDERS))
        for areas in row["areas"].values():
            assert {len(values) for values in areas.values()} == {row["n_explained"]}
