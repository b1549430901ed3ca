"""Molecules: the classifier beside what a chemist would use instead, in the same folds.

Two ways to deal molecules out to five folds: at random within the classes, and by Murcko scaffold,
so that a test molecule's ring system was never seen in training. Every choice (kernel, radius of
the weights, cost) is made by cross-validation inside the training part.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import StratifiedKFold

from reproduction.molecules_page import (
    N_FOLDS,
    REDUCED,
    SPLITS,
    SVM_CS,
    write_molecules,
)
from reproduction.progress import Work, run_all
from reproduction.rows import RowFile, versions
from treelens.estimators.svc import GraphSVC
from treelens.evaluation.splits import balanced_folds, murcko_scaffolds
from treelens.graphs.collection import GraphCollection
from treelens.graphs.datasets import load_dataset
from treelens.graphs.molecules import ATOM_LABELS, molecule_of, smiles_to_collection
from treelens.kernels.fingerprints import folded_counts, tanimoto_matrix
from treelens.svm.search import accuracy, roc_auc
from treelens.svm.solver import fit_svm_path

DATASETS = ("BBBP", "Ames_Hansen2009")
KEY = ("dataset", "split", "fold", "method", "seed")
ATOM_KEY = ("dataset", "atom_label", "seed")
# No atom label was clearly better inside the first training part, so the reader's default stays.
ATOM_LABEL = "element"
# The classifier's own grid, and a smaller one for training parts where that takes too long.
GRIDS: dict[str, dict[str, Any]] = {
    "default": {},
    "reduced": {**REDUCED, "cv": 3, "weight_radius": (0.0, *REDUCED["weight_radius"])},
}
GRAPH_METHODS = ("graph_classifier", "uniform")
_LARGE = 3000
_N_INNER = 5
_N_TREES = 500
_QUICK_FOLDS = 2


@dataclass(frozen=True)
class MoleculeSet:
    """Molecules as graphs and as fingerprints, their classes and their scaffolds."""

    name: str
    graphs: GraphCollection
    codes: np.ndarray  # (n_molecules,)
    fingerprints: sparse.csr_array  # (n_molecules, 2048), counts
    scaffolds: Sequence[str]

    @classmethod
    def from_graphs(cls, name: str, graphs: GraphCollection, y: np.ndarray) -> MoleculeSet:
        from rdkit import rdBase

        codes = np.unique(y, return_inverse=True)[1]
        with rdBase.BlockLogs():  # what RDKit finds odd was read all the same
            molecules = [molecule_of(graph) for graph in graphs]
        return cls(
            name,
            graphs,
            codes,
            sparse.csr_array(folded_counts(molecules)),
            murcko_scaffolds(molecules),
        )

    def folds(self, split: str, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """Training and test molecules of every fold."""
        if split == "scaffold":
            numbers = balanced_folds(np.array(self.scaffolds), N_FOLDS)
            return [
                (np.flatnonzero(numbers != k), np.flatnonzero(numbers == k)) for k in range(N_FOLDS)
            ]
        splitter = StratifiedKFold(N_FOLDS, shuffle=True, random_state=seed)
        return list(splitter.split(self.codes, self.codes))


def run_molecules(
    out: str | Path,
    quick: bool = False,
    datasets: Sequence[str] = DATASETS,
    n_jobs: int = 1,
    seed: int = 0,
) -> list[Path]:
    """Make the rows that are missing, then write summary and page.

    Parameters
    ----------
    out : path
        Folder for ``molecules.jsonl`` and what is made from it; rows already there are kept.
    quick : bool
        Only two folds of either kind of the first data set, and no comparison of atom labels.
    datasets : sequence of str
    n_jobs : int
        Processes; folds are dealt out to them.
    seed : int
        The same seed gives the same rows.

    Returns
    -------
    list of Path
        The files written.
    """
    folder, facts = Path(out), versions()
    file = RowFile(folder / "molecules.jsonl", KEY)
    atoms = RowFile(folder / "molecules_atom_labels.jsonl", ATOM_KEY)
    for name in datasets[:1] if quick else datasets:
        works = list(_fold_works(name, _QUICK_FOLDS if quick else N_FOLDS, seed, file))
        for rows in run_all(works, n_jobs, f"Molecules, {name}"):
            # A run stopped between the two graph methods has one of their rows already.
            for row in (row for row in rows if row not in file):
                file.append({**row, "versions": facts})
    for name in () if quick else datasets:
        works = list(_atom_works(name, seed, atoms))
        for row in run_all(works, n_jobs, f"Atom labels, {name}"):
            atoms.append({**row, "versions": facts})
    pages = write_molecules(folder, file.rows, atoms.rows, seed)
    return [file.path, *([atoms.path] if atoms.rows else []), *pages]


def load_molecules(name: str) -> MoleculeSet:
    """A data set by name, with the experiment's atom labels."""
    graphs, y = load_dataset(name)
    return MoleculeSet.from_graphs(name, _relabelled(graphs, ATOM_LABEL), np.asarray(y))


