"""What every pattern, node and training graph contributes to the prediction of a graph.

The prediction is ``f(G) = c + sum over i of a_i k(G, G_i)`` with one coefficient ``a_i`` per basis
graph: a predicted number, or with two classes the decision value; with several classes that are
predicted by votes, the mean for a class of its decisions against each other class.
:mod:`treelens.explain.expansion` divides each kernel value among the patterns of the graph; the
contribution of a pattern is the sum of its shares, times ``a_i``, over all basis graphs. The
contributions of all patterns add up to ``decision - base``:

========================================  ====================================================
kernel                                    base
========================================  ====================================================
wwl-linear, wl-oa, wl-subtree             the intercept ``c``; every contribution is exact, for
                                          these kernels are sums over patterns
tanimoto, wl-subtree-cosine               the intercept ``c``
wwl                                       the decision for a graph without any known pattern:
                                          ``c + sum of a_i exp(-gamma b)``
tanimoto-rbf                              the same: ``c + sum of a_i exp(-gamma)``
laplacian                                 the same: ``c + sum of a_i exp(-gamma (U + B_i) / 2)``,
                                          ``B_i`` the training graph's sum with itself, ``U`` that
                                          of the graph over patterns outside the vocabulary
========================================  ====================================================

Each pattern's contribution is divided equally among its occurrences in the graph. A pattern of
depth ``h`` at a node is a rooted tree of ``h + 1`` layers: the node, its neighbours, their
neighbours (the node itself among them), and so on. Its contribution is spread over that tree:

- *nodes*: every layer gets the same share, and within a layer each child gets the same part of
  its parent's. The share of a node is the mean, over 0 to ``h`` steps, of the probability that a
  random walk from the root is there;
- *edges*: likewise, every layer of the tree's edges gets the same share, divided as the walk
  crosses them.

An isolated node has no layers below it and keeps everything. The numbers of the nodes add up to the
contributions of all patterns, those of the edges to those of all patterns that have an edge.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from treelens.explain.attributes import attribute_table
from treelens.explain.decode import pattern_texts
from treelens.explain.effects import divide_slopes, entries_at
from treelens.explain.expansion import KernelExpansion
from treelens.graphs.collection import Graph, GraphCollection
from treelens.graphs.errors import GraphDataError
from treelens.kernels.nearest import nearest_graphs
from treelens.patterns.features import Features, RefinedGraphs, select_features

if TYPE_CHECKING:
    import pandas as pd

_MOST_PATTERNS = 8  # rows in a notebook
_LARGEST_DRAWN = 400  # nodes


@dataclass(frozen=True, eq=False)
class Explanation:
    """What the patterns, nodes and edges of one graph contribute to its prediction.

    Attributes
    ----------
    decision : float
        The predicted number; of a classifier the decision value in favour of ``class_label``, with
        several classes that are predicted by votes the mean of the decisions for it against each
        of the others.
    base : float
        The decision value before any known pattern of the graph is counted.
    class_label : object
        The class that positive contributions favour; None for regression.
    predicted_class : object
        None for regression.
    pattern_contributions : DataFrame
        One row per known pattern of the graph, the largest contribution (in absolute value)
        first: ``pattern`` (text form), ``tree``, ``depth``, ``weight``, ``count`` (nodes that carry
        it) and ``contribution``. The index is the pattern's id.
    node_contributions : ndarray, shape (n_nodes,)
        They add up to ``decision - base - covariates``.
    edge_contributions : ndarray, shape (n_edges,)
        In the order of ``graph.edges``: another view of the same patterns, those of depth 1 and
        more, spread over their edges instead of their nodes.
    neighbors : DataFrame
        The most similar training graphs, the most similar first. The index is the position in the
        training set, the columns are ``class_label`` or ``value``, ``similarity`` (the learned
        Tanimoto similarity, from 0 to 1) and ``contribution`` to the decision (0 for graphs that
        are no support vectors or landmarks).
    out_of_vocabulary : float
        Share of the graph's patterns, each counted as often as it occurs, that no training graph
        has.
    node_out_of_vocabulary : ndarray, shape (n_nodes,)
        The same for the patterns at each node: 1 where no pattern of any depth is known.
    warning : str or None
        Set when ``out_of_vocabulary`` is large.
    graph : Graph
    pattern_rows, neighbor_rows
        What the two tables are made from.
    covariates : float
        What the covariates of the graph add to the decision; 0 where the model has none.
    """

    decision: float
    base: float
    class_label: Any
    predicted_class: Any
    node_contributions: np.ndarray
    edge_contributions: np.ndarray
    out_of_vocabulary: float
    node_out_of_vocabulary: np.ndarray
    warning: str | None
    graph: Graph
    pattern_rows: PatternRows
    neighbor_rows: NeighborRows
    covariates: float = 0.0

    @cached_property
    def pattern_contributions(self) -> pd.DataFrame:
        return self.pattern_rows.frame()

    @cached_property
    def neighbors(self) -> pd.DataFrame:
        return self.neighbor_rows.frame()

    @property
    def attribute_contributions(self) -> pd.DataFrame:
        """What each attribute adds, in ``attribute``, ``steps`` and ``contribution``.

        The contribution of a cell is divided equally among the attributes that it asks for;
        ``labels`` are all other patterns.
        """
        rows = self.pattern_rows
        return attribute_table(rows.expansion.forest, rows.ids, rows.contributions)

    @property
    def atom_contributions(self) -> np.ndarray:
        """``node_contributions`` of a molecule, whose nodes are atoms."""
        return self.node_contributions

    @property
    def sentence(self) -> str:
        """How base, covariates and nodes add up to the prediction."""
        predicted = (
            f"Predicted {self.decision:.3f}"
            if self.class_label is None
            else f"Predicted {self.predicted_class}; decision {self.decision:+.3f} for "
            f"{self.class_label}"
        )
        rest = self.decision - self.base - self.covariates
        covariates = f", covariates {self.covariates:+.3f}" if self.covariates else ""
        return f"{predicted}: base {self.base:+.3f}{covariates}, nodes together {rest:+.3f}."

    def __repr__(self) -> str:
        unseen = f"{self.out_of_vocabulary:.0%} of the patterns unseen"
        lines = [f"Explanation({self.sentence[:-1]}; {unseen})"]
        several = len(self.pattern_rows.expansion.forest.trees) > 1
        for row in self.pattern_contributions.head(5).to_dict("records"):
            tree = f"{row['tree']}, " if several and row["tree"] != "labels" else ""
            nodes = "1 node" if row["count"] == 1 else f"{row['count']} nodes"
            where = f"({tree}depth {row['depth']}, at {nodes})"
            lines.append(f"  {row['contribution']:+.3f}  {row['pattern']}  {where}")
        return "\n".join(lines if self.warning is None else [*lines, f"  {self.warning}"])

    def _repr_html_(self) -> str:
        """The graph coloured by contribution, and the strongest patterns; all text is escaped."""
        from treelens.explain.draw import Style, draw_graph

        drawing = ""
        if 0 < self.graph.n_nodes <= _LARGEST_DRAWN:
            toward = None if self.class_label is None else str(self.class_label)
            ends = ("lowers", "raises") if toward is None else None
            style = Style(title=self.sentence, toward=toward, ends=ends)
            drawing = draw_graph(self.graph, self.node_contributions, style=style)
        rows = "".join(
            f"<tr><td>{row['contribution']:+.3f}</td><td><code>{escape(str(row['pattern']))}"
            f"</code></td><td>{row['depth']}</td><td>{row['count']}</td></tr>"
            for row in self.pattern_contributions.head(_MOST_PATTERNS).to_dict("records")
        )
        columns = ("contribution", "pattern", "depth", "nodes")
        head = "".join(f'<th scope="col">{column}</th>' for column in columns)
        return (
            f"<div>{drawing}<p>{escape(self.sentence)}</p>"
            f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
        )


class PatternRows(NamedTuple):
    """Known patterns of a graph, the largest contribution (in absolute value) first."""

    expansion: KernelExpansion
    ids: np.ndarray  # (n_found,), in the forest
    depths: np.ndarray
    counts: np.ndarray  # nodes that carry each
    contributions: np.ndarray

    def frame(self) -> pd.DataFrame:
        import pandas as pd

        forest = self.expansion.forest
        return pd.DataFrame(
            {
                "pattern": pattern_texts(forest, self.ids),
                "tree": forest.tree_names(self.ids),
                "depth": self.depths,
                "weight": self.expansion.weights[self.ids - self.expansion.first_pattern],
                "count": self.counts,
                "contribution": self.contributions,
            },
            index=pd.Index(self.ids, name="pattern_id"),
        )


class NeighborRows(NamedTuple):
    """What the table of the most similar training graphs is made from."""

    expansion: KernelExpansion
    graph: Features
    contributions: np.ndarray  # (n_basis,) of all basis graphs
    n_neighbors: int

    def frame(self) -> pd.DataFrame:
        import pandas as pd

        expansion, n = self.expansion, self.expansion.training.histograms.n_graphs
        near = nearest_graphs(
            self.graph, expansion.training_features, expansion.weights, min(self.n_neighbors, n)
        )
        positions = near.positions[0]
        contributions = np.zeros(n)
        contributions[expansion.basis_indices] = self.contributions
        name, targets = expansion.training_targets(positions)
        return pd.DataFrame(
            {
                name: targets,
                "similarity": near.similarity[0],
                "contribution": contributions[positions],
            },
            index=pd.Index(positions, name="training_graph"),
        )


def explain(
    graph: GraphCollection,
    expansion: KernelExpansion,
    class_label: Any = None,
    n_neighbors: int = 5,
) -> Explanation:
    """Divide the decision value of one graph among its patterns, nodes and edges.

    Parameters
    ----------
    graph : GraphCollection
        Of length one.
    expansion : KernelExpansion
        See :func:`treelens.explain.expansion.expansion_of`.
    class_label : object, optional
        The class to explain. By default, with two classes the second, so that the numbers have
        the sign of ``decision_function``, and with more the one that was predicted.
    n_neighbors : int
        How many of the most similar training graphs to list.
    """
    if len(graph) != 1:
        raise GraphDataError(f"Expected one graph to explain; got {len(graph)} of them.")
    return explain_seen(graph, expansion.refine(graph), 0, expansion, class_label, n_neighbors)


def explain_seen(
    graphs: GraphCollection,
    seen: RefinedGraphs,
    index: int,
    expansion: KernelExpansion,
    class_label: Any = None,
    n_neighbors: int = 5,
) -> Explanation:
    """Explain one of several graphs that were refined before; see :func:`explain`."""
    if n_neighbors < 0:
        raise ValueError(f"n_neighbors must be 0 or more, got {n_neighbors}.")
    one = graphs[index : index + 1]
    features = seen.features
    if features.pairs.n_graphs > 1:
        features = select_features(features, np.array([index]))
    nodes = slice(*seen.colors.node_offsets[index : index + 2].tolist())
    colors = seen.colors.colors[expansion.first_level :, nodes]
    slopes = expansion.slope_rows(features)
    kernel = slopes.end[0]  # (n_basis,)
    by_covariates = expansion.covariate_effects(features.covariates)  # (n_outputs,)
    row, sign, label, predicted = _choose_output(kernel, by_covariates, expansion, class_label)
    coefficients = sign * expansion.coefficients[row]  # (n_basis,)
    covariates = sign * float(by_covariates[row])
    intercept = sign * float(expansion.intercepts[row])
    base = intercept + float(coefficients @ slopes.start[0])
    rows = features.pairs.rows
    contributions = divide_slopes(expansion, features, slopes, coefficients[None, :])  # (n_found,)
    entries = entries_at(expansion, colors, np.zeros(one.n_nodes, dtype=np.int64), rows)
    counts = np.bincount(entries[entries >= 0], minlength=len(rows.indices))
    shares = np.append(contributions / counts, 0.0)[entries]  # (n_levels, n_nodes)
    by_node, by_edge = spread_over_graph(
        shares, expansion.level_depths, one.neighbor_offsets, one.neighbors, one.directions
    )
    order = np.lexsort((rows.indices, -np.abs(contributions)))
    ids = rows.indices[order] + expansion.first_pattern
    level = expansion.forest.level_of(ids)
    unseen = colors < 0
    out_of_vocabulary = np.count_nonzero(unseen) / max(unseen.size, 1)
    return Explanation(
        decision=intercept + covariates + float(coefficients @ kernel),
        base=base,
        class_label=label,
        predicted_class=predicted,
        node_contributions=by_node,
        edge_contributions=by_edge,
        out_of_vocabulary=out_of_vocabulary,
        node_out_of_vocabulary=unseen.mean(axis=0),
        warning=_warning(out_of_vocabulary, expansion.usual_out_of_vocabulary),
        graph=one[0],
        pattern_rows=PatternRows(
            expansion, ids, expansion.forest.level_depths[level], counts[order],
            contributions[order],
        ),
        neighbor_rows=NeighborRows(expansion, features, coefficients * kernel, n_neighbors),
        covariates=covariates,
    )  # fmt: skip


def _choose_output(
    kernel: np.ndarray, covariates: np.ndarray, expansion: KernelExpansion, class_label: Any
) -> tuple[int, float, Any, Any]:
    """Row of the output to explain, the sign it counts with, its class, the predicted class."""
    (row, sign, _), *others = outputs_of(expansion, class_label)
    classes = expansion.classes
    if classes is None:
        return row, sign, None, None
    predicted = expansion.predicted_code(kernel, covariates)
    row = predicted if others else row
    code = row if len(classes) > 2 else int(sign > 0)
    return row, sign, classes[code], classes[predicted]


def outputs_of(expansion: KernelExpansion, class_label: Any) -> list[tuple[int, float, Any]]:
    """Outputs to explain: row, sign, and with more than two classes the class."""
    classes = expansion.classes
    if classes is None:
        if class_label is not None:
            raise ValueError(
                f"class_label={class_label!r}, but this model predicts numbers: leave it out."
            )
        return [(0, 1.0, None)]
    wanted = np.full(len(classes), True) if class_label is None else classes == class_label
    codes = np.flatnonzero(wanted)
    if class_label is not None and len(codes) != 1:
        raise ValueError(
            f"class_label must be one of the classes {classes.tolist()}, got {class_label!r}."
        )
    if len(classes) == 2:
        return [(0, 1.0 if codes[-1] == 1 else -1.0, None)]
    return [(code, 1.0, classes[code]) for code in codes.tolist()]


def _warning(out_of_vocabulary: float, limit: float) -> str | None:
    if out_of_vocabulary <= limit:
        return None
    return (
        f"Training never saw {out_of_vocabulary:.0%} of this graph's patterns (up to {limit:.0%} "
        "is usual): treat the prediction with care."
    )


def spread_over_graph(
    shares: np.ndarray, depths: np.ndarray, offsets: np.ndarray, neighbors: np.ndarray,
    directions: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """One number per node and per edge from the contribution of each node's patterns.

    Parameters
    ----------
    shares : ndarray, shape (n_depths, n_nodes)
        Row ``k``: contribution of the pattern of depth ``depths[k]`` rooted at each node.
    depths : ndarray of int, shape (n_depths,)
    offsets, neighbors : ndarray, shapes (n_nodes + 1,) and (n_arcs,)
        The neighbours of each node, ascending.
    directions : ndarray, shape (n_arcs,), optional
        Of directed graphs, as in :class:`GraphCollection`.

    Returns
    -------
    nodes : ndarray, shape (n_nodes,)
        With the same total as ``shares``.
    edges : ndarray, shape (n_edges,)
        In the order of ``Graph.edges``.

    Examples
    --------
    >>> path = np.array([0, 1, 3, 4]), np.array([1, 0, 2, 1])  # 0 - 1 - 2
    >>> spread_over_graph(np.array([[0.0, 1.0, 0.0]]), np.array([1]), *path)
    (array([0.25, 0.5 , 0.25]), array([0.5, 0.5]))
    """
    n, degrees = shares.shape[1], np.diff(offsets)
    owner, isolated = np.repeat(np.arange(n), degrees), degrees == 0

    def walk(starts: np.ndarray) -> np.ndarray:
        """The sum over ``l`` of row ``l`` of ``starts`` after ``l`` random steps."""
        place = np.zeros(n)
        for start in starts[::-1]:
            parts = (place / np.maximum(degrees, 1))[owner]
            moved = np.bincount(neighbors, weights=parts, minlength=n)
            place = start + moved + np.where(isolated, place, 0.0)
        return place

    column, layer = depths[:, None], np.arange(depths.max(initial=0) + 1)[:, None]
    nodes = walk((layer <= depths).astype(float) @ (shares / (column + 1)))
    # A pattern of depth h has h layers of edges; they start from the nodes of layers 0 to h - 1.
    starts = walk((layer[:-1] < depths).astype(float) @ (shares / np.maximum(column, 1)))
    crossing = (starts / np.maximum(degrees, 1))[owner]  # (n_arcs,)
    # The arc back from v to u stands where the pair (neighbour, owner) would stand.
    if directions is not None:
        back = crossing[np.lexsort((1 - directions, owner, neighbors))]
        return nodes, (crossing + back)[directions == 0]
    back = crossing[np.lexsort((owner, neighbors))]
    both = crossing + np.where(owner == neighbors, 0.0, back)
    return nodes, both[owner <= neighbors]
