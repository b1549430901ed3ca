"""What ``fit`` takes: graphs of any known kind as a ``GraphCollection``, and targets."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from treelens.errors import GraphDataError, NotGraphsError
from treelens.graphs.build import join
from treelens.graphs.collection import GraphCollection
from treelens.graphs.foreign import (
    EXPECTED,
    NAMES,
    Kind,
    common_kind,
    described,
    is_matrix,
    kind_of,
    read_file,
)
from treelens.graphs.recipe import GraphRecipe, check_agreement

LIMITS = "target_limit"  # in ``graph_data``: 1 for lower limits, -1 for upper ones, 0 for values
NOISE = "noise std"  # in ``graph_data``: standard deviation of each target, in its units


def as_graph_collection(
    graphs: Any,
    *,
    node_label: str | None = None,
    edge_label: str | None = None,
    node_attributes: Any = None,
    edge_attributes: Any = None,
    directed: bool | None = None,
    recipe: GraphRecipe | None = None,
) -> GraphCollection:
    """Turn graphs of any known kind into a collection.

    Parameters
    ----------
    graphs : GraphCollection or iterable of graphs, all of one kind
        - a ``GraphCollection`` is returned as it is;
        - *NetworkX*: labels are the attribute ``label`` of nodes and edges;
        - *igraph*: likewise ``vs["label"]`` and ``es["label"]``;
        - *PyTorch Geometric* ``Data``: node labels are ``node_labels``, else ``x``; edge labels
          are ``edge_labels``, else ``edge_attr``. One-hot rows become the position of the one;
          other whole numbers stay, as tuples where there are several columns; other numbers are
          an error;
        - *RDKit* molecules and *SMILES* strings: elements and bond types;
        - *GraKeL* graphs, or ``(edges, node_labels, edge_labels)`` with edges as pairs, triples,
          a dict or an adjacency matrix; nodes that only the labels name are kept;
        - *adjacency matrices* ``A`` or ``(A, node_labels)``: arrays, SciPy's sparse matrices and
          arrays, lists of lists; labels are a list or a dict;
        - :class:`treelens.Graph`, the items of a collection;
        - the ``Path`` of an SDF, whose molecules are read as by :func:`treelens.read_smiles`.
    node_label, edge_label : str, optional
        Another attribute to take the labels from; for NetworkX, igraph and PyTorch Geometric.
    node_attributes, edge_attributes : list of str, "all" or list of arrays, optional
        Continuous attributes to use beside the labels.

        - *NetworkX*, *igraph*: names such as ``["x", "y"]`` or ``["weight"]``; ``"all"`` takes all
          whose values are numbers. An array becomes several attributes (``"pos 1"``, ``"pos 2"``);
        - *PyTorch Geometric*: ``"x"``, ``"pos"``, ``"edge_attr"``, ``"edge_weight"``, or others;
        - *tuples and adjacency matrices*: an array of shape (n_nodes, n_attributes) or a dict from
          nodes to values for each graph, in the order of the node labels; for edges a dict from
          pairs to values; ``edge_attributes=["weight"]`` takes the weights of edges, and
          ``node_attributes=["label"]`` node labels that are numbers or vectors, as GraKeL has them.
    directed : bool, optional
        Whether edges have a direction, from the first node to the second; an edge of an undirected
        graph leads both ways. None: where one of the NetworkX or igraph graphs is directed (with a
        warning, unless all are), or ``edge_index`` of one graph is not symmetric.
    recipe : GraphRecipe, optional
        ``recipe_`` of a fitted model or ``recipe`` of another collection: molecules are read in
        the same way, and labels taken from the same attributes. A collection whose labels mean
        something else by its recipe is an error.

    Notes
    -----
    If no graph has node labels, degrees serve as labels, with a warning; if only some have, that
    is an error. A warning names edge weights and continuous attributes that are not used.

    Examples
    --------
    >>> as_graph_collection([([("a", "b")], {"a": 1, "b": 2})], node_attributes=[[[0.5], [1.5]]])
    GraphCollection(1 graphs, 2 nodes, 1 edges, 2 node labels, 1 node attributes)
    >>> as_graph_collection(["CCO", "c1ccccc1"])
    GraphCollection(2 graphs, 9 nodes, 8 edges, 2 node labels, 2 edge labels)
    """
    if isinstance(graphs, GraphCollection):
        kind = Kind("a GraphCollection, which has all that", callable, lambda x, _: x)
    elif isinstance(graphs, Path):
        kind = Kind("molecules of a file", callable, read_file)
    else:
        graphs = _listed(graphs)
        kind = common_kind(graphs)
    given: dict[str, Any] = {
        "node_label": node_label,
        "edge_label": edge_label,
        "node_attributes": node_attributes,
        "edge_attributes": edge_attributes,
        "directed": directed,
    }
    for parameter, value in given.items():
        if value is not None and parameter not in kind.takes:
            raise GraphDataError(
                f"{parameter}={value!r:.80} is not for {kind.name}. Leave {parameter} out."
            )
        if value is None or not parameter.endswith("_attributes"):
            continue
        names = kind.takes is NAMES
        if isinstance(value, str):
            given[parameter] = value if value == "all" else [value]
        elif not isinstance(value, Iterable) or (
            names and not all(isinstance(name, str) for name in value)
        ):
            raise GraphDataError(
                f"{parameter} must be a list of {'names' if names else 'values of each graph'}, or "
                f"'all', for {kind.name}; got {value!r:.80}."
            )
    if kind.source is None:
        collection = kind.convert(graphs, recipe)
        if recipe is not None:
            check_agreement(recipe, collection.recipe)
        return collection
    known = recipe or GraphRecipe()
    asked = {name: getattr(known, name) if x is None else x for name, x in given.items()}
    required = not (node_attributes is None and edge_attributes is None)
    plain, wanted = kind.convert(graphs, GraphRecipe(kind.source, **asked))
    collection = join(plain, wanted, required)
    if known.is_molecular and collection.degree_labels and collection.n_nodes:
        raise GraphDataError(
            f"The model was fitted to molecules, and item 0 is {kind.name} without node labels."
        )
    return collection


def as_single_graph(graph: Any, recipe: GraphRecipe | None = None) -> GraphCollection:
    """Return one graph of any known kind, or a list with one, as a collection of length 1."""
    listed = [graph] if kind_of(graph) is not None else graph
    collection = as_graph_collection(listed, recipe=recipe)
    if len(collection) != 1:
        raise GraphDataError(f"Expected one graph; got {len(collection)} of them.")
    return collection


def check_graphs(X: Any, recipe: GraphRecipe | None = None) -> GraphCollection:
    """Return graphs of any known kind as a collection, which must not be empty."""
    graphs = as_graph_collection(X, recipe=recipe)
    if not len(graphs):
        raise GraphDataError("There are 0 graphs: at least one is needed.")
    return graphs


def _listed(graphs: Any) -> list[Any]:
    """Return an iterable of graphs as a list; anything else is an error."""
    if isinstance(graphs, list) and graphs and all(map(is_matrix, graphs)):
        return graphs  # two or three of them are no GraKeL tuple
    if (single := kind_of(graphs)) is not None:
        file = " Files are read by treelens.read_smiles, read_table and load."
        raise NotGraphsError(
            f"Expected a list of graphs; got {single.name} by itself ({described(graphs)}). Wrap "
            f"it in a list: [graph].{file if isinstance(graphs, str) else ''}"
        )
    if (
        len(getattr(graphs, "shape", (0,))) != 1
        or isinstance(graphs, (Mapping, bytes, set, frozenset, np.ma.MaskedArray))
        or not (isinstance(graphs, Iterable) or hasattr(graphs, "load"))
        or (isinstance(graphs, np.ndarray) and graphs.dtype.kind not in "OUT")
    ):
        raise NotGraphsError(f"Expected {EXPECTED}; got {described(graphs)}.")
    if hasattr(graphs, "load") or holds_blocks(graphs):
        raise NotGraphsError(
            f"Expected graphs; got blocks of them ({type(graphs).__name__}), which only fit and "
            "predict of some models take. The graphs of a block are part.load().graphs."
        )
    items = graphs.tolist() if isinstance(graphs, np.ndarray) else list(graphs)
    if not items:
        raise GraphDataError("Expected at least one graph; got none (0 graphs).")
    return items


def holds_blocks(given: Any) -> bool:
    """Whether this is an iterable of blocks, not of graphs."""
    if isinstance(given, (GraphCollection, Iterator)) or not isinstance(given, Iterable):
        return False
    if kind_of(given) is not None:  # a graph by itself: some can be iterated over
        return False
    first = next(iter(given), None)
    return kind_of(first) is None and (hasattr(first, "load") or is_block(first))


def is_block(block: Any) -> bool:
    """Whether this is a pair of graphs and targets."""
    if not isinstance(block, (tuple, list)) or len(block) != 2:
        return False
    return isinstance(block[0], Iterable) and not isinstance(block[0], (str, bytes))


# --- targets ---------------------------------------------------------------------------------


def check_classes(y: Any, n_graphs: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct classes and a code per graph, or raise an error about ``y``."""
    from sklearn.utils.multiclass import check_classification_targets, type_of_target

    array = target_array(y, n_graphs)
    # Among strings, an array turns NaN into the class "nan": a list is searched as it is.
    values = y if isinstance(y, (list, tuple)) else array.tolist()
    missing = [i for i, value in enumerate(values) if _is_nothing(value)]
    if missing:
        raise GraphDataError(
            f"y holds no class for {len(missing)} graphs, the first at position {missing[0]}: give "
            "them one, or leave them out."
        )
    if type_of_target(array) == "continuous":
        raise GraphDataError("y holds numbers, no classes: use GraphRegressor.")
    check_classification_targets(array)
    if len(set(map(str, values))) < len(set(values)):  # numpy makes one class of 1 and "1"
        raise GraphDataError("y holds a number and the same as text: convert all to one kind.")
    classes, codes = np.unique(array, return_inverse=True)
    by_name: dict[str, str] = {}
    for name in map(str, classes.tolist()):
        other = by_name.setdefault(name.strip().casefold(), name)
        if other != name:
            message = f"The classes {other!r} and {name!r} differ in capitals or blanks only."
            warnings.warn(message, UserWarning, stacklevel=3)
    if len(classes) < 2:
        raise GraphDataError(f"y holds one class only ({classes.tolist()[0]!r}): two are needed.")
    return classes, codes


