"""Which columns of a table hold what: as named, as a model knows them, or by their names."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

from treelens.graphs.errors import GraphDataError
from treelens.graphs.tables import Table

DEFAULT_TARGETS = ("label", "value", "target", "y", "class", "activity")
# Names without capitals, blanks and punctuation, the surest first.
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


def smiles_column(table: Table, wanted: str | None, known: str | None, notes: list[str]) -> str:
    """Return the column with the SMILES; ``known`` is the one a model was fitted to."""
    if wanted is not None:
        return find_column(table.columns, wanted, "smiles", table.source)
    if known is not None and known in table.columns:
        return known
    found = [[c for c in table.columns if _bare(c) == name] for name in _SMILES_NAMES]
    sure = [c for group in found[:_SURE_NAMES] for c in group]
    near = [c for c in table.columns if "smiles" in c.casefold()]
    maybe = [c for group in found[_SURE_NAMES:] for c in group if _holds_molecules(table, c)]
    candidates = sure[:1] or near or maybe[:1]
    if len(candidates) != 1:
        raise GraphDataError(
            f"{table.source} has {'several columns' if candidates else 'no column'} with 'smiles' "
            f"in the name: name the one with the SMILES by smiles=COLUMN. {listed(table.columns)}"
        )
    others = [c for c in dict.fromkeys([*sure, *near]) if c != candidates[0]]
    if others or "smiles" not in candidates[0].casefold():
        notes.append(
            f"the SMILES were read from column {candidates[0]!r}; smiles=COLUMN names another."
        )
    return candidates[0]


def default_target(table: Table, notes: list[str]) -> str:
    """Return the column to learn where none was named: ``label``, ``value``, ..."""
    found = [c for name in DEFAULT_TARGETS for c in table.columns if c.casefold() == name]
    if not found:
        raise GraphDataError(
            f"Name the column of {table.source} with the class or number by target=COLUMN. "
            f"{listed(table.columns)}"
        )
    if found[0].casefold() != "label":
        notes.append(
            f"there is no column 'label': the target is {found[0]!r}; target=COLUMN names another."
        )
    return found[0]


def several_columns(columns: Sequence[str], wanted: str, parameter: str, source: str) -> list[str]:
    """Return the columns of ``"a,b,c"``, each once; a name with a comma in it is one column."""
    if wanted in columns:
        return [wanted]
    names = [name.strip() for name in wanted.split(",") if name.strip()]
    if not names:
        raise GraphDataError(f"{parameter}={wanted!r} names no column. {listed(columns)}")
    return list(dict.fromkeys(find_column(columns, name, parameter, source) for name in names))


def id_columns(
    columns: Sequence[str],
    wanted: str | Sequence[str] | None,
    known: Sequence[str],
    taken: Sequence[str | None],
    source: str,
) -> tuple[str, ...]:
    """Return the columns that name the rows: as named, as a model knows them, or guessed."""
    free = [column for column in columns if column not in taken]
    if wanted == "none":
        return ()
    if wanted == "all" and "all" not in columns:
        return tuple(free)
    if isinstance(wanted, str):
        return tuple(several_columns(columns, wanted, "names", source))
    if wanted is not None:
        return tuple(find_column(columns, name, "names", source) for name in wanted)
    if known and all(name in free for name in known):
        return tuple(known)
    return tuple([c for name in _ID_NAMES for c in free if _bare(c) == name][:1])


def find_column(columns: Sequence[str], wanted: str, parameter: str, source: str) -> str:
    """Return a column that was named by name, or raise an error that lists the columns."""
    if wanted in columns:
        return wanted
    close = difflib.get_close_matches(wanted, columns, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    raise GraphDataError(
        f"{source} has no column {wanted!r} ({parameter}).{hint} {listed(columns)}"
    )


def listed(columns: Sequence[str]) -> str:
    names = ", ".join(map(repr, columns[:50])) + (", ..." if len(columns) > 50 else "")
    return f"Its columns are: {names}." if columns else "It has no columns."


def unit_in(column: str | None) -> str | None:
    """Return the unit that the name of a column has in brackets.

    Examples
    --------
    >>> unit_in("IC50 (nM)"), unit_in("logS [mol/L]"), unit_in("logS")
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
