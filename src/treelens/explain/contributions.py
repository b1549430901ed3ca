"""Why a graph was decided the way it was: what every pattern, node and training graph added.

What is explained is ``f(G) = c + sum over i of a_i k(G, G_i)`` with one coefficient ``a_i`` per
training graph: with two classes the decision value; with several, decided one against one, the
mean for a class of its decisions against each other class (the decision value itself counts votes,
which are no sum over patterns). :mod:`treelens.explain.paths` divides each kernel value among the
patterns of the graph; the contribution of a pattern is the sum of its shares, times ``a_i``, over
all training graphs. The contributions of all patterns add up to ``decision - base``:

========================================  ====================================================
form                                      base
========================================  ====================================================
linear, assignment, subtree               the intercept ``c``; every contribution is exact, for
                                          these kernels are sums over patterns
tanimoto, subtree-cosine                  the intercept ``c``
exponential                               the decision for a graph without any known pattern:
                                          ``c + sum of a_i exp(-gamma b)``
tanimoto-exponential                      the same: ``c + sum of a_i exp(-gamma)``
metric                                    the same: ``c + sum of a_i exp(-gamma (U + B_i) / 2)``,
                                          ``B_i`` the training graph's sum with itself, ``U`` the
                                          part of the graph's own that training never saw
========================================  ====================================================

Each pattern's contribution is divided equally among its occurrences in the graph and then spread
over the nodes and edges of the occurrence (:mod:`treelens.explain.spreading`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from treelens.explain import _compiled
from treelens.explain.paths import KernelSums, PathSlopes, path_slopes
from treelens.explain.spreading import Arcs, spread_over_edges, spread_over_nodes
from treelens.graphs.collection import Graph, GraphCollection
from treelens.graphs.errors import GraphDataError
from treelens.kernels.forms import FORMS
from treelens.kernels.voting import class_values
from treelens.patterns.features import PatternExtractor
from treelens.patterns.histograms import PatternHistograms
from treelens.patterns.pairs import PairFeatures
from treelens.patterns.vocabulary import PatternVocabulary

if TYPE_CHECKING:
    import pandas as pd

# Whatever is usual in training, below the first an unseen share is no news, above the second
# the model has not seen most of the graph.
_LEAST_UNSEEN_LIMIT, _MOST_UNSEEN_LIMIT = 0.1, 0.5


class KernelExpansion(Protocol):
    """What can be explained: a sum over training graphs of coefficients times kernel values.

    :class:`KernelDecision` is one, :class:`treelens.explain.gaussian.GaussianDecision` another.
    ``classes`` is None where numbers are predicted.
    """

    @property
    def vocabulary(self) -> Any: ...
    @property
    def level_depths(self) -> np.ndarray: ...
    @property
    def weights(self) -> np.ndarray: ...
    @property
    def offset(self) -> float: ...
    @property
    def gamma(self) -> float | None: ...
    @property
    def pairs(self) -> PairFeatures: ...
    @property
    def self_sums(self) -> np.ndarray: ...
    @property
    def coefficients(self) -> np.ndarray: ...
    @property
    def intercepts(self) -> np.ndarray: ...
    @property
    def classes(self) -> np.ndarray | None: ...
    @property
    def votes(self) -> tuple[np.ndarray, np.ndarray] | None: ...
    @property
    def training_indices(self) -> np.ndarray: ...
    @property
    def unseen_limit(self) -> float: ...

    def pattern_ids(self, patterns: np.ndarray) -> np.ndarray: ...
    def find(self, graph: GraphCollection) -> FoundPatterns: ...
    def slopes(self, sums: KernelSums) -> PathSlopes: ...
    def facts_of_training(self, picked: np.ndarray) -> dict[str, np.ndarray]: ...
    def facts_of_patterns(self, ids: np.ndarray) -> dict[str, np.ndarray]: ...


@dataclass(frozen=True)
class KernelDecision:
    """A fitted decision function as plain data.

    Attributes
    ----------
    vocabulary : PatternVocabulary
    first_depth : int
        The shallowest depth in use; the deepest is that of the vocabulary.
    form : str
        A key of ``treelens.kernels.forms.FORMS``.
    weights : ndarray, shape (n_patterns,)
        Of the patterns from ``first_depth`` on.
    offset : float
    gamma : float or None
        Only the exponential and metric forms have one.
    pairs : PairFeatures
        Of the n training graphs that have a coefficient.
    self_sums : ndarray, shape (n,)
        ``<W, Z(G_i, G_i)>`` of these.
    coefficients : ndarray, shape (n_outputs, n)
    intercepts : ndarray, shape (n_outputs,)
    classes : ndarray, shape (n_classes,)
        Two classes share one output, positive for the second; more have one output each.
    training_indices : ndarray, shape (n,)
        Where these graphs stood in the training set; -1 for what stands for no single graph of
        it, and is never named as a neighbour.
    training_codes : ndarray, shape (n,)
        Their classes, as positions in ``classes``.
    unseen_limit : float
        The unseen share above which an explanation warns; see :func:`usual_unseen_share`.
    votes : (coefficients, intercepts), optional
        Several classes that are decided one against one: a row for every two classes, in the order
        of :mod:`treelens.kernels.voting`. The class is predicted by these; ``coefficients`` has
        the mean of the rows of each class against the others.
    """

    vocabulary: PatternVocabulary
    first_depth: int
    form: str
    weights: np.ndarray
    offset: float
    gamma: float | None
    pairs: PairFeatures
    self_sums: np.ndarray
    coefficients: np.ndarray
    intercepts: np.ndarray
    classes: np.ndarray
    training_indices: np.ndarray
    training_codes: np.ndarray
    unseen_limit: float = 0.3
    votes: tuple[np.ndarray, np.ndarray] | None = None

    @property
    def depths(self) -> range:
        return range(self.first_depth, self.vocabulary.depth + 1)

    @property
    def extractor(self) -> PatternExtractor:
        return PatternExtractor(self.vocabulary, self.first_depth, FORMS[self.form].kind)

    # --- what explaining asks of any kernel expansion -------------------------------------------

    @property
    def level_depths(self) -> np.ndarray:
        return np.array(self.depths)

    def pattern_ids(self, patterns: np.ndarray) -> np.ndarray:
        """Ids in the vocabulary of patterns numbered from ``first_depth`` on."""
        return patterns + int(self.vocabulary.level_offsets[self.first_depth])

    def find(self, graph: GraphCollection) -> FoundPatterns:
        """The known patterns of one graph, and what the others add to its own sum."""
        colors = self.vocabulary.transform(graph)
        histograms = self.extractor.count(colors)
        unseen = float(self.extractor.unseen_self_sums(graph, histograms)[0])
        pairs = self.extractor.pairs(histograms)
        return FoundPatterns(colors.colors[self.first_depth :], histograms, pairs, unseen)

    def slopes(self, sums: KernelSums) -> PathSlopes:
        return path_slopes(self.form, sums)

    def facts_of_training(self, picked: np.ndarray) -> dict[str, np.ndarray]:
        return {"class_label": self.classes[self.training_codes[picked]]}

    def facts_of_patterns(self, ids: np.ndarray) -> dict[str, np.ndarray]:
        return {}  # there is one tree only


@dataclass(frozen=True)
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
        They add up to ``decision - base``.
    edge_contributions : ndarray, shape (n_edges,)
        In the order of ``graph.edges``: another view of the same patterns, those of depth 1 and
        more, spread over their edges instead of their nodes.
    neighbors : DataFrame
        The training graphs that spoke most for and against: the index is the position in the
        training set, the columns ``class_label`` (or ``value``), ``similarity`` (the kernel
        value), ``coefficient`` and ``contribution``, their product.
    unseen_share : float
        Share of the graph's patterns, each counted as often as it occurs, that training never saw.
    node_unseen_shares : ndarray, shape (n_nodes,)
        The same for each node: 1 where no pattern of any depth was known.
    warning : str or None
        Says so when the unseen share is large.
    graph : Graph
    """

    decision: float
    base: float
    class_label: Any
    predicted_class: Any
    pattern_contributions: pd.DataFrame
    node_contributions: np.ndarray
    edge_contributions: np.ndarray
    neighbors: pd.DataFrame
    unseen_share: float
    node_unseen_shares: np.ndarray
    warning: str | None
    graph: Graph

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
            f"Explanation({said}, of which {self.base:+.3f} is the base; "
            f"{self.unseen_share:.0%} of the patterns unseen)"
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
    if n_neighbors < 0:
        raise ValueError(f"n_neighbors must be 0 or more, got {n_neighbors}.")
    found = decision.find(graph)
    sums = _kernel_sums(found, decision)
    slopes = decision.slopes(sums)
    row, sign, label, predicted = _choose_output(slopes.end, decision, class_label)
    coefficients = sign * decision.coefficients[row]  # (n_support,)
    intercept = sign * float(decision.intercepts[row])
    contributions = _divide(coefficients, slopes, found, decision)  # (n_found,)
    shares = _root_shares(contributions, found)  # (n_depths, n_nodes)
    arcs = Arcs(graph.neighbor_offsets, graph.neighbors)
    unseen_share = float(found.histograms.unseen_share()[0])
    return Explanation(
        decision=intercept + float(coefficients @ slopes.end),
        base=intercept + float(coefficients @ slopes.start),
        class_label=label,
        predicted_class=predicted,
        pattern_contributions=_pattern_frame(contributions, found, decision),
        node_contributions=spread_over_nodes(shares, decision.level_depths, arcs),
        edge_contributions=spread_over_edges(shares, decision.level_depths, arcs),
        neighbors=_neighbor_frame(coefficients, slopes.end, decision, n_neighbors),
        unseen_share=unseen_share,
        node_unseen_shares=(found.colors < 0).mean(axis=0),
        warning=_unseen_warning(unseen_share, decision.unseen_limit),
        graph=graph[0],
    )


