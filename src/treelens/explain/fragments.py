"""The fragments that move a model's predictions, as a short table, and what comes with them."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from treelens.explain.effects import (
    GraphEffects,
    KnownInverses,
    effects_of_graphs,
    inverse_covariances,
    outputs_of,
)
from treelens.explain.fragment_search import (
    ExplainedGraphs,
    Fragment,
    Occurrence,
    mean_over_graphs,
    occurrence_at,
    pattern_texts,
    search_fragments,
    sizes_for_ranking,
    some_of,
)
from treelens.explain.jackknife import jackknife_errors
from treelens.explain.plain_words import PlainWriter, is_plain, with_degree_ranges
from treelens.graphs.collection import Graph, GraphCollection
from treelens.graphs.kinds import kind_of_facts, noun_of
from treelens.models.predictions import KernelExpansion
from treelens.parallel import progress_ticks, working_on
from treelens.patterns.forest import PatternForest, SeenGraphs, usual_trees
from treelens.patterns.vocabulary import NodeColors
from treelens.targets import positive_code

if TYPE_CHECKING:
    from treelens.explain.draw import Format

N_FRAGMENTS = 40
_LOOKED_AT = 80  # fragments, for as many as are asked for with a certain effect
_SEARCHED_DEPTH = 2  # of the patterns of graphs, where the model has no Weisfeiler-Lehman patterns
_RAREST_SHARE, _FEWEST = 0.004, 3  # of the graphs must have a fragment
_RAREST_PLAIN = 0.01  # of graphs without well-known groups, whose deep patterns all differ
_N_EXAMPLES = 3
_BESIDE = 4  # nodes that an example to be drawn should have beside the fragment
_MOST_SAMPLED = 30  # graphs that the error of an effect is measured on
_MOST_SHOWN = 40
_MOST_SCAFFOLDS = 40  # molecules of a fragment whose scaffolds are looked at
_LEAST_SHARE = 0.8  # of them with one scaffold
_ONE_CLASS = 0.9  # of the graphs with a fragment


@dataclass(frozen=True, repr=False)
class FragmentPicture:
    """A fragment where it occurs in a small graph: a cell of the column ``drawing``."""

    graph: Graph = field(compare=False)  # a model file keeps fewer facts about it
    place: Occurrence
    title: str
    holders: np.ndarray = field(compare=False)  # positions of all graphs that have the fragment

    def draw(self, *, width: int = 260, height: int = 180, format: Format = "svg") -> Any:
        """Draw the graph with the fragment highlighted, as SVG text or PNG bytes."""
        from treelens.explain.draw import Style, draw_graph

        style = Style(width, height, legend=False, title=self.title)
        return draw_graph(self.graph, highlight=self.place, style=style, format=format)

    def _repr_svg_(self) -> str:
        return str(self.draw())

    def __repr__(self) -> str:
        return self.title


class FragmentTable(pd.DataFrame):
    """DataFrame of fragments and their effects, the most important first, with drawings.

    ``attrs["size"]`` is the effect of size, apart from structure; ``attrs["toward"]`` the class
    that positive effects favour (None for regression); ``attrs["left_out"]`` whether all graphs
    were training graphs and each was explained without itself; ``attrs["none"]`` why there are no
    fragments, None where there are some.
    """

    @property
    def _constructor(self) -> type[FragmentTable]:
        return FragmentTable

    def title(self, rank: int) -> str:
        """The name of a fragment, or its pattern where no name fits."""
        return str(self.loc[rank, "name"] or self.loc[rank, "pattern"])

    def draw(
        self, rank: int, *, width: int = 260, height: int = 180, format: Format = "svg"
    ) -> Any:
        """Draw the fragment of one row, highlighted in a small graph, as SVG text or PNG bytes.

        ``rank`` is the row's label in the index, whatever was done with the index.
        """
        if "drawing" not in self:
            raise KeyError("This table has lost its column 'drawing': keep it to draw fragments.")
        rows = np.flatnonzero(self.index == rank)
        if len(rows) > 1:
            raise KeyError(f"{len(rows)} rows have the index {rank!r}: call reset_index() first.")
        if not len(rows):
            raise KeyError(f"There is no fragment {rank!r}; the ranks are {list(self.index)}.")
        picture: FragmentPicture = self["drawing"].iloc[rows[0]]
        return picture.draw(width=width, height=height, format=format)

    def __repr__(self) -> str:
        return str(self.attrs.get("none") or super().__repr__())

    def _repr_html_(self) -> str:
        """Rows with drawings, for notebooks; all text is escaped."""
        if self.attrs.get("none"):
            return f"<p>{escape(self.attrs['none'])}</p>"
        if "drawing" not in self:
            return str(pd.DataFrame(self).to_html(max_rows=60, notebook=True))
        shown = pd.DataFrame(self).head(_MOST_SHOWN).map(_cell)
        for effect, error in (("effect", "error"), ("conditional_effect", "conditional_error")):
            if effect in shown and error in shown:
                shown[effect] += " ± " + shown.pop(error).str.lstrip("+")
        drawings = shown.pop("drawing")
        shown.columns = [escape(str(column)) for column in shown.columns]
        shown.insert(0, "", drawings)
        more = len(self) - len(shown)
        with pd.option_context("display.max_colwidth", None):
            page = str(shown.to_html(escape=False, index=False))
        return page + (f"<p>{more} more rows are not shown.</p>" if more else "")


def _cell(value: object) -> str:
    if isinstance(value, FragmentPicture):
        # pandas writes line ends and double blanks as text, which breaks off attributes.
        return " ".join(value._repr_svg_().split())
    if isinstance(value, float):
        return f"{value:+.3f}"
    return escape(", ".join(map(str, value)) if isinstance(value, list) else str(value))


@progress_ticks(None, "Fragments")
def fragment_table(
    expansion: KernelExpansion,
    graphs: GraphCollection,
    targets: np.ndarray | None = None,
    class_label: object = None,
    *,
    n_fragments: int = N_FRAGMENTS,
    min_support: int | None = None,
    n_jobs: int = 1,
    seen: SeenGraphs | None = None,
    smarts: bool = True,
    known: KnownInverses | None = None,
) -> FragmentTable:
    """The fragments that move predictions, the most important first.

    See :meth:`treelens.GraphRegressor.fragments`; ``targets`` are class codes or values of the
    graphs, ``seen`` are the refined graphs, if at hand, ``known`` as in
    :func:`treelens.explain.effects.inverse_covariances`.
    """
    seen = expansion.refine(graphs, n_jobs=n_jobs) if seen is None else seen
    inverses, classes = inverse_covariances(expansion, n_jobs, known), expansion.classes
    forest, colors = _forest_to_search(expansion, graphs, seen, n_jobs)
    if min_support is None:
        share = _RAREST_PLAIN if is_plain(graphs) else _RAREST_SHARE
        min_support = max(_FEWEST, round(share * len(graphs)))
    settings = _Search(n_fragments, min_support, n_jobs, is_plain(graphs))
    found: list[tuple[float, Any, Fragment]] = []  # what orders it, class, fragment
    size, left_out = {}, True
    for output, sign, label in outputs_of(classes, class_label):
        of = "" if label is None else f" of {label}"
        working_on(f"effects{of} in {len(graphs):,} {noun_of(graphs.recipe)}")
        effects = effects_of_graphs(expansion, graphs, output, n_jobs, seen, inverses)
        explained = ExplainedGraphs(forest, graphs, colors, effects.phi)
        order = np.inf
        for fragment in _certain_ones(explained, effects, inverses, output, sign, settings):
            # Fragments of several classes are merged by score; those of one keep their order.
            order = min(order, abs(fragment.score))
            found.append((order, label, fragment))
        left_out = all(effects.copies)
        size[label] = _effect_of_size(explained, sign)
    sizes = sizes_for_ranking(np.array([order for order, _, _ in found]))
    found = [found[k] for k in np.argsort(-sizes, kind="stable")[:n_fragments]]
    kept = [fragment for _, _, fragment in found]
    table = _table(explained, kept, targets, classes, smarts)
    if len(size) > 1 or next(iter(size)) is not None:
        table.insert(0, "class_label", [label for _, label, _ in found])
    if class_label is None and (code := positive_code(classes)) is not None:
        class_label = classes[code]  # type: ignore[index]
    noun = noun_of(graphs.recipe)
    none = f"No fragment in at least {min_support} {noun} has an effect beyond two standard errors."
    table.attrs = {
        "size": size if len(size) > 1 else next(iter(size.values())),
        "left_out": left_out,
        "toward": None if class_label is None else str(class_label),
        "none": None if kept else none,
    }
    return table


def _effect_of_size(explained: ExplainedGraphs, sign: float) -> dict[str, float]:
    """Return the mean contribution of a node, whatever it is, and that of a graph of usual size."""
    node = mean_over_graphs(explained.phi, explained.graph_of_node)  # within graphs first
    n_nodes, mean = float(explained.graphs.sizes.mean()), sign * node.mean
    return {
        "per_node": mean,
        "error": node.error,
        "mean_nodes": n_nodes,
        "effect": mean * n_nodes,
    }


def _forest_to_search(
    expansion: KernelExpansion, graphs: GraphCollection, seen: SeenGraphs, n_jobs: int
) -> tuple[PatternForest, NodeColors]:
    """Return the patterns that fragments are found among: the model's, or those of the graphs."""
    source, depth = expansion.parts[0].source, _SEARCHED_DEPTH
    coarse = with_degree_ranges(graphs)
    if isinstance(source, PatternForest):
        if coarse is graphs:
            return source, seen.patterns.colors
        depth = source.depth
    return PatternForest.fit(coarse, depth, usual_trees(coarse), n_jobs)


