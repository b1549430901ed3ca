"""Every file is opened once, every molecule parsed once, every new graph refined once."""

from __future__ import annotations

import gzip
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from rdkit import Chem

from cli.conftest import MOLECULES, QUICK, SMALL, ok, write_csv, write_sdf
from treelens.cli.options import read_data
from treelens.explain.smarts import MOST_CHECKED
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


@pytest.fixture(params=["csv", "csv.gz", "sdf"])
def data(request, tmp_path) -> Path:
    path = tmp_path / f"x.{request.param}"
    if request.param == "sdf":
        smiles, labels = zip(*MOLECULES, strict=True)
        return write_sdf(path, smiles, label=labels)
    plain = write_csv(tmp_path / "plain.csv", MOLECULES)
    content = plain.read_bytes()
    path.write_bytes(gzip.compress(content) if request.param == "csv.gz" else content)
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


def test_fit_with_fragments_refines_the_training_graphs_once_more(molecules, tmp_path, monkeypatch):
    counts = Counts()
    wrapped = counts.around(PatternForest.transform, sized=True)
    monkeypatch.setattr(PatternForest, "transform", wrapped)
    ok("fit", molecules, "--out", tmp_path / "m", *SMALL, "--fragments", 0)
    assert counts.calls == 0
    ok("fit", molecules, "--out", tmp_path / "m", *SMALL)
    assert (counts.calls, counts.graphs) == (1, len(MOLECULES))


@pytest.mark.parametrize(
    ("options", "where"),
    [(SMALL, PatternForest), (QUICK, PatternVocabulary)],
    ids=["gp", "svc"],
)
def test_predict_refines_every_graph_once(molecules, tmp_path, options, where, monkeypatch):
    model = tmp_path / "m.treelens"
    ok("fit", molecules, "--out", model, *options)
    counts = Counts()
    monkeypatch.setattr(where, "transform", counts.around(where.transform, sized=True))
    ok("predict", model, molecules, "--target", "label")
    assert (counts.calls, counts.graphs) == (1, len(MOLECULES))


def test_a_known_data_set_is_opened_once_and_parsed_once(data_folder, parses):
    path = data_folder / "smiles" / "PTC_MR.csv.gz"
    if not path.exists():
        pytest.skip("needs smiles/PTC_MR.csv.gz in TREELENS_DATA")
    before = Counter(_opened)
    found = read_data("PTC_MR_smiles", atom_label="element+charge")
    assert found.graphs.recipe.atom_label == "element+charge"
    assert _opened[str(path)] - before[str(path)] == 1
    assert parses.calls == len(found.graphs)
