"""Ways to see graphs, as ``views=`` of an estimator lists them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

from treelens.errors import GraphDataError, check_choice, check_whole
from treelens.gp.data import CountedView, NumbersView, TrainingView
from treelens.gp.keyed_rows import KeyedRows
from treelens.gp.terms import PRIOR_STRENGTH
from treelens.gp.views import columns_of
from treelens.graphs.collection import Graph, GraphCollection
from treelens.graphs.kinds import kind_of_facts
from treelens.kernels.base import Kernel
from treelens.kernels.rbf import Rbf
from treelens.patterns.cell_patterns import CellPatterns
from treelens.patterns.cells import AttributeCells as FittedCells
from treelens.patterns.forest import EDGE_CELLS, TREES, PatternForest, usual_trees
from treelens.patterns.own_patterns import OwnPatterns, PatternFinder
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

    counts_patterns: ClassVar[bool] = False

    @property
    def sees_attributes(self) -> bool:
        """Whether it looks at continuous attributes of nodes or edges."""
        return False

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
        cells at several resolutions, which count as patterns beside those of the labels. With
        :class:`AttributeCells` among the views ``"auto"`` leaves them to that view.

    Examples
    --------
    >>> import treelens as tl
    >>> model = tl.GraphRegressor(views=[tl.WLPatterns(trees=["labels"])])
    """

    trees: Any = "auto"
    attributes: str = "auto"

    counts_patterns = True

    @property
    def sees_attributes(self) -> bool:
        return self.attributes == "auto"

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


def _check_trees(trees: object) -> tuple[str, ...]:
    given = trees if isinstance(trees, (list, tuple)) else [trees]
    known = [tree for tree in TREES if tree not in EDGE_CELLS]
    if not given or any(tree not in known or given.count(tree) > 1 for tree in given):
        raise ValueError(
            f"trees must be 'auto' or different ones among {', '.join(known)}; got {trees!r}."
        )
    return tuple(given)


@dataclass(frozen=True)
class AttributeCells(View):
    """Cells of continuous attributes of nodes and edges, with a kernel and a share of their own.

    :class:`WLPatterns` counts the same cells together with its patterns; here a kernel of their
    own can weigh them down where they say little.

    Examples
    --------
    >>> import networkx as nx
    >>> import treelens as tl
    >>> paths = [nx.path_graph(3) for _ in range(12)]
    >>> for k, path in enumerate(paths):
    ...     nx.set_node_attributes(path, {0: k, 1: 1.0, 2: 5.0}, "height")
    >>> graphs = tl.as_graph_collection(paths, node_attributes="all")
    >>> model = tl.GraphRegressor(views=[tl.WLPatterns(), tl.AttributeCells()])
    >>> model.fit(graphs, range(12)).views_
    ['patterns', 'attributes']
    """

    counts_patterns = True
    sees_attributes = True

    def fit(self, graphs: GraphCollection, settings: ViewSettings) -> CountedView:
        if graphs.node_attributes is None and graphs.edge_attributes is None:
            raise GraphDataError(
                "tl.AttributeCells() needs continuous attributes of nodes or edges, and these "
                "graphs have none: leave it out of views."
            )
        found = CellPatterns(FittedCells.fit(graphs, settings.depth))
        counts = found.count(found.transform(graphs, settings.n_jobs))
        return CountedView(found, counts, settings.prior_strength, settings.n_jobs)


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

    counts_patterns = True

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


class PatternView(View, PatternFinder):
    """Base of views of your own that count patterns: a frozen dataclass of settings.

    A subclass says which patterns occur in a graph, and at which nodes. They are counted, weighed,
    explained, reported and stored as all others are. Its settings are numbers, texts, or tuples of
    these, and its class is given to ``tl.load(path, classes=[...])``.

    Attributes
    ----------
    name : str
        What the view is called in ``shares_``, explanations and reports.
    levels : sequence of str
        The kinds of patterns; each can have a weight of its own (``weights="depths"``).

    Examples
    --------
    >>> from dataclasses import dataclass, replace
    >>> import treelens as tl
    >>> @dataclass(frozen=True)
    ... class Degrees(tl.PatternView):
    ...     name = "degrees"
    ...     levels = ("degree",)
    ...     def occurrences(self, graph):
    ...         ends = [node for edge in graph.edges for node in edge]
    ...         for node in range(graph.n_nodes):
    ...             yield "degree", f"degree {ends.count(node)}", [node]
    >>> graphs, y = tl.make_synthetic(n_per_substructure=5, random_state=0)
    >>> tl.GraphClassifier(views=[tl.WLPatterns(), Degrees()]).fit(graphs, y).views_
    ['patterns', 'degrees']
    """

    counts_patterns = True

    def fit(self, graphs: GraphCollection, settings: ViewSettings) -> CountedView:
        source, found = OwnPatterns.empty(self).extend(graphs, settings.n_jobs)
        return CountedView(source, source.count(found), settings.prior_strength, settings.n_jobs)


