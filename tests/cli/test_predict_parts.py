"""Predictions in parts: the same file, whatever was stopped in between."""

from __future__ import annotations

import gzip
import json

import pandas as pd
import pytest

from cli.conftest import MOLECULES, run, write_csv
from cli.test_evidence import classifier, numbers, regression  # noqa: F401 (fixtures)
from treelens.cli import predict_parts
from treelens.cli.predict_parts import PartsPlan, predict_in_parts

ROWS = [(f"m{k}", s) for k, (s, _) in enumerate(MOLECULES[5:25])]
ROWS[3:7] = [("odd", "no smiles"), ("empty", ""), ("bad", "C(C"), ("worse", "CN(C)(C)(C)C")]


@pytest.fixture
def table(tmp_path):
    return write_csv(tmp_path / "new.csv", ROWS, "id,smiles")


@pytest.mark.parametrize("which", ["regression", "classifier"])
@pytest.mark.parametrize("size", [4, 7, 100])
def test_parts_together_are_the_table_at_once(which, size, table, tmp_path, request):
    model = request.getfixturevalue(which)
    whole, parts = tmp_path / "whole.csv", tmp_path / "parts.csv"
    assert run("predict", model, table, "--out", whole, "--id", "id", "--jobs", 1).code == 0
    done = run(
        "predict", model, table, "--out", parts, "--id", "id", "--part-size", size, "--jobs", 1,
        "--json",
    )  # fmt: skip
    assert done.code == 0, done.err
    # Products of matrices of other sizes differ in their last digits.
    pd.testing.assert_frame_equal(pd.read_csv(parts), pd.read_csv(whole), rtol=1e-9)
    assert not parts.with_name("parts.csv.parts").exists()
    assert (done.data["n_rows"], done.data["n_unreadable"]) == (20, 4)
    assert done.data["n_parts"] == -(-20 // size)


def test_a_stopped_run_goes_on_where_it_was(classifier, table, tmp_path, monkeypatch):  # noqa: F811
    plan, out = PartsPlan((str(classifier),), str(table), 6), tmp_path / "p.csv"
    predict_in_parts(plan, tmp_path / "expected.csv", 1)
    honest, done = predict_parts._predict_part, []

    def killed_at_the_third(plan, folder, number, rows):
        done.append(number)
        if number == 2 and len(done) == 3:
            raise KeyboardInterrupt
        honest(plan, folder, number, rows)

    monkeypatch.setattr(predict_parts, "_predict_part", killed_at_the_third)
    with pytest.raises(KeyboardInterrupt):
        predict_in_parts(plan, out, 1)
    assert not out.exists()
    (tmp_path / "p.csv.parts" / "part-0000003.csv").write_text("half a pa")  # no sign that it is
    result = predict_in_parts(plan, out, 1)
    assert done == [0, 1, 2, 2, 3]
    assert out.read_text() == (tmp_path / "expected.csv").read_text()
    assert result["n_rows"] == 20


def test_processes_and_compressed_tables_make_the_same_file(classifier, table, tmp_path):  # noqa: F811
    packed = tmp_path / "new.csv.gz"
    packed.write_bytes(gzip.compress(table.read_bytes()))
    predict_in_parts(PartsPlan((str(classifier),), str(table), 6), tmp_path / "one.csv", 1)
    predict_in_parts(PartsPlan((str(classifier),), str(packed), 6), tmp_path / "two.csv", 2)
    assert (tmp_path / "one.csv").read_text() == (tmp_path / "two.csv").read_text()


def test_parts_of_another_run_are_refused(classifier, table, tmp_path):  # noqa: F811
    folder = tmp_path / "p.csv.parts"
    folder.mkdir()
    (folder / "plan.json").write_text(json.dumps({"model": "another"}))
    (folder / "part-0000000.json").write_text("{}")
    done = run("predict", classifier, table, "--out", tmp_path / "p.csv", "--part-size", 5)
    assert done.code != 0
    assert "holds parts of another run" in done.err
    assert "Remove it, or choose another --out." in done.err


def test_a_run_that_made_no_part_stands_in_nobodys_way(classifier, table, tmp_path):  # noqa: F811
    folder = tmp_path / "p.csv.parts"
    folder.mkdir()
    (folder / "plan.json").write_text(json.dumps({"model": "another"}))
    done = run("predict", classifier, table, "--out", tmp_path / "p.csv", "--part-size", 5)
    assert done.code == 0, done.err
    assert not folder.exists()


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ([], "--part-size needs --out"),
        (["--out", "p.csv", "--target", "id"], "Leave --target out"),
    ],
)
def test_what_parts_cannot_do_is_said(more, says, classifier, table, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.chdir(tmp_path)
    done = run("predict", classifier, table, "--part-size", 5, *more)
    assert done.code != 0
    assert says in done.err
    assert not (tmp_path / "p.csv.parts").exists()


def test_other_sources_are_no_tables_to_cut(classifier, tmp_path):  # noqa: F811
    sdf = tmp_path / "x.sdf"
    sdf.write_text("")
    done = run("predict", classifier, sdf, "--out", tmp_path / "p.csv", "--part-size", 5)
    assert done.code != 0
    assert "cannot be read in parts" in done.err
