"""Molecules of a table or an SDF, opened once and parsed once, with the columns beside them."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from treelens.cli.columns import id_columns, smiles_column
from treelens.cli.console import InputError, counted
from treelens.cli.reading import Reading

if TYPE_CHECKING:
    from treelens.graphs.collection import GraphCollection
    from treelens.graphs.recipe import GraphRecipe
    from treelens.graphs.tables import Table

_ROWS_WITH_A_REASON = 1000  # why a molecule cannot be read is asked for no more of them
_WARNINGS_SHOWN, _LONGEST_WARNING = 5, 120
_IN_BRACKETS = re.compile(r"\[\d*([A-Z][a-z]?)")
_COUNTER_IONS = {"Li", "Na", "K", "Rb", "Cs", "Mg", "Ca", "Sr", "Ba"}
_NO_METALS = {
    "H", "He", "B", "C", "N", "O", "F", "Ne", "Si", "P", "S", "Cl", "Ar", "Ge", "As", "Se", "Br",
    "Kr", "Sb", "Te", "I", "Xe", "At", "Rn",
}  # fmt: skip
UNREADABLE = "no molecule that RDKit can read"


class MoleculeFile:
    """A table or an SDF, opened once however many models its molecules are read for.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._opened: dict[bool, tuple[Table, list[Any] | None]] = {}

    def opened(self, keep_hydrogens: bool = False) -> tuple[Table, list[Any] | None]:
        """The table, and the molecules of an SDF, which RDKit parses as it opens the file."""
        from treelens.graphs.sdf import is_sdf, read_sdf
        from treelens.graphs.tables import read_text_table

        of_sdf = is_sdf(self.path)
        key = keep_hydrogens and of_sdf
        if key not in self._opened and of_sdf:
            molecules, table = read_sdf(self.path, keep_hydrogens=key)
            self._opened[key] = table, molecules
        elif key not in self._opened:
            self._opened[key] = read_text_table(self.path), None
        return self._opened[key]

    def read(
        self,
        reading: Reading,
        smiles: str | None,
        ids: str | None,
        targets: list[str],
        note: Callable[[str], None],
    ) -> dict[str, Any]:
        """Graphs of all rows that hold a molecule: what ``GraphData`` has to know, by name."""
        from treelens.graphs.sdf import is_sdf

        if is_sdf(self.path):
            if smiles is not None:
                raise InputError(
                    f"--smiles {smiles}: an SDF holds the molecules themselves. Leave it out."
                )
            recipe = reading.recipe_for("sdf")
            table, molecules = self.opened(bool(recipe.hydrogens))
            found = _found(table, None, {"mol": molecules}, reading, ids, targets, recipe)
        else:
            table, _ = self.opened()
            if not table.rows:
                raise InputError(
                    f"{self.path} has column names but no rows: there is nothing to read."
                )
            found = molecules_in_table(table, reading, smiles, ids, targets, note)
        tell_warnings(note)
        _tell_changes(found["graphs"], note)
        return found


def molecules_in_table(
    table: Table,
    reading: Reading,
    smiles: str | None,
    ids: str | None,
    targets: list[str],
    note: Callable[[str], None],
) -> dict[str, Any]:
    """The same of SMILES in a table, or in a part of one."""
    known = reading.table
    column = smiles_column(table, smiles, None if known is None else known.smiles, note)
    data = {"smiles": table.column(column, "smiles")}
    return _found(table, column, data, reading, ids, targets, reading.recipe_for("smiles"))


def _found(
    table: Table,
    column: str | None,
    data: dict[str, Any],
    reading: Reading,
    ids: str | None,
    targets: list[str],
    recipe: GraphRecipe,
) -> dict[str, Any]:
    """Graphs, with the columns that name the rows."""
    known = () if reading.table is None else reading.table.ids
    names = id_columns(table.columns, ids, known, [column, *targets], table.source)
    return {
        "graphs": _graphs(table, data, names, recipe), "n_rows": len(table.rows),
        "texts": data.get("smiles"), "table": table, "smiles": column,
        "ids": {name: table.column(name, "id") for name in names},
    }  # fmt: skip


def _graphs(
    table: Table, data: dict[str, Any], names: tuple[str, ...], recipe: GraphRecipe
) -> GraphCollection:
    """Rows that cannot be read are left out without a word: the caller counts and tells."""
    from treelens.graphs.errors import InvalidMoleculesWarning
    from treelens.graphs.molecules import molecules_of_table

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InvalidMoleculesWarning)
        read = molecules_of_table(
            table, data, None, names[0] if names else None, recipe=recipe, on_invalid="skip"
        )
    assert read is not None  # nothing was said to allow that none is left
    return read[0]


