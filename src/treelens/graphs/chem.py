"""What is read of molecules with RDKit: parsing, labels and numbers of atoms, standard forms."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from treelens.errors import GraphDataError, check_names, first_few


def quiet() -> Any:
    """Return a context in which RDKit writes no messages to standard error."""
    from rdkit import rdBase

    return rdBase.BlockLogs()


def rdkit() -> Any:
    """Return ``rdkit.Chem``; the error says how to install it."""
    try:
        from rdkit import Chem
    except ImportError as error:
        raise ImportError("Reading molecules needs RDKit: pip install rdkit.") from error
    return Chem


_recent: OrderedDict[str, Any] = OrderedDict()  # molecules that may be needed again soon
_MOST_RECENT = 4096  # a molecule takes some 30 KB


def parsed_smiles(smiles: Iterable[str], stereo: bool = True) -> list[Any]:
    """Molecules of valid SMILES, parsed unless just read; ``stereo``: stereochemistry is needed."""
    chem = rdkit()
    with quiet():
        found = [_recent.get(text) or chem.MolFromSmiles(text) for text in smiles]
        for molecule in filter(None, found if stereo else ()):  # at once where it was done before
            chem.AssignStereochemistry(molecule, cleanIt=True, flagPossibleStereoCenters=True)
    return found


def in_fragments(molecule: Any) -> bool:
    """Whether a molecule, or a SMILES, has several parts without a bond between them."""
    if isinstance(molecule, str):
        return "." in molecule.partition(" ")[0]
    return molecule is not None and len(rdkit().GetMolFrags(molecule)) > 1


def molar_mass(molecule: Any) -> float:
    """Return the mass of a mole in grams, hydrogens and all fragments included."""
    from rdkit.Chem.rdMolDescriptors import _CalcMolWt

    return float(_CalcMolWt(molecule))


# Of one molecule that is read from text. Memory and time grow faster than the number of atoms.
MAX_ATOMS = 5000


def smiles_parser(
    keep: bool = False, stereo: bool = True, max_atoms: int | None = None
) -> Callable[[str], Any]:
    """Return a function from a SMILES to a molecule or None; ``keep``: for ``parsed_smiles``.

    Of a molecule with more heavy atoms than ``max_atoms``, rings and hydrogens are left unknown.
    """
    chem, bare = rdkit(), rdkit().SmilesParserParams()
    bare.sanitize = bare.removeHs = False

    def parsed(smiles: str) -> Any:
        # RDKit takes what follows a blank for a name; only CXSMILES (|...|) may follow one here.
        more = smiles.split(maxsplit=1)[1:]
        if more and not more[0].startswith("|"):
            return None
        try:
            if max_atoms is not None and len(smiles) > max_atoms:  # an atom is a letter or more
                molecule = chem.MolFromSmiles(smiles, bare)
                if molecule is not None and molecule.GetNumHeavyAtoms() > max_atoms:
                    return molecule
            if stereo or more or "[H" in smiles:  # hydrogens may have to be removed
                molecule = chem.MolFromSmiles(smiles)
            else:
                molecule = chem.MolFromSmiles(smiles, bare)
                if molecule is not None and chem.SanitizeMol(molecule, catchErrors=True):
                    molecule = None
        except UnicodeEncodeError:  # half a surrogate pair
            return None
        if keep:
            _recent[smiles] = molecule
        if len(_recent) > _MOST_RECENT:
            _recent.popitem(last=False)
        return molecule

    return parsed


# --- what cannot be read ------------------------------------------------------------------------

UNREADABLE = "no molecule that RDKit can read"
_ROWS_WITH_A_REASON = 1000  # the reason takes parsing the SMILES once more
_ROWS_SHOWN = 5


def why_unreadable(smiles: str) -> str:
    """Return what is wrong with a SMILES, in RDKit's words where it has any."""
    from rdkit import Chem

    if not smiles:
        return "an empty cell"
    if smiles.startswith("InChI="):
        return "an InChI, and a SMILES was expected"
    with quiet():
        try:
            bare = Chem.MolFromSmiles(smiles, sanitize=False)
        except UnicodeEncodeError:
            bare = None
        if bare is None:
            return "no SMILES: RDKit cannot parse it"
        problems = Chem.DetectChemistryProblems(bare)
    if not problems and " " in smiles.strip():
        return "a blank in the SMILES"
    return problems[0].Message() if problems else UNREADABLE


