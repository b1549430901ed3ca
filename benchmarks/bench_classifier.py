"""The classifier's search against GridSearchCV on our own parts, and its SVM against LIBSVM."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import SVC

import treelens as tl
from benchmarks.bench_kernels import as_grakel
from benchmarks.measure import (
    THREADS,
    Claim,
    Row,
    best_times,
    load,
    measured,
    once,
    processor_time,
)
from treelens.svm.model import AUTO_CS, AUTO_DEPTHS, AUTO_GAMMAS, AUTO_KERNELS
from treelens.svm.search import Candidate, grid, radii_for, repetitions_for
from treelens.svm.solver import fit_svm_path

# So many graphs of NCI1, drawn at random, keep this file within minutes on a busy machine, and are
# just enough for the radii that all of them would get.
GRAPHS = 1500
FOLDS = 5
# Fits of the rival that are timed for every form and radius; the others are taken to cost the same.
SAMPLES = 2
SVM_DEPTH = 3


class Data(NamedTuple):
    graphs: tl.GraphCollection
    y: np.ndarray


def rows() -> Iterator[Row]:
    loaded = load("NCI1")
    return measured(CLAIMS, None if loaded is None else sampled(*loaded))


def sampled(graphs: tl.GraphCollection, y: np.ndarray) -> Data:
    picked = np.sort(np.random.default_rng(0).permutation(len(y))[:GRAPHS])
    return Data(graphs[picked], y[picked])


# --- the search ---------------------------------------------------------------------------------


def search_against_grid_search(data: Data) -> tuple[str, bool]:
    """Our search with two threads; the rival's fits one by one, its time halved for two cores."""
    # Half of the rival's fits are timed before our search and half after it, so that both meet the
    # same machine. Its learner works as roughly as ours does while searching.
    groups = _groups(len(data.y))
    rng = np.random.default_rng(0)
    _rival_fit(data, groups[0][0])  # compile
    before = _rival_seconds(data, groups, rng)
    model = tl.GraphSVC(cv=FOLDS, n_jobs=THREADS, random_state=0)
    ours = once(lambda: model.fit(*data))
    after = _rival_seconds(data, groups, rng)
    theirs = 0.5 * (before + after) / THREADS
    n_fits = sum(map(len, groups)) * FOLDS * repetitions_for(len(data.y))
    ratio = theirs / ours
    timed = 2 * SAMPLES * len(groups)
    scored = sum(map(len, model.cv_results_.scores.values()))
    return (
        f"{ratio:.0f} × ({ours:.0f} s against {theirs / 60:.0f} min, estimated from {timed} of the "
        f"rival's {n_fits:,} fits and halved for two cores; the race left us {scored:,})",
        ratio >= 5,
    )


def _groups(n_graphs: int) -> list[list[Candidate]]:
    """The default grid, one group for every form and radius: what a fit costs depends on those."""
    radii = (0.0, *radii_for(n_graphs))
    return [
        grid([kernel], AUTO_DEPTHS, [radius], AUTO_GAMMAS, AUTO_CS)
        for kernel in AUTO_KERNELS
        for radius in radii
    ]


def _rival_seconds(data: Data, groups: list[list[Candidate]], rng: np.random.Generator) -> float:
    """All fits of all candidates on one core, from a few of every group spread over its depths."""
    n_fits = FOLDS * repetitions_for(len(data.y))
    total = 0.0
    for group in groups:
        parts = np.array_split(np.arange(len(group)), SAMPLES)
        picked = [group[rng.choice(part)] for part in parts]
        times = [once(lambda c=candidate: _rival_fit(data, c)) for candidate in picked]
        total += float(np.mean(times)) * len(group) * n_fits
    return total


