"""Which columns of a table hold what: as asked for, as a model knows them, or by their names."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from treelens.cli.console import InputError

if TYPE_CHECKING:
    from treelens.graphs.tables import Table

DEFAULT_TARGETS = ("label", "value", "target", "y", "class", "activity")
# Names without capitals, blanks and signs, the surest first.
_SMILES_NAMES = (
    "smiles", "canonicalsmiles", "smi", "isomericsmiles", "smilesstring", "molsmiles", "structure",
    "structures", "mol", "molecule", "molecules",
)  # fmt: skip
_SURE_NAMES = 6  # so many of them promise SMILES; under the others there may be names
_ID_NAMES = (
    "id", "compoundid", "moleculeid", "molid", "cmpdid", "chemblid", "moleculechemblid",
    "pubchemcid", "cid", "sampleid", "identifier", "name", "compoundname", "moleculename",
    "molname", "cmpdname", "compound", "title", "cas", "casnumber", "casrn", "key", "code",
)  # fmt: skip
_ROWS_TRIED = 20


def smiles_column(
    table: Table, asked: str | None, known: str | None, note: Callable[[str], None]
) -> str:
    """The column with the SMILES; ``known`` is the one of the model, where there is a model."""
    if asked is not None:
        return asked_column(table.columns, asked, "--smiles", table.source)
    if known is not None and known in table.columns:
        return known
    found = [
        [column for column in table.columns if _bare(column) == name] for name in _SMILES_NAMES
    ]
    sure = [column for group in found[:_SURE_NAMES] for column in group]
    near = [c for c in table.columns if "smiles" in c.casefold()]
    maybe = [c for group in found[_SURE_NAMES:] for c in group if _holds_molecules(table, c)]
    candidates = sure[:1] or near or maybe[:1]
    if len(candidates) != 1:
        raise InputError(
            f"{table.source} has {'several columns' if candidates else 'no column'} with 'smiles' "
            "in the name: say which one holds the SMILES with --smiles COLUMN. "
            f"{listed(table.columns)}"
        )
    others = [c for c in dict.fromkeys([*sure, *near]) if c != candidates[0]]
    if others or "smiles" not in candidates[0].casefold():
        note(f"the SMILES are those of column {candidates[0]!r}; --smiles names another.")
    return candidates[0]


def target_column(columns: Sequence[str], asked: str | None, need: bool, source: str) -> str | None:
    """The column to learn or to compare with; None where there need be none."""
    if asked is not None:
        return asked_column(columns, asked, "--target", source)
    if not need:
        return None
    found = [c for name in DEFAULT_TARGETS for c in columns if c.casefold() == name]
    if not found:
        raise InputError(
            f"Say which column of {source} holds the class or number with --target COLUMN. "
            f"{listed(columns)}"
        )
    return found[0]


def target_columns(columns: Sequence[str], asked: str | None, source: str) -> list[str | None]:
    """The columns of ``--target a,b,c``; a name with a comma in it is one column."""
    if asked is None or asked in columns or "," not in asked:
        return [asked]
    names = [name.strip() for name in asked.split(",") if name.strip()]
    return list(dict.fromkeys(asked_column(columns, name, "--target", source) for name in names))


def id_columns(
    columns: Sequence[str],
    asked: str | None,
    known: Sequence[str],
    taken: Sequence[str | None],
    source: str,
) -> tuple[str, ...]:
    """The columns that name the rows: as asked for (``"all"``, ``"none"``), known, or guessed."""
    free = [column for column in columns if column not in taken]
    if asked == "none":
        return ()
    if asked == "all" and "all" not in columns:
        return tuple(free)
    if asked is not None:
        names = [asked] if asked in columns else [name.strip() for name in asked.split(",")]
        return tuple(asked_column(columns, name, "--id", source) for name in names)
    if known and all(name in free for name in known):
        return tuple(known)
    found = [c for name in _ID_NAMES for c in free if _bare(c) == name]
    return tuple(found[:1])


def asked_column(columns: Sequence[str], asked: str, option: str, source: str) -> str:
    """A column that was asked for by name, or an error that lists those there are."""
    if asked in columns:
        return asked
    close = difflib.get_close_matches(asked, columns, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    raise InputError(f"{source} has no column {asked!r} ({option}).{hint} {listed(columns)}")


def listed(columns: Sequence[str]) -> str:
    names = ", ".join(map(repr, columns[:50])) + (", ..." if len(columns) > 50 else "")
    return f"Its columns are: {names}." if columns else "It has no columns."


def units_in(column: str | None) -> str | None:
    """Units that the name of a column gives in brackets.

    Examples
    --------
    >>> units_in("IC50 (nM)"), units_in("logS [mol/L]"), units_in("logS")
    ('nM', 'mol/L', None)
    """
    found = re.search(r"[(\[]([^()\[\]]{1,20})[)\]]\s*$", column or "")
    return None if found is None else found[1].strip()


def _bare(column: str) -> str:
    return re.sub(r"[^a-z0-9]", "", column.casefold())


def _holds_molecules(table: Table, column: str) -> bool:
    """Whether most of the first cells of a column are SMILES."""
    from rdkit import rdBase

    from treelens.graphs.gathering import smiles_parser

    cells = [text for text in table.column(column, "smiles") if text][:_ROWS_TRIED]
    parse = smiles_parser()
    with rdBase.BlockLogs():
        return 2 * sum(parse(text) is not None for text in cells) > len(cells)