def _certain_ones(
    explained: ExplainedGraphs,
    effects: GraphEffects,
    inverses: tuple[np.ndarray, ...] | None,
    output: int,
    sign: float,
    settings: _Search,
) -> list[Fragment]:
    """Return fragments whose effects are beyond two standard errors, the most important first."""
    n, found = settings.n_fragments, list[Fragment]()
    most = max(_LOOKED_AT, 2 * n)
    fragments = search_fragments(explained, most if n else 0, settings.min_support, settings.labels)
    for start in range(0, len(fragments), max(n, 1)):  # errors take time: no more than are needed
        some = fragments[start : start + n]
        working_on(f"errors of {start + len(some)} of {len(fragments)}")
        regions = [_sampled_region(explained, fragment) for fragment in some]
        errors = jackknife_errors(effects, regions, inverses, output, settings.n_jobs).tolist()
        signed = (f.signed(sign, error) for f, error in zip(some, errors, strict=True))
        found += [fragment for fragment in signed if fragment.is_significant]
        if len(found) >= n:
            break
    return found[:n]


class _Search(NamedTuple):
    n_fragments: int
    min_support: int
    n_jobs: int
    labels: bool  # whether single nodes are fragments, too


def _sampled_region(
    explained: ExplainedGraphs, fragment: Fragment
) -> tuple[np.ndarray, np.ndarray]:
    """Nodes of a fragment in some of its graphs, and their weights in the mean effect."""
    owner = explained.graph_of_node[fragment.roots]
    graphs, counts = np.unique(owner, return_counts=True)
    sample = some_of(graphs, _MOST_SAMPLED)
    chosen = np.isin(owner, sample)
    per_root = 1.0 / (len(sample) * counts[np.searchsorted(graphs, owner[chosen])])
    balls = explained.balls(fragment.roots[chosen], fragment.depth)
    nodes, place = np.unique(balls.indices, return_inverse=True)
    return nodes, np.bincount(place, weights=np.repeat(per_root, np.diff(balls.indptr)))


