"""Why a graph was decided the way it was: what every pattern, node and training graph added.

What is explained is ``f(G) = c + sum over i of a_i k(G, G_i)`` with one coefficient ``a_i`` per
basis graph: a predicted number, or with two classes the decision value; with several classes that
are predicted by votes, the mean for a class of its decisions against each other class.
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
                                          ``B_i`` the training graph's sum with itself, ``U`` the
                                          part of the graph's own that training never saw
========================================  ====================================================

Each pattern's contribution is divided equally among its occurrences in the graph. A pattern of
depth ``h`` at a node is a rooted tree of ``h + 1`` layers: the node, its neighbours, their
neighbours (the node itself among them), and so on. What it contributes is spread over that tree:

- *nodes*: every layer gets the same share, and within a layer each child gets the same part of
  what its parent had. The share of a node is the mean, over 0 to ``h`` steps, of the probability
  that a random walk from the root is there;
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

from treelens.explain import _compiled
from treelens.explain.decode import pattern_texts
from treelens.explain.expansion import FoundPatterns, KernelExpansion, KernelSums, PathSlopes
from treelens.graphs.collection import Graph, GraphCollection
from treelens.graphs.errors import GraphDataError
from treelens.patterns.features import SeenGraphs

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
        The class that positive contributions favour; None where numbers are predicted.
    predicted_class : object
        None where numbers are predicted.
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
        The training graphs with the largest positive and negative contributions. The index is the
        position in the training set, the columns are ``class_label`` or ``value``, ``similarity``
        (the learned Tanimoto similarity, from 0 to 1) and ``contribution`` to the decision.
    out_of_vocabulary : float
        Share of the graph's patterns, each counted as often as it occurs, that training never saw.
    node_out_of_vocabulary : ndarray, shape (n_nodes,)
        Unseen share of the patterns at each node: 1 where no pattern of any depth was known.
    warning : str or None
        Set when the unseen share is large.
    graph : Graph
    pattern_rows, neighbor_rows
        The arrays that the two tables are made from.
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
    def atom_contributions(self) -> np.ndarray:
        """``node_contributions`` of a molecule, whose nodes are atoms."""
        return self.node_contributions

    @property
    def sentence(self) -> str:
        """How base, covariates and nodes add up to the prediction."""
        rest = self.decision - self.base - self.covariates
        covariates = f", covariates {self.covariates:+.3f}" if self.covariates else ""
        return f"{self._predicted}: base {self.base:+.3f}{covariates}, nodes together {rest:+.3f}."

    @property
    def _predicted(self) -> str:
        if self.class_label is None:
            return f"Predicted {self.decision:.3f}"
        return (
            f"Predicted {self.predicted_class}; decision {self.decision:+.3f} for "
            f"{self.class_label}"
        )

    def __repr__(self) -> str:
        lines = [
            f"Explanation({self.sentence[:-1]}; {self.out_of_vocabulary:.0%} of the patterns "
            "unseen)"
        ]
        several = len(self.pattern_rows.expansion.forest.trees) > 1
        for row in self.pattern_contributions.head(5).to_dict("records"):
            tree = f"{row['tree']}, " if several and row["tree"] != "labels" else ""
            nodes = "1 node" if row["count"] == 1 else f"{row['count']} nodes"
            lines.append(
                f"  {row['contribution']:+.3f}  {row['pattern']}  ({tree}depth {row['depth']}, "
                f"at {nodes})"
            )
        return "\n".join(lines if self.warning is None else [*lines, f"  {self.warning}"])

    def _repr_html_(self) -> str:
        """The graph coloured by contribution, and the strongest patterns; all text is escaped."""
        from treelens.explain.draw import Style, draw_graph

        parts = [f"<p>{escape(self.sentence)}</p>", self._pattern_html()]
        if 0 < self.graph.n_nodes <= _LARGEST_DRAWN:
            numbers = self.class_label is None
            style = Style(
                title=self.sentence,
                toward=None if numbers else str(self.class_label),
                ends=("lowers", "raises") if numbers else None,
            )
            parts.insert(0, str(draw_graph(self.graph, self.node_contributions, style=style)))
        return f"<div>{''.join(parts)}</div>"

    def _pattern_html(self) -> str:
        table = self.pattern_contributions.head(_MOST_PATTERNS)
        rows = "".join(
            f"<tr><td>{row['contribution']:+.3f}</td><td><code>{escape(str(row['pattern']))}"
            f"</code></td><td>{row['depth']}</td><td>{row['count']}</td></tr>"
            for row in table.to_dict("records")
        )
        head = "".join(
            f'<th scope="col">{x}</th>' for x in ("contribution", "pattern", "depth", "nodes")
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


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
        How many training graphs to list on either side.
    """
    if len(graph) != 1:
        raise GraphDataError(f"Expected one graph to explain; got {len(graph)} of them.")
    return _explain(graph, expansion.find(graph), expansion, class_label, n_neighbors)


