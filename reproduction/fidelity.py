"""Do explanations name the atoms that predictions rest on? Deletion and insertion curves.

Molecules that a model was not trained on lose their atoms in the order of an explanation (deletion)
or are built up in that order (insertion), and the model predicts again at every tenth. Each model
is judged on its own predictions, by its own contributions, by occlusion (what the prediction loses
without one atom) and by atoms in random order. And: do contributions find known toxicophores?
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

import treelens as tl
from reproduction.data import StudyOptions, data_folder
from reproduction.explained_models import MODELS
from reproduction.fragments import CLASSES, covered
from reproduction.frozen import digest, source_of_library

KEY = ("set", "seed", "model")
SETS = {"Ames": "Ames_Hansen2009", "BBBP": "BBBP", "ESOL": "ESOL", "Lipophilicity": "Lipophilicity"}
NUMBERS = ("ESOL", "Lipophilicity")
N_TRAIN, N_EXPLAINED, N_SEEDS, N_RANDOM = 800, 60, 3, 5
FEWEST_ATOMS = 8  # of a smaller molecule a tenth is less than an atom
SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
ORDERS = ("contributions", "occlusion", "random")


def run(options: StudyOptions) -> None:
    """Make the rows that are missing."""
    with options.rows("fidelity", KEY) as rows:
        for name in options.sets or SETS:
            for seed in range(options.repeats or N_SEEDS):
                for model in options.methods or MODELS:
                    key = {"set": name, "seed": seed, "model": model}
                    rows.add(key, measured, name, seed, model, options.n_jobs)


def measured(name: str, seed: int, model: str, n_jobs: int) -> dict[str, Any]:
    """One row: areas under the curves of one model on one split, molecule by molecule."""
    start = time.perf_counter()
    graphs, y, train, test = split(name, seed)
    fitted = MODELS[model](graphs, y, train, n_jobs)
    rng = np.random.default_rng(seed)
    found = [curves(fitted, k, int(graphs.sizes[k]), rng) for k in test.tolist()]
    scale = float(np.mean([x["whole"] for x in found]))
    return {
        "n_train": len(train),
        "n_explained": len(test),
        "usual": fitted.usual,
        "scale": scale,
        "molecules": test.tolist(),
        "whole": [_short(x["whole"]) for x in found],
        "areas": {
            kind: {
                order: [_short(np.mean(x[kind][order]) / scale) for x in found] for order in ORDERS
            }
            for kind in ("deletion", "insertion")
        },
        "seconds": round(time.perf_counter() - start, 1),
    }


def split(name: str, seed: int) -> tuple[tl.GraphCollection, np.ndarray, np.ndarray, np.ndarray]:
    """Molecules, targets, and the positions of those to train on and of those to explain."""
    graphs, y = _read(name)
    order = np.random.default_rng(seed).permutation(len(y))
    rest = order[N_TRAIN:]
    return graphs, y, order[:N_TRAIN], rest[graphs.sizes[rest] >= FEWEST_ATOMS][:N_EXPLAINED]


def _read(name: str) -> tuple[tl.GraphCollection, np.ndarray]:
    path = data_folder() / "smiles" / f"{SETS[name]}.csv.gz"
    options = {"target": "value"} if name in NUMBERS else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some SMILES cannot be parsed
        graphs, y = tl.read_smiles(path, on_invalid="skip", **options)
    return graphs, np.asarray(y)


def curves(model: Any, index: int, n_atoms: int, rng: np.random.Generator) -> dict[str, Any]:
    """How much of a prediction is left, step by step, in the direction in which it is unusual."""
    # What lies beyond the usual prediction is what there is to explain.
    usual = model.usual
    alone = [np.arange(n_atoms) != k for k in range(n_atoms)]
    predicted = model.predict(index, [np.ones(n_atoms, dtype=bool), *alone])
    sign = 1.0 if predicted[0] >= usual else -1.0
    worth = {
        "contributions": [sign * model.contributions(index)],
        "occlusion": [sign * (predicted[0] - predicted[1:])],
        "random": [rng.random(n_atoms) for _ in range(N_RANDOM)],
    }
    kept = [flags for order in ORDERS for x in worth[order] for flags in steps(x)]
    values = sign * (model.predict(index, kept) - usual)
    values = values.reshape(-1, 2, len(SHARES))  # (n_orders with draws, kinds, steps)
    ends = np.cumsum([len(worth[order]) for order in ORDERS])[:-1]
    means = {o: own.mean(axis=0) for o, own in zip(ORDERS, np.split(values, ends), strict=True)}
    return {
        "whole": sign * (predicted[0] - usual),
        "deletion": {order: own[0] for order, own in means.items()},
        "insertion": {order: own[1] for order, own in means.items()},
    }


def steps(worth: np.ndarray) -> list[np.ndarray]:
    """Atoms to keep: without the first tenth, two tenths, ...; then with these alone."""
    place = np.empty(len(worth), dtype=int)
    place[np.argsort(-worth, kind="stable")] = np.arange(len(worth))
    counts = [min(max(round(share * len(worth)), 1), len(worth) - 1) for share in SHARES]
    return [*(place >= n for n in counts), *(place < n for n in counts)]


def _short(value: float | np.floating) -> float:
    return float(f"{value:.4g}")


# --- atoms that are the cause -------------------------------------------------------------------

ATOM_SETS = ("N_O", "N", "N_minus_O", "amide", "amide_class")  # of ibenchmark
EXPLAINERS = ("treelens", "treelens by occlusion", "ECFP4 forest by SHAP")
N_ATOM_TEST = 1000  # of the test part, in its order


def run_atoms(options: StudyOptions) -> None:
    """Do contributions find the atoms that values follow from, on ibenchmark's test parts?"""
    if source_of_library()["defaults"] is None:
        raise ValueError(
            "Test parts are for frozen defaults: run this where src/ is that of "
            "reproduction/frozen.json."
        )
    with options.rows("ibenchmark", ("set", "explainer"), shared=True) as rows:
        for name in options.sets or ATOM_SETS:
            for explainer in options.methods or EXPLAINERS:
                key = {"set": name, "explainer": explainer}
                rows.add(key, found_atoms, name, explainer, options.n_jobs)


