"""Splits of a table by scaffold, time, columns, or as published."""

from pathlib import Path

import numpy as np
import pytest

import treelens as tl
from graphs.test_molecule_table import write
from treelens.evaluation.splits import table_splits

pytest.importorskip("rdkit")

RINGS = ["c1ccccc1", "c1ccncc1", "C1CCCCC1", "C1CCOC1", "c1ccsc1"]
TAILS = ["C", "CC", "CC(=O)O", "CCC(=O)O", "N", "CN", "C(=O)O", "CCC"]


@pytest.fixture
def ringed(tmp_path: Path) -> Path:
    rows = [(ring + tail, "acid" if "=O" in tail else "other", 2000 + 3 * k % 8, "ab"[k % 2])
            for ring in RINGS for k, tail in enumerate(TAILS)]  # fmt: skip
    return write(tmp_path / "rings.csv", rows, "smiles,label,year,lab")


def split_by(path: Path, split: str, n_folds: int = 2, n_repeats: int = 1, duplicates="keep"):
    notes: list[str] = []
    table = tl.read_table(path, target="auto", duplicates=duplicates)
    return table, table_splits(table, split, n_folds, n_repeats, 0, notes), notes


def test_scaffolds_stay_whole(ringed):
    data, splits, _ = split_by(ringed, "scaffold", n_folds=3, n_repeats=2)
    rings = np.array([next(r for r in RINGS if text.startswith(r)) for text in data.texts])
    assert len(splits) == 6
    for train, test in splits:
        assert not set(rings[train]) & set(rings[test])


def test_time_and_columns(ringed):
    data, splits, notes = split_by(ringed, "time=year", n_folds=2, n_repeats=2)
    years = np.array(data.column("year")).astype(int)
    assert all(years[train].max() < years[test].min() for train, test in splits)
    assert "2 repeats are not used" in notes[0]
    data, splits, _ = split_by(ringed, "column=lab", n_folds=5)
    labs = np.array(data.column("lab"))
    assert len(splits) == 2
    assert all(not set(labs[a]) & set(labs[b]) for a, b in splits)


def test_dates_are_read_as_dates(tmp_path):
    rows = [(f"{'C' * n}O", n + 0.5, f"{n}/1/2020") for n in range(1, 13)]
    data = write(tmp_path / "x.csv", rows, "smiles,value,day")  # as texts 10/1 is before 2/1
    _, splits, _ = split_by(data, "time=day", n_folds=2)
    assert [test.tolist() for _, test in splits] == [[4, 5, 6, 7], [8, 9, 10, 11]]


def test_train_and_test_as_published_without_copies(tmp_path):
    rows = [(f"{'C' * n}O", n + 0.5, "Train") for n in range(1, 25)]
    rows += [("OCC", 9.5, "test"), ("CCCCN", 5.5, "test"), ("CCCN", 3.5, "test")]
    path = write(tmp_path / "x.csv", rows, "smiles,value,part")
    _, splits, notes = split_by(path, "column=part")
    ((train, test),) = splits
    assert (len(train), test.tolist()) == (24, [25, 26])
    assert "1 test molecules have a copy in their training part" in notes[0]


@pytest.mark.parametrize("when", [lambda n: n, lambda n: f"2020-{n:02d}-01", lambda n: f"v{n:02d}"])
@pytest.mark.parametrize("classes", [False, True])
def test_merged_rows_count_from_the_latest_date(when, classes, tmp_path):
    said = (lambda n: "ab"[n % 2]) if classes else (lambda n: n + 0.5)
    rows = [(f"{'C' * n}O", said(n), when(n)) for n in range(1, 13)]
    rows.append(("OCC", said(2), when(12)))  # the molecule of the second row, measured again
    path = write(tmp_path / "x.csv", rows, "smiles,value,when")
    data, splits, _ = split_by(path, "time=when", duplicates="merge")
    assert [some.tolist() for some in data.merged[:3]] == [[0], [1, 12], [2]]
    again = 1  # its mean holds what was measured last
    assert all(again not in train for train, _ in splits)
    assert again in splits[-1][1]
    write(tmp_path / "x.csv", [*rows, ("OCC", said(2), "")], "smiles,value,when")
    with pytest.raises(ValueError, match="empty in 1 rows, the first row 14"):
        split_by(path, "time=when", duplicates="merge")


@pytest.mark.parametrize("sides", [("train", "test"), ("test", "train")])
def test_a_molecule_with_merged_rows_on_both_sides_is_trained_on_alone(sides, tmp_path):
    rows = [(f"{'C' * n}O", n + 0.5, "train" if n < 9 else "test") for n in range(1, 13)]
    rows[1] = (rows[1][0], 2.5, sides[0])
    rows.append(("OCC", 4.5, sides[1]))  # the molecule of the second row
    path = write(tmp_path / "x.csv", rows, "smiles,value,part")
    _, ((train, test),), _ = split_by(path, "column=part", duplicates="merge")
    assert 1 in train
    assert test.tolist() == [8, 9, 10, 11]


@pytest.mark.parametrize(
    ("split", "folds", "words"),
    [("best", 2, "expected random, scaffold"), ("time=", 2, "expected random"),
     ("time=yeer", 2, "Did you mean 'year'"), ("column=same", 2, "one value only"),
     ("time=gaps", 2, "empty in 1 rows, the first row 4"), ("random", 30, "Use 20 folds"),
     ("random", 16, "has 15 members"), ("scaffold", 9, "5 scaffolds for 9 folds")],
)  # fmt: skip
def test_splits_that_cannot_be(split, folds, words, ringed):
    lines = ringed.read_text().splitlines()
    more = [f"{line},x,{'' if k == 3 else k}" for k, line in enumerate(lines[1:])]
    ringed.write_text("\n".join([lines[0] + ",same,gaps", *more]))
    with pytest.raises(ValueError, match=words):
        split_by(ringed, split, n_folds=folds)
