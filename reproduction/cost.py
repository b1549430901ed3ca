"""Speed and cost: a fit and its predictions of every line, each in a process of its own.

``python -m reproduction.cost SET METHOD [LIMIT]`` runs one line and prints what it cost as a line
of JSON. Rivals are imported where they are used; without one, the study says what to install.
"""

from __future__ import annotations

import json
import math
import os
import resource
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np
from benchmarks.bench_million import numbered_smiles
from sklearn.svm import SVC

import treelens as tl
from reproduction.chemprop_rival import ChempropRegressor
from reproduction.data import StudyOptions, load_molecules, random_splits
from reproduction.protocol import outer_split
from reproduction.rivals import fit_rival
from treelens.chem.baselines import BASELINES
from treelens.chem.molecules import smiles_to_collection

CLASS_SETS = ("MUTAG", "PTC_MR", "ENZYMES", "PROTEINS", "NCI1")
NUMBER_SETS = ("FreeSolv", "ESOL", "Lipophilicity")
# Growth: so many molecules, with a number that the structure decides up to noise.
GROWTH_SIZES = (500, 1000, 2000, 4000, 8000, 16_000, 40_000, 160_000)
GROWTH_METHODS = ("treelens", "ecfp6_gp", "ecfp_gp", "ecfp_forest", "ecfp_boosting")
N_GROWTH_TEST = 500
# One setting for every support vector machine.
DEPTH, GAMMA, C, WEIGHT_RADIUS = 3, 1.0, 10.0, 1.0
N_WARM_UP = 40
LIMIT = 120  # seconds of processor time after which a rival is stopped
OURS = "treelens"
_ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)
SHORT, N_TIMES = 1.0, 3  # what takes less than a second is run three times

Fit = Callable[[Any, np.ndarray, Any], Callable[[], np.ndarray]]


class Line(NamedTuple):
    """A line of the tables."""

    title: str
    # takes training graphs, their targets and test graphs; returns what predicts the latter
    fit: Fit
    convert: Callable[[Any], Any] = lambda graphs: graphs  # to what the library reads; not timed
    packages: tuple[str, ...] = ()  # of the rival; the first is imported by its name in lower case
    twin: str | None = None  # the line of ours that does the same work


# --- ours ---------------------------------------------------------------------------------------


def _ours(make: Any, read: Callable[[Any], Any] = lambda graphs: graphs, **options: Any) -> Fit:
    def fit(train: Any, y: np.ndarray, test: Any) -> Callable[[], np.ndarray]:
        model = make(n_jobs=1, random_state=0, **options).fit(read(train), y)
        return lambda: model.predict(read(test))

    return fit


def _machine(kernel: str, weight_radius: float = 0.0) -> Fit:
    return _ours(
        tl.GraphSVC,
        kernel=kernel,
        depth=DEPTH,
        weight_radius=weight_radius,
        gamma=GAMMA,
        C=C,
        edge_labels=False,
        attributes="ignore",
        class_weight=None,
        progress=False,
    )


# --- rivals -------------------------------------------------------------------------------------


def _as_grakel(graphs: tl.GraphCollection) -> list[Any]:
    """Adjacency lists and node labels: the form that GraKeL reads fastest."""
    from benchmarks.bench_kernels import as_grakel

    return as_grakel(graphs)


def _as_igraph(graphs: tl.GraphCollection) -> list[Any]:
    import igraph

    return [
        igraph.Graph(
            n=graph.n_nodes,
            edges=list(graph.edges),
            vertex_attrs={"label": list(graph.node_labels)},
        )
        for graph in graphs
    ]


def _grakel(name: str, **options: Any) -> Fit:
    def fit(train: Any, y: np.ndarray, test: Any) -> Callable[[], np.ndarray]:
        kernel = getattr(import_module("grakel"), name)(n_iter=DEPTH, **options)
        matrix = kernel.fit_transform(train)
        machine = SVC(kernel="precomputed", C=C / np.diagonal(matrix).mean()).fit(matrix, y)
        return lambda: machine.predict(kernel.transform(test))

    return fit


def _wwl(train: Any, y: np.ndarray, test: Any) -> Callable[[], np.ndarray]:
    """The package compares graphs of one list only, so that test graphs are in the fit."""
    from wwl import pairwise_wasserstein_distance

    distances = pairwise_wasserstein_distance([*train, *test], num_iterations=DEPTH)
    kernel = np.exp(-GAMMA * distances)
    n = len(train)
    machine = SVC(kernel="precomputed", C=C).fit(kernel[:n, :n], y)
    return lambda: machine.predict(kernel[n:, :n])


