"""What ``fit`` takes: graphs of any known kind as a ``GraphCollection``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, count
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np

from treelens.errors import GraphDataError, NotGraphsError, check_truth
from treelens.graphs.collection import GraphCollection
from treelens.graphs.foreign import (
    EXPECTED,
    NAMES,
    common_kind,
    described,
    is_matrix,
    kind_of,
    read_file,
)
from treelens.graphs.geometric import is_dataset, items_of, taken_apart
from treelens.graphs.kinds import PLAIN, GraphRecipe, InputKind, check_agreement
from treelens.graphs.plain import join


def as_graph_collection(
    graphs: object,
    *,
    node_label: str | None = None,
    edge_label: str | None = None,
    node_attributes: object = None,
    edge_attributes: object = None,
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
          an error. Batches are taken apart; data sets, parts of them and loaders in their order
          are read as lists;
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
        warning, unless all are), or ``edge_index`` of one graph is not symmetric. A warning counts
        edges that are listed in one direction only where others are in both.
    recipe : GraphRecipe, optional
        ``recipe_`` of a fitted model or ``recipe`` of another collection: molecules are read in
        the same way, and labels taken from the same attributes. A collection whose labels mean
        something else by its recipe is an error.

    Notes
    -----
    If no graph has node labels, degrees serve as labels, with a warning; if only some have, that
    is an error. A warning names data of nodes and edges that is not used.

    Examples
    --------
    >>> as_graph_collection([([("a", "b")], {"a": 1, "b": 2})], node_attributes=[[[0.5], [1.5]]])
    GraphCollection(1 graphs, 2 nodes, 1 edges, 2 node labels, 1 node attributes)
    >>> as_graph_collection(["CCO", "c1ccccc1"])
    GraphCollection(2 graphs, 9 nodes, 8 edges, 2 node labels, 2 edge labels)
    """
    if isinstance(graphs, GraphCollection):
        kind = InputKind("a GraphCollection, which has all that", callable, lambda x, _: x)
    elif isinstance(graphs, Path):
        kind = InputKind("molecules of a file", callable, read_file)
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
    if not isinstance(recipe, (GraphRecipe, type(None))):
        raise TypeError(f"recipe must be one of a model or of graphs; got {recipe!r:.80}.")
    given = {name: _asked(name, value, kind) for name, value in given.items()}
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
    if known.kind is not PLAIN and collection.degree_labels and collection.n_nodes:
        raise GraphDataError(
            f"The model was fitted to {known.kind.noun}s, and item 0 is {kind.name} without node "
            "labels."
        )
    return collection


def _asked(parameter: str, value: object, kind: InputKind) -> Any:
    """Return what is asked for by a parameter; raise where this kind of graphs cannot have it."""
    if value is None:
        return None
    if parameter not in kind.takes:
        raise GraphDataError(
            f"{parameter}={value!r:.80} is not for {kind.name}. Leave {parameter} out."
        )
    if parameter == "directed":
        check_truth(parameter, value)
    if not parameter.endswith("_attributes"):
        return value
    if isinstance(value, str):
        return value if value == "all" else [value]
    names = kind.takes is NAMES
    if not isinstance(value, Iterable) or (names and not all(isinstance(x, str) for x in value)):
        raise GraphDataError(
            f"{parameter} must be a list of {'names' if names else 'values of each graph'}, or "
            f"'all', for {kind.name}; got {value!r:.80}."
        )
    return value


def as_single_graph(graph: object, recipe: GraphRecipe | None = None) -> GraphCollection:
    """Return one graph of any known kind, or a list with one, as a collection of length 1."""
    listed = [graph] if kind_of(graph) is not None else graph
    collection = as_graph_collection(listed, recipe=recipe)
    if len(collection) != 1:
        raise GraphDataError(f"Expected one graph; got {len(collection)} of them.")
    return collection


def check_graphs(X: object, recipe: GraphRecipe | None = None) -> GraphCollection:
    """Return graphs of any known kind as a collection, which must not be empty."""
    graphs = as_graph_collection(X, recipe=recipe)
    if not len(graphs):
        raise GraphDataError("There are 0 graphs: at least one is needed.")
    return graphs


def _listed(graphs: Any) -> list[Any]:
    """Return an iterable of graphs as a list; anything else is an error."""
    if isinstance(graphs, list) and graphs and all(map(is_matrix, graphs)):
        return graphs  # two or three of them are no GraKeL tuple
    if is_dataset(graphs):
        graphs = items_of(graphs)
    elif (parts := taken_apart(graphs, 0)) and parts[0] is not graphs:
        graphs = parts
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
        if len(getattr(graphs, "shape", ())) == 2:
            raise NotGraphsError(
                f"Expected graphs or SMILES, one a row; got {described(graphs)}: pass "
                f"{_one_column_of(graphs)}."
            )
        raise NotGraphsError(f"Expected {EXPECTED}; got {described(graphs)}.")
    if hasattr(graphs, "load") or holds_blocks(graphs):
        raise NotGraphsError(
            f"Expected graphs; got blocks of them ({type(graphs).__name__}), which only fit and "
            "predict of some models take. The graphs of a block are part.load().graphs."
        )
    items = graphs.tolist() if isinstance(graphs, np.ndarray) else list(graphs)
    if not items:
        raise GraphDataError("Expected at least one graph; got none (0 graphs).")
    return list(chain.from_iterable(map(taken_apart, items, count())))


def _one_column_of(table: Any) -> str:
    """Return how to pick the SMILES of a data frame, or the first column of an array."""
    columns = list(getattr(table, "columns", ()))
    if not columns:
        return "one column, such as X[:, 0]"
    named = [name for name in columns if "smiles" in str(name).casefold()]
    text = [name for name in columns if any(isinstance(x, str) for x in table[name][:1])]
    return f"df[{[*named, *text, *columns][0]!r}]"


def holds_blocks(given: object) -> TypeGuard[Iterable[Any]]:
    """Whether this is an iterable of blocks, not of graphs."""
    if isinstance(given, (GraphCollection, Iterator)) or not isinstance(given, Iterable):
        return False
    if is_dataset(given):
        return False
    if kind_of(given) is not None:  # a graph by itself: some can be iterated over
        return False
    first = next(iter(given), None)
    return kind_of(first) is None and (hasattr(first, "load") or is_block(first))


def is_block(block: object) -> bool:
    """Whether this is a pair of graphs and targets."""
    if not isinstance(block, (tuple, list)) or len(block) != 2:
        return False
    return isinstance(block[0], Iterable) and not isinstance(block[0], (str, bytes))
