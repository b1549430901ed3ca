"""Tables with every trouble, read in the library: columns, targets, repeats, transforms, notes."""

from __future__ import annotations

from html import escape
from pathlib import Path

import numpy as np
import pytest

import treelens as tl
from treelens.chem.parsing import UNREADABLE, reasons, why_unreadable
from treelens.chem.sdf import smiles_column
from treelens.errors import GraphDataError
from treelens.graphs.columns import id_columns, several_columns
from treelens.graphs.tables import Table
from treelens.maps import Logarithm

pytest.importorskip("rdkit")

ALCOHOLS = [f"{'C' * n}O" for n in range(2, 12)] + [f"{'C' * n}C(C)O" for n in range(1, 11)]
AMINES = [s.replace("O", "N") for s in ALCOHOLS]
MOLECULES = [(s, "alcohol") for s in ALCOHOLS] + [(s, "amine") for s in AMINES]
VALUES = [
    round(2.0 * 1.5 ** s.count("C") * (4.0 if "N" in s else 1.0), 2) for s in ALCOHOLS + AMINES
]
HEADER = ["Compound ID", "Structure", "IC50 (nM)", "Class", "comment"]


def write(path: Path, rows, header: str = "smiles,label", separator: str = ",") -> Path:
    lines = [header, *(separator.join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def messy_rows() -> list[list[str]]:
    rows = [
        [f"CMP-{i:03}", s, str(v), "amine" if "N" in s else "alcohol", ""]
        for i, (s, v) in enumerate(zip(ALCOHOLS + AMINES, VALUES, strict=True), 1)
    ]
    rows[3][1] += ".Cl"  # a salt
    rows[4][1] = rows[4][1].replace("O", "[O-]") + ".[Na+]"
    rows[5][2], rows[6][2] = "", "n.d."  # no label
    rows[7][2] = ">10000"  # a qualifier
    rows.append(["CMP-041", "OCCC", rows[1][2], "alcohol", "the second one, backwards"])
    rows.append(["CMP-042", "NCCC", "99999", "alcohol", "contradicts"])
    rows.append(["CMP-043", "C1CC", "12", "alcohol", "a ring that is open"])
    rows.append(["CMP-044", "CN(C)(C)(C)C", "12", "amine", "café"])
    return rows


@pytest.fixture
def messy(tmp_path) -> Path:
    path = tmp_path / "messy.csv"
    lines = [";".join(row) for row in [HEADER, *messy_rows()]]
    path.write_bytes("\r\n".join(lines).encode("cp1252"))
    return path


def notes_of(table: tl.MoleculeTable) -> str:
    return "\n".join(table.notes)


# --- the whole ----------------------------------------------------------------------------------


def test_every_trouble_has_its_note_and_no_row_is_lost(messy):
    with pytest.warns(UserWarning, match="is not UTF-8"):
        table = tl.read_table(
            messy, target="IC50 (nM)", transform="log10", standardize=True, max_invalid=0.1
        )
    expected = [
        "column 'Structure'",
        "2 of 42 molecules",
        "2 of 44 rows",
        "1 of 40 values",
        "row 6 (line 7), row 7 (line 8)",
        "regression",
        "row 42 (line 43, CMP-042): 99999",
        "2 rows repeat",
    ]
    for note, words in zip(table.notes, expected, strict=True):
        assert words in note
    counts = table.record.counts
    lost = (
        "rows without a readable molecule",
        "rows without a value, left out",
        "rows merged with others of their molecule",
    )
    assert counts["graphs"] == counts["rows"] - sum(counts[what] for what in lost) == 38
    assert table.graphs.recipe.table == table.record
    assert (table.smiles, table.targets.record.unit, table.task) == (
        "Structure",
        "nM",
        "regression",
    )
    assert table.record.source == "messy.csv"
    assert table.names[0] == "CMP-001"
    graphs, y = table
    assert len(graphs) == len(y) == len(table.rows) == 38
    assert table.targets.limits.tolist() == [int(value == 10_000) for value in y.tolist()]


# --- columns ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (["SMILES", "canonical_smiles"], "SMILES"),
        (["SMI", "x"], "SMI"),
        (["x", "Canonical SMILES", "Isomeric SMILES"], "Canonical SMILES"),
        (["Structure", "x"], "Structure"),
        (["Molecule", "Mol"], "Mol"),
        (["my_smiles_column", "x"], "my_smiles_column"),
    ],
)
def test_columns_of_smiles(columns, expected):
    table = Table("x.csv", columns, [["CCO"] * len(columns)], None)
    assert smiles_column(table, None, None, []) == expected
    assert smiles_column(table, columns[-1], None, []) == columns[-1]
    assert smiles_column(table, None, columns[-1], []) == columns[-1]


