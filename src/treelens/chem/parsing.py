"""Molecules from text with RDKit, and what is wrong with text that cannot be read."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from treelens.errors import GraphDataError, first_few
from treelens.graphs.collection import GraphCollection


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


def contributed_data(name: str) -> Path | None:
    """Return the folder of data of one of RDKit's contributions; None without RDKit."""
    try:
        from rdkit import RDConfig
    except ImportError:
        return None
    return Path(RDConfig.RDContribDir, name, "data")


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


def in_fragments(molecule: object) -> bool:
    """Whether a molecule, or a SMILES, has several parts without a bond between them."""
    if isinstance(molecule, str):
        return "." in molecule.partition(" ")[0]
    return molecule is not None and len(rdkit().GetMolFrags(molecule)) > 1


def molar_mass(molecule: object) -> float:
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


def molecules_behind(graphs: GraphCollection, stereo: bool = True) -> list[Any]:
    """The RDKit molecules that graphs were read from; ``stereo``: with stereochemistry."""
    data = graphs.graph_data
    if "mol" in data:
        return list(data["mol"])
    if "smiles" in data:
        return parsed_smiles(data["smiles"], stereo)
    raise GraphDataError(
        "These graphs were not read from molecules, so they have no scaffolds and no fingerprints: "
        "read them with read_smiles, or use random folds and graph kernels."
    )
