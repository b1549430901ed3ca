"""The paper's explaining pictures: the Weisfeiler-Lehman scheme, the three kernels, the hinges.

The two small graphs are compared by the numbers that the pictures show: the value under each panel
is the sum over its lines, and the tests hold it against the library's closed forms.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
from scipy.optimize import linear_sum_assignment, linprog

from reproduction.pages import command_line, write_page
from reproduction.sheets import Sheet, save_figure
from treelens.explain.draw import Style, graph_scene
from treelens.explain.scene import INK, Disc, Lines, Mark, Scene, Words, to_hex
from treelens.graphs.collection import Graph
from treelens.graphs.convert import as_graph_collection
from treelens.pairwise.losses import (
    smooth_hinge_different,
    smooth_hinge_same,
)
from treelens.patterns.vocabulary import PatternVocabulary

ALPHA1, ALPHA2, SIGMA = 3.0, 4.0, 1.5
DEPTH = 2
LEFT = Graph(("C", "C", "O", "C"), ((0, 1), (1, 2), (1, 3)), name="G")
RIGHT = Graph(("C", "C", "O", "C", "C"), ((0, 1), (1, 2), (1, 3), (3, 4)), name="G'")
# Light fills, told apart by number as well as by colour.
_FILLS = ("#d8e6f2", "#fbdcc4", "#cdeadf", "#f7f0c0", "#ead6e6", "#dddddd", "#c4e3f7", "#f4c9c9")
_CELL_WIDTH, _CELL_HEIGHT = 210, 150


def run_figures(out: str | Path, quick: bool = False) -> list[Path]:
    """Draw all three, quick or not, and write the page that shows them."""
    folder = Path(out)
    figures = folder / "figures"
    comparison = compare_nodes()
    written = [
        *draw_refinement().save(figures, "wl_scheme"),
        *draw_kernels(comparison).save(figures, "three_kernels"),
        *draw_hinges(figures, "hinges"),
    ]
    parts = [
        "## Weisfeiler-Lehman refinement",
        "A node's new colour stands for its old colour together with the multiset of its "
        "neighbours' old colours. Equal colours mean equal trees. Colours are numbered per depth.",
        "![Colours of two graphs at depths 0 to 2](figures/wl_scheme.png)",
        "## Three ways to compare sets of nodes",
        f"Two nodes are similar by the share of depths 1 to {DEPTH} at which their colours agree. "
        "The subtree kernel adds up the similarities of all pairs; the optimal assignment matches "
        "nodes one to one, and the larger graph keeps a node that matches nothing; the "
        "Wasserstein distance moves mass, and a node's mass may be split.",
        "![Lines between the nodes of two graphs](figures/three_kernels.png)",
        "## Hinges",
        f"Hinge and smoothed hinge for alpha1 = {ALPHA1:g}, alpha2 = {ALPHA2:g}, sigma = "
        f"{SIGMA:g}, the paper's values for this picture. (The method itself asks for "
        "alpha1 >= alpha2.)",
        "![Hinge and smoothed hinge](figures/hinges.png)",
    ]
    page = write_page(folder / "figures.md", "Figures", command_line("figures"), parts)
    return [page, *written]


# --- the scheme -------------------------------------------------------------------------------


def _both() -> tuple[PatternVocabulary, np.ndarray]:
    """The patterns of both graphs, and the colours of all nodes, (depth + 1, n_nodes)."""
    graphs = as_graph_collection(
        [(list(g.edges), dict(enumerate(g.node_labels))) for g in (LEFT, RIGHT)]
    )
    vocabulary, colors = PatternVocabulary.fit(graphs, DEPTH)
    return vocabulary, colors.colors


def draw_refinement() -> Sheet:
    """Two graphs at depths 0, 1, 2, with the meaning of every colour beside them."""
    vocabulary, colors = _both()
    sheet = Sheet(80 + 2 * _CELL_WIDTH + 260, 40 + (DEPTH + 1) * _CELL_HEIGHT)
    for column, graph in enumerate((LEFT, RIGHT)):
        sheet.write(str(graph.name), 80 + (column + 0.5) * _CELL_WIDTH, 22, 16, ha="center",
                    weight="bold")  # fmt: skip
    for depth in range(DEPTH + 1):
        top = 40 + depth * _CELL_HEIGHT
        sheet.write(f"h = {depth}", 14, top + _CELL_HEIGHT / 2, 14, weight="bold")
        parts = colors[depth, : LEFT.n_nodes], colors[depth, LEFT.n_nodes :]
        for column, (graph, part) in enumerate(zip((LEFT, RIGHT), parts, strict=True)):
            sheet.draw(_colored(graph, part, depth), 80 + column * _CELL_WIDTH, top)
        _write_meanings(sheet, vocabulary, depth, 100 + 2 * _CELL_WIDTH, top)
    return sheet


def _colored(graph: Graph, colors: np.ndarray, depth: int) -> Scene:
    """A graph with its colours as fills and, from depth 1 on, as numbers."""
    labels = graph.node_labels if depth == 0 else tuple((colors + 1).tolist())
    scene = graph_scene(
        replace(graph, node_labels=labels), None, None, None, Style(_CELL_WIDTH, _CELL_HEIGHT)
    )
    fills = iter(colors.tolist())
    marks = tuple(
        replace(mark, fill=_FILLS[next(fills)]) if isinstance(mark, Disc) else mark
        for mark in scene.marks
    )
    return replace(scene, marks=marks)


def _write_meanings(
    sheet: Sheet, vocabulary: PatternVocabulary, depth: int, left: float, top: float
) -> None:
    start, stop = vocabulary.level_offsets[depth : depth + 2]
    texts = vocabulary.texts(np.arange(start, stop))
    first = top + _CELL_HEIGHT / 2 - 10.5 * (len(texts) - 1)
    for number, text in enumerate(texts):
        y = first + 21 * number
        name = text if depth == 0 else f"{number + 1}"
        disc = Disc((11, 11), 9, _FILLS[number], rim="#777", rim_width=0.8)
        sheet.draw(Scene(22, 22, "", (disc, Words((11, 11), 10, name))), left, y - 11)
        sheet.write(f"label {text}" if depth == 0 else text, left + 32, y, 12)


# --- the three kernels ------------------------------------------------------------------------


@dataclass(frozen=True)
class NodeComparison:
    """How three kernels compare the nodes of two graphs; all matrices (n_left, n_right).

    Attributes
    ----------
    similarity : ndarray
        Share of the depths at which two nodes have the same colour.
    assignment : ndarray of 0 and 1
        The best one-to-one matching.
    plan : ndarray
        The best transport of mass; rows sum to 1 / n_left, columns to 1 / n_right.
    """

    similarity: np.ndarray
    assignment: np.ndarray
    plan: np.ndarray

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
    similarity = (ours[:, :, None] == theirs[:, None, :]).mean(axis=0)  # (n_left, n_right)
    assignment = np.zeros_like(similarity)
    assignment[linear_sum_assignment(similarity, maximize=True)] = 1.0
    return NodeComparison(similarity, assignment, transport_plan(1 - similarity))


def transport_plan(cost: np.ndarray) -> np.ndarray:
    """The cheapest way to move uniform mass from rows to columns, same shape as ``cost``."""
    n_left, n_right = cost.shape
    cell = np.arange(cost.size).reshape(cost.shape)
    leaves = np.zeros((n_left, cost.size))
    arrives = np.zeros((n_right, cost.size))
    for i in range(n_left):
        leaves[i, cell[i]] = 1.0
    for j in range(n_right):
        arrives[j, cell[:, j]] = 1.0
    masses = np.r_[np.full(n_left, 1 / n_left), np.full(n_right, 1 / n_right)]
    found = linprog(cost.ravel(), A_eq=np.vstack([leaves, arrives]), b_eq=masses)
    return found.x.reshape(cost.shape)


def draw_kernels(comparison: NodeComparison) -> Sheet:
    """Three panels: nodes of both graphs, joined as each kernel joins them."""
    k, width, height = comparison.similarity, 300, 330
    panels = [
        ("WL subtree: all pairs", k, k, f"sum of similarities = {comparison.subtree:g}"),
        ("WL-OA: best matching", comparison.assignment, k,
         f"sum of similarities = {comparison.optimal_assignment:g}"),
        ("WWL: cheapest transport", comparison.plan * 4, k,
         f"mass times distance = {comparison.wasserstein:g}"),
    ]  # fmt: skip
    sheet = Sheet(3 * width, height + 100)
    for number, (title, joined, similarity, value) in enumerate(panels):
        middle = (number + 0.5) * width
        sheet.write(title, middle, 22, 15, ha="center", weight="bold")
        sheet.draw(_bipartite(joined, similarity, width, height), number * width, 40)
        sheet.write(value, middle, height + 52, 13, ha="center")
    legend = (
        "Lines: broad = much, blue = equal colours at both depths, orange = at one, dashed = none."
    )
    sheet.write(legend, 1.5 * width, height + 82, 12, ha="center")
    return sheet


def _bipartite(joined: np.ndarray, similarity: np.ndarray, width: float, height: float) -> Scene:
    """Nodes of G on the left, those of G' on the right; line width by ``joined``."""
    vocabulary, colors = _both()
    heights = [np.linspace(34, height - 24, n) for n in joined.shape]
    xs = (0.30 * width, 0.70 * width)
    marks: list[Mark] = []
    for i, j in zip(*np.nonzero(joined > 1e-9), strict=True):
        ends = np.array([[(xs[0], heights[0][i]), (xs[1], heights[1][j])]])
        color = {0.0: "#999999", 0.5: "#d55e00"}.get(float(similarity[i, j]), "#0072b2")
        marks.append(Lines(ends, 4.5 * joined[i, j], color, dashed=similarity[i, j] == 0))
    texts = vocabulary.texts(vocabulary.level_offsets[1] + colors[1])
    offsets = np.cumsum([0, LEFT.n_nodes, RIGHT.n_nodes])
    for side, (start, stop) in enumerate(pairwise(offsets)):
        shift = -0.16 * width if side == 0 else 0.16 * width
        marks.append(Words((xs[side], 12), 13, str((LEFT, RIGHT)[side].name)))
        for row, y in zip(range(start, stop), heights[side], strict=True):
            marks.append(Disc((xs[side], float(y)), 11, _FILLS[colors[1, row]], rim="#777"))
            marks.append(Words((xs[side], float(y)), 11, str(colors[1, row] + 1)))
            marks.append(Words((xs[side] + shift, float(y)), 11, texts[row]))
    return Scene(width, height, "node comparison", tuple(marks))