def test_columns_of_ids_and_targets():
    columns = ["smiles", "Name", "ChEMBL ID", "y"]
    assert id_columns(columns, None, (), ["smiles", "y"], "x") == ("ChEMBL ID",)
    assert id_columns(columns, None, ("Name",), ["smiles", "y"], "x") == ("Name",)
    assert several_columns(["a,b", "a"], "a,b", "target", "x") == ["a,b"]
    assert several_columns(["a", "b"], "b, a,b", "target", "x") == ["b", "a"]
    with pytest.raises(GraphDataError, match="names no column"):
        several_columns(["a", "b"], " , ", "target", "x")


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ("value,label", "label"),
        ("target,value", "value"),
        ("y,target", "target"),
        ("Y,other", "Y"),
        ("class,activity", "class"),
    ],
)
def test_the_target_is_found_by_its_name(columns, expected, tmp_path):
    data = write(tmp_path / "x.csv", [(s, c, c) for s, c in MOLECULES], f"smiles,{columns}")
    table = tl.read_table(data, target="auto")
    assert table.target == expected
    assert bool(table.notes) == (expected != "label")


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"target": "lable"}, "Did you mean 'label'"),
        ({"smiles": "x", "target": "label"}, "smiles"),
        ({"names": "number", "target": "label"}, "names"),
        ({"covariates": ["heat"], "target": "label"}, "covariates"),
        ({"covariates": ["label"], "target": "label"}, "to be predicted"),
        ({"target": "label", "task": "guess"}, "task must be one of"),
        ({"target": "label", "duplicates": "drop"}, "duplicates must be one of"),
        ({"target": "label", "transform": "log10"}, "should hold numbers"),
        ({"target": "label", "transform": "log2"}, "transform must be one of"),
        ({"target": "label", "descriptors": "mine"}, "descriptors must be"),
        *(
            ({"target": "label", name: value}, f"{name} must be .*; got")
            for name in ("smiles", "target", "qualifier", "noise", "unit", "names", "covariates")
            for value in (np.array(["label", "number"]), 5, object(), {"label": 1})
        ),
        ({"names": ["number", 5]}, "names must be"),
        ({"target": "label", "task": np.array(["auto", "auto"])}, "task must be one of"),
        ({"hydrogens": np.array([True, False])}, "hydrogens must be True or False"),
        ({"bond_label": np.array(["order"])}, "bond_label must be one of"),
        ({"standardize": 5}, "standardize must be"),
        ({"atom_attributes": [["tpsa"]]}, "atom_attributes must be"),
    ],
)
def test_what_cannot_be_asked_for(asked, words, tmp_path):
    with pytest.raises(ValueError, match=words):
        tl.read_table(write(tmp_path / "x.csv", MOLECULES), **asked)


# --- targets ------------------------------------------------------------------------------------


def numbers_in(tmp_path: Path, cells: list[str], **asked) -> tl.MoleculeTable:
    rows = list(zip(ALCOHOLS + AMINES, cells, strict=False))
    data = write(tmp_path / "x.csv", rows, "smiles;value", ";")
    return tl.read_table(data, target="value", **asked)