def _rival_fit(data: Data, candidate: Candidate) -> None:
    """One candidate on one fold, the way GridSearchCV does it."""
    splitter = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    one_fold = [next(splitter.split(data.y, data.y))]
    parameters = {"svm__C": [candidate.C]}
    search = GridSearchCV(_pipeline(data, candidate), parameters, cv=one_fold, refit=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rough weights have not converged
        search.fit(data.graphs, data.y)


def _pipeline(data: Data, candidate: Candidate) -> Pipeline:
    learner = tl.PairwiseWeights(
        candidate.weight_radius, solver=tl.QuasiNewton(tol=1e-2, max_iter=40)
    )
    options: dict[str, Any] = {
        "include_depth_zero": True,
        "edge_labels": data.graphs.edge_codes is not None,
        "weights": learner if candidate.weight_radius else "uniform",
    }
    svm = "svm", SVC(kernel="precomputed")
    if candidate.kernel == "wwl":
        kernel = tl.WassersteinWL(candidate.depth, gamma=candidate.gamma, **options)
        return Pipeline([("kernel", kernel), svm])
    similarity = tl.WLOptimalAssignment(candidate.depth, normalize="tanimoto", **options)
    exponential = FunctionTransformer(lambda k: np.exp(-candidate.gamma * (1 - k)))
    return Pipeline([("kernel", similarity), ("wwl", exponential), svm])


# --- the machine --------------------------------------------------------------------------------


def machine_against_svc(data: Data) -> tuple[str, bool]:
    """A path of costs on one kernel matrix, one core each."""
    kernel = tl.WLOptimalAssignment(
        SVM_DEPTH, edge_labels=False, normalize="tanimoto", n_jobs=THREADS
    ).fit_transform(data.graphs)
    codes = np.unique(data.y, return_inverse=True)[1]

    def ours() -> None:
        fit_svm_path(kernel, codes, 2, AUTO_CS, np.ones(len(codes)))

    def theirs() -> None:
        for C in AUTO_CS:
            SVC(kernel="precomputed", C=C).fit(kernel, codes)

    mine, libsvm = best_times(ours, theirs, repeats=5)
    ratio = libsvm / mine
    return f"{ratio:.1f} × ({mine * 1e3:.0f} ms against {libsvm * 1e3:.0f} ms)", ratio >= 2


def one_depth_against_grakel(data: Data) -> tuple[str, bool]:
    """One depth and uniform weights, the same values of C and folds, on one thread."""
    from grakel import WeisfeilerLehman

    tuples = as_grakel(data.graphs)
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)

    def ours() -> None:
        tl.GraphSVC(
            "wl-subtree-cosine",
            depth=SVM_DEPTH,
            weight_radius=0,
            edge_labels=False,
            cv=folds,
            n_jobs=1,
            random_state=0,
        ).fit(*data)

    def theirs() -> None:
        kernel = WeisfeilerLehman(n_iter=SVM_DEPTH, normalize=True).fit_transform(tuples)
        GridSearchCV(SVC(kernel="precomputed"), {"C": AUTO_CS}, cv=folds).fit(kernel, data.y)

    ours()  # compile
    times = [[processor_time(work) for work in (ours, theirs)] for _ in range(5)]
    mine, grakel = np.min(times, axis=0)
    words = f"{mine / grakel:.2f} × its time ({mine:.2f} s against {grakel:.2f} s)"
    return words, bool(mine <= grakel)


ON = f"{GRAPHS:,} graphs of NCI1"
CLAIMS = [
    Claim(
        f"GraphSVC().fit with its default grid, {ON}, against GridSearchCV over the same grid "
        "on a pipeline of our own parts",
        ">= 5 × faster",
        search_against_grid_search,
    ),
    Claim(
        f"Support vector machines for {len(AUTO_CS)} values of C, {ON}, Tanimoto form of depth "
        f"{SVM_DEPTH}, against SVC",
        ">= 2 × faster",
        machine_against_svc,
    ),
    Claim(
        f"GraphSVC of depth {SVM_DEPTH} with uniform weights, {ON}, one thread, processor time, "
        f"against GraKeL WeisfeilerLehman(n_iter={SVM_DEPTH}) with GridSearchCV over the same C",
        "<= 1 × its time",
        one_depth_against_grakel,
    ),
]
