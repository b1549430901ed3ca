"""One outer fold of the nested protocol: choose on the training part, score on the test part.

All graphs of a data set are refined and counted once, for every fold. That leaks nothing: a kernel
value depends only on patterns that both graphs have, so entries between test and training graphs
are what a vocabulary of the training part alone would give (``tests/reproduction`` checks that a
``GraphSVC`` which sees the training part only gives the same predictions). Weights, machines
and choices come from training graphs alone.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.model_selection import RepeatedStratifiedKFold, StratifiedKFold

from reproduction.methods import (
    CS,
    DEPTHS,
    FIXED_METHODS,
    GAMMAS,
    GRID,
    GRIDS,
    LEARNER,
    PAPER_METHODS,
    PAPER_RADII,
    WL_METHODS,
    study_learner,
)
from treelens.errors import IgnoredDataWarning
from treelens.estimators.walks import RandomWalk, ShortestPath
from treelens.graphs.build import build_collection
from treelens.graphs.collection import GraphCollection
from treelens.patterns.histograms import PatternHistograms
from treelens.patterns.vocabulary import PatternVocabulary
from treelens.svm.search import (
    SCORES,
    Candidate,
    KernelSearch,
    SearchResult,
    Split,
    grid,
    leading_settings,
    repetitions_for,
)
from treelens.svm.solver import fit_svm_path

N_OUTER = 10
N_INNER = 5
N_INNER_LARGE = 3  # for training parts of more than _LARGE graphs, where a fold tells enough
_LARGE = 2000

radii_for = GRIDS[GRID].radii_for


@dataclass(frozen=True)
class DataSet:
    """A data set as the protocol uses it: classes, and histograms of every depth."""

    name: str
    codes: np.ndarray
    histograms: PatternHistograms
    graphs: GraphCollection
    vocabulary: PatternVocabulary

    @classmethod
    def from_graphs(
        cls, name: str, graphs: GraphCollection, y: np.ndarray, edge_labels: bool = False
    ) -> DataSet:
        vocabulary, colors = PatternVocabulary.fit(graphs, max(DEPTHS), edge_labels)
        histograms = PatternHistograms.from_colors(vocabulary, colors)
        return cls(name, np.unique(y, return_inverse=True)[1], histograms, graphs, vocabulary)


def outer_split(
    codes: np.ndarray, repetition: int, fold: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Training and test graphs of one fold of one repetition."""
    splitter = StratifiedKFold(N_OUTER, shuffle=True, random_state=seed + repetition)
    return list(splitter.split(codes, codes))[fold]


def inner_splits(codes: np.ndarray, train: np.ndarray, seed: int) -> list[Split]:
    """Splits of the training part, repeated where it is small, numbered as in the whole set."""
    n_folds = N_INNER if len(train) <= _LARGE else N_INNER_LARGE
    splitter = RepeatedStratifiedKFold(
        n_splits=n_folds, n_repeats=repetitions_for(len(train)), random_state=seed
    )
    return [(train[a], train[b]) for a, b in splitter.split(train, codes[train])]


def run_wl_fold(
    data: DataSet, repetition: int, fold: int, methods: list[str], seed: int = 0
) -> list[dict[str, Any]]:
    """Rows of several Weisfeiler-Lehman methods on one fold, which share their searches."""
    train, test = outer_split(data.codes, repetition, fold, seed)
    inner = inner_splits(data.codes, train, seed + 1000 * repetition + fold)
    searches, rows = _FoldSearches(data, inner, seed), []
    for method in methods:
        start = time.perf_counter()
        chosen, score = searches.choose(method)
        in_paper = method in PAPER_METHODS
        spec, used = (PAPER_METHODS[method], "paper") if in_paper else (WL_METHODS[method], GRID)
        learner, first = _learner(spec.learner, seed), GRIDS[used].first_depth
        final = kernel_search(data, [(train, test)], learner, True, first)
        accuracy = final.run([chosen], race=False).scores[chosen][0]
        found = accuracy, chosen._asdict(), score
        rows.append(_row(data, method, repetition, fold, seed, used, len(test), found, start))
    return rows


def _row(
    data: DataSet,
    method: str,
    repetition: int,
    fold: int,
    seed: int,
    grid: str,
    n_test: int,
    found: tuple[float, dict[str, Any], float],
    start: float,
) -> dict[str, Any]:
    """A row of Table 2; ``found`` is accuracy, choice and its score on inner folds."""
    return {
        "dataset": data.name,
        "method": method,
        "repetition": repetition,
        "fold": fold,
        "accuracy": found[0],
        "grid": grid,
        "n_test": n_test,
        "seed": seed,
        "choice": found[1],
        "inner_score": found[2],
        "seconds": round(time.perf_counter() - start, 3),
    }