def explain_seen(
    graphs: GraphCollection,
    seen: SeenGraphs,
    index: int,
    expansion: KernelExpansion,
    class_label: Any = None,
    n_neighbors: int = 5,
) -> Explanation:
    """Explain one of several graphs that were refined before; see :func:`explain`."""
    one = graphs[index : index + 1]
    return _explain(one, expansion.found_in(seen, index), expansion, class_label, n_neighbors)


def _explain(
    graph: GraphCollection,
    found: FoundPatterns,
    expansion: KernelExpansion,
    class_label: Any,
    n_neighbors: int,
) -> Explanation:
    if n_neighbors < 0:
        raise ValueError(f"n_neighbors must be 0 or more, got {n_neighbors}.")
    sums = _kernel_sums(found, expansion)
    slopes = expansion.slopes(sums)
    by_covariates = expansion.covariate_effects(found.covariates)  # (n_outputs,)
    row, sign, label, predicted = _choose_output(slopes.end, by_covariates, expansion, class_label)
    coefficients = sign * expansion.coefficients[row]  # (n_basis,)
    covariates = sign * float(by_covariates[row])
    intercept = sign * float(expansion.intercepts[row])
    contributions = _divide(coefficients, slopes, found, expansion)  # (n_found,)
    counts = found.counts
    shares = _root_shares(contributions / counts, found)  # (n_depths, n_nodes)
    arcs = Arcs(graph.neighbor_offsets, graph.neighbors)
    votes = coefficients * slopes.end
    return Explanation(
        decision=intercept + covariates + float(coefficients @ slopes.end),
        base=intercept + float(coefficients @ slopes.start),
        class_label=label,
        predicted_class=predicted,
        node_contributions=spread_over_nodes(shares, expansion.level_depths, arcs),
        edge_contributions=spread_over_edges(shares, expansion.level_depths, arcs),
        out_of_vocabulary=found.out_of_vocabulary,
        node_out_of_vocabulary=(found.colors < 0).mean(axis=0),
        warning=_warning(found.out_of_vocabulary, expansion.usual_out_of_vocabulary),
        graph=graph[0],
        pattern_rows=PatternRows.sorted(expansion, found, counts, contributions),
        neighbor_rows=NeighborRows.strongest(expansion, votes, sums.similarity, n_neighbors),
        covariates=covariates,
    )


# --- from kernel values to patterns -----------------------------------------------------------


def _kernel_sums(found: FoundPatterns, expansion: KernelExpansion) -> KernelSums:
    pairs = expansion.basis.pairs
    shared = _compiled.shared_sums(
        found.patterns, found.values, expansion.weights[found.patterns], pairs.lists.offsets,
        pairs.lists.indices, pairs.lists.values, pairs.minimum, pairs.n_graphs,
    )  # fmt: skip
    own_known = float(found.own_terms(expansion.weights).sum())
    return expansion.kernel_sums(shared * (found.scale * pairs.scale), own_known, found.own_unseen)