def positive_code(classes: np.ndarray | None) -> int | None:
    """Return which of two classes effects, scores and suggestions are about.

    The second, as in scikit-learn, unless its name negates that of the first. None for numbers and
    for other counts of classes.

    Examples
    --------
    >>> positive_code(np.array(["no", "yes"])), positive_code(np.array(["active", "inactive"]))
    (1, 0)
    """
    if classes is None or len(classes) != 2:
        return None
    if classes.tolist() == ["+", "-"]:
        return 0
    first, second = (re.sub(r"[\W_]", "", str(name)).casefold() for name in classes.tolist())
    negations = {f"{prefix}{first}" for prefix in ("in", "no", "non", "not", "un")}
    return 0 if first and second in negations else 1


def target_array(y: Any, n_graphs: int) -> np.ndarray:
    """Return targets as an array; an error where there is not one for each graph."""
    if y is None:
        raise GraphDataError("There is nothing to learn: call fit(graphs, y).")
    if np.ma.isMaskedArray(y) and np.ma.getmaskarray(y).any():
        raise GraphDataError(f"y is masked for {np.ma.count_masked(y)} graphs: leave them out.")
    array = np.asarray(y)
    if array.dtype.kind in "cMm":  # numpy would convert these in silence
        what = "complex numbers" if array.dtype.kind == "c" else "dates or time spans"
        raise GraphDataError(f"y holds {what}: expected real numbers or classes.")
    if array.shape != (n_graphs,):
        raise GraphDataError(
            f"There are {n_graphs} graphs but {array.size} values in y, of shape {array.shape}: "
            "give one each, one-dimensional."
        )
    return array