def _tell_changes(graphs: GraphCollection, note: Callable[[str], None]) -> None:
    from treelens.graphs.standardize import changes_in_words

    if "standardized" not in graphs.graph_data:
        return
    changes = graphs.graph_data["standardized"]
    counts = changes_in_words(changes)
    n_changed = sum(bool(text) for text in changes)
    words = ", ".join(f"{n} {what}" for what, n in counts.items()) or "none"
    lost = _lost_metals(graphs)
    note(f"--standardize changed {n_changed} of {len(graphs)} molecules: {words}.{lost}")


def _lost_metals(graphs: GraphCollection) -> str:
    """Words about metals that went with a small fragment, but for those that only make salts."""
    data = graphs.graph_data
    if "smiles_given" not in data:
        return ""
    rows, metals = [], set()
    for row, given, standard in zip(data["row"], data["smiles_given"], data["smiles"], strict=True):
        gone = _metals_in(given) - _metals_in(standard)
        rows += [row] if gone else []
        metals |= gone
    if not rows:
        return ""
    return (
        f" {len(rows)} lost a metal ({', '.join(sorted(metals))}), the first in row {rows[0] + 1}: "
        "is what is left what was measured?"
    )


def _metals_in(smiles: str) -> set[str]:
    return set(_IN_BRACKETS.findall(smiles)) - _NO_METALS - _COUNTER_IONS


def tell_fragments(graphs: GraphCollection, note: Callable[[str], None]) -> None:
    """That some molecules are salts or solvates, which are read whole unless one says otherwise."""
    recipe, data = graphs.recipe, graphs.graph_data
    if recipe is None or "fragment" in recipe.standardize or "smiles" not in data:
        return
    rows = [row for row, text in zip(data["row"], data["smiles"], strict=True) if "." in text]
    if rows:
        note(
            f"{len(rows)} of {len(graphs)} molecules hold several fragments (salts, solvents), the "
            f"first in row {rows[0] + 1}: they are read whole; --standardize keeps the largest."
        )


def tell_warnings(note: Callable[[str], None]) -> None:
    """What RDKit warned of while the molecules were read, in one line."""
    from treelens.graphs.rdkit_log import heard

    if found := heard():
        note(warnings_in_words(found))


def warnings_in_words(found: Mapping[str, Collection[int]]) -> str:
    """What RDKit warned of, most often first; ``found`` holds rows under every kind of warning.

    Examples
    --------
    >>> words = warnings_in_words({"odd bond #": [4, 7]})
    >>> words.removeprefix("RDKit warned about 2 molecules, which were read all the same: ")
    'odd bond # (2, the first in row 5).'
    """
    rows = {row for some in found.values() for row in some}
    often = sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))
    shown = [
        f"{kind[:_LONGEST_WARNING]} ({len(some)}, the first in row {min(some) + 1})"
        for kind, some in often[:_WARNINGS_SHOWN]
    ]
    more = len(often) - len(shown)
    rest = f"; and {counted(more, 'other kind')}" if more else ""
    about = counted(len(rows), "molecule")
    were = "was" if len(rows) == 1 else "were"
    return f"RDKit warned about {about}, which {were} read all the same: {'; '.join(shown)}{rest}."


def why_unreadable(smiles: str) -> str:
    """What is wrong with a SMILES, in RDKit's words where it has any.

    Examples
    --------
    >>> why_unreadable("CN(C)(C)C")
    'Explicit valence for atom # 1 N, 4, is greater than permitted'
    >>> why_unreadable("C(C"), why_unreadable("")
    ('no SMILES: RDKit cannot parse it', 'an empty cell')
    """
    from rdkit import Chem, rdBase

    if not smiles:
        return "an empty cell"
    if smiles.startswith("InChI="):
        return "an InChI, and a SMILES was expected"
    with rdBase.BlockLogs():
        try:
            bare = Chem.MolFromSmiles(smiles, sanitize=False)
        except UnicodeEncodeError:
            bare = None
        if bare is None:
            return "no SMILES: RDKit cannot parse it"
        problems = Chem.DetectChemistryProblems(bare)
    return problems[0].Message() if problems else UNREADABLE


def reasons(texts: list[str] | None, rows: list[int]) -> dict[int, str]:
    """Why each of these rows holds no molecule."""
    if texts is None:
        return dict.fromkeys(rows, UNREADABLE)
    asked = rows[:_ROWS_WITH_A_REASON]
    return dict.fromkeys(rows, UNREADABLE) | {row: why_unreadable(texts[row]) for row in asked}
