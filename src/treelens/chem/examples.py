"""A table of molecules to try things with: it comes with RDKit."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from treelens.chem.parsing import contributed_data
from treelens.errors import GraphDataError
from treelens.storage.files import whole_file

TARGET = "pIC50"
# Inhibitors with their activity, of one assay in ChEMBL, among RDKit's contributed data.
_FOLDER, _MOLECULES, _ACTIVITIES = "FreeWilson", "CHEMBL2321810.smi", "CHEMBL2321810_act.csv"


def example_table(path: str | Path = "treelens-demo.csv") -> Path:
    """Write a table of 1,017 molecules with measured activities, and return its path.

    The molecules are those of ChEMBL assay 2321810 that come with RDKit. Columns are ``name``,
    ``smiles`` and ``pIC50``.

    Parameters
    ----------
    path : str or Path, default="treelens-demo.csv"
        The file to write. It may be there already, if it is the same table.

    Examples
    --------
    >>> import treelens as tl
    >>> path = tl.example_table()  # doctest: +SKIP
    >>> tl.read_table(path, target="pIC50").graphs  # doctest: +SKIP
    GraphCollection(1017 graphs, 33226 nodes, 36366 edges, 8 node labels, 4 edge labels)
    """
    text, target = _table_text().encode(), Path(path)
    if target.exists():
        if target.read_bytes() != text:
            raise FileExistsError(f"{path} is another file already: give another name.")
        return target
    with whole_file(target) as file:
        file.write(text)
    return target


def has_examples() -> bool:
    """Whether RDKit is there, with its contributed data."""
    folder = contributed_data(_FOLDER)
    return folder is not None and (folder / _MOLECULES).is_file()


def _table_text() -> str:
    folder = contributed_data(_FOLDER)
    if folder is None or not has_examples():
        raise GraphDataError("The example molecules come with RDKit: pip install rdkit.")
    with (folder / _ACTIVITIES).open(newline="", encoding="utf-8") as file:
        activities = {row["Name"]: row["Act"] for row in csv.DictReader(file)}
    found = io.StringIO()
    rows = csv.writer(found, lineterminator="\n")
    rows.writerow(["name", "smiles", TARGET])
    for line in (folder / _MOLECULES).read_text(encoding="utf-8").splitlines():
        smiles, name = line.split()
        if name in activities:
            rows.writerow([name, smiles, activities[name]])
    return found.getvalue()
