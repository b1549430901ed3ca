"""Small molecules in files, and the command line in this process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import treelens as tl
from treelens.cli.main import app

Chem = pytest.importorskip("rdkit.Chem")

ALCOHOLS = [f"{'C' * n}O" for n in range(2, 12)] + [f"{'C' * n}C(C)O" for n in range(1, 11)]
AMINES = [f"{'C' * n}N" for n in range(2, 12)] + [f"{'C' * n}C(C)N" for n in range(1, 11)]
MOLECULES = [(s, "alcohol") for s in ALCOHOLS] + [(s, "amine") for s in AMINES]
# The smallest search there is: the tests are about the command, not the model.
QUICK = [
    "--method",
    "svc",
    "--depth",
    "1",
    "--weight-radius",
    "0",
    "--kernel",
    "wwl-linear",
    "--jobs",
    "1",
]
# The same for the usual method.
SMALL = ["--depth", "1", "--jobs", "1"]
FORMULA = '=HYPERLINK("http://example.org","x")'
FAST = ["--folds", "2", "--depth", "1", "--jobs", "1"]
RINGS = ["c1ccccc1", "c1ccncc1", "C1CCCCC1", "C1CCOC1", "c1ccsc1"]
# Rings with tails; which class, and when it was measured.
RINGED = [
    (ring + tail, "acid" if "=O" in tail else "other", 2000 + 3 * k % 8)
    for ring in RINGS
    for k, tail in enumerate(["C", "CC", "CC(=O)O", "CCC(=O)O", "N", "CN", "C(=O)O", "CCC"])
]


def write_csv(path: Path, rows: list[tuple[Any, ...]], header: str = "smiles,label") -> Path:
    lines = [header, *(",".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def write_sdf(path: Path, smiles: list[str], **properties: Any) -> Path:
    """Records of an SDF; the property ``_Name`` is their first line."""
    with Chem.SDWriter(str(path)) as writer:
        for k, text in enumerate(smiles):
            molecule = Chem.MolFromSmiles(text)
            for name, values in properties.items():
                molecule.SetProp(name, str(values[k]))
            writer.write(molecule)
    return path


def tiny_tu(folder: Path, n: int = 8) -> Path:
    """Class 1: a path with a 9 in the middle; class 0: a triangle without."""
    edges, owner, labels, classes = [], [], [], []
    for graph in range(2 * n):
        first, positive = 3 * graph + 1, graph % 2
        edges += [(first, first + 1), (first + 1, first + 2)]
        edges += [] if positive else [(first, first + 2)]
        owner += [graph + 1] * 3
        labels += [graph % 3, 9 if positive else 8, graph % 3]
        classes.append(positive)
    files = {
        "A": [f"{u}, {v}" for u, v in edges],
        "graph_indicator": owner,
        "node_labels": labels,
        "graph_labels": classes,
    }
    folder.mkdir()
    for part, lines in files.items():
        (folder / f"{folder.name}_{part}.txt").write_text("\n".join(map(str, lines)) + "\n")
    return folder


def refused(done: Finished, *words: str) -> None:
    """One message, with these words, exit code 2, and nothing on standard output."""
    assert done.code == 2
    assert done.out == ""
    assert "Traceback" not in done.err
    assert done.err.count("Error: ") == 1
    for word in words:
        assert word in done.err, done.err


class Finished:
    """What a command printed, and how it ended."""

    def __init__(self, result: Any) -> None:
        self.code, self.out, self.err = result.exit_code, result.stdout, result.stderr

    @property
    def data(self) -> Any:
        return json.loads(self.out)


def run(*arguments: Any) -> Finished:
    return Finished(CliRunner().invoke(app, [str(a) for a in arguments]))


def ok(*arguments: Any) -> Finished:
    """The same of a command that must work."""
    done = run(*arguments)
    assert done.code == 0, done.err
    return done


@pytest.fixture
def molecules(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "molecules.csv", MOLECULES)


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    data = write_csv(folder / "molecules.csv", MOLECULES)
    ok("fit", data, "--out", folder / "model.treelens", *QUICK)
    return folder / "model.treelens"


@pytest.fixture(scope="session")
def strange_model(tmp_path_factory) -> Path:
    """Classes whose names are a formula and a text with terminal escapes."""
    path = tmp_path_factory.mktemp("strange") / "model.treelens"
    y = [FORMULA] * len(ALCOHOLS) + ["\x1b]0;owned\x07am\nine\r"] * len(AMINES)
    model = tl.GraphSVC("wwl-linear", 1, 0, C=1.0, cv=2, progress=False)
    model.fit(tl.as_graph_collection(ALCOHOLS + AMINES), y).save(path)
    return path


@pytest.fixture
def ringed(tmp_path: Path) -> Path:
    rows = [(s, label, year, "ab"[i % 2]) for i, (s, label, year) in enumerate(RINGED)]
    return write_csv(tmp_path / "rings.csv", rows, "smiles,label,year,lab")
