"""RDKit's own warnings about molecules that it can read do not reach standard error."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from rdkit import Chem
from rdkit.Chem import AllChem

from cli.conftest import MOLECULES, SMALL, ok, write_csv

# What RDKit warns about: hydrogens that stay, sides of a double bond that contradict each other.
WARNED = ["[H-].[Na+]", "[H][H].[H+]", "[H]*CC", "F/C(/Cl)=C(/F)/Cl"]
# No molecules: too many bonds, aromatic rings that cannot be drawn, no SMILES.
UNREADABLE = ["CC(C)(C)(C)C", "n1cccc1", "c1ccc1c", "C1CC"]
ROWS = [*((s, "alcohol") for s in [*WARNED, *UNREADABLE]), *MOLECULES]
OURS = ("Note: ", "Fitting ", "Predictions: ", "Report: ", f"{len(ROWS)} rows; ")


def check_stderr(*arguments: object, folder: Path) -> None:
    """Nothing but our own lines on the standard error of the process, RDKit's C++ included."""
    done = subprocess.run(
        [sys.executable, "-m", "treelens", *map(str, arguments)],
        capture_output=True, text=True, timeout=600, cwd=folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert all(line.startswith(OURS) for line in done.stderr.splitlines()), done.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("warned")
    write_csv(folder / "x.csv", ROWS)
    fit = ["fit", "x.csv", "--out", "m.treelens", "--max-invalid", 0.5, *SMALL]
    check_stderr(*fit, folder=folder)
    return folder


@pytest.mark.parametrize("words", [["predict"], ["explain", "--target", "label"]])
def test_no_command_prints_warnings_of_rdkit(words, folder):
    command, *more = words
    check_stderr(command, "m.treelens", "x.csv", *more, "--out", command, folder=folder)


def test_warnings_about_an_sdf(tmp_path):
    blocks = []
    for smiles, label in MOLECULES:
        molecule = Chem.AddHs(Chem.MolFromSmiles(smiles))
        AllChem.EmbedMolecule(molecule, randomSeed=1)
        flat = Chem.MolToMolBlock(molecule).replace("3D", "2D", 1)  # which its heights deny
        blocks.append(f"{flat}>  <label>\n{label}\n\n$$$$\n")
    (tmp_path / "x.sdf").write_text("".join(blocks))
    check_stderr("fit", "x.sdf", "--out", "m", *SMALL, folder=tmp_path)


def test_python_prints_no_warnings_of_rdkit(folder):
    code = """
import warnings
import treelens as tl
from treelens.graphs.molecules import molecule_of
warnings.simplefilter("ignore")
graphs, y = tl.read_smiles("x.csv", on_invalid="skip")
model = tl.GraphClassifier(depth=1, n_jobs=1).fit(graphs, y)
model.report("p.html", graphs[:6], y[:6])
model.predict([molecule_of(graph) for graph in graphs[:4]])
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=600, cwd=folder
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_rdkit_warns_as_before_after_a_command(folder, capfd):
    ok("predict", folder / "m.treelens", folder / "x.csv")
    capfd.readouterr()
    Chem.MolFromSmiles("[H-]")
    assert "not removing hydrogen atom" in capfd.readouterr().err
