"""Molecules of an SDF, and the column of a table that has their SMILES."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from treelens.chem.parsing import quiet, rdkit
from treelens.errors import GraphDataError
from treelens.graphs.columns import bare_name
from treelens.graphs.tables import Table, decoded, find_column, listed, read_bytes


def read_sdf(path: Path, keep_hydrogens: bool) -> tuple[list[Any], Table]:
    """Return the molecules of an SDF (None where unreadable), and names and properties."""
    return sdf_of_bytes(path, read_bytes(path), keep_hydrogens)


def sdf_of_bytes(path: Path, data: bytes, keep_hydrogens: bool) -> tuple[list[Any], Table]:
    """The same of a file that was read already; ``path`` is for messages."""
    supplier = rdkit().SDMolSupplier()
    if not data.strip():
        raise GraphDataError(f"{path} is empty: expected at least one SDF record.")
    text = decoded(io.BytesIO(data), path).read()
    lines = [line.strip() for line in io.StringIO(text, newline="")]
    with quiet():
        supplier.SetData(text, removeHs=not keep_hydrogens)
        molecules = list(supplier)
    begins = [0, *(n for n, line in enumerate(lines, 1) if line.startswith("$$$$"))]
    n_records = len(begins) - (not any(lines[begins[-1] :]))
    molecules += [None] * (n_records - len(molecules))  # after a record that is cut off
    begins = begins[: len(molecules)]
    records = []
    for m, begin in zip(molecules, begins, strict=True):
        records.append({"name": "".join(lines[begin : begin + 1])})  # also of what is unreadable
        if m is not None:
            records[-1] |= {name: m.GetProp(name) for name in m.GetPropNames()}
    columns = list(dict.fromkeys(name for record in records for name in record))
    if not any(record["name"].strip() for record in records):
        columns.remove("name")
    rows = [[record.get(name, "") for name in columns] for record in records]
    return molecules, Table(str(path), columns, rows, [begin + 1 for begin in begins])


# Names without capitals, blanks and punctuation, the surest first.
_SMILES_NAMES = (
    "smiles",
    "canonicalsmiles",
    "smi",
    "isomericsmiles",
    "smilesstring",
    "molsmiles",
)
_STRUCTURE_NAMES = ("structure", "structures", "mol", "molecule", "molecules")


def smiles_column(table: Table, wanted: str | None, known: str | None, notes: list[str]) -> str:
    """Return the column with the SMILES; ``known`` is the one a model was fitted to."""
    if wanted is not None:
        return find_column(table.columns, wanted, "smiles", table.source)
    if known is not None and known in table.columns:
        return known
    sure = [c for name in _SMILES_NAMES for c in table.columns if bare_name(c) == name]
    near = [c for c in table.columns if "smiles" in c.casefold()]
    maybe = [c for name in _STRUCTURE_NAMES for c in table.columns if bare_name(c) == name]
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
