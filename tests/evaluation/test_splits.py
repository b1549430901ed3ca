"""Splits: nothing that belongs together is parted, folds are even, seeds settle all."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.model_selection import cross_val_score

import treelens as tl
from chem.test_molecule_table import write
from treelens.chem.ecfp import fingerprint_counts
from treelens.chem.molecules import smiles_to_collection
from treelens.chem.parsing import parsed_smiles
from treelens.chem.scaffolds import murcko_scaffolds
from treelens.chem.table_splits import table_splits
from treelens.errors import GraphDataError
from treelens.evaluation.splits import (
    ClusterKFold,
    DistinctKFold,
    GroupedKFold,
    ScaffoldKFold,
    balanced_folds,
    butina_clusters,
    copy_keys,
    time_splits,
)

Chem = pytest.importorskip("rdkit.Chem")

CORES = ["c1ccccc1", "c1ccncc1", "C1CCCCC1", "c1ccc2ccccc2c1", "C1CCOC1", "c1ccsc1", "C1CCNCC1"]
TAILS = ["C", "CC", "CCO", "N", "OC", "CC(=O)O", "Cl", "C#N"]
MOLECULES = [core + tail for core in CORES for tail in TAILS] + [f"{'C' * n}N" for n in range(1, 9)]


@pytest.fixture(scope="module")
def graphs() -> tl.GraphCollection:
    return smiles_to_collection(MOLECULES)


@pytest.mark.parametrize("kind", [DistinctKFold, ScaffoldKFold, ClusterKFold])
def test_every_graph_is_tested_once_and_the_seed_settles_it(kind, graphs):
    first, again, other = (list(kind(4, random_state=s).split(graphs)) for s in (0, 0, 1))
    assert sorted(np.concatenate([test for _, test in first])) == list(range(len(graphs)))
    for (train, test), (_, same) in zip(first, again, strict=True):
        assert not set(train) & set(test)
        assert test.tolist() == same.tolist()
    assert [t.tolist() for _, t in first] != [t.tolist() for _, t in other]
    plain = [list(kind(4, shuffle=False).split(graphs)) for _ in range(2)]
    assert [t.tolist() for _, t in plain[0]] == [t.tolist() for _, t in plain[1]]


def test_no_scaffold_is_on_both_sides_and_folds_are_even(graphs):
    # By another way than the splitter's: RDKit's fragment of the core, compared as a molecule.
    from rdkit.Chem.Scaffolds.MurckoScaffold import GetScaffoldForMol

    cores = np.array(
        [Chem.MolToSmiles(GetScaffoldForMol(Chem.MolFromSmiles(text))) for text in MOLECULES]
    )
    folds = list(ScaffoldKFold(4, random_state=0).split(graphs))
    for train, test in folds:
        assert not set(cores[train]) & set(cores[test])
    sizes = [len(test) for _, test in folds]
    assert max(sizes) - min(sizes) <= 8  # the size of a scaffold
    assert murcko_scaffolds(parsed_smiles(["CCO", "c1ccccc1CC"])) == ["", "c1ccccc1"]
    with pytest.raises(ValueError, match="at least 2"):
        list(ScaffoldKFold(1).split(graphs))


def test_folds_of_groups_do_not_depend_on_the_order_and_are_balanced():
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 40, 300).astype(str)
    folds = balanced_folds(groups, 5)
    order = rng.permutation(300)
    assert (balanced_folds(groups[order], 5) == folds[order]).all()
    for found in (folds, balanced_folds(groups, 5, np.random.RandomState(0))):
        sizes = np.bincount(found, minlength=5)
        assert sizes.max() - sizes.min() <= np.bincount(groups.astype(int)).max()
        assert all(len(np.unique(found[groups == g])) == 1 for g in np.unique(groups))


def test_a_large_group_has_a_fold_to_itself():
    groups = np.array([0] * 50 + list(range(1, 51)))
    for seed in range(5):
        folds = balanced_folds(groups, 5, np.random.RandomState(seed))
        assert len(np.unique(folds[:50])) == 1
        assert not (folds[50:] == folds[0]).any()
        assert np.ptp(np.bincount(folds[50:])[np.arange(5) != folds[0]]) <= 1


def test_clusters_are_those_of_rdkit(graphs):
    from rdkit import DataStructs
    from rdkit.Chem import rdFingerprintGenerator
    from rdkit.ML.Cluster import Butina

    molecules = parsed_smiles(MOLECULES)
    make = rdFingerprintGenerator.GetMorganGenerator(2, fpSize=2**24)  # long: nothing collides
    prints = [make.GetSparseFingerprint(molecule) for molecule in molecules]
    distances = [
        1 - DataStructs.TanimotoSimilarity(prints[i], prints[j])
        for i in range(len(prints))
        for j in range(i)
    ]
    theirs = Butina.ClusterData(distances, len(prints), 0.6, isDistData=True)
    ours = butina_clusters((fingerprint_counts(molecules) > 0).astype(float), 0.4)
    assert {frozenset(cluster) for cluster in theirs} == {
        frozenset(np.flatnonzero(ours == k).tolist()) for k in range(ours.max() + 1)
    }
    assert 1 < ours.max() + 1 < len(molecules)
    for train, test in ClusterKFold(3, random_state=0).split(graphs):
        assert not set(ours[train]) & set(ours[test])


def test_other_graphs_can_be_clustered_too():
    graphs, y = tl.make_synthetic(n_per_substructure=5, random_state=0)
    folds = list(ClusterKFold(2, similarity=0.8, random_state=0).split(graphs, y))
    assert sorted(np.concatenate([test for _, test in folds])) == list(range(len(graphs)))
    with pytest.raises(GraphDataError, match="not read from molecules"):
        list(ScaffoldKFold(2).split(graphs))


def test_copies_stay_together_however_they_are_written():
    written = ["CCO", "OCC", "C(O)C", "CCN", "NCC", "c1ccccc1", "C1=CC=CC=C1", "CCCC", "CCCl"]
    keys = copy_keys(smiles_to_collection(written))
    assert len(set(keys)) == 5
    y = np.array([0, 0, 0, 1, 1, 0, 0, 1, 1])
    for seed in range(5):
        for train, test in DistinctKFold(2, random_state=seed).split(written, y):
            assert not set(keys[train]) & set(keys[test])


def test_random_folds_are_stratified_by_class(graphs):
    y = np.array([0] * 56 + [1] * 8)
    for _, test in DistinctKFold(4, random_state=0).split(graphs, y):
        assert y[test].sum() == 2


def test_the_past_is_trained_on_and_what_came_next_tested():
    rng = np.random.default_rng(0)
    times = rng.integers(0, 30, 200)
    splits = time_splits(times, 4)
    assert len(splits) == 4
    for train, test in splits:
        assert times[train].max() < times[test].min()
    assert [len(train) for train, _ in splits] == sorted(len(train) for train, _ in splits)
    tested = np.concatenate([test for _, test in splits])
    assert len(tested) == len(set(tested)) == 200 - len(splits[0][0])
    # texts sort as they are
    texts = time_splits(np.array(["2020-01", "2019-02", "2021-05", "2018-01"]), 1)
    assert [part.tolist() for part in texts[0]] == [[1, 3], [0, 2]]
    with pytest.raises(ValueError, match="2 different times"):
        time_splits([1, 1, 2, 2], 2)


def test_groups_that_are_given():
    groups = np.array(list("aabbccdd"))
    for train, test in GroupedKFold(2, random_state=0).split(groups, None, groups):
        assert not set(groups[train]) & set(groups[test])
    with pytest.raises(ValueError, match="needs groups"):
        list(GroupedKFold(2).split(groups))
    with pytest.raises(ValueError, match="There are 4 groups for 5 folds"):
        list(GroupedKFold(5).split(groups, None, groups))


def test_they_work_with_scikit_learn(graphs):
    y = np.array([smiles.count("O") > 0 for smiles in MOLECULES]).astype(int)
    model = tl.GraphClassifier(depth=1, weights="uniform", random_state=0)
    scores = cross_val_score(model, graphs, y, cv=ScaffoldKFold(2, random_state=0))
    assert scores.shape == (2,)
    assert scores.min() > 0.8


# --- splits of a table --------------------------------------------------------------------------

RINGED = ["c1ccccc1", "c1ccncc1", "C1CCCCC1", "C1CCOC1", "c1ccsc1"]
ENDS = ["C", "CC", "CC(=O)O", "CCC(=O)O", "N", "CN", "C(=O)O", "CCC"]


@pytest.fixture
def ringed(tmp_path: Path) -> Path:
    rows = [
        (ring + tail, "acid" if "=O" in tail else "other", 2000 + 3 * k % 8, "ab"[k % 2])
        for ring in RINGED
        for k, tail in enumerate(ENDS)
    ]
    return write(tmp_path / "rings.csv", rows, "smiles,label,year,lab")


def split_by(path: Path, split: str, n_folds: int = 2, n_repeats: int = 1, duplicates="keep"):
    notes: list[str] = []
    table = tl.read_table(path, target="auto", duplicates=duplicates)
    return table, table_splits(table, split, n_folds, n_repeats, 0, notes), notes


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
    [
        ("best", 2, "expected random, scaffold"),
        ("time=", 2, "expected random"),
        ("time=yeer", 2, "Did you mean 'year'"),
        ("column=same", 2, "one value only"),
        ("time=gaps", 2, "empty in 1 rows, the first row 4"),
        ("random", 30, "Use 20 folds"),
        ("random", 16, "has 15 members"),
        ("scaffold", 9, "5 scaffolds for 9 folds"),
    ],
)
def test_splits_that_cannot_be(split, folds, words, ringed):
    lines = ringed.read_text().splitlines()
    more = [f"{line},x,{'' if k == 3 else k}" for k, line in enumerate(lines[1:])]
    ringed.write_text("\n".join([lines[0] + ",same,gaps", *more]))
    with pytest.raises(ValueError, match=words):
        split_by(ringed, split, n_folds=folds)
