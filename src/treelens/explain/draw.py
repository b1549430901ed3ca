"""Drawings: graphs and molecules coloured by contribution, patterns as trees.

Molecules are drawn as chemists do, other graphs as circles, lines and letters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from treelens.errors import GraphDataError, check_choice
from treelens.explain.fragment_search import Occurrence
from treelens.explain.scene import (
    HIGHLIGHT,
    INK,
    PNG_SCALE,
    Color,
    Disc,
    Lines,
    Mark,
    Scene,
    Words,
    diverging_rgb,
    ink_on,
    shortened,
    to_hex,
)
from treelens.graphs.collection import Graph
from treelens.graphs.kinds import Painted, kind_of_facts
from treelens.graphs.plain import POSITIONS
from treelens.parallel import one_blas_thread
from treelens.patterns.vocabulary import PatternTree, PatternVocabulary

Format = Literal["svg", "png"]

LEGEND_HEIGHT, _LEGEND_STEPS = 34, 11
_NOTE_HEIGHT, _NOTE_SIZE, _LONGEST_NOTE = 16, 10, 60
_PLAIN_FILL = (0.91, 0.93, 0.95)
_LARGEST_RADIUS, _READABLE_RADIUS = 12.0, 7.0
_CROWDED = 0.1  # of the nodes may cover another
_LARGEST_SCALE = 46.0  # pixels per edge
_MARGIN = 21.0  # room for the rim of a root
_LONGEST_LABEL, _SHORTEST_LABEL = 6, 3  # characters on a node
_PATTERN_COLOR = (0.55, 0.85, 0.72)
_ROOT_COLOR = (0.0, 0.62, 0.45)
# Lines beside the middle one, in units of their distance, and whether they are dashed.
_BONDS = {
    "-": ((0.0, False),),
    "=": ((-0.5, False), (0.5, False)),
    "#": ((-1.0, False), (0.0, False), (1.0, False)),
    ":": ((-0.5, False), (0.5, True)),
}
_LARGEST_REFINED = 300  # nodes; larger components keep the positions of classical scaling
_REFINING_STEPS = 60
_MOST_PIVOTS = 60
_COORDINATES = ("x", "y"), ("pos 1", "pos 2")  # names of attributes
_GAP = 1.0  # between components, in units of an edge
_TREE_STEP, _TREE_LAYER, _TREE_RADIUS = 26.0, 44.0, 10.0


@dataclass(frozen=True)
class Style:
    """Size, legend and colour scale of a drawing."""

    width: int = 320  # in pixels
    height: int = 240  # without the legend
    legend: bool = True  # whether to explain the colours, where there are any
    toward: str | None = None  # the class that positive numbers favour; None: numbers are predicted
    title: str = "graph"  # for screen readers
    # The contribution that gets the full colour; None: the largest of the graph. Set it to make
    # several drawings comparable.
    limit: float | None = None
    note: str | None = None  # a sentence below the drawing

    def legend_at(self, top: float, limit: float) -> list[Mark]:
        """A bar of colours from against to for, with numbers below and words at its two ends."""
        left, step, middle = 0.28 * self.width, 0.44 * self.width / _LEGEND_STEPS, top + 10.0
        marks: list[Mark] = []
        for k in range(_LEGEND_STEPS):
            color = to_hex(diverging_rgb(2 * k / (_LEGEND_STEPS - 1) - 1, 1.0))
            bar = [(left + k * step, middle), (left + (k + 1) * step + 0.3, middle)]
            marks.append(Lines(np.array([bar]), 9, color))
        for share, value in ((0.28, -limit), (0.5, 0.0), (0.72, limit)):
            text = f"{value:+.2g}" if value else "0"
            marks.append(Words((share * self.width, top + 24), 9, text))
        toward = self.toward
        ends = ("lowers", "raises") if toward is None else (f"against {toward}", f"for {toward}")
        for share, text in zip((0.14, 0.86), ends, strict=True):
            marks.append(Words((share * self.width, middle), 10, text))
        return marks


def draw_graph(
    graph: Graph,
    node_contributions: np.ndarray | None = None,
    edge_contributions: np.ndarray | None = None,
    highlight: Occurrence | None = None,
    *,
    format: Format = "svg",
    style: Style | None = None,
) -> Any:
    """Draw a graph, its nodes and edges coloured by their contributions.

    Parameters
    ----------
    graph : Graph
    node_contributions : ndarray, shape (n_nodes,), optional
    edge_contributions : ndarray, shape (n_edges,), optional
        In the order of ``graph.edges``.
    highlight : Occurrence, optional
        A pattern to mark; its root is marked more strongly (-1: there is none).
    format : {"svg", "png"}
    style : Style, optional

    Returns
    -------
    str or bytes
        The text of an ``<svg>`` element, or the bytes of a PNG file.

    Examples
    --------
    >>> picture = draw_graph(Graph(("a", "<b>"), ((0, 1),)), np.array([0.5, -0.2]))
    >>> picture[:4], "<b>" in picture
    ('<svg', False)
    """
    check_choice("format", format, ("svg", "png"))
    for name, values, expected in (
        ("node_contributions", node_contributions, graph.n_nodes),
        ("edge_contributions", edge_contributions, len(graph.edges)),
    ):
        if values is not None and len(values) != expected:
            raise ValueError(f"{name} has {len(values)} entries; expected {expected}, one each.")
    style = style or Style()
    given = [x for x in (node_contributions, edge_contributions) if x is not None]
    limit = style.limit
    if limit is None:
        limit = max((float(np.abs(x).max(initial=0.0)) for x in given), default=0.0)
    parts = graph, node_contributions, edge_contributions, highlight, limit
    has_legend, marks = style.legend and bool(given), list[Mark]()
    scale = PNG_SCALE if format == "png" else 1
    size = scale * style.width, scale * style.height
    drawing = kind_of_facts(graph.data).draw(graph, _painted(*parts), size, format)
    if drawing is None:
        marks = _graph_marks(*parts, style)
    elif format == "png" and not (has_legend or style.note):  # matplotlib need not be there
        return drawing
    if has_legend:
        marks += style.legend_at(style.height, limit)
    height = style.height + (LEGEND_HEIGHT if has_legend else 0)
    if style.note:
        middle = (style.width / 2, height + _NOTE_HEIGHT / 2)
        marks.append(Words(middle, _NOTE_SIZE, style.note, longest=_LONGEST_NOTE))
        height += _NOTE_HEIGHT
    scene = Scene(style.width, height, style.title, marks, drawing)
    return scene.to_svg() if format == "svg" else scene.to_png()


def draw_pattern(
    vocabulary: PatternVocabulary,
    pattern: int,
    *,
    format: Format = "svg",
    max_nodes: int = 60,
    title: str | None = None,
) -> Any:
    """Draw the tree of a pattern, its root on top.

    Layers that would make more than ``max_nodes`` nodes are replaced by dots.

    Examples
    --------
    >>> from treelens import as_graph_collection
    >>> graphs = as_graph_collection([([(0, 1), (1, 2)], {0: "C", 1: "C", 2: "O"})])
    >>> vocabulary, _ = PatternVocabulary.fit(graphs, depth=1)
    >>> draw_pattern(vocabulary, 3).count("<text")
    3
    """
    words = vocabulary.texts(np.array([pattern]))[0] if title is None else title
    scene = tree_scene(unfold_within(vocabulary, pattern, max_nodes), f"pattern {words}")
    return scene.to_svg() if format == "svg" else scene.to_png()


# --- graphs -----------------------------------------------------------------------------------


def _graph_marks(
    graph: Graph,
    node_contributions: np.ndarray | None,
    edge_contributions: np.ndarray | None,
    highlight: Occurrence | None,
    limit: float,
    style: Style,
) -> list[Mark]:
    """A graph drawn as circles, lines and letters, centred on the sheet."""
    positions = node_positions(graph)
    low, high = positions.min(axis=0), positions.max(axis=0)
    sheet = np.array([style.width, style.height])
    scale = float(min(_LARGEST_SCALE, *((sheet - 2 * _MARGIN) / np.maximum(high - low, 1e-9))))
    points = (positions - (low + high) / 2) * scale + sheet / 2
    radius = min(_LARGEST_RADIUS, 0.3 * scale, _radius_without_overlap(points))
    marks = _edge_marks(graph, points, edge_contributions, limit, radius)
    if highlight is not None:
        marks = _highlight_marks(points, highlight, radius) + marks
    fills: list[Color] = [_PLAIN_FILL] * graph.n_nodes
    if node_contributions is not None:
        fills = [diverging_rgb(value, limit) for value in node_contributions.tolist()]
    return marks + _node_marks(points, radius, graph.node_labels, fills)


def _radius_without_overlap(points: np.ndarray) -> float:
    """Return a radius at which few nodes cover others, where labels can still be read."""
    from scipy.spatial import cKDTree

    if len(points) < 2:
        return _LARGEST_RADIUS
    nearest = cKDTree(points).query(points, k=2)[0][:, 1]
    return max(_READABLE_RADIUS, 0.5 * float(np.quantile(nearest, _CROWDED)))


def _node_marks(
    points: np.ndarray, radius: float, labels: Sequence[Any], fills: Sequence[Color]
) -> list[Mark]:
    """Discs, then the labels on them, those in one ink together."""
    centers = [(x, y) for x, y in points.tolist()]
    short = _abbreviations(labels)
    marks: list[Mark] = [
        Disc(center, radius, to_hex(fill), True, None if short[label] == label else label)
        for center, fill, label in zip(centers, fills, map(str, labels), strict=True)
    ]
    if radius < 3.5:  # too small to write in
        return marks
    words = []
    for center, label, fill in zip(centers, labels, fills, strict=True):
        text = short[str(label)]
        size = min(1.15, 2.6 / max(len(text), 1)) * radius
        words.append(Words(center, size, text, ink_on(fill)))
    return marks + sorted(words, key=lambda word: (str(word.color), word.size))


def _abbreviations(labels: Sequence[Any]) -> dict[str, str]:
    """Return what is written for labels: of longer words a beginning that tells them apart.

    A whole label of a node is shown under the pointer.
    """
    texts = sorted({str(label) for label in labels})
    short = {}
    for text in texts:
        short[text] = shortened(text, _LONGEST_LABEL)
        for n in range(_LONGEST_LABEL, _SHORTEST_LABEL - 1, -1):
            begun = [other for other in texts if other[:n].casefold() == text[:n].casefold()]
            if text[0:1].isalpha() and len(text) > n and len(begun) == 1:
                short[text] = text[:n]
    return short


def _edge_marks(
    graph: Graph,
    points: np.ndarray,
    contributions: np.ndarray | None,
    limit: float,
    radius: float,
) -> list[Mark]:
    """Bonds as chemists draw them, directed edges with arrows; other edge labels as text."""
    labels: Sequence[Any] = graph.edge_labels or [None] * len(graph.edges)
    ends = points[np.array(graph.edges, dtype=int).reshape(-1, 2)]  # (n_edges, 2, 2)
    strokes: dict[bool, list[np.ndarray]] = {False: [], True: []}
    marks: list[Mark] = []
    for edge, (segment, label) in enumerate(zip(ends, labels, strict=True)):
        if contributions is not None:
            band = to_hex(diverging_rgb(float(contributions[edge]), limit))
            marks.append(Lines(segment[None], 0.8 * radius, band))
        for shift, dashed in _BONDS.get(label, _BONDS["-"]):
            strokes[dashed].append(segment + _sideways(segment, 0.4 * radius * shift))
        if graph.directed:  # an arrow beyond the middle, where no node covers it
            along = segment[1] - segment[0]
            tip = segment[0] + 0.6 * along
            back = tip - along * (0.8 * radius / max(float(np.hypot(*along)), 1e-9))
            for side in (-0.4, 0.4):
                strokes[False].append(np.array([tip, back + _sideways(segment, side * radius)]))
    width = max(0.6, 0.12 * radius)
    color = None if contributions is None else INK  # on a light band, on any page
    marks += [
        Lines(np.array(segments), width, color, dashed)
        for dashed, segments in strokes.items()
        if segments
    ]
    short = _abbreviations(labels)
    for segment, label in zip(ends, labels, strict=True):
        if label is not None and label not in _BONDS:
            center = segment.mean(axis=0) + _sideways(segment, 0.6 * radius)
            marks.append(Words(tuple(center.tolist()), 0.8 * radius, short[str(label)]))
    return marks


def _sideways(segment: np.ndarray, distance: float) -> np.ndarray:
    """A shift at right angles to a line, shape (2,)."""
    along = segment[1] - segment[0]
    return np.array([-along[1], along[0]]) * (distance / max(float(np.hypot(*along)), 1e-9))


def _highlight_marks(points: np.ndarray, highlight: Occurrence, radius: float) -> list[Mark]:
    """A broad green line under the pattern's edges and a rim around its nodes."""
    ends = points[np.array(highlight.edges, dtype=int).reshape(-1, 2)]
    marks: list[Mark] = [Lines(ends, 0.9 * radius, HIGHLIGHT)] if len(ends) else []
    for node in highlight.nodes:
        rim = 1.6 if node == highlight.root else 1.3
        marks.append(Disc(tuple(points[node].tolist()), rim * radius, HIGHLIGHT))
    if highlight.root >= 0:
        marks.append(Disc(tuple(points[highlight.root].tolist()), 1.3 * radius, "#fff"))
    return marks


