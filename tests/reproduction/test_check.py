"""Rows are made again, and what moved is said; test parts are for frozen defaults only."""

import json

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("rdkit")

from reproduction.data import StudyOptions
from reproduction.fidelity import atom_measures, run_atoms
from reproduction.frozen import digest, source_hash
from reproduction.rows import read_rows

import treelens as tl
from reproduction import check, compare, expansion, frozen

SMILES = ["C" * n + end for n in range(1, 13) for end in "ONF"]


@pytest.fixture
def rows(monkeypatch, tmp_path):
    """A folder with one row of the current source code, which counts as frozen."""
    graphs = tl.as_graph_collection(SMILES)
    data = compare.Data(graphs, graphs.sizes.astype(float), False, np.arange(len(SMILES)) >= 25)
    part = compare.Part(("a",), lambda name: data, compare.published_split, ("patterns",))
    state = {"name": "defaults-9", "commit": "abc", "source": source_hash()}
    monkeypatch.setattr(frozen, "frozen_defaults", lambda: state)
    monkeypatch.setattr(check, "frozen_defaults", lambda: state)
    monkeypatch.setattr(compare, "PARTS", {"tiny": part})
    monkeypatch.setattr(check, "PARTS", {"tiny": part})
    compare.run(StudyOptions(tmp_path, part="tiny"))
    return tmp_path


def test_a_row_that_did_not_move_and_one_that_did(rows, capsys):
    path = rows / "rows" / "compare_tiny.jsonl"
    (row,) = read_rows(path)
    assert (row["defaults"], row["commit"]) == ("defaults-9", "abc")
    check.run(StudyOptions(rows))
    assert "1 rows made again, 0 moved" in capsys.readouterr().out
    path.write_text(json.dumps({**row, "rmse": 2.0 * row["rmse"], "test_part": "other"}) + "\n")
    with pytest.raises(ValueError, match="1 of 1 rows"):
        check.run(StudyOptions(rows))
    said = capsys.readouterr().out
    assert "rmse" in said
    assert "test_part" in said
    assert "mae" not in said


def test_a_check_of_nothing_is_no_check(rows, tmp_path_factory):
    with pytest.raises(ValueError, match="no rows of defaults-9"):
        check.run(StudyOptions(tmp_path_factory.mktemp("empty")))
    path = rows / "rows" / "compare_tiny.jsonl"
    (row,) = read_rows(path)
    path.write_text(json.dumps({**row, "rmse": None, "data": "other"}) + "\n")
    (checked,) = check.check(StudyOptions(rows))
    assert {"rmse", "data"} <= set(checked.moved)


def test_a_digest_depends_on_all_parts_and_their_borders():
    first = digest("ab", np.arange(3), ["x"])
    assert first == digest("ab", np.arange(3), ["x"])
    others = [("a", "b", np.arange(3), ["x"]), ("ab", np.arange(4), ["x"]), ("ab", np.arange(3))]
    assert first not in [digest(*parts) for parts in others]


def test_test_parts_are_refused_where_defaults_are_not_frozen(monkeypatch, tmp_path):
    state = {"name": "defaults-9", "commit": "abc", "source": "another"}
    monkeypatch.setattr(frozen, "frozen_defaults", lambda: state)
    options = StudyOptions(tmp_path, sets=["ames"])
    with pytest.raises(ValueError, match="ames must not be used before"):
        next(compare.works(compare.PARTS["tdc"], options))
    with pytest.raises(ValueError, match="test part"):
        expansion.run(StudyOptions(tmp_path, sets=[expansion.OFFICIAL]))
    with pytest.raises(ValueError, match="Test parts"):
        run_atoms(options)


def test_scores_of_an_endpoint_with_gaps():
    truth = pd.Series([1.0, np.nan, 3.0, 5.0])
    mean, median = np.array([1.0, 9.0, 3.0, 4.0]), np.array([2.0, 9.0, 3.0, 5.0])
    bounds = np.array([[0.0, 2.0], [0.0, 1.0], [0.0, 2.0], [4.0, 6.0]])
    found = expansion.endpoint_scores(truth, mean, median, bounds)
    assert found == pytest.approx(
        {"n_test": 3, "r2": 1 - 1 / 8, "mae": 1 / 3, "rae": 1 / 4, "coverage": 2 / 3}
    )


def test_atoms_that_are_causes_and_the_opposite():
    worth = np.array([0.9, -0.8, 0.1, 0.0])
    assert atom_measures(np.array([1, -1, 0, 0]), worth) == (1.0, 1.0)
    assert atom_measures(np.array([0, 0, 0, 1]), worth) == (pytest.approx(1 / 3), 0.0)
    assert atom_measures(np.zeros(4, dtype=int), worth) is None