def first_without_class(y: np.ndarray) -> tuple[int, str] | None:
    """Return the position of the first graph without a class, and words about it."""
    if y.dtype.kind in "iubU":  # which have no word for nothing
        return None
    missing = ((k, f"y holds no class ({x})") for k, x in enumerate(y.tolist()) if _is_nothing(x))
    return next(missing, None)


def _is_nothing(value: Any) -> bool:
    from treelens._sklearn_compat import is_pandas_na

    return value is None or is_pandas_na(value) or bool(value != value)


def check_noise(noise: Any, n_graphs: int, place: Callable[[int], str] = "graph {}".format) -> Any:
    """Return standard deviations (n_graphs,) as floats; NaN where one is not known."""
    import pandas as pd

    given = pd.Series(list(noise), dtype=object)
    values = pd.to_numeric(given, errors="coerce").to_numpy(dtype=np.float64, copy=True)
    wrong = np.flatnonzero(given.notna() & (given != "") & ~((values >= 0) & (values < np.inf)))
    if len(wrong):
        raise GraphDataError(
            f"noise: a standard deviation is a number, 0 or more, but {place(int(wrong[0]))} has "
            f"{given[wrong[0]]!r:.40}. Correct it, or leave it empty."
        )
    if len(values) != n_graphs:
        raise GraphDataError(f"noise: give {n_graphs} standard deviations; got {len(values)}.")
    if np.isnan(values).all():
        raise GraphDataError("noise: no standard deviation is known. Leave noise out.")
    return values


