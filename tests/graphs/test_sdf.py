"""SDF records: molecules, names and properties."""

from __future__ import annotations

import gzip

import pytest

from treelens import read_smiles
from treelens.graphs.tables import read_sdf

Chem = pytest.importorskip("rdkit.Chem", reason="needs RDKit: pip install rdkit")


def sdf_text(names: list[str]) -> str:
    blocks = []
    for n, name in enumerate(names):
        molecule = Chem.MolFromSmiles("C" * (n + 1))
        molecule.SetProp("_Name", name)
        blocks.append(Chem.MolToMolBlock(molecule) + f">  <value>\n{n}.5\n\n$$$$\n")
    return "".join(blocks)


@pytest.mark.parametrize("name", ["x.sdf", "x.sdf.gz"])
def test_names_and_properties_of_records(tmp_path, name) -> None:
    data = sdf_text(["one", "", "three"]).encode()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    molecules, table = read_sdf(tmp_path / name, keep_hydrogens=False)
    assert [m.GetNumAtoms() for m in molecules] == [1, 2, 3]
    assert table.columns == ["name", "value"]
    assert table.rows == [["one", "0.5"], ["", "1.5"], ["three", "2.5"]]
    graphs, y = read_smiles(tmp_path / name, target="value", names="name")
    assert (graphs.names.tolist(), y.tolist()) == (["one", "", "three"], [0.5, 1.5, 2.5])


def test_records_without_names_have_no_such_column(tmp_path) -> None:
    (tmp_path / "x.sdf").write_text(sdf_text(["", ""]))
    assert read_sdf(tmp_path / "x.sdf", keep_hydrogens=False)[1].columns == ["value"]


@pytest.mark.parametrize("end", ["", "\n\n", "cut off\n"])
def test_a_record_that_cannot_be_read_keeps_its_name(tmp_path, end) -> None:
    text = sdf_text(["one", "second", "three"])
    broken = text.replace("  2  1  0", "  x  1  0", 1)
    assert broken != text
    (tmp_path / "x.sdf").write_text(broken + end)
    molecules, table = read_sdf(tmp_path / "x.sdf", keep_hydrogens=False)
    assert [m is None for m in molecules] == [False, True, False, *([True] if "cut" in end else [])]
    names = [row[table.columns.index("name")] for row in table.rows]
    assert names == ["one", "second", "three", *(["cut off"] if "cut" in end else [])]
