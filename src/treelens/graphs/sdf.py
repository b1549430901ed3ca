"""SDF files: the molecules, and their names and properties as a table."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any, NamedTuple

from treelens.graphs.errors import GraphDataError
from treelens.graphs.gathering import rdkit
from treelens.graphs.opening import read_lines
from treelens.graphs.rdkit_log import quiet
from treelens.graphs.tables import Table, decoded, inner_suffix

SDF_ENDINGS = (".sdf", ".sd")
_NAME = "name"  # the column of the first line of each record


def is_sdf(path: Path) -> bool:
    return inner_suffix(path) in SDF_ENDINGS


def read_sdf(path: Path, keep_hydrogens: bool) -> tuple[list[Any], Table]:
    """The molecules of an SDF (None where one is unreadable) and their properties as a table.

    The first line of a record is a column, too, called ``"name"``, unless a property is.
    """
    return sdf_of_bytes(path, read_lines(path), keep_hydrogens)


def sdf_of_bytes(path: Path, data: bytes, keep_hydrogens: bool) -> tuple[list[Any], Table]:
    """The same of a file that was read already; ``path`` is for messages."""
    chem = rdkit()
    if not data.strip():
        raise GraphDataError(f"{path} is empty: expected at least one SDF record.")
    text = decoded(data, path)
    supplier = chem.SDMolSupplier()
    molecules = []
    with quiet() as listener:
        supplier.SetData(text, removeHs=not keep_hydrogens)
        for position, molecule in enumerate(supplier):
            molecules.append(molecule)
            if listener is not None:
                listener.molecule_ends(None if molecule is None else position)
    begins, n_records = _records(text)
    molecules += [None] * (n_records - len(molecules))  # after a record that is cut off
    return molecules, _table(str(path), molecules, begins[: len(molecules)])


class _Begin(NamedTuple):
    """Where a record begins, and what stands there: the name, also of what cannot be read."""

    line: int
    title: str


def _records(text: str) -> tuple[list[_Begin], int]:
    """Where records begin, also what may come after the last, and how many records there are."""
    lines = [line.rstrip("\r\n") for line in io.StringIO(text, newline="")]
    ends = [n for n, line in enumerate(lines, 1) if line.startswith("$$$$")]
    begins = [_Begin(n + 1, "".join(lines[n : n + 1]).strip()) for n in (0, *ends)]
    after = lines[begins[-1].line - 1 :]
    return begins, len(ends) + any(line.strip() for line in after)


def _table(source: str, molecules: list[Any], begins: list[_Begin]) -> Table:
    properties = [{} if m is None else _properties(m) for m in molecules]
    columns = list(dict.fromkeys(name for found in properties for name in found))
    titles = [
        begin.title if m is None else m.GetProp("_Name") if m.HasProp("_Name") else ""
        for m, begin in zip(molecules, begins, strict=True)
    ]
    if any(title.strip() for title in titles) and _NAME not in columns:
        columns.insert(0, _NAME)
        properties = [{_NAME: t} | p for t, p in zip(titles, properties, strict=True)]
    rows = [[found.get(name, "") for name in columns] for found in properties]
    return Table(source, columns, rows, [begin.line for begin in begins])


def _properties(molecule: Any) -> dict[str, str]:
    return {name: molecule.GetProp(name) for name in molecule.GetPropNames()}
