"""Tables for other programs: what Excel and SDF readers get, and what never reaches them."""

import builtins
import io

import numpy as np
import pandas as pd
import pytest

import treelens as tl
from treelens.chem import exports

pytest.importorskip("rdkit")

HOSTILE = ["=1+1", "@SUM(A1)", "+cmd", "-2", "$$$$", "> <fake>", "a\n\n$$$$\nb", "\x07bell", "#N/A"]


def table():
    smiles = ["CCO", "c1ccccc1", "not a molecule", None, "CC(=O)O", "N", "C", "CN", "CC"]
    values = [1.23456789, np.nan, np.inf, -4.0, 1e9, 0.1, 5.0, 6.0, 7.0]
    return pd.DataFrame({"smiles": smiles, "name": HOSTILE, "value": values, "<odd>\n": range(9)})


@pytest.fixture
def sheet(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    pytest.importorskip("PIL")

    def read(given, **settings):
        return openpyxl.load_workbook(tl.write_table(given, tmp_path / "t.xlsx", **settings)).active

    return read


def test_a_sheet_has_numbers_texts_and_a_drawing_of_each_molecule(sheet):
    found = sheet(table())
    header, *rows = [[cell.value for cell in row] for row in found.iter_rows()]
    assert header == ["structure", "smiles", "name", "value", "<odd>\n"]
    assert [row[1] or "" for row in rows] == table()["smiles"].fillna("").tolist()
    assert [row[3] for row in rows][:4] == [1.23456789, None, "inf", -4]
    drawn = sorted(image.anchor._from.row for image in found._images)  # from 0, the header
    assert drawn == [1, 2, 5, 6, 7, 8, 9]


def test_no_cell_of_a_sheet_is_a_formula(sheet):
    cells = [row[2] for row in sheet(table()).iter_rows(min_row=2)]
    assert {cell.data_type for cell in cells} == {"s"}
    assert [cell.quotePrefix for cell in cells[:5]] == [True, True, True, False, False]
    texts = [cell.value for cell in cells]
    assert texts == [x.replace("\x07", "\N{REPLACEMENT CHARACTER}") for x in HOSTILE]


def test_names_of_columns_are_no_formulas_either(sheet):
    (header, _) = sheet(pd.DataFrame({"=A1": [1.0]})).iter_rows()
    assert (header[0].value, header[0].data_type) == ("=A1", "s")


def test_more_rows_than_are_drawn_are_said(sheet, monkeypatch):
    monkeypatch.setattr(exports, "MOST_DRAWN", 2)
    with pytest.warns(UserWarning, match="first 2 of 3 rows"):
        found = sheet(pd.DataFrame({"smiles": ["C", "CC", "CCC"]}))
    assert len(found._images) == 2


def test_an_sdf_has_a_record_for_every_row_whatever_cells_say(tmp_path):
    from rdkit import Chem

    path = tl.write_table(table(), tmp_path / "t.sdf")
    with Chem.SDMolSupplier(str(path)) as supplier:
        molecules = list(supplier)
    assert [m.GetNumAtoms() for m in molecules] == [3, 6, 0, 0, 4, 1, 1, 2, 2]
    assert [m.GetProp("(odd)") for m in molecules] == [str(k) for k in range(9)]
    assert molecules[0].GetProp("value") == "1.23457"
    assert not molecules[1].HasProp("value")
    assert molecules[4].GetConformer().GetPositions().any()  # coordinates to draw it by
    assert [m.GetProp("name") for m in molecules[:4]] == HOSTILE[:4]


def test_what_was_parsed_before_keeps_its_coordinates(tmp_path):
    molecule = exports.smiles_parser()("CCOCC")
    tl.write_table(pd.DataFrame({"smiles": ["CCOCC"]}), tmp_path / "t.sdf")
    assert molecule.GetNumConformers() == 0


def test_an_sdf_needs_molecules(tmp_path):
    with pytest.raises(ValueError, match="no column with SMILES"):
        tl.write_table(pd.DataFrame({"name": ["a"]}), tmp_path / "t.sdf")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("missing", ["openpyxl", "PIL"])
def test_a_missing_package_is_named_before_anything_is_written(tmp_path, monkeypatch, missing):
    real = builtins.__import__

    def without(name, *rest):
        if name == missing:
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match="pip install openpyxl pillow"):
        tl.write_table(table(), tmp_path / "t.xlsx")
    assert list(tmp_path.iterdir()) == []


def test_fragments_come_with_their_drawings_and_without_where_there_is_no_place(sheet, tmp_path):
    image = pytest.importorskip("PIL.Image")
    smiles = ["C" * n + end for n in range(2, 9) for end in "ON"]
    y = [3.0 * ("O" in s) for s in smiles]
    model = tl.GraphRegressor(depth=1, weights="uniform", descriptors=False).fit(smiles, y)
    fragments = model.fragments_
    found = sheet(fragments, index=True)
    assert [cell.value for cell in found[1]][:3] == ["structure", "rank", "name"]
    assert len(found._images) == len(fragments) > 0
    pixels = np.asarray(image.open(io.BytesIO(found._images[0]._data())).convert("RGB"), int)
    assert (np.ptp(pixels, axis=2) > 50).any()  # the fragment is in colour
    csv = tl.write_table(fragments, tmp_path / "f.csv")
    assert "drawing" not in pd.read_csv(csv)
