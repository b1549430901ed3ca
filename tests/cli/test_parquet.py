"""Parquet, SDF and Excel, in by groups of rows and out by groups of rows: those of a CSV."""

import numpy as np
import pandas as pd
import pytest

from cli.conftest import ok, refused, run, write_csv
from treelens.cli import predicting
from treelens.graphs.tables import read_parquet_blocks, read_text_table

parquet = pytest.importorskip("pyarrow.parquet", reason="needs pyarrow")
SMILES = ["C" * n + end for n in range(1, 6) for end in "NOF"]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    rows = [(s, len(s) + 0.1 * k, "yes" if k % 3 else "no") for k, s in enumerate(SMILES)]
    data = write_csv(folder / "x.csv", rows, "smiles,value,active")
    for target in ("value", "active"):
        ok("fit", data, "--target", target, "--out", folder / target, "--depth", 1, "--seed", 0)
    return [folder / "value", folder / "active"]


@pytest.mark.parametrize("chunk", [3, 4000])
def test_a_parquet_file_holds_what_a_csv_does(models, tmp_path, monkeypatch, chunk):
    monkeypatch.setattr(predicting, "CHUNK_ROWS", chunk)
    new = pd.DataFrame({"id": range(8), "smiles": [*SMILES[:4], "no molecule", "", "CCO", "CCC"]})
    new.to_csv(tmp_path / "new.csv", index=False)
    new.to_parquet(tmp_path / "new.parquet", row_group_size=5)
    ok("predict", *models, tmp_path / "new.csv", "--out", tmp_path / "p.csv", "--jobs", 1)
    done = ok(
        "predict", *models, tmp_path / "new.parquet", "--out", tmp_path / "p.parquet", "--jobs", 1
    )
    assert "8 rows; 2 not readable" in done.err
    assert parquet.ParquetFile(tmp_path / "p.parquet").num_row_groups == -(-8 // chunk)
    expected, found = pd.read_csv(tmp_path / "p.csv"), pd.read_parquet(tmp_path / "p.parquet")
    assert found.columns.tolist() == expected.columns.tolist()
    for name in expected:
        if name.endswith("in_domain"):
            truths = [None if pd.isna(x) else x for x in found[name]]
            assert {type(x) for x in truths} == {bool, type(None)}
            assert truths == [None if pd.isna(x) else x for x in expected[name]]
        elif found[name].dtype.kind in "if":
            np.testing.assert_allclose(found[name], expected[name].astype(float), rtol=1e-5)
        else:
            texts = [None if pd.isna(x) else str(x) for x in expected[name]]
            assert [None if pd.isna(x) else x for x in found[name]] == texts, name
    assert found["row"].dtype == np.int64
    assert {"value prediction", "value in_domain"} <= set(found) or "value_prediction" in found
    assert [each.name for each in tmp_path.iterdir() if "part" in each.name] == []


def test_an_sdf_and_a_sheet_hold_what_a_csv_does(models, tmp_path, monkeypatch):
    openpyxl = pytest.importorskip("openpyxl")
    from rdkit import Chem

    monkeypatch.setattr(predicting, "CHUNK_ROWS", 3)
    rows = [(s, f"=m{k}") for k, s in enumerate([*SMILES[:4], "no molecule"])]
    new = write_csv(tmp_path / "new.csv", rows, "smiles,name")
    for ending in ("csv", "sdf", "xlsx"):
        ok("predict", models[0], new, "--out", tmp_path / f"p.{ending}", "--jobs", 1)
    expected = pd.read_csv(tmp_path / "p.csv")
    with Chem.SDMolSupplier(str(tmp_path / "p.sdf")) as supplier:
        records = list(supplier)
    assert [m.GetProp("name") for m in records] == [f"=m{k}" for k in range(5)]
    assert [m.GetNumAtoms() for m in records] == [2, 2, 2, 3, 0]
    assert records[4].GetProp("problem") == expected["problem"][4]
    sheet = openpyxl.load_workbook(tmp_path / "p.xlsx").active
    header, *cells = [[cell.value for cell in row] for row in sheet.iter_rows()]
    assert header == ["structure", *expected.columns]
    place = header.index("prediction")
    for k, row in enumerate(cells[:4]):
        assert row[place] == pytest.approx(expected["prediction"][k], rel=1e-5)
        assert float(records[k].GetProp("prediction")) == pytest.approx(row[place], rel=1e-5)
    assert len(sheet._images) == 4
    assert [each.name for each in tmp_path.iterdir() if "part" in each.name] == []


def test_what_is_read_in_blocks_is_what_is_read_at_once(tmp_path):
    frame = pd.DataFrame(
        {
            "smiles": [b"CCO", b"O", b"C", b"N", b"CC"],
            "label": pd.array([1, None, 0, None, 2**60 + 1], dtype="Int64"),
            "flag": [True, False, None, True, True],
            "when": pd.to_datetime(["2020-01-01", None, "2020-01-02", "2020-01-03", None]),
            "kind": pd.Categorical(["a", "b", None, "a", "b"]),
        },
        index=pd.RangeIndex(10, 15, name="id"),
    )
    for index, name in ((frame.index, "range"), (pd.Index(list("vwxyz"), name="id"), "texts")):
        path = tmp_path / f"{name}.parquet"
        frame.set_axis(index).to_parquet(path, row_group_size=2)
        whole = read_text_table(path)
        assert whole.columns == ["id", *frame.columns]
        assert [row[0] for row in whole.rows] == [str(x) for x in index]
        assert [row[2] for row in whole.rows] == ["1", "", "0", "", str(2**60 + 1)]
        for size in (1, 2, 3, 5):
            blocks = list(read_parquet_blocks(path, size))
            assert [row for block in blocks for row in block.rows] == whole.rows
            sizes = [len(block.rows) for block in blocks]
            assert max(sizes) <= size
            first = [block.first_row for block in blocks]
            assert first == [sum(sizes[:k]) for k in range(len(sizes))]
            assert {tuple(block.columns) for block in blocks} == {tuple(whole.columns)}


def test_a_file_without_rows_has_columns(models, tmp_path):
    path = tmp_path / "empty.parquet"
    pd.DataFrame({"smiles": [], "id": []}).to_parquet(path)
    assert read_text_table(path).columns == ["smiles", "id"]
    done = run("predict", models[0], path, "--out", tmp_path / "p.parquet")
    refused(done, "column names but no rows")
    assert not (tmp_path / "p.parquet").exists()
