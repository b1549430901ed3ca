"""Labels of atoms: any of the parts below, written as names such as ``"CH2@"``.

All parts of an atom are packed into one integer, its *key*. Names are made for the few hundred
different keys only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

# In the order in which a name lists them: "ring+element" is "element+ring".
ATOM_PARTS = (
    "element", "charge", "aromatic", "hydrogens", "ring", "degree", "isotope", "chirality",
)  # fmt: skip
# The parts of fine labels, whatever the plain labels are.
FINE_PARTS = frozenset({"element", "charge", "aromatic", "hydrogens", "ring"})

AtomLabel = str | Callable[[Any], Any]
AROMATIC = 2  # the bit of a key
_SMALL_KEYS = 1 << 24  # keys without degree, isotope and chirality
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


def ordered_name(parts: frozenset[str]) -> str:
    """Return the name of some parts, in the usual order."""
    return "+".join(part for part in ATOM_PARTS if part in parts)


def is_known_label(atom_label: str) -> bool:
    """Whether all parts of a name are known to this version."""
    try:
        atom_parts(atom_label)
    except ValueError:
        return False
    return True


def fine_key(atom: Any) -> int:
    """Element, charge, hydrogens, aromaticity and ring membership of an atom in one integer."""
    return (
        atom.GetAtomicNum() << 16
        | (atom.GetFormalCharge() + 256 & 511) << 7
        | (atom.GetTotalNumHs() & 31) << 2
        | atom.GetIsAromatic() << 1
        | atom.IsInRing()
    )


def full_key(atom: Any) -> int:
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


def different_keys(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """``np.unique(keys, return_inverse=True)``, without sorting where keys are small."""
    if not len(keys) or keys.max() >= _SMALL_KEYS:
        return np.unique(keys, return_inverse=True)
    present = np.zeros(int(keys.max()) + 1, dtype=bool)
    present[keys] = True
    different = np.flatnonzero(present)
    position = np.empty(len(present), dtype=np.int32)
    position[different] = np.arange(len(different), dtype=np.int32)
    return different, position[keys]


def names_of_keys(
    keys: np.ndarray, parts: frozenset[str], symbol: Callable[[int], str], by_name: bool = True
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Codes and alphabet of the labels of some keys, sorted by name or in order of the keys."""
    names = [atom_name(key, parts, symbol) for key in keys.tolist()]
    alphabet = sorted(set(names)) if by_name else list(dict.fromkeys(names))
    position = {name: code for code, name in enumerate(alphabet)}
    return np.array([position[name] for name in names], dtype=np.int32), tuple(alphabet)
