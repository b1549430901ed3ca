"""Ways to see graphs, as ``views=`` of an estimator lists them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

from treelens.errors import check_choice
from treelens.gp.data import CountedView, TrainingView
from treelens.graphs.collection import GraphCollection
from treelens.patterns.forest import TREES, PatternForest, usual_trees
from treelens.patterns.path_patterns import MAX_DISTANCE, PathPatterns


class ViewSettings(NamedTuple):
    """What an estimator tells its views."""

    depth: int  # the largest number of iterations
    prior_strength: float = 30.0  # how firmly weights of patterns are held together
    n_jobs: int = 1


class View(ABC):
    """A way to see graphs: patterns to count, or numbers.

    A subclass is a frozen dataclass of settings.
    """

    @abstractmethod
    def fit(self, graphs: GraphCollection, settings: ViewSettings) -> TrainingView:
        """Return what the view shows of training graphs."""


@dataclass(frozen=True)
class WLPatterns(View):
    """Weisfeiler-Lehman patterns: each node with its surroundings, 0 to ``depth`` edges away.

    Parameters
    ----------
    trees : "auto" or sequence of str, default="auto"
        The labels to begin with, side by side: ``"structure"`` (none), ``"labels"``,
        ``"labels+edges"``, ``"fine"``, ``"fine+edges"``. By default molecules are seen by element
        and by atoms with their charge, hydrogens and rings; other graphs by node labels and, where
        there are any, by edge labels as well.
    attributes : {"auto", "ignore"}, default="auto"
        Whether continuous attributes of nodes and edges, where there are any, are divided into
        cells at several resolutions, which count as patterns beside those of the labels.

    Examples
    --------
    >>> import treelens as tl
    >>> model = tl.GraphRegressor(views=[tl.WLPatterns(trees=["labels"])])
    """

    trees: Any = "auto"
    attributes: str = "auto"

    def fit(self, graphs: GraphCollection, settings: ViewSettings) -> CountedView:
        check_choice("attributes", self.attributes, ("auto", "ignore"))
        trees = usual_trees(graphs) if isinstance(self.trees, str) else tuple(self.trees)
        auto = not isinstance(self.trees, str) or self.trees == "auto"
        known = list(TREES)
        if not auto or not trees or any(t not in known or trees.count(t) > 1 for t in trees):
            raise ValueError(
                f"trees must be 'auto' or different ones among {', '.join(TREES)}; got "
                f"{self.trees!r}."
            )
        ordered = tuple(tree for tree in TREES if tree in trees)  # coarse before fine
        forest, colors = PatternForest.fit(
            graphs,
            settings.depth,
            ordered,
            settings.n_jobs,
            attributes=self.attributes == "auto",
        )
        counts = forest.count(colors)
        return CountedView(forest, counts, settings.prior_strength, settings.n_jobs)


@dataclass(frozen=True)
class Paths(View):
    """Pairs of labels with the distance of their nodes, and the labels of four nodes in a row.

    Of molecules with RDKit's labels of atoms these are its atom pairs and topological torsions.

    Parameters
    ----------
    max_distance : int, default=8
        Up to how many edges the nodes of a pair are apart.
    labels : {"auto", "labels", "fine"}, default="auto"
        Which labels of nodes are looked at; ``"auto"``: of molecules the fine ones (element,
        charge, hydrogens and rings), else the labels of the graphs.

    Examples
    --------
    >>> import treelens as tl
    >>> model = tl.GraphRegressor(views=[tl.WLPatterns(), tl.Paths(max_distance=5)])
    """

    max_distance: int = MAX_DISTANCE
    labels: str = "auto"

    def fit(self, graphs: GraphCollection, settings: ViewSettings) -> CountedView:
        check_choice("labels", self.labels, ("auto", "labels", "fine"))
        if not isinstance(self.max_distance, int) or self.max_distance < 1:
            raise ValueError(f"max_distance must be 1 or more, got {self.max_distance!r}.")
        fine = graphs.fine_codes is not None if self.labels == "auto" else self.labels == "fine"
        empty = PathPatterns.empty("fine" if fine else "labels", self.max_distance)
        source, found = empty.extend(graphs, settings.n_jobs)
        return CountedView(source, source.count(found), settings.prior_strength, settings.n_jobs)


def check_views(views: Any) -> list[View]:
    """Return the views that an estimator was given."""
    if isinstance(views, (str, View)) or not len(views):
        raise ValueError(
            f"views must be 'auto' or a list such as [tl.WLPatterns()]; got {views!r:.80}."
        )
    wrong = [each for each in views if not isinstance(each, View)]
    if wrong:
        raise TypeError(
            f"views must be objects such as tl.WLPatterns() or tl.Paths(); got {wrong[0]!r:.80}."
        )
    return list(views)
