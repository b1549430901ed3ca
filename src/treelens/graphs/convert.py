"""``as_graph_collection``: graphs of any known kind as a ``GraphCollection``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from treelens.graphs import foreign
from treelens.graphs.build import join
from treelens.graphs.chem import quiet, rdkit
from treelens.graphs.collection import Graph, GraphCollection
from treelens.graphs.errors import GraphDataError, NotGraphsError
from treelens.graphs.molecules import molecules_by_recipe, smiles_by_recipe
from treelens.graphs.recipe import GraphRecipe, check_agreement
from treelens.graphs.table_reader import rows_of_table
from treelens.graphs.tables import is_sdf, read_sdf

_EXPECTED = (
    "a GraphCollection, or a list of NetworkX graphs, RDKit molecules, SMILES strings, PyTorch "
    "Geometric data, igraph graphs, treelens graphs, GraKeL graphs or tuples (edges, node_labels, "
    "edge_labels) or adjacency matrices, or the Path of an SDF"
)


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

        - *NetworkX*, *igraph*: names of attributes of nodes and edges, such as ``["x", "y"]`` or
          ``["weight"]``; ``"all"`` takes all whose values are numbers. A value that is an array
          becomes several attributes (``"pos 1"``, ``"pos 2"``); one that is not there is missing;
        - *PyTorch Geometric*: ``"x"``, ``"pos"``, ``"edge_attr"``, ``"edge_weight"``, or others;
        - *tuples and adjacency matrices*: an array of shape (n_nodes, n_attributes) or a dict from
          nodes to values for each graph, in the order of the node labels; for edges a dict from
          pairs to values; ``edge_attributes=["weight"]`` takes the weights of edges, and
          ``node_attributes=["label"]`` node labels that are numbers or vectors, as GraKeL has them.
    directed : bool, optional
        Whether edges have a direction. None: where one of the NetworkX or igraph graphs is
        directed (with a warning, unless all are), or ``edge_index`` of one graph is not symmetric.
        True: every pair is an edge from the first node to the second, an edge of an undirected
        graph leads both ways.
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
    given: dict[str, Any] = {
        "node_label": node_label, "edge_label": edge_label, "node_attributes": node_attributes,
        "edge_attributes": edge_attributes, "directed": directed,
    }  # fmt: skip
    if isinstance(graphs, GraphCollection):
        kind = _Kind("a GraphCollection, which has all that", _has(), lambda x, _: x)
    elif isinstance(graphs, Path):
        kind = _Kind("molecules of a file", _has(), _read_file)
    else:
        graphs = _listed(graphs)
        kind = _common_kind(graphs)
    for parameter, value in given.items():
        if value is None:
            continue
        if parameter not in kind.takes:
            raise GraphDataError(
                f"{parameter}={value!r:.80} is for graphs of other libraries; got {kind.name}. "
                f"Leave {parameter} out."
            )
        if parameter in _VALUES[:2]:
            given[parameter] = _listed_attributes(parameter, value, kind)
    if kind.source is None:
        collection = kind.convert(graphs, recipe)
        check_agreement(recipe, collection.recipe)
        return collection
    known = recipe or GraphRecipe()
    asked = {name: getattr(known, name) if x is None else x for name, x in given.items()}
    required = not (node_attributes is None and edge_attributes is None)
    plain, wanted = kind.convert(graphs, GraphRecipe(kind.source, **asked))
    collection = join(plain, wanted, required)
    if known.is_molecular and collection.degree_labels and collection.n_nodes:
        raise GraphDataError(
            f"The model was fitted to molecules, and item 0 is {kind.name} without node labels. "
            "Pass SMILES or RDKit molecules."
        )
    return collection


def _listed_attributes(parameter: str, value: Any, kind: _Kind) -> Any:
    """Return names of attributes, or values of each graph, as a list (or "all")."""
    if isinstance(value, str):
        return value if value == "all" else [value]
    names_only = kind.takes is _NAMES
    if not isinstance(value, Iterable) or (
        names_only and not all(isinstance(name, str) for name in value)
    ):
        raise GraphDataError(
            f"{parameter} must be a list of {'names' if names_only else 'values of each graph'}, "
            f"or 'all', for {kind.name}; got {value!r:.80}."
        )
    return value


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


# --- the kinds of graphs --------------------------------------------------------------------


class _Kind(NamedTuple):
    name: str
    recognises: Callable[[Any], bool]
    convert: Callable[[Any, Any], Any]  # of graphs and a recipe
    source: str | None = None  # in the recipe; convert returns plain graphs
    takes: tuple[str, ...] = ()  # arguments of as_graph_collection


def _convert_molecules(items: Sequence[Any], recipe: GraphRecipe | None) -> GraphCollection:
    """Hydrogens of RDKit molecules are removed where the graphs of the recipe have none."""
    if recipe is not None and recipe.is_molecular and recipe.hydrogens is False:
        with quiet():
            items = [
                m if m.GetNumHeavyAtoms() == m.GetNumAtoms() else rdkit().RemoveHs(m) for m in items
            ]
    return molecules_by_recipe(items, (recipe or GraphRecipe()).for_new_molecules("rdkit"))


def _read_file(path: Path, recipe: GraphRecipe | None) -> GraphCollection:
    if not is_sdf(path):
        raise NotGraphsError(
            f"Expected {_EXPECTED}; got the path {path}. Read tables of molecules with "
            "treelens.read_smiles, which also returns the targets."
        )
    recipe = (recipe or GraphRecipe()).for_new_molecules("sdf")
    molecules, table = read_sdf(path, keep_hydrogens=bool(recipe.hydrogens))
    graphs, _ = rows_of_table(table, molecules, recipe, names="none").labelled(None, None)
    return graphs


def _has(*attributes: str) -> Callable[[Any], bool]:
    return lambda item: all(hasattr(item, attribute) for attribute in attributes)


def _is_geometric(item: Any) -> bool:
    # A PyTorch Geometric data set also answers to ``edge_index``, through its __getattr__.
    return hasattr(type(item), "edge_index") or "edge_index" in getattr(item, "__dict__", {})


def _is_matrix(item: Any) -> bool:
    """Whether this is a square matrix of numbers."""
    shape: Any = getattr(item, "shape", ())
    kind = getattr(getattr(item, "dtype", None), "kind", "O")
    return len(shape) == 2 and shape[0] == shape[1] > 0 and kind in "iufb"


def _is_grakel(item: Any) -> bool:
    if not isinstance(item, (tuple, list)) or not 1 <= len(item) <= 3:
        return False
    structure, *labels = item
    if labels and _is_matrix(structure):
        one_axis = isinstance(labels[0], (list, tuple)) or len(getattr(labels[0], "shape", ())) == 1
        labels = labels[one_axis:]
    if not all(x is None or isinstance(x, Mapping) for x in labels):
        return False
    if isinstance(structure, Mapping) or hasattr(structure, "shape"):
        return isinstance(structure, Mapping) or len(structure.shape) == 2
    if not isinstance(structure, (list, set, frozenset)):
        return False
    first = next(iter(structure), None)
    if isinstance(first, list):
        return all(isinstance(x, (int, float, np.number)) for x in first)
    return first is None or isinstance(first, tuple)


_VALUES = ("node_attributes", "edge_attributes", "directed")
_NAMES = ("node_label", "edge_label", *_VALUES)
_KINDS = (
    _Kind("a treelens Graph", lambda x: isinstance(x, Graph),
          lambda graphs, _: foreign.from_treelens(graphs)),
    _Kind("a SMILES string", lambda x: isinstance(x, str), lambda items, recipe: smiles_by_recipe(
          items, (recipe or GraphRecipe()).for_new_molecules("smiles"))),
    _Kind("an RDKit molecule", _has("GetAtoms", "GetBonds"), _convert_molecules),
    _Kind("a NetworkX graph", _has("nodes", "edges", "adj"), foreign.from_networkx, "networkx",
          _NAMES),
    _Kind("an igraph graph", _has("vs", "es", "get_edgelist"), foreign.from_igraph, "igraph",
          _NAMES),
    _Kind("PyTorch Geometric data", _is_geometric, foreign.from_geometric, "geometric", _NAMES),
    _Kind("a GraKeL tuple", _is_grakel, foreign.from_grakel, "grakel", _VALUES),
    _Kind("a GraKeL graph", _has("get_vertices", "get_edges", "get_labels"), foreign.from_grakel,
          "grakel", _VALUES),
    _Kind("an adjacency matrix", _is_matrix, foreign.from_grakel, "grakel", _VALUES),
)  # fmt: skip


def kind_of(item: Any) -> _Kind | None:
    return next((kind for kind in _KINDS if kind.recognises(item)), None)


def _common_kind(items: list[Any]) -> _Kind:
    """Return the kind of all items; the error names the first that is of another."""
    kind = kind_of(items[0])
    strays = (i for i, item in enumerate(items) if kind is None or not kind.recognises(item))
    stray = next(strays, -1)
    if kind is not None and stray < 0:
        return kind
    expected = _EXPECTED if kind is None else f"graphs of one kind, and item 0 is {kind.name}"
    hint = " RDKit gives None for a molecule that it cannot read: leave it out."
    raise NotGraphsError(
        f"Expected {expected}; item {stray} is {described(items[stray])}."
        f"{hint if items[stray] is None else ''}"
    )


# --- what is not a list of graphs -----------------------------------------------------------


def _listed(graphs: Any) -> list[Any]:
    """Return an iterable of graphs as a list; anything else is an error."""
    if isinstance(graphs, list) and graphs and all(map(_is_matrix, graphs)):
        return graphs  # two or three of them are no GraKeL tuple
    if isinstance(graphs, (set, frozenset, np.ma.MaskedArray)):
        why = "masked entries are no graphs" if np.ma.isMA(graphs) else "a set has no order"
        raise NotGraphsError(
            f"Expected a list of graphs; got a {type(graphs).__name__}, and {why}. Make a list."
        )
    if (single := kind_of(graphs)) is not None:
        file = " Files are read by treelens.read_smiles, read_table and load."
        raise NotGraphsError(
            f"Expected a list of graphs; got {single.name} by itself ({described(graphs)}). Wrap "
            f"it in a list: [graph].{file if isinstance(graphs, str) else ''}"
        )
    if (
        len(getattr(graphs, "shape", (0,))) != 1
        or isinstance(graphs, (Mapping, bytes))
        or not (isinstance(graphs, Iterable) or hasattr(graphs, "load"))
        or (isinstance(graphs, np.ndarray) and graphs.dtype.kind not in "OUT")
    ):
        raise NotGraphsError(f"Expected {_EXPECTED}; got {described(graphs)}.")
    if hasattr(graphs, "load") or holds_blocks(graphs):
        raise NotGraphsError(
            f"Expected graphs; got blocks of them ({type(graphs).__name__}), which fit, predict, "
            "predict_proba and decision_function of GraphClassifier and GraphRegressor take. The "
            "graphs of a block are part.load().graphs."
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


def described(value: Any) -> str:
    kind = type(value).__name__
    if hasattr(value, "shape"):
        return f"{kind} of shape {tuple(value.shape)}"
    shown = repr(value)
    return f"{kind} {shown if len(shown) <= 60 else shown[:57] + '...'}"