CLASS_LINES = {
    "treelens": Line("`GraphClassifier`, default", _ours(tl.GraphClassifier)),
    "treelens_uniform": Line(
        "`GraphClassifier`, uniform weights", _ours(tl.GraphClassifier, weights="uniform")
    ),
    "svc_wl": Line("`GraphSVC`, WL subtree", _machine("wl-subtree-cosine")),
    "svc_wl_oa": Line("`GraphSVC`, WL-OA", _machine("wl-oa")),
    "svc_wwl": Line("`GraphSVC`, WWL", _machine("wwl")),
    "svc_wwl_learned": Line("`GraphSVC`, WWL, learned weights", _machine("wwl", WEIGHT_RADIUS)),
    "grakel_wl": Line(
        "GraKeL WL subtree, `SVC`",
        _grakel("WeisfeilerLehman", normalize=True),
        _as_grakel,
        ("GraKeL",),
        "svc_wl",
    ),
    "grakel_wl_oa": Line(
        "GraKeL WL-OA, `SVC`",
        _grakel("WeisfeilerLehmanOptimalAssignment"),
        _as_grakel,
        ("GraKeL",),
        "svc_wl_oa",
    ),
    "wwl": Line("wwl, `SVC`", _wwl, _as_igraph, ("wwl", "igraph", "POT"), "svc_wwl"),
}
NUMBER_LINES = {
    "treelens": Line("`GraphRegressor`, default", _ours(tl.GraphRegressor, smiles_to_collection)),
    "treelens_uniform": Line(
        "`GraphRegressor`, uniform weights",
        _ours(tl.GraphRegressor, smiles_to_collection, weights="uniform"),
    ),
    "ecfp6_gp": Line(
        "ECFP6 counts, our GP, kernel of the same form",
        _ours(BASELINES["ecfp_gp"][1], smiles_to_collection),
    ),
    "ecfp_gp": Line("ECFP6 counts, Tanimoto GP", partial(fit_rival, "ecfp_gp")),
    "ecfp4_gp": Line("ECFP4 counts, Tanimoto GP", partial(fit_rival, "ecfp4_gp")),
    "gauche": Line(
        "ECFP4 counts, GAUCHE",
        partial(fit_rival, "gauche"),
        packages=("gauche", "botorch", "torch"),
    ),
    "ecfp4_rbf_gp": Line("ECFP4 counts, scikit-learn's GP", partial(fit_rival, "ecfp4_rbf_gp")),
    "ecfp_forest": Line("ECFP4 counts, forest", partial(fit_rival, "ecfp_forest")),
    "ecfp_boosting": Line("ECFP4 counts, boosted trees", partial(fit_rival, "ecfp_boosting")),
    "chemprop": Line(
        "Chemprop, one network",
        _ours(ChempropRegressor, smiles_to_collection),
        packages=("chemprop", "torch"),
    ),
}


def lines_of(name: str) -> dict[str, Line]:
    """The lines that a set has."""
    return CLASS_LINES if name in CLASS_SETS else NUMBER_LINES


# --- one run ------------------------------------------------------------------------------------


class Split(NamedTuple):
    """The first split of a set."""

    train: Any
    y_train: np.ndarray
    test: Any
    y_test: np.ndarray


def first_split(name: str) -> Split:
    """The first fold of the study of evidence, or the first split of that of regression."""
    if name in NUMBER_SETS:
        data = load_molecules(name)
        _, train, test = next(random_splits(len(data.values), 1))
        smiles = np.array(data.smiles, dtype=object)
        return Split(list(smiles[train]), data.values[train], list(smiles[test]), data.values[test])
    if name.isdigit():
        smiles, values = zip(*numbered_smiles(int(name) + N_GROWTH_TEST), strict=True)
        first, y = list(smiles), np.array(values)
        n = int(name)
        return Split(first[:n], y[:n], first[n:], y[n:])
    graphs, y = tl.load_dataset(name)
    y = np.asarray(y)
    train, test = outer_split(np.unique(y, return_inverse=True)[1], 0, 0, seed=0)
    return Split(graphs[train], y[train], graphs[test], y[test])


def measure(line: Line, split: Split, limit: int | None = None) -> dict[str, Any]:
    """What a fit and its predictions cost, after a small one that compiles and imports."""
    # After `limit` seconds of processor time the process is killed by `SIGXCPU`.
    train, test = line.convert(split.train), line.convert(split.test)
    some = _some_of_each(split.y_train)
    few = split.train[some] if hasattr(split.train, "recipe") else [split.train[i] for i in some]
    line.fit(line.convert(few), split.y_train[some], line.convert(split.test[:2]))()
    if limit is not None:
        most = math.ceil(processor_seconds()) + limit
        resource.setrlimit(resource.RLIMIT_CPU, (most, most + 5))
    before = kilobytes("VmRSS")
    runs = [_run(line.fit, train, split.y_train, test)]
    while len(runs) < N_TIMES and runs[0][0]["wall"] < SHORT:
        runs.append(_run(line.fit, train, split.y_train, test))
    spent, predicted = min(runs, key=lambda run: run[0]["fit_cpu"] + run[0]["predict_cpu"])
    memory = {"megabytes": kilobytes("VmHWM") / 1024, "megabytes_before": before / 1024}
    sizes = {"n_train": len(split.y_train), "n_test": len(split.y_test), "n_runs": len(runs)}
    return {**spent, **memory, **sizes, **_score(split.y_test, predicted)}


