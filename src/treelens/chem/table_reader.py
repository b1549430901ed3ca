"""Read tables of molecules: the columns, molecules and targets of a file in one call."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from itertools import compress, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from treelens.chem.atoms import AtomAttributes, AtomLabel
from treelens.chem.endpoint_table import ALL, endpoint_columns, with_endpoints
from treelens.chem.identity import same_molecules
from treelens.chem.molecule_table import MoleculeTable
from treelens.chem.molecules import Molecules, leave_out, smiles_by_recipe
from treelens.chem.parsing import MAX_ATOMS, in_fragments
from treelens.chem.recipe import MoleculeRecipe, recipe_for_molecules
from treelens.chem.repeats import members
from treelens.chem.sdf import read_sdf, smiles_column
from treelens.chem.standardize import changes_in_words
from treelens.errors import (
    GraphDataError,
    RepeatedMoleculesWarning,
    check_choice,
    check_names,
    check_whole,
    first_few,
)
from treelens.graphs.collection import GraphCollection
from treelens.graphs.columns import id_columns
from treelens.graphs.kinds import DESCRIPTOR_PREFIX, GraphRecipe, TableRecord
from treelens.graphs.tables import Table, check_sheet, is_sdf, read_text_table
from treelens.graphs.target_columns import looks_measured

if TYPE_CHECKING:
    from treelens.models.fitted import HasModel

DESCRIPTORS = ("rdkit",)


def read_smiles(
    path: str | Path,
    smiles: str = "smiles",
    target: str | None = "label",
    *,
    names: str | None = None,
    on_invalid: str = "raise",
    on_missing: str = "raise",
    hydrogens: bool = False,
    atom_label: AtomLabel = "element",
    bond_label: str = "order",
    standardize: bool | str | Sequence[str] = False,
    atom_attributes: AtomAttributes | None = None,
    max_atoms: int = MAX_ATOMS,
    sheet: str | None = None,
) -> tuple[GraphCollection, np.ndarray | Any]:  # Any: None without a target
    """Read molecules and their classes from a file, row by row.

    :func:`read_table` also finds columns, merges repeated molecules, of which there is a warning
    here, and knows units. Atoms become nodes, in RDKit's order, and bonds become edges labelled
    ``-``, ``=``, ``#`` and ``:`` (aromatic).

    Parameters
    ----------
    path : str or Path
        A table with a header (``.csv``, ``.tsv``, ``.txt``; comma, tab or semicolon), ``.smi``
        (columns ``smiles`` and ``name``, no header), ``.xlsx``, ``.parquet``, or ``.sdf``, where
        columns are properties of the records (``name``: their first lines). Text files may be
        ``.gz``, within the limits of :func:`read_tudataset`.
    smiles : str, default="smiles"
        The column with the SMILES; not used for ``.sdf``.
    target : str or None, default="label"
        The column with the class or value to learn. None: ``y`` is None.
    names : str, optional
        A column to take the names of the graphs from; by default the first that is called id, name
        or the like, and ``"none"`` for none.
    on_invalid, on_missing : {"raise", "skip"}, default="raise"
        Rows that RDKit cannot parse, and rows without a target: an error or a warning lists them.
    hydrogens : bool, default=False
        Whether to add the hydrogens as nodes, after the heavy atoms.
    atom_label : str or callable, default="element"
        What nodes are labelled by: any of element, charge, aromatic, hydrogens, ring, degree,
        isotope and chirality, with + between (``"element+charge"``: ``"N+1"``), or a function of
        an RDKit atom; a model file keeps its name only.
    bond_label : {"order", "order+stereo"}, default="order"
        Whether edge labels distinguish the sides of a double bond (``"=E"``, ``"=Z"``).
    standardize : bool or sequence of str, default=False
        What to do first: ``"fragment"`` keeps the largest one (without counter-ions and solvents),
        ``"uncharge"`` neutralises, ``"tautomer"`` takes RDKit's canonical one; True: all of these.
    atom_attributes : list of str or callable, optional
        Numbers of the atoms as node attributes: of ``"gasteiger"`` (partial charges),
        ``"crippen"`` (contributions to logP and molar refractivity), ``"tpsa"`` and ``"labute"``
        (to the polar and the whole surface) and ``"estate"``; or a function from an RDKit molecule
        to a dict of arrays with a number (or NaN) for each atom.
    max_atoms : int, default=5000
        Larger molecules count as unreadable: one of 20,000 atoms takes gigabytes to learn from.
    sheet : str, optional
        The sheet of an Excel workbook; by default the first that has a column of SMILES.

    Returns
    -------
    graphs : GraphCollection
        ``graph_data`` has ``"row"``, counted from 0 without the header, and ``"smiles"`` as given
        (``"mol"``, an RDKit molecule, for ``.sdf``); where molecules were standardised, the SMILES
        of that, ``"smiles_given"`` and ``"standardized"``, the steps that changed it.
    y : ndarray or None
        Integers where all targets are whole numbers, floats where all are numbers, else strings.
        Numbers are read strictly: one target like ``01`` or ``1_0`` makes all of them strings.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "drinks.csv")
    >>> _ = path.write_text("smiles,label\\nCCO,1\\nO,0\\n")
    >>> graphs, y = read_smiles(path)
    >>> graphs[0].node_labels, graphs[0].edge_labels, y.tolist()
    (('C', 'C', 'O'), ('-', '-'), [1, 0])
    """
    check_choice("on_invalid", on_invalid, ("raise", "skip"))
    check_choice("on_missing", on_missing, ("raise", "skip"))
    check_names(smiles=smiles, target=target, names=names, sheet=sheet)
    path = Path(path).expanduser()
    recipe = MoleculeRecipe.of(
        "sdf" if is_sdf(path) else "smiles",
        atom_label,
        hydrogens,
        bond_label,
        standardize,
        atom_attributes,
        max_atoms,
    )
    read = rows_of_table(*_table_in(path, recipe, sheet), recipe, smiles, names, target=target)
    graphs, y = read.labelled(target, on_invalid, on_missing)
    _warn_of_repeats(read.source, graphs, y)
    return graphs, y


def _warn_of_repeats(source: str, graphs: GraphCollection, y: np.ndarray | None) -> None:
    """Warn of rows that repeat a molecule, and of those with another class."""
    parts = [part for part in members(same_molecules(graphs).groups) if len(part) > 1]
    if not parts:
        return
    rows = np.array(graphs.graph_data["row"]) + 1
    named = [first_few(list(map(str, rows[part].tolist())), 4) for part in parts]
    torn = list[str]()
    if y is not None and not looks_measured(y):
        torn = [text for part, text in zip(parts, named, strict=True) if len(set(y[part])) > 1]
    n = sum(map(len, parts)) - len(parts)
    repeat = f"{n} rows repeat" if n > 1 else "1 row repeats"
    classes = f", with different classes in rows {first_few(torn, 5, '; ')}" if torn else ""
    warnings.warn(
        f"{source}: {repeat} the molecule of another row (rows {first_few(named, 5, '; ')})"
        f"{classes}. All were kept; read_table merges them.",
        RepeatedMoleculesWarning,
        stacklevel=3,
    )


def read_table(
    path: str | Path | Table,
    *,
    smiles: str | None = None,
    target: str | Sequence[str] | None = None,
    qualifier: str | None = None,
    limits: str | None = None,
    names: str | Sequence[str] | None = None,
    covariates: Sequence[str] | None = None,
    descriptors: str | None = None,
    task: str = "auto",
    transform: str | None = None,
    unit: str | None = None,
    unit_column: str | None = None,
    duplicates: str = "merge",
    on_invalid: str = "skip",
    max_invalid: float = 0.1,
    on_missing: str = "skip",
    hydrogens: bool | None = None,
    atom_label: AtomLabel | None = None,
    bond_label: str | None = None,
    standardize: bool | str | Sequence[str] | None = None,
    atom_attributes: AtomAttributes | None = None,
    max_atoms: int = MAX_ATOMS,
    model: HasModel | None = None,
    noise: str | None = None,
    sheet: str | None = None,
) -> MoleculeTable:
    """Read molecules and targets from a table, as ``treelens fit`` does.

    Parameters
    ----------
    path : str, Path or Table
        A file as in :func:`read_smiles`, or a table that was read already.
    smiles : str, optional
        The column with the SMILES; by default the one that is called so.
    target : str, sequence of str, or None
        The column with the class or the number to learn; ``"auto"`` finds the first that is called
        label, value, target, y, class or activity. None: ``y`` is None. Several columns, or
        ``"all"`` (every column of numbers), are endpoints of one model, with gaps: a molecule is
        kept that has a value in any of them. Numbers may have a
        qualifier (``>10`` and ``<0.5`` are limits, ``~3`` counts as 3), a unit and an error: ``> 30
        uM``, ``7,2 %``, ``12 ± 3``. What else stands between them counts as missing, and is named.
    limits : "auto", optional
        Take the smallest or the largest value as a limit where many rows share it, as at the end of
        an assay's range.
    qualifier : str, optional
        A column with the qualifiers of the target: ``=``, ``>``, ``<``, ``>=``, ``<=`` or ``~``. Of
        several targets a pattern such as ``"{} modifier"``, with braces for the name of the target.
    names : str or sequence of str, optional
        The columns that name the rows, ``"all"`` or ``"none"``; by default the first that is called
        id, name or the like.
    covariates : sequence of str, optional
        Columns that stand beside the graphs (assay, temperature).
    descriptors : {"rdkit"}, optional
        RDKit's descriptors as covariates.
    task : {"auto", "classification", "regression"}, default="auto"
        ``"auto"``: regression where the target holds many different numbers.
    transform : {"log10", "ln"}, optional
        The scale to learn numbers on; ``y`` and predictions are in the units of the table.
    unit : str, optional
        The unit to learn numbers in, such as ``"nM"``. Values in another one, as the name of their
        column has it in brackets or a column of units says, are converted, also between amounts
        and masses (``"ug/mL"``). None: they must all have the same.
    unit_column : str, optional
        The column with the unit of each value, or ``"none"``; by default the one that is called so
        (``Units``, or ``Standard Units`` for ``Standard Value``) or holds units only.
    duplicates : {"merge", "first", "keep", "error"}, default="merge"
        Rows of the same molecule (and covariates): one row with the mean of the numbers (on the
        scale of ``transform``) or the most frequent class; the first row; all; or an error. Limits
        count only where a molecule has no measured value, and then the tightest.
    on_invalid, on_missing : {"skip", "raise"}, default="skip"
        Rows without a molecule that RDKit can read, and rows without a target.
    max_invalid : float, default=0.1
        The largest share of rows without a molecule; more are an error.
    hydrogens, atom_label, bond_label, standardize, atom_attributes :
        As in :func:`read_smiles`; by default as ``model`` needs them.
    max_atoms : int, default=5000
        Larger molecules count as unreadable.
    model : fitted estimator, optional
        Read the molecules, columns and covariates that this model needs.
    noise : str, optional
        The column with standard deviations of the target, in its units, or ``"cells"`` where they
        stand in its cells (``12 ± 3``); of several targets a pattern, as of qualifiers. Without
        it, where at least ten values are merged replicates, their pooled variance, divided by their
        number, is the noise of each mean: no error bar is narrower.
    sheet : str, optional
        The sheet of an Excel workbook; by default the first that has a column of SMILES.

    Returns
    -------
    MoleculeTable
        ``graphs, y = read_table(...)`` unpacks what ``fit`` takes; ``notes`` says what was done.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "assay.csv")
    >>> _ = path.write_text("ID,Structure,IC50 (nM)\\na,CCO,10\\nb,OCC,1000\\nc,CCN,5\\nd,C1,7\\n")
    >>> table = read_table(path, target="IC50 (nM)", transform="log10", max_invalid=0.3)
    >>> table.targets.values.round(6).tolist(), table.targets.record.unit
    ([100.0, 5.0], 'nM')
    >>> table.rows.tolist(), list(table.names)
    ([0, 2], ['a', 'c'])
    """
    check_names(smiles=smiles, qualifier=qualifier, noise=noise)
    check_names(unit=unit, unit_column=unit_column, sheet=sheet)
    check_names(several=True, target=target, names=names, covariates=covariates)
    check_whole("max_atoms", max_atoms, 1)
    target, several = _one_or_several(target, covariates)
    recipe = None if model is None else model.recipe_
    wanted = covariate_names(covariates, descriptors, model)
    path = path if isinstance(path, Table) else Path(path).expanduser()
    reader = "sdf" if _is_sdf_without(smiles, path) else "smiles"
    labels = atom_label, hydrogens, bond_label, standardize, atom_attributes
    own = replace(recipe_for(reader, recipe, *labels), max_atoms=max_atoms)
    table, molecules = _table_in(path, own, sheet, empty=False)
    known = None if recipe is None else recipe.table
    column = target if isinstance(target, str) and not several else None
    read = rows_of_table(table, molecules, own, smiles, names, wanted, known, column)
    read.notes.extend(about_molecules(read.graphs, chosen=model is not None))
    check_unreadable(read, on_invalid, max_invalid)
    read.notes.extend(about_shared_names(read))
    if target is None:
        return read
    reading: dict[str, Any] = {"task": task, "transform": transform, "unit": unit}
    reading |= {"unit_column": unit_column, "duplicates": duplicates}
    reading |= {"qualifier": qualifier, "noise": noise, "limits": limits}
    if several:
        return with_endpoints(read, endpoint_columns(read, target), **reading)
    reading["on_missing"] = on_missing
    return read.with_target(None if target == "auto" else str(target), **reading)


def _is_sdf_without(smiles: str | None, path: Path | Table) -> bool:
    """Whether a path is an SDF, of which nobody may name a column of SMILES."""
    from_sdf = isinstance(path, Path) and is_sdf(path)
    if from_sdf and smiles is not None:
        raise GraphDataError(f"smiles={smiles}: an SDF has the molecules themselves. Leave it out.")
    return from_sdf


def _one_or_several(
    target: str | Sequence[str] | None, covariates: Sequence[str] | None
) -> tuple[str | Sequence[str] | None, bool]:
    """Return the target, and whether it is several, which have no covariates."""
    if target is None or (isinstance(target, str) and target != ALL):
        return target, False
    if not isinstance(target, str) and len(target) == 1:
        return target[0], False
    if covariates is not None:
        raise GraphDataError(
            f"covariates={covariates!r} is for one target: give several targets a table of numbers "
            "as a view, tl.Table(...)."
        )
    return target, True


def _table_in(
    path: Path | Table, recipe: MoleculeRecipe, sheet: str | None, empty: bool = True
) -> tuple[Table, Sequence[Any] | None]:
    """Return a table, and the molecules of an SDF; ``empty``: it may have no rows."""
    molecules = None
    if isinstance(path, Table):
        check_sheet(Path(path.source), sheet)
        table = path
    elif is_sdf(path):
        check_sheet(path, sheet)
        molecules, table = read_sdf(path, keep_hydrogens=bool(recipe.hydrogens))
    else:
        table = read_text_table(path, sheet)
    if not (table.rows or empty):
        raise GraphDataError(f"{table.source} has column names but no rows to read.")
    return table, molecules


def rows_of_table(
    table: Table,
    molecules: Sequence[Any] | None,
    recipe: MoleculeRecipe,
    smiles: str | None = None,
    names: str | Sequence[str] | None = None,
    covariates: Sequence[str] = (),
    known: TableRecord | None = None,
    target: str | None = None,
) -> MoleculeTable:
    """Return the molecules of a table, or of a block of one, without targets."""
    known, notes = known or TableRecord(), list[str]()
    column, texts = None, None
    if molecules is None:
        column = smiles_column(table, smiles, known.smiles, notes)
        texts = table.column(column, "smiles")
    names = id_columns(table.columns, names, known.ids, [column, target], table.source)
    ids = {name: table.column(name, "names") for name in names}
    collected = Molecules(recipe)
    collected.extend((molecules or ()) if texts is None else map(collected.parse, texts))
    if collected.invalid and not collected.kept:
        graphs = smiles_by_recipe(["C"], recipe)[:0]
    else:
        data: dict[str, Any] = {"mol": molecules} if texts is None else {"smiles": texts}
        graphs = collected.build(data, next(iter(ids.values()), None), table.first_row)
    rows = np.array(graphs.graph_data["row"], dtype=np.int64) - table.first_row
    own = [n for n in covariates if n not in DESCRIPTORS and not n.startswith(DESCRIPTOR_PREFIX)]
    if columns := {name: table.column(name, "covariates") for name in own}:
        graphs = graphs.with_data({c: [v[row] for row in rows] for c, v in columns.items()})
    invalid = np.array(collected.invalid, dtype=np.int64)
    counts = {"rows without a readable molecule": len(invalid)} if len(invalid) else {}
    return MoleculeTable(
        table.source,
        graphs,
        None,
        rows,
        len(table.rows),
        covariates=list(covariates),
        notes=notes,
        counts=counts,
        ids=ids,
        smiles=column,
        table=table,
        texts=texts,
        unreadable=invalid,
        why=collected.why,
    )


def check_unreadable(table: MoleculeTable, on_invalid: str, max_invalid: float) -> None:
    """Note the rows without a molecule, or raise where there are too many."""
    check_choice("on_invalid", on_invalid, ("skip", "raise"))
    if not len(table.unreadable):
        return
    share, found = len(table.unreadable) / table.n_rows, table.about_unreadable()
    if on_invalid == "skip" and (share > max_invalid or share == 1.0):
        skip = f", or leave them out with max_invalid={share + 0.01:.2f}" if share < 1.0 else ""
        raise GraphDataError(
            f"{found} With so many, the column or the file is probably not the right one. Correct "
            f"them, name another column with smiles=COLUMN{skip}."
        )
    leave_out(found, "on_invalid", on_invalid, False, table.notes)


def recipe_for(
    reader: str,
    known: GraphRecipe | None,
    atom_label: AtomLabel | None,
    hydrogens: bool | None,
    bond_label: str | None,
    standardize: bool | str | Sequence[str] | None,
    atom_attributes: AtomAttributes | None = None,
) -> MoleculeRecipe:
    """Return how to read molecules: as the parameters say, or as a model needs them (``known``)."""
    parameters: dict[str, Any] = {
        "atom_label": atom_label,
        "hydrogens": hydrogens,
        "bond_label": bond_label,
        "standardize": standardize,
        "atom_attributes": atom_attributes,
    }
    chosen = {name: value for name, value in parameters.items() if value is not None}
    wanted = MoleculeRecipe.of(reader, **chosen)
    if not isinstance(known, MoleculeRecipe):
        return wanted
    for name, value in chosen.items():
        if getattr(wanted, name) != getattr(known, name):
            raise GraphDataError(
                f"{name}={value!r}: the model was fitted to graphs made from {known}. Leave "
                f"{name} out: molecules are read as the model needs them."
            )
    return recipe_for_molecules(known, reader)


def covariate_names(
    covariates: Sequence[str] | None, descriptors: str | None, model: HasModel | None = None
) -> list[str]:
    """Return the names of all covariates, each once, and of what a fitted model was given."""
    if isinstance(covariates, str):
        raise TypeError("covariates must be a list of columns.")
    names = list(covariates or ())
    if descriptors is not None:
        check_choice("descriptors", descriptors, DESCRIPTORS)
        names.append(descriptors)
    own = [] if model is None else model.model_.given_columns
    return list(dict.fromkeys([*names, *own]))


# --- notes ----------------------------------------------------------------------------------------


def about_molecules(graphs: GraphCollection, chosen: bool) -> list[str]:
    """What standardising changed, and that salts are whole; ``chosen``: as a model reads them."""
    recipe, data, notes = graphs.recipe, graphs.graph_data, list[str]()
    if "standardized" in data:
        changes = data["standardized"]
        words = ", ".join(f"{n} {what}" for what, n in changes_in_words(changes).items()) or "none"
        n_changed = sum(map(bool, changes))
        notes.append(f"standardising changed {n_changed} of {len(graphs)} molecules: {words}.")
    if not isinstance(recipe, MoleculeRecipe) or "fragment" in recipe.standardize:
        return notes
    whole = map(in_fragments, data.get("smiles", data.get("mol", ())))
    rows = list(compress(data.get("row", ()), whole))
    return notes + about_fragments(
        len(rows), next(iter(rows), None), len(graphs), READ_WHOLE if chosen else ADVICE
    )


ADVICE = "standardising (--standardize) keeps the largest"
READ_WHOLE = (
    "they are read whole, as the molecules that the model was fitted to (of a model fitted with "
    "--standardize, the largest is)"
)
READ_LARGEST = "the largest is read, as of the molecules that the model was fitted to"


def about_fragments(n: int, first_row: int | None, n_all: int, how_read: str) -> list[str]:
    """That ``n`` molecules are salts or solvates, and what is read of them."""
    if first_row is None:
        return []
    return [
        f"{n} of {n_all} molecules have several fragments (salts, solvents), the first in "
        f"row {first_row + 1}: {how_read}."
    ]


def about_shared_names(table: MoleculeTable) -> list[str]:
    """That a name stands in several rows with different molecules: one of them may be wrong."""
    column, names = next(iter(table.ids.items()), ("", []))
    by_name: dict[str, list[int]] = {}
    for graph, row in enumerate(table.rows.tolist() if names else ()):
        by_name.setdefault(names[row], []).append(graph)
    several = {name: some for name, some in by_name.items() if name and len(some) > 1}
    order = np.array([graph for some in several.values() for graph in some], dtype=np.int64)
    groups = iter(same_molecules(table.graphs[order]).groups.tolist() if several else ())
    shown = []
    for name, some in several.items():
        if len(set(islice(groups, len(some)))) > 1:
            numbers = first_few([str(table.rows[graph] + 1) for graph in some], 4)
            shown.append(f"{name[:40]!r} (rows {numbers})")
    if not shown:
        return []
    return [f"column {column!r} has the same name for different molecules: {first_few(shown)}."]
