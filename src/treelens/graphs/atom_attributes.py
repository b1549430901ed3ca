"""Numbers of atoms as node attributes: partial charges, contributions to logP and surfaces."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from treelens.graphs.errors import GraphDataError

AtomAttributes = str | Iterable[str] | Callable[[Any], Mapping[str, Any]]


def _gasteiger(molecule: Any) -> dict[str, Any]:
    from rdkit.Chem.rdPartialCharges import ComputeGasteigerCharges

    copy = type(molecule)(molecule)  # charges are written to the atoms
    ComputeGasteigerCharges(copy)
    charges = np.array([atom.GetDoubleProp("_GasteigerCharge") for atom in copy.GetAtoms()])
    # Elements without parameters have no finite charge.
    return {"gasteiger": np.where(np.isfinite(charges), charges, np.nan)}


def _crippen(molecule: Any) -> dict[str, Any]:
    from rdkit.Chem.rdMolDescriptors import _CalcCrippenContribs

    contributions = np.array(_CalcCrippenContribs(molecule)).reshape(-1, 2)
    return {"crippen logP": contributions[:, 0], "crippen MR": contributions[:, 1]}


def _tpsa(molecule: Any) -> dict[str, Any]:
    from rdkit.Chem.rdMolDescriptors import _CalcTPSAContribs

    return {"tpsa": _CalcTPSAContribs(molecule)}


def _labute(molecule: Any) -> dict[str, Any]:
    from rdkit.Chem.rdMolDescriptors import _CalcLabuteASAContribs

    return {"labute": list(_CalcLabuteASAContribs(molecule)[0])}


def _estate(molecule: Any) -> dict[str, Any]:
    from rdkit.Chem.EState import EStateIndices

    return {"estate": EStateIndices(molecule)}


_KNOWN: dict[str, Callable[[Any], Mapping[str, Any]]] = {
    "gasteiger": _gasteiger,  # partial charges
    "crippen": _crippen,  # contributions to logP and molar refractivity
    "tpsa": _tpsa,  # to the topological polar surface
    "labute": _labute,  # to the approximate surface
    "estate": _estate,  # electrotopological state
}
ATOM_ATTRIBUTES = tuple(_KNOWN)


def checked_attributes(wanted: AtomAttributes | None) -> tuple[str, ...]:
    """Return the names in ``atom_attributes``; an unknown one is a ``ValueError``."""
    names = (wanted,) if isinstance(wanted, str) else tuple(wanted or ())  # type: ignore[arg-type]
    if not set(names) <= set(ATOM_ATTRIBUTES) or len(set(names)) < len(names):
        known = ", ".join(map(repr, ATOM_ATTRIBUTES))
        raise ValueError(
            f"atom_attributes must be different ones of {known}, or a function of an RDKit "
            f"molecule that returns a dict of arrays; got {wanted!r}."
        )
    return names


class AtomTable:
    """The attributes of the atoms of many molecules, added one after the other."""

    def __init__(
        self, names: Iterable[str], function: Callable[[Any], Mapping[str, Any]] | None
    ) -> None:
        self.functions = [_KNOWN[name] for name in names] if function is None else [function]
        self.names: tuple[str, ...] | None = None
        self.parts: list[np.ndarray] = []  # (n_atoms, n_names) for each molecule

    def add(self, molecule: Any, position: int) -> None:
        """Add the attributes of a molecule; an error names its position."""
        n_atoms = molecule.GetNumAtoms()
        columns: dict[Any, Any] = {}
        for function in self.functions:
            columns.update(function(molecule))
        names = tuple(map(str, columns))
        self.names = names if self.names is None else self.names
        try:
            part = np.array(list(columns.values()), dtype=np.float64)
        except (TypeError, ValueError):  # no numbers, or of different lengths
            part = np.empty(0)
        if names != self.names or part.shape != (len(names), n_atoms):
            raise GraphDataError(
                f"Graph {position}: atom_attributes must give a number for each of {n_atoms} atoms "
                f"under the names {', '.join(map(repr, self.names)) or '(none)'}; it gave "
                f"{ {name: np.shape(column) for name, column in columns.items()} }."
            )
        self.parts.append(part.T)

    def arguments(self) -> dict[str, Any]:
        """Return the attributes as arguments of a collection."""
        if not self.parts or not self.names:
            return {}
        return {"node_attributes": np.concatenate(self.parts), "attribute_names": self.names}
