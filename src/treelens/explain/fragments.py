"""The fragments that move a model's predictions, as a short table, and what comes with them."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from treelens.explain.contributions import outputs_of
from treelens.explain.decode import Occurrence, occurrence_at, pattern_texts
from treelens.explain.draw import Style, draw_graph, is_molecule
from treelens.explain.effects import (
    GraphEffects,
    effects_of_graphs,
    inverse_covariance,
    jackknife_errors,
)
from treelens.explain.fragment_search import (
    ExplainedGraphs,
    Fragment,
    mean_over_graphs,
    search_fragments,
    sizes_for_ranking,
)
from treelens.explain.group_names import group_name
from treelens.explain.smarts import FragmentWriter
from treelens.graphs.collection import Graph, GraphCollection
from treelens.graphs.molecules import molecule_of
from treelens.graphs.recipe import noun_of
from treelens.models.predictions import KernelExpansion
from treelens.patterns.features import RefinedGraphs

N_FRAGMENTS = 40
_RAREST_SHARE, _FEWEST = 0.004, 3  # of the graphs must have a fragment
_WELL_SUPPORTED_SHARE, _WELL_SUPPORTED = 0.02, 5  # of the graphs, for the strongest
_SAME = 0.6  # of the smaller of two fragments' nodes
_N_EXAMPLES = 3
_BESIDE = 4  # nodes that an example to be drawn should have beside the fragment
_MOST_SAMPLED = 30  # graphs that the error of an effect is measured on
_MOST_SHOWN = 40
_MOST_SCAFFOLDS = 40  # molecules of a fragment whose scaffolds are looked at
_LEAST_SHARE = 0.8  # of them with one scaffold
_ONE_CLASS = 0.9  # of the graphs with a fragment


class FragmentTable(pd.DataFrame):
    """DataFrame of fragments and their effects, the most important first, with drawings.

    ``attrs["size"]`` is the effect of size, apart from structure; ``attrs["toward"]`` the class
    that positive effects favour (None for regression); ``attrs["left_out"]`` whether all graphs
    were training graphs and each was explained without itself; ``attrs["none"]`` why there are no
    fragments, None where there are some.
    """

    _metadata: ClassVar[list[str]] = ["pictures", "holders"]
    pictures: Any = None  # by rank: a graph, and the fragment's occurrence in it
    holders: Any = None  # by rank: positions of the graphs that have the fragment

    @property
    def _constructor(self) -> type[FragmentTable]:
        return FragmentTable

    def title(self, rank: int) -> str:
        """The name of a fragment, or its pattern where no name fits."""
        return str(self.loc[rank, "name"] or self.loc[rank, "pattern"])

    def draw(self, rank: int, *, width: int = 260, height: int = 180, format: Any = "svg") -> Any:
        """Draw the fragment of one row, highlighted in a small graph, as SVG text or PNG bytes."""
        if rank not in (self.pictures or {}):
            raise KeyError(f"There is no fragment {rank!r}; the ranks are {list(self.index)}.")
        graph, place = self.pictures[rank]
        row, where = self.loc[rank], place.graph_index if graph.name is None else graph.name
        title = (
            f"Fragment {rank}: {self.title(rank)}, {len(place.nodes)} nodes highlighted in graph "
            f"{where}; effect {row['effect']:+.2f} ± {row['error']:.2f}, in {row['support']} graphs"
        )
        style = Style(width, height, legend=False, title=title)
        return draw_graph(graph, highlight=place, style=style, format=format)

    def __repr__(self) -> str:
        return str(self.attrs.get("none") or super().__repr__())

    def _repr_html_(self) -> str:
        """Rows with drawings, for notebooks; all text is escaped."""
        if self.attrs.get("none"):
            return f"<p>{escape(self.attrs['none'])}</p>"
        pictures = self.pictures or {}
        if not {"name", "pattern", "effect", "error", "support"} <= set(self.columns):
            return str(pd.DataFrame(self).to_html(max_rows=60, notebook=True))
        shown = pd.DataFrame(self).head(_MOST_SHOWN).map(_cell)
        for effect, error in (("effect", "error"), ("conditional_effect", "conditional_error")):
            if effect in shown and error in shown:
                shown[effect] += " ± " + shown.pop(error).str.lstrip("+")
        shown.columns = [escape(str(column)) for column in shown.columns]
        shown.insert(0, "", [self.draw(k) if k in pictures else "" for k in shown.index])
        with pd.option_context("display.max_colwidth", None):
            return str(shown.to_html(escape=False, index=False))


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:+.3f}"
    return escape(", ".join(map(str, value)) if isinstance(value, list) else str(value))


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

    See :meth:`treelens.GraphRegressor.fragments`; ``targets`` are class codes or values of the
    graphs, ``seen`` are the refined graphs, if at hand.
    """
    seen = expansion.refine(graphs, n_jobs=n_jobs) if seen is None else seen
    inverse, classes = inverse_covariance(expansion, n_jobs), expansion.classes
    if min_support is None:
        min_support = max(_FEWEST, round(_RAREST_SHARE * len(graphs)))
    parts, size, left_out = [], {}, True
    for output, sign, label in outputs_of(classes, class_label):
        effects = effects_of_graphs(expansion, graphs, output, n_jobs, seen, inverse)
        explained = ExplainedGraphs(expansion.forest, graphs, seen.colors, effects.phi)
        found = search_fragments(explained, n_fragments, min_support)
        regions = [_sampled_region(explained, fragment) for fragment in found]
        errors = jackknife_errors(effects, regions, inverse, output, n_jobs)
        part = _rows(effects, explained, found, targets, sign, smarts)
        # Over graphs and over the sample of training graphs.
        part["error"] = np.hypot([f.effect.error for f in found], errors)
        if label is not None:
            part.insert(0, "class_label", label)
        parts.append(part)
        left_out = all(effects.copies)
        # The effect of the size of a graph, whatever its nodes are: the mean contribution of a
        # node, averaged within graphs first, and that of a graph of usual size.
        node = mean_over_graphs(explained.phi, explained.graph_of_node)
        n_nodes = float(graphs.sizes.mean())
        size[label] = {
            "per_node": sign * node.mean,
            "error": node.error,
            "mean_nodes": n_nodes,
            "effect": sign * node.mean * n_nodes,
        }
    table = FragmentTable(pd.concat(parts))
    sizes = sizes_for_ranking(table.pop("_order").to_numpy())
    table = table.iloc[np.argsort(-sizes, kind="stable")[:n_fragments]]
    table.index = pd.RangeIndex(1, len(table) + 1, name="rank")
    covered: list[np.ndarray] = table.pop("_covered").tolist()
    table.pictures = dict(zip(table.index.tolist(), table.pop("_picture"), strict=True))
    table.holders = dict(zip(table.index.tolist(), table.pop("_holders"), strict=True))
    if classes is not None and class_label is None and len(classes) == 2:
        class_label = classes[1]
    least = max(_WELL_SUPPORTED, round(_WELL_SUPPORTED_SHARE * len(graphs)))
    table.attrs = {
        "size": size if len(size) > 1 else next(iter(size.values())),
        "left_out": left_out,
        "toward": None if class_label is None else str(class_label),
        "strongest": _strongest(table, covered, least),
        "none": None,
    }
    if not len(table):
        noun = noun_of(graphs.recipe)
        table.attrs["none"] = (
            f"No fragment in at least {min_support} of the {noun} has an effect beyond two "
            "standard errors."
            if expansion.forest.depth
            else f"No fragments: the patterns of this model are single "
            f"{'atoms' if noun == 'molecules' else 'nodes'} (depth 0). Fit it with depth=2 "
            "(--depth 2) to see fragments."
        )
    return table


