"""Units of targets: which column names them, and what is converted."""

from __future__ import annotations

import numpy as np
import pytest

import treelens as tl
from chem.test_molecule_table import ALCOHOLS, AMINES, notes_of, write
from treelens.chem.units import Unit
from treelens.errors import GraphDataError

pytest.importorskip("rdkit")
from rdkit.Chem import Descriptors, MolFromSmiles

SMILES = ALCOHOLS + AMINES
VALUES = [1.5 + 1.25 * k for k in range(40)]
ONE = ["nM"] * 40
MIXED = ["nM"] * 30 + ["uM"] * 5 + ["ug.mL-1"] * 3 + ["%", ""]


def read(tmp_path, target="Standard Value", units=ONE, name="Standard Units", more=(), **asked):
    """Read a table with a column of units and perhaps one more column."""
    columns = {"smiles": SMILES, target: VALUES, name: units, **dict(more)}
    rows = zip(*columns.values(), strict=True)
    data = write(tmp_path / "x.csv", rows, ",".join(columns))
    return tl.read_table(data, **{"target": target, **asked})


@pytest.mark.parametrize(
    ("one", "other", "factor"),
    [
        ("uM", "nM", 1e3),
        ("µM", "umol/L", 1.0),
        ("ug/mL", "mg.L-1", 1.0),
        ("ug ml-1", "mg/dL", 0.1),
        ("mL/min/kg", "L.hr-1.kg-1", 0.06),
        ("ug/mL", "nM", 5000.0),
        ("uM", "ug/mL", 0.2),
        ("%", "%", 1.0),
        ("about", "about", 1.0),
        ("%", "nM", np.nan),
        ("mg/kg", "nM", np.nan),
        ("about", "nM", np.nan),
        ("h", "nM", np.nan),
    ],
)
def test_factors_between_units(one, other, factor):
    found = Unit.of(one).factor_to(Unit.of(other), molar_mass=200.0)
    assert found == pytest.approx(factor, rel=1e-9, nan_ok=True)


def test_the_unit_of_all_rows_is_noted_and_kept(tmp_path):
    table = read(tmp_path)
    assert table.targets.record.unit == "nM"
    assert "'Standard Units' holds nM (40)" in notes_of(table)
    np.testing.assert_array_equal(table.targets, VALUES)


def test_mixed_units_are_an_error_that_counts_them(tmp_path):
    with pytest.raises(GraphDataError, match=r"nM \(30\), uM \(5\), ug.mL-1 \(3\).*unit=UNIT"):
        read(tmp_path, units=MIXED)
    assert read(tmp_path, units=MIXED, unit_column="none").targets.tolist() == VALUES


@pytest.mark.parametrize("transform", [None, "log10"])
def test_values_are_converted_with_their_limits_and_noise(transform, tmp_path):
    table = read(
        tmp_path,
        units=MIXED,
        more={"sd": [0.1] * 40}.items(),
        unit="nM",
        noise="sd",
        transform=transform,
    )
    masses = [Descriptors.MolWt(MolFromSmiles(s)) for s in SMILES]
    factors = [1.0] * 30 + [1e3] * 5 + [1e6 / m for m in masses[35:38]]
    np.testing.assert_allclose(table.targets, np.multiply(VALUES[:38], factors), rtol=1e-9)
    np.testing.assert_allclose(table.targets.noise, np.multiply(0.1, factors), rtol=1e-9)
    assert table.targets.record.unit == "nM"
    assert table.rows.tolist() == list(range(38))
    assert "cannot be converted to nM in 2 rows: row 39 (line 40), row 40" in notes_of(table)
    with pytest.raises(GraphDataError, match="in 2 rows"):
        read(tmp_path, units=MIXED, unit="nM", on_missing="raise")


def test_a_salt_is_weighed_whole(tmp_path):
    rows = [(s, v, "ug/mL") for s, v in zip(SMILES, VALUES, strict=True)]
    rows[0] = ("CCNCC.Cl", 1.0, "ug/mL")
    data = write(tmp_path / "x.csv", rows, "smiles,value,unit")
    table = tl.read_table(data, target="value", unit="uM", standardize=True)
    assert table.targets[0] == pytest.approx(1e3 / 109.6, rel=1e-4)