@pytest.mark.parametrize(
    ("first", "more", "expected", "kind"),
    [
        ("0,25", "{},25", [0.25, 1.25, 2.25], "decimal commas"),
        ("1,240,000", "{},240", [1_240_000, 1_240, 2_240], "thousands"),
        ("12.5", "{},240", [12.5, 1240.0, 2240.0], "thousands"),
        ("0,240", "{},240", [0.24, 1.24, 2.24], "decimal commas"),
    ],
)
def test_commas_in_numbers(first, more, expected, kind, tmp_path):
    table = numbers_in(tmp_path, [first, *(more.format(i) for i in range(1, 20))])
    assert table.targets.values[:3].tolist() == expected
    assert kind in notes_of(table)
    with pytest.raises(GraphDataError, match="may separate thousands or decimals"):
        numbers_in(tmp_path, [f"{i},240" for i in range(1, 21)])


@pytest.mark.parametrize(
    ("first", "more", "expected"),
    [
        (["1.500", "2.750", "5.900,3"], "{}", [1500.0, 2750.0, 5900.3]),
        (["1.500", "2.750", "5.900,3"], "{}.110", [1500.0, 2750.0, 5900.3]),
        (["1.500.000", "2.750", "7"], "{}", [1.5e6, 2750.0, 7.0]),
        (["1,5E-03", "2,5", "7"], "{}", [0.0015, 2.5, 7.0]),
    ],
)
def test_points_between_thousands(first, more, expected, tmp_path):
    table = numbers_in(tmp_path, [*first, *(more.format(i) for i in range(10, 40))])
    assert table.targets.values[:3].tolist() == expected
    assert f"such as {next(x for x in first if ',' in x or x.count('.') > 1)!r}" in notes_of(table)


def test_points_that_may_separate_thousands_are_named(tmp_path):
    cells = ["1.500", "2.750", *(str(200 + i) for i in range(38))]
    assert "'1.500', read with a decimal point" in notes_of(numbers_in(tmp_path, cells))
    decimals = ["0.500", *cells[1:]]  # no thousands begin with a zero
    assert "decimal point" not in notes_of(numbers_in(tmp_path, decimals))
    rows = [(s, x, "0,5") for s, x in zip(ALCOHOLS + AMINES, cells, strict=True)]
    data = write(tmp_path / "x.csv", rows, "smiles;value;degrees", ";")
    with pytest.raises(GraphDataError, match="column 'degrees' has decimal commas"):
        tl.read_table(data, target="value")


def test_what_is_no_number_is_named_once(tmp_path):
    odd = ["BLQ", "<LOD", "see page 3", "7,2 %"]  # the others have decimal points
    table = numbers_in(tmp_path, [*odd, *(f"{i}.5" for i in range(35)), "n.t."])
    for text in odd:
        assert notes_of(table).count(repr(text)) == 1
    assert "row 3 (line 4) 'see page 3', row 4 (line 5) '7,2 %'" in notes_of(table)
    assert "2 cells say that a value lies outside what could be measured" in notes_of(table)
    assert "missing in 1 of 40 rows: row 40" in notes_of(table)
    assert len(table.targets) == 35


NUMBERS = [2.5 + k for k in range(40)]


@pytest.mark.parametrize(
    "cell",
    [
        "{:.2f} nM",
        "{:.2f}nM",
        "{:.2f} ± 0.1",
        "({:.2f} +/- 2) nM",
        "{:.2f} ± 0.2 (n = 3)",
        "{:.1f} %",
    ],
)
@pytest.mark.parametrize("european", [False, True])
def test_numbers_with_more_around_them(cell, european, tmp_path):
    texts = [cell.format(number) for number in NUMBERS]
    texts = [text.replace(".", ",") for text in texts] if european else texts
    table = numbers_in(tmp_path, texts)
    assert table.targets.values.tolist() == NUMBERS
    assert table.targets.record.unit == ("%" if "%" in cell else "nM" if "nM" in cell else None)
    assert table.targets.noise is None
    errors = "±" in cell or "+/-" in cell
    assert errors == ("an error beside the number in 40 rows" in notes_of(table))
    some = texts[:3] + [text.split()[0].strip("()").removesuffix("nM") for text in texts[3:]]
    again = numbers_in(tmp_path, some).targets
    assert again.values.tolist() == NUMBERS
    assert again.record == table.targets.record