class _FoldSearches:
    """The searches of one outer fold; those with uniform weights are made once."""

    def __init__(self, data: DataSet, inner: list[Split], seed: int):
        self.data, self.inner, self.seed = data, inner, seed
        self._uniform: dict[str, SearchResult] = {}

    def choose(self, method: str) -> tuple[Candidate, float]:
        """The candidate that a method chooses on the training part, and its inner score."""
        if method in PAPER_METHODS:
            result = self._in_papers_grid(method)
        else:
            spec = WL_METHODS[method]
            result = self._uniform_search(spec.uniform or method)
            if spec.preset:  # no search of its own: WWL's setting, with the preset's weights
                chosen = result.winner()
                return chosen._replace(weight_radius=1.0), result.mean(chosen)
            if spec.uniform is not None:
                learner = _learner(spec.learner, self.seed)
                result = learned_search(self.data, self.inner, result, learner)
        chosen = result.winner()
        return chosen, result.mean(chosen)

    def _uniform_search(self, family: str) -> SearchResult:
        """Race all depths, scales and ``C`` of some kernels with uniform weights."""
        if family not in self._uniform:
            candidates = grid(WL_METHODS[family].kernels, DEPTHS, [0.0], GAMMAS, CS)
            search = kernel_search(self.data, self.inner, _learner({}, self.seed))
            self._uniform[family] = search.run(candidates)
        return self._uniform[family]

    def _in_papers_grid(self, method: str) -> SearchResult:
        """Race all points of the paper's own grid; depths begin at 1."""
        spec, paper = PAPER_METHODS[method], GRIDS["paper"]
        radii = PAPER_RADII.get(method, paper.radii)
        candidates = grid(spec.kernels, paper.depths, radii, paper.gammas, paper.Cs)
        learner = _learner(spec.learner, self.seed)
        search = kernel_search(self.data, self.inner, learner, first_depth=paper.first_depth)
        return search.run(candidates)


def learned_search(
    data: DataSet, inner: list[Split], uniform: SearchResult, learner: Any
) -> SearchResult:
    """Race the radii at the settings that lead with uniform weights."""
    candidates = [
        setting._replace(weight_radius=radius)
        for setting in leading_settings(uniform)
        for radius in radii_for(len(inner[0][0]))
    ]
    return kernel_search(data, inner, learner).run(candidates)


def kernel_search(
    data: DataSet, splits: list[Split], learner: Any, final: bool = False, first_depth: int = 0
) -> KernelSearch:
    """The search of a data set; ``final`` learns weights to the learner's own tolerance."""
    # From `first_depth` 0 on node labels are patterns too, as in WWL (2019) and the authors'
    # program.
    return KernelSearch(
        partial(data.histograms.select_depths, first_depth),
        data.codes,
        splits,
        learner,
        np.ones(len(data.codes)),
        SCORES["accuracy"],
        final=final,
    )


def _learner(settings: dict[str, Any], seed: int) -> Any:
    return study_learner(random_state=seed, **{**LEARNER, **settings})


# --- kernels without weights ------------------------------------------------------------------


def fixed_kernels(data: DataSet, method: str) -> list[np.ndarray]:
    """Kernel matrices of all graphs, one per setting: fixed kernels do not depend on the fold."""
    walks = method.startswith("random_walk")
    graphs = without_labels(data.graphs) if method.endswith("_unlabelled") else data.graphs
    kinds = [
        RandomWalk(**settings, edge_labels=False) if walks else ShortestPath(**settings)
        for settings in FIXED_METHODS[method][1]
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IgnoredDataWarning)  # as in the paper: node labels only
        return [kind.fit_transform(graphs) for kind in kinds]


def without_labels(graphs: GraphCollection) -> GraphCollection:
    """The same graphs with one label for all nodes, and no edge labels."""
    ends = [np.array(graph.edges, dtype=np.int64).reshape(-1, 2) for graph in graphs]
    starts = graphs.node_offsets[:-1]
    edges = [part + start for part, start in zip(ends, starts, strict=True)]
    return build_collection(graphs.sizes, np.concatenate(edges), np.zeros(graphs.n_nodes, int))


def run_fixed_fold(
    data: DataSet, kernels: list[np.ndarray], method: str, repetition: int, fold: int, seed: int = 0
) -> list[dict[str, Any]]:
    """The row of a fixed kernel on one fold."""
    start = time.perf_counter()
    train, test = outer_split(data.codes, repetition, fold, seed)
    inner = inner_splits(data.codes, train, seed + 1000 * repetition + fold)
    settings = FIXED_METHODS[method][1]
    found = choose_kernel(settings, kernels, data.codes, train, test, inner)
    return [_row(data, method, repetition, fold, seed, GRID, len(test), found, start)]


def choose_kernel(
    settings: Sequence[dict[str, Any]],
    kernels: list[np.ndarray],
    codes: np.ndarray,
    train: np.ndarray,
    test: np.ndarray,
    inner: list[Split],
) -> tuple[float, dict[str, Any], float]:
    """Choose setting and C on inner folds of the training part; return accuracy, choice, score."""
    scores = np.array(
        [[path_scores(kernel, codes, a, b) for a, b in inner] for kernel in kernels]
    ).mean(axis=1)  # (n_settings, n_costs)
    setting, cost = np.unravel_index(int(scores.argmax()), scores.shape)
    accuracy = path_scores(kernels[setting], codes, train, test)[cost]
    return accuracy, {**settings[setting], "C": CS[cost]}, float(scores.max())


def path_scores(
    kernel: np.ndarray, codes: np.ndarray, train: np.ndarray, test: np.ndarray
) -> list[float]:
    """Accuracy on ``test`` for every C."""
    machines = fit_svm_path(
        np.ascontiguousarray(kernel[np.ix_(train, train)]),
        codes[train],
        int(codes.max()) + 1,
        CS,
        np.ones(len(train)),
    )
    cross = kernel[np.ix_(test, train)]
    return [SCORES["accuracy"](codes[test], machine.decide(cross)) for machine in machines]
