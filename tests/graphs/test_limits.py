"""Limits in tables: qualifiers beside numbers and in a column, repeated molecules, notes."""

import numpy as np
import pytest

import treelens as tl
from treelens.graphs.errors import GraphDataError
from treelens.graphs.targets import LIMITS

pytest.importorskip("rdkit")
MOLECULES = [f"{'C' * n}{end}" for n in range(1, 13) for end in "ONF"]


def _table(tmp_path, cells, qualifiers=None, molecules=MOLECULES, **asked):
    columns = [molecules, cells] + ([] if qualifiers is None else [qualifiers])
    lines = ["smiles,value" + ("" if qualifiers is None else ",relation")]
    lines += [",".join(row) for row in zip(*columns, strict=True)]
    path = tmp_path / "x.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tl.read_table(path, target="value", **asked)


def _cells(special=()):
    cells = [f"{0.5 + k}" for k in range(len(MOLECULES))]
    for place, text in special:
        cells[place] = text
    return cells


@pytest.mark.parametrize(
    ("text", "value", "sign"),
    [(">10", 10.0, 1), ("> 10", 10.0, 1), (">=10.5", 10.5, 1), ("≥1e3", 1000.0, 1),
     ("<0.5", 0.5, -1), ("≤ 0.5", 0.5, -1), ("<= -3", -3.0, -1), ("~3", 3.0, 0), ("=3", 3.0, 0),
     ("≈ 3.5", 3.5, 0), ("<<0.01", 0.01, -1)],
)  # fmt: skip
def test_qualifiers_beside_numbers(text, value, sign, tmp_path):
    table = _table(tmp_path, _cells([(4, text), (7, ">99")]))
    assert table.y[4] == value
    assert table.limits[4] == sign
    assert (np.flatnonzero(table.limits) == ([4, 7] if sign else [7])).all()
    graphs, _ = table
    assert graphs.graph_data[LIMITS].tolist() == table.limits.tolist()
    assert graphs[4:6].graph_data[LIMITS].tolist() == table.limits[4:6].tolist()
    assert sum(table.record.counts.get(f"{side} limits", 0) for side in ("lower", "upper")) == (
        np.count_nonzero(table.limits)
    )


def test_the_note_counts_limits(tmp_path):
    table = _table(tmp_path, _cells([(k, ">10000") for k in range(6)] + [(9, "<1"), (10, "~2")]))
    (note,) = [note for note in table.notes if "limit" in note]
    assert "6 of 36 values are lower limits (>10000) and 1 is an upper limit (<1)" in note
    assert "used as limits" in note
    assert "1 marked ~" in note


def test_without_limits_nothing_is_kept(tmp_path):
    table = _table(tmp_path, _cells([(3, "~7")]))
    assert table.limits is None
    assert LIMITS not in table.graphs.graph_data


@pytest.mark.parametrize("quoted", ["{}", "'{}'"])
def test_a_column_of_qualifiers(quoted, tmp_path):
    signs = ["=", ">", "<", "~", "", ">="] * 6
    table = _table(tmp_path, _cells(), [quoted.format(s) if s else s for s in signs],
                   qualifier="relation")  # fmt: skip
    expected = [{">": 1, ">=": 1, "<": -1}.get(sign, 0) for sign in signs]
    assert table.limits.tolist() == expected
    plain = _table(tmp_path, _cells(), signs)
    assert plain.limits is None
    assert any("'relation'" in note and "not used" in note for note in plain.notes)


def test_what_is_wrong_with_qualifiers_is_named(tmp_path):
    with pytest.raises(GraphDataError, match=r"row 2 .*'about'"):
        _table(tmp_path, _cells(), ["=", "about"] * 18, qualifier="relation")
    with pytest.raises(GraphDataError, match=r"row 1 .*'>' in column 'relation', but '<'"):
        _table(tmp_path, _cells([(0, "<3")]), [">", "="] * 18, qualifier="relation")
    with pytest.raises(GraphDataError, match="classes"):
        _table(tmp_path, ["a", "b"] * 18, ["="] * 36, qualifier="relation", task="classification")
    with pytest.raises(GraphDataError, match="nothing"):
        _table(tmp_path, _cells(), qualifier="nothing")
    with pytest.raises(GraphDataError, match="must be measured ones"):
        _table(tmp_path, [f">{k}" for k in range(36)], task="regression")
    with pytest.raises(GraphDataError, match="task='classification'"):
        _table(tmp_path, [">10", "<=10"] * 18)


def test_classes_keep_their_signs(tmp_path):
    table = _table(tmp_path, [">10", "<=10"] * 18, task="classification")
    assert set(table.y) == {">10", "<=10"}
    assert table.limits is None


@pytest.mark.parametrize(
    ("cells", "value", "sign"),
    [(["5", "7", ">4"], 6.0, 0), ([">4", "<6", "5"], 5.0, 0), ([">10", ">20", ">15"], 20.0, 1),
     (["<10", "<2"], 2.0, -1), ([">4", "<8"], 6.0, 0), (["5", ">5000"], 5.0, 0)],
)  # fmt: skip
def test_repeated_molecules(cells, value, sign, tmp_path):
    """Measured values win; of limits alone the tightest counts."""
    molecules = ["OCCCCBr"] * len(cells) + MOLECULES
    table = _table(tmp_path, cells + _cells(), molecules=molecules)
    assert table.y[0] == value
    assert (0 if table.limits is None else table.limits[0]) == sign
    torn = [note for note in table.notes if "far apart" in note]
    assert bool(torn) == (cells == ["5", ">5000"])


def test_limits_merge_on_the_learned_scale(tmp_path):
    """Between >1 and <100 lies 10 on the scale of the logarithm."""
    table = _table(
        tmp_path, [">1", "<100", *_cells()], molecules=["OCCCCBr"] * 2 + MOLECULES,
        transform="log10",
    )  # fmt: skip
    assert table.y[0] == pytest.approx(10.0)


def test_first_and_keep(tmp_path):
    molecules, cells = ["OCCCCBr"] * 2 + MOLECULES, [">4", "9", *_cells()]
    assert _table(tmp_path, cells, molecules=molecules, duplicates="first").limits[0] == 1
    kept = _table(tmp_path, cells, molecules=molecules, duplicates="keep")
    assert kept.limits[:2].tolist() == [1, 0]
