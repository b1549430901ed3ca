"""The fragments that move a model's predictions, as a short table."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd

from treelens.explain.contributions import outputs_of
from treelens.explain.decode import Occurrence, occurrence_at, pattern_texts
from treelens.explain.draw import Style, draw_graph
from treelens.explain.effects import GraphEffects, Region, effects_of_graphs, jackknife_errors
from treelens.explain.expansion import KernelExpansion
from treelens.explain.fragment_search import (
    ExplainedGraphs,
    Fragment,
    mean_over_graphs,
    search_fragments,
    sizes_for_ranking,
)
from treelens.explain.group_names import group_name
from treelens.explain.layout import is_molecule
from treelens.explain.smarts import FragmentWriter, atom_label_of
from treelens.graphs.collection import Graph, GraphCollection
from treelens.patterns.features import RefinedGraphs
from treelens.patterns.forest import TREES

N_FRAGMENTS = 40
_RAREST_SHARE, _FEWEST = 0.004, 3  # of the graphs must have a fragment
_WELL_SUPPORTED_SHARE, _WELL_SUPPORTED = 0.02, 5  # of the graphs, for the strongest
_SAME = 0.6  # of the smaller of two fragments' nodes
_N_EXAMPLES = 3
_BESIDE = 4  # nodes that an example to be drawn should have beside the fragment
_MOST_SAMPLED = 30  # graphs that the error of an effect is measured on
_MOST_SHOWN = 40


class FragmentTable(pd.DataFrame):
    """DataFrame of fragments and their effects, the most important first, with drawings.

    ``attrs["size"]`` is the effect of size, apart from structure; ``attrs["toward"]`` the class
    that positive effects favour (None for regression); ``attrs["left_out"]`` whether all graphs
    were training graphs and each was explained without itself.
    """

    _metadata: ClassVar[list[str]] = ["pictures", "holders"]
    pictures: dict[int, tuple[Graph, Occurrence]] | None = None
    holders: dict[int, np.ndarray] | None = None  # positions of the graphs that have a fragment

    @property
    def _constructor(self) -> type[FragmentTable]:
        return FragmentTable

    def strongest(self, n: int = 3) -> FragmentTable:
        """The fragments with the largest absolute effects among well-supported, distinct ones."""
        return self.loc[[rank for rank in self.attrs["strongest"] if rank in self.index][:n]]

    def title(self, rank: int) -> str:
        """The name of a fragment, or its pattern where no name fits."""
        return str(self.loc[rank, "name"] or self.loc[rank, "pattern"])

    def draw(self, rank: int, *, width: int = 260, height: int = 180, format: Any = "svg") -> Any:
        """Draw the fragment of one row, highlighted in a small graph, as SVG text or PNG bytes."""
        if self.pictures is None or rank not in self.pictures:
            raise KeyError(f"There is no fragment {rank!r}; the ranks are {list(self.index)}.")
        graph, place = self.pictures[rank]
        style = Style(width, height, legend=False, title=self.text(rank))
        return draw_graph(graph, highlight=place, style=style, format=format)

    def text(self, rank: int) -> str:
        """The title of a drawing, for screen readers."""
        row = self.loc[rank]
        graph, place = (self.pictures or {})[rank]
        where = f" in graph {place.graph_index if graph.name is None else graph.name}"
        return (
            f"Fragment {rank}: {self.title(rank)}, {len(place.nodes)} nodes highlighted{where}; "
            f"effect {row['effect']:+.2f} ± {row['error']:.2f}, in {row['support']} graphs"
        )

    def _repr_html_(self) -> str:
        """Rows with drawings, for notebooks; all text is escaped."""
        needed = {"name", "pattern", "effect", "error", "support"}
        if not needed <= set(self.columns) or self.pictures is None:
            return str(pd.DataFrame(self).to_html(max_rows=60, notebook=True))
        columns = [c for c in self.columns if c not in ("error", "conditional_error")]
        head = "".join(f'<th scope="col">{escape(str(c))}</th>' for c in ["", *columns])
        rows = "".join(
            f"<tr><td>{self.draw(rank) if rank in self.pictures else ''}</td>"
            + "".join(f"<td>{escape(self._cell(rank, c))}</td>" for c in columns)
            + "</tr>"
            for rank in self.index[:_MOST_SHOWN]
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"

    def _cell(self, rank: int, column: str) -> str:
        value: Any = self.loc[rank, column]
        errors = {"effect": "error", "conditional_effect": "conditional_error"}
        if column in errors and errors[column] in self.columns:
            error: Any = self.loc[rank, errors[column]]
            return f"{value:+.3f} ± {error:.3f}"
        if isinstance(value, float):
            return f"{value:+.3f}"
        return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


class FoundFragments(NamedTuple):
    """Fragments of one output of a model on some graphs."""

    effects: GraphEffects
    explained: ExplainedGraphs
    fragments: list[Fragment]


def find_fragments(
    expansion: KernelExpansion,
    graphs: GraphCollection,
    output: int = 0,
    *,
    n_fragments: int = N_FRAGMENTS,
    min_support: int | None = None,
    n_jobs: int = 1,
    seen: RefinedGraphs | None = None,
) -> FoundFragments:
    """Explain all graphs and search for the fragments that move their predictions.

    Training graphs, in any order, are explained without themselves; see
    :mod:`treelens.explain.effects`. ``output`` is the code of the class with more than two
    classes; ``min_support`` by default 0.4 % of the graphs, at least 3; ``seen`` the refined
    graphs, if at hand.
    """
    effects = effects_of_graphs(expansion, graphs, output, n_jobs, seen)
    explained = ExplainedGraphs(expansion.forest, graphs, effects.colors, effects.phi)
    if min_support is None:
        min_support = max(_FEWEST, round(_RAREST_SHARE * len(graphs)))
    found = search_fragments(explained, n_fragments, min_support, expansion.forest.depth)
    return FoundFragments(effects, explained, found)


def fragment_table(
    expansion: KernelExpansion,
    graphs: GraphCollection,
    targets: np.ndarray | None = None,
    class_label: Any = None,
    *,
    n_fragments: int = N_FRAGMENTS,
    min_support: int | None = None,
    n_jobs: int = 1,
    seen: RefinedGraphs | None = None,
    smarts: bool = True,
) -> FragmentTable:
    """The fragments that move predictions, the most important first.

    ``targets`` are class codes or values of the graphs. Positive effects favour ``class_label``,
    by default with two classes the second; with more, the table has fragments of all of them and
    each row's class. ``smarts``: whether to write fragments of molecules as SMARTS. See
    :func:`find_fragments` for the others.
    """
    parts, pictures, covered, size, left_out = [], [], [], {}, True
    holders: list[np.ndarray] = []
    for output, sign, label in outputs_of(expansion, class_label):
        found = find_fragments(
            expansion, graphs, output,
            n_fragments=n_fragments, min_support=min_support, n_jobs=n_jobs, seen=seen,
        )  # fmt: skip
        seen = found.effects.seen
        part = _rows(found, targets, sign, smarts, effect_errors(found, output, n_jobs))
        if label is not None:
            part.insert(0, "class_label", label)
        parts.append(part)
        pictures += [_picture(found.explained, fragment) for fragment in found.fragments]
        holders += [np.unique(found.explained.graph_of_node[f.roots]) for f in found.fragments]
        covered += [found.explained.covered(f.roots, f.depth) for f in found.fragments]
        size[label] = size_effect(found.explained, sign)
        left_out = all(found.effects.copies)
    table = FragmentTable(pd.concat(parts))
    sizes = sizes_for_ranking(table.pop("_order").to_numpy())
    order = np.argsort(-sizes, kind="stable")[:n_fragments]
    table = table.iloc[order]
    table.index = pd.RangeIndex(1, len(table) + 1, name="rank")
    table.pictures = {rank: pictures[k] for rank, k in enumerate(order.tolist(), start=1)}
    table.holders = {rank: holders[k] for rank, k in enumerate(order.tolist(), start=1)}
    table.attrs["size"] = size if len(size) > 1 else next(iter(size.values()))
    table.attrs["left_out"] = left_out
    classes = expansion.classes
    if classes is not None and class_label is None and len(classes) == 2:
        class_label = classes[1]
    table.attrs["toward"] = None if class_label is None else str(class_label)
    least = max(_WELL_SUPPORTED, round(_WELL_SUPPORTED_SHARE * len(graphs)))
    table.attrs["strongest"] = _strongest(table, [covered[k] for k in order.tolist()], least)
    return table


def size_effect(explained: ExplainedGraphs, sign: float = 1.0) -> dict[str, float]:
    """The effect of the size of a graph, whatever its nodes are.

    ``per_node`` is the mean contribution of a node, averaged within graphs first, ``error`` its
    standard error; ``effect`` that of a graph of ``mean_nodes`` nodes.
    """
    mean = mean_over_graphs(explained.phi, explained.graph_of_node)
    nodes = float(explained.graphs.sizes.mean())
    return {
        "per_node": sign * mean.mean,
        "error": mean.error,
        "mean_nodes": nodes,
        "effect": sign * mean.mean * nodes,
    }


def effect_errors(found: FoundFragments, output: int = 0, n_jobs: int = 1) -> np.ndarray:
    """Standard errors of the effects of fragments: over graphs and over the training sample.

    Their squares are added. The second, by the jackknife over training graphs, is measured on some
    of the graphs; without a closed form (support vector machine, landmarks) it is 0.
    """
    explained, regions = found.explained, []
    for fragment in found.fragments:
        owner = explained.graph_of_node[fragment.roots]
        graphs, counts = np.unique(owner, return_counts=True)
        sample = graphs[:: max(1, -(-len(graphs) // _MOST_SAMPLED))]
        chosen = np.isin(owner, sample)
        roots = fragment.roots[chosen]
        per_root = 1.0 / (len(sample) * counts[np.searchsorted(graphs, owner[chosen])])
        balls = explained.balls(roots, fragment.depth)
        weights = np.repeat(per_root, np.diff(balls.indptr))
        nodes, place = np.unique(balls.indices, return_inverse=True)
        regions.append(Region(nodes, np.bincount(place, weights=weights)))
    over_graphs = np.array([fragment.effect.error for fragment in found.fragments])
    return np.hypot(over_graphs, jackknife_errors(found.effects, regions, output, n_jobs))


# --- rows -------------------------------------------------------------------------------------


def _rows(
    found: FoundFragments,
    targets: np.ndarray | None,
    sign: float,
    smarts: bool,
    errors: np.ndarray,
) -> pd.DataFrame:
    explained, fragments = found.explained, found.fragments
    columns: dict[str, Any] = _chemistry(explained, fragments, smarts)
    columns["pattern"] = [
        " | ".join(pattern_texts(explained.forest, f.patterns)) for f in fragments
    ]
    columns["depth"] = [f.depth for f in fragments]
    columns["effect"] = [sign * f.effect.mean for f in fragments]
    columns["error"] = errors
    columns["conditional_effect"] = [sign * f.beyond.mean for f in fragments]
    columns["conditional_error"] = [f.beyond.error for f in fragments]
    columns["total"] = [sign * f.total for f in fragments]
    having = [np.unique(explained.graph_of_node[f.roots]) for f in fragments]
    columns["support"] = [len(graphs) for graphs in having]
    classes = found.effects.expansion.classes
    if targets is not None and classes is None:
        columns["mean_value"] = [float(targets[graphs].mean()) for graphs in having]
    elif targets is not None and classes is not None:
        for code, label in enumerate(classes.tolist()):
            counts = [int((targets[graphs] == code).sum()) for graphs in having]
            columns[f"support {label}"] = counts
    names, sizes = explained.graphs.names, explained.graphs.sizes
    examples = [graphs[np.argsort(sizes[graphs], kind="stable")][:_N_EXAMPLES] for graphs in having]
    columns["examples"] = [
        [k if names is None else explained.graphs[k].name for k in graphs.tolist()]
        for graphs in examples
    ]
    # Fragments of several classes are merged by score, those of one keep the order of the search.
    scores = np.abs([f.score for f in fragments]).astype(float)
    columns["_order"] = np.minimum.accumulate(scores) if len(scores) else scores
    return pd.DataFrame(columns)


def _strongest(table: FragmentTable, covered: Sequence[np.ndarray], least: int) -> list[int]:
    """Ranks by absolute effect, of distinct fragments with enough support (or any, if none has)."""
    supported = np.flatnonzero(table["support"].to_numpy() >= least)
    supported = supported if len(supported) else np.arange(len(table))
    size = sizes_for_ranking(table["effect"].to_numpy()[supported])
    taken: list[int] = []
    for k in supported[np.argsort(-size, kind="stable")].tolist():
        shared = [
            len(np.intersect1d(covered[k], covered[other], assume_unique=True))
            / min(len(covered[k]), len(covered[other]))
            for other in taken
        ]
        if max(shared, default=0.0) <= _SAME:
            taken.append(k)
    return [k + 1 for k in taken]


def _chemistry(
    explained: ExplainedGraphs, fragments: list[Fragment], smarts: bool
) -> dict[str, Any]:
    """Names and, with ``smarts``, SMARTS of fragments of molecules; other graphs have neither."""
    graphs, forest = explained.graphs, explained.forest
    if not len(graphs) or not is_molecule(graphs[0]):
        return {"name": [""] * len(fragments)}
    trees = zip(forest.vocabularies, forest.trees, strict=True)
    own = [vocabulary for vocabulary, tree in trees if TREES[tree][0] == "labels"]
    kind = atom_label_of(graphs, own[0]) if own and smarts else "element"
    writer = FragmentWriter(explained, kind or "unknown")
    columns: dict[str, Any] = {
        "name": [group_name(explained, fragment, writer.molecule) for fragment in fragments]
    }
    if smarts:
        columns["smarts"] = [writer.smarts(fragment) for fragment in fragments]
    return columns


def _picture(explained: ExplainedGraphs, fragment: Fragment) -> tuple[Graph, Occurrence]:
    """A small graph, with a few nodes beside the fragment if possible, and the occurrence there."""
    roots = explained.carriers(fragment.patterns[0])
    sizes = explained.graphs.sizes[explained.graph_of_node[roots]]
    inside = np.diff(explained.balls(roots, fragment.depth).indptr)
    k = int(np.lexsort((roots, sizes, sizes < inside + _BESIDE))[0])
    graph, row = int(explained.graph_of_node[roots[k]]), int(roots[k])
    place = occurrence_at(explained.graphs, graph, row, fragment.patterns[0], fragment.depth)
    return explained.graphs[graph], place
