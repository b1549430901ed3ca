"""Molecules: against RDKit's own view, from every kind of file, with rows that do not parse."""

import csv
import gzip
import pickle
import random
import sys
import tracemalloc
import warnings
from pathlib import Path

import numpy as np
import pytest

from treelens import as_graph_collection, read_smiles, read_table
from treelens.chem import molecules
from treelens.chem.blocks import SmilesBlocks
from treelens.chem.identity import same_molecules
from treelens.chem.molecules import molecule_of, molecules_to_collection, smiles_to_collection
from treelens.chem.sdf import read_sdf
from treelens.errors import (
    GraphDataError,
    InvalidMoleculesWarning,
    RepeatedMoleculesWarning,
)
from treelens.graphs import tables
from treelens.graphs.tables import read_text_table

Chem = pytest.importorskip("rdkit.Chem", reason="needs RDKit: pip install rdkit")

MOLECULES = [
    "CCO",
    "c1ccccc1",
    "C#N",
    "CC(=O)[O-].[Na+]",
    "C",
    "[NH3]->[Cu]",
    "C1CC1C=O",
    "[2H]C",
    "[H][H]",
    "O=C(O)c1ccccc1OC(C)=O",
    "[Cl].CC(C)NCC(O)COc1cccc2ccccc12",
]


def write(path: Path, text: str) -> Path:
    data = text.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def test_the_molecule_behind_a_graph_has_atoms_in_node_order() -> None:
    parsed = [Chem.MolFromSmiles(smiles) for smiles in MOLECULES]
    collections = [
        smiles_to_collection(MOLECULES),
        smiles_to_collection(MOLECULES, hydrogens=True),
        molecules_to_collection(parsed),
        pickle.loads(pickle.dumps(molecules_to_collection(parsed, hydrogens=True))),
        smiles_to_collection(MOLECULES, standardize=True),
        molecules_to_collection(parsed, standardize=True),
    ]
    for graphs in collections:
        for graph in graphs:
            atoms = molecule_of(graph).GetAtoms()
            assert tuple(atom.GetSymbol() for atom in atoms) == graph.node_labels


SYMBOLS = {"SINGLE": "-", "DOUBLE": "=", "TRIPLE": "#", "AROMATIC": ":", "DATIVE": "-"}


@pytest.mark.parametrize("smiles", MOLECULES)
@pytest.mark.parametrize("hydrogens", [False, True])
def test_atoms_and_bonds_are_as_rdkit_has_them(smiles, hydrogens) -> None:
    graph = smiles_to_collection([smiles], hydrogens=hydrogens)[0]
    molecule = Chem.MolFromSmiles(smiles)
    molecule = Chem.AddHs(molecule) if hydrogens else molecule
    assert graph.node_labels == tuple(atom.GetSymbol() for atom in molecule.GetAtoms())
    expected = {
        tuple(sorted((bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()))): SYMBOLS[
            str(bond.GetBondType())
        ]
        for bond in molecule.GetBonds()
    }
    assert dict(zip(graph.edges, graph.edge_labels, strict=True)) == expected


def test_large_molecules_take_no_dense_matrix() -> None:
    n_atoms = 3000  # 72 MB as a dense matrix
    tracemalloc.start()
    graph = smiles_to_collection(["C" * n_atoms])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert graph.n_edges == n_atoms - 1
    assert graph[0].edges[:2] == ((0, 1), (1, 2))
    assert peak < 10 * 2**20


LARGE = "C" * 6000  # atoms