def pattern_effects(found: FoundPatterns, decision: KernelExpansion) -> np.ndarray:
    """What each known pattern of a graph adds to its decision value, shape (n_found,).

    The ``contribution`` column of :func:`explain_decision` in the order of ``found.patterns``, for
    many graphs of which only the counts are at hand.
    """
    slopes = decision.slopes(_kernel_sums(found, decision))
    row, sign, _, _ = _choose_output(slopes.end, decision, None)
    return _divide(sign * decision.coefficients[row], slopes, found, decision)


def usual_unseen_share(histograms: PatternHistograms) -> float:
    """The unseen share that a graph like those in training rarely exceeds.

    A pattern that one training graph alone holds would be unseen had that graph been left out.
    So the share of such patterns in a training graph is what its unseen share would have been
    (patterns left out of the vocabulary for their rarity, which are unseen already, included);
    the value returned is the 95th percentile of these, at least 0.1 and at most 0.5.

    Parameters
    ----------
    histograms : PatternHistograms
        Of the training graphs, the depths in use.
    """
    alone = histograms.offsets[:-1][histograms.support == 1]
    lonely = np.bincount(
        histograms.graphs[alone], weights=histograms.counts[alone], minlength=histograms.n_graphs
    )
    lonely = lonely + histograms.unseen.sum(axis=1)
    shares = lonely / np.maximum(histograms.n_nodes * histograms.n_depths, 1)
    return float(np.clip(np.quantile(shares, 0.95), _LEAST_UNSEEN_LIMIT, _MOST_UNSEEN_LIMIT))


