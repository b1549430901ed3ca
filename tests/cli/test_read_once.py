"""Files are opened once, molecules parsed and refined once, and RDKit's warnings stay unheard."""

from __future__ import annotations

import gzip
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from rdkit import Chem

from cli.conftest import MOLECULES, QUICK, SMALL, ok, write_csv, write_sdf
from treelens.chem.groups import MOST_CHECKED
from treelens.patterns.forest import PatternForest
from treelens.patterns.vocabulary import PatternVocabulary

PLAIN = [*SMALL, "--descriptors", "no"]  # which are computed from the molecules
_opened: Counter[str] = Counter()


def _listen(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open" and isinstance(arguments[0], (str, Path)):
        _opened[str(arguments[0])] += 1


sys.addaudithook(_listen)  # hooks cannot be taken away; this one only counts


class Counts:
    """How often a function was called, and with how many graphs in all."""

    def __init__(self) -> None:
        self.calls, self.graphs = 0, 0

    def around(self, function: Any, sized: bool = False) -> Any:
        def counted(*given: Any, **named: Any) -> Any:
            self.calls += 1
            self.graphs += len(given[1]) if sized else 0
            return function(*given, **named)

        return counted


@pytest.fixture
def parses(monkeypatch) -> Counts:
    counts = Counts()
    monkeypatch.setattr(Chem, "MolFromSmiles", counts.around(Chem.MolFromSmiles))
    return counts


@pytest.fixture(params=["csv.gz", "sdf"])
def data(request, tmp_path) -> Path:
    path = tmp_path / f"x.{request.param}"
    if request.param == "sdf":
        smiles, labels = zip(*MOLECULES, strict=True)
        return write_sdf(path, smiles, label=labels)
    path.write_bytes(gzip.compress(write_csv(tmp_path / "plain.csv", MOLECULES).read_bytes()))
    return path


@pytest.mark.parametrize("options", [PLAIN, QUICK], ids=["gp", "svc"])
def test_a_file_is_opened_once_and_its_molecules_are_parsed_once(data, tmp_path, options, parses):
    """A fragment is named by no more molecules than its name is tried on."""
    model, n_read = tmp_path / "m.treelens", 0 if data.suffix == ".sdf" else len(MOLECULES)
    for words, most in (
        (["fit", data, "--out", model, *options, "--fragments", 0], n_read),
        (["predict", model, data, "--target", "label"], n_read),
        (["fit", data, "--out", model, *options, "--fragments", 1], n_read + MOST_CHECKED),
    ):
        before, parses.calls = Counter(_opened), 0
        ok(*words)
        assert _opened[str(data)] - before[str(data)] == 1
        assert n_read <= parses.calls <= (most if n_read else 0)


@pytest.mark.parametrize(
    ("options", "where", "n_fit"),
    [(SMALL, PatternForest, 1), (QUICK, PatternVocabulary, 0)],
    ids=["gp", "svc"],
)
def test_every_graph_is_refined_once(molecules, tmp_path, options, where, n_fit, monkeypatch):
    """By predict, and by fragments after a fit of a Gaussian process."""
    counts, model = Counts(), tmp_path / "m.treelens"
    monkeypatch.setattr(where, "transform", counts.around(where.transform, sized=True))
    ok("fit", molecules, "--out", model, *options, "--fragments", 0)
    assert counts.calls == 0
    ok("fit", molecules, "--out", model, *options)
    assert counts.calls >= n_fit
    counts.calls = counts.graphs = 0
    ok("predict", model, molecules, "--target", "label")
    assert (counts.calls, counts.graphs) == (1, len(MOLECULES))


# --- RDKit's own warnings -------------------------------------------------------------------------

# What RDKit warns about: hydrogens that stay, sides of a double bond that contradict each other.
WARNED = ["[H-].[Na+]", "[H][H].[H+]", "[H]*CC", "F/C(/Cl)=C(/F)/Cl"]
# No molecules: too many bonds, aromatic rings that cannot be drawn, no SMILES.
UNREADABLE = ["CC(C)(C)(C)C", "n1cccc1", "c1ccc1c", "C1CC"]
ROWS = [*((s, "alcohol") for s in [*WARNED, *UNREADABLE]), *MOLECULES]
OURS = ("Note: ", "Fitting ", "Predictions: ", "Report: ", f"{len(ROWS)} rows; ", "label: ")


def test_no_command_prints_warnings_of_rdkit(tmp_path, capfd):
    """Nothing but our own lines on the standard error of the process, RDKit's C++ included."""
    write_csv(tmp_path / "x.csv", ROWS)
    for words in (
        ["fit", "x.csv", "--out", "m.treelens", "--max-invalid", 0.5, *SMALL],
        ["predict", "m.treelens", "x.csv", "--out", "p.csv"],
        ["explain", "m.treelens", "x.csv", "--target", "label", "--out", "r.html"],
    ):
        done = subprocess.run(
            [sys.executable, "-m", "treelens", *map(str, words)],
            capture_output=True,
            text=True,
            timeout=600,
            cwd=tmp_path,
        )
        assert done.returncode == 0, done.stderr
        assert all(line.startswith(OURS) for line in done.stderr.splitlines()), done.stderr
    ok("predict", tmp_path / "m.treelens", tmp_path / "x.csv")
    capfd.readouterr()
    Chem.MolFromSmiles("[H-]")  # RDKit warns as before
    assert "not removing hydrogen atom" in capfd.readouterr().err
