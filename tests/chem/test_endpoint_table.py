"""Several targets of one table: gaps, units, repeated molecules, limits, and what is refused."""

import numpy as np
import pytest

import treelens as tl
from treelens.errors import GraphDataError
from treelens.graphs.columns import several_columns

pytest.importorskip("rdkit")

ROWS = [
    "a,CCO,1.5,300,yes,7",
    "b,OCC,2.5,,no,8",  # the molecule of the first row
    "c,CCN,,200,yes,9",
    "d,CCC,,,,1",  # nothing was measured
    "e,CCCl,3.5,100,,2",
    "f,CCCCO,4.5,n.d.,no,3",
    "g,c1ccccc1,5.5,400,no,4",
    "h,C1,6.5,1,yes,5",  # no molecule
]
HEADER = "name,smiles,LogD,KSOL (uM),active,batch"


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text("\n".join([HEADER, *ROWS]) + "\n")
    return file


def _read(path, target=("LogD", "KSOL (uM)"), **more):
    more = {"max_invalid": 0.5, "task": "regression"} | more
    return tl.read_table(path, target=list(target), **more)


def test_molecules_with_any_value_are_kept_and_repeats_are_merged(path):
    table = _read(path)
    assert table.names.tolist() == ["a", "c", "e", "f", "g"]
    assert table.targets.endpoints == ("LogD", "KSOL (uM)")
    expected = [[2.0, 300], [np.nan, 200], [3.5, 100], [4.5, np.nan], [5.5, 400]]
    np.testing.assert_array_equal(table.targets.values, expected)
    assert [rows.tolist() for rows in table.merged] == [[0, 1], [2], [4], [5], [6]]
    assert table.rows.tolist() == [0, 2, 4, 5, 6]
    assert [each.unit for each in table.targets.columns] == [None, "uM"]
    assert table.counts["rows without a value, left out"] == 1
    assert table.notes[-1].endswith("LogD (4), KSOL (uM) (4).")
    graphs, y = table
    assert len(graphs) == len(y) == 5
    assert y.measured.sum() == 8


def test_rows_that_repeat_may_be_kept(path):
    table = _read(path, duplicates="keep")
    assert table.names.tolist() == ["a", "b", "c", "e", "f", "g"]
    assert table.targets.values[:2, 0].tolist() == [1.5, 2.5]


def test_numbers_and_classes_of_one_table(tmp_path):
    rows = [f"C{'C' * k}O,{0.3 * k},{'yes' if k % 2 else 'no'}" for k in range(30)]
    (tmp_path / "t.csv").write_text("\n".join(["smiles,LogD,active", *rows]) + "\n")
    table = tl.read_table(tmp_path / "t.csv", target=["LogD", "active"])
    assert [each.has_classes for each in table.targets.columns] == [False, True]
    assert table.targets.values[1].tolist() == [0.3, "yes"]
    panel = tl.GraphPanel(depth=1, max_steps=20).fit(*table)
    assert panel.classes_by_endpoint_["active"].tolist() == ["no", "yes"]
    assert panel.model_.recipe.table.smiles == "smiles"


def test_every_column_of_numbers(path):
    table = tl.read_table(path, target="all", max_invalid=0.5, task="regression")
    assert table.targets.endpoints == ("LogD", "KSOL (uM)", "batch")
    with pytest.raises(GraphDataError, match="0 columns of numbers"):
        tl.read_table(_text(path, "name,smiles\na,CCO\nb,CC\n"), target="all")


def _text(path, text):
    file = path.with_name("other.csv")
    file.write_text(text)
    return file


def test_units_and_decimal_commas_are_those_of_each_column(path):
    text = "smiles;a (nM);b\n" + "".join(f"{'C' * k};{k}00;0,{k}5\n" for k in range(1, 6))
    table = _read(_text(path, text), ["a (nM)", "b"], unit=None)
    np.testing.assert_allclose(table.targets.values[:, 0], [100, 200, 300, 400, 500])
    np.testing.assert_allclose(table.targets.values[:, 1], [0.15, 0.25, 0.35, 0.45, 0.55])


def test_a_transform_is_that_of_the_numbers(path):
    table = _read(path, transform="log10")
    assert [each.transform for each in table.targets.columns] == ["log10", "log10"]
    text = "smiles,a,b\n" + "".join(f"{'C' * k},{k - 2},{k}\n" for k in range(1, 6))
    with pytest.raises(GraphDataError, match=r"log10.* row 1"):
        _read(_text(path, text), ["a", "b"], transform="log10")


def test_limits_and_noise_are_those_of_each_column(path):
    path.write_text(path.read_text().replace("300", "<300").replace("400", ">400"))
    table = _read(path)
    assert table.targets.limits.tolist() == [[0, -1], [0, 0], [0, 0], [0, 0], [0, 1]]
    assert table.targets.values[:, 1].tolist()[::4] == [300, 400]
    assert table.notes[-1].endswith("LogD (4), KSOL (uM) (2 and 2 limits).")
    lines = [
        f"{line},{extra}"
        for line, extra in zip(
            [HEADER, *ROWS],
            ["LogD sd,LogD modifier", ",=", "0.2,=", ",", ",", "0.3,<", ",>", ",", ","],
            strict=True,
        )
    ]
    both = _read(_text(path, "\n".join(lines)), qualifier="{} modifier", noise="{} sd")
    assert both.targets.limits[:, 0].tolist() == [0, 0, -1, 1, 0]
    assert both.targets.noise.shape == (5, 2)
    assert both.targets.noise[2, 0] == 0.3
    assert np.isnan(both.targets.noise[:, 1]).all()
    with pytest.raises(GraphDataError, match=r"write .* for the name of the target"):
        _read(path, qualifier="active")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"target": ["LogD", "none"]}, "no column 'none'"),
        ({"covariates": ["batch"]}, "is for one target"),
    ],
)
def test_what_several_targets_do_not_take(path, more, words):
    with pytest.raises(GraphDataError, match=words):
        _read(path, **more)


def test_a_list_of_one_column_is_one_target(path):
    table = _read(path, ["LogD"])
    assert table.targets.endpoints is None
    assert table.target == "LogD"


def test_decimal_commas_and_names_with_commas(tmp_path):
    file = tmp_path / "comma.csv"
    rows = [f"{'C' * n}O;{n},5;{n},1;{2 * n}" for n in range(1, 9)]
    file.write_text("\n".join(["smiles;IC50 (uM);LogD 7,4;k", *rows]) + "\n")
    every = tl.read_table(file, target="all", task="regression").targets
    assert every.endpoints == ("IC50 (uM)", "LogD 7,4", "k")
    np.testing.assert_allclose(every.values[0].astype(float), [1.5, 1.1, 2.0])
    columns = ["smiles", "IC50 (uM)", "LogD 7,4", "k"]
    found = several_columns(columns, "IC50 (uM),LogD 7,4, k", "target", "the table")
    assert found == columns[1:]
    with pytest.raises(GraphDataError, match="no column 'LogD 8'"):
        several_columns(columns, "LogD 7,4,LogD 8", "target", "the table")