# --- the hinges -------------------------------------------------------------------------------


def draw_hinges(folder: Path, name: str) -> list[Path]:
    """Both hinges and their smoothed versions over the distance."""
    from matplotlib.figure import Figure

    distance = np.linspace(0.0, 7.0, 701)
    panels = [
        ("different labels (V1)", "alpha1", ALPHA1, np.maximum(ALPHA1 - distance, 0.0),
         smooth_hinge_different(distance, ALPHA1, SIGMA)),
        ("same label (V2)", "alpha2", ALPHA2, np.maximum(distance - ALPHA2, 0.0),
         smooth_hinge_same(distance, ALPHA2, SIGMA)),
    ]  # fmt: skip
    figure = Figure(figsize=(9.0, 3.4), layout="constrained")
    for axes, (title, word, margin, plain, smooth) in zip(
        figure.subplots(1, 2, sharey=True), panels, strict=True
    ):
        axes.plot(distance, plain, color=INK, linestyle="--", linewidth=1.2, label="hinge")
        axes.plot(distance, smooth, color=to_hex((0.0, 0.447, 0.698)), linewidth=2.2,
                  label=f"smoothed, sigma = {SIGMA:g}")  # fmt: skip
        bend = (margin - SIGMA, margin) if word == "alpha1" else (margin, margin + SIGMA)
        axes.axvspan(*bend, color="#eeeeee", zorder=0)
        axes.set(title=title, xlabel=f"distance ({word} = {margin:g}; the hinge bends in grey)")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False)
    figure.axes[0].set_ylabel("loss")
    return save_figure(figure, folder, name)
