"""The molecule experiment on a made set: folds, kernel, shared search, resuming, page."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from reproduction.molecules_page import SVM_CS, TITLES, _with_costs, write_molecules
from reproduction.rows import read_rows

from reproduction import molecules as study

pytest.importorskip("rdkit.Chem", reason="needs RDKit: pip install 'treelens[chem]'")

CORES = ("c1ccccc1", "C1CCCCC1", "c1ccncc1", "C1CCNCC1", "c1ccc2ccccc2c1", "C")
TAILS = ("O", "N", "Cl", "CC", "C(=O)O", "[N+](=O)[O-]", "CCO", "C#N", "CBr", "OC")
N_FOLDS = 3
N_ROWS = 2 * N_FOLDS * len(TITLES)


def made_smiles() -> tuple[list[str], np.ndarray]:
    """Sixty molecules; nitro, cyano and halogen compounds are active, and a few others."""
    pairs = list(itertools.product(CORES, TAILS))
    active = [tail in {"Cl", "[N+](=O)[O-]", "C#N", "CBr"} for _, tail in pairs]
    noise = np.random.default_rng(0).random(len(pairs)) < 0.1
    return [core + tail for core, tail in pairs], np.logical_xor(active, noise).astype(int)


def made_dataset(name: str, folder: str | None = None):
    from treelens.graphs.molecules import smiles_to_collection

    smiles, y = made_smiles()
    return smiles_to_collection(smiles), y


@pytest.fixture
def small_study(monkeypatch):
    """The study with a made set, fewer folds, a small grid and few trees."""
    monkeypatch.setattr(study, "N_FOLDS", N_FOLDS)
    monkeypatch.setattr(study, "load_dataset", made_dataset)
    monkeypatch.setattr(study, "_N_TREES", 5)
    small = {
        "cv": 2,
        "depth": (1, 2),
        "gamma": (1.0,),
        "C": (1.0, 10.0),
        "weight_radius": (0.0, 3.0),
    }
    monkeypatch.setitem(study.GRIDS, "default", small)


@pytest.fixture
def made_set(small_study) -> study.MoleculeSet:
    return study.load_molecules("made")


# --- folds ------------------------------------------------------------------------------------


@pytest.mark.parametrize("split", study.SPLITS)
def test_every_molecule_is_tested_once(made_set, split):
    folds = made_set.folds(split, seed=0)
    tested = np.concatenate([test for _, test in folds])
    assert sorted(tested) == list(range(60))
    assert all(not set(train) & set(test) for train, test in folds)


def test_no_scaffold_is_in_training_and_test(made_set):
    scaffolds = np.array(made_set.scaffolds)
    assert len(set(scaffolds)) == len(CORES)  # one of them empty: the molecules without a ring
    for train, test in made_set.folds("scaffold", seed=0):
        assert not set(scaffolds[train]) & set(scaffolds[test])


def test_random_folds_follow_the_seed(made_set):
    first, again, other = (made_set.folds("random", seed)[0][1] for seed in (0, 0, 1))
    assert first.tolist() == again.tolist() != other.tolist()


# --- the classifier and its twin --------------------------------------------------------------


def test_the_uniform_twin_is_what_radius_zero_chooses(made_set):
    train, test = made_set.folds("random", seed=0)[0]
    graphs, codes = made_set.graphs[train], made_set.codes[train]
    model = study.classifier_for(len(train), seed=0).fit(graphs, codes)
    model.best_params_["weight_radius"] = 3.0  # whatever was chosen: make the twin from the search
    twin = study._uniform_twin(model, graphs, codes)
    alone = study.classifier_for(len(train), seed=0, weight_radius=0.0).fit(graphs, codes)
    names = ("kernel", "depth", "weight_radius", "gamma", "C")
    assert [twin.best_params_[k] for k in names] == [alone.best_params_[k] for k in names]
    decisions = (m.decision_function(made_set.graphs[test]) for m in (twin, alone))
    np.testing.assert_allclose(next(decisions), next(decisions))


def test_nothing_of_the_test_part_reaches_the_model(made_set):
    """Classes of the test part turned round: the same choice, the opposite score."""
    from dataclasses import replace

    _, test = made_set.folds("random", seed=0)[0]
    turned = made_set.codes.copy()
    turned[test] = 1 - turned[test]
    folds = made_set.folds("random", seed=0)
    for method in (study.GRAPH_METHODS, ("ecfp4_tanimoto_svm",)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(study.MoleculeSet, "folds", lambda *_: folds)
            row = study.run_fold(made_set, "random", 0, method)[0]
            other = study.run_fold(replace(made_set, codes=turned), "random", 0, method)[0]
        assert row["choice"] == other["choice"]
        assert other["roc_auc"] == pytest.approx(1 - row["roc_auc"])


# --- the whole of it --------------------------------------------------------------------------


def without_times(rows):
    kept = [{k: v for k, v in row.items() if k != "seconds"} for row in rows]
    return sorted(kept, key=lambda row: json.dumps(row, sort_keys=True))


def test_run_is_complete_and_resumes(small_study, tmp_path, monkeypatch):
    written = study.run_molecules(tmp_path, datasets=("BBBP",))
    assert all(path.exists() for path in written)
    path = tmp_path / "molecules.jsonl"
    rows = read_rows(path)
    assert len(rows) == N_ROWS
    assert len(read_rows(tmp_path / "molecules_atom_labels.jsonl")) == len(study.ATOM_LABELS)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-3]) + lines[-3][:40])  # killed while writing
    study.run_molecules(tmp_path, datasets=("BBBP",))
    assert without_times(read_rows(path)) == without_times(rows)
    monkeypatch.setattr(study, "load_dataset", None)  # a finished run does not even load the data
    before = path.read_bytes()
    study.run_molecules(tmp_path, datasets=("BBBP",))
    assert path.read_bytes() == before


def test_quick_rows_are_rows_of_the_full_run(small_study, tmp_path):
    study.run_molecules(tmp_path, quick=True, datasets=("BBBP", "Ames_Hansen2009"))
    rows = read_rows(tmp_path / "molecules.jsonl")
    assert {(row["dataset"], row["fold"]) for row in rows} == {("BBBP", 0), ("BBBP", 1)}
    assert len(rows) == 2 * 2 * len(TITLES)
    assert "Not finished" in (tmp_path / "molecules.md").read_text()


# --- the page ---------------------------------------------------------------------------------


def made_row(method: str, fold: int, roc_auc: float) -> dict:
    choice = {"kernel": "tanimoto", "depth": 2, "weight_radius": 1.0, "gamma": None, "C": 1.0}
    return {
        "dataset": "Ames_Hansen2009", "split": "random", "fold": fold, "method": method, "seed": 0,
        "roc_auc": roc_auc, "accuracy": 0.5, "choice": choice, "inner_gain": 0.0,
        "grid": "reduced",
    }  # fmt: skip


@pytest.mark.parametrize(("lead", "met"), [(0.016, True), (0.014, False)])
def test_the_aim_is_against_the_better_rival(tmp_path, lead, met):
    levels = {
        "graph_classifier": 0.88 + lead,
        "ecfp4_random_forest": 0.88,
        "ecfp4_tanimoto_svm": 0.87,
    }
    wobble = [0.0, 0.01, -0.01, 0.02, -0.02]
    rows = [
        made_row(method, fold, level + wobble[fold] + 0.001 * (fold % 2) * (level > 0.88))
        for method, level in levels.items()
        for fold in range(5)
    ]
    write_molecules(tmp_path, rows, [], seed=0)
    entry = json.loads((tmp_path / "molecules.json").read_text())["Ames_Hansen2009"]["random"]
    assert entry["aim"]["of"] == "ecfp4_random_forest"
    assert entry["aim"]["ahead_by"] == pytest.approx(lead + 0.0004)
    assert entry["aim"]["met"] is met
    assert entry["differences"]["ecfp4_tanimoto_svm"]["n_better"] == 5
    page = (tmp_path / "molecules.md").read_text()
    assert ("**met**" in page) is met
    assert "smaller than the default" in page
    assert "Ames_Hansen2009, scaffold: all" in page  # what is missing is said


def test_the_coarse_grid_of_costs_is_chosen_from_by_inner_scores_alone():
    inner = [0.1, 0.2, 0.7, 0.9, 0.8, 0.6, 0.5, 0.4]  # best of all: C = 2; of the coarse grid: 1
    outer = [0.0, 0.0, 0.61, 0.62, 0.99, 0.0, 0.0, 0.98]
    folds = {0: {"inner_by_C": inner, "roc_auc_by_C": outer}}
    assert _with_costs(folds, SVM_CS) == 0.62
    assert _with_costs(folds, (0.1, 1.0, 10.0, 100.0)) == 0.61