def _table(
    explained: ExplainedGraphs,
    fragments: list[Fragment],
    targets: np.ndarray | None,
    classes: np.ndarray | None,
    smarts: bool,
) -> FragmentTable:
    graphs, names = explained.graphs, explained.graphs.names
    having = [np.unique(explained.graph_of_node[f.roots]) for f in fragments]
    texts = [_text_of(explained.forest, f) for f in fragments]
    writer = kind_of_facts(graphs.graph_data).fragment_writer(explained)
    if is_plain(graphs):
        writer = plain = PlainWriter(explained, graphs.degree_labels)
        texts = [plain.pattern(f) or text for f, text in zip(fragments, texts, strict=True)]
    columns: dict[str, Any] = {
        "name": _told_apart(fragments, [writer.name(f) for f in fragments], texts)
    }
    if smarts and writer.column is not None:
        columns[writer.column] = [writer.text(f) for f in fragments]
    columns |= {
        "pattern": texts,
        "depth": [f.depth for f in fragments],
        "effect": [f.effect.mean for f in fragments],
        "error": [f.effect.error for f in fragments],
        "conditional_effect": [f.beyond.mean for f in fragments],
        "conditional_error": [f.beyond.error for f in fragments],
        "total": [f.total for f in fragments],
        "support": [len(found) for found in having],
    }
    if targets is not None and classes is None:
        columns["mean_value"] = [float(targets[found].mean()) for found in having]
    elif targets is not None and classes is not None:
        for code, label in enumerate(classes.tolist()):
            counts = [int((targets[found] == code).sum()) for found in having]
            columns[f"support {label}"] = counts
    smallest = [h[np.argsort(graphs.sizes[h], kind="stable")][:_N_EXAMPLES] for h in having]
    columns["examples"] = [(h if names is None else names[h]).tolist() for h in smallest]
    table = FragmentTable(columns, index=pd.RangeIndex(1, len(fragments) + 1, name="rank"))
    pictures = []
    for rank, fragment, holders in zip(table.index, fragments, having, strict=True):
        graph, place = _small_example(explained, fragment)
        effect = f"{fragment.effect.mean:+.2f} ± {fragment.effect.error:.2f}"
        title = f"Fragment {rank}: {table.title(rank)}, {len(place.nodes)} nodes highlighted in "
        title += f"graph {place.graph_index if graph.name is None else graph.name}; "
        title += f"effect {effect}, in {len(holders)} graphs"
        pictures.append(FragmentPicture(graph, place, title, holders))
    return table.assign(drawing=pd.Series(pictures, index=table.index, dtype=object))