def _sampled_region(
    explained: ExplainedGraphs, fragment: Fragment
) -> tuple[np.ndarray, np.ndarray]:
    """Nodes of a fragment in some of its graphs, and their weights in the mean effect."""
    owner = explained.graph_of_node[fragment.roots]
    graphs, counts = np.unique(owner, return_counts=True)
    sample = graphs[:: max(1, -(-len(graphs) // _MOST_SAMPLED))]
    chosen = np.isin(owner, sample)
    per_root = 1.0 / (len(sample) * counts[np.searchsorted(graphs, owner[chosen])])
    balls = explained.balls(fragment.roots[chosen], fragment.depth)
    nodes, place = np.unique(balls.indices, return_inverse=True)
    return nodes, np.bincount(place, weights=np.repeat(per_root, np.diff(balls.indptr)))


def _rows(
    effects: GraphEffects,
    explained: ExplainedGraphs,
    fragments: list[Fragment],
    targets: np.ndarray | None,
    sign: float,
    smarts: bool,
) -> pd.DataFrame:
    graphs, classes = explained.graphs, effects.expansion.classes
    having = [np.unique(explained.graph_of_node[f.roots]) for f in fragments]
    columns: dict[str, Any] = {"name": [""] * len(fragments)}
    if len(graphs) and is_molecule(graphs[0]):
        writer = FragmentWriter(explained)
        columns["name"] = [group_name(explained, f, writer.molecule) for f in fragments]
        if smarts:
            columns["smarts"] = [writer.smarts(f) for f in fragments]
    columns |= {
        "pattern": [" | ".join(pattern_texts(explained.forest, f.patterns)) for f in fragments],
        "depth": [f.depth for f in fragments],
        "effect": [sign * f.effect.mean for f in fragments],
        "error": np.nan,
        "conditional_effect": [sign * f.beyond.mean for f in fragments],
        "conditional_error": [f.beyond.error for f in fragments],
        "total": [sign * f.total for f in fragments],
        "support": [len(found) for found in having],
    }
    if targets is not None and classes is None:
        columns["mean_value"] = [float(targets[found].mean()) for found in having]
    elif targets is not None and classes is not None:
        for code, label in enumerate(classes.tolist()):
            counts = [int((targets[found] == code).sum()) for found in having]
            columns[f"support {label}"] = counts
    smallest = [h[np.argsort(graphs.sizes[h], kind="stable")][:_N_EXAMPLES] for h in having]
    columns["examples"] = [
        [k if graphs.names is None else graphs[k].name for k in found.tolist()]
        for found in smallest
    ]
    # Fragments of several classes are merged by score, those of one keep the order of the search.
    scores = np.abs([f.score for f in fragments]).astype(float)
    columns["_order"] = np.minimum.accumulate(scores) if len(scores) else scores
    columns["_holders"] = having
    columns["_covered"] = [explained.covered(f.roots, f.depth) for f in fragments]
    columns["_picture"] = [_picture(explained, f) for f in fragments]
    return pd.DataFrame(columns)


def _picture(explained: ExplainedGraphs, fragment: Fragment) -> tuple[Graph, Occurrence]:
    """A small graph, with a few nodes beside the fragment if possible, and the occurrence there."""
    roots = explained.carriers(fragment.patterns[0])
    sizes = explained.graphs.sizes[explained.graph_of_node[roots]]
    inside = np.diff(explained.balls(roots, fragment.depth).indptr)
    k = int(np.lexsort((roots, sizes, sizes < inside + _BESIDE))[0])
    graph, row = int(explained.graph_of_node[roots[k]]), int(roots[k])
    place = occurrence_at(explained.graphs, graph, row, fragment.patterns[0], fragment.depth)
    return explained.graphs[graph], place


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
    if not len(graphs) or not is_molecule(graphs[0]):
        return found
    from rdkit.Chem.Scaffolds.MurckoScaffold import MurckoScaffoldSmiles

    known = {} if scaffolds is None else scaffolds

    def of_some(positions: np.ndarray) -> list[str]:
        sample = positions[:: max(1, -(-len(positions) // _MOST_SCAFFOLDS))].tolist()
        for position in sample:
            if position not in known:
                known[position] = MurckoScaffoldSmiles(mol=molecule_of(graphs[position]))
        return [known[k] for k in sample]

    sample = of_some(holders)
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
    if not is_molecule(graph):
        return None
    from rdkit import Chem

    return str(Chem.MolFragmentToSmiles(molecule_of(graph), list(place.nodes)))
