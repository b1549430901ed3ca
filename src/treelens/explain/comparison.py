"""What two models see differently: their predictions, the fragments behind them, the graphs.

Every fragment that either model goes by is measured in both: what the nodes of an occurrence add
together, averaged within a graph and over graphs, and the paired difference with its error. Nodes
are the common ground, so the models may look at labels of different fineness.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from treelens.explain.compared_predictions import Side, agreement_of, graph_table
from treelens.explain.decode import Occurrence
from treelens.explain.explained import explained_by
from treelens.explain.fragment_scores import SURE
from treelens.explain.fragment_search import Fragment
from treelens.explain.fragment_seen import ExplainedGraphs, mean_over_graphs
from treelens.explain.fragments import chemistry_of, fragments_in, outputs_of, pictured, toward_of
from treelens.graphs.collection import Graph, GraphCollection

if TYPE_CHECKING:
    import pandas as pd

N_SEARCHED = 40  # fragments of each model
N_SHOWN = 25
N_DRAWN = 6
_THE_SAME = 0.8  # shared part of all nodes that two fragments cover
TARGET_UNITS = "units of the target"
DECISION_UNITS = "units of the decision"
SPREAD_UNITS = "standard deviations of each model's decisions"


class PairDrawn(NamedTuple):
    """A graph with what its nodes add in either model."""

    graph: Graph
    contributions: tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True, eq=False)
class Comparison:
    """What two models see differently on some graphs, ``a`` and ``b``.

    Attributes
    ----------
    agreement : dict
        ``n_graphs``; of classes ``same`` (share named alike), ``kappa`` (the same beyond chance),
        ``rank_correlation`` of decision values (two classes) and ``mean_difference`` of
        probabilities; of numbers ``correlation``, ``rms_difference`` and ``mean_difference``
        (b less a). With targets ``score_a`` and ``score_b``: accuracy, or root mean squared error.
    fragments : DataFrame
        Fragments of either model, those first whose effects surely differ most: ``name``,
        ``smarts`` (of molecules), ``pattern``, ``found_by`` ("a", "b" or "both"), ``effect_a`` and
        ``effect_b`` with errors, ``difference`` (b less a) with its paired ``error``, ``sure``
        (more than two errors) and ``support``. With more than two classes also ``class_label``.
        ``attrs["units"]`` says what effects are measured in. Empty where the two models read the
        graphs with different nodes.
    graphs : DataFrame
        All graphs, those first that the models disagree on most: ``name``, ``a``, ``b``,
        ``difference`` (b less a: of numbers, or of the probabilities of the class ``toward``),
        of classes ``probability_a`` and ``probability_b``, ``truth`` where known. Of more than two
        classes, where none was asked for, the difference is that of ``class_label``, whose
        probability differs most, and the probabilities are those of the classes that each names.
        The index is the position.
    toward : str or None
        The class that positive effects and probabilities speak for.
    """

    agreement: dict[str, Any]
    fragments: pd.DataFrame
    graphs: pd.DataFrame
    toward: str | None
    drawn: dict[int, PairDrawn]
    pictures: list[tuple[Graph, Occurrence]]

    def draw(self, graph: int) -> tuple[str, str]:
        """One of the graphs that differ most, coloured by what its nodes add in a and in b.

        Parameters
        ----------
        graph : int
            Its position, one of ``drawn``.

        Returns
        -------
        tuple of str
            Two SVGs on one scale of colours, each with a text for those who cannot see it.
        """
        from treelens.explain.comparison_html import draw_pair

        if graph not in self.drawn:
            raise KeyError(f"Graph {graph!r} was not drawn; these were: {list(self.drawn)}.")
        return draw_pair(self, graph)

    def _repr_html_(self) -> str:
        """For notebooks: sentences, fragments and graphs side by side."""
        from treelens.explain.comparison_html import comparison_html

        return comparison_html(self)

    def __repr__(self) -> str:
        from treelens.explain.comparison_html import sentences

        return "\n".join(["Comparison of a and b", *(f"  {x}" for x in sentences(self))])


def compare_on(
    a: Any,
    b: Any,
    graphs_a: GraphCollection,
    graphs_b: GraphCollection,
    y: Any = None,
    *,
    class_label: Any = None,
    n_fragments: int = N_SHOWN,
    min_support: int | None = None,
) -> Comparison:
    """Compare two fitted models on the same graphs, each as its model reads them.

    Parameters
    ----------
    a, b : GraphClassifier, GraphRegressor or GraphSVC
        Both of classes, and the same ones, or both of numbers.
    graphs_a, graphs_b : GraphCollection
        The same graphs in the same order.
    y : array-like, shape (n_graphs,), optional
    class_label : object, optional
        The class that positive effects speak for; see :func:`fragment_table`.
    n_fragments : int, default=25
        At most so many rows of fragments.
    min_support : int, optional
        A fragment must be held by so many graphs: by default 0.4 %, at least 3.
    """
    _check_targets(a._decision.classes, b._decision.classes)
    if len(graphs_a) != len(graphs_b):
        raise ValueError(f"a reads {len(graphs_a)} graphs and b {len(graphs_b)} of the same data.")
    if not len(graphs_a):
        raise ValueError("There are no graphs to compare the models on.")
    if y is not None and len(y) != len(graphs_a):
        raise ValueError(f"y has {len(y)} entries for {len(graphs_a)} graphs.")
    outputs_of(a._decision, class_label)  # an unknown class is told before the work
    sides = Side.of(a, graphs_a), Side.of(b, graphs_b)
    table = graph_table(*sides, None if y is None else np.asarray(y), class_label)
    fragments, pictures = _fragments(*sides, class_label, n_fragments, min_support)
    return Comparison(
        agreement_of(*sides, None if y is None else np.asarray(y)),
        fragments,
        table,
        toward_of(a._decision, class_label),
        _drawn(*sides, table.index[:N_DRAWN].tolist(), class_label),
        pictures,
    )


def _check_targets(a: np.ndarray | None, b: np.ndarray | None) -> None:
    if (a is None) != (b is None):
        raise ValueError(
            "One model predicts classes and the other numbers, so they cannot be compared: take "
            "two models of the same target."
        )
    if a is not None and b is not None and a.tolist() != b.tolist():
        raise ValueError(
            f"The models know different classes, {a.tolist()} and {b.tolist()}: fit both to the "
            "same ones."
        )


# --- fragments --------------------------------------------------------------------------------


class Difference(NamedTuple):
    """A fragment of one of the models, measured in both."""

    class_label: Any  # of more than two classes
    seen: ExplainedGraphs  # of the model that found it
    fragment: Fragment
    found_by: str
    measured: dict[str, Any]

    @property
    def surely(self) -> float:
        """How far apart the effects are at least."""
        return abs(self.measured["difference"]) - SURE * self.measured["error"]


def _fragments(
    a: Side, b: Side, class_label: Any, n_fragments: int, min_support: int | None
) -> tuple[pd.DataFrame, list[tuple[Graph, Occurrence]]]:
    """The table of fragments, and what to draw of each."""
    found: list[Difference] = []
    if np.array_equal(a.graphs.sizes, b.graphs.sizes):  # else nodes are no common ground
        for output in outputs_of(a.model._decision, class_label):
            found += _of_output(a, b, output, min_support)
    kept = sorted(found, key=lambda x: -x.surely)[:n_fragments]  # the sort is stable
    table = _frame(kept)
    table.attrs["units"] = _units(a, b)
    return table, [pictured(x.seen, x.fragment) for x in kept]


def _units(a: Side, b: Side) -> str:
    """What effects are measured in; numbers that were learned on another scale are on that one."""
    if a.model._decision.classes is not None:
        return DECISION_UNITS if _same_kind(a, b) else SPREAD_UNITS
    recipe = a.model.recipe_
    scale = None if recipe is None or recipe.table is None else recipe.table.transform
    return TARGET_UNITS if scale is None else f"{scale} of the target"


def _same_kind(a: Side, b: Side) -> bool:
    """Whether decisions of both models are in the same units, as numbers are."""
    one, other = a.model._decision, b.model._decision
    return one.classes is None or type(one) is type(other)


def _of_output(
    a: Side, b: Side, output: tuple[int, float, Any], min_support: int | None
) -> list[Difference]:
    """Fragments of both models for one output, each once, measured in both."""
    code, sign, label = output
    explained = [
        explained_by(x.model._decision, x.graphs, code, x.model._n_jobs(), x.said.graphs)
        for x in (a, b)
    ]
    seen = [x.seen for x in explained]
    scales = [1.0 if _same_kind(a, b) else float(x.decisions.std()) or 1.0 for x in explained]
    phi = [sign * s.phi / scale for s, scale in zip(seen, scales, strict=True)]
    found = [fragments_in(s, N_SEARCHED, min_support) for s in seen]
    held = [
        [s.balls(f.roots, f.depth) for f in fragments]
        for s, fragments in zip(seen, found, strict=True)
    ]
    differences = []
    for side, place, found_by in joined(held):
        fragment = found[side][place]
        graphs = seen[side].graph_of_node[fragment.roots]
        measured = _measured(held[side][place], graphs, *phi)
        differences.append(Difference(label, seen[side], fragment, found_by, measured))
    return differences


def _frame(kept: list[Difference]) -> pd.DataFrame:
    """A row for each fragment; naming them takes longest, so it comes last."""
    import pandas as pd

    rows: list[dict[str, Any]] = [{} for _ in kept]
    for seen in {id(x.seen): x.seen for x in kept}.values():
        here = [k for k, x in enumerate(kept) if x.seen is seen]
        chemistry = chemistry_of(seen, [kept[k].fragment for k in here])
        for name, values in chemistry.items():
            for k, value in zip(here, values, strict=True):
                rows[k][name] = value
    for row, x in zip(rows, kept, strict=True):
        row["pattern"] = " | ".join(x.seen.forest.texts(x.fragment.patterns))
        row |= {"depth": x.fragment.depth, "found_by": x.found_by, **x.measured}
    table = pd.DataFrame(rows, index=pd.RangeIndex(1, len(rows) + 1, name="rank"))
    if any(x.class_label is not None for x in kept):
        table.insert(0, "class_label", [x.class_label for x in kept])
    return table


def _measured(
    held: sparse.csr_array, graphs: np.ndarray, phi_a: np.ndarray, phi_b: np.ndarray
) -> dict[str, Any]:
    """The effects of a fragment in both models; ``held`` (n_occurrences, n_nodes)."""
    a, b, apart = (mean_over_graphs(held @ phi, graphs) for phi in (phi_a, phi_b, phi_b - phi_a))
    return {
        "effect_a": a.mean, "error_a": a.error, "effect_b": b.mean, "error_b": b.error,
        "difference": apart.mean, "error": apart.error,
        "sure": abs(apart.mean) > SURE * apart.error, "support": apart.n_graphs,
    }  # fmt: skip


def joined(covers: list[list[sparse.csr_array]]) -> list[tuple[int, int, str]]:
    """Side and place of every fragment once: what both found on the same nodes is one.

    ``covers``: for each of two sides and each of its fragments, the nodes of its occurrences.
    """
    nodes = [[np.unique(held.indices) for held in side] for side in covers]
    again = {
        k: next((j for j, other in enumerate(nodes[1]) if _overlap(one, other) >= _THE_SAME), None)
        for k, one in enumerate(nodes[0])
    }
    known = set(again.values())
    first = [(0, k, "a" if j is None else "both") for k, j in again.items()]
    return first + [(1, j, "b") for j in range(len(nodes[1])) if j not in known]


def _overlap(one: np.ndarray, other: np.ndarray) -> float:
    common = len(np.intersect1d(one, other, assume_unique=True))
    return common / (len(one) + len(other) - common)


def _drawn(a: Side, b: Side, chosen: list[int], class_label: Any) -> dict[int, PairDrawn]:
    """What nodes add in both models, of the graphs that they disagree on most."""
    classes, drawn = a.model._decision.classes, {}
    alike = _same_kind(a, b)
    for index in chosen:
        if a.graphs.sizes[index] != b.graphs.sizes[index]:
            continue
        label = class_label
        if label is None and classes is not None and len(classes) > 2:
            label = a.predictions[index]  # the two may name different classes: one must be shown
        one, other = (
            _contributions(x, index, label) / (1.0 if alike else _spread(x)) for x in (a, b)
        )
        drawn[index] = PairDrawn(a.graphs[index], (one, other))
    return drawn


def _contributions(side: Side, index: int, class_label: Any) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that much of a graph is unseen
        explanation = side.model.explain(side.graphs[index : index + 1], class_label, 0)
    return explanation.node_contributions


def _spread(side: Side) -> float:
    return float(side.said.margins.std()) or 1.0
