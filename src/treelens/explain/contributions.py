"""What every pattern, node and training graph contributes to the prediction of a graph.

The prediction is ``f(G) = c + sum over i of a_i k(G, G_i)`` with one coefficient ``a_i`` per basis
graph. :mod:`treelens.explain.effects` divides each kernel value among the patterns of the graph;
the contribution of a pattern is the sum of its shares, times ``a_i``, over all basis graphs. The
contributions of all patterns add up to ``decision - base``. The base is the decision for a graph
without any known pattern: the intercept ``c``, and with an exponential kernel (wwl, tanimoto-rbf,
laplacian, the mixture of a Gaussian process) also what kernel values above zero add there. Where
the kernel is a sum over patterns (wwl-linear, wl-oa, wl-subtree), every contribution is exact.

Each pattern's contribution is divided equally among its occurrences in the graph. A pattern of
depth ``h`` at a node is a rooted tree of ``h + 1`` layers: the node, its neighbours, their
neighbours (the node itself among them), and so on. Every layer of nodes gets the same share of the
contribution, and within a layer each child the same part of its parent's: the share of a node is
the mean, over 0 to ``h`` steps, of the probability that a random walk from the root is there.
Likewise, every layer of edges gets the same share, divided as the walk crosses them.

An isolated node has no layers below it and keeps everything. The numbers of the nodes add up to the
contributions of all patterns, those of the edges to those of all patterns that have an edge.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from html import escape
from typing import Any

import numpy as np
import pandas as pd

from treelens.errors import check_whole
from treelens.explain.effects import (
    GraphEffects,
    PartEffects,
    effects_of_graphs,
    entries_at_nodes,
    outputs_of,
)
from treelens.explain.fragment_search import pattern_texts
from treelens.graphs.collection import Graph, GraphCollection
from treelens.graphs.kinds import DESCRIPTOR_PREFIX
from treelens.kernels.weighted import nearest_graphs
from treelens.models.fitted import FittedModel
from treelens.models.predictions import KernelExpansion, Predictions
from treelens.patterns.forest import PatternForest
from treelens.patterns.histograms import GraphViews, PatternHistograms
from treelens.patterns.source import PatternSource

_MOST_PATTERNS = 8  # rows in a notebook
_LARGEST_DRAWN = 400  # nodes
_ALMOST_NOTHING = 0.05  # of the usual spread, or of what covariates add


@dataclass(frozen=True, eq=False)
class Explanation:
    """What the patterns, nodes and edges of one graph contribute to its prediction.

    Attributes
    ----------
    decision : float
        The predicted number, or the decision value in favour of ``class_label``; with several
        classes that are predicted by votes, its mean margin over each of the others.
    base : float
        The decision value before any known pattern of the graph is counted.
    class_label, predicted_class : object
        The class that positive contributions favour, and the predicted one; None for regression.
    pattern_contributions : DataFrame
        One row per known pattern of the graph, the largest contribution (in absolute value)
        first: ``pattern`` (text form), ``tree``, ``depth``, ``weight``, ``count`` (nodes that carry
        it) and ``contribution``. The index is the pattern's id.
    attribute_contributions : DataFrame
        ``attribute``, ``steps`` (0: the node's own value, 1: the mean over its neighbours, ...) and
        ``contribution``. That of a cell is divided equally among the attributes that it asks for;
        ``labels`` are all other patterns.
    node_contributions, atom_contributions : ndarray, shape (n_nodes,)
        They add up to ``decision - base - covariates``.
    edge_contributions : ndarray, shape (n_edges,)
        In the order of ``graph.edges``: the patterns of depth 1 and more once again, spread over
        their edges instead of their nodes.
    neighbors : DataFrame
        The most similar training graphs, by position: ``class_label`` or ``value``, ``limit``
        (``">"`` or ``"<"``, if any value is a limit), ``similarity`` (learned Tanimoto, from 0 to
        1: the same patterns, which at depth 0 are labels alone), ``contribution`` to the decision
        (0 but for support vectors or landmarks).
    out_of_vocabulary : float
        Share of the graph's patterns, each counted as often as it occurs, that no training graph
        has.
    node_out_of_vocabulary : ndarray, shape (n_nodes,)
        The same for the patterns at each node: 1 where no pattern of any depth is known.
    warning : str or None
        Set when ``out_of_vocabulary`` is large.
    covariates : float
        What the covariates of the graph add to the decision, descriptors that the model chose among
        them; 0 where the model has none. ``beside`` says which: ``"descriptors"``,
        ``"covariates"``, or both.
    spread : float
        What contributions are compared with: the standard deviation of the training values, or 1
        for classes, which lie at -1 and +1.
    graph : Graph
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
    covariates: float
    beside: str
    spread: float
    graph: Graph
    _patterns: tuple[FoundPatterns, ...]  # view by view, the Weisfeiler-Lehman patterns first
    _expansion: KernelExpansion
    _neighbors: Callable[[], pd.DataFrame]

    @cached_property
    def pattern_contributions(self) -> pd.DataFrame:
        table = pd.concat([found.table() for found in self._patterns])
        size = table["contribution"].abs()
        return table.loc[:, table.columns].iloc[np.argsort(-size.to_numpy(), kind="stable")]

    @cached_property
    def neighbors(self) -> pd.DataFrame:
        return self._neighbors()

    @property
    def attribute_contributions(self) -> pd.DataFrame:
        found = self._patterns[0]
        return attribute_table(self._expansion.forest, found.ids, found.values)

    @property
    def atom_contributions(self) -> np.ndarray:
        return self.node_contributions

    @property
    def sentence(self) -> str:
        """How base, covariates and nodes add up to the prediction."""
        predicted = f"Predicted {self.decision:.3f}"
        if self.class_label is not None:
            predicted = f"Predicted {self.predicted_class}; decision {self.decision:+.3f} for "
            predicted += str(self.class_label)
        rest = self.decision - self.base - self.covariates
        covariates = f", {self.beside} {self.covariates:+.3f}" if self.covariates else ""
        return f"{predicted}: base {self.base:+.3f}{covariates}, nodes together {rest:+.3f}."

    @property
    def structure_share(self) -> float:
        """How much of the explanation is structure, from 0 to 1; the rest are covariates.

        The sum of the absolute contributions of the nodes, over that and what covariates add.
        """
        structure = float(np.abs(self.node_contributions).sum())
        return structure / max(structure + abs(self.covariates), np.finfo(float).tiny)

    @property
    def structure_note(self) -> str | None:
        """A sentence where structure carries almost nothing of the prediction, else None."""
        structure = float(np.abs(self.node_contributions).sum())
        if structure >= _ALMOST_NOTHING * max(self.spread, abs(self.covariates)):
            return None
        usual = f"training values have a standard deviation of {self.spread:.2g}"
        if self.class_label is not None:
            usual = "the classes lie at -1 and +1"
        note = "Structure carries almost nothing of this prediction: the contributions of all "
        note += f"nodes are {structure:.1g} together, where {usual}"
        if self.covariates:
            note += f", and {self.beside} add {self.covariates:+.3g}"
        if "descriptors" in self.beside:
            note += "; fit with descriptors=False to see what structure says"
        return f"{note}."

    def draw(
        self, *, edges: bool = False, width: int = 320, height: int = 240, format: Any = "svg"
    ) -> Any:
        """Draw the graph coloured by contribution, as SVG text or PNG bytes.

        The full colour stands for the largest contribution, but for no less than what would, at
        every node, move the prediction by the usual spread: small effects look pale.

        Parameters
        ----------
        edges : bool, default=False
            Whether edges are coloured as well.
        width, height : int
            In pixels, without the legend.
        format : {"svg", "png"}
        """
        from treelens.explain.draw import Style, draw_graph

        by_edge = self.edge_contributions if edges else None
        style = Style(
            width,
            height,
            toward=None if self.class_label is None else str(self.class_label),
            title=self.sentence,
            limit=color_limit([self.node_contributions], self.spread),
            note=self.structure_note and "Structure adds almost nothing to this prediction.",
        )
        return draw_graph(self.graph, self.node_contributions, by_edge, format=format, style=style)

    def __repr__(self) -> str:
        unseen = f"{self.out_of_vocabulary:.0%} of the patterns unseen"
        lines = [f"Explanation({self.sentence[:-1]}; {unseen})"]
        several = len(self._expansion.forest.trees) > 1
        for row in self.pattern_contributions.head(5).to_dict("records"):
            tree = f"{row['tree']}, " if several and row["tree"] != "labels" else ""
            nodes = "1 node" if row["count"] == 1 else f"{row['count']} nodes"
            where = f"({tree}depth {row['depth']}, at {nodes})"
            if row["tree"] == "paths":
                where = f"(path, {row['count']} times)" if row["count"] > 1 else "(path)"
            lines.append(f"  {row['contribution']:+.3f}  {row['pattern']}  {where}")
        lines += [f"  {text}" for text in (self.structure_note, self.warning) if text]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """The graph coloured by contribution, and the strongest patterns; all text is escaped."""
        drawing = self.draw() if 0 < self.graph.n_nodes <= _LARGEST_DRAWN else ""
        table = self.pattern_contributions.head(_MOST_PATTERNS)
        shown = table[["contribution", "pattern", "depth", "count"]].to_html(
            index=False, float_format="{:+.3f}".format
        )
        notes = "".join(f"<p>{escape(x)}</p>" for x in (self.sentence, self.structure_note) if x)
        return f"<div>{drawing}{notes}{shown}</div>"


def usual_spread(model: FittedModel) -> float:
    """Return the standard deviation of the training values; 1 for classes, at -1 and +1."""
    return 1.0 if model.classes is not None else float(np.std(model.training.targets))


def color_limit(contributions: Sequence[Any], spread: float) -> float:
    """Return the contribution that gets the full colour in drawings of some graphs.

    That is the largest contribution of a node, but no less than what would move the prediction by
    the usual spread if every node (of a graph with the median number of them) added as much.
    """
    largest = max((float(np.abs(values).max(initial=0.0)) for values in contributions), default=0.0)
    sizes = [len(values) for values in contributions if len(values)]
    return max(largest, spread / float(np.median(sizes))) if sizes else largest


@dataclass(frozen=True, eq=False)
class FoundPatterns:
    """The known patterns of a graph in one view, the largest contribution first."""

    source: PatternSource
    ids: np.ndarray  # (n_found,) in the source
    weights: np.ndarray
    counts: np.ndarray  # how often the graph has them
    values: np.ndarray  # contributions

    @classmethod
    def of(cls, effects: PartEffects, sign: float) -> FoundPatterns:
        part, rows = effects.part, effects.rows
        values = sign * rows.values
        order = np.lexsort((rows.indices, -np.abs(values)))
        numbers = rows.indices[order]
        counts = effects.counts[order]
        ids = numbers + part.first_pattern
        return cls(part.source, ids, part.weights[numbers], counts, values[order])

    def table(self) -> pd.DataFrame:
        """Return a row per pattern."""
        columns = {"weight": self.weights, "count": self.counts, "contribution": self.values}
        return _pattern_frame(self.source, self.ids, columns)

    def strongest(self, n: int) -> list[tuple[str, float]]:
        """Return texts and contributions."""
        return list(zip(self.source.texts(self.ids[:n]), self.values[:n].tolist(), strict=True))


def explain(
    model: FittedModel,
    graphs: GraphCollection,
    class_label: Any = None,
    n_neighbors: int = 5,
    *,
    found: Predictions | None = None,
    index: int = 0,
) -> Explanation:
    """Divide the prediction of one graph among its patterns, nodes and edges.

    The graph is ``graphs[index]``; ``found`` are the predictions of all, if at hand. For
    ``class_label`` and ``n_neighbors`` see :meth:`treelens.GraphRegressor.explain`.
    """
    check_whole("n_neighbors", n_neighbors, 0)
    expansion, training = model.expansion, model.training
    assert training is not None
    found = model.decide(graphs) if found is None else found
    one = graphs[index : index + 1]
    seen = found.graphs.select(np.array([index])) if len(graphs) > 1 else found.graphs
    (row, sign, _), *others = outputs_of(expansion.classes, class_label)
    label = predicted = None
    if expansion.classes is not None:
        code = int(found.predicted_codes[index])
        row = code if others else row
        label = expansion.classes[row if len(expansion.classes) > 2 else int(sign > 0)]
        predicted = expansion.classes[code]
    beside = found.from_covariates
    covariates = 0.0 if beside is None else sign * float(beside[index, row])
    kinds = {
        "descriptors" if name.startswith(DESCRIPTOR_PREFIX) else "covariates"
        for name in model.covariate_names
    }
    effects = effects_of_graphs(expansion, one, row, seen=seen)
    by_node, by_edge, unseen = _over_graph(effects, one)
    share_unseen = np.count_nonzero(unseen) / max(unseen.size, 1)
    return Explanation(
        sign * float(effects.decisions[0]) + covariates,
        sign * float(effects.base[0]),
        label,
        predicted,
        sign * by_node,
        sign * by_edge,
        share_unseen,
        unseen.mean(axis=0),
        _unseen_warning(share_unseen, training.usual_out_of_vocabulary),
        covariates,
        " and ".join(sorted(kinds)),
        usual_spread(model),
        one[0],
        tuple(FoundPatterns.of(part, sign) for part in effects.parts),
        expansion,
        partial(
            _neighbor_table,
            model,
            seen.features,
            sign * expansion.coefficients[row],
            n_neighbors,
        ),
    )


def _over_graph(
    effects: GraphEffects, one: GraphCollection
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Divide the effects of one graph: per node, per edge, and which patterns are unseen.

    Weisfeiler-Lehman patterns are spread over all nodes and edges that they cover, other patterns
    over the nodes that share them. The last array has a column per node.
    """
    forest, expansion = effects.parts[0], effects.expansion
    entries = entries_at_nodes(forest)
    counts = np.bincount(entries[entries >= 0], minlength=len(forest.rows.indices))
    shares = np.append(forest.rows.values / counts, 0.0)[entries]  # the last: unseen
    by_node, by_edge = spread_over_graph(
        shares,
        expansion.forest.level_depths[expansion.first_level :],
        one.neighbor_offsets,
        one.neighbors,
        one.directions,
    )
    others = [part.phi for part in effects.parts[1:]]
    return np.sum([by_node, *others], axis=0), by_edge, entries < 0


def _unseen_warning(share: float, limit: float) -> str | None:
    if share <= limit:
        return None
    return (
        f"Training never saw {share:.0%} of this graph's patterns (up to {limit:.0%} is usual): "
        "treat the prediction with care."
    )


def _neighbor_table(
    model: FittedModel, views: GraphViews, coefficients: np.ndarray, n_neighbors: int
) -> pd.DataFrame:
    near = nearest_graphs(views.patterns, model.training_graphs.patterns, n_neighbors)
    positions = near.positions[0]
    contributions = np.zeros(len(model.training.targets))
    expansion = model.expansion
    kernel = sum(
        part.kernel.matrix(views[part.view], expansion.basis[part.view])[0]
        for part in expansion.parts
    )
    contributions[expansion.basis_indices] = coefficients * kernel
    targets = model.training.reported[positions]
    columns: dict[str, Any] = (
        {"value": targets} if model.classes is None else {"class_label": model.classes[targets]}
    )
    if model.training.limits is not None:
        columns["limit"] = [model.training.sign(k) for k in positions.tolist()]
    columns |= {"similarity": near.similarity[0], "contribution": contributions[positions]}
    return pd.DataFrame(columns, index=pd.Index(positions, name="training_graph"))


def spread_over_graph(
    shares: np.ndarray,
    depths: np.ndarray,
    offsets: np.ndarray,
    neighbors: np.ndarray,
    directions: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """One number per node and per edge, in the order of ``Graph.edges``.

    ``shares`` (n_depths, n_nodes) are contributions of the pattern of depth ``depths[k]`` rooted at
    each node, whose sum the nodes have; the others are as in :class:`GraphCollection`.

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


def attribute_table(
    forest: PatternForest, patterns: np.ndarray, contributions: np.ndarray
) -> pd.DataFrame:
    """Return the sum of contributions per attribute, the largest (in absolute value) first."""
    parts, cells, levels = [], forest.cells, forest.level_of(patterns).tolist()
    entries = zip(patterns.tolist(), levels, contributions.tolist(), strict=True)
    for pattern, level, value in entries:
        keys = [("labels", 0)]
        if cells is not None and pattern >= forest.n_deviating:
            row = level - (len(forest.levels) - cells.n_levels)
            keys = cells.asked(row, pattern - int(forest.level_offsets[level]))
        parts += [(name, step, value / len(keys)) for name, step in keys]
    table = pd.DataFrame(parts, columns=["attribute", "steps", "contribution"])
    sums = table.groupby(["attribute", "steps"], as_index=False, sort=False).sum()
    return sums.sort_values(
        "contribution", key=np.abs, ascending=False, kind="stable", ignore_index=True
    )


# --- the table of patterns ---------------------------------------------------------------------


def _pattern_frame(source: PatternSource, ids: np.ndarray, columns: dict[str, Any]) -> pd.DataFrame:
    first = {
        "pattern": pattern_texts(source, ids),
        "tree": source.tree_names(ids),
        "depth": source.pattern_depths[ids],
    }
    return pd.DataFrame(first | columns, index=pd.Index(ids, name="pattern_id"))


def pattern_table(
    forest: PatternForest,
    histograms: PatternHistograms,
    weights: np.ndarray,
    targets: np.ndarray,
    classes: np.ndarray | None = None,
) -> pd.DataFrame:
    """One row per pattern in use, sorted by weight, then support, depth and text.

    With classes, a column ``frequency CLASS`` each (mean share of the nodes of a graph that carry
    the pattern), and ``class``, where that is largest; without, the mean target of the graphs that
    have it and of the others. ``histograms`` count the last patterns of the forest.
    """
    ids = np.arange(forest.n_patterns - histograms.n_patterns, forest.n_patterns)
    by_target: dict[str, Any]
    if classes is None:
        present = histograms.to_sparse()
        present.data[:] = 1.0
        n_with, sum_with = np.asarray(present.sum(axis=0)).ravel(), present.T @ targets
        with np.errstate(divide="ignore", invalid="ignore"):
            without = (targets.sum() - sum_with) / (len(targets) - n_with)
            by_target = {
                "mean_with": sum_with / n_with,
                "mean_without": np.where(n_with < len(targets), without, np.nan),
            }
    else:
        members = np.eye(len(classes))[targets]  # (n_graphs, n_classes)
        members /= members.sum(axis=0).clip(1)
        shares = np.asarray(histograms.to_sparse("frequencies").T @ members)
        by_target = {f"frequency {c}": shares[:, k] for k, c in enumerate(classes.tolist())}
        by_target["class"] = classes[shares.argmax(axis=1)]
    columns = {"weight": weights, "support": histograms.support, **by_target}
    table = _pattern_frame(forest, ids, columns)
    order = ["weight", "support", "depth", "pattern"]
    return table.sort_values(order, ascending=[False, False, True, True], kind="stable")