def _told_apart(fragments: list[Fragment], names: list[str], texts: list[str]) -> list[str]:
    """Return names that stand for one fragment each: later ones are followed by their pattern.

    A fragment may stand in several rows, one for each of several classes.
    """
    known: dict[str, tuple[int, ...]] = {}
    for k, (fragment, name, text) in enumerate(zip(fragments, names, texts, strict=True)):
        own = fragment.patterns
        tried = [name, f"{name}: {text}", *(f"{name}: {text}, {n}" for n in range(2, k + 3))]
        names[k] = next(x for x in tried if not name or known.get(x, own) == own)
        known[names[k]] = own
    return names


def _text_of(forest: PatternForest, fragment: Fragment) -> str:
    """The text of a fragment; a single atom of any kind is told from one of a fine label."""
    texts = pattern_texts(forest, fragment.patterns)
    if fragment.depth == 0 and any(name.startswith("fine") for name in forest.trees):
        trees = forest.tree_names(np.asarray(fragment.patterns))
        pairs = zip(texts, trees, strict=True)
        texts = [f"any {text}" if tree.startswith("labels") else text for text, tree in pairs]
    return " | ".join(texts)


def _small_example(explained: ExplainedGraphs, fragment: Fragment) -> tuple[Graph, Occurrence]:
    """A small graph, with a few nodes beside the fragment if possible, and the occurrence there."""
    roots = explained.carriers(fragment.patterns[0])
    sizes = explained.graphs.sizes[explained.graph_of_node[roots]]
    inside = np.diff(explained.balls(roots, fragment.depth).indptr)
    k = int(np.lexsort((roots, sizes, sizes < inside + _BESIDE))[0])
    graph, row = int(explained.graph_of_node[roots[k]]), int(roots[k])
    place = occurrence_at(explained.graphs, graph, row, fragment.patterns[0], fragment.depth)
    return explained.graphs[graph], place


# --- what else is known of the graphs that have a fragment ------------------------------------


def measured_with_and_without(
    holders: np.ndarray, targets: np.ndarray, n_classes: int | None = None
) -> tuple[Any, Any]:
    """Return the mean value, or the shares of classes, of graphs with a fragment and of the others.

    ``holders`` are positions of the graphs that have it; None stands for no graphs.
    """
    inside = np.zeros(len(targets), dtype=bool)
    inside[holders] = True

    def measured(part: np.ndarray) -> Any:
        if not len(part):
            return None
        if n_classes is None:
            return float(part.mean())
        return (np.bincount(part, minlength=n_classes) / len(part)).tolist()

    return measured(targets[inside]), measured(targets[~inside])


def confounders(
    graphs: GraphCollection,
    holders: np.ndarray,
    targets: np.ndarray | None = None,
    classes: np.ndarray | None = None,
    scaffolds: dict[int, str] | None = None,  # known ones, by position
) -> list[str]:
    """Return what the graphs with a fragment share beside it, which may be behind its effect."""
    found, n = [], len(holders)
    if classes is not None and targets is not None:
        counts, in_all = np.bincount(targets[holders], minlength=len(classes)), np.bincount(targets)
        if counts.max() >= _ONE_CLASS * n and in_all.max() < _ONE_CLASS * len(targets):
            found.append(f"{counts.max()} of {n} are of class {classes[counts.argmax()]}")
    known = {} if scaffolds is None else scaffolds
    kind = kind_of_facts(graphs.graph_data)

    def of_some(positions: np.ndarray) -> list[str] | None:
        sample = some_of(positions, _MOST_SCAFFOLDS)
        new = np.array([k for k in sample.tolist() if k not in known], dtype=np.int64)
        families = kind.families(graphs[new])
        if families is None:
            return None
        known.update(zip(new.tolist(), families, strict=True))
        return [known[k] for k in sample.tolist()]

    sample = of_some(holders)
    if not sample:
        return found
    names, counts = np.unique(sample, return_counts=True)
    n_same, scaffold = int(counts.max()), str(names[counts.argmax()])
    if n_same < _LEAST_SHARE * len(sample) or not scaffold:  # chains have no scaffold to share
        return found
    others = of_some(np.setdiff1d(np.arange(len(graphs)), holders))
    if others and others.count(scaffold) < 0.5 * len(others):  # else most molecules have it
        looked_at = "" if len(sample) == n else "looked at "
        found.append(f"{n_same} of {len(sample)} {looked_at}have the scaffold {scaffold}")
    return found


def fragment_smiles(graph: Graph, place: Occurrence) -> str | None:
    """Return the SMILES of the atoms of a fragment where it occurs; None for other graphs."""
    return kind_of_facts(graph.data).text_of_part(graph, place.nodes)
