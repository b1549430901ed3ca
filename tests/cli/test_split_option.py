"""Splits by scaffold, time, columns, or as published."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cli.conftest import FAST, MOLECULES, RINGS, run, write_csv
from cli.test_bad_input import refused
from cli.test_commands import tiny_tu
from treelens.cli.data import read_training_data
from treelens.cli.split_option import column_values, splits_for


def split_by(path: Path, split: str, n_folds: int = 2, n_repeats: int = 1):
    notes: list[str] = []
    data = read_training_data(str(path), task="auto", duplicates="keep")
    return data, splits_for(data, split, n_folds, n_repeats, 0, notes.append), notes


def test_scaffolds_stay_whole(ringed):
    data, splits, _ = split_by(ringed, "scaffold", n_folds=3, n_repeats=2)
    rings = np.array([next(r for r in RINGS if text.startswith(r)) for text in data.texts])
    assert len(splits) == 6
    for train, test in splits:
        assert not set(rings[train]) & set(rings[test])


def test_time_and_columns(ringed):
    data, splits, notes = split_by(ringed, "time=year", n_folds=2, n_repeats=2)
    years = column_values(data, "year").astype(int)
    assert all(years[train].max() < years[test].min() for train, test in splits)
    assert "--repeats 2 is not used" in notes[0]
    data, splits, _ = split_by(ringed, "column=lab", n_folds=5)
    labs = column_values(data, "lab")
    assert len(splits) == 2
    assert all(not set(labs[a]) & set(labs[b]) for a, b in splits)


def test_dates_are_read_as_dates(tmp_path):
    rows = [(f"{'C' * n}O", n + 0.5, f"{n}/1/2020") for n in range(1, 13)]
    data = write_csv(tmp_path / "x.csv", rows, "smiles,value,day")  # as texts 10/1 is before 2/1
    _, splits, _ = split_by(data, "time=day", n_folds=2)
    assert [test.tolist() for _, test in splits] == [[4, 5, 6, 7], [8, 9, 10, 11]]


def test_train_and_test_as_published_without_copies(tmp_path):
    rows = [(f"{'C' * n}O", n + 0.5, "Train") for n in range(1, 25)]
    rows += [("OCC", 9.5, "test"), ("CCCCN", 5.5, "test"), ("CCCN", 3.5, "test")]
    path = write_csv(tmp_path / "x.csv", rows, "smiles,value,part")
    _, splits, notes = split_by(path, "column=part")
    ((train, test),) = splits
    assert (len(train), test.tolist()) == (24, [25, 26])
    assert "1 test molecules have a copy in their training part" in notes[0]
    done = run(
        "evaluate", path, "--models", "evidence_uniform", "--split", "column=part", *FAST[2:]
    )
    assert done.code == 0, done.err
    assert "one test part" in done.out


def test_splits_that_cannot_be(ringed, molecules, tmp_path):
    refused(run("evaluate", ringed, "--split", "best"), "--split best: expected random, scaffold")
    refused(run("evaluate", ringed, "--split", "time="), "--split time=: expected")
    refused(run("evaluate", ringed, "--split", "time=yeer"), "Did you mean 'year'?")
    refused(run("evaluate", molecules, "--split", "scaffold"), "There are 1 scaffolds for 5 folds")
    refused(run("evaluate", ringed, "--score", "rmse"), "--score rmse: expected one of roc_auc")
    refused(run("evaluate", ringed, "--positive", "base"), "--positive base: expected one of two")
    refused(run("evaluate", ringed, "--threshold", "high"), "--threshold high: threshold must be")
    same = write_csv(tmp_path / "s.csv", [(s, c, "x") for s, c in MOLECULES], "smiles,label,lab")
    refused(run("evaluate", same, "--split", "column=lab"), "holds one value only ('x')")
    gaps = [(s, c, "" if i == 3 else i) for i, (s, c) in enumerate(MOLECULES)]
    path = write_csv(tmp_path / "g.csv", gaps, "smiles,label,when")
    refused(run("evaluate", path, "--split", "time=when"), "empty in 1 rows, the first row 4")
    folder = tiny_tu(tmp_path / "TINY")
    refused(run("evaluate", folder, "--split", "time=x", *FAST), "has no columns")


@pytest.mark.parametrize("when", [lambda n: n, lambda n: f"2020-{n:02d}-01", lambda n: f"v{n:02d}"])
@pytest.mark.parametrize("classes", [False, True])
def test_merged_rows_count_from_the_latest_date(when, classes, tmp_path):
    said = (lambda n: "ab"[n % 2]) if classes else (lambda n: n + 0.5)
    rows = [(f"{'C' * n}O", said(n), when(n)) for n in range(1, 13)]
    rows.append(("OCC", said(2), when(12)))  # the molecule of the second row, measured again
    path = write_csv(tmp_path / "x.csv", rows, "smiles,value,when")
    data = read_training_data(str(path), task="auto", duplicates="merge")
    assert [some.tolist() for some in data.merged[:3]] == [[0], [1, 12], [2]]
    splits = splits_for(data, "time=when", 2, 1, 0)
    again = 1  # its mean holds what was measured last
    assert all(again not in train for train, _ in splits)
    assert again in splits[-1][1]


@pytest.mark.parametrize("sides", [("train", "test"), ("test", "train")])
def test_a_molecule_with_merged_rows_on_both_sides_is_trained_on_alone(sides, tmp_path):
    rows = [(f"{'C' * n}O", n + 0.5, "train" if n < 9 else "test") for n in range(1, 13)]
    rows[1] = (rows[1][0], 2.5, sides[0])
    rows.append(("OCC", 4.5, sides[1]))  # the molecule of the second row
    path = write_csv(tmp_path / "x.csv", rows, "smiles,value,part")
    data = read_training_data(str(path), task="auto", duplicates="merge")
    ((train, test),) = splits_for(data, "column=part", 2, 1, 0)
    assert 1 in train
    assert test.tolist() == [8, 9, 10, 11]


def test_a_merged_row_without_a_date_is_named(tmp_path):
    rows = [(f"{'C' * n}O", n + 0.5, n) for n in range(1, 13)] + [("OCC", 2.5, "")]
    path = write_csv(tmp_path / "x.csv", rows, "smiles,value,when")
    refused(run("evaluate", path, "--split", "time=when"), "empty in 1 rows, the first row 13")


def test_the_help_says_which_date_counts():
    assert "count from the latest of their dates" in " ".join(run("evaluate", "--help").out.split())
