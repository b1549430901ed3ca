"""Limits in tables, with the numbers or in a column of their own."""

from __future__ import annotations

import numpy as np
import pytest

import treelens as tl
from graphs.test_molecule_table import write
from treelens.errors import GraphDataError

MOLECULES = [f"{'C' * n}{end}" for n in range(1, 13) for end in "ONF"]


def _table(tmp_path, cells, qualifiers=None, molecules=MOLECULES, **asked):
    columns = [molecules, cells] + ([] if qualifiers is None else [qualifiers])
    header = "smiles,value" + ("" if qualifiers is None else ",relation")
    path = write(tmp_path / "x.csv", zip(*columns, strict=True), header)
    return tl.read_table(path, target="value", **asked)


def _cells(special=()):
    cells = [f"{0.5 + k}" for k in range(len(MOLECULES))]
    for place, text in special:
        cells[place] = text
    return cells


@pytest.mark.parametrize(
    ("text", "value", "sign"),
    [
        (">10", 10.0, 1),
        ("> 10", 10.0, 1),
        (">=10.5", 10.5, 1),
        ("≥1e3", 1000.0, 1),
        ("<0.5", 0.5, -1),
        ("≤ 0.5", 0.5, -1),
        ("<= -3", -3.0, -1),
        ("~3", 3.0, 0),
        ("=3", 3.0, 0),
        ("≈ 3.5", 3.5, 0),
        ("<<0.01", 0.01, -1),
    ],
)
def test_qualifiers_beside_numbers(text, value, sign, tmp_path):
    table = _table(tmp_path, _cells([(4, text), (7, ">99")]))
    assert table.targets.values[4] == value
    assert table.targets.limits[4] == sign
    assert (np.flatnonzero(table.targets.limits) == ([4, 7] if sign else [7])).all()
    n_limits = [table.record.counts.get(f"{side} limits", 0) for side in ("lower", "upper")]
    assert n_limits == [np.sum(table.targets.limits == 1), np.sum(table.targets.limits == -1)]


def test_the_note_counts_limits(tmp_path):
    table = _table(tmp_path, _cells([(k, ">10000") for k in range(6)] + [(9, "<1"), (10, "~2")]))
    (note,) = [note for note in table.notes if "limit" in note]
    assert "6 of 36 values are lower limits (>10000) and 1 of 36" in note
    table = _table(tmp_path, _cells([(3, "~7")]))
    assert table.targets.limits is None


@pytest.mark.parametrize("quoted", ["{}", "'{}'"])
def test_a_column_of_qualifiers(quoted, tmp_path):
    signs = ["=", ">", "<", "~", "", ">="] * 6
    table = _table(
        tmp_path, _cells(), [quoted.format(s) if s else s for s in signs], qualifier="relation"
    )
    expected = [{">": 1, ">=": 1, "<": -1}.get(sign, 0) for sign in signs]
    assert table.targets.limits.tolist() == expected
    plain = _table(tmp_path, _cells(), signs)
    assert plain.targets.limits is None
    assert any("'relation'" in note and "not used" in note for note in plain.notes)


@pytest.mark.parametrize(
    ("cells", "qualifiers", "asked", "words"),
    [
        (_cells(), ["=", "about"] * 18, {"qualifier": "relation"}, r"row 2 .*'about'"),
        (_cells([(0, "<3")]), [">", "="] * 18, {"qualifier": "relation"}, "'relation', but '<'"),
        (
            ["a", "b"] * 18,
            ["="] * 36,
            {"qualifier": "relation", "task": "classification"},
            "classes",
        ),
        (_cells(), None, {"qualifier": "nothing"}, "nothing"),
        ([f">{k}" for k in range(36)], None, {"task": "regression"}, "must be measured ones"),
        ([">10", "<=10"] * 18, None, {}, "task='classification'"),
    ],
)
def test_what_is_wrong_with_qualifiers_is_named(cells, qualifiers, asked, words, tmp_path):
    with pytest.raises(GraphDataError, match=words):
        _table(tmp_path, cells, qualifiers, **asked)


def test_classes_keep_their_signs(tmp_path):
    table = _table(tmp_path, [">10", "<=10"] * 18, task="classification")
    assert set(table.targets.values) == {">10", "<=10"}
    assert table.targets.limits is None


@pytest.mark.parametrize(
    ("cells", "value", "sign"),
    [
        (["5", "7", ">4"], 6.0, 0),
        ([">4", "<6", "5"], 5.0, 0),
        ([">10", ">20", ">15"], 20.0, 1),
        (["<10", "<2"], 2.0, -1),
        ([">4", "<8"], 6.0, 0),
        (["5", ">5000"], 5.0, 0),
    ],
)
def test_repeated_molecules(cells, value, sign, tmp_path):
    """Measured values win; of limits alone the tightest counts."""
    molecules = ["OCCCCBr"] * len(cells) + MOLECULES
    table = _table(tmp_path, cells + _cells(), molecules=molecules)
    assert table.targets.values[0] == value
    assert (0 if table.targets.limits is None else table.targets.limits[0]) == sign
    torn = [note for note in table.notes if "far apart" in note]
    assert bool(torn) == (cells == ["5", ">5000"])


def test_limits_of_repeated_molecules_on_other_scales_and_in_other_ways(tmp_path):
    molecules, cells = ["OCCCCBr"] * 2 + MOLECULES, [">1", "<100", *_cells()]
    merged = _table(tmp_path, cells, molecules=molecules, transform="log10")
    assert merged.targets[0] == pytest.approx(10.0)  # between the two on the scale of the logarithm
    first = _table(tmp_path, cells, molecules=molecules, duplicates="first")
    assert first.targets.limits[0] == 1
    kept = _table(tmp_path, cells, molecules=molecules, duplicates="keep")
    assert kept.targets.limits[:2].tolist() == [1, -1]
