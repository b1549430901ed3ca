"""Notes on the molecules of a table: why rows cannot be read, salts, names, RDKit's warnings."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from treelens.graphs.collection import GraphCollection
from treelens.graphs.standardize import changes_in_words
from treelens.graphs.tables import Table, first_few

UNREADABLE = "no molecule that RDKit can read"
_ROWS_WITH_A_REASON = 1000  # the reason takes parsing the SMILES once more
_ROWS_SHOWN = 5
_WARNINGS_SHOWN, _LONGEST_WARNING = 5, 120
_IN_BRACKETS = re.compile(r"\[\d*([A-Z][a-z]?)")
_COUNTER_IONS = {"Li", "Na", "K", "Rb", "Cs", "Mg", "Ca", "Sr", "Ba"}
_NO_METALS = {
    "H", "He", "B", "C", "N", "O", "F", "Ne", "Si", "P", "S", "Cl", "Ar", "Ge", "As", "Se", "Br",
    "Kr", "Sb", "Te", "I", "Xe", "At", "Rn",
}  # fmt: skip


def why_unreadable(smiles: str) -> str:
    """What is wrong with a SMILES, in RDKit's words where it has any.

    Examples
    --------
    >>> why_unreadable("CN(C)(C)C")
    'Explicit valence for atom # 1 N, 4, is greater than permitted'
    >>> why_unreadable("C(C"), why_unreadable(""), why_unreadable("CCO CCN")
    ('no SMILES: RDKit cannot parse it', 'an empty cell', 'a blank in the SMILES')
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
    if not problems and " " in smiles.strip():
        return "a blank in the SMILES"
    return problems[0].Message() if problems else UNREADABLE


def reasons(texts: Sequence[str] | None, rows: Sequence[int]) -> dict[int, str]:
    """Why each of these rows holds no molecule; of the first thousand in detail."""
    found = dict.fromkeys(rows, UNREADABLE)
    if texts is not None:
        found |= {row: why_unreadable(texts[row]) for row in rows[:_ROWS_WITH_A_REASON]}
    return found


def unreadable_rows(
    table: Table | None, texts: Sequence[str] | None, rows: Sequence[int], names: Sequence[str]
) -> str:
    """The first rows that could not be read, with the reasons; ``names`` are those of all rows."""
    why = reasons(texts, rows[:_ROWS_SHOWN])
    shown = []
    for row in rows[:_ROWS_SHOWN]:
        place = f"row {row + 1}" if table is None else table.place(row)
        if texts is not None:
            place += f" {texts[row][:40]!r} ({why[row]})"
        elif names and names[row]:  # a record of an SDF has no text
            place += f" {names[row][:40]!r}"
        shown.append(place)
    return ", ".join(shown) + (f" and {len(rows) - len(shown)} more" if rows[_ROWS_SHOWN:] else "")


def about_standardizing(graphs: GraphCollection) -> list[str]:
    """How many molecules standardising changed, and metals that were lost by it."""
    data = graphs.graph_data
    if "standardized" not in data:
        return []
    changes = data["standardized"]
    words = ", ".join(f"{n} {what}" for what, n in changes_in_words(changes).items()) or "none"
    n_changed = sum(bool(text) for text in changes)
    note = f"standardising changed {n_changed} of {len(graphs)} molecules: {words}."
    rows, metals = [], set()
    for row, before, standard in zip(
        data["row"], data.get("smiles_given", ()), data.get("smiles", ()), strict=False
    ):
        gone = _metals_in(before) - _metals_in(standard)
        rows += [row] if gone else []
        metals |= gone
    if rows:
        note += (
            f" {len(rows)} lost a metal ({', '.join(sorted(metals))}), the first in row "
            f"{rows[0] + 1}: is what is left what was measured?"
        )
    return [note]


def _metals_in(smiles: str) -> set[str]:
    return set(_IN_BRACKETS.findall(smiles)) - _NO_METALS - _COUNTER_IONS


def about_salts(graphs: GraphCollection) -> list[str]:
    """That some molecules are salts or solvates, which are read whole by default."""
    recipe, data = graphs.recipe, graphs.graph_data
    if recipe is None or "fragment" in recipe.standardize or "smiles" not in data:
        return []
    rows = [row for row, text in zip(data["row"], data["smiles"], strict=True) if "." in text]
    if not rows:
        return []
    return [
        f"{len(rows)} of {len(graphs)} molecules have several fragments (salts, solvents), the "
        f"first in row {rows[0] + 1}: they are read whole; standardising (--standardize) keeps the "
        "largest."
    ]


def about_shared_names(
    graphs: GraphCollection, rows: np.ndarray, ids: Mapping[str, Sequence[str]]
) -> list[str]:
    """That a name stands in several rows with different molecules: one of them may be wrong."""
    from treelens.graphs.duplicates import same_molecules

    if not ids or not {"smiles", "mol"} & set(graphs.graph_data):
        return []
    column, names = next(iter(ids.items()))
    by_name: dict[str, list[int]] = {}
    for graph, row in enumerate(rows.tolist()):
        by_name.setdefault(names[row], []).append(graph)
    several = [some for name, some in by_name.items() if name and len(some) > 1]
    if not several:
        return []
    groups = same_molecules(graphs[np.concatenate(several)]).groups
    ends = np.cumsum([len(some) for some in several])
    shown = []
    for some, own in zip(several, np.split(groups, ends[:-1]), strict=True):
        if len(np.unique(own)) > 1:
            listed = ", ".join(str(int(rows[graph]) + 1) for graph in some[:4])
            more = ", ..." if len(some) > 4 else ""
            shown.append(f"{names[int(rows[some[0]])][:40]!r} (rows {listed}{more})")
    if not shown:
        return []
    return [f"column {column!r} has the same name for different molecules: {first_few(shown)}."]


def about_rdkit_warnings(found: Mapping[str, Collection[int]]) -> list[str]:
    """RDKit's warnings, most frequent first; ``found`` has the rows of every kind of warning.

    Examples
    --------
    >>> about_rdkit_warnings({"odd bond #": [4, 7]})
    ['RDKit warned about 2 molecules, which were read: odd bond # (2, the first in row 5).']
    """
    if not found:
        return []
    rows = {row for some in found.values() for row in some}
    often = sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))
    shown = [
        f"{kind[:_LONGEST_WARNING]} ({len(some)}, the first in row {min(some) + 1})"
        for kind, some in often[:_WARNINGS_SHOWN]
    ]
    more = len(often) - len(shown)
    rest = f"; and {more} other kind{'s' if more > 1 else ''}" if more else ""
    about = "1 molecule, which was" if len(rows) == 1 else f"{len(rows)} molecules, which were"
    return [f"RDKit warned about {about} read: {'; '.join(shown)}{rest}."]


def made_smiles(graphs: GraphCollection) -> dict[str, list[Any]]:
    """SMILES of the standard forms (``standard_smiles``), or of the molecules of an SDF."""
    from treelens.graphs.gathering import rdkit

    known = graphs.graph_data
    name = "standard_smiles" if "standardized" in known else "smiles"
    if name == "smiles" and "mol" not in known:
        return {}
    if "smiles" in known:
        return {name: list(known["smiles"])}
    return {name: [rdkit().MolToSmiles(molecule) for molecule in known["mol"]]}
