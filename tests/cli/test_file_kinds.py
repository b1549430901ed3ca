"""The same molecules from every kind of file make the same predictions, from fit to predict."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import pandas as pd
import pytest
from rdkit import Chem

import treelens as tl
from cli.conftest import ALCOHOLS, AMINES, SMALL, ok, run, write_csv, write_sdf

ROWS = [
    (f"m{k}", s, round(0.37 * s.count("C") + 2.0 * s.count("N"), 3))
    for k, s in enumerate(ALCOHOLS + AMINES)
]
HEADER = ["id", "smiles", "value"]
NEW = [("n1", "CCCCO", 1.48), ("n2", "CCCN", 3.11)]


def write_parquet(path: Path, rows: list[tuple[str, str, float]]) -> Path:
    pytest.importorskip("pyarrow", reason="needs pyarrow to write Parquet")
    pd.DataFrame(rows, columns=HEADER).to_parquet(path)
    return path


def write_sdf_gz(path: Path, rows: list[tuple[str, str, float]]) -> Path:
    names, smiles, values = zip(*rows, strict=True)
    plain = write_sdf(path.with_suffix(""), smiles, _Name=names, value=values)
    path.write_bytes(gzip.compress(plain.read_bytes()))
    return path


WRITERS = {
    "x.csv": lambda path, rows: write_csv(path, rows, ",".join(HEADER)),
    "x.parquet": write_parquet,
    "x.sdf.gz": write_sdf_gz,
}


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> list[float]:
    """What a model fitted to a list of RDKit molecules says of others."""
    molecules = [Chem.MolFromSmiles(smiles) for _, smiles, _ in ROWS]
    # Of numbers without noise the search magnifies the last digits of descriptors.
    model = tl.GraphRegressor(depth=1, descriptors=False, random_state=0)
    model.fit(molecules, [row[2] for row in ROWS])
    return model.predict([Chem.MolFromSmiles(smiles) for _, smiles, _ in NEW]).tolist()


@pytest.mark.parametrize("name", WRITERS)
def test_fit_and_predict_at_the_command_line(name, tmp_path, expected):
    data = WRITERS[name](tmp_path / name, ROWS)
    new = WRITERS[name](tmp_path / f"new-{name}", NEW)
    model, out = tmp_path / "m.treelens", tmp_path / "p.csv"
    options = [*SMALL, "--descriptors", "no"]
    done = ok("fit", data, "--target", "value", "--out", model, *options)
    done = ok("predict", model, new, "--target", "value", "--out", out)
    table = pd.read_csv(out)
    assert table["prediction"].tolist() == pytest.approx(expected, rel=1e-9)
    assert table.iloc[:, 1].tolist() == ["n1", "n2"]  # what names the rows, whatever it is called
    assert table["smiles"].tolist() == ["CCCCO", "CCCN"]
    assert "RMSE" in done.err


def test_parquet_without_its_library_says_what_to_install(tmp_path, monkeypatch):
    data = tmp_path / "x.parquet"
    data.write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)  # as if it were not there
    done = run("fit", data, "--target", "value", "--out", tmp_path / "m", *SMALL)
    assert done.code == 1
    assert "pip install pyarrow" in done.err
    assert "Traceback" not in done.err


def test_a_record_that_cannot_be_read_is_named(tmp_path):
    data, model, out = tmp_path / "x.sdf", tmp_path / "m.treelens", tmp_path / "p.csv"
    names, smiles, values = zip(*ROWS, strict=True)
    records = write_sdf(data, smiles, _Name=names, value=values).read_text().split("$$$$\n")
    lines = records[1].split("\n")
    lines[3] = "  x" + lines[3][3:]  # the number of atoms
    data.write_text("$$$$\n".join([records[0], "\n".join(lines), *records[2:]]))
    done = ok("fit", data, "--target", "value", "--out", model, *SMALL)
    assert f"row 2 (line {len(records[0].splitlines()) + 2}) {ROWS[1][0]!r}" in done.err
    ok("predict", model, data, "--out", out)
    assert pd.read_csv(out)["name"].tolist() == [row[0] for row in ROWS]