def test_a_molecule_with_too_many_atoms_is_a_row_that_cannot_be_read(tmp_path) -> None:
    path = write(tmp_path / "x.csv", f"smiles,label\n{LARGE},1\nCCO,0\n")
    with pytest.warns(InvalidMoleculesWarning, match=r"6,000 atoms, more than max_atoms=5000\)"):
        graphs, _ = read_smiles(path, on_invalid="skip")
    assert graphs.graph_data["row"].tolist() == [1]
    with pytest.raises(GraphDataError, match="6,000 atoms, more than max_atoms=5000"):
        as_graph_collection([LARGE])
    graphs, _ = read_smiles(path, on_invalid="skip", max_atoms=6000)
    assert graphs.sizes.tolist() == [6000, 3]
    small = write(tmp_path / "y.csv", "smiles,label\nCCO,1\nCO,0\n")
    notes = read_table(small, max_atoms=2, max_invalid=0.5).notes
    assert any("3 atoms, more than max_atoms=2" in note for note in notes)
    with pytest.raises(ValueError, match="max_atoms must be a whole number from 1 on"):
        read_smiles(path, max_atoms=0)
    blocks = SmilesBlocks(path, on_invalid="skip", max_atoms=6000)
    assert [part.load().graphs.sizes.tolist() for part in blocks] == [[6000, 3]]


def test_a_large_molecule_of_an_sdf_is_named_with_its_atoms(tmp_path) -> None:
    path = tmp_path / "x.sdf"
    with Chem.SDWriter(str(path)) as writer:
        for smiles in ("CCO", "CCCCCCCC", "CN"):
            writer.write(Chem.MolFromSmiles(smiles))
    with pytest.warns(InvalidMoleculesWarning, match=r"row 2 .*8 atoms, more than max_atoms=5"):
        graphs, _ = read_smiles(path, target=None, on_invalid="skip", max_atoms=5)
    assert graphs.sizes.tolist() == [3, 2]


def test_rings_of_a_molecule_with_too_many_atoms_are_not_looked_for(monkeypatch) -> None:
    """Which might take minutes; hydrogens that are written out do not count."""
    looked = []
    honest = Chem.SanitizeMol
    monkeypatch.setattr(Chem, "SanitizeMol", lambda m, **k: looked.append(m) or honest(m, **k))
    graphs = smiles_to_collection(["C1CC1" * 10, "CO"], on_invalid="skip", max_atoms=9)
    assert graphs.sizes.tolist() == [2]
    assert [molecule.GetNumAtoms() for molecule in looked] == [2]
    explicit = "C([H])([H])([H])C([H])([H])[H]"
    assert smiles_to_collection([explicit], max_atoms=2).sizes.tolist() == [2]


def test_molecules_of_the_user_may_be_as_large_as_they_are() -> None:
    assert molecules_to_collection([Chem.MolFromSmiles(LARGE)]).sizes.tolist() == [6000]


def test_bonds_one_by_one_are_those_of_the_matrix(monkeypatch) -> None:
    by_matrix = list(smiles_to_collection(MOLECULES))
    monkeypatch.setattr(molecules, "MOST_ATOMS_IN_A_MATRIX", 0)
    assert list(smiles_to_collection(MOLECULES)) == by_matrix


def test_repeats_and_contradictions_are_named(tmp_path) -> None:
    text = "smiles,label\nCCO,1\nCCN,0\nOCC,0\nNCC,0\nCCC,1\n"
    with pytest.warns(RepeatedMoleculesWarning) as told:
        graphs, y = read_smiles(write(tmp_path / "x.csv", text))
    message = str(told[0].message)
    assert "2 rows repeat the molecule of another row (rows 1, 3; 2, 4)" in message
    assert "different classes in rows 1, 3." in message
    assert len(graphs) == len(y) == 5
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_smiles(write(tmp_path / "x.csv", "smiles,label\nCCO,1\nCCN,0\n"))


def test_rdkit_missing_says_what_to_install(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "rdkit", None)
    with pytest.raises(ImportError, match="pip install rdkit"):
        smiles_to_collection(["C"])


# --- files ----------------------------------------------------------------------------------

