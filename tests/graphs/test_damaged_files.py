"""Damaged files: whatever is in them, a valid collection comes out, or an error of ours.

A seeded loop changes good files a little: bytes flipped, cut, doubled, replaced by what parsers
stumble over.
"""

import gzip
import io
import random
import re
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from treelens import GraphCollection, as_graph_collection, read_smiles, read_table, read_tudataset
from treelens.chem.blocks import SmilesBlocks
from treelens.errors import GraphDataError
from treelens.graphs.target_columns import is_integer
from treelens.graphs.tudataset import number_table

Chem = pytest.importorskip("rdkit.Chem", reason="needs RDKit: pip install rdkit")

ROUNDS = 80

TU_FILES = {
    "A": b"1, 2\n2, 1\n2, 3\n3, 2\n4, 5\n",
    "graph_indicator": b"1\n1\n1\n2\n2\n",
    "graph_labels": b"1\n-1\n",
    "node_labels": b"4\n5\n4\n6\n6\n",
    "edge_labels": b"0\n0\n9\n9\n3\n",
}
TABLE = b'smiles,label,note\nCCO,1,"a, b"\nc1ccccc1,0,\nC[N+](=O)[O-],1,"two\nlines"\n[2H]C#N,0,x\n'
PACKED = pd.DataFrame({"smiles": ["CCO", "CN", "CCC"] * 10, "label": range(30), "note": "a, b"})
SMILES = ["CCO", "c1ccccc1O", "C[N+](=O)[O-]", "F/C=C/F", "[13CH4]", "C%12CC%12", "[NH3]->[Cu]"]

# What parsers have stumbled over, or might.
TOKENS = [
    b"",
    b"\0",
    b"\n",
    b"\r",
    b"\n\n",
    b"_",
    b"1_0",
    b"01",
    b"-",
    b"+1",
    b"--1",
    b"1.0",
    b"1e3",
    b"nan",
    b"True",
    b"9223372036854775807",
    b"9223372036854775808",
    b"9" * 5000,
    b",",
    b";",
    b"-9223372036854775809",
    b"\t",
    b" ",
    b'"',
    b'""',
    b"'",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\xed\xa0\x80",
    b"\xd9\xa1",
    b"\x0b",
    b"\x0c",
    b"\x1a",
    b"\xe2\x80\xa8",
    b"(",
    b"[",
    b"%(",
    b"$$$$\n",
    b"M  END\n",
    b"V3000",
    b"999",
]


def changed(data: bytes, rng: random.Random) -> bytes:
    """A copy with one to four changes."""
    for _ in range(rng.randint(1, 4)):
        start = rng.randrange(len(data) + 1)
        end = min(len(data), start + rng.choice([0, 1, 1, 2, 8, 40]))
        flipped = bytes([data[start] ^ (1 << rng.randrange(8))]) if start < len(data) else b"0"
        few = rng.randbytes(rng.randint(1, 4))
        middle = rng.choice([b"", rng.choice(TOKENS), few, data[start:end] * 2, flipped])
        data = data[:start] + middle + data[end:]
    return data[: rng.randrange(len(data) + 1)] if rng.random() < 0.1 else data


def zipped(files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for part, data in files.items():
            archive.writestr(f"X/X_{part}.txt", data)
    return file.getvalue()


def sdf() -> bytes:
    blocks = [Chem.MolToMolBlock(Chem.MolFromSmiles(text)) for text in SMILES[:3]]
    return "".join(f"{block}>  <label>\n{i}\n\n$$$$\n" for i, block in enumerate(blocks)).encode()


def try_text_files(folder: Path, rng: random.Random) -> list[GraphCollection]:
    part = rng.choice(list(TU_FILES))
    for name, data in (TU_FILES | {part: changed(TU_FILES[part], rng)}).items():
        (folder / f"X_{name}.txt").write_bytes(data)
    return [read_tudataset(folder)[0]]


def _outcome(read: Callable[[], object]):
    """What was read, or None after an error of ours."""
    try:
        return read()
    except GraphDataError:
        return None


def try_archive(folder: Path, rng: random.Random) -> list[GraphCollection]:
    method = rng.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
    return _read_archive(folder, changed(zipped(TU_FILES, method), rng))


def _read_archive(folder: Path, damaged: bytes) -> list[GraphCollection]:
    """A damaged archive is refused, or the damage does not matter."""
    (folder / "good.zip").write_bytes(zipped(TU_FILES))
    (folder / "X.zip").write_bytes(damaged)
    (graphs, y), (found, y_found) = (read_tudataset(folder / f) for f in ("good.zip", "X.zip"))
    assert list(found) == list(graphs)
    np.testing.assert_array_equal(y_found, y)
    return [found]


def try_packed(folder: Path, rng: random.Random) -> list[GraphCollection]:
    """A byte of what is packed in an archive, by any method."""
    methods = [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]
    data = bytearray(zipped(TU_FILES, rng.choice(methods)))
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        member = rng.choice(archive.infolist())
    start = member.header_offset + 30 + len(member.filename)
    data[start + rng.randrange(member.compress_size)] ^= rng.randint(1, 255)
    return _read_archive(folder, bytes(data))


def try_headers(folder: Path, rng: random.Random) -> list[GraphCollection]:
    """Damage where zips keep sizes, flags, methods and offsets."""
    data = bytearray(zipped(TU_FILES))
    starts = [i for i in range(len(data)) if data[i : i + 4] in (b"PK\1\2", b"PK\3\4", b"PK\5\6")]
    for _ in range(rng.randint(1, 3)):
        position = rng.choice(starts) + rng.randint(4, 45)
        if position < len(data):
            data[position] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)])
    return _read_archive(folder, bytes(data))


