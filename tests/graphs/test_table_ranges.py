"""Ranges of bytes of a table hold the rows that reading it from its beginning finds."""

import gzip
import pickle

import pytest

from treelens.errors import GraphDataError
from treelens.graphs.table_ranges import table_ranges
from treelens.graphs.tables import read_table_blocks

TEXTS = {
    "plain.csv": "smiles,label\nCCO,1\nCN,0\nCC,1\n",
    "no_end_of_line.csv": "smiles,label\nCCO,1\nCN,0",
    "blank_lines.csv": "\n\nsmiles;label\n\nCCO;1\n;\nCN;0\n\n\nCC;1\n\n",
    "quoted.csv": 'smiles,"a\nname"\nCCO,"two\nlines"\nCN,"a ""b"", c"\nCC,x\nO,"\n\n"\n',
    "crlf.tsv": "smiles\tlabel\r\nCCO\t1\r\nCN\t0\r\n",
    "signed.csv": "\ufeffsmiles,name\nCCO,Äthanol\nCN,Ωmega\nO,水\n",
    "x.smi": "CCO ethanol\n\nCN\nCC  ethane\n",
    "header.csv": "smiles,label\n",
}


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("n_rows", [1, 2, 100])
def test_ranges_hold_the_rows_of_the_file(tmp_path, name, n_rows):
    path = tmp_path / name
    path.write_bytes(TEXTS[name].encode())
    ranges = table_ranges(path, n_rows)
    read = [pickle.loads(pickle.dumps(each)).read() for each in ranges]
    assert read == list(read_table_blocks(path, n_rows))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.csv.gz", gzip.compress(b"smiles,label\nCCO,1\n", mtime=0)),
        ("latin.csv", "smiles,name\nCCO,Äthanol\n".encode("cp1252")),
        ("utf16.csv", "smiles,name\nCCO,x\n".encode("utf-16")),
        ("cut.csv", "smiles,name\nCCO,Ä".encode()[:-1]),
        ("old.csv", b"smiles,label\rCCO,1\rCN,0\n"),
        ("old_end.csv", b"smiles,label\nCCO,1\r"),
    ],
)
def test_files_whose_bytes_do_not_tell_where_lines_end(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    assert table_ranges(path, 1) is None


def test_a_file_that_is_gone_or_changed_is_named(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text(TEXTS["plain.csv"])
    first, *_ = table_ranges(path, 1)
    path.write_text(TEXTS["plain.csv"] + "O,1\n")
    with pytest.raises(GraphDataError, match=r"x\.csv was changed"):
        first.read()
    path.unlink()
    with pytest.raises(GraphDataError, match=r"x\.csv does not exist here: workers read"):
        first.read()