# --- the graph's patterns ---------------------------------------------------------------------


class FoundPatterns(NamedTuple):
    """The known patterns of one graph, numbered from the first level in use on."""

    colors: np.ndarray  # (n_levels, n_nodes), numbered per level, -1 where unseen
    histograms: PatternHistograms
    pairs: PairFeatures
    own_unseen: float  # what patterns outside the vocabulary add to the graph's own sum

    @property
    def patterns(self) -> np.ndarray:
        return self.pairs.rows.indices

    @property
    def values(self) -> np.ndarray:
        return self.pairs.rows.values

    @property
    def counts(self) -> np.ndarray:
        """Nodes that carry each pattern; with one graph, the lists by pattern are its row."""
        return self.histograms.counts

    def own_terms(self, weights: np.ndarray) -> np.ndarray:
        """Each pattern's term in ``<W, Z(G, G)>``, shape (n_found,)."""
        values = self.values if self.pairs.minimum else self.values**2
        return weights[self.patterns] * values * self.pairs.scale[0] ** 2


# --- from kernel values to patterns ----------------------------------------------------------


def _kernel_sums(found: FoundPatterns, decision: KernelExpansion) -> KernelSums:
    lists = decision.pairs.lists
    shared = _compiled.shared_sums(
        found.patterns, found.values, decision.weights[found.patterns], lists.offsets,
        lists.indices, lists.values, decision.pairs.minimum, decision.pairs.n_graphs,
    )  # fmt: skip
    return KernelSums(
        shared=shared * (found.pairs.scale[0] * decision.pairs.scale),
        own_known=float(found.own_terms(decision.weights).sum()),
        own_unseen=found.own_unseen,
        others=decision.self_sums,
        offset=decision.offset,
        gamma=0.0 if decision.gamma is None else decision.gamma,
    )


