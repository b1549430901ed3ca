"""Which columns of a table hold what."""

from __future__ import annotations

import pytest

from treelens.cli.columns import id_columns, smiles_column, target_columns, units_in
from treelens.cli.console import InputError
from treelens.graphs.tables import Table


def table_of(columns: list[str], first: list[str]) -> Table:
    return Table("x.csv", columns, [first], None)


@pytest.mark.parametrize(
    ("columns", "expected"),
    [(["SMILES", "canonical_smiles"], "SMILES"), (["SMI", "x"], "SMI"),
     (["x", "Canonical SMILES", "Isomeric SMILES"], "Canonical SMILES"),
     (["Structure", "x"], "Structure"), (["Molecule", "Mol"], "Mol"),
     (["my_smiles_column", "x"], "my_smiles_column")],
)  # fmt: skip
def test_columns_of_smiles(columns, expected):
    table = table_of(columns, ["CCO"] * len(columns))
    assert smiles_column(table, None, None, lambda text: None) == expected
    assert smiles_column(table, columns[-1], None, lambda text: None) == columns[-1]
    assert smiles_column(table, None, columns[-1], lambda text: None) == columns[-1]


def test_names_are_no_structures():
    table = table_of(["molecule", "formula"], ["ethanol", "C2H6O"])
    with pytest.raises(InputError, match="no column with 'smiles' in the name"):
        smiles_column(table, None, None, lambda text: None)


def test_columns_of_ids():
    columns = ["smiles", "Name", "ChEMBL ID", "y"]
    assert id_columns(columns, None, (), ["smiles", "y"], "x") == ("ChEMBL ID",)
    assert id_columns(columns, None, ("Name",), ["smiles", "y"], "x") == ("Name",)
    assert id_columns(["smiles", "y"], None, (), ["smiles", "y"], "x") == ()
    assert target_columns(["a,b", "a"], "a,b", "x") == ["a,b"]
    assert target_columns(["a", "b"], "b, a,b", "x") == ["b", "a"]
    assert units_in("x") is None