def _relabelled(graphs: GraphCollection, atom_label: str) -> GraphCollection:
    return smiles_to_collection(list(graphs.graph_data["smiles"]), atom_label=atom_label)


def _fold_works(name: str, n_folds: int, seed: int, file: RowFile) -> Iterator[Work]:
    """What still misses rows, fold by fold, so that a run cut short compares on whole folds."""
    groups = [*((method,) for method in BASELINES), GRAPH_METHODS]
    missing = [
        (split, fold, methods)
        for split in SPLITS
        for fold in range(n_folds)
        for methods in groups
        if any(dict(zip(KEY, (name, split, fold, m, seed), strict=True)) not in file
               for m in methods)
    ]  # fmt: skip
    if not missing:
        return
    data = load_molecules(name)
    for split, fold, methods in missing:
        yield Work(run_fold, (data, split, fold, methods, seed))


def _atom_works(name: str, seed: int, file: RowFile) -> list[Work]:
    keys = [(name, atom_label, seed) for atom_label in ATOM_LABELS]
    return [
        Work(run_atom_label, key)
        for key in keys
        if dict(zip(ATOM_KEY, key, strict=True)) not in file
    ]


# --- one fold ---------------------------------------------------------------------------------


def run_fold(
    data: MoleculeSet, split: str, fold: int, methods: Sequence[str], seed: int = 0
) -> list[dict[str, Any]]:
    """Rows of the graph methods, which share their search, or of one baseline, on one fold."""
    train, test = data.folds(split, seed)[fold]
    fit = _fit_graph_methods if tuple(methods) == GRAPH_METHODS else BASELINES[methods[0]]
    return [
        {
            "dataset": data.name, "split": split, "fold": fold, "method": method, "seed": seed,
            "n_train": len(train), "n_test": len(test), "atom_label": ATOM_LABEL, **result,
        }
        for method, result in zip(methods, fit(data, train, test, seed), strict=True)
    ]  # fmt: skip


def _scores(codes: np.ndarray, decisions: np.ndarray, start: float) -> dict[str, Any]:
    """Scores of decision values, positive for the second class, and the time since ``start``."""
    column = decisions.reshape(-1, 1)
    return {
        "roc_auc": roc_auc(codes, column),
        "accuracy": accuracy(codes, column),
        "seconds": round(time.perf_counter() - start, 3),
    }


def grid_for(n_train: int) -> str:
    """Which grid a training part of this size is searched with."""
    return "reduced" if n_train > _LARGE else "default"


def classifier_for(n_train: int, seed: int, **settings: Any) -> GraphSVC:
    """The classifier under test: the default one, with the ROC AUC as the inner score."""
    chosen = {**GRIDS[grid_for(n_train)], **settings}
    return GraphSVC(scoring="roc_auc", random_state=seed, n_jobs=1, progress=False, **chosen)


def _fit_graph_methods(
    data: MoleculeSet, train: np.ndarray, test: np.ndarray, seed: int
) -> list[dict[str, Any]]:
    """Results of the classifier and of its twin with uniform weights.

    The twin needs no search of its own: the classifier tries uniform weights first, on the same
    splits, so its best uniform candidate is what ``weight_radius=0`` would choose.
    """
    start = time.perf_counter()
    graphs, codes = data.graphs[train], data.codes[train]
    model = classifier_for(len(train), seed).fit(graphs, codes)
    learned = _graph_result(model, data, test, start)
    start = time.perf_counter()
    uniform = _graph_result(_uniform_twin(model, graphs, codes), data, test, start)
    return [learned, {**uniform, "inner_score": _uniform_score(model), "search_shared": True}]


def _graph_result(
    model: GraphSVC, data: MoleculeSet, test: np.ndarray, start: float
) -> dict[str, Any]:
    scores = _scores(data.codes[test], model.decision_function(data.graphs[test]), start)
    gain = model.learning_gain_
    return {
        **scores,
        "choice": {
            key: model.best_params_[key]
            for key in ("kernel", "depth", "weight_radius", "gamma", "C")
        },
        "inner_score": model.best_params_["score"],
        "inner_gain": None if gain is None else gain["difference"],
        "grid": grid_for(len(model.train_codes_)),
    }


def _uniform_twin(model: GraphSVC, graphs: GraphCollection, codes: np.ndarray) -> GraphSVC:
    """The model itself where it chose uniform weights, else its best uniform candidate, fitted."""
    if model.best_params_["weight_radius"] == 0:
        return model
    best = model.cv_results_.best(lambda candidate: candidate.weight_radius == 0)
    assert best is not None, "uniform weights are always tried, and their leader finishes"
    twin = clone(model).set_params(**best._asdict())
    return twin.set_params(gamma=best.gamma or "auto").fit(graphs, codes)