TABLE = "smiles,label,id\nCCO,1,ethanol\nc1ccccc1,0,benzene\n"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.csv", TABLE),
        ("x.csv.gz", TABLE),
        ("x.tsv", TABLE.replace(",", "\t")),
        ("x.csv", TABLE.replace(",", ";")),
        ("x.csv", TABLE.replace("\n", "\r\n")),
        ("x.csv", "\ufeff" + TABLE),
        ("x.csv", TABLE.replace("ethanol", '"ethanol, or\nalcohol"')),
        ("x.csv", "\n" + TABLE.replace("\nc1", "\n\nc1") + "\n\n"),
        ("x.txt", TABLE.replace("smiles,", " smiles ,").replace("CCO,", "CCO ,")),
    ],
    ids=["csv", "gz", "tsv", "semicolon", "CRLF", "BOM", "quoted", "blank lines", "spaces"],
)
def test_tables_of_every_form(tmp_path, name, text) -> None:
    graphs, y = read_smiles(write(tmp_path / name, text), names="id")
    assert [graph.data["smiles"] for graph in graphs] == ["CCO", "c1ccccc1"]
    assert [graph.data["row"] for graph in graphs] == [0, 1]
    assert y.tolist() == [1, 0]
    assert y.dtype == np.int64
    assert graphs.names[1] == "benzene"
    assert read_smiles(tmp_path / name, "smiles", None)[1] is None


@pytest.mark.parametrize(
    ("values", "expected", "kind"),
    [
        (["1", "0"], [1, 0], "i"),
        (["-1", "+1"], [-1, 1], "i"),
        (["1.0", "0.0"], [1, 0], "i"),
        (["0.5", "2"], [0.5, 2.0], "f"),
        (["yes", "no"], ["yes", "no"], "U"),
        (["1", "toxic"], ["1", "toxic"], "U"),
        (["1", "01"], ["1", "01"], "U"),
        (["1_0", "10"], ["1_0", "10"], "U"),
        (["1_0.5", "10.5"], ["1_0.5", "10.5"], "U"),
        (["\u0661", "1"], ["\u0661", "1"], "U"),
        (["1e3", ".5"], [1000.0, 0.5], "f"),
        (["99999999999999999998", "99999999999999999999"], ["9" * 19 + "8", "9" * 20], "U"),
        *((signs, signs, "U") for signs in (["+", "-"], ["?", "no"], ["unknown", "0"])),
    ],
)
def test_kinds_of_target(tmp_path, values, expected, kind) -> None:
    rows = "".join(f"C,{value}\n" for value in values)
    _, y = read_smiles(write(tmp_path / "x.csv", "smiles,label\n" + rows))
    assert y.tolist() == expected
    assert y.dtype.kind == kind


def test_smi_files_have_no_header(tmp_path) -> None:
    path = write(tmp_path / "x.smi", "CCO ethanol\nO\twater\nC\n")
    graphs, y = read_smiles(path, target=None, names="name")
    assert y is None
    assert graphs.names.tolist() == ["ethanol", "water", ""]
    with pytest.raises(GraphDataError, match=r"no column 'label'.*'smiles', 'name'"):
        read_smiles(path)


def test_what_parquet_stores_otherwise_is_read_as_it_is_meant(tmp_path) -> None:
    pytest.importorskip("pyarrow", reason="needs pyarrow to write Parquet")
    import pandas as pd

    frame = pd.DataFrame(
        {"smiles": [b"CCO", b"O", b"C"], "label": pd.array([1, None, 0], dtype="Int64")},
        index=pd.Index(["a", "b", "c"], name="id"),
    )
    frame.to_parquet(tmp_path / "x.parquet")
    table = read_text_table(tmp_path / "x.parquet")
    assert table.columns == ["id", "smiles", "label"]
    assert table.rows == [["a", "CCO", "1"], ["b", "O", ""], ["c", "C", "0"]]


@pytest.mark.parametrize(
    ("given", "expected"),
    [({}, ["a", "b"]), ({"names": "none"}, None), ({"target": "Compound ID"}, None)],
)
def test_names_are_found_as_in_read_table(tmp_path, given, expected):
    path = write(tmp_path / "x.csv", "Compound ID,smiles,label\na,CCO,1\nb,O,0\n")
    names = read_smiles(path, **given)[0].names
    assert names is None if expected is None else names.tolist() == expected


def sdf_of(*smiles: str, names: tuple[str, ...] = ()) -> str:
    records = []
    for i, text in enumerate(smiles):
        molecule = Chem.AddHs(Chem.MolFromSmiles(text))
        molecule.SetProp("_Name", names[i] if names else "")
        block = Chem.MolToMolBlock(molecule)
        records.append(f"{block}>  <label>\n{i}\n\n>  <title>\n{text}\n\n$$$$\n")
    return "".join(records)