def test_errors_beside_numbers_are_their_noise_on_request(tmp_path):
    cells = [f"{2 + k},5 ± 0,{1 + k % 9}" for k in range(39)] + ["1.002,5"]
    table = numbers_in(tmp_path, cells, noise="cells")
    assert table.targets.values[-1] == 1002.5
    assert table.targets.noise[:9].tolist() == [k / 10 for k in range(1, 10)]
    assert np.isnan(table.targets.noise[-1])
    assert "1 rows have no standard deviation behind ±" in notes_of(table)
    with pytest.raises(GraphDataError, match="no cell of 'value' has an error"):
        numbers_in(tmp_path, [f"{k}.5" for k in range(40)], noise="cells")


def test_units_in_cells_count_for_their_rows(tmp_path):
    cells = [f"{k}.5" for k in range(38)] + ["> 30 uM", "200 nM"]
    with pytest.raises(GraphDataError, match=r"different units.*uM \(1\)"):
        numbers_in(tmp_path, cells)
    rows = [(smiles, cell) for (smiles, _), cell in zip(MOLECULES, cells, strict=True)]
    path = write(tmp_path / "units.csv", rows, "smiles,IC50 (nM)")
    with pytest.raises(GraphDataError, match=r"says nM, and cells .* say uM \(1\)"):
        tl.read_table(path, target="IC50 (nM)")
    table = tl.read_table(path, target="IC50 (nM)", unit="uM")
    assert table.targets.values[[0, 38, 39]].tolist() == pytest.approx([0.0005, 30.0, 0.2])
    assert table.targets.limits[38] == 1
    ignored = tl.read_table(path, target="IC50 (nM)", unit_column="none")
    assert ignored.targets.values[38] == 30.0


@pytest.mark.parametrize("cell", ["{} nM", "{} ± 0.1"])
def test_few_numbers_with_units_may_be_classes(cell, tmp_path):
    cells = [cell.format(k % 2 + 1) for k in range(40)]
    with pytest.raises(GraphDataError, match=r"few different numbers.*40 cells"):
        numbers_in(tmp_path, cells)
    assert len(set(numbers_in(tmp_path, cells, task="classification").targets)) == 2
    assert set(numbers_in(tmp_path, cells, task="regression").targets.values) == {1.0, 2.0}


def test_a_few_remarks_count_as_missing_and_many_are_classes(tmp_path):
    table = numbers_in(tmp_path, ["unclear", *(f"{i}.5" for i in range(39))])
    assert len(table.targets.values) == 39
    assert "something else in 1 of 40 rows" in notes_of(table)
    assert numbers_in(tmp_path, ["no", "yes"] * 20).task == "classification"


@pytest.mark.parametrize(
    ("cells", "asked", "words"),
    [
        (["a"] * 20, {}, "one class only"),
        (["1.5"] * 20, {"task": "regression"}, "one value only"),
        ([f"n{i}" for i in range(40)], {}, "identifier"),
        ([f"{i}.5" for i in range(40)], {"task": "classification"}, "measurement"),
        (["a"] * 20 + ["b"], {}, "appears once, in row 21"),
        (["1.5", "2.5"], {}, "too few"),
        (["a", "b"] * 20, {"task": "regression"}, r"row 1 \(line 2\) holds 'a'"),
        ([*"12", "0", *"45678"], {"transform": "log10"}, "above 0.*row 3"),
        ([*"12", "-2.5", *"45678"], {"transform": "log10"}, "above 0.*row 3"),
        ([""] * 5, {}, "None is left"),
        (["a", "b", ""] * 9, {"on_missing": "raise"}, "missing in 9"),
    ],
)
def test_what_leaves_nothing_to_learn(cells, asked, words, tmp_path):
    with pytest.raises(GraphDataError, match=words):
        numbers_in(tmp_path, cells, **asked)


