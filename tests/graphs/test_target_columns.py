"""Limits in tables, with the numbers or in a column of their own."""

from __future__ import annotations

import numpy as np
import pytest

import treelens as tl
from chem.test_molecule_table import write
from treelens.chem.repeats import merged_measurements
from treelens.errors import GraphDataError
from treelens.graphs.target_columns import as_target, check_learnable, looks_measured
from treelens.targets import Targets

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
        (["5", "5", "5", "6", ">4"], 5.5, 0),
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
    molecules, cells = ["OCCCCBr"] * 2 + MOLECULES, ["1", "100", *_cells()]
    merged = _table(tmp_path, cells, molecules=molecules, transform="log10")
    assert merged.targets[0] == pytest.approx(10.0)  # between the two on the scale of the logarithm
    assert any("the geometric mean of its different values" in note for note in merged.notes)
    cells[:2] = [">1", "<100"]
    first = _table(tmp_path, cells, molecules=molecules, duplicates="first")
    assert first.targets.limits[0] == 1
    kept = _table(tmp_path, cells, molecules=molecules, duplicates="keep")
    assert kept.targets.limits[:2].tolist() == [1, -1]


@pytest.mark.parametrize("cells", [[">4", "<8"], [">7", "<5"], ["<-4", ">-8", ">-6"]])
def test_molecules_with_limits_on_both_sides_alone_are_left_out(cells, tmp_path):
    molecules = ["OCCCCBr"] * len(cells) + MOLECULES
    table = _table(tmp_path, cells + _cells(), molecules=molecules)
    assert table.targets.tolist() == [float(cell) for cell in _cells()]
    assert 0 not in table.rows
    (note,) = [note for note in table.notes if "left out" in note]
    shown = ", ".join(f"row {k + 1} (line {k + 2}): {cell}" for k, cell in enumerate(cells))
    assert "1 repeated molecule with lower and upper limits and no measured value" in note
    assert shown in note


def test_merged_measurements():
    groups = np.array([0, 0, 0, 3, 4, 4, 6, 6])
    y = Targets(
        [5.0, 5.0, 20.0, 1370.0, 3.0, 4.0, 9.0, 2.0],
        limits=list("====>>><"),
        noise=[2.0, 1.0, 2.0, 7.0, 1.0, 2.0, 1.0, 1.0],
    )
    merged, clear, _ = merged_measurements(y, groups)
    assert merged.values.tolist() == [12.5, 1370.0, 4.0]
    assert merged.limits.tolist() == [0, 0, 1]
    assert clear.tolist() == [True, True, True, False]
    np.testing.assert_allclose(merged.noise, [np.sqrt(1 + 4) / 2, 7.0, 2.0])
    logs, *_ = merged_measurements(Targets(y.values, limits=y.limits, transform="log10"), groups)
    assert logs.values.tolist() == [
        pytest.approx(10.0),
        1370.0,
        4.0,
    ]  # 1370, not 1369.9999999999998
    with pytest.raises(GraphDataError, match="sample_weight"):
        merged_measurements(Targets([1.0, 2.0], sample_weight=[1.0, 2.0]), np.zeros(2, dtype=int))


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_noise_of_merged_limits_does_not_depend_on_the_sign_of_values(sign):
    y = np.array([4.0, 6.0, 1.0]) + 10 * sign
    merged, *_ = merged_measurements(
        Targets(y, limits=[">", ">", "="], noise=[1.0, 2.0, 3.0]), np.array([0, 0, 2])
    )
    assert merged.noise.tolist() == [2.0, 3.0]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (np.arange(100) % 20, True),  # twenty different whole numbers
        (np.arange(100) % 19, False),
        (np.arange(9) % 5, True),  # more than half of them differ
        (np.arange(10) % 5, False),
        (np.arange(2), False),
        (np.arange(3), True),
        (np.arange(300) % 20 + 0.5, True),  # twenty different ones
        (np.arange(300) % 19 + 0.5, False),
        (np.arange(50) % 6 + 0.5, True),  # more than a tenth of them differ
        (np.arange(60) % 6 + 0.5, False),
        (np.arange(4) % 2 + 0.5, False),
        (np.arange(4) % 3 + 0.5, True),
        (np.array(["a", "b", "c"] * 30), False),
    ],
)
def test_what_is_a_measurement_and_what_a_class(values, expected):
    assert looks_measured(values) == expected


def test_names_are_an_identifier_from_twenty_one_on_where_most_appear_once():
    def refused(n_names, n_rows):
        names = np.array([f"name {k % n_names}" for k in range(n_rows)])
        with pytest.raises(GraphDataError) as caught:
            check_learnable(names, "classification", "name", str)
        return "identifier" if "an identifier" in str(caught.value) else "single"

    assert refused(21, 41) == "identifier"
    assert refused(20, 39) == "single"
    check_learnable(np.arange(42) % 21, "classification", "name", str)  # half: two of each
    assert refused(101, 202) == "identifier"
    check_learnable(np.array(list(map(str, np.arange(200) % 100))), "auto", "name", str)


def test_whole_numbers_are_integers_as_long_as_a_float_holds_all_of_them():
    assert as_target(["9007199254740991.0", "1.0"]).dtype.kind == "i"
    assert as_target(["9007199254740992.0", "1.0"]).dtype.kind == "f"


@pytest.mark.parametrize(("n_remarks", "skipped"), [(1, True), (7, True), (8, False)])
def test_a_fifth_of_a_column_of_numbers_may_be_remarks(n_remarks, skipped, tmp_path):
    n = 35  # rows
    special = [(5 * k if k < 7 else 34, f"see note {k % 2}") for k in range(n_remarks)]
    cells = [f"{0.5 + k}" for k in range(n)]
    for place, text in special:
        cells[place] = text
    asked = {"molecules": MOLECULES[:n]}
    if skipped:
        table = _table(tmp_path, cells, **asked)
        assert len(table.targets) == n - n_remarks
        assert any(f"in {n_remarks} of {n} rows" in note for note in table.notes)
    else:  # a column of texts, too many for classes
        with pytest.raises(GraphDataError, match="an identifier"):
            _table(tmp_path, cells, **asked)


@pytest.mark.parametrize(("n_remarks", "plain"), [(7, True), (8, False)])
def test_decimal_commas_are_read_where_four_fifths_are_numbers(n_remarks, plain, tmp_path):
    n = 35
    cells = [f'"{k},25"' for k in range(n - n_remarks)] + ["see note"] * n_remarks
    asked = {"molecules": MOLECULES[:n]}
    if plain:
        assert _table(tmp_path, cells, **asked).targets.values[2] == 2.25
    else:
        with pytest.raises(GraphDataError, match="an identifier"):
            _table(tmp_path, cells, **asked)