def _painted(
    graph: Graph,
    node_contributions: np.ndarray | None,
    edge_contributions: np.ndarray | None,
    highlight: Occurrence | None,
    limit: float,
) -> Painted:
    """The colours of nodes and edges, for kinds of graphs that are drawn in a way of their own."""
    nodes: dict[int, Color] = {}
    edges: dict[tuple[int, int], Color] = {}
    if highlight is not None:
        edges = dict.fromkeys(highlight.edges, _PATTERN_COLOR)
    if node_contributions is not None:
        nodes = {k: diverging_rgb(x, limit) for k, x in enumerate(node_contributions.tolist())}
    elif highlight is not None:
        nodes = dict.fromkeys(highlight.nodes, _PATTERN_COLOR)
        if highlight.root >= 0:
            nodes[highlight.root] = _ROOT_COLOR
    if edge_contributions is not None:
        by_edge = zip(graph.edges, edge_contributions.tolist(), strict=True)
        edges = {edge: diverging_rgb(x, limit) for edge, x in by_edge} | edges
    return Painted(nodes, edges)


# --- trees of patterns ------------------------------------------------------------------------


class TreeNode(NamedTuple):
    """One node of an unfolded pattern, in a list where parents come before their children."""

    parent: int  # position in the list, -1 for the root
    layer: int
    label: Any
    edge_label: Any
    cut: bool  # whether its children are left out


