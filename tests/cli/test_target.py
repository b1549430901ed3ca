"""Targets of a table: numbers, classes, and the signs that tell them apart."""

from __future__ import annotations

import numpy as np

from cli.conftest import ALCOHOLS
from treelens.cli.data import read_training_data
from treelens.cli.target import looks_measured


def test_decimal_commas(tmp_path):
    lines = ["smiles;value", *(f"{s};{i},25" for i, s in enumerate(ALCOHOLS))]
    (tmp_path / "x.csv").write_text("\n".join(lines))
    notes: list[str] = []
    found = read_training_data(str(tmp_path / "x.csv"), task="auto", note=notes.append)
    assert found.y.tolist() == [i + 0.25 for i in range(20)]
    assert any("decimal commas" in note for note in notes)


def test_when_numbers_are_measured():
    assert looks_measured(np.arange(40))
    assert looks_measured(np.arange(12) * 7)
    assert not looks_measured(np.arange(300) % 7)
    assert not looks_measured(np.array(["a", "b"]))
    assert looks_measured(np.linspace(0, 1, 50))
    assert not looks_measured(np.arange(100) % 2 * 0.5)
