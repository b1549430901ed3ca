"""Why a graph was decided the way it was: what every pattern, node and training graph added.

What is explained is ``f(G) = c + sum over i of a_i k(G, G_i)`` with one coefficient ``a_i`` per
training graph: with two classes the decision value; with several, decided one against one, the
mean for a class of its decisions against each other class (the decision value itself counts votes,
which are no sum over patterns). :mod:`treelens.explain.paths` divides each kernel value among the
patterns of the graph; the contribution of a pattern is the sum of its shares, times ``a_i``, over
all training graphs. The contributions of all patterns add up to ``decision - base``:

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

Each pattern's contribution is divided equally among its occurrences in the graph and then spread
over the nodes and edges of the occurrence (:mod:`treelens.explain.spreading`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from treelens.explain import _compiled
from treelens.explain.expansion import FoundPatterns, KernelExpansion
from treelens.explain.paths import KernelSums, PathSlopes
from treelens.explain.rows import PatternRows, Voices
from treelens.explain.spreading import Arcs, spread_over_edges, spread_over_nodes
from treelens.graphs.collection import Graph, GraphCollection
from treelens.graphs.errors import GraphDataError
from treelens.patterns.features import SeenGraphs
from treelens.svm.solver import class_values

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Explanation:
    """Why a graph was decided the way it was.

    Attributes
    ----------
    decision : float
        The decision value in favour of ``class_label``; of several classes the mean of the
        decisions for it against each of the others. Where numbers are predicted, the number.
    base : float
        The decision value before any known pattern of the graph is counted.
    class_label : object
        The class that positive numbers speak for; None where numbers are predicted.
    predicted_class : object
        None where numbers are predicted.
    pattern_contributions : DataFrame
        One row per known pattern of the graph, the largest contribution (in absolute value)
        first: ``pattern`` (text form), of several trees the ``tree``, ``depth``, ``weight``,
        ``count`` (nodes that carry it) and ``contribution``. The index is the pattern's id in the
        vocabulary.
    node_contributions : ndarray, shape (n_nodes,)
        They add up to ``decision - base``, less what ``covariates`` say.
    edge_contributions : ndarray, shape (n_edges,)
        In the order of ``graph.edges``: another view of the same patterns, those of depth 1 and
        more, spread over their edges instead of their nodes.
    neighbors : DataFrame
        The training graphs that spoke most for and against: the index is the position in the
        training set, the columns ``class_label`` (or ``value``), ``similarity`` (the kernel
        value), ``coefficient`` and ``contribution``, their product.
    out_of_vocabulary : float
        Share of the graph's patterns, each counted as often as it occurs, that training never saw.
    node_out_of_vocabulary : ndarray, shape (n_nodes,)
        The same for each node: 1 where no pattern of any depth was known.
    warning : str or None
        Says so when the unseen share is large.
    graph : Graph
    pattern_rows, voices
        What the two tables are made from when they are asked for.
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
    voices: Voices
    covariates: float = 0.0

    @cached_property
    def pattern_contributions(self) -> pd.DataFrame:
        return self.pattern_rows.frame()

    @cached_property
    def neighbors(self) -> pd.DataFrame:
        return self.voices.frame()

    @property
    def atom_contributions(self) -> np.ndarray:
        """Of a molecule, the nodes are atoms: ``node_contributions``."""
        return self.node_contributions

    def _repr_html_(self) -> str:
        """For notebooks: the graph coloured by contribution, and the strongest patterns."""
        from treelens.explain.notebook import explanation_html

        return explanation_html(self)

    def __repr__(self) -> str:
        said = (
            f"predicted {self.decision:.3f}"
            if self.class_label is None
            else f"predicted {self.predicted_class}; decision {self.decision:+.3f} for "
            f"{self.class_label}"
        )
        lines = [
            f"Explanation({said}, of which {self.base:+.3f} is the base"
            f"{f' and {self.covariates:+.3f} from covariates' if self.covariates else ''}; "
            f"{self.out_of_vocabulary:.0%} of the patterns unseen)"
        ]
        strongest = self.pattern_contributions.head(5)
        lines += [
            f"  {row.contribution:+.3f}  {row.pattern}  ({_tree_words(row)}depth {row.depth}, at "
            f"{row.count} node"
            f"{'' if row.count == 1 else 's'})"
            for row in strongest.itertuples()
        ]
        return "\n".join(lines if self.warning is None else [*lines, f"  {self.warning}"])


def _tree_words(row: Any) -> str:
    """Where patterns come from several trees, which one: of fine labels, with edges, ..."""
    tree = getattr(row, "tree", None)
    return "" if tree in (None, "labels") else f"{tree}, "


def explain_decision(
    graph: GraphCollection,
    decision: KernelExpansion,
    class_label: Any = None,
    n_neighbors: int = 5,
) -> Explanation:
    """Divide the decision value of one graph among its patterns, nodes and edges.

    Parameters
    ----------
    graph : GraphCollection
        Of length one.
    decision : KernelDecision or another KernelExpansion
    class_label : object, optional
        The class to explain. By default, with two classes the second, so that the numbers have
        the sign of ``decision_function``, and with more the one that was predicted.
    n_neighbors : int
        How many training graphs to name on either side.
    """
    if len(graph) != 1:
        raise GraphDataError(f"Expected one graph to explain; got {len(graph)} of them.")
    return _explain(graph, decision.find(graph), decision, class_label, n_neighbors)


def explain_seen(
    graphs: GraphCollection,
    seen: SeenGraphs,
    index: int,
    decision: KernelExpansion,
    class_label: Any = None,
    n_neighbors: int = 5,
) -> Explanation:
    """The same for one of several graphs that a model has decided on: nothing is refined again."""
    one = graphs[index : index + 1]
    return _explain(one, decision.found_in(seen, index), decision, class_label, n_neighbors)