def unfold_within(
    vocabulary: PatternVocabulary, pattern: int, max_nodes: int = 60
) -> list[TreeNode]:
    """The tree of a pattern down to the last layer that fits into ``max_nodes``.

    Deep patterns of dense graphs would unfold into millions of nodes.
    """
    depth = vocabulary.depth_of(pattern)
    color = pattern - int(vocabulary.level_offsets[depth])
    for shown in range(depth, -1, -1):  # the upper layers are the pattern that this one refines
        try:
            tree = vocabulary.tree(int(vocabulary.level_offsets[shown]) + color, max_nodes)
            break
        except GraphDataError:
            color = vocabulary.children(shown, color)[0]
    nodes: list[TreeNode] = []
    layer: list[tuple[int, Any, PatternTree]] = [(-1, None, tree)]
    for k in range(shown + 1):
        below = []
        for parent, edge, node in layer:
            below += [(len(nodes), label, child) for label, child in node.children]
            nodes.append(TreeNode(parent, k, node.label, edge, k == shown < depth))
        layer = below
    return nodes


def tree_scene(tree: Sequence[TreeNode], title: str) -> Scene:
    """An unfolded pattern as a tree: leaves side by side, parents over their children."""
    children: list[list[int]] = [[] for _ in tree]
    for position, node in enumerate(tree):
        if node.parent >= 0:
            children[node.parent].append(position)
    columns, leaves = np.zeros(len(tree)), count()

    def place(position: int) -> float:
        below = [place(child) for child in children[position]]
        columns[position] = (below[0] + below[-1]) / 2 if below else next(leaves)
        return float(columns[position])

    place(0)
    layers = np.array([node.layer for node in tree])
    points = np.column_stack([_TREE_STEP * columns, _TREE_LAYER * layers]) + _MARGIN
    graph = Graph(
        tuple(node.label for node in tree),
        tuple((node.parent, child) for child, node in enumerate(tree) if node.parent >= 0),
        tuple(node.edge_label for node in tree if node.parent >= 0),
    )
    marks: list[Mark] = [Disc(tuple(points[0].tolist()), 1.3 * _TREE_RADIUS, HIGHLIGHT)]
    marks += _edge_marks(graph, points, None, 0.0, _TREE_RADIUS)
    marks += _node_marks(points, _TREE_RADIUS, graph.node_labels, [_PLAIN_FILL] * len(tree))
    cut = points[[node.cut for node in tree]].tolist()
    marks += [Words((x, y + 16.0), 10, "…") for x, y in cut]
    width, height = (points.max(axis=0) + _MARGIN).tolist()
    return Scene(width, height + (8.0 if cut else 0.0), title, marks)