def _divide(
    coefficients: np.ndarray, slopes: PathSlopes, found: FoundPatterns, expansion: KernelExpansion
) -> np.ndarray:
    """The contribution of every pattern of the graph, shape (n_found,)."""
    pairs = expansion.basis.pairs
    factors = coefficients * slopes.per_shared * (found.scale * pairs.scale)
    matched = np.empty(len(found.patterns))
    _compiled.pattern_sums_of_rows(
        0, 1, np.array([0, len(matched)]), found.patterns, found.values, pairs.lists.offsets,
        pairs.lists.indices, pairs.lists.values, pairs.minimum, factors[None, :], matched,
    )  # fmt: skip
    own = found.own_terms(expansion.weights) * float(coefficients @ slopes.per_own)
    return expansion.weights[found.patterns] * matched + own


def _root_shares(per_node: np.ndarray, found: FoundPatterns) -> np.ndarray:
    """What the pattern rooted at each node contributes at each depth: (n_depths, n_nodes).

    ``per_node``: a pattern's contribution, divided equally among the nodes that carry it.
    """
    known = found.colors >= 0
    starts = found.level_offsets[:-1, None]  # (n_depths, 1)
    place = np.searchsorted(found.patterns, (found.colors + starts)[known])
    shares = np.zeros(found.colors.shape)
    shares[known] = per_node[place]
    return shares


def _choose_output(
    kernel: np.ndarray, covariates: np.ndarray, expansion: KernelExpansion, class_label: Any
) -> tuple[int, float, Any, Any]:
    """Row of the output to explain, the sign it counts with, its class, the predicted class."""
    classes = expansion.classes
    if classes is None:
        if class_label is not None:
            raise ValueError(
                f"class_label={class_label!r}, but this model predicts numbers: leave it out."
            )
        return 0, 1.0, None, None
    two = len(expansion.intercepts) == 1
    predicted = expansion.predicted_code(kernel, covariates)
    code = 1 if two else predicted
    if class_label is not None:
        code = class_code(classes, class_label)
    row, sign = (0, 1.0 if code == 1 else -1.0) if two else (code, 1.0)
    return row, sign, classes[code], classes[predicted]


def class_code(classes: np.ndarray, class_label: Any) -> int:
    """The position of a class, or an error that lists the classes."""
    matches = np.flatnonzero(classes == class_label)
    if len(matches) != 1:
        raise ValueError(
            f"class_label must be one of the classes {classes.tolist()}, got {class_label!r}."
        )
    return int(matches[0])


def _warning(out_of_vocabulary: float, limit: float) -> str | None:
    if out_of_vocabulary <= limit:
        return None
    return (
        f"Training never saw {out_of_vocabulary:.0%} of this graph's patterns (up to {limit:.0%} "
        "is usual): the decision rests on the others, so treat it with care."
    )


# --- the rows of the two tables ---------------------------------------------------------------


class PatternRows(NamedTuple):
    """Known patterns of a graph, the largest contribution (in absolute value) first."""

    expansion: KernelExpansion
    ids: np.ndarray  # (n_found,), in the forest
    depths: np.ndarray
    counts: np.ndarray  # nodes that carry each
    contributions: np.ndarray

    @classmethod
    def sorted(
        cls,
        expansion: KernelExpansion,
        found: FoundPatterns,
        counts: np.ndarray,
        contributions: np.ndarray,
    ) -> PatternRows:
        order = np.lexsort((found.patterns, -np.abs(contributions)))
        patterns = found.patterns[order]
        level = np.searchsorted(found.level_offsets, patterns, side="right") - 1
        depths = expansion.level_depths[level]
        ids = patterns + expansion.first_pattern
        return cls(expansion, ids, depths, counts[order], contributions[order])

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
    """Training graphs with positive contributions, largest first, then those with negative ones."""

    expansion: KernelExpansion
    picked: np.ndarray  # positions among the basis graphs
    similarities: np.ndarray  # learned Tanimoto similarities
    contributions: np.ndarray

    @classmethod
    def strongest(
        cls, expansion: KernelExpansion, votes: np.ndarray, similarities: np.ndarray, n: int
    ) -> NeighborRows:
        """Up to ``n`` on either side, from the contributions (n_basis,) of all basis graphs."""
        order = np.lexsort((expansion.basis_indices, -votes))
        most_for = order[:n][votes[order[:n]] > 0]
        last = order[len(order) - min(n, len(order)) :]
        picked = np.concatenate([most_for, last[votes[last] < 0]])
        return cls(expansion, picked, similarities[picked], votes[picked])

    @property
    def training_graphs(self) -> np.ndarray:
        """Positions in the training set."""
        return self.expansion.basis_indices[self.picked]

    def frame(self) -> pd.DataFrame:
        import pandas as pd

        name, targets = self.expansion.basis_targets(self.picked)
        return pd.DataFrame(
            {
                name: targets,
                "similarity": self.similarities,
                "contribution": self.contributions,
            },
            index=pd.Index(self.training_graphs, name="training_graph"),
        )