# --- transforms -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "base"), [("log10", 10.0), ("ln", np.e)])
def test_a_transform_there_and_back(name, base):
    scale, values = Logarithm(name), np.array([1e-3, 1.0, 250.0, 1e6])
    np.testing.assert_allclose(base ** scale.forward(values), values)
    np.testing.assert_allclose(scale.inverse(scale.forward(values)), values)
    rng = np.random.default_rng(0)
    drawn = base ** rng.normal(0.3, 0.2, 200_000)
    assert scale.inverse_std(np.array([0.3]), np.array([0.2]))[0] == pytest.approx(
        drawn.std(), rel=0.02
    )


def test_python_predicts_in_the_units_of_the_table(tmp_path):
    rows = list(zip(ALCOHOLS + AMINES, VALUES, strict=True))
    data = write(tmp_path / "x.csv", rows, "smiles,IC50 (nM)")
    graphs, y = tl.read_table(data, target="IC50 (nM)", transform="log10")
    assert y.tolist() == VALUES
    model = tl.GraphRegressor(depth=1).fit(graphs, y)
    logs = tl.Targets(np.log10(VALUES), transform="none")
    plain = tl.GraphRegressor(depth=1).fit(ALCOHOLS + AMINES, logs)
    mean, std = plain.predict(ALCOHOLS[:4], return_std=True)
    model.save(tmp_path / "m.treelens")
    for each in (model, tl.load(tmp_path / "m.treelens")):
        median = each.predict(ALCOHOLS[:4], point="median")
        np.testing.assert_allclose(median, 10**mean, rtol=1e-9)
        np.testing.assert_allclose(each.predict(ALCOHOLS[:4], learned_scale=True), mean, atol=1e-9)
        found, spread = each.predict(ALCOHOLS[:4], return_std=True)
        scale = Logarithm("log10")
        np.testing.assert_allclose(found, scale.inverse_mean(mean, std), rtol=1e-6)
        np.testing.assert_allclose(spread, scale.inverse_std(mean, std), rtol=1e-6)
        assert each.score(graphs, y) > 0.9
        table = each.predict_table(ALCOHOLS[:4])
        np.testing.assert_allclose(table[["prediction", "median"]], np.stack([found, median], 1))
        np.testing.assert_allclose(table["upper_90"], 10 ** (mean + 1.6448536 * std), rtol=1e-6)
        np.testing.assert_allclose(table["std_log10"], std)
        with pytest.raises(ValueError, match="above 0"):  # targets of a report have units, too
            each.summary(graphs[:3], -y.values[:3])
    with pytest.raises(ValueError, match="above 0"):
        tl.GraphRegressor(depth=1).fit(graphs, tl.Targets(-y.values, transform="log10"))


# --- repeated molecules -------------------------------------------------------------------------


@pytest.fixture
def repeated(tmp_path) -> Path:
    """Each alcohol twice at 25 degrees, and the first five also at 60."""
    rows = [(smiles, k, "25") for k, smiles in enumerate(ALCOHOLS)]
    rows += [(smiles, k + 1, "25.0") for k, smiles in enumerate(ALCOHOLS)]
    rows += [(smiles, k + 100, "60") for k, smiles in enumerate(ALCOHOLS[:5])]
    return write(tmp_path / "repeated.csv", rows, "smiles,value,degrees")


def test_rows_are_merged_where_covariates_agree(repeated):
    table = tl.read_table(repeated, target="value", task="regression", covariates=["degrees"])
    assert table.targets.values.tolist() == [*(k + 0.5 for k in range(20)), *range(100, 105)]
    assert table.graphs.graph_data["degrees"].tolist() == ["25"] * 20 + ["60"] * 5
    assert table.groups.tolist() == [*range(20), *range(5)]  # folds part no molecule
    assert table.merged[0].tolist() == [0, 20]
    assert table.covariates == ["degrees"]
    assert table.counts == {
        "rows merged with others of their molecule": 20,
        "repeated molecules under other covariates, kept": 5,
    }
    assert "5 of them under other covariates (degrees)" in notes_of(table)