# --- positions of nodes -----------------------------------------------------------------------


def node_positions(graph: Graph) -> np.ndarray:
    """Coordinates of the nodes, about one unit per edge, shape (n_nodes, 2).

    Nodes with coordinates stay where these put them. Others are laid out so that distances follow
    the number of steps between nodes (stress majorisation), each component by itself, side by side,
    the largest first. The same graph always gets the same positions.
    """
    u, v = np.array(graph.edges, dtype=np.int32).reshape(-1, 2).T  # csgraph takes no other
    placed = coordinates(graph)
    if placed is not None:
        given = np.array(list(placed.values())).T * [1.0, -1.0]  # y upwards
        lengths = np.hypot(*(given[u] - given[v]).T)
        lengths = lengths[lengths > 0.0]
        return given / (np.median(lengths) if len(lengths) else 1.0)
    shape = (graph.n_nodes, graph.n_nodes)
    arcs = sparse.csr_array((np.ones(len(u)), (u, v)), shape=shape)
    component = csgraph.connected_components(arcs, directed=False)[1]
    positions, left = np.zeros((graph.n_nodes, 2)), 0.0
    for k in np.argsort(-np.bincount(component), kind="stable"):
        members = np.flatnonzero(component == k)
        with one_blas_thread():
            part = _component_positions(arcs, members)
        part -= [part[:, 0].min(), (part[:, 1].min() + part[:, 1].max()) / 2]
        positions[members] = part + np.array([left, 0.0])
        left += part[:, 0].max() + _GAP
    return positions


