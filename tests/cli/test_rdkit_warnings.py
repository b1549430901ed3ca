"""RDKit's own warnings: counted in one line of ours, never on standard error as they are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from rdkit import Chem
from rdkit.Chem import AllChem

from cli.conftest import MOLECULES, SMALL, run, write_csv

# What RDKit warns about: hydrogens that stay, sides of a double bond that contradict each other.
WARNED = ["[H-].[Na+]", "[H][H].[H+]", "[H]*CC", "F/C(/Cl)=C(/F)/Cl"]
# No molecules: too many bonds, aromatic rings that cannot be drawn, no SMILES.
UNREADABLE = ["CC(C)(C)(C)C", "n1cccc1", "c1ccc1c", "C1CC"]
ROWS = [*((s, "alcohol") for s in [*WARNED, *UNREADABLE]), *MOLECULES]
OURS = ("Note: ", "Fitting ", "Predictions: ", "Report: ", f"{len(ROWS)} rows; ")


def on_stderr(*arguments: object, folder: Path) -> list[str]:
    """What the command writes on the standard error of its process, RDKit's C++ included."""
    done = subprocess.run(
        [sys.executable, "-m", "treelens", *map(str, arguments)],
        capture_output=True, text=True, timeout=600, cwd=folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stderr.splitlines()


def one_note(lines: list[str]) -> str:
    """The one line about RDKit, where all the others are ours as well."""
    assert [line for line in lines if not line.startswith(OURS)] == []
    (note,) = [line for line in lines if line.startswith("Note: RDKit warned")]
    return note


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("warned")
    write_csv(folder / "x.csv", ROWS)
    lines = on_stderr(
        "fit", "x.csv", "--out", "m.treelens", "--max-invalid", 0.5, *SMALL, folder=folder
    )
    (folder / "notes.txt").write_text("\n".join(lines))
    return folder


def test_fit_counts_what_rdkit_warned_of(folder):
    note = one_note((folder / "notes.txt").read_text().splitlines())
    assert "RDKit warned about 4 molecules" in note
    assert "not removing hydrogen atom without neighbors (2, the first in row 1)" in note
    assert "not removing hydrogen atom with dummy atom neighbors (1, the first in row 3)" in note
    assert "double bond at index # (1, the first in row 4)" in note
    assert "kekul" not in note.casefold()  # those are no molecules, which another note counts


@pytest.mark.parametrize(
    "words",
    [
        ["predict", "m.treelens", "x.csv", "--out", "p.csv"],
        ["explain", "m.treelens", "x.csv", "--target", "label", "--out", "r.html"],
    ],
    ids=["predict", "explain"],
)
def test_every_command_counts_each_molecule_once(words, folder):
    note = one_note(on_stderr(*words, folder=folder))
    assert note in (folder / "notes.txt").read_text()


def test_warnings_about_an_sdf(tmp_path):
    blocks = []
    for smiles, label in MOLECULES:
        molecule = Chem.AddHs(Chem.MolFromSmiles(smiles))
        AllChem.EmbedMolecule(molecule, randomSeed=1)
        flat = Chem.MolToMolBlock(molecule).replace("3D", "2D", 1)  # which its heights deny
        blocks.append(f"{flat}>  <label>\n{label}\n\n$$$$\n")
    (tmp_path / "x.sdf").write_text("".join(blocks))
    note = one_note(on_stderr("fit", "x.sdf", "--out", "m", *SMALL, folder=tmp_path))
    assert f"tagged as 2D, but at least one Z coordinate is not zero. Marking the mol as 3D " \
           f"({len(MOLECULES)}, the first in row 1)" in note  # fmt: skip


def test_no_note_where_rdkit_does_not_warn(molecules, tmp_path):
    assert "RDKit" not in run("fit", molecules, "--out", tmp_path / "m", *SMALL).err


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
    assert run("predict", folder / "m.treelens", folder / "x.csv").code == 0
    capfd.readouterr()
    Chem.MolFromSmiles("[H-]")
    assert "not removing hydrogen atom" in capfd.readouterr().err