def found_atoms(name: str, explainer: str, n_jobs: int) -> dict[str, Any]:
    """Return the ROC AUC of what atoms are worth, and how many of the first ones are causes."""
    import pandas as pd

    parts = [
        pd.read_csv(data_folder() / "ibenchmark" / f"{name}_{part}.csv.gz")
        for part in ("train", "test")
    ]
    parts[1] = parts[1][:N_ATOM_TEST]
    smiles = [text for part in parts for text in part["smiles"]]
    y = np.concatenate([part["value"].to_numpy() for part in parts])
    y = y.astype(int if name.endswith("class") else float)
    train = np.arange(len(parts[0]))
    truth = [np.array(text.split("."), dtype=int) for text in parts[1]["atom_truth"]]
    worth = atoms_worth(
        explainer, smiles, y if y.dtype.kind == "f" else y.astype(int), train, n_jobs
    )
    measured = [atom_measures(own, found) for own, found in zip(truth, worth, strict=True)]
    known = np.array([found for found in measured if found is not None])
    area, top = known.mean(axis=0)
    return {
        "n_train": len(train),
        "n_explained": len(truth),
        "n_known": len(known),
        "roc_auc": float(area),
        "top": float(top),
        "data": digest(smiles, y),
    }


def atoms_worth(
    explainer: str, smiles: list[str], y: np.ndarray, train: np.ndarray, n_jobs: int
) -> Iterator[np.ndarray]:
    """Yield what the atoms of each molecule that was not trained on are worth, (n_atoms,)."""
    graphs, tested = tl.as_graph_collection(smiles), range(len(train), len(smiles))
    if explainer == "treelens":
        made = tl.GraphClassifier if y.dtype.kind == "i" else tl.GraphRegressor
        model = made(n_jobs=n_jobs, random_state=0).fit(graphs[train], y[train])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that much of a molecule is unseen
            for k in tested:
                yield model.explain(graphs[k : k + 1], n_neighbors=0).node_contributions
        return
    own = explainer == "treelens by occlusion"
    fitted = MODELS["treelens" if own else explainer](graphs, y, train, n_jobs)
    for k in tested:
        yield occluded(fitted, k, int(graphs.sizes[k])) if own else fitted.contributions(k)


