"""Names of the label codes of TU data sets, where they are known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

# Names of node and of edge labels by data set. Those of MUTAG are from its README in the TU
# collection; those of PTC_MR from the SMILES of the same molecules: all sum formulas and the bonds
# of 337 of 344 agree. NCI1 and PTC_DGCNN are published without a list of their codes.
LABEL_NAMES: dict[str, tuple[list[str], list[str]]] = {
    "MUTAG": (["C", "N", "O", "F", "I", "Cl", "Br"], [":", "-", "=", "#"]),
    "PTC_MR": (
        [
            "In",
            "P",
            "O",
            "N",
            "Na",
            "C",
            "Cl",
            "S",
            "Br",
            "F",
            "K",
            "Cu",
            "Zn",
            "I",
            "Ba",
            "Sn",
            "Pb",
            "Ca",
        ],
        ["#", "=", "-", ":"],
    ),
}


def with_label_names(labelled: Any, data_set: str | None) -> Any:
    """Graphs or a vocabulary with names instead of label codes; labels without one keep theirs."""
    if labelled is None or data_set not in LABEL_NAMES:
        return labelled
    given = labelled.node_alphabet, labelled.edge_alphabet
    nodes, edges = (
        None if codes is None else tuple(dict(enumerate(names)).get(code, code) for code in codes)
        for codes, names in zip(given, LABEL_NAMES[data_set], strict=True)
    )
    return replace(labelled, node_alphabet=nodes, edge_alphabet=edges)