def test_the_unit_in_the_name_counts(tmp_path):
    rows = list(zip(SMILES, VALUES, strict=True))
    data = write(tmp_path / "x.csv", rows, "smiles,IC50 (uM)")
    assert tl.read_table(data, target="IC50 (uM)").targets.record.unit == "uM"
    table = tl.read_table(data, target="IC50 (uM)", unit="nM")
    np.testing.assert_allclose(table.targets, np.multiply(VALUES, 1e3))
    assert "says uM: values were converted to nM" in notes_of(table)
    with pytest.raises(GraphDataError, match="cannot be converted"):
        tl.read_table(data, target="IC50 (uM)", unit="h")
    with pytest.raises(GraphDataError, match=r"'units' holds nM \(40\), but the name"):
        read(tmp_path, "IC50 (uM)", name="units")


@pytest.mark.parametrize(
    ("target", "name", "more", "unit"),
    [
        ("IC50", "Units", {}, "nM"),
        ("IC50", "IC50_unit", {}, "nM"),
        ("standardValue", "standardUnits", {}, "nM"),
        ("y", "how", {}, "nM"),  # by what it holds
        ("IC50", "Dose Units", {"Dose": VALUES}, None),  # those of another column
        ("pChEMBL Value", "Units", {}, None),  # logarithms have none
        ("IC50", "Units", {"unit": ["uM"] * 40}, None),  # two of them
    ],
)
def test_which_column_has_the_units(target, name, more, unit, tmp_path):
    table = read(tmp_path, target, name=name, more=more.items())
    assert table.targets.record.unit == unit
    assert ("unit_column=COLUMN" in notes_of(table)) == ("unit" in more)
    assert read(tmp_path, target, name=name, unit_column=name).targets.record.unit == "nM"


def test_logarithms_are_not_converted(tmp_path):
    with pytest.raises(GraphDataError, match="logarithms"):
        read(tmp_path, "logS", units=["M"] * 40, unit="uM", unit_column="Standard Units")


@pytest.mark.parametrize(
    "target", ["pH 7.4 solubility", "pH7 solubility", "solubility", "logistics", "Login"]
)
def test_mixed_units_of_what_is_no_logarithm_are_an_error(target, tmp_path):
    units = ["nM"] * 30 + ["uM"] * 10
    with pytest.raises(GraphDataError, match=r"different units: .*nM \(30\), uM \(10\)"):
        read(tmp_path, target, units=units, name="Units")


@pytest.mark.parametrize(
    "target", ["pIC50", "pHLM", "logS", "log10 IC50", "log(IC50)", "-log IC50", "logp", "LogD 7.4"]
)
def test_units_that_logarithms_leave_unused_are_noted(target, tmp_path):
    table = read(tmp_path, target, units=["nM"] * 30 + ["uM"] * 10, name="Units")
    assert table.targets.tolist() == VALUES
    assert f"'Units' holds units, and was not used: {target!r} seems" in notes_of(table)


def test_classes_need_no_unit(tmp_path):
    rows = [(s, "amine" if "N" in s else "alcohol", u) for s, u in zip(SMILES, MIXED, strict=True)]
    data = write(tmp_path / "x.csv", rows, "smiles,label,units")
    assert tl.read_table(data, target="label").task == "classification"


def test_kinds_of_measurements_are_named_unless_they_are_covariates(tmp_path):
    kinds = {"Standard Type": ["IC50"] * 35 + ["Ki"] * 5}
    words = "'Standard Type' holds IC50 (35), Ki (5): all are learned as one quantity"
    assert words in notes_of(read(tmp_path, more=kinds.items()))
    told = read(tmp_path, more=kinds.items(), covariates=["Standard Type"])
    assert words not in notes_of(told)
    same = {"Standard Type": ["IC50"] * 40}
    assert "one quantity" not in notes_of(read(tmp_path, more=same.items()))
    other = {"type": ["training", "test"] * 20}
    assert "one quantity" not in notes_of(read(tmp_path, more=other.items()))


@pytest.mark.parametrize("cells", [("M0", "M1", "M2"), ("g1", "g2", "g1"), ("s1", "s1", "s1")])
def test_names_of_molecules_and_groups_are_no_units(tmp_path, cells):
    path = tmp_path / "x.csv"
    rows = zip(("CCO", "CCN", "CCCO"), cells, (1.5, 2.25, 4.125), strict=True)
    path.write_text("smiles,group,value\n" + "".join(f"{s},{c},{y}\n" for s, c, y in rows))
    table = tl.read_table(path, target="value", task="regression")
    assert table.targets.record.unit is None
    assert not any("unit" in note for note in table.notes)