@pytest.mark.parametrize("name", ["x.sdf", "x.sdf.gz"])
def test_sdf(tmp_path, name) -> None:
    path = write(tmp_path / name, sdf_of("CCO", "c1ccccc1", names=("one", "")))
    found, table = read_sdf(path, keep_hydrogens=False)
    assert [m.GetNumAtoms() for m in found] == [3, 6]
    assert table.columns == ["name", "label", "title"]
    assert table.rows == [["one", "0", "CCO"], ["", "1", "c1ccccc1"]]
    graphs, y = read_smiles(path, names="title")
    assert y.tolist() == [0, 1]
    assert graphs[0].node_labels == ("C", "C", "O")
    assert set(graphs[1].edge_labels) == {":"}
    assert graphs.names.tolist() == ["CCO", "c1ccccc1"]
    assert molecule_of(graphs[1]).GetNumAtoms() == 6
    with_hydrogens, _ = read_smiles(path, hydrogens=True)
    assert sorted(with_hydrogens[0].node_labels) == sorted("CCO" + "H" * 6)
    with pytest.raises(GraphDataError, match=r"no column 'charge'.*'label', 'title'"):
        read_smiles(path, target="charge")


def test_sdf_with_a_bad_record(tmp_path) -> None:
    good = sdf_of("C")
    path = write(tmp_path / "x.sdf", good + "nonsense\n\n\n  what\n$$$$\n" + good)
    line = good.count("\n") + 1
    with pytest.raises(GraphDataError, match=rf"1 of 3 .* row 2 \(line {line}\)"):
        read_smiles(path)
    with pytest.warns(InvalidMoleculesWarning):
        graphs, y = read_smiles(path, on_invalid="skip")
    assert graphs.graph_data["row"].tolist() == [0, 2]
    assert len(y) == 2
    assert read_sdf(write(path, good), keep_hydrogens=False)[1].columns == ["label", "title"]


@pytest.mark.parametrize("end", ["", "\n\n", "cut off\n"])
def test_a_record_that_cannot_be_read_keeps_its_name(tmp_path, end) -> None:
    text = sdf_of("C", "[C-]#[O+]", "O", names=("one", "second", "three"))
    broken = text.replace("\n  2  1  0", "\n  x  1  0", 1)
    assert broken != text
    (tmp_path / "x.sdf").write_text(broken + end)
    molecules, table = read_sdf(tmp_path / "x.sdf", keep_hydrogens=False)
    assert [m is None for m in molecules] == [False, True, False, *([True] if "cut" in end else [])]
    names = [row[table.columns.index("name")] for row in table.rows]
    assert names == ["one", "second", "three", *(["cut off"] if "cut" in end else [])]


# --- molecules that are wrong -----------------------------------------------------------------


@pytest.mark.parametrize("molecules", [[None, "C"], ["C", None]])
def test_none_among_molecules_is_what_rdkit_could_not_read(molecules) -> None:
    given = [None if text is None else Chem.MolFromSmiles(text) for text in molecules]
    with pytest.raises(GraphDataError, match="RDKit gives None for a molecule that it cannot read"):
        as_graph_collection(given)


def test_a_molecule_that_was_never_sanitised_is_an_error_that_says_so() -> None:
    raw = Chem.MolFromSmiles("c1ccccc1O", sanitize=False)
    with pytest.raises(GraphDataError, match=r"Graph 1 .* never sanitised.*Chem\.SanitizeMol"):
        molecules_to_collection([Chem.MolFromSmiles("CCO"), raw])


def test_an_error_of_the_users_own_function_stays_its_own() -> None:
    def broken(atom):
        raise RuntimeError("of the user's")

    with pytest.raises(RuntimeError, match="of the user's"):
        smiles_to_collection(["CCO"], atom_label=broken)


# --- files that are wrong -------------------------------------------------------------------


