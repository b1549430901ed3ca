"""The fragments that ``treelens fit`` prints."""

from __future__ import annotations

import numpy as np
import pytest

import treelens as tl
from cli.conftest import ALCOHOLS, AMINES, QUICK, SMALL, run, write_csv
from treelens.cli import fit_fragments

NUMBERS = [(s, 2.0 + 0.01 * len(s)) for s in ALCOHOLS] + [(s, 0.01 * len(s)) for s in AMINES]
THREE = [
    (f"{'C' * n}{atom}", name)
    for atom, name in (("O", "alcohol"), ("N", "amine"), ("S", "thiol"))
    for n in range(2, 12)
]


@pytest.mark.parametrize("options", [SMALL, QUICK], ids=["evidence", "svc"])
def test_classes(molecules, tmp_path, options):
    shown = run("fit", molecules, "--out", tmp_path / "m", *options)
    assert shown.code == 0, shown.err
    assert "Fragments that move predictions most" in shown.out
    assert "effect for amine ± error" in shown.out
    assert "primary aliphatic amine" in shown.out
    found = run("fit", molecules, "--out", tmp_path / "m", *options, "--json").data
    assert 1 <= len(found["fragments"]) <= fit_fragments.USUALLY_SHOWN
    assert (found["toward"], found["no_fragments_for"]) == ("amine", None)
    signs = {row["name"]: np.sign(row["effect"]) for row in found["fragments"]}
    assert signs["primary aliphatic amine"] == 1
    assert -1 in signs.values()


def test_numbers_are_those_of_the_models_own_table(tmp_path):
    data = write_csv(tmp_path / "x.csv", NUMBERS, "smiles,value")
    found = run("fit", data, "--out", tmp_path / "m", *SMALL, "--json").data
    assert found["left_out"]
    table = tl.load(tmp_path / "m").fragments([s for s, _ in NUMBERS])
    for row in found["fragments"]:
        own = table.loc[row["rank"]]
        assert (row["pattern"], row["support"]) == (own["pattern"], own["support"])
        assert row["effect"] == pytest.approx(own["effect"])
        assert row["error"] == pytest.approx(own["error"])
        assert "smarts" not in row


def test_so_many_as_asked_for(molecules, tmp_path):
    found = run("fit", molecules, "-o", tmp_path / "m", *SMALL, "--fragments", 1, "--json").data
    assert len(found["fragments"]) == 1
    shown = run("fit", molecules, "-o", tmp_path / "m", *SMALL, "--fragments", 0)
    assert "ragments" not in shown.out


def test_several_classes_only_where_asked_for(tmp_path):
    data = write_csv(tmp_path / "x.csv", THREE)
    shown = run("fit", data, "-o", tmp_path / "m", *SMALL)
    assert "take a while with 3 classes: --fragments 5" in shown.out
    shown = run("fit", data, "-o", tmp_path / "m", *SMALL, "--fragments", 3)
    assert "thiol, for thiol" in shown.out
    assert "take a while" not in shown.out


def test_many_graphs_only_where_asked_for(molecules, tmp_path, monkeypatch):
    monkeypatch.setattr(fit_fragments, "_MOST_GRAPHS", 39)
    shown = run("fit", molecules, "-o", tmp_path / "m", *SMALL)
    assert "take a while with 40 graphs" in shown.out
    monkeypatch.setattr(fit_fragments, "_MOST_GRAPHS", 40)
    assert "take a while" not in run("fit", molecules, "-o", tmp_path / "m", *SMALL).out


def test_a_pattern_without_a_name_fits_into_a_line():
    row = {"name": "", "pattern": "C(" + "C," * 50 + "C)"}
    named = fit_fragments._named(row)
    assert len(named) == 60
    assert named.endswith("…")