def test_other_ways_with_repeats(repeated):
    for how, n in (("keep", 45), ("first", 20)):
        table = tl.read_table(
            repeated, target="value", task="regression", covariates=["degrees"], duplicates=how
        )
        assert len(table.graphs) == n
    with pytest.raises(GraphDataError, match="25 rows repeat"):
        tl.read_table(repeated, target="value", duplicates="error")
    table = tl.read_table(repeated, target="value", task="regression")  # whatever the degrees
    assert len(table.graphs) == 20
    assert "5 repeated molecules with values far apart" in notes_of(table)


def test_classes_are_merged_by_majority_and_ties_left_out(tmp_path):
    rows = [*MOLECULES, MOLECULES[0], ("OCC", "amine"), ("NCC", "alcohol")]
    table = tl.read_table(write(tmp_path / "x.csv", rows), target="label")
    assert len(table.graphs) == 39
    assert table.targets.values[0] == "alcohol"
    assert 20 not in table.rows
    assert "1 with a tie" in notes_of(table)
    assert "2 repeated molecules with different classes" in notes_of(table)


def test_numbers_are_merged_on_the_learned_scale(tmp_path):
    rows = [("CCO", 1.0), ("OCC", 100.0), ("CCN", 5.0), ("CCCN", 7.0)]
    data = write(tmp_path / "x.csv", rows, "smiles,value")
    table = tl.read_table(data, target="value", transform="log10", task="regression")
    assert table.targets.values[0] == pytest.approx(10.0)
    np.testing.assert_allclose(table.targets.learned(), np.log10(table.targets))


def test_stereoisomers_are_repeats_unless_labels_tell_them_apart(tmp_path):
    rows = [*MOLECULES, ("C[C@H](N)O", "amine"), ("C[C@@H](N)O", "amine")]
    data = write(tmp_path / "x.csv", rows)
    table = tl.read_table(data, target="label")
    assert (len(table.graphs), "stereoisomer" in notes_of(table)) == (41, True)
    table = tl.read_table(data, target="label", atom_label="element+chirality")
    assert len(table.graphs) == 42


# --- molecules ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("smiles", "words"),
    [
        ("", "an empty cell"),
        ("C(C", "cannot parse"),
        ("C\ud800", "cannot parse"),
        ("CN(C)(C)C", "Explicit valence for atom # 1 N, 4"),
        ("c1cccc1", "Can't kekulize mol"),
        ("CCO CCN", "a blank"),
        ("InChI=1S/CH4/h1H4", "an InChI"),
        ("CCO", UNREADABLE),
    ],
)
def test_why_a_cell_holds_no_molecule(smiles, words):
    assert words in why_unreadable(smiles)
    assert reasons(None, [4]) == {4: UNREADABLE}


def test_a_second_smiles_in_a_cell_is_not_taken_for_a_name(tmp_path):
    data = write(tmp_path / "x.csv", [*MOLECULES, ("CCO CCN", "amine"), ("CCF |$x$|", "amine")])
    table = tl.read_table(data, target="label")
    assert table.unreadable.tolist() == [40]
    assert 41 in table.rows  # an extension of CXSMILES
    with pytest.raises(GraphDataError, match="cannot be read"):
        tl.as_graph_collection(["CCO CCN"])


def test_too_many_unreadable_rows(tmp_path):
    data = write(tmp_path / "x.csv", [*MOLECULES[:6], *[("C(", "amine")] * 4])
    with pytest.raises(GraphDataError, match=r"4 of 10 rows \(40 %\).*max_invalid=0.41"):
        tl.read_table(data, target="label")
    with pytest.raises(GraphDataError, match="on_invalid='skip'"):
        tl.read_table(data, target="label", on_invalid="raise")
    assert len(tl.read_table(data, max_invalid=0.41).graphs) == 6


