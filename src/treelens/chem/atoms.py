"""Labels and numbers of atoms: what nodes of molecules are called, and their attributes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from treelens.errors import GraphDataError, check_names

if TYPE_CHECKING:
    from rdkit.Chem import Atom, Mol

# Labels have any of the parts below, written as names such as ``"CH2@"``. All parts of an atom are
# packed into one integer, its *key*. Names are made for the few hundred different keys only.

# In the order in which a name lists them: "ring+element" is "element+ring".
ATOM_PARTS = (
    "element",
    "charge",
    "aromatic",
    "hydrogens",
    "ring",
    "degree",
    "isotope",
    "chirality",
)
# The parts of fine labels, whatever the plain labels are.
FINE_PARTS = frozenset({"element", "charge", "aromatic", "hydrogens", "ring"})

AtomLabel = str | Callable[[Any], Any]
AROMATIC = 2  # the bit of a key
_CHIRALITY = {"": 0, "R": 1, "S": 2, "r": 3, "s": 4}
_CHIRAL_NAMES = ("", "_R", "_S", "_r", "_s")


def atom_parts(atom_label: str) -> frozenset[str]:
    """Return the parts of a name such as ``"element+charge"``; raise where one is unknown."""
    parts = atom_label.split("+") if isinstance(atom_label, str) else []
    if not parts or len(set(parts)) < len(parts) or not set(parts) <= set(ATOM_PARTS):
        raise ValueError(
            f"atom_label must be of {', '.join(map(repr, ATOM_PARTS))}, several with + between "
            f"('element+charge'), or a function of an RDKit atom; got {atom_label!r}."
        )
    return frozenset(parts)


def fine_key(atom: Atom) -> int:
    """Element, charge, hydrogens, aromaticity and ring membership of an atom in one integer."""
    return (
        atom.GetAtomicNum() << 16
        | (atom.GetFormalCharge() + 256 & 511) << 7
        | (atom.GetTotalNumHs() & 31) << 2
        | atom.GetIsAromatic() << 1
        | atom.IsInRing()
    )


def full_key(atom: Atom) -> int:
    """The fine key, with the number of neighbours, isotope and chirality (R or S) above it."""
    cip = atom.GetProp("_CIPCode") if atom.HasProp("_CIPCode") else ""
    return (
        _CHIRALITY.get(cip, 0) << 44
        | min(atom.GetIsotope(), 1023) << 34
        | min(atom.GetDegree(), 1023) << 24
        | fine_key(atom)
    )


def atom_name(key: int, parts: frozenset[str], symbol: Callable[[int], str]) -> str:
    """Return the label of an atom with this key, restricted to the parts.

    ``"CH3"``; ``"N+1"``; ``"cH"``, aromatic; ``"CH2@"`` in a ring, not marked where ``"c"`` is
    aromatic; ``"13C"``; ``"CD3"`` with three neighbours; ``"C_R"``, chiral.
    """
    aromatic = "aromatic" in parts and bool(key & AROMATIC)
    element = symbol(key >> 16 & 255) if "element" in parts else "A" if aromatic else ""
    isotope, hydrogens, charge = key >> 34 & 1023, key >> 2 & 31, (key >> 7 & 511) - 256
    texts = {  # in the order of a name
        "isotope": str(isotope or ""),
        "element": element.lower() if aromatic else element,
        "hydrogens": ("", "H")[hydrogens] if hydrogens < 2 else f"H{hydrogens}",
        "charge": f"{charge:+d}" if charge else "",
        "ring": "@" if key & 1 and not aromatic else "",
        "degree": f"D{key >> 24 & 1023}",
        "chirality": _CHIRAL_NAMES[key >> 44 & 7],
    }
    shown = {*parts, "element"} if aromatic else parts
    return "".join(text for part, text in texts.items() if part in shown) or "-"


def names_of_keys(
    keys: np.ndarray, parts: frozenset[str], symbol: Callable[[int], str], by_name: bool = True
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Codes and alphabet of the labels of some keys, sorted by name or in order of the keys."""
    names = [atom_name(key, parts, symbol) for key in keys.tolist()]
    alphabet = sorted(set(names)) if by_name else list(dict.fromkeys(names))
    position = {name: code for code, name in enumerate(alphabet)}
    return np.array([position[name] for name in names], dtype=np.int32), tuple(alphabet)


# --- numbers of atoms as node attributes ----------------------------------------------------------

AtomAttributes = str | Iterable[str] | Callable[[Any], Mapping[str, Any]]
# Partial charges; contributions to logP and molar refractivity, to the topological polar surface
# and to the approximate surface; electrotopological state.
ATOM_ATTRIBUTES = ("gasteiger", "crippen", "tpsa", "labute", "estate")


def _atom_numbers(molecule: Mol, name: str) -> dict[str, Any]:
    from rdkit.Chem import rdMolDescriptors, rdPartialCharges
    from rdkit.Chem.EState import EStateIndices

    if name == "gasteiger":
        copy = type(molecule)(molecule)  # charges are written to the atoms
        rdPartialCharges.ComputeGasteigerCharges(copy)
        charges = np.array([atom.GetDoubleProp("_GasteigerCharge") for atom in copy.GetAtoms()])
        # Elements without parameters have no finite charge.
        return {"gasteiger": np.where(np.isfinite(charges), charges, np.nan)}
    if name == "crippen":
        parts = np.array(rdMolDescriptors._CalcCrippenContribs(molecule)).reshape(-1, 2)
        return {"crippen logP": parts[:, 0], "crippen MR": parts[:, 1]}
    if name == "tpsa":
        return {"tpsa": rdMolDescriptors._CalcTPSAContribs(molecule)}
    if name == "labute":
        return {"labute": list(rdMolDescriptors._CalcLabuteASAContribs(molecule)[0])}
    return {"estate": EStateIndices(molecule)}


def checked_attributes(wanted: AtomAttributes | None) -> tuple[str, ...]:
    """Return the names in ``atom_attributes``; an unknown one is a ``ValueError``."""
    check_names(several=True, atom_attributes=wanted)
    names = (wanted,) if isinstance(wanted, str) else tuple(wanted or ())  # type: ignore[arg-type]
    if not set(names) <= set(ATOM_ATTRIBUTES) or len(set(names)) < len(names):
        known = ", ".join(map(repr, ATOM_ATTRIBUTES))
        raise ValueError(
            f"atom_attributes must be a function or different ones of {known}; got {wanted!r}."
        )
    return names


class AtomTable:
    """The attributes of the atoms of many molecules, added one after the other."""

    def __init__(
        self, names: Iterable[str], function: Callable[[Any], Mapping[str, Any]] | None
    ) -> None:
        own: list[Any] = [partial(_atom_numbers, name=name) for name in names]
        self.functions = own if function is None else [function]
        self.names: tuple[str, ...] | None = None
        self.parts: list[np.ndarray] = []  # (n_atoms, n_names) for each molecule

    def add(self, molecule: Mol, position: int) -> None:
        """Add the attributes of a molecule; an error names its position."""
        n_atoms = molecule.GetNumAtoms()
        columns = dict(chain.from_iterable(dict(f(molecule)).items() for f in self.functions))
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
        table = np.concatenate(self.parts)
        return {"node_attributes": table, "attribute_names": self.names} if self.names else {}