def _some_of_each(y: np.ndarray) -> np.ndarray:
    """A few training graphs, of every class where there are classes."""
    if y.dtype.kind == "f":
        return np.arange(N_WARM_UP)
    classes = np.unique(y)
    each = -(-N_WARM_UP // len(classes))
    return np.sort(np.concatenate([np.flatnonzero(y == c)[:each] for c in classes]))


def _run(fit: Fit, train: Any, y: np.ndarray, test: Any) -> tuple[dict[str, float], np.ndarray]:
    start, wall = processor_seconds(), time.perf_counter()
    predict = fit(train, y, test)
    fitted = processor_seconds()
    predicted = predict()
    spent = {
        "fit_cpu": fitted - start,
        "predict_cpu": processor_seconds() - fitted,
        "wall": time.perf_counter() - wall,
    }
    return spent, np.asarray(predicted)


def _score(y: np.ndarray, predicted: np.ndarray) -> dict[str, float]:
    if y.dtype.kind == "f":
        return {"rmse": float(np.sqrt(np.mean((y - predicted) ** 2)))}
    return {"accuracy": float(np.mean(y == predicted))}


def processor_seconds() -> float:
    """Of this process and of those that it has waited for."""
    ended = os.times()
    return time.process_time() + ended.children_user + ended.children_system


def kilobytes(field: str) -> int:
    """Memory of this process: ``VmRSS`` is what it holds, ``VmHWM`` the most that it has held."""
    # The maximum of `getrusage` would carry over from the parent.
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith(field))


def main(name: str, method: str, limit: str | None = None) -> None:
    """Measure one line and print it as the last line."""
    line = lines_of(name)[method]
    for package in line.packages[:1]:
        import_module(package.lower())
    warnings.simplefilter("ignore")
    found = measure(line, first_split(name), None if limit is None else int(limit))
    print(json.dumps({**found, "rival": {p: version(p) for p in line.packages}}))


# --- the study ----------------------------------------------------------------------------------


def run(options: StudyOptions) -> None:
    """Make the rows that are missing, one process after the other."""
    with options.rows("cost", ("set", "method")) as rows:
        for name in options.sets or (*CLASS_SETS, *NUMBER_SETS):
            for method in options.methods or lines_of(name):
                row = {"set": name, "method": method}
                if method not in lines_of(name) or row in rows:
                    continue
                found = measured(name, method)
                if "missing" in found:
                    print(row, "skipped:", found["missing"], flush=True)
                else:
                    rows.add(row, lambda found=found: found)


def run_growth(options: StudyOptions) -> None:
    """Make the rows of growing sets; a rival that was stopped is not tried on larger ones."""
    with options.rows("growth", ("n", "method")) as rows:
        for n in (int(size) for size in options.sets or GROWTH_SIZES):
            stopped = {row["method"] for row in rows.rows if "stopped" in row}
            for method in options.methods or GROWTH_METHODS:
                if method not in stopped:
                    rows.add({"n": n, "method": method}, measured, str(n), method)


def measured(name: str, method: str) -> dict[str, Any]:
    """Return the cost of one line, that it was stopped, or which package is missing."""
    ours = not lines_of(name)[method].packages and method.startswith((OURS, "svc"))
    command = [sys.executable, "-m", "reproduction.cost", name, method]
    done = subprocess.run(
        command if ours else [*command, str(LIMIT)],
        capture_output=True,
        text=True,
        env={**os.environ, **_ONE_THREAD},
    )
    # a rival that is a program of its own is stopped itself
    if done.returncode == -signal.SIGXCPU or (done.returncode and "SIGXCPU" in done.stderr):
        return {"stopped": LIMIT}
    output = (done.stderr if done.returncode else done.stdout).strip().splitlines()
    last = output[-1] if output else "no output"
    if last.startswith("ModuleNotFoundError"):
        return {"missing": f"{last}: pip install '.[studies]'"}
    if done.returncode:
        raise RuntimeError(f"{method} on {name} ended with {done.returncode}: {last}")
    return json.loads(last)


if __name__ == "__main__":
    main(*sys.argv[1:])