def occluded(model: Any, index: int, n_atoms: int) -> np.ndarray:
    """Return what the prediction of a molecule loses without each of its atoms, (n_atoms,)."""
    kept = [np.ones(n_atoms, dtype=bool), *(np.arange(n_atoms) != j for j in range(n_atoms))]
    every = model.predict(index, kept)
    return every[0] - every[1:]


def atom_measures(truth: np.ndarray, worth: np.ndarray) -> tuple[float, float] | None:
    """Return ROC AUC and share of causes among as many first atoms as there are causes.

    Both are means over causes (1) and, by the opposite sign, counter-causes (-1); None where a
    molecule has neither, or nothing else.

    Examples
    --------
    >>> atom_measures(np.array([1, 0, 0, 1]), np.array([0.5, 0.1, 0.3, 0.2]))
    (0.75, 0.5)
    """
    from sklearn.metrics import roc_auc_score

    found = []
    for sign in (1, -1):
        causes, ours = truth == sign, sign * worth
        if 0 < causes.sum() < len(truth):
            first = np.argsort(-ours, kind="stable")[: causes.sum()]
            found.append((float(roc_auc_score(causes, ours)), float(causes[first].mean())))
    if not found:
        return None
    area, top = np.mean(found, axis=0)
    return float(area), float(top)


# --- toxicophores -----------------------------------------------------------------------------

N_TOXIC_TRAIN, N_TOXIC = 2000, 200


def run_toxicophores(options: StudyOptions) -> None:
    """Ames: ROC AUC of atom contributions against the atoms of known toxicophores."""
    with options.rows("toxicophores", ("seed", "model")) as rows:
        for seed in range(options.repeats or 1):
            for model in options.methods or MODELS:
                key = {"seed": seed, "model": model}
                rows.add(key, found_toxicophores, seed, model, options.n_jobs)


def found_toxicophores(seed: int, model: str, n_jobs: int) -> dict[str, Any]:
    """Return the ROC AUC of contributions and of occlusion, for every molecule."""
    from sklearn.metrics import roc_auc_score

    graphs, y, train, test, inside = toxic_split(seed)
    fitted = MODELS[model](graphs, y, train, n_jobs)
    areas: dict[str, list[float]] = {"contributions": [], "occlusion": []}
    predicted = []
    for k, atoms in zip(test.tolist(), inside, strict=True):
        n = len(atoms)
        whole = fitted.predict(k, [np.ones(n, dtype=bool)])[0]
        predicted.append(_short(whole - fitted.usual))
        for name, worth in (
            ("contributions", fitted.contributions(k)),
            ("occlusion", occluded(fitted, k, n)),
        ):
            areas[name].append(_short(roc_auc_score(atoms, worth)))
    return {
        "n_train": len(train),
        "molecules": test.tolist(),
        "predicted": predicted,
        "areas": areas,
    }


def toxic_split(seed: int) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, list[np.ndarray]]:
    """Return molecules, a training part, mutagens of the rest, and their toxicophore atoms."""
    from rdkit import Chem

    graphs, y = _read("Ames")
    order = np.random.default_rng(seed).permutation(len(y))
    test, inside = [], []
    for k in order[N_TOXIC_TRAIN:].tolist():
        molecule = Chem.MolFromSmiles(graphs.graph_data["smiles"][k])
        atoms = np.zeros(molecule.GetNumAtoms(), dtype=bool)
        for smarts in CLASSES.values():
            atoms[list(covered(molecule, smarts))] = True
        if y[k] == 1 and atoms.any() and not atoms.all():
            test.append(k)
            inside.append(atoms)
        if len(test) == N_TOXIC:
            break
    return graphs, y, order[:N_TOXIC_TRAIN], np.array(test), inside