def try_table(folder: Path, rng: random.Random) -> list[GraphCollection]:
    path = folder / rng.choice(["x.csv", "x.tsv", "x.smi", "x.csv.gz"])
    data = changed(TABLE, rng)
    if path.suffix == ".gz":
        data = gzip.compress(TABLE, mtime=0) if rng.random() < 0.5 else gzip.compress(data, mtime=0)
        data = changed(data, rng) if rng.random() < 0.8 else data
    path.write_bytes(data)
    target = None if path.suffix == ".smi" else "label"
    options = {"target": target, "on_invalid": rng.choice(["raise", "skip"])}
    blocks = _outcome(lambda: [part.load() for part in SmilesBlocks(path, **options)])
    graphs, y = read_smiles(path, **options)
    assert y is None or len(y) == len(graphs)
    return [block.graphs for block in blocks or [] if block.graphs is not None] + [graphs]


def try_sdf(folder: Path, rng: random.Random) -> list[GraphCollection]:
    path = folder / "x.sdf"
    path.write_bytes(changed(sdf(), rng))
    target = rng.choice(["label", None])
    options = {"on_invalid": rng.choice(["raise", "skip"]), "hydrogens": rng.random() < 0.3}
    return [read_smiles(path, target=target, **options)[0]]


def try_smiles(folder: Path, rng: random.Random) -> list[GraphCollection]:
    texts = [rng.choice(SMILES), changed(rng.choice(SMILES).encode(), rng)]
    errors = rng.choice(["surrogateescape", "replace"])  # half of them leave lone surrogates
    return [
        as_graph_collection(
            [x.decode("utf-8", errors) if isinstance(x, bytes) else x for x in texts]
        )
    ]


def try_excel(folder: Path, rng: random.Random) -> list[GraphCollection]:
    """Bytes of the workbook are changed, or of what is packed in it."""
    pytest.importorskip("openpyxl")
    book, path = io.BytesIO(), folder / "x.xlsx"
    PACKED.to_excel(book, index=False)
    if rng.random() < 0.3:
        path.write_bytes(changed(book.getvalue(), rng))
    else:
        with zipfile.ZipFile(book) as packed, zipfile.ZipFile(path, "w") as archive:
            damaged = rng.choice(packed.namelist())
            for name in packed.namelist():
                data = packed.read(name)
                archive.writestr(name, changed(data, rng) if name == damaged else data)
    return [read_table(path).graphs]


def try_parquet(folder: Path, rng: random.Random) -> list[GraphCollection]:
    """A bit or two are flipped, also in what pandas says about the columns and the index."""
    pytest.importorskip("pyarrow", reason="needs pyarrow: pip install pyarrow")
    path = folder / "x.parquet"
    PACKED.set_index("label").to_parquet(path)
    data = bytearray(path.read_bytes())
    for _ in range(rng.randint(1, 2)):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    path.write_bytes(data)
    return [read_table(path).graphs]


ATTEMPTS = [try_text_files, try_archive, try_packed, try_headers, try_table, try_excel, try_parquet]
ATTEMPTS += [try_sdf, try_smiles]


def check_valid(graphs: GraphCollection) -> None:
    """What every collection promises, whatever it was read from."""
    within = np.repeat(graphs.sizes, graphs.sizes)  # size of the graph of each node
    sizes = np.repeat(within, np.diff(graphs.neighbor_offsets))  # ... of each arc
    assert ((graphs.neighbors >= 0) & (graphs.neighbors < sizes)).all()
    assert (np.diff(graphs.neighbor_offsets) >= 0).all()
    if graphs.n_nodes:
        assert 0 <= graphs.node_codes.min() <= graphs.node_codes.max() < len(graphs.node_alphabet)


@pytest.mark.parametrize("attempt", ATTEMPTS, ids=lambda attempt: attempt.__name__[4:])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_damaged_files_give_graphs_or_an_error_of_ours(attempt, tmp_path) -> None:
    n_refused = 0
    for seed in range(ROUNDS):
        rng = random.Random(f"{attempt.__name__} {seed}")
        try:
            found = attempt(tmp_path, rng)
        except GraphDataError:
            n_refused += 1
        except Exception as error:
            raise AssertionError(f"seed {seed}: {error!r}") from error
        else:
            for graphs in found:
                check_valid(graphs)
    assert n_refused > ROUNDS // 20, "hardly anything was damaged"


def test_numbers_are_those_of_a_parser_that_takes_no_short_cuts() -> None:
    n_read = 0
    for seed in range(4 * ROUNDS):
        data = changed(TU_FILES["A"], random.Random(seed)).rstrip() or b"0"
        lines = data.decode("utf-8", "replace").splitlines()
        rows = [re.split(r"\s*[,;]\s*|\s+", line.strip()) for line in lines]
        good = len(set(map(len, rows))) == 1 and all(is_integer(x) for row in rows for x in row)
        found = _outcome(lambda data=data: number_table(data, "x").tolist())
        assert found == ([list(map(int, row)) for row in rows] if good else None), (seed, data)
        n_read += good
    assert n_read > ROUNDS // 4