def _divide(
    coefficients: np.ndarray, slopes: PathSlopes, found: FoundPatterns, decision: KernelExpansion
) -> np.ndarray:
    """The contribution of every pattern of the graph, shape (n_found,)."""
    lists = decision.pairs.lists
    factors = coefficients * slopes.per_shared * (found.pairs.scale[0] * decision.pairs.scale)
    matched = _compiled.pattern_sums(
        found.patterns, found.values, factors, lists.offsets, lists.indices, lists.values,
        decision.pairs.minimum,
    )  # fmt: skip
    own = found.own_terms(decision.weights) * float(coefficients @ slopes.per_own)
    return decision.weights[found.patterns] * matched + own


def _root_shares(contributions: np.ndarray, found: FoundPatterns) -> np.ndarray:
    """What the pattern rooted at each node contributes at each depth: (n_depths, n_nodes).

    A pattern's contribution is divided equally among the nodes that carry it.
    """
    known = found.colors >= 0
    starts = found.histograms.level_offsets[:-1, None]  # (n_depths, 1)
    place = np.searchsorted(found.patterns, (found.colors + starts)[known])
    shares = np.zeros(found.colors.shape)
    shares[known] = (contributions / found.counts)[place]
    return shares


def _choose_output(
    kernel: np.ndarray, decision: KernelExpansion, class_label: Any
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
    predicted = _predicted_code(kernel, decision)
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


def _predicted_code(kernel: np.ndarray, decision: KernelExpansion) -> int:
    """The class by decision values, or by votes of one class against one."""
    if decision.votes is not None:
        coefficients, intercepts = decision.votes
        return int(class_values((coefficients @ kernel + intercepts)[None, :]).argmax())
    decisions = decision.coefficients @ kernel + decision.intercepts  # (n_outputs,)
    return int(decisions[0] > 0) if len(decisions) == 1 else int(decisions.argmax())


# --- what people read ------------------------------------------------------------------------


def _pattern_frame(
    contributions: np.ndarray, found: FoundPatterns, decision: KernelExpansion
) -> pd.DataFrame:
    import pandas as pd

    order = np.lexsort((found.patterns, -np.abs(contributions)))
    patterns = found.patterns[order]
    ids = decision.pattern_ids(patterns)
    level = np.searchsorted(found.histograms.level_offsets, patterns, side="right") - 1
    depths = decision.level_depths[level]
    return pd.DataFrame(
        {
            "pattern": decision.vocabulary.texts(ids),
            **decision.facts_of_patterns(ids),
            "depth": depths,
            "weight": decision.weights[patterns],
            "count": found.counts[order],
            "contribution": contributions[order],
        },
        index=pd.Index(ids, name="pattern_id"),
    )


def _neighbor_frame(
    coefficients: np.ndarray, kernel: np.ndarray, decision: KernelExpansion, n_neighbors: int
) -> pd.DataFrame:
    """The strongest voices for the class, strongest first, then those against, strongest last."""
    import pandas as pd

    votes = coefficients * kernel
    order = np.lexsort((decision.training_indices, -votes))
    order = order[decision.training_indices[order] >= 0]
    most_for = order[:n_neighbors][votes[order[:n_neighbors]] > 0]
    last = order[len(order) - min(n_neighbors, len(order)) :]
    picked = np.concatenate([most_for, last[votes[last] < 0]])
    return pd.DataFrame(
        {
            **decision.facts_of_training(picked),
            "similarity": kernel[picked],
            "coefficient": coefficients[picked],
            "contribution": votes[picked],
        },
        index=pd.Index(decision.training_indices[picked], name="training_graph"),
    )


def _unseen_warning(unseen_share: float, limit: float) -> str | None:
    if unseen_share <= limit:
        return None
    return (
        f"Training never saw {unseen_share:.0%} of this graph's patterns (up to {limit:.0%} is "
        "usual): the decision rests on the others, so treat it with care."
    )