@dataclass(frozen=True)
class Walks(PatternView):
    """Label sequences of walks along edges; a walk may return to nodes and edges.

    In directed graphs walks follow the edges, else a walk and its reverse are one. Their number
    grows with the degree to the power of ``length``, and they are found by a loop in Python.

    Parameters
    ----------
    length : int, default=3
        The largest number of edges; every length can have a weight of its own
        (``weights="depths"``).

    Examples
    --------
    >>> import treelens as tl
    >>> model = tl.GraphRegressor(views=[tl.WLPatterns(), tl.Walks(length=2)])
    """

    length: int = 3

    name = "walks"

    def fit(self, graphs: GraphCollection, settings: ViewSettings) -> CountedView:
        check_whole("length", self.length, 1)
        return super().fit(graphs, settings)

    @property
    def levels(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(f"length {k}" for k in range(1, self.length + 1))

    def occurrences(self, graph: Graph) -> Iterator[tuple[str, str, Sequence[int]]]:
        labels = [str(label) for label in graph.node_labels]
        steps: list[list[int]] = [[] for _ in labels]
        for start, end in graph.edges:
            steps[start].append(end)
            if not graph.directed and start != end:
                steps[end].append(start)
        walks: list[tuple[int, ...]] = [(node,) for node in range(len(labels))]
        for level in self.levels:
            walks = [(*walk, node) for walk in walks for node in steps[walk[-1]]]
            for walk in walks:
                there = tuple(labels[node] for node in walk)
                back = there if graph.directed else there[::-1]
                yield level, " ".join(min(there, back)), walk


@dataclass(frozen=True, eq=False)
class Table(View):
    """Numbers or classes of each graph from a table: measurements, conditions, an embedding.

    Its rows belong to graphs by their ids, so that they may stand in any order, and the table may
    have rows of other graphs as well. It has a kernel of its own, whose share is learned: a table
    that says nothing gets a small one.

    Parameters
    ----------
    table : DataFrame, or path of a CSV, TSV, Excel or Parquet file
        One row for each id. For an array whose rows are in the order of the graphs use
        ``fit(graphs, y, covariates=array)``.
    on : str, default="id"
        The column of ids. The ids of the graphs are what ``graphs.graph_data`` has under the same
        name, or else their names (``graphs.names``).
    name : str, optional
        What the view is called in ``shares_``, ``predict(tables={name: ...})`` and reports; by
        default the name of the file, or "table".
    kernel : subclass of Kernel, default=Rbf
        What compares rows: see :class:`treelens.Kernel`.

    Examples
    --------
    >>> import pandas as pd
    >>> import treelens as tl
    >>> graphs, y = tl.make_synthetic(n_per_substructure=5, random_state=0)
    >>> graphs = graphs.with_names([f"graph {k}" for k in range(len(graphs))])
    >>> heat = pd.DataFrame({"id": graphs.names, "heat": range(len(graphs))})
    >>> model = tl.GraphClassifier(views=[tl.WLPatterns(), tl.Table(heat)]).fit(graphs, y)
    >>> model.predict(graphs[:2], tables=heat).shape
    (2,)
    """

    table: Any
    on: str = "id"
    name: str | None = None
    kernel: type[Kernel] = Rbf

    def fit(self, graphs: GraphCollection, settings: ViewSettings) -> NumbersView:
        rows = KeyedRows.of(self.table, self.on, self.name)
        return NumbersView.of_columns(
            rows.name, rows.joined(graphs), rows.columns, self.on, checked_kernel(self.kernel)
        )


_DENSE_GRAPHS = 60.0  # nodes of a graph, on average, up to which paths are counted by default


def usual_views(graphs: GraphCollection) -> list[View]:
    """Return the views that count patterns, where nobody lists any; see :func:`check_views`.

    Attributes of nodes have a kernel of their own. It comes first, where neighbours are looked for,
    if nodes have no labels.
    """
    paths: list[View] = [Paths()] if graphs.n_nodes <= _DENSE_GRAPHS * len(graphs) else []
    if graphs.node_attributes is None or graphs.edge_attributes is not None:
        return [WLPatterns(), *paths]
    counted = [WLPatterns(attributes="ignore"), *paths]
    unlabelled = graphs.degree_labels or len(graphs.node_alphabet) == 1
    return [AttributeCells(), *counted] if unlabelled else [*counted, AttributeCells()]


def checked_kernel(kernel: object) -> type[Kernel]:
    """Return the class of a kernel; an error says what it should be."""
    if isinstance(kernel, type) and issubclass(kernel, Kernel):
        return kernel
    raise TypeError(f"kernel must be a subclass of tl.Kernel, such as Rbf; got {kernel!r:.60}.")


def descriptors_of(graphs: GraphCollection, chosen: str, kernel: type[Kernel] = Rbf) -> NumbersView:
    """Return a set of descriptors, ``"compact"``, ``"fast"`` or ``"all"``, as a view."""
    names = kind_of_facts(graphs.graph_data).number_names(chosen)
    if not names:
        raise ValueError(
            f"Descriptors ({chosen!r}) need molecules, and these graphs were not read from any: "
            "leave them out."
        )
    graphs = graphs.with_data(columns_of(graphs, names))  # computed once, for fit and encode
    return NumbersView.of_columns("descriptors", graphs, names, kernel=kernel)


def check_views(views: object) -> list[View]:
    """Return the views that an estimator was given, Weisfeiler-Lehman patterns first."""
    given: list[View] = []
    for each in views if isinstance(views, (list, tuple)) else [views]:
        if not isinstance(each, View):
            raise TypeError(
                "views must be 'auto' or a list of views such as [tl.WLPatterns(), tl.Paths()]; "
                f"got {each!r:.80}."
            )
        given.append(each)
    for k, each in enumerate(given):
        if each in given[:k]:
            raise ValueError(f"views names {each} twice: once is enough.")
    counted = [each for each in given if each.counts_patterns]
    if not counted:
        raise ValueError(
            "views needs one that counts patterns, such as tl.WLPatterns(): neighbours and the "
            "domain are about its patterns."
        )
    tables = [each.name or "table" for each in given if isinstance(each, Table)]
    if twice := [name for name in tables if tables.count(name) > 1]:
        raise ValueError(f"views has two tables called {twice[0]!r}: give them names.")
    if any(isinstance(each, AttributeCells) for each in given):
        given = [replace(x, attributes="ignore") if isinstance(x, WLPatterns) else x for x in given]
    return sorted(
        given, key=lambda each: (not isinstance(each, WLPatterns), not each.counts_patterns)
    )