def test_unparsable_rows_raise_or_are_skipped_with_their_numbers(tmp_path, capfd) -> None:
    text = "smiles,label\nCCO,1\nC1CC,0\nO,0\n,1\nnonsense,1\n"
    path = write(tmp_path / "x.csv", text)
    listed = r"row 2 \(line 3\) 'C1CC'.*row 4 \(line 5\) ''.*row 5 \(line 6\)"
    with pytest.raises(GraphDataError, match=listed):
        read_smiles(path)
    with pytest.warns(InvalidMoleculesWarning, match=listed) as seen:
        graphs, y = read_smiles(path, on_invalid="skip")
    assert len(seen) == 1
    assert graphs.graph_data["row"].tolist() == [0, 2]
    assert y.tolist() == [1, 0]
    assert capfd.readouterr().err == ""  # RDKit keeps its own complaints to itself
    with pytest.raises(GraphDataError, match="None is left"):
        read_smiles(write(path, "smiles,label\nC1CC,1\n"), on_invalid="skip")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        *((text, "x.csv is empty") for text in ("", "\n\n", ",,\n,,\n")),
        ("smiles,label\n", "no molecule"),
        ("SMILES,label\nC,1\n", r"no column 'smiles'.*'SMILES', 'label'"),
        ("smiles,y\nC,1\n", r"no column 'label'.*'smiles', 'y'"),
        ("smiles,smiles,label\nC,C,1\n", r"2 columns named 'smiles'"),
        ("smiles,label\nC,1\nC\n", r"line 3: expected 2 fields \(smiles, label\), found 1"),
        ("smiles,label\nC,1\nO,\nN,nan\n", r"missing in 2 of 3 rows: row 2 \(line 3\), row 3"),
    ],
)
def test_bad_tables(tmp_path, text, words) -> None:
    with pytest.raises(GraphDataError, match=words):
        read_smiles(write(tmp_path / "x.csv", text))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('smiles,label,note\nCCO,1,a\nCC,0,"b\nC,1,c\nO,0,d\nN,1,e\n', 3),
        ('smiles,label,note\nCCO,1,"a\nCC,0,b\nC,1,"c"\nO,0,d\n', 2),
        ('smiles,label,note\nCCO,1,"two\nlines"\nCC,0,"b""\nC,1,c\n', 4),
        ('smiles,label,note\nCCO,1,a\n"C\nC","0","b\nC,1,c\n', 3),
        ('\n\nsmiles,label,"note\nCCO,1,a\n', 3),
        ('smiles,label,note\nCCO,1,a\nCC,0,"' + "b\n" * 200_000, 3),
    ],
    ids=["to the end", "to the next quote", "after a long field", "third field", "header", "huge"],
)
def test_a_quote_that_is_not_closed_is_no_reason_to_lose_rows(tmp_path, text, line) -> None:
    path = write(tmp_path / "x.csv", text)
    words = rf"x.csv, line {line}: a quote in this row is not closed"
    with pytest.raises(GraphDataError, match=words):
        read_smiles(path)
    with pytest.raises(GraphDataError, match=words):
        list(SmilesBlocks(path, block_size=1))


def test_cells_may_be_long_and_one_too_long_is_called_that(tmp_path, monkeypatch) -> None:
    note = "x" * 200_000
    path = write(tmp_path / "x.csv", f"smiles,note\nC,short\nCC,{note}\n")
    assert read_text_table(path).rows[1] == ["CC", note]
    monkeypatch.setattr(tables, "_LONGEST_CELL", 150_000)
    before = csv.field_size_limit(150_000)  # it is never lowered, as others may have raised it
    try:
        with pytest.raises(GraphDataError, match=r"line 3: a cell .* more than 150,000 charac"):
            read_text_table(path)
    finally:
        csv.field_size_limit(before)


def test_quotes_inside_and_around_fields_are_fine(tmp_path) -> None:
    text = 'smiles,label,note\n"C",1,"say ""C"", please"\nO,0,5" pipe\nN,"1",""\n"F",0,"end"'
    graphs, y = read_smiles(write(tmp_path / "x.csv", text), names="note")
    assert y.tolist() == [1, 0, 1, 0]
    assert graphs.names.tolist() == ['say "C", please', '5" pipe', "", "end"]