def coordinates(graph: Graph) -> dict[str, tuple[float, ...]] | None:
    """Where nodes are, by attributes or by positions that came with the graph.

    None where there are none, or one is missing.
    """
    known = [(names, [graph.node_attributes.get(name) for name in names]) for names in _COORDINATES]
    known.append((_COORDINATES[0], [*zip(*graph.data.get(POSITIONS, ()), strict=True)]))
    for names, columns in known:
        values = np.array([column for column in columns if column is not None])  # (2, n_nodes)
        placed = graph.n_nodes > 0 and values.shape == (2, graph.n_nodes)
        if placed and np.isfinite(values).all() and np.ptp(values, axis=1).any():
            return dict(zip(names, map(tuple, values.tolist()), strict=True))
    return None


def _component_positions(arcs: sparse.csr_array, members: np.ndarray) -> np.ndarray:
    """Positions of the nodes of one component, the long side horizontal."""
    n = len(members)
    if n == 1:
        return np.zeros((1, 2))
    pivots = np.unique(np.linspace(0, n - 1, min(n, _MOST_PIVOTS)).astype(int))
    sources = members if n <= _LARGEST_REFINED else members[pivots]
    steps = csgraph.dijkstra(arcs, directed=False, indices=sources, unweighted=True)[:, members].T
    # Classical scaling against a few pivots.
    squares = (steps[:, pivots] if n <= _LARGEST_REFINED else steps) ** 2
    centred = squares - squares.mean(axis=0) - squares.mean(axis=1)[:, None] + squares.mean()
    left = np.linalg.svd(-0.5 * centred, full_matrices=False)[0]
    positions = np.zeros((n, 2))
    positions[:, : min(2, left.shape[1])] = left[:, :2]
    # The leaves of a star would fall on one point and never part again.
    positions += 1e-2 * np.random.default_rng(0).standard_normal(positions.shape)
    positions *= np.sqrt(squares.max()) / (2 * np.linalg.norm(positions, axis=1).max())
    if n <= _LARGEST_REFINED:
        positions = _refined(positions, steps)
    centred = positions - positions.mean(axis=0)
    turned = centred @ np.linalg.svd(centred, full_matrices=False)[2].T
    farthest = np.abs(turned).argmax(axis=0)
    return turned * np.where(turned[farthest, [0, 1]] > 0, -1.0, 1.0)


def _refined(positions: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Minimise the stress ``sum (|x_i - x_j| - steps_ij)^2 / steps_ij^2`` by majorisation."""
    n = len(steps)
    weights = (steps + np.eye(n)) ** -2.0 - np.eye(n)
    inverse = np.linalg.inv(np.diag(weights.sum(axis=1)) - weights + 1.0 / n)
    springs, z = weights * steps, positions @ [1.0, 1.0j]
    for _ in range(_REFINING_STEPS):
        pulls = springs / np.maximum(np.abs(z[:, None] - z), 1e-9)
        z = inverse @ (pulls.sum(axis=1) * z - pulls @ z)
    return np.column_stack([z.real, z.imag])
