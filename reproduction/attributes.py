"""Continuous attributes: other kernels on the folds of Table 2, and the page that compares them."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

import treelens as tl
from reproduction.compare import load_tu
from reproduction.data import StudyOptions
from reproduction.protocol import N_OUTER, choose_kernel, inner_splits, outer_split

SETS = ("ENZYMES", "PROTEINS", "Letter-med", "BZR")
# Settings of other kernels, chosen by inner folds together with C.
WWL_DEPTHS = 1, 2, 3
WWL_GAMMAS = tuple(10.0**k for k in range(-4, 2))
PROPAGATION = [{"t_max": t, "w": w} for t in (1, 3, 5) for w in (0.01, 0.1, 1.0, 10.0)]
HOPPER = [{"kernel_type": "linear"}, {"kernel_type": ("gaussian", 1.0)}]

Kernels = tuple[list[dict[str, Any]], list[np.ndarray], float]


def run(options: StudyOptions) -> None:
    """Make the rows that are missing, fold by fold; our own models are in ``compare``."""
    key = ("set", "method", "repetition", "fold")
    sets, known = options.sets or SETS, ("svc", *KERNELS)
    for method in options.methods or ():
        if method not in known:
            raise ValueError(f"There is no method {method!r}: choose among {', '.join(known)}.")
    data = {name: load_tu(name)[:2] for name in sets}
    with options.rows("attributes", key) as rows:
        for method in options.methods or known:
            for repetition in range(options.repeats or 1):
                for fold in range(3 if options.quick else N_OUTER):
                    for name in sets:
                        place = dict(zip(key, (name, method, repetition, fold), strict=True))
                        rows.add(place, _row, method, name, *data[name], repetition, fold)


def _row(
    method: str,
    name: str,
    graphs: tl.GraphCollection,
    codes: np.ndarray,
    repetition: int,
    fold: int,
) -> dict[str, Any]:
    """Return accuracy, processor seconds and choices of one method on one fold."""
    train, test = outer_split(codes, repetition, fold, seed=0)
    if method in KERNELS:
        try:
            made = kernels_of(method, name)
        except ValueError as error:  # of a package that is not ours: the page says so
            return {"failed": f"{type(error).__name__}: {error}"}
        inner = inner_splits(codes, train, 1000 * repetition + fold)
        return kernel_scores(*made, codes, train, test, inner)
    model = tl.GraphSVC("wwl", random_state=0, n_jobs=1, progress=False)
    start = time.process_time()
    model.fit(graphs[train], codes[train])
    fitted = time.process_time()
    accuracy = float(np.mean(model.predict(graphs[test]) == codes[test]))
    return {
        "accuracy": accuracy,
        "cpu_seconds": fitted - start,
        "predict_cpu_seconds": time.process_time() - fitted,
        "n_train": len(train),
        "n_test": len(test),
        "choice": dict(model.best_params_),
    }


# --- other kernels ------------------------------------------------------------------------------


def kernel_scores(
    settings: list[dict[str, Any]],
    kernels: list[np.ndarray],
    kernel_seconds: float,
    codes: np.ndarray,
    train: np.ndarray,
    test: np.ndarray,
    inner: list[Any],
) -> dict[str, Any]:
    """Choose setting and C on inner folds of the training part; score a support vector machine."""
    # Matrices are of all graphs, as none of these kernels sees classes, and all folds share them.
    start = time.process_time()
    accuracy, choice, score = choose_kernel(settings, kernels, codes, train, test, inner)
    return {
        "accuracy": accuracy,
        "cpu_seconds": time.process_time() - start,
        "kernel_cpu_seconds": kernel_seconds,
        "n_settings": len(settings),
        "n_train": len(train),
        "n_test": len(test),
        "choice": choice,
        "inner_score": score,
    }


@cache
def kernels_of(method: str, name: str) -> Kernels:
    """Return settings, the kernel matrix of each, and the processor seconds for all of them."""
    graphs = load_tu(name).graphs
    start = time.process_time()
    found = list(KERNELS[method](graphs))
    seconds = time.process_time() - start
    return [setting for setting, _ in found], [kernel for _, kernel in found], seconds


def wwl_kernels(graphs: tl.GraphCollection) -> Any:
    """The published WWL for continuous attributes (package ``wwl``)."""
    from wwl.propagation_scheme import ContinuousWeisfeilerLehman
    from wwl.wwl import _compute_wasserstein_distance

    class Scheme(ContinuousWeisfeilerLehman):
        """Without the array of arrays of labels, which NumPy refuses since version 1.24."""

        def _preprocess_graphs(self, X: Any) -> Any:
            return None, [_adjacency(graph) for graph in X], graphs.sizes

    values = _attributes(graphs)
    for depth in WWL_DEPTHS:
        embedded = Scheme().fit_transform(graphs, values, num_iterations=depth)
        distance = _compute_wasserstein_distance(embedded)
        for gamma in WWL_GAMMAS:
            yield {"depth": depth, "gamma": gamma}, np.exp(-gamma * distance)


def grakel_kernels(kind: str, settings: list[dict[str, Any]], graphs: tl.GraphCollection) -> Any:
    """A kernel of GraKeL on standardised attributes, normalised."""
    import grakel

    values = np.concatenate(_attributes(graphs))
    spread = values.std(axis=0)
    values = (values - values.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
    parts = np.split(values, graphs.node_offsets[1:-1])
    given = [
        grakel.Graph(_adjacency(graph), dict(enumerate(part)))
        for graph, part in zip(graphs, parts, strict=True)
    ]
    extra = {"random_state": 0} if kind == "PropagationAttr" else {}
    for setting in settings:
        kernel = getattr(grakel, kind)(normalize=True, **setting, **extra)
        yield setting, np.nan_to_num(kernel.fit_transform(given))


def _attributes(graphs: tl.GraphCollection) -> list[np.ndarray]:
    return np.split(graphs.node_attributes, graphs.node_offsets[1:-1])


def _adjacency(graph: tl.Graph) -> np.ndarray:
    matrix = np.zeros((graph.n_nodes, graph.n_nodes), dtype=int)
    ends = np.array(graph.edges, dtype=int).reshape(-1, 2)
    matrix[ends[:, 0], ends[:, 1]] = matrix[ends[:, 1], ends[:, 0]] = 1
    return matrix


KERNELS: dict[str, Callable[[tl.GraphCollection], Any]] = {
    "wwl": wwl_kernels,
    "propagation": lambda graphs: grakel_kernels("PropagationAttr", PROPAGATION, graphs),
    "hopper": lambda graphs: grakel_kernels("GraphHopper", HOPPER, graphs),
}
