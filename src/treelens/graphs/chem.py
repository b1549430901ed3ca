"""RDKit: its import, its silence, and parsing."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from treelens.graphs.errors import first_few


@contextmanager
def quiet() -> Iterator[None]:
    """Keep RDKit from writing messages to standard error."""
    from rdkit import rdBase

    with rdBase.BlockLogs():
        yield


def rdkit() -> Any:
    """Return ``rdkit.Chem``; the error says how to install it."""
    try:
        from rdkit import Chem
    except ImportError as error:
        raise ImportError("Reading molecules needs RDKit: pip install rdkit.") from error
    return Chem


_recent: OrderedDict[str, Any] = OrderedDict()  # molecules that may be needed again soon
_MOST_RECENT = 4096  # a molecule takes some 30 KB


def parsed_smiles(smiles: Iterable[str]) -> list[Any]:
    """Molecules of valid SMILES, without the warnings of RDKit; parsed unless just read."""
    parse = rdkit().MolFromSmiles
    with quiet():
        return [_recent.get(text) or parse(text) for text in smiles]


def smiles_parser(keep: bool = False) -> Callable[[str], Any]:
    """Return a function that parses a SMILES into a molecule, or None.

    ``keep``: for :func:`parsed_smiles`, if nobody changes the molecules.

    RDKit takes what follows a blank for a name; in a cell, it is a second SMILES or a mistake. Only
    the extensions of CXSMILES (``|...|``) may follow a blank.
    """
    parse = rdkit().MolFromSmiles

    def parsed(smiles: str) -> Any:
        more = smiles.split(maxsplit=1)[1:]
        if more and not more[0].startswith("|"):
            return None
        try:
            molecule = parse(smiles)
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


def reasons(texts: Sequence[str] | None, rows: Sequence[int]) -> dict[int, str]:
    """Return why each of these rows holds no molecule; of the first thousand in detail."""
    found = dict.fromkeys(rows, UNREADABLE)
    if texts is not None:
        found |= {row: why_unreadable(texts[row]) for row in rows[:_ROWS_WITH_A_REASON]}
    return found


def unreadable_rows(
    place: Callable[[int], str], texts: Sequence[str] | None, rows: Sequence[int],
    names: Sequence[str] = (),
) -> str:  # fmt: skip
    """Return the first rows that could not be read, with the reasons, as a list in words."""
    why = reasons(texts, rows[:_ROWS_SHOWN])
    shown = [place(row) for row in rows]
    for k, row in enumerate(rows[:_ROWS_SHOWN]):
        if texts is not None:
            shown[k] += f" {texts[row][:60]!r} ({why[row]})"
        elif names and names[row]:  # a record of an SDF has no text
            shown[k] += f" {names[row][:40]!r}"
    return first_few(shown, _ROWS_SHOWN)
