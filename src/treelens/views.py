"""Ways to see graphs, as ``views=`` of an estimator lists them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

from treelens.errors import check_choice, check_whole
from treelens.gp.data import CountedView, TrainingView
from treelens.gp.terms import PRIOR_STRENGTH
from treelens.graphs.collection import GraphCollection
from treelens.patterns.forest import EDGE_CELLS, TREES, PatternForest, usual_trees
from treelens.patterns.path_patterns import MAX_DISTANCE, PathPatterns

_LARGEST_DISTANCE = 100


class ViewSettings(NamedTuple):
    """What an estimator tells its views."""

    depth: int  # the largest number of iterations
    prior_strength: float = PRIOR_STRENGTH
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
        trees = usual_trees(graphs) if self.trees == "auto" else _check_trees(self.trees)
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


def _check_trees(trees: Any) -> tuple[str, ...]:
    given = trees if isinstance(trees, (list, tuple)) else [trees]
    known = [tree for tree in TREES if tree not in EDGE_CELLS]
    if not given or any(tree not in known or given.count(tree) > 1 for tree in given):
        raise ValueError(
            f"trees must be 'auto' or different ones among {', '.join(known)}; got {trees!r}."
        )
    return tuple(given)


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
        check_whole("max_distance", self.max_distance, 1)
        if self.max_distance > _LARGEST_DISTANCE:
            raise ValueError(
                f"max_distance={self.max_distance} is above {_LARGEST_DISTANCE}: pairs further "
                "apart are too many to count."
            )
        fine = graphs.fine_codes is not None if self.labels == "auto" else self.labels == "fine"
        empty = PathPatterns.empty("fine" if fine else "labels", self.max_distance)
        source, found = empty.extend(graphs, settings.n_jobs)
        return CountedView(source, source.count(found), settings.prior_strength, settings.n_jobs)


def check_views(views: Any) -> list[View]:
    """Return the views that an estimator was given, Weisfeiler-Lehman patterns first."""
    given = list(views) if isinstance(views, (list, tuple)) else [views]
    for each in given:
        if not isinstance(each, View):
            raise TypeError(
                "views must be 'auto' or a list of views such as [tl.WLPatterns(), tl.Paths()]; "
                f"got {each!r:.80}."
            )
    for k, each in enumerate(given):
        if each in given[:k]:
            raise ValueError(f"views names {each} twice: once is enough.")
    patterns = [each for each in given if isinstance(each, WLPatterns)]
    if not patterns:
        raise ValueError(
            "views needs a tl.WLPatterns(), whose patterns neighbours, the domain and fragments "
            "are about: add it."
        )
    return [*patterns, *(each for each in given if not isinstance(each, WLPatterns))]