def _explain(
    graph: GraphCollection,
    found: FoundPatterns,
    decision: KernelExpansion,
    class_label: Any,
    n_neighbors: int,
) -> Explanation:
    if n_neighbors < 0:
        raise ValueError(f"n_neighbors must be 0 or more, got {n_neighbors}.")
    slopes = decision.slopes(_kernel_sums(found, decision))
    beside = decision.beside(found)  # (n_outputs,)
    row, sign, label, predicted = _choose_output(slopes.end, beside, decision, class_label)
    coefficients = sign * decision.coefficients[row]  # (n_support,)
    covariates = sign * float(beside[row])
    intercept = sign * float(decision.intercepts[row])
    contributions = _divide(coefficients, slopes, found, decision)  # (n_found,)
    counts = found.counts
    shares = _root_shares(contributions / counts, found)  # (n_depths, n_nodes)
    arcs = Arcs(graph.neighbor_offsets, graph.neighbors)
    return Explanation(
        decision=intercept + covariates + float(coefficients @ slopes.end),
        base=intercept + float(coefficients @ slopes.start),
        class_label=label,
        predicted_class=predicted,
        node_contributions=spread_over_nodes(shares, decision.level_depths, arcs),
        edge_contributions=spread_over_edges(shares, decision.level_depths, arcs),
        out_of_vocabulary=found.out_of_vocabulary,
        node_out_of_vocabulary=(found.colors < 0).mean(axis=0),
        warning=_warning(found.out_of_vocabulary, decision.out_of_vocabulary_limit),
        graph=graph[0],
        pattern_rows=PatternRows.sorted(decision, found, counts, contributions),
        voices=Voices.strongest(decision, coefficients, slopes.end, n_neighbors),
        covariates=covariates,
    )


def contributions_of_nodes(
    found: FoundPatterns, decision: KernelExpansion, output: int = 0
) -> tuple[np.ndarray, tuple[float, float]]:
    """What the patterns centred at each node add to one output, and (base, decision).

    Shape (n_nodes,). :func:`explain_decision` goes on to spread these over the nodes that a pattern
    reaches.
    """
    slopes = decision.slopes(_kernel_sums(found, decision))
    coefficients, intercept = decision.coefficients[output], float(decision.intercepts[output])
    contributions = _divide(coefficients, slopes, found, decision)
    nodes = _root_shares(contributions / found.counts, found).sum(axis=0)
    return nodes, (intercept + coefficients @ slopes.start, intercept + coefficients @ slopes.end)


# --- from kernel values to patterns ----------------------------------------------------------


def _kernel_sums(found: FoundPatterns, decision: KernelExpansion) -> KernelSums:
    lists = decision.pairs.lists
    shared = _compiled.shared_sums(
        found.patterns, found.values, decision.weights[found.patterns], lists.offsets,
        lists.indices, lists.values, decision.pairs.minimum, decision.pairs.n_graphs,
    )  # fmt: skip
    return KernelSums(
        shared=shared * (found.scale * decision.pairs.scale),
        own_known=float(found.own_terms(decision.weights).sum()),
        own_unseen=found.own_unseen,
        others=decision.diagonal,
        offset=decision.offset,
        gamma=0.0 if decision.gamma is None else decision.gamma,
    )


def _divide(
    coefficients: np.ndarray, slopes: PathSlopes, found: FoundPatterns, decision: KernelExpansion
) -> np.ndarray:
    """The contribution of every pattern of the graph, shape (n_found,)."""
    lists = decision.pairs.lists
    factors = coefficients * slopes.per_shared * (found.scale * decision.pairs.scale)
    matched = _compiled.pattern_sums(
        found.patterns, found.values, factors, lists.offsets, lists.indices, lists.values,
        decision.pairs.minimum,
    )  # fmt: skip
    own = found.own_terms(decision.weights) * float(coefficients @ slopes.per_own)
    return decision.weights[found.patterns] * matched + own


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
    kernel: np.ndarray, beside: np.ndarray, decision: KernelExpansion, class_label: Any
) -> tuple[int, float, Any, Any]:
    """Row of the output to explain, the sign it counts with, its class, the predicted class."""
    classes = decision.classes
    if classes is None:
        if class_label is not None:
            raise ValueError(
                f"class_label={class_label!r}, but this model predicts numbers: leave it out."
            )
        return 0, 1.0, None, None
    two = len(decision.intercepts) == 1
    predicted = _predicted_code(kernel, beside, decision)
    if class_label is None:
        code = 1 if two else predicted
    else:
        matches = np.flatnonzero(classes == class_label)
        if len(matches) != 1:
            raise ValueError(
                f"class_label must be one of the classes {classes.tolist()}, got {class_label!r}."
            )
        code = int(matches[0])
    row, sign = (0, 1.0 if code == 1 else -1.0) if two else (code, 1.0)
    return row, sign, classes[code], classes[predicted]


def _predicted_code(kernel: np.ndarray, beside: np.ndarray, decision: KernelExpansion) -> int:
    """The class by decision values, or by votes of one class against one."""
    if decision.votes is not None:
        coefficients, intercepts = decision.votes
        return int(class_values((coefficients @ kernel + intercepts)[None, :]).argmax())
    decisions = decision.coefficients @ kernel + decision.intercepts + beside  # (n_outputs,)
    return int(decisions[0] > 0) if len(decisions) == 1 else int(decisions.argmax())


def _warning(out_of_vocabulary: float, limit: float) -> str | None:
    if out_of_vocabulary <= limit:
        return None
    return (
        f"Training never saw {out_of_vocabulary:.0%} of this graph's patterns (up to {limit:.0%} "
        "is usual): the decision rests on the others, so treat it with care."
    )