def test_a_missing_target_of_a_skipped_row_does_not_matter(tmp_path) -> None:
    path = write(tmp_path / "x.csv", "smiles,label\nC,1\nC1CC,\n")
    with pytest.warns(InvalidMoleculesWarning):
        assert read_smiles(path, on_invalid="skip")[1].tolist() == [1]


def test_files_that_cannot_be_opened(tmp_path) -> None:
    for name in ("gone.csv", "gone.parquet"):
        with pytest.raises(FileNotFoundError, match="not a file that exists"):
            read_smiles(tmp_path / name)
    for name, data, words in (
        ("cut.csv.gz", gzip.compress(TABLE.encode())[:-9], "damaged or cut off"),
        ("picture.csv", b"\x89PNG\0\0\xff", "is no text"),
        ("empty.sdf", b"", "is empty"),
    ):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(GraphDataError, match=words):
            read_smiles(tmp_path / name)


# --- real molecules -------------------------------------------------------------------------


# --- the same molecule, against canonical SMILES of every row -----------------------------------

SPELLED = [
    "CCO",
    "COC",
    "CC(=O)Oc1ccccc1C(=O)O",
    "C1CCCCC1",
    "C1CC1.C1CC1",
    "c1ccc2ccccc2c1",
    "C[C@H](N)C(=O)O",
    "C[C@@H](N)C(=O)O",
    "F/C=C/F",
    r"F/C=C\F",
    "[2H]C",
    "CC(C)C",
    "CCCC",
    "C1CCCCC1C1CCCCC1",
    "[NH3+]CC(=O)[O-]",
    "NCC(=O)O",
]


def naive_groups(smiles: list[str], stereo: bool) -> list[int]:
    first: dict[str, int] = {}
    texts = [Chem.MolToSmiles(Chem.MolFromSmiles(s), isomericSmiles=stereo) for s in smiles]
    return [first.setdefault(text, i) for i, text in enumerate(texts)]


def spellings() -> list[str]:
    """Every molecule three times, its atoms in another order each time."""
    rng, found = random.Random(0), []
    for text in SPELLED * 3:
        molecule = Chem.MolFromSmiles(text)
        order = list(range(molecule.GetNumAtoms()))
        rng.shuffle(order)
        found.append(Chem.MolToSmiles(Chem.RenumberAtoms(molecule, order), canonical=False))
    rng.shuffle(found)
    return found


@pytest.mark.parametrize("label", ["element", "element+chirality+isotope"])
def test_against_canonical_smiles_of_every_row(label) -> None:
    smiles, stereo = spellings(), label != "element"
    bond_label = "order+stereo" if stereo else "order"
    graphs = smiles_to_collection(smiles, atom_label=label, bond_label=bond_label)
    same = same_molecules(graphs)
    expected = naive_groups(smiles, stereo)
    assert same.groups.tolist() == expected
    full = naive_groups(smiles, True)
    n_stereo = sum(i != expected[i] and full[i] != full[expected[i]] for i in range(len(expected)))
    assert same.n_stereo == n_stereo
    assert (n_stereo > 0) != stereo


def test_molecules_with_hydrogens_are_those_without() -> None:
    plain = [Chem.MolFromSmiles(s) for s in ("CCO", "OCC", "CCN")]
    mixed = [plain[0], Chem.AddHs(plain[1]), plain[2]]
    alike = molecules_to_collection([Chem.RemoveHs(m) for m in mixed])
    assert same_molecules(alike).groups.tolist() == [0, 0, 2]
    full = molecules_to_collection([Chem.AddHs(m) for m in plain])
    assert same_molecules(full).groups.tolist() == [0, 0, 2]


def test_real_molecules(data_folder) -> None:
    from treelens import load_dataset

    graphs, _ = load_dataset("BBBP", folder=data_folder)
    smiles = list(graphs.graph_data["smiles"])
    assert same_molecules(graphs).groups.tolist() == naive_groups(smiles, False)
