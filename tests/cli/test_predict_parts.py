"""Predictions in parts: the same file, whatever was stopped in between."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace

import pandas as pd
import pytest

import treelens as tl
from cli.conftest import MOLECULES, run, write_csv
from cli.test_evidence import classifier, numbers, regression  # noqa: F401 (fixtures)
from treelens.cli import predict_parts
from treelens.cli.console import InputError
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


def stopped_after_one_part(monkeypatch, plan, out):
    """The folder of a run that was stopped."""
    work, made = predict_parts._predict_part, []

    def once(*given):
        if made:
            raise KeyboardInterrupt
        made.append(work(*given))

    with monkeypatch.context() as patch:
        patch.setattr(predict_parts, "_predict_part", once)
        with pytest.raises(KeyboardInterrupt):
            predict_in_parts(plan, out, n_jobs=1)
    return out.with_name(out.name + ".parts")


@pytest.mark.parametrize(
    ("what", "told"),
    [
        ("model", "the same content of the model."),
        ("table", "the same content of the table."),
        ("size", "the same --part-size (5 then, 6 now)."),
        ("columns", "the same --id (None then, 'none' now)."),
        ("version", f"the same version of treelens ({tl.__version__!r} then, '9.9.9' now)."),
        ("two", "the same content of the table and --part-size (5 then, 6 now)."),
    ],
)
def test_what_makes_another_run(what, told, classifier, table, tmp_path, monkeypatch):  # noqa: F811
    model, out = tmp_path / "m.treelens", tmp_path / "p.csv"
    model.write_bytes(classifier.read_bytes())
    plan = PartsPlan((str(model),), str(table), 5)
    folder = stopped_after_one_part(monkeypatch, plan, out)
    kept = {path.name for path in folder.iterdir()}
    if what == "model":
        model.write_bytes(classifier.read_bytes() + b"\0")
    elif what in ("table", "two"):
        table.write_text(table.read_text() + "CCCCC,q\n")
    if what in ("size", "two"):
        plan = replace(plan, part_size=6)
    elif what == "columns":
        plan = replace(plan, asked=replace(plan.asked, ids="none"))
    elif what == "version":
        monkeypatch.setattr(tl, "__version__", "9.9.9")
    monkeypatch.setattr(predict_parts, "_loaded", lambda models: [])  # of the changed file
    with pytest.raises(InputError, match="parts of another run") as refusal:
        predict_in_parts(plan, out, n_jobs=1)
    assert told in str(refusal.value)
    assert {path.name for path in folder.iterdir()} == kept
    assert not out.exists()


def test_nothing_of_the_users_is_taken_away(classifier, table, tmp_path):  # noqa: F811
    folder = tmp_path / "p.csv.parts"
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    done = run("predict", classifier, table, "--out", tmp_path / "p.csv", "--part-size", 5)
    assert done.code == 2
    assert "holds notes.txt, which is no part of a run" in done.err
    assert (folder / "notes.txt").read_text() == "mine"
    assert not (tmp_path / "p.csv").exists()
    file = tmp_path / "q.csv.parts"
    file.write_text("mine")
    done = run("predict", classifier, table, "--out", tmp_path / "q.csv", "--part-size", 5)
    assert done.code == 2
    assert "is in the way" in done.err
    assert file.read_text() == "mine"


def test_a_part_without_its_mark_is_made_anew(classifier, table, tmp_path):  # noqa: F811
    folder = tmp_path / "p.csv.parts"
    folder.mkdir()
    (folder / "part-0000009.csv").write_text("STALE,LINE\n")
    done = run("predict", classifier, table, "--out", tmp_path / "p.csv", "--part-size", 5)
    assert done.code == 0, done.err
    assert "STALE" not in (tmp_path / "p.csv").read_text()
    assert not folder.exists()


def test_a_run_that_came_to_nothing_leaves_nothing(classifier, tmp_path):  # noqa: F811
    empty = tmp_path / "x.csv"
    empty.write_text("smiles\n")
    done = run("predict", classifier, empty, "--out", tmp_path / "p.csv", "--part-size", 5)
    assert done.code == 2
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith("p.csv")) == []


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


def test_parts_tell_how_many_lie_outside(regression, tmp_path):  # noqa: F811
    rows = [(f"m{k}", smiles) for k, smiles in enumerate(["CCCO", "[Na+].[Cl-]", "CCCCO", "[Si]"])]
    data = write_csv(tmp_path / "x.csv", rows, "id,smiles")
    at_once = run("predict", regression, data, "--out", tmp_path / "a.csv")
    in_parts = run("predict", regression, data, "--out", tmp_path / "b.csv", "--part-size", 3)
    said = "graphs lie outside of where the model may be believed"
    told = [next(line for line in done.err.splitlines() if said in line)
            for done in (at_once, in_parts)]  # fmt: skip
    assert told[0] == told[1]


def test_a_model_that_was_replaced_is_read_again(classifier, regression, table, tmp_path):  # noqa: F811
    model, out = tmp_path / "m.treelens", tmp_path / "p.csv"
    for source, column in ((classifier, "class"), (regression, "prediction")):
        model.write_bytes(source.read_bytes())
        predict_in_parts(PartsPlan((str(model),), str(table), 50), out, 1)
        assert column in pd.read_csv(out).columns


def test_a_model_that_is_replaced_meanwhile_ends_the_run(classifier, regression, table, tmp_path,  # noqa: F811
                                                         monkeypatch):  # fmt: skip
    model, honest = tmp_path / "m.treelens", predict_parts._predict_part
    model.write_bytes(classifier.read_bytes())

    def replaced_after(plan, folder, number, rows):
        honest(plan, folder, number, rows)
        model.write_bytes(regression.read_bytes())

    monkeypatch.setattr(predict_parts, "_predict_part", replaced_after)
    with pytest.raises(InputError, match="was replaced while parts were predicted"):
        predict_in_parts(PartsPlan((str(model),), str(table), 10), tmp_path / "p.csv", 1)
    assert not (tmp_path / "p.csv").exists()


def test_the_help_says_that_last_digits_may_differ():
    assert "in the last digits" in " ".join(run("predict", "--help").out.split())
