"""Do predictions rest on the atoms that explanations name? ``python -m benchmarks.bench_deletion``.

A model is explained on graphs held out of training; then a fifth of a graph's nodes is deleted,
with their edges, and the graph is decided again. Deleted are the nodes that contribute most to the
predicted class; those that contribute least (they speak against it, or for nothing); and as many
at random, scattered or in one piece. All forms of the kernel, uniform and learned weights, settings
fixed beforehand. The rows hold every graph: all that the page says can be computed from them.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from reproduction.pages import markdown_table, write_json, write_page
from reproduction.rows import RowFile, versions
from sklearn.model_selection import train_test_split

import treelens as tl
from benchmarks.measure import NEEDS_DATA, load
from benchmarks.rows import Row
from treelens.graphs.build import build_collection
from treelens.kernels.table import KERNELS

COMMAND = "python -m benchmarks.bench_deletion"
RESULTS = Path(__file__).parent.parent / "docs" / "results"
DATASETS = ("MUTAG", "PTC_MR", "BBBP")
RADII = {"uniform": 0.0, "learned": 1.0}
SETTINGS: dict[str, Any] = {"depth": 3, "gamma": 1.0, "C": 10.0, "cv": 2, "random_state": 0}
KEY = ("dataset", "kernel", "weights")
SHARE = 0.2  # of the nodes are deleted
FEWEST_NODES = 5  # of a smaller graph a fifth is less than a node
N_DRAWS = 10  # of random nodes, of either sort
MOST_GRAPHS = 600  # of BBBP, to train and to test
MOST_TESTED = 120
DELETIONS = ("most", "scattered", "connected", "least")


# --- graphs with holes ------------------------------------------------------------------------


def without_nodes(graph: tl.Graph, deleted: Sequence[int]) -> tl.Graph:
    """The graph without some nodes and the edges that end there; the others keep their order."""
    gone = set(deleted)
    kept = [node for node in range(graph.n_nodes) if node not in gone]
    position = {node: k for k, node in enumerate(kept)}
    edges = [k for k, (u, v) in enumerate(graph.edges) if u in position and v in position]
    labels = graph.edge_labels
    return tl.Graph(
        tuple(graph.node_labels[node] for node in kept),
        tuple((position[graph.edges[k][0]], position[graph.edges[k][1]]) for k in edges),
        None if labels is None else tuple(labels[k] for k in edges),
    )


def collected(graphs: Sequence[tl.Graph]) -> tl.GraphCollection:
    """Graphs as one collection."""
    sizes = [graph.n_nodes for graph in graphs]
    starts = np.cumsum([0, *sizes[:-1]])
    edges = [
        (start + u, start + v)
        for start, graph in zip(starts.tolist(), graphs, strict=True)
        for u, v in graph.edges
    ]
    edge_labels = [label for graph in graphs for label in graph.edge_labels or ()]
    return build_collection(
        sizes, np.array(edges, dtype=np.int64).reshape(-1, 2),
        [label for graph in graphs for label in graph.node_labels], edge_labels or None,
    )  # fmt: skip


def connected_draw(graph: tl.Graph, size: int, rng: np.random.Generator) -> list[int]:
    """Random nodes in one piece, grown edge by edge; a new piece where one is used up."""
    neighbors: list[list[int]] = [[] for _ in range(graph.n_nodes)]
    for u, v in graph.edges:
        neighbors[u].append(v)
        neighbors[v].append(u)
    chosen: list[int] = []
    border: list[int] = []
    while len(chosen) < size:
        border = sorted({x for node in chosen for x in neighbors[node]} - set(chosen))
        rest = border or [node for node in range(graph.n_nodes) if node not in chosen]
        chosen.append(int(rng.choice(rest)))
    return chosen


def deletions_of(
    graph: tl.Graph, contributions: np.ndarray, rng: np.random.Generator
) -> list[Sequence[int]]:
    """Nodes to delete: most, least, ``N_DRAWS`` times scattered, ``N_DRAWS`` times connected."""
    size = max(1, round(SHARE * graph.n_nodes))
    order = np.argsort(-contributions, kind="stable").tolist()
    scattered = [rng.permutation(graph.n_nodes)[:size].tolist() for _ in range(N_DRAWS)]
    connected = [connected_draw(graph, size, rng) for _ in range(N_DRAWS)]
    return [order[:size], order[-size:], *scattered, *connected]


# --- one model --------------------------------------------------------------------------------


def split(name: str) -> tuple[tl.GraphCollection, np.ndarray, np.ndarray, np.ndarray]:
    """Graphs, classes, and the positions of those to train on and to test, the same every time."""
    graphs, y = tl.load_dataset(name)
    y = np.asarray(y)
    chosen = np.arange(len(y))
    if len(y) > MOST_GRAPHS:
        chosen, _ = train_test_split(chosen, train_size=MOST_GRAPHS, stratify=y, random_state=0)
    train, test = train_test_split(chosen, test_size=1 / 3, stratify=y[chosen], random_state=0)
    test = test[graphs.sizes[test] >= FEWEST_NODES][:MOST_TESTED]
    return graphs, y, np.sort(train), np.sort(test)


def measure(name: str, kernel: str, weights: str) -> dict[str, Any]:
    """One row: a model, and what deletions did to each of its test graphs."""
    start = time.perf_counter()
    graphs, y, train, test = split(name)
    model = tl.GraphSVC(kernel, weight_radius=RADII[weights], progress=False, **SETTINGS)
    model.fit(graphs[train], y[train])
    decisions = model.decision_function(graphs[test])
    signs = np.where(decisions > 0, 1.0, -1.0)
    rng = np.random.default_rng(0)
    after = np.array([
        _decisions_after(model, graphs[i], sign, rng)
        for i, sign in zip(test.tolist(), signs.tolist(), strict=True)
    ])  # fmt: skip
    # Towards the predicted class, so positive before; shape (n_test, 2 + 2 * N_DRAWS) after.
    before, after = np.abs(decisions), after * signs[:, None]
    groups = {
        "most": after[:, :1],
        "least": after[:, 1:2],
        "scattered": after[:, 2 : 2 + N_DRAWS],
        "connected": after[:, 2 + N_DRAWS :],
    }
    return {
        "dataset": name, "kernel": kernel, "weights": weights, **SETTINGS,
        "weight_radius": RADII[weights],
        "n_train": len(train), "n_test": len(test), "share": SHARE, "n_draws": N_DRAWS,
        "accuracy": float((model.predict(graphs[test]) == y[test]).mean()),
        "graphs": test.tolist(),
        "predicted": model.predict(graphs[test]).tolist(), "decisions": _rounded(before),
        "falls": {k: _rounded((before[:, None] - x).mean(axis=1)) for k, x in groups.items()},
        "flips": {k: _rounded((x <= 0).mean(axis=1)) for k, x in groups.items()},
        "versions": versions(), "seconds": round(time.perf_counter() - start, 2),
    }  # fmt: skip


def _decisions_after(
    model: tl.GraphSVC, graph: tl.Graph, sign: float, rng: np.random.Generator
) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that much of the graph is unseen
        contributions = sign * model.explain(graph).node_contributions
    deletions = deletions_of(graph, contributions, rng)
    return model.decision_function(collected([without_nodes(graph, x) for x in deletions]))


def _rounded(values: np.ndarray) -> list[float]:
    return [float(f"{value:.5g}") for value in values.tolist()]


# --- results ----------------------------------------------------------------------------------


def summarize(row: dict[str, Any]) -> dict[str, Any]:
    """Means over graphs with their standard errors; falls as shares of the mean decision."""
    scale = float(np.mean(row["decisions"]))
    falls = {kind: np.array(row["falls"][kind]) / scale for kind in DELETIONS}
    predicted = np.array(row["predicted"])
    ahead = {
        kind: _mean_and_error(falls["most"] - falls[kind]) for kind in DELETIONS if kind != "most"
    }
    return {
        **{name: row[name] for name in (*KEY, "n_train", "n_test", "accuracy")},
        "mean_decision": scale,
        "falls": {kind: _mean_and_error(falls[kind]) for kind in DELETIONS},
        "flips": {kind: _mean_and_error(np.array(row["flips"][kind])) for kind in DELETIONS},
        "most_ahead_of": ahead,
        "ahead_by_class": {
            str(label): _mean_and_error((falls["most"] - falls["scattered"])[predicted == label])
            for label in np.unique(predicted).tolist()
        },
        "share_not_ahead": float((falls["most"] <= falls["scattered"]).mean()),
    }


def _mean_and_error(values: np.ndarray) -> tuple[float, float]:
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))


def is_ahead(summary: dict[str, Any], control: str) -> bool:
    """Whether the named nodes count for more than a control, by two standard errors."""
    return _is_above_zero(*summary["most_ahead_of"][control])


def _is_above_zero(mean: float, error: float) -> bool:
    return mean > 2 * error


def page_parts(summaries: list[dict[str, Any]]) -> list[str]:
    names = [name for name in DATASETS if any(s["dataset"] == name for s in summaries)]
    parts = [_introduction(summaries, names), _findings(summaries)]
    for name in names:
        parts += [f"## {name}", _table([s for s in summaries if s["dataset"] == name])]
    return [*parts, "## What this does not show", _LIMITS]


def _introduction(summaries: list[dict[str, Any]], names: list[str]) -> str:
    counts = {s["dataset"]: (s["n_train"], s["n_test"]) for s in summaries}
    sets = "; ".join(f"{n} {counts[n][0]} to train on, {counts[n][1]} tested" for n in names)
    return (
        "Each model explains graphs that it was not trained on. Then a fifth of a graph's nodes is "
        "deleted, with their edges, and the model decides again. *most*: the nodes with the "
        "largest contributions to the predicted class. *least*: those with the smallest. "
        f"*scattered* and *connected*: as many nodes at random, anywhere or in one piece, "
        f"{N_DRAWS} draws of each per graph. If contributions say what a decision rests on, *most* "
        "must bring it down further than the random draws, and *least* less far.\n\n"
        f"Graphs: {sets} (BBBP: {MOST_GRAPHS} molecules drawn from the set; graphs of fewer than "
        f"{FEWEST_NODES} nodes are not tested). Settings were fixed beforehand, for all forms "
        f"alike: depth {SETTINGS['depth']}, gamma {SETTINGS['gamma']:g}, C {SETTINGS['C']:g}, "
        f"learned weights with radius {RADII['learned']:g}. *fall*: how far the decision value "
        "sank towards the other class, as a share of the mean decision value (1: on average to the "
        "border between the classes). *flips*: the share of graphs, in percent, whose prediction "
        "changed. ± is one standard error over graphs. The rows are in `deletion.jsonl`."
    )


def _findings(summaries: list[dict[str, Any]]) -> str:
    n = len(summaries)
    counts = {kind: sum(is_ahead(s, kind) for s in summaries) for kind in DELETIONS[1:]}
    flips = {kind: np.mean([s["flips"][kind][0] for s in summaries]) for kind in DELETIONS}
    text = (
        f"Of {n} models, deleting *most* lowers the decision by more than two standard errors of "
        f"the paired difference further than *scattered* in {counts['scattered']}, than "
        f"*connected* in {counts['connected']}, and than *least* in {counts['least']}. Averaged "
        f"over models, predictions flip in {100 * flips['most']:.1f} % of the graphs after *most*, "
        f"{100 * flips['scattered']:.1f} % after *scattered*, {100 * flips['connected']:.1f} % "
        f"after *connected* and {100 * flips['least']:.1f} % after *least*."
    )
    return f"{text}\n\n{_failures(summaries)}"


def _failures(summaries: list[dict[str, Any]]) -> str:
    """Models, classes and graphs where the nodes named are not ahead of random ones."""
    failed = [_name(s) for s in summaries if not all(is_ahead(s, x) for x in DELETIONS[1:3])]
    halves = [
        (f"{_name(s)}, predicted {label}", _is_above_zero(*difference))
        for s in summaries
        for label, difference in s["ahead_by_class"].items()
    ]
    missed = [name for name, ahead in halves if not ahead]
    shares = [100 * s["share_not_ahead"] for s in summaries]
    lines = [
        "Where it fails. Models that are not ahead of both random controls: "
        f"{'; '.join(failed) or 'none'}.",
        f"Taken by predicted class, *most* is ahead of *scattered* in {len(halves) - len(missed)} "
        f"of {len(halves)} cases; not in: {'; '.join(missed) or 'none'}.",
        "Graph by graph it is no law: a graph's decision falls no further after *most* than after "
        f"the mean of its *scattered* draws in {min(shares):.0f} to {max(shares):.0f} % of the "
        f"graphs of a model, {np.mean(shares):.1f} % on average.",
    ]
    return " ".join(lines)


def _name(summary: dict[str, Any]) -> str:
    return f"{summary['dataset']} {summary['kernel']} {summary['weights']}"


def _table(summaries: list[dict[str, Any]]) -> str:
    header = ["kernel", "weights", "accuracy", *(f"fall, {kind}" for kind in DELETIONS),
              "most − scattered", *(f"flips, {kind}" for kind in DELETIONS)]  # fmt: skip
    lines = [
        [
            s["kernel"], s["weights"], f"{100 * s['accuracy']:.1f}",
            *(_plus_minus(*s["falls"][kind]) for kind in DELETIONS),
            _plus_minus(*s["most_ahead_of"]["scattered"]),
            *(f"{100 * s['flips'][kind][0]:.1f} ± {100 * s['flips'][kind][1]:.1f}"
              for kind in DELETIONS),
        ]
        for s in summaries
    ]  # fmt: skip
    return markdown_table(header, lines)


def _plus_minus(mean: float, error: float) -> str:
    return f"{mean:.2f} ± {error:.2f}"


_LIMITS = (
    "A graph with holes is no molecule. It holds patterns that training never saw, and every "
    "deletion changes a decision for that reason alone: compare the columns, not one of them with "
    "0. Nodes in one piece break fewer patterns than scattered ones, and the nodes that contribute "
    "most can be either. What falls is the model's decision, right or wrong: the test says whether "
    "an explanation is true to the model, not whether the model is true to chemistry. The settings "
    "are not the best for each form, as the accuracies show; compare columns within a line rather "
    "than lines."
)


def write_results(rows: list[dict[str, Any]], folder: Path) -> list[Path]:
    order = {name: k for k, name in enumerate((*DATASETS, *KERNELS, *RADII))}
    rows = sorted(rows, key=lambda row: [order[row[name]] for name in KEY])
    summaries = [summarize(row) for row in rows]
    title = "Do predictions rest on the atoms that explanations name?"
    return [
        write_json(folder / "deletion.json", {"command": COMMAND, "models": summaries}),
        write_page(folder / "deletion.md", title, COMMAND, page_parts(summaries)),
    ]


def rows() -> Iterator[Row]:
    claim = "deleting the nodes that explanations name lowers decisions most (MUTAG, tanimoto)"
    target = "ahead of random nodes by two standard errors"
    if load("MUTAG") is None:
        yield Row(claim, NEEDS_DATA, target, None)
        return
    summary = summarize(measure("MUTAG", "tanimoto", "learned"))
    falls = summary["falls"]
    yield Row(
        claim, f"fall {falls['most'][0]:.2f}; scattered {falls['scattered'][0]:.2f}, connected "
        f"{falls['connected'][0]:.2f}", target,
        is_ahead(summary, "scattered") and is_ahead(summary, "connected"),
    )  # fmt: skip


def main() -> int:
    if not os.environ.get("TREELENS_DATA"):
        print(NEEDS_DATA)
        return 1
    file = RowFile(RESULTS / "deletion.jsonl", KEY)
    for name in DATASETS:
        for kernel in KERNELS:
            for weights in RADII:
                if {"dataset": name, "kernel": kernel, "weights": weights} not in file:
                    file.append(measure(name, kernel, weights))
                    print(name, kernel, weights, f"{file.rows[-1]['seconds']} s", flush=True)
    for path in write_results(file.rows, RESULTS):
        print(path)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
