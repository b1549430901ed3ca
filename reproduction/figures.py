"""Drawings: refinement, three kernels and hinges of the paper, substructures, learned weights.

The two small graphs are compared by the numbers that the pictures show; tests compare these with
the library's closed forms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment, linprog

from reproduction.data import StudyOptions
from reproduction.pages import Rows, grouped, save_figure
from treelens.graphs.collection import Graph
from treelens.graphs.convert import as_graph_collection
from treelens.graphs.datasets import SUBSTRUCTURES
from treelens.pairwise.objective import smooth_hinge_different, smooth_hinge_same
from treelens.patterns.vocabulary import PatternVocabulary

ALPHA1, ALPHA2, SIGMA = 3.0, 4.0, 1.5
DEPTH = 2
LEFT = Graph(("C", "C", "O", "C"), ((0, 1), (1, 2), (1, 3)), name="G")
RIGHT = Graph(("C", "C", "O", "C", "C"), ((0, 1), (1, 2), (1, 3), (3, 4)), name="G'")
_FILLS = ("#d8e6f2", "#fbdcc4", "#cdeadf", "#f7f0c0", "#ead6e6", "#dddddd", "#c4e3f7", "#f4c9c9")
_BLUE, _ORANGE = "#0072b2", "#d55e00"


def run(options: StudyOptions) -> None:
    """Draw all of them."""
    folder = options.out / "figures"
    draw_refinement(folder)
    draw_kernels(folder, compare_nodes())
    draw_hinges(folder)
    draw_substructures(folder)


def _figure(width: float, height: float) -> Any:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def _draw_graph(axes: Any, graph: Graph, texts: Sequence[str], fills: Sequence[str]) -> None:
    import networkx as nx

    drawn = nx.Graph(graph.edges)
    drawn.add_nodes_from(range(len(texts)))
    places = nx.kamada_kawai_layout(drawn)
    nodes = range(len(texts))
    nx.draw_networkx(
        drawn,
        places,
        ax=axes,
        nodelist=list(nodes),
        node_color=list(fills),
        edgecolors="#777",
        node_size=240,
        labels=dict(zip(nodes, texts, strict=True)),
        font_size=9,
    )
    axes.set_axis_off()
    axes.set_aspect("equal", adjustable="datalim")  # narrow drawings keep their nodes whole
    axes.margins(0.15)


# --- refinement -------------------------------------------------------------------------------


def _both() -> tuple[PatternVocabulary, np.ndarray]:
    """Return the patterns of both graphs, and the colours of all nodes, (depth + 1, n_nodes)."""
    graphs = as_graph_collection(
        [(list(g.edges), dict(enumerate(g.node_labels))) for g in (LEFT, RIGHT)]
    )
    vocabulary, colors = PatternVocabulary.fit(graphs, DEPTH)
    return vocabulary, colors.colors


def draw_refinement(folder: Path) -> Path:
    """Draw two graphs at depths 0, 1, 2, with the meaning of every colour beside them."""
    vocabulary, colors = _both()
    figure = _figure(8.0, 6.0)
    axes = figure.subplots(DEPTH + 1, 3)
    for depth, row in enumerate(axes):
        parts = np.split(colors[depth], [LEFT.n_nodes])
        for panel, graph, part in zip(row, (LEFT, RIGHT), parts, strict=False):
            texts = graph.node_labels if depth == 0 else [str(c + 1) for c in part]
            _draw_graph(panel, graph, texts, [_FILLS[c] for c in part])
            panel.set_title(f"{graph.name}, depth {depth}", fontsize=10)
        start, stop = vocabulary.level_offsets[depth : depth + 2]
        for k, text in enumerate(vocabulary.texts(np.arange(start, stop))):
            name = text if depth == 0 else f"{k + 1} = {text}"
            row[2].text(
                0.0,
                0.9 - 0.17 * k,
                name,
                fontsize=10,
                va="center",
                bbox={"facecolor": _FILLS[k], "edgecolor": "none"},
            )
        row[2].set_axis_off()
    return save_figure(figure, folder, "wl_scheme")


# --- the three kernels ------------------------------------------------------------------------


@dataclass(frozen=True)
class NodeComparison:
    """How three kernels compare the nodes of two graphs; all matrices (n_left, n_right)."""

    similarity: np.ndarray  # share of the depths at which two nodes have the same colour
    assignment: np.ndarray  # the best one-to-one matching
    plan: np.ndarray  # the cheapest transport of mass

    @property
    def subtree(self) -> float:
        return float(self.similarity.sum())

    @property
    def optimal_assignment(self) -> float:
        return float((self.assignment * self.similarity).sum())

    @property
    def wasserstein(self) -> float:
        return float((self.plan * (1 - self.similarity)).sum())


def compare_nodes() -> NodeComparison:
    """Compare the nodes of both graphs by their colours at depths 1 to :data:`DEPTH`."""
    _, colors = _both()
    ours, theirs = colors[1:, : LEFT.n_nodes], colors[1:, LEFT.n_nodes :]
    similarity = (ours[:, :, None] == theirs[:, None, :]).mean(axis=0)
    assignment = np.zeros_like(similarity)
    assignment[linear_sum_assignment(similarity, maximize=True)] = 1.0
    return NodeComparison(similarity, assignment, transport_plan(1 - similarity))


def transport_plan(cost: np.ndarray) -> np.ndarray:
    """Return the cheapest way to move uniform mass from rows to columns."""
    n_left, n_right = cost.shape
    leaves = np.kron(np.eye(n_left), np.ones(n_right))
    arrives = np.kron(np.ones(n_left), np.eye(n_right))
    masses = np.r_[np.full(n_left, 1 / n_left), np.full(n_right, 1 / n_right)]
    found = linprog(cost.ravel(), A_eq=np.vstack([leaves, arrives]), b_eq=masses)
    return found.x.reshape(cost.shape)


def draw_kernels(folder: Path, found: NodeComparison) -> Path:
    """Draw the nodes of both graphs, joined as each kernel joins them."""
    vocabulary, colors = _both()
    texts = vocabulary.texts(vocabulary.level_offsets[1] + colors[1])
    panels = [
        ("WL subtree: all pairs", found.similarity, f"sum of similarities {found.subtree:g}"),
        (
            "WL-OA: best matching",
            found.assignment,
            f"sum of similarities {found.optimal_assignment:g}",
        ),
        ("WWL: cheapest transport", 4 * found.plan, f"mass × distance {found.wasserstein:g}"),
    ]
    figure = _figure(9.5, 3.8)
    for axes, (title, joined, value) in zip(figure.subplots(1, 3), panels, strict=True):
        heights = [np.linspace(1, 0, n) for n in joined.shape]
        for i, j in zip(*np.nonzero(joined > 1e-9), strict=True):
            share = float(found.similarity[i, j])
            color = {0.0: "#999999", 0.5: _ORANGE}.get(share, _BLUE)
            axes.plot(
                [0, 1],
                [heights[0][i], heights[1][j]],
                color=color,
                lw=4 * joined[i, j],
                ls="--" if share == 0 else "-",
                zorder=1,
            )
        for side, (offset, ys) in enumerate(zip((0, LEFT.n_nodes), heights, strict=True)):
            for k, y in enumerate(ys):
                fill = _FILLS[colors[1, offset + k]]
                axes.scatter(side, y, s=150, color=fill, edgecolors="#777", zorder=2)
                axes.text(
                    side + (-0.12 if side == 0 else 0.12),
                    y,
                    texts[offset + k],
                    ha="right" if side == 0 else "left",
                    va="center",
                    fontsize=8,
                )
        axes.set(title=title, xlim=(-0.8, 1.8), ylim=(-0.15, 1.1))
        axes.set_axis_off()
        axes.text(0.5, -0.13, value, ha="center", fontsize=9)
    figure.supxlabel(
        "blue: equal colours at both depths, orange: at one, dashed: at none", fontsize=9
    )
    return save_figure(figure, folder, "three_kernels")


# --- hinges, substructures, weights -----------------------------------------------------------


def draw_hinges(folder: Path) -> Path:
    """Draw both hinges and their smoothed versions over the distance."""
    distance = np.linspace(0.0, 7.0, 701)
    panels = [
        (
            "different classes (V1)",
            "alpha1",
            ALPHA1,
            np.maximum(ALPHA1 - distance, 0.0),
            smooth_hinge_different(distance, ALPHA1, SIGMA),
            (ALPHA1 - SIGMA, ALPHA1),
        ),
        (
            "same class (V2)",
            "alpha2",
            ALPHA2,
            np.maximum(distance - ALPHA2, 0.0),
            smooth_hinge_same(distance, ALPHA2, SIGMA),
            (ALPHA2, ALPHA2 + SIGMA),
        ),
    ]
    figure = _figure(9.0, 3.4)
    for axes, (title, name, margin, plain, smooth, bend) in zip(
        figure.subplots(1, 2, sharey=True), panels, strict=True
    ):
        axes.plot(distance, plain, color="#222", ls="--", lw=1.2, label="hinge")
        axes.plot(distance, smooth, color=_BLUE, lw=2.2, label=f"smoothed, sigma = {SIGMA:g}")
        axes.axvspan(*bend, color="#eeeeee", zorder=0)
        axes.set(title=title, xlabel=f"distance ({name} = {margin:g}; the hinge bends in grey)")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False)
    figure.axes[0].set_ylabel("loss")
    return save_figure(figure, folder, "hinges")


def draw_substructures(folder: Path) -> Path:
    """Draw the eight substructures, the planted pattern coloured; training above, test below."""
    figure = _figure(10.0, 4.4)
    for axes, (number, graph) in zip(
        figure.subplots(2, 4).flat, sorted(SUBSTRUCTURES.items()), strict=True
    ):
        planted = set(graph.data["planted"])
        fills = [_FILLS[1] if node in planted else "#eeeeee" for node in range(graph.n_nodes)]
        _draw_graph(axes, graph, [str(label) for label in graph.node_labels], fills)
        sign = "positive" if graph.data["class"] > 0 else "negative"
        axes.set_title(f"{number}: {sign}, {'training' if number < 5 else 'test'}", fontsize=10)
    return save_figure(figure, folder, "synthetic_substructures")


def draw_patterns(folder: Path, rows: Rows, n_each: int = 6) -> Path:
    """Draw the highest and lowest learned weights of MUTAG and PTC_MR with standard errors."""
    tables = grouped(rows, "set")
    figure = _figure(10.5, 3.6 * len(tables))
    axes = figure.subplots(len(tables), 2, squeeze=False)
    for row, (name, table) in zip(axes, tables.items(), strict=True):
        for panel, depth in zip(row, (1, 2), strict=True):
            level = sorted((p for p in table if p["depth"] == depth), key=lambda p: -p["weight"])
            shown = [*level[:n_each], *level[-n_each:]][::-1]
            panel.errorbar(
                [p["weight"] for p in shown],
                range(len(shown)),
                xerr=[p["error"] for p in shown],
                fmt="o",
                color=_BLUE,
                ecolor="#888",
                ms=5,
            )
            panel.axvline(1.0, color="#999", lw=1)
            panel.set_yticks(range(len(shown)), [p["pattern"] for p in shown], fontsize=8)
            panel.set(title=f"{name}, depth {depth}", xlabel="learned weight (uniform: 1)")
            panel.spines[["top", "right"]].set_visible(False)
    return save_figure(figure, folder, "patterns")
