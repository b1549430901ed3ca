"""What every pattern, node and training graph contributes to the prediction of a graph.

The prediction is ``f(G) = c + sum over i of a_i k(G, G_i)`` with one coefficient ``a_i`` per basis
graph. :mod:`treelens.explain.effects` divides each kernel value among the patterns of the graph;
the contribution of a pattern is the sum of its shares, times ``a_i``, over all basis graphs.
:mod:`treelens.explain.numbers` divides what tables of numbers add among columns, and that of
descriptors among nodes. Everything that a model adds starts from the *base*, one number: its
prediction for a graph without any pattern. It is the intercept ``c``, and with an exponential
kernel (wwl, tanimoto-rbf, laplacian, the mixture of a Gaussian process) also what kernel values
above zero add there. Where the kernel is a sum over patterns (wwl-linear, wl-oa, wl-subtree), every
contribution is exact.

Each pattern's contribution is divided equally among its occurrences in the graph. A pattern of
depth ``h`` at a node is a rooted tree of ``h + 1`` layers: the node, its neighbours, their
neighbours (the node itself among them), and so on. Every layer of nodes gets the same share of the
contribution, and within a layer each child the same part of its parent's: the share of a node is
the mean, over 0 to ``h`` steps, of the probability that a random walk from the root is there.
Likewise, every layer of edges gets the same share, divided as the walk crosses them.

An isolated node has no layers below it and keeps everything. The numbers of the nodes add up to the
contributions of all patterns and descriptors, those of the edges to those of all patterns of the
forest that have an edge.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from html import escape
from typing import TYPE_CHECKING, Any

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
from treelens.explain.numbers import COLUMNS, NumbersEffects
from treelens.graphs.collection import Graph, GraphCollection
from treelens.kernels.weighted import nearest_graphs
from treelens.models.fitted import FittedModel
from treelens.models.predictions import Predictions
from treelens.patterns.cells import ATTRIBUTES
from treelens.patterns.forest import PatternForest, SeenGraphs
from treelens.patterns.histograms import PatternHistograms
from treelens.patterns.source import PatternSource

if TYPE_CHECKING:
    from treelens.explain.draw import Format

_MOST_PATTERNS = 8  # rows in a notebook
_LARGEST_DRAWN = 400  # nodes
_ALMOST_NOTHING = 0.05  # of the usual spread, or of what belongs to no node
_MOST_COLUMNS = 4  # of tables of the user's that are named one by one


@dataclass(frozen=True, eq=False)
class Explanation:
    """What the patterns, nodes and edges of one graph contribute to its prediction.

    Attributes
    ----------
    decision : float
        The predicted number, or the decision value in favour of ``class_label``; with several
        classes that are predicted by votes, its mean margin over each of the others.
    base : float
        The decision value for a graph without any pattern: one number for all graphs.
    class_label, predicted_class : object
        The class that positive contributions favour, and the predicted one; None for regression.
    pattern_contributions : DataFrame
        One row per known pattern of the graph, the largest contribution (in absolute value)
        first: ``pattern`` (text form), ``tree``, ``depth``, ``weight``, ``count`` (nodes that carry
        it) and ``contribution``. The index is the pattern's id.
    attribute_contributions : DataFrame
        ``attribute``, ``steps`` (0: the node's own value, 1: the mean over its neighbours, ...) and
        ``contribution``. That of a cell is divided equally among the attributes that it asks for;
        ``labels`` are all other patterns, unseen ones included; the last rows are of other views
        that count patterns, such as ``paths``. They add up to what is counted.
    node_contributions, atom_contributions : ndarray, shape (n_nodes,)
        What patterns and descriptors add at each node. Together with ``base`` and the contributions
        in ``rest`` they add up to ``decision``.
    rest : DataFrame
        What belongs to no node: covariates and tables of the user's, with the columns of
        ``descriptor_contributions``. Empty where the model has none.
    descriptor_contributions : DataFrame
        One row per descriptor, the largest contribution first: ``view``, ``name``, ``value``,
        ``reference`` (the value that contributions begin with: 0 for sums over atoms, else the
        usual one), ``contribution`` and ``divided``: among atoms ``"by terms"``, the known parts of
        the sum, or ``"evenly"``. Contributions are integrals of the slope from the reference to the
        value, all columns at once.
    view_contributions : Series
        What each view adds, by its name in ``model.views_``. They add up to ``decision - base``.
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
    spread : float
        What contributions are compared with: the standard deviation of the training values, or 1
        for classes, which lie at -1 and +1.
    scale : str or None
        The scale that all of this is on, where numbers were learned on another one than theirs.
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
    view_contributions: pd.Series
    spread: float
    scale: str | None
    graph: Graph
    _patterns: tuple[FoundPatterns, ...]  # view by view, the Weisfeiler-Lehman patterns first
    _columns: Callable[[], pd.DataFrame]  # of all tables of numbers
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
        found, *others = self._patterns
        table = attribute_table(found.source, found.ids, found.values, found.unseen)
        cells = [each for each in others if each.source.name == ATTRIBUTES]
        tables = [attribute_table(each.source, each.ids, each.values) for each in cells]
        table = pd.concat([table, *tables], ignore_index=True)
        others = [each for each in others if each.source.name != ATTRIBUTES]
        views = {each.source.name: float(each.values.sum()) + each.unseen for each in others}
        more = {"attribute": list(views), "steps": 0, "contribution": list(views.values())}
        return pd.concat([table, pd.DataFrame(more)], ignore_index=True) if views else table

    @property
    def atom_contributions(self) -> np.ndarray:
        return self.node_contributions

    @cached_property
    def _column_contributions(self) -> pd.DataFrame:
        return self._columns()

    @property
    def descriptor_contributions(self) -> pd.DataFrame:
        table = self._column_contributions
        table = table[table["divided"] != "no"]
        order = np.argsort(-table["contribution"].abs().to_numpy(), kind="stable")
        return table.iloc[order].reset_index(drop=True)

    @property
    def rest(self) -> pd.DataFrame:
        table = self._column_contributions
        return table[table["divided"] == "no"].reset_index(drop=True)

    @property
    def rest_in_words(self) -> list[tuple[str, float]]:
        """Names and contributions of ``rest``: column by column, or of many by view."""
        rest = self.rest
        by = "name" if len(rest) <= _MOST_COLUMNS else "view"
        sums = rest.groupby(by, sort=False)["contribution"].sum()
        return [(str(name), float(value)) for name, value in sums.items()]

    @property
    def sentence(self) -> str:
        """How base, nodes and rest add up to the prediction."""
        predicted = f"Predicted {self.decision:.3f}" + (f" ({self.scale})" if self.scale else "")
        if self.class_label is not None:
            predicted = f"Predicted {self.predicted_class}; decision {self.decision:+.3f} for "
            predicted += str(self.class_label)
        nodes = float(self.node_contributions.sum())
        parts = [("base", self.base), ("nodes together", nodes), *self.rest_in_words]
        return f"{predicted}: {', '.join(f'{name} {value:+.3f}' for name, value in parts)}."

    @property
    def structure_note(self) -> str | None:
        """A sentence where nodes carry almost nothing of the prediction, else None."""
        nodes, parts = float(np.abs(self.node_contributions).sum()), self.rest_in_words
        rest = float(np.sum([value for _, value in parts]))
        if nodes >= _ALMOST_NOTHING * max(self.spread, abs(rest)):
            return None
        usual = f"training values have a standard deviation of {self.spread:.2g}"
        if self.class_label is not None:
            usual = "the classes lie at -1 and +1"
        note = "The graph itself carries almost nothing of this prediction: the contributions of "
        note += f"all nodes are {nodes:.1g} together, where {usual}"
        if parts:
            note += f", and {' and '.join(name for name, _ in parts)} add {rest:+.3g}"
        return f"{note}."

    @property
    def labels_note(self) -> str | None:
        """A sentence where the labels in patterns are degrees, else None."""
        if not self.graph.degree_labels:
            return None
        return (
            "The graph came without labels: numbers in patterns are degrees, so that 2(3,5) is a "
            "node with 2 edges, to nodes with 3 and with 5."
        )

    def draw(
        self, *, edges: bool = False, width: int = 320, height: int = 240, format: Format = "svg"
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
            note=self.structure_note and "The graph adds almost nothing to this prediction.",
        )
        return draw_graph(self.graph, self.node_contributions, by_edge, format=format, style=style)

    def __repr__(self) -> str:
        unseen = f"{self.out_of_vocabulary:.0%} of the patterns unseen"
        lines = [f"Explanation({self.sentence[:-1]}; {unseen})"]
        for row in self.pattern_contributions.head(5).to_dict("records"):
            tree = f"{row['tree']}, " if row["tree"] not in ("labels", "") else ""
            nodes = "1 node" if row["count"] == 1 else f"{row['count']} nodes"
            where = f"({tree}depth {row['depth']}, at {nodes})"
            if row["tree"] == "paths":
                where = f"(path, {row['count']} times)" if row["count"] > 1 else "(path)"
            lines.append(f"  {row['contribution']:+.3f}  {row['pattern']}  {where}")
        for row in self.descriptor_contributions.head(3).to_dict("records"):
            value = f"{row['value']:.4g}"
            lines.append(f"  {row['contribution']:+.3f}  {row['name']} = {value}  (descriptor)")
        notes = self.labels_note, self.structure_note, self.warning
        lines += [f"  {text}" for text in notes if text]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """The graph coloured by contribution, and the strongest patterns; all text is escaped."""
        drawing = self.draw() if 0 < self.graph.n_nodes <= _LARGEST_DRAWN else ""
        table = self.pattern_contributions.head(_MOST_PATTERNS)
        shown = table[["contribution", "pattern", "depth", "count"]].to_html(
            index=False, float_format="{:+.3f}".format
        )
        sentences = self.sentence, self.structure_note, self.labels_note
        notes = "".join(f"<p>{escape(x)}</p>" for x in sentences if x)
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
    unseen: float  # the contribution of patterns that training never saw

    @classmethod
    def of(cls, effects: PartEffects, sign: float) -> FoundPatterns:
        part, rows = effects.part, effects.rows
        values = sign * rows.values
        order = np.lexsort((rows.indices, -np.abs(values)))
        numbers = rows.indices[order]
        counts = effects.counts[order]
        ids = numbers + part.first_pattern
        unseen = sign * float(effects.unseen.sum())
        return cls(part.source, ids, part.weights[numbers], counts, values[order], unseen)

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
    class_label: object = None,
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
    effects = effects_of_graphs(expansion, one, row, seen=seen)
    by_node, by_edge, unseen = _over_graph(effects, one)
    share_unseen = float(seen.patterns.histograms.out_of_vocabulary()[0])
    return Explanation(
        sign * float(effects.decisions[0]),
        sign * float(effects.base[0]),
        label,
        predicted,
        sign * by_node,
        sign * by_edge,
        share_unseen,
        unseen,
        _unseen_warning(share_unseen, training.usual_out_of_vocabulary),
        _by_view(effects, model.view_names, sign),
        usual_spread(model),
        None if (scale := training.record.scale) is None else scale.in_words,
        one[0],
        tuple(FoundPatterns.of(part, sign) for part in effects.parts),
        partial(_column_table, effects.numbers, model.view_names, sign),
        partial(
            _neighbor_table,
            model,
            seen,
            row,
            sign,
            n_neighbors,
        ),
    )


def _by_view(effects: GraphEffects, names: Sequence[str], sign: float) -> pd.Series:
    """Return what each view adds to the base, of one graph."""
    rise = {x.part.view: x.ends[0, 1] - x.ends[0, 0] for x in effects.all_parts}
    values = [sign * float(rise.get(view, 0.0)) for view in range(len(names))]
    return pd.Series(values, index=pd.Index(names, name="view"), name="contribution")


def _column_table(tables: list[NumbersEffects], names: Sequence[str], sign: float) -> pd.DataFrame:
    """Return a row for each column of all tables, of one graph."""
    if not tables:
        return pd.DataFrame(columns=list(COLUMNS))
    parts = [found.table(0, names[found.part.view], sign) for found in tables]
    return pd.concat(parts, ignore_index=True)


def _over_graph(
    effects: GraphEffects, one: GraphCollection
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Divide the effects of one graph: per node, per edge, and the share of unseen patterns.

    Weisfeiler-Lehman patterns are spread over all nodes and edges that they cover, other patterns
    over the nodes that share them. The last array has a number per node.
    """
    first = effects.parts[0]
    if not isinstance(first.part.source, PatternForest):
        unseen = first.part.source.unseen_at_nodes(first.seen.colors)
        known = (first.node_shares > 0).sum(axis=0)
        return effects.phi, np.zeros(one.n_edges), unseen / np.maximum(unseen + known, 1)
    entries = entries_at_nodes(first)
    counts = np.bincount(entries[entries >= 0], minlength=len(first.rows.indices))
    shares = np.append(first.rows.values / counts, 0.0)[entries]  # the last: unseen
    by_node, by_edge = spread_over_graph(
        shares,
        first.part.source.level_depths[first.part.first_level :],
        one.neighbor_offsets,
        one.neighbors,
        one.directions,
    )
    others = [part.phi for part in effects.all_parts[1:]]
    by_node = np.sum([by_node, first.unseen_at_nodes, *others], axis=0)
    return by_node, by_edge, (entries < 0).mean(axis=0)


def _unseen_warning(share: float, limit: float) -> str | None:
    if share <= limit:
        return None
    return (
        f"Training never saw {share:.1%} of this graph's patterns (up to {limit:.1%} is usual): "
        "treat the prediction with care."
    )


def _neighbor_table(
    model: FittedModel, seen: SeenGraphs, output: int, sign: float, n_neighbors: int
) -> pd.DataFrame:
    near = nearest_graphs(seen.patterns.features, model.training_graphs.patterns, n_neighbors)
    positions = near.positions[0]
    contributions = np.zeros(len(model.training.targets))
    expansion = model.expansion
    trained = expansion.basis_indices >= 0
    added = sign * expansion.by_basis_graph(seen, output)
    contributions[expansion.basis_indices[trained]] = added[trained]
    targets = model.training.reported[positions]
    columns: dict[str, Any] = (
        {"value": targets} if model.classes is None else {"class_label": model.classes[targets]}
    )
    if model.training.limits is not None:
        columns["limit"] = [model.training.sign(k) for k in positions.tolist()]
    columns |= {"similarity": near.similarity[0], "contribution": contributions[positions]}
    index = pd.Index(model.training_positions[positions], name="training_graph")
    return pd.DataFrame(columns, index=index)


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
    source: PatternSource, patterns: np.ndarray, contributions: np.ndarray, unseen: float = 0.0
) -> pd.DataFrame:
    """Return the sum of contributions per attribute, the largest (in absolute value) first.

    ``unseen`` is the contribution of patterns that training never saw: no cell is among them.
    """
    parts: list[tuple[str, int, float]] = [("labels", 0, unseen)] if unseen else []
    for pattern, value in zip(patterns.tolist(), contributions.tolist(), strict=True):
        keys = source.asked(pattern) or [("labels", 0)]
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
    source: PatternSource,
    histograms: PatternHistograms,
    weights: np.ndarray,
    targets: np.ndarray,
    classes: np.ndarray | None = None,
) -> pd.DataFrame:
    """One row per pattern in use, sorted by weight, then support, depth and text.

    With classes, a column ``frequency CLASS`` each (mean share of the nodes of a graph that carry
    the pattern), and ``class``, where that is largest; without, the mean target of the graphs that
    have it and of the others. ``histograms`` count the last patterns of the source.
    """
    ids = np.arange(source.n_patterns - histograms.n_patterns, source.n_patterns)
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
    table = _pattern_frame(source, ids, columns)
    order = ["weight", "support", "depth", "pattern"]
    return table.sort_values(order, ascending=[False, False, True, True], kind="stable")
