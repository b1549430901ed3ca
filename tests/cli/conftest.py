"""Small molecules in files, and the command line in this process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from treelens.cli.main import app

pytest.importorskip("rdkit")

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


def write_csv(path: Path, rows: list[tuple[Any, ...]], header: str = "smiles,label") -> Path:
    lines = [header, *(",".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


class Finished:
    """What a command printed, and how it ended."""

    def __init__(self, result: Any) -> None:
        self.code, self.out, self.err = result.exit_code, result.stdout, result.stderr

    @property
    def data(self) -> Any:
        return json.loads(self.out)


def run(*arguments: Any) -> Finished:
    return Finished(CliRunner().invoke(app, [str(a) for a in arguments]))


@pytest.fixture
def molecules(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "molecules.csv", MOLECULES)


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    data = write_csv(folder / "molecules.csv", MOLECULES)
    finished = run("fit", data, "--out", folder / "model.treelens", *QUICK)
    assert finished.code == 0, finished.err
    return folder / "model.treelens"
