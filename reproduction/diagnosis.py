"""Where learning does not help, and why: what moves, what changes, and where that can be seen.

For every fold the weights are learned on the training part, at the depth that WWL chooses most
often in Table 2. Three things are measured: how far the weights go and how much the kernel matrix
changes with them; how well it agrees with the classes, on training and on test graphs; and how
accurate the nearest neighbours are, where the distance acts alone with no SVM to make up for it.
"""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import train_test_split

from reproduction.alignment import alignment, change_up_to_scale, label_kernel
from reproduction.diagnosis_page import write_diagnosis
from reproduction.learners import StudyWeights
from reproduction.neighbors import neighbor_accuracy
from reproduction.progress import Work, run_all
from reproduction.protocol import N_OUTER, DataSet, outer_split
from reproduction.rows import RowFile, read_rows, versions
from reproduction.table2 import DATASETS, load_protocol_data
from treelens.evaluation.validation import corrected_paired_test
from treelens.kernels.gram import pair_sums
from treelens.pairwise.result import distance_moved
from treelens.patterns.pairs import PairFeatures
from treelens.svm.search import radii_for

KEY = ("dataset", "depth", "radius", "repetition", "fold")
QUICK_DATASETS = ("MUTAG",)
NEIGHBORS = (1, 5)
# Weights as good as these do to compare distances.
_LEARNER = {"tol": 1e-2, "max_iter": 40, "random_state": 0}
_USUAL_DEPTH = 3
# Small sets are folded three times over; of large ones, where a fold says more, half will do.
_SMALL, _SMALL_REPETITIONS = 400, 3
_LARGE, _LARGE_FOLDS = 2000, 5
_HELD_OUT = 1 / 3


class Variant(NamedTuple):
    """One way to learn the distance that neighbours are judged by."""

    pairs: str
    radius: float

    @property
    def title(self) -> str:
        return f"{self.pairs} pairs, radius {self.radius:g}"

    @property
    def metric_title(self) -> str:
        return f"{self.title}, metric form"


VARIANTS = tuple(Variant(pairs, radius) for pairs in ("all", "local") for radius in (1.0, 10.0))
KINDS = (
    "uniform", *(v.title for v in VARIANTS), *(v.metric_title for v in VARIANTS), "chosen"
)  # fmt: skip


def run_diagnosis(out: str | Path, quick: bool = False) -> list[Path]:
    """Measure the folds that are missing, then write the summary and the page."""
    folder = Path(out)
    table2 = [row for row in read_rows(folder / "table2.jsonl") if row["seed"] == 0]
    file = RowFile(folder / "diagnosis.jsonl", KEY)
    facts, wanted = versions(), []
    for name in QUICK_DATASETS if quick else DATASETS:
        data = load_protocol_data(name)
        depth, radius = usual_choice(table2, name, len(data.codes))
        keys = [
            (name, depth, radius, repetition, fold)
            for repetition, fold in _folds(len(data.codes), quick)
        ]
        wanted += keys
        works = [
            Work(run_fold, (data, *key[1:]))
            for key in keys
            if dict(zip(KEY, key, strict=True)) not in file
        ]
        for row in run_all(works, 1, f"Diagnosis, {name}"):
            file.append({**row, "versions": facts})
    rows = [row for row in file.rows if tuple(row[name] for name in KEY) in set(wanted)]
    return [file.path, *write_diagnosis(folder, summarize(rows), table2)]


def _folds(n_graphs: int, quick: bool) -> list[tuple[int, int]]:
    """Repetitions and folds to run."""
    repetitions = _SMALL_REPETITIONS if n_graphs <= _SMALL and not quick else 1
    folds = N_OUTER if n_graphs <= _LARGE else _LARGE_FOLDS
    return [(repetition, fold) for repetition in range(repetitions) for fold in range(folds)]


def usual_choice(table2: Sequence[dict[str, Any]], name: str, n_graphs: int) -> tuple[int, float]:
    """Depth and radius that learned WWL chooses most often; usual ones before there are rows."""
    chosen = [
        (row["choice"]["depth"], row["choice"]["weight_radius"])
        for row in table2
        if row["dataset"] == name and row["method"] == "learned_wwl"
    ]
    if not chosen:
        return _USUAL_DEPTH, radii_for(n_graphs)[1]
    depth = Counter(depth for depth, _ in chosen).most_common(1)[0][0]
    return depth, Counter(radius for _, radius in chosen).most_common(1)[0][0]


# --- one fold ---------------------------------------------------------------------------------


def run_fold(
    data: DataSet, depth: int, radius: float, repetition: int, fold: int
) -> dict[str, Any]:
    """The row of one fold."""
    start = time.perf_counter()
    train, test = outer_split(data.codes, repetition, fold, seed=0)
    study = _Study(data, depth)
    return {
        "dataset": data.name, "depth": depth, "radius": radius, "repetition": repetition,
        "fold": fold, "seed": 0, **study.matrix_facts(Variant("all", radius), train, test),
        "neighbors": study.neighbor_facts(train, test),
        "seconds": round(time.perf_counter() - start, 3),
    }  # fmt: skip


