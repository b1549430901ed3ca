"""The page on fragments says what its rows say, and the rows say what their fragments say."""

from __future__ import annotations

import json

import pytest
from reproduction.rows import read_rows
from reproduction.toxicophores import CLASSES, METHODS, SAMPLES, WHOLE, summary

from docs.conftest import ROOT
from reproduction import fragments_page

RESULTS = ROOT / "docs" / "results"


@pytest.fixture(scope="module")
def rows():
    return read_rows(RESULTS / "fragments.jsonl")


def test_the_page_and_the_summary_are_those_of_the_rows(rows, tmp_path):
    fragments_page.write(tmp_path, rows)
    for name in ("fragments.md", "fragments.json"):
        assert (tmp_path / name).read_text() == (RESULTS / name).read_text(), name


def test_what_is_met_follows_from_the_fragments(rows):
    ames = [row for row in rows if row["part"] == "Ames"]
    assert {(row["sample"], row["method"]) for row in ames} == {
        (WHOLE, "fragments"),
        *((sample, method) for sample in SAMPLES for method in METHODS),
    }
    for row in ames:
        again = summary(row["rows"])
        assert {name: row[name] for name in again} == again


def test_what_the_guide_claims(rows):
    """Eight of eight on both halves; planted patterns first; signs agree in four of five."""
    told = json.loads((RESULTS / "fragments.json").read_text())
    for sample in (*SAMPLES, WHOLE):
        ours = told["ames"][f"{sample}, fragments"]
        assert ours["n_met"] == ours["n_met_either_sign"] == len(CLASSES) == 8
        assert ours["n_single_atoms"] == 0
    for sample in SAMPLES:
        for rival in ("ECFP4 forest", "ECFP4 forest by SHAP", "L1 on the patterns"):
            assert told["ames"][f"{sample}, {rival}"]["n_met"] < 8
    assert told["planted"] == [10, 10]
    assert told["crippen"] == pytest.approx({"ESOL": 0.85, "Lipophilicity": 0.9})
    repeated = [told["ames"][f"{sample}, fragments"]["n_repeated"] for sample in SAMPLES]
    sparse = [told["ames"][f"{sample}, L1 on the patterns"]["n_met"] for sample in SAMPLES]
    forest = [told["ames"][f"{sample}, ECFP4 forest"]["n_met"] for sample in SAMPLES]
    by_shap = [told["ames"][f"{sample}, ECFP4 forest by SHAP"]["n_met"] for sample in SAMPLES]
    assert (repeated, sparse, forest, by_shap) == ([3, 4], [5, 6], [6, 6], [6, 6])
    assert {k: round(x, 2) for k, x in told["stability"].items()} == {
        "800 of half 1": 0.64, "800 of half 2": 0.64, "2000 of half 1": 0.72,
        "2000 of half 2": 0.72, WHOLE: 0.74,
    }  # fmt: skip


def test_the_figure_is_plain_svg():
    text = (RESULTS / "figures" / "fragments.svg").read_text()
    assert text.startswith("<svg")
    assert "<script" not in text
    assert text.count("<title>Fragment ") == 6
