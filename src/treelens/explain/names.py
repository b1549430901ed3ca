"""Names for the label codes of well-known data sets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from treelens.graphs.collection import GraphCollection
from treelens.patterns.forest import TREES, PatternForest
from treelens.patterns.vocabulary import PatternVocabulary


@dataclass(frozen=True)
class LabelNames:
    """Names of the node and edge labels of a data set; labels without a name keep their code."""

    nodes: Mapping[Any, str]
    edges: Mapping[Any, str]
    source: str


_MUTAG = LabelNames(
    nodes=MappingProxyType(dict(enumerate(["C", "N", "O", "F", "I", "Cl", "Br"]))),
    edges=MappingProxyType({0: ":", 1: "-", 2: "=", 3: "#"}),
    source="the README of MUTAG in the TU collection; the valences of all atoms agree",
)
_PTC_ELEMENTS = (
    "In", "P", "O", "N", "Na", "C", "Cl", "S", "Br", "F", "K", "Cu", "Zn", "I", "Ba", "Sn", "Pb",
    "Ca",
)  # fmt: skip
_PTC_MR = LabelNames(
    nodes=MappingProxyType(dict(enumerate(_PTC_ELEMENTS))),
    edges=MappingProxyType({0: "#", 1: "=", 2: "-", 3: ":"}),
    source="the SMILES of the same 344 molecules: all sum formulas and the bonds of 337 agree",
)

# NCI1 and PTC_DGCNN are published without a list of their codes.
LABEL_NAMES: Mapping[str, LabelNames] = MappingProxyType({"MUTAG": _MUTAG, "PTC_MR": _PTC_MR})


def with_label_names(graphs: GraphCollection, names: str | LabelNames) -> GraphCollection:
    """Graphs with names instead of label codes.

    ``names`` is a data set of :data:`LABEL_NAMES`, or names of your own. Graphs of other data sets
    are returned as they are.

    Examples
    --------
    >>> from treelens import as_graph_collection
    >>> graphs = as_graph_collection([([(0, 1)], {0: 0, 1: 2})])
    >>> with_label_names(graphs, "MUTAG")[0].node_labels
    ('C', 'O')
    """
    found = _found(names)
    if found is None:
        return graphs
    return graphs.relabelled(
        graphs.node_codes,
        _named(graphs.node_alphabet, found.nodes),
        edge_alphabet=_named(graphs.edge_alphabet, found.edges),
    )


def named_vocabulary(vocabulary: PatternVocabulary, names: str | LabelNames) -> PatternVocabulary:
    """A vocabulary with names in its text form; it does not match graphs with codes."""
    found = _found(names)
    if found is None:
        return vocabulary
    nodes = _named(vocabulary.node_alphabet, found.nodes)
    edges = _named(vocabulary.edge_alphabet, found.edges)
    return replace(vocabulary, node_alphabet=nodes, edge_alphabet=edges)


def named_forest(forest: PatternForest, names: str | LabelNames) -> PatternForest:
    """A forest whose trees of the graphs' own labels have names in their text form."""
    named = [
        named_vocabulary(vocabulary, names) if TREES[tree][0] == "labels" else vocabulary
        for tree, vocabulary in zip(forest.trees, forest.vocabularies, strict=True)
    ]
    return replace(forest, vocabularies=tuple(named))


def _found(names: str | LabelNames) -> LabelNames | None:
    return names if isinstance(names, LabelNames) else LABEL_NAMES.get(names)


def _named(alphabet: Any, names: Mapping[Any, str]) -> Any:
    return None if alphabet is None else tuple(names.get(label, label) for label in alphabet)