class _Study:
    """Distances of all graphs of one data set at one depth, under weights learned on some."""

    def __init__(self, data: DataSet, depth: int) -> None:
        self.codes = data.codes
        self.histograms = data.histograms.select_depths(0, depth)
        self.features = PairFeatures.from_histograms(self.histograms)
        self.uniform = pair_sums(self.features)  # (n_graphs, n_graphs)

    def weights(self, variant: Variant, train: np.ndarray) -> np.ndarray:
        features = PairFeatures.from_histograms(self.histograms.select_graphs(train))
        learner = StudyWeights(variant.radius, pairs=variant.pairs, **_LEARNER)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the rough tolerance, which is meant
            return learner.fit(features, self.codes[train]).weights_

    def matrix_facts(self, variant: Variant, train: np.ndarray, test: np.ndarray) -> dict[str, Any]:
        """How far the weights went, and what the matrix of ``<W, Z>`` became."""
        weights = self.weights(variant, train)
        learned = pair_sums(self.features, weights=weights)
        block, held_out = np.ix_(train, train), np.ix_(test, test)
        seen = self.histograms.select_graphs(train).support > 0
        facts: dict[str, Any] = {
            "moved": distance_moved(weights, self.histograms.level_offsets),
            "patterns": np.diff(self.histograms.level_offsets),
            "share_moved": float((np.abs(weights[seen] - 1) > 0.01).mean()),
            "relative_change": _relative_change(self.uniform[block], learned[block]),
            "change_up_to_scale": change_up_to_scale(self.uniform[block], learned[block]),
        }
        for part, cells, members in (("train", block, train), ("test", held_out, test)):
            classes = label_kernel(self.codes[members])
            facts[f"{part}_alignment"] = {
                "uniform": alignment(self.uniform[cells], classes),
                "learned": alignment(learned[cells], classes),
            }
        return facts

    def neighbor_facts(self, train: np.ndarray, test: np.ndarray) -> dict[str, Any]:
        """Accuracy of nearest neighbours: uniform, every variant, and the one chosen inside."""
        facts: dict[str, Any] = self._accuracies(train, test)
        choice = self._chosen(train)
        facts["chosen"] = {k: facts[title][k] for k, title in choice.items()}
        facts["choice"] = choice
        return facts

    def _accuracies(self, train: np.ndarray, test: np.ndarray) -> dict[str, dict[str, float]]:
        """``[title of the distance][k]``; weights are learned on ``train``."""
        distances = {"uniform": -self.uniform[np.ix_(test, train)]}  # up to a constant
        for variant in VARIANTS:
            weights = self.weights(variant, train)
            similar = pair_sums(self.features, weights=weights)[np.ix_(test, train)]
            diagonal = self.features.diagonal(weights)
            distances[variant.title] = -similar
            distances[variant.metric_title] = (
                0.5 * (diagonal[test][:, None] + diagonal[train][None, :]) - similar
            )
        return {title: self._votes(d, train, test) for title, d in distances.items()}

    def _votes(
        self, distances: np.ndarray, train: np.ndarray, test: np.ndarray
    ) -> dict[str, float]:
        codes = self.codes
        return {
            str(k): neighbor_accuracy(distances, codes[train], codes[test], k) for k in NEIGHBORS
        }

    def _chosen(self, train: np.ndarray) -> dict[str, str]:
        """For every k the best on a third of the training part; the uniform one wins ties."""
        fit, check = train_test_split(
            train, test_size=_HELD_OUT, stratify=self.codes[train], random_state=0
        )
        tried = self._accuracies(fit, check)
        return {str(k): max(tried, key=lambda title: tried[title][str(k)]) for k in NEIGHBORS}


def _relative_change(before: np.ndarray, after: np.ndarray) -> float:
    return float(np.linalg.norm(after - before) / np.linalg.norm(before))


# --- summary ----------------------------------------------------------------------------------


def summarize(rows: Sequence[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Means over folds for every data set, with tests of the neighbours' accuracies."""
    names = [name for name in DATASETS if any(row["dataset"] == name for row in rows)]
    return {name: _summary([row for row in rows if row["dataset"] == name]) for name in names}


def _summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    def mean(*path: str) -> float:
        values = rows
        for key in path:
            values = [value[key] for value in values]
        return round(float(np.mean(np.asarray(values, dtype=float))), 5)

    first = rows[0]
    return {
        "depth": first["depth"], "radius": first["radius"], "n_folds": len(rows),
        "moved": np.mean([row["moved"] for row in rows], axis=0).round(4).tolist(),
        "patterns": np.asarray(first["patterns"]).tolist(),
        **{key: mean(key) for key in ("share_moved", "relative_change", "change_up_to_scale")},
        **{
            f"{part}_alignment": {
                kind: mean(f"{part}_alignment", kind) for kind in ("uniform", "learned")
            }
            for part in ("train", "test")
        },
        "neighbors": {
            f"{k}-NN": {
                kind: _neighbor_summary(rows, kind, str(k))
                for kind in KINDS
            }
            for k in NEIGHBORS
        },
    }  # fmt: skip


def _neighbor_summary(rows: list[dict[str, Any]], kind: str, k: str) -> dict[str, Any]:
    scores = np.array([row["neighbors"][kind][k] for row in rows])
    uniform = np.array([row["neighbors"]["uniform"][k] for row in rows])
    difference, _, p_value = corrected_paired_test(scores - uniform, 1 / (N_OUTER - 1))
    return {
        "accuracy": round(100 * float(scores.mean()), 3),
        "gain": round(100 * difference, 3),
        "p_value": round(p_value, 5),
    }