def _uniform_score(model: GraphSVC) -> float:
    best = model.cv_results_.best(lambda candidate: candidate.weight_radius == 0)
    return float(model.cv_results_.mean(best))


# --- what a chemist would use -----------------------------------------------------------------


def _fit_tanimoto_svm(
    fingerprints: sparse.csr_array,
    codes: np.ndarray,
    train: np.ndarray,
    test: np.ndarray,
    seed: int,
) -> dict[str, Any]:
    """A C-SVC on the Tanimoto kernel, its cost chosen by ROC AUC inside the training part."""
    start = time.perf_counter()
    kernel = tanimoto_matrix(fingerprints)
    n_inner = GRIDS[grid_for(len(train))].get("cv", _N_INNER)
    splitter = StratifiedKFold(n_inner, shuffle=True, random_state=seed)
    inner = [(train[a], train[b]) for a, b in splitter.split(train, codes[train])]
    inner_scores = np.mean([_path_scores(kernel, codes, a, b) for a, b in inner], axis=0)
    best = int(np.argmax(inner_scores))
    decisions = _path_decisions(kernel, codes, train, test)
    return {
        **_scores(codes[test], decisions[best], start),
        "choice": {"C": SVM_CS[best]},
        "inner_score": float(inner_scores[best]),
        # Only to show how much the grid of C matters; nothing is chosen by the second.
        "inner_by_C": inner_scores.tolist(),
        "roc_auc_by_C": [roc_auc(codes[test], values) for values in decisions],
    }


def _path_scores(
    kernel: np.ndarray, codes: np.ndarray, train: np.ndarray, test: np.ndarray
) -> list[float]:
    """ROC AUC on ``test`` for every C."""
    return [roc_auc(codes[test], x) for x in _path_decisions(kernel, codes, train, test)]


def _path_decisions(
    kernel: np.ndarray, codes: np.ndarray, train: np.ndarray, test: np.ndarray
) -> list[np.ndarray]:
    """Decision values on ``test`` for every C."""
    block = np.ascontiguousarray(kernel[np.ix_(train, train)])
    machines = fit_svm_path(block, codes[train], 2, SVM_CS, np.ones(len(train)))
    cross = kernel[np.ix_(test, train)]
    return [machine.decide(cross) for machine in machines]


def _bits_svm(data: MoleculeSet, *parts: Any) -> list[dict[str, Any]]:
    return [_fit_tanimoto_svm(_bits(data), data.codes, *parts)]


def _counts_svm(data: MoleculeSet, *parts: Any) -> list[dict[str, Any]]:
    return [_fit_tanimoto_svm(data.fingerprints, data.codes, *parts)]


def _random_forest(
    data: MoleculeSet, train: np.ndarray, test: np.ndarray, seed: int
) -> list[dict[str, Any]]:
    start = time.perf_counter()
    features = _bits(data)
    forest = RandomForestClassifier(_N_TREES, random_state=seed, n_jobs=1)
    forest.fit(features[train], data.codes[train])
    margins = forest.predict_proba(features[test])[:, 1] - 0.5
    scores = _scores(data.codes[test], margins, start)
    return [{**scores, "choice": {"n_trees": _N_TREES}, "inner_score": None}]


def _bits(data: MoleculeSet) -> sparse.csr_array:
    return (data.fingerprints > 0).astype(np.int64)


BASELINES: dict[str, Callable[..., list[dict[str, Any]]]] = {
    "ecfp4_tanimoto_svm": _bits_svm,
    "ecfp4_count_tanimoto_svm": _counts_svm,
    "ecfp4_random_forest": _random_forest,
}


# --- atom labels ------------------------------------------------------------------------------


def run_atom_label(name: str, atom_label: str, seed: int = 0) -> dict[str, Any]:
    """Inner ROC AUC, with uniform weights, inside the first random training part alone."""
    start = time.perf_counter()
    graphs, y = load_dataset(name)
    splitter = StratifiedKFold(N_FOLDS, shuffle=True, random_state=seed)
    train, _ = next(splitter.split(y, y))
    model = classifier_for(len(train), seed, weight_radius=0.0)
    model.fit(_relabelled(graphs[train], atom_label), np.asarray(y)[train])
    return {
        "dataset": name, "atom_label": atom_label, "seed": seed, "n_train": len(train),
        "inner_score": model.best_params_["score"], "grid": grid_for(len(train)),
        "choice": {key: model.best_params_[key] for key in ("kernel", "depth", "gamma", "C")},
        "seconds": round(time.perf_counter() - start, 3),
    }  # fmt: skip