def reasons(
    texts: Sequence[str] | None, rows: Sequence[int], known: Mapping[int, str] | None = None
) -> dict[int, str]:
    """Return why each of these rows holds no molecule; of the first thousand in detail."""
    known = known or {}
    found = {row: known.get(row, UNREADABLE) for row in rows}
    if texts is not None:
        unknown = [row for row in rows if row not in known]
        found |= {row: why_unreadable(texts[row]) for row in unknown[:_ROWS_WITH_A_REASON]}
    return found


def unreadable_rows(
    place: Callable[[int], str],
    texts: Sequence[str] | None,
    rows: Sequence[int],
    known: Mapping[int, str],
    names: Sequence[str] = (),
) -> str:
    """Return the first rows that could not be read, with the reasons, as a list in words."""
    why = reasons(texts, rows[:_ROWS_SHOWN], known)
    shown = [place(row) for row in rows]
    for k, row in enumerate(rows[:_ROWS_SHOWN]):
        if texts is not None:
            shown[k] += f" {texts[row][:60]!r} ({why[row]})"
            continue
        if names and names[row]:  # a record of an SDF has no text
            shown[k] += f" {names[row][:40]!r}"
        if row in known:
            shown[k] += f" ({known[row]})"
    return first_few(shown, _ROWS_SHOWN)


# --- labels of atoms ------------------------------------------------------------------------------
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


def _atom_numbers(molecule: Any, name: str) -> dict[str, Any]:
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

    def add(self, molecule: Any, position: int) -> None:
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


# --- standard forms of molecules ----------------------------------------------------------------

_WORDS = {
    "fragment": "reduced to the largest fragment",
    "uncharge": "neutralised",
    "tautomer": "turned into the canonical tautomer",
}
STEPS = tuple(_WORDS)
# RDKit's own limit on tautomers is 1,000, which takes minutes for a peptide.
_MOST_TAUTOMERS = 200


def checked_steps(standardize: bool | str | Iterable[str]) -> tuple[str, ...]:
    """Return the steps in their order: none, all for True, or those named."""
    if isinstance(standardize, bool):
        return STEPS if standardize else ()
    several = isinstance(standardize, Iterable) and not isinstance(standardize, str)
    given = list(standardize) if several else [standardize]  # type: ignore[arg-type]
    unknown = [step for step in given if step not in STEPS]
    if unknown:
        raise ValueError(
            f"standardize must be True, False or some of {', '.join(STEPS)}; got {unknown[0]!r}."
        )
    return tuple(step for step in STEPS if step in given)


def standardizer(steps: tuple[str, ...]) -> Callable[[Any], tuple[str | None, str]]:
    """Return a function from a molecule to its standard SMILES, or None, and what changed it."""
    from rdkit import Chem
    from rdkit.Chem.MolStandardize import rdMolStandardize

    chooser = rdMolStandardize.LargestFragmentChooser(preferOrganic=True)
    uncharger = rdMolStandardize.Uncharger()
    enumerator = rdMolStandardize.TautomerEnumerator()
    enumerator.SetMaxTautomers(_MOST_TAUTOMERS)

    def step(name: str, molecule: Any) -> Any:
        if name == "fragment":
            return chooser.choose(molecule) if len(Chem.GetMolFrags(molecule)) > 1 else molecule
        if name == "tautomer":
            return enumerator.Canonicalize(molecule)
        if any(atom.GetFormalCharge() for atom in molecule.GetAtoms()):
            molecule = uncharger.uncharge(molecule)
            Chem.SanitizeMol(molecule)
        return molecule

    def standardize(molecule: Any) -> tuple[str | None, str]:
        changed, before = [], Chem.MolToSmiles(molecule)
        for name in checked_steps(steps):
            try:
                molecule = step(name, molecule)
            except (ValueError, RuntimeError):  # RDKit found no valid molecule on its way
                molecule = None
            if molecule is None or not molecule.GetNumAtoms():
                return None, name
            after = Chem.MolToSmiles(molecule)
            if after != before:
                changed.append(name)
            before = after
        return before, "+".join(changed)

    return standardize


def changes_in_words(changes: Iterable[str]) -> dict[str, int]:
    """Return how many molecules each step changed, by a description of the step."""
    taken = [step for text in changes for step in text.split("+")]
    return {_WORDS[step]: n for step in STEPS if (n := taken.count(step))}
