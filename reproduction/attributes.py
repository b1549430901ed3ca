"""Continuous attributes: other kernels on the folds of Table 2, and the page that compares them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import treelens as tl
from reproduction.compare import load_tu
from reproduction.data import StudyOptions
from reproduction.methods import CS
from reproduction.pages import (
    Rows,
    common_rows,
    difference_text,
    grouped,
    holm_of,
    markdown_table,
    mean_and_error,
    p_text,
    paired,
    plus_minus,
    rows_of,
    section,
    write_page,
)
from reproduction.protocol import N_OUTER, choose_kernel, inner_splits, outer_split
from treelens.evaluation.statistics import PairedTest

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


NAMES = {
    "labels": 'treelens, labels only (`attributes="ignore"`)',
    "default": "treelens",
    "uniform": "treelens, uniform weights, best depth",
    "depths": "treelens, weights of depths",
    "branches": "treelens, weights of branches",
    "svc": '`GraphSVC("wwl")`',
    "wwl": "WWL, continuous (package `wwl`)",
    "propagation": "PropagationAttr (GraKeL)",
    "hopper": "GraphHopper (GraKeL)",
}
OURS = "labels", "default", "uniform", "depths", "branches"
OTHERS = "wwl", "propagation", "hopper"
# With attributes, as printed; protocols differ.
PUBLISHED = {
    "ENZYMES": "WWL 73.3, HGK-SP 66.4, GraphHopper 65.7",
    "PROTEINS": "WWL 77.9, HGK-WL 75.9",
    "BZR": "WWL 84.4",
}
N_ATTRIBUTES = {"ENZYMES": 18, "PROTEINS": 1, "Letter-med": 2, "BZR": 3}
SPLIT = ("repetition", "fold")


def write(out: Path) -> Path | None:
    """Write ``attributes.md``."""
    others = [row for row in rows_of(out, "attributes") if row["method"] not in OURS]
    everything = others + compared_rows(out)
    done = [row for row in everything if "failed" not in row]
    ours = common_rows([row for row in done if row["method"] in OURS], ["set"], SPLIT)
    if not ours:
        return None
    rows = [*ours, *(row for row in done if row["method"] not in OURS)]
    parts = [
        "Sets of the TU collection whose nodes have numbers, on the folds of [Table 2](table2.md). "
        "*treelens* is `GraphClassifier` at its defaults; the next three lines fix what it "
        "otherwise chooses. The other kernels are run here: their settings and C are chosen by "
        "inner folds of the training part, in a support vector machine. ± is the standard error "
        "of the mean over folds. Of a set, all lines of `GraphClassifier` are on the same folds; "
        "the other kernels have ten of these folds, and compare with ours by the differences on "
        "shared folds below.",
        _accuracy_table(rows),
        *_gain_parts(rows),
        *_choice_parts(rows),
        *_time_parts(rows),
        *_other_parts(rows),
        *_failures([row for row in everything if "failed" in row]),
        "## How the construction was chosen",
        "On all graphs, test parts included, of Letter-med, ENZYMES and BZR, by leave-one-out: "
        "that cells are split between the quantiles 0.1 and 0.9, and that a cell asks for own "
        "values and means over neighbours together. Eight trees and six resolutions are those of a "
        "first sketch, which was measured on ENZYMES, PROTEINS and Letter-med. So all four sets "
        "flatter the cells a little. Thresholds, weights and choices of a row come from its "
        "training part alone.",
    ]
    return write_page(out, "attributes", "Continuous attributes", parts)


def compared_rows(out: Path) -> list[dict[str, Any]]:
    """Return the rows of our models, with attributes and by labels alone."""
    rows = rows_of(out, "compare_attributes")
    sets, beside = {row["set"] for row in rows}, rows_of(out, "compare_table2")
    rows += [r for r in beside if r["set"] in sets and r["method"] == "auto_labels"]
    names = {"auto": "default", "auto_labels": "labels"}
    return [
        {
            **row,
            "method": method,
            "repetition": row["split"] // N_OUTER,
            "fold": row["split"] % N_OUTER,
        }
        for row in rows
        if (method := names.get(row["method"], row["method"])) in OURS
    ]


def accuracies(rows: Rows) -> dict[str, dict[str, tuple[float, float | None, int]]]:
    """Return mean accuracy in percent, its standard error and the folds, by set and method."""
    found: dict[str, dict[str, tuple[float, float | None, int]]] = {}
    for (name, method), members in grouped(rows, "set", "method").items():
        mean, error = mean_and_error([100 * row["accuracy"] for row in members])
        found.setdefault(name, {})[method] = mean, error, len(members)
    return found


def _accuracy_table(rows: Rows) -> str:
    found = accuracies(rows)
    lines: list[list[Any]] = []
    for method, text in NAMES.items():
        cells = [found[name].get(method) for name in found]
        if any(cells):
            texts = ["–" if c is None else f"{plus_minus(*c[:2], 1)} ({c[2]})" for c in cells]
            lines.append([text, *texts])
    lines.append(["*published, with attributes*", *(PUBLISHED.get(name, "") for name in found)])
    header = [
        f"{name}, attributes: {N_ATTRIBUTES[name]}" if name in N_ATTRIBUTES else name
        for name in found
    ]
    return markdown_table(["accuracy in % (folds)", *header], lines)


def gains(rows: Rows) -> dict[tuple[str, str, str], PairedTest]:
    """Return paired differences of accuracy, with the corrected resampled t-test, by set."""
    found = {}
    for name, members in grouped(rows, "set").items():
        for ours, theirs in (
            ("default", "labels"),
            ("default", "uniform"),
            ("depths", "uniform"),
            ("branches", "uniform"),
            ("default", "wwl"),
            ("default", "propagation"),
            ("default", "hopper"),
        ):
            test = paired(members, ours, theirs, "accuracy", SPLIT)
            if test is not None:
                found[name, ours, theirs] = test
    return found


def _gain_parts(rows: Rows) -> list[str]:
    tests = gains(rows)
    adjusted = holm_of(tests)
    lines = [
        [
            name,
            f"{NAMES[ours]} − {NAMES[theirs]}",
            difference_text(test, 1, 100),
            p_text(adjusted[name, ours, theirs]),
            test.degrees_of_freedom + 1,
        ]
        for (name, ours, theirs), test in tests.items()
    ]
    text = (
        "In points of accuracy, with the corrected standard error of resampled folds; p is "
        "two-sided, with Holm's correction for the lines of the table."
    )
    header = ["set", "difference", "points", "p (Holm)", "folds"]
    return section("## Differences on shared folds", text, header, lines)


def _choice_parts(rows: Rows) -> list[str]:
    lines = []
    for name, members in grouped([r for r in rows if r["method"] == "default"], "set").items():
        counts = Counter((row["best_weights"], row["best_depth"]) for row in members)
        texts = [f"{weights}, depth {depth}: {n}" for (weights, depth), n in counts.most_common()]
        lines.append([name, "; ".join(texts)])
    if not lines:
        return []
    return ["## What the default chose", markdown_table(["set", "weights and depth: folds"], lines)]


def time_ratios(rows: Rows) -> dict[str, tuple[float, float, float]]:
    """Return mean processor seconds of a fit without and with attributes, and their ratio."""
    found = {}
    for name, members in grouped(rows, "set").items():
        seconds = {
            method: {tuple(r[k] for k in SPLIT): r["cpu_seconds"] for r in group}
            for method, group in grouped(members, "method").items()
        }
        shared = seconds.get("labels", {}).keys() & seconds.get("default", {}).keys()
        if shared:
            without, beside = (
                float(np.mean([seconds[method][key] for key in shared]))
                for method in ("labels", "default")
            )
            found[name] = without, beside, beside / without
    return found


def _time_parts(rows: Rows) -> list[str]:
    lines = [
        [name, f"{without:.1f}", f"{beside:.1f}", f"{ratio:.1f}"]
        for name, (without, beside, ratio) in time_ratios(rows).items()
    ]
    text = (
        "Processor seconds of a fit on nine tenths of a set, one thread, compilation left out, of "
        "the version that made these rows; fits with attributes are [faster](speed.md) now."
    )
    return section("## Time", text, ["set", "labels only", "with attributes", "ratio"], lines)


def _other_parts(rows: Rows) -> list[str]:
    members = [row for row in rows if row["method"] in OTHERS]
    if not members:
        return []
    lines = [
        [
            name,
            NAMES[method],
            group[0]["n_settings"],
            f"{group[0]['kernel_cpu_seconds']:.0f}",
            f"{np.mean([row['cpu_seconds'] for row in group]):.0f}",
        ]
        for (name, method), group in grouped(members, "set", "method").items()
    ]
    return [
        "Of the other kernels: processor seconds for the kernel matrices of all settings and all "
        "graphs of a set, which its folds share, and per fold for the choice of setting and C. "
        "Attributes are standardised over all graphs, as these packages do or leave to the user. "
        f"Chosen from: WWL, depths {_values(WWL_DEPTHS)} and gamma {_values(WWL_GAMMAS)}; "
        f"PropagationAttr, t_max {_values(p['t_max'] for p in PROPAGATION)} and bin width "
        f"{_values(p['w'] for p in PROPAGATION)}; GraphHopper, a linear and a Gaussian kernel of "
        f"attributes; C {_values(CS)}.",
        markdown_table(["set", "kernel", "settings", "matrices", "choice, per fold"], lines),
    ]


def _values(values: Iterable[float]) -> str:
    return ", ".join(f"{value:g}" for value in sorted(set(values)))


def _failures(rows: Rows) -> list[str]:
    return [
        f"{NAMES[method]} could not be run on {name}: `{group[0]['failed']}`"
        for (name, method), group in grouped(rows, "set", "method").items()
    ]