class Transform(NamedTuple):
    """A scale that numbers are learned on; ``base`` is the base of the logarithm.

    It increases, so that lower limits stay lower limits.
    """

    name: str
    base: float
    forward: Callable[[np.ndarray], np.ndarray]

    def inverse(self, values: np.ndarray) -> np.ndarray:
        """Return values in the units of the table."""
        return np.power(self.base, values)

    def inverse_std(self, mean: np.ndarray, std: np.ndarray) -> np.ndarray:
        """Return standard deviations in the units of the table, of log-normal variables."""
        mean, variance = mean * np.log(self.base), (std * np.log(self.base)) ** 2
        return np.exp(mean + variance / 2) * np.sqrt(np.expm1(variance))

    def forward_std(self, values: np.ndarray, std: np.ndarray) -> np.ndarray:
        """Return small standard deviations of values in units of the table, on this scale."""
        return std / (values * np.log(self.base))

    def inverse_cov(self, mean: np.ndarray, cov: np.ndarray) -> np.ndarray:
        """Return covariances in the units of the table, of log-normal variables."""
        mean, cov = mean * np.log(self.base), cov * np.log(self.base) ** 2
        expected = np.exp(mean + np.diagonal(cov) / 2)
        return np.outer(expected, expected) * np.expm1(cov)

    def checked(self, y: np.ndarray, place: Callable[[int], str]) -> np.ndarray:
        """Return numbers on the scale, or raise an error that names the first not above 0."""
        wrong = np.flatnonzero(~(np.isnan(y) | (y > 0)))
        if len(wrong):
            first = int(wrong[0])
            raise GraphDataError(
                f"transform={self.name!r} needs values above 0, but {place(first)} is "
                f"{y[first]:g} ({len(wrong)} such values). Correct them, or leave it out."
            )
        return self.forward(y)


def transform_named(name: str | None) -> Transform | None:
    """Return the transform ``"log10"`` or ``"ln"``; None for None and ``"none"``."""
    known = {"log10": Transform("log10", 10.0, np.log10), "ln": Transform("ln", math.e, np.log)}
    if name in (None, "none"):
        return None
    if name not in known:
        raise ValueError(f"transform must be one of none, {', '.join(known)}; got {name!r}.")
    return known[name]


def learned_transform(recipe: Any) -> Transform | None:
    """Return the transform in the record of a recipe; None where there is none."""
    table = None if recipe is None else recipe.table
    return None if table is None else transform_named(table.transform)