# --- from patterns to the nodes and edges that carry them -------------------------------------


class Arcs(NamedTuple):
    """The neighbours of one graph's nodes in compressed form."""

    offsets: np.ndarray  # (n_nodes + 1,)
    neighbors: np.ndarray  # (n_arcs,)

    @property
    def degrees(self) -> np.ndarray:
        return np.diff(self.offsets)


def spread_over_nodes(shares: np.ndarray, depths: np.ndarray, arcs: Arcs) -> np.ndarray:
    """One number per node from what each node's pattern of each depth contributes.

    Parameters
    ----------
    shares : ndarray, shape (n_depths, n_nodes)
        Row ``k``: contribution of the pattern of depth ``depths[k]`` rooted at each node.
    depths : ndarray of int, shape (n_depths,)
    arcs : Arcs

    Returns
    -------
    ndarray, shape (n_nodes,)
        With the same total as ``shares``.

    Examples
    --------
    >>> path = Arcs(np.array([0, 1, 3, 4]), np.array([1, 0, 2, 1]))  # 0 - 1 - 2
    >>> spread_over_nodes(np.array([[0.0, 1.0, 0.0]]), np.array([1]), arcs=path)
    array([0.25, 0.5 , 0.25])
    """
    return _walk(_by_layer(shares / (depths[:, None] + 1), depths), arcs)


def spread_over_edges(shares: np.ndarray, depths: np.ndarray, arcs: Arcs) -> np.ndarray:
    """One number per edge, in the order of ``Graph.edges``: shape (n_edges,)."""
    with_edges = depths > 0
    shares, depths = shares[with_edges], depths[with_edges]
    # A pattern of depth h has h layers of edges; they start from the nodes of layers 0 to h - 1.
    starts = _walk(_by_layer(shares / depths[:, None], depths - 1), arcs)
    degrees = arcs.degrees
    crossing = np.repeat(starts / np.maximum(degrees, 1), degrees)  # (n_arcs,)
    owner = np.repeat(np.arange(len(degrees)), degrees)
    forward = owner <= arcs.neighbors
    # The arc back from v to u stands where the pair (neighbour, owner) would stand.
    back_order = np.lexsort((owner, arcs.neighbors))
    both = crossing + np.where(owner == arcs.neighbors, 0.0, crossing[back_order])
    return both[forward]


def _by_layer(shares: np.ndarray, last_layers: np.ndarray) -> np.ndarray:
    """What starts a walk that is to be counted after 0, 1, ... steps: (n_layers, n_nodes).

    ``shares[k]`` is counted once in each of the layers 0 to ``last_layers[k]``.
    """
    n_layers = int(last_layers.max(initial=-1)) + 1
    counted = np.arange(n_layers)[:, None] <= last_layers[None, :]  # (n_layers, n_depths)
    return counted.astype(float) @ shares


def _walk(starts: np.ndarray, arcs: Arcs) -> np.ndarray:
    """Where everything is after its steps: row ``l`` of ``starts`` takes ``l`` random steps."""
    degrees = arcs.degrees
    place = np.zeros(len(degrees))
    for start in starts[::-1]:
        place = start + _step(place, degrees, arcs)
    return place


def _step(amount: np.ndarray, degrees: np.ndarray, arcs: Arcs) -> np.ndarray:
    """Hand every node's amount to its neighbours in equal parts; isolated nodes keep theirs."""
    parts = np.repeat(amount / np.maximum(degrees, 1), degrees)
    moved = np.bincount(arcs.neighbors, weights=parts, minlength=len(amount))
    return moved + np.where(degrees == 0, amount, 0.0)
