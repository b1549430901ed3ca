"""Which columns of a table hold what: as named, as a model knows them, or by their names."""

from __future__ import annotations

import re
from collections.abc import Sequence

from treelens.errors import GraphDataError
from treelens.graphs.tables import Table, find_column, listed

DEFAULT_TARGETS = ("label", "value", "target", "y", "class", "activity")
# Names without capitals, blanks and punctuation, the surest first.
_ID_NAMES = (
    "id",
    "compoundid",
    "moleculeid",
    "molid",
    "cmpdid",
    "chemblid",
    "moleculechemblid",
    "pubchemcid",
    "cid",
    "sampleid",
    "batchid",
    "compoundno",
    "compoundnumber",
    "identifier",
    "name",
    "compoundname",
    "moleculename",
    "molname",
    "cmpdname",
    "compound",
    "cmpd",
    "title",
    "cas",
    "casnumber",
    "casrn",
    "key",
    "code",
)


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
    """Return the columns of ``"a,b,c"``, each once; names may have commas in them."""
    parts, found = wanted.split(","), list[str]()
    while parts:
        joined = (",".join(parts[:n]).strip() for n in range(len(parts), 0, -1))
        name = next((name for name in joined if name in columns), parts[0].strip())
        if name:
            found.append(find_column(columns, name, parameter, source))
        del parts[: name.count(",") + 1]
    if not found:
        raise GraphDataError(f"{parameter}={wanted!r} names no column. {listed(columns)}")
    return list(dict.fromkeys(found))


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
    return tuple([c for name in _ID_NAMES for c in free if bare_name(c) == name][:1])


def unit_in(column: str | None) -> str | None:
    """Return the unit that the name of a column has in brackets."""
    found = re.search(r"[(\[]([^()\[\]]{1,20})[)\]]\s*$", column or "")
    return None if found is None else found[1].strip()


def bare_name(column: str) -> str:
    return re.sub(r"[^a-z0-9]", "", column.casefold())