def test_salts_and_shared_names_are_noted(tmp_path):
    rows = [(f"m{k}", *row) for k, row in enumerate(MOLECULES)]
    rows += [("m0", "OCC", "alcohol"), ("m1", "CCCCCCBr", "amine")]
    rows += [("", s, "amine") for s in ("CC(=O)[O-].[Na+]", "CCN.Cl", "[Cu]C")]
    data = write(tmp_path / "x.csv", rows, "id,smiles,label")
    notes = notes_of(tl.read_table(data, target="label"))
    assert "2 of 45 molecules have several fragments" in notes
    assert "'m1' (rows 2, 42)" in notes
    assert "'m0'" not in notes
    assert "several fragments" not in notes_of(tl.read_table(data, standardize=True))
    model = tl.GraphClassifier(depth=1).fit(*tl.read_table(data, target="label"))
    assert "2 of 45 molecules have several fragments" in notes_of(tl.read_table(data, model=model))


def test_a_model_reads_new_molecules_its_own_way(tmp_path):
    rows = [(s, "N" in s, k) for k, s in enumerate(ALCOHOLS + AMINES)]
    data = write(tmp_path / "x.csv", rows, "Structure,target,heat")
    table = tl.read_table(data, target="target", atom_label="element+charge", covariates=["heat"])
    model = tl.GraphClassifier(depth=1).fit(*table, covariates=table.covariates)
    new = tl.read_table(data, model=model)
    assert new.graphs.recipe.atom_label == "element+charge"
    assert (new.smiles, new.covariates) == ("Structure", ["heat"])
    assert model.predict(new.graphs).tolist() == model.predict(table.graphs).tolist()
    with pytest.raises(GraphDataError, match="atom_label='element': the model was fitted"):
        tl.read_table(data, model=model, atom_label="element")


@pytest.mark.parametrize("duplicates", ["merge", "first", "keep"])
@pytest.mark.parametrize("task", ["regression", "classification"])
def test_the_counts_of_rows_add_up(duplicates, task, tmp_path):
    molecules = ["CCO", "C(C)O", "OCC", "CCN", "NCC", "C1", "CCCl", "ClCC", *ALCOHOLS[3:], "CCS"]
    cells = ["1.5", "2.5", "", "7", "7", "3", ">4", "<2", *(f"{k}.5" for k in range(17)), "9 g"]
    rows = list(zip(molecules, cells, strict=True))
    header = "smiles,IC50 (nM)"
    if task == "classification":
        classes = ["a", "b", "", "a", "a", "b", "a", "b", *("ab"[k % 2] for k in range(17)), "a"]
        rows, header = list(zip(molecules, classes, strict=True)), "smiles,y"
    path = write(tmp_path / "rows.csv", rows, header)
    table = tl.read_table(
        path,
        target=header.split(",")[1],
        task=task,
        duplicates=duplicates,
        max_invalid=0.5,
        **({"unit": "uM"} if task == "regression" else {}),
    )
    counts = table.record.counts
    left = {what: n for what, n in counts.items() if what.startswith("rows ")}
    assert counts["rows"] == len(rows) == counts["graphs"] + sum(left.values())
    assert left["rows without a readable molecule"] == 1
    assert ("rows whose unit cannot be converted, left out" in left) == (task == "regression")
    if duplicates == "merge":
        why = "limits on both sides only" if task == "regression" else "a tie between classes"
        assert f"rows of molecules with {why}, left out" in left


def test_a_notebook_shows_what_was_read_and_the_first_molecules(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("name,smiles,label\n<b>one,CCO,1.5\n,CCN,2\nthree,CCCO,4\nfour,CCCC,5\n")
    table = tl.read_table(path, target="label", task="regression")
    page = table._repr_html_()
    assert page.count("<figure") == page.count("<figcaption>") == 3
    assert "&lt;b&gt;one" in page
    assert "<b>one" not in page
    assert "label: 1.5" in page
    assert all(escape(note) in page for note in table.notes)
    several = tl.read_table(path, target=["label"]).graphs[0]
    assert repr(several).startswith("Graph(3 nodes, 2 edges, labels C, C, O")
    assert "<svg" in several._repr_html_()
    assert tl.Graph((), ())._repr_html_() is None
