"""Graphs from molecules: SMILES, SDF files, tables of SMILES, and RDKit molecules."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from treelens.graphs.atom_attributes import AtomAttributes
from treelens.graphs.atoms import AtomLabel
from treelens.graphs.collection import Graph, GraphCollection
from treelens.graphs.errors import (
    GraphDataError,
    InvalidMoleculesWarning,
    MissingTargetsWarning,
)
from treelens.graphs.gathering import Molecules, rdkit, smiles_parser
from treelens.graphs.rdkit_log import quiet
from treelens.graphs.recipe import GraphRecipe
from treelens.graphs.sdf import is_sdf, read_sdf
from treelens.graphs.tables import Table, first_few, read_text_table
from treelens.graphs.targets import as_target, is_missing

_ROWS_IN_A_MESSAGE = 20


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
) -> tuple[GraphCollection, np.ndarray | Any]:  # Any: None without a target
    """Read molecules and their classes from a file, row by row.

    :func:`read_table` also finds columns, merges repeated molecules and knows units. Atoms become
    nodes, in the order in which RDKit numbers them when it parses the SMILES; bonds
    become edges with the labels ``-``, ``=``, ``#`` and ``:`` (aromatic).

    Parameters
    ----------
    path : str or Path
        A table with a header (``.csv``, ``.tsv``, ``.txt``; comma, tab or semicolon), a ``.smi``
        file without one (its columns are ``smiles`` and ``name``), each also with ``.gz``;
        ``.xlsx``, ``.parquet``; or ``.sdf``, also with ``.gz``, where ``target`` and ``names`` are
        properties of the records (``names="name"``: their first lines).
        A ``.gz`` may unpack to 2 GiB, and above 8 MiB to 100 times its size; the environment
        variable ``TREELENS_MAX_UNPACKED`` (a number of bytes) takes the place of both limits.
    smiles : str, default="smiles"
        The column with the SMILES; not used for ``.sdf``.
    target : str or None, default="label"
        The column with the class or value to learn. None: ``y`` is None.
    names : str, optional
        A column to take the names of the graphs from.
    on_invalid : {"raise", "skip"}, default="raise"
        What to do about rows that RDKit cannot parse: an error that lists them, or leave them
        out with a warning that lists them.
    on_missing : {"raise", "skip"}, default="raise"
        The same about rows without a target.
    hydrogens : bool, default=False
        Whether to add the hydrogens as nodes, after the heavy atoms.
    atom_label : str or callable, default="element"
        What nodes are labelled by: any of element, charge, aromatic, hydrogens, ring, degree,
        isotope and chirality, with + between. ``"element"``: ``"N"``; ``"element+charge"``:
        ``"N+1"``; ``"element+aromatic"``: ``"n"`` in an aromatic ring. A function takes an RDKit
        atom and returns its label; a model file keeps its name only.
    bond_label : {"order", "order+stereo"}, default="order"
        Whether edge labels distinguish the sides of a double bond (``"=E"``, ``"=Z"``).
    standardize : bool or sequence of str, default=False
        What to do to molecules first: ``"fragment"`` keeps the largest one (without counter-ions
        and solvents), ``"uncharge"`` neutralises, ``"tautomer"`` takes RDKit's canonical tautomer;
        True: all of these, in this order.
    atom_attributes : list of str or callable, optional
        Numbers of the atoms as node attributes, beside the labels: of ``"gasteiger"`` (partial
        charges), ``"crippen"`` (contributions to logP and molar refractivity), ``"tpsa"`` and
        ``"labute"`` (to the polar and the whole surface) and ``"estate"``. A function takes an
        RDKit molecule and returns a dict from names to an array with a number for each atom, NaN
        where it has none; a model file keeps its name only.

    Returns
    -------
    graphs : GraphCollection
        ``graphs.graph_data["row"]`` is the row of each molecule, counted from 0 without
        the header; ``graphs.graph_data["smiles"]`` the SMILES as given (``"mol"``, an RDKit
        molecule, for ``.sdf``), or where molecules were standardised the SMILES of that,
        ``"smiles_given"`` as given, and ``"standardized"`` the steps that changed it.
        ``graphs.recipe`` records how they were read: a fitted model reads new SMILES and molecules
        in the same way, and refuses graphs that were read in another.
    y : ndarray or None
        Integers where all targets are whole numbers, floats where all are numbers, else strings.
        Numbers are read strictly: one target like ``01`` or ``1_0`` makes all of them strings, so
        that ``01`` and ``1`` stay two classes.

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
    path = Path(path).expanduser()
    reader = "sdf" if is_sdf(path) else "smiles"
    recipe = GraphRecipe.of_molecules(
        reader, atom_label, hydrogens, bond_label, standardize, atom_attributes
    )
    if reader == "sdf":
        mols, table = read_sdf(path, keep_hydrogens=hydrogens)
        data: dict[str, Sequence[Any]] = {"mol": mols}
    else:
        table = read_text_table(path)
        data = {"smiles": table.column(smiles, "smiles")}
    read = molecules_of_table(
        table, data, target, names, on_invalid=on_invalid, on_missing=on_missing, recipe=recipe
    )
    assert read is not None, "only parts of a table may be empty"
    return read


def molecules_of_table(
    table: Table,
    data: Mapping[str, Sequence[Any]],
    target: str | None,
    names: str | None = None,
    *,
    recipe: GraphRecipe,
    on_invalid: str,
    on_missing: str = "raise",
    may_be_empty: bool = False,
) -> tuple[GraphCollection, np.ndarray | None] | None:
    """The molecules in ``data`` ("smiles" or "mol", aligned with the rows) and their targets.

    None when all were left out and ``may_be_empty`` allows that.
    """
    targets = None if target is None else table.column(target, "target")
    graph_names = None if names is None else table.column(names, "names")
    smiles = data.get("smiles")
    molecules = data["mol"] if smiles is None else map(smiles_parser(keep=True), smiles)
    collected = Molecules(recipe).extend(molecules)

    def shown(row: int) -> str:
        return table.place(row) + ("" if smiles is None else f" {smiles[row][:60]!r}")

    n_least = 0 if may_be_empty else 1
    _report_invalid(
        collected.invalid, len(table.rows), shown, on_invalid, f"{table.source}: ", n_least
    )
    kept = collected.kept
    if not kept and may_be_empty:
        return None
    graphs = collected.build(
        {key: [values[i] for i in kept] for key, values in data.items()}
        | {"row": [table.first_row + i for i in kept]},
        None if graph_names is None else [graph_names[i] for i in kept],
    )
    if targets is None:
        return graphs, None
    missing = [i for i in kept if is_missing(targets[i])]
    if missing:
        n_left = len(kept) - len(missing)
        _report_missing(missing, table, target, on_missing, n_left < n_least)
        have = [k for k, i in enumerate(kept) if not is_missing(targets[i])]
        graphs, kept = graphs[have], [kept[k] for k in have]
        if not kept:
            return None
    return graphs, as_target([targets[i] for i in kept])


def smiles_to_collection(
    smiles: Sequence[str],
    *,
    on_invalid: str = "raise",
    hydrogens: bool = False,
    atom_label: AtomLabel = "element",
    bond_label: str = "order",
    standardize: bool | str | Sequence[str] = False,
    atom_attributes: AtomAttributes | None = None,
) -> GraphCollection:
    """Return a collection of SMILES strings; see :func:`read_smiles` for the parameters.

    Examples
    --------
    >>> smiles_to_collection(["CCO", "c1ccccc1"])
    GraphCollection(2 graphs, 9 nodes, 8 edges, 2 node labels, 2 edge labels)
    >>> salt = smiles_to_collection(["CC(=O)[O-].[Na+]"], standardize=True)
    >>> salt.graph_data["smiles"][0], salt.graph_data["standardized"][0]
    ('CC(=O)O', 'fragment+uncharge')
    >>> smiles_to_collection(["CCO"], atom_attributes=["gasteiger"]).node_attributes[:, 0].round(2)
    array([-0.04,  0.04, -0.4 ])
    """
    recipe = GraphRecipe.of_molecules(
        "smiles", atom_label, hydrogens, bond_label, standardize, atom_attributes
    )
    return smiles_by_recipe(smiles, recipe, on_invalid)


def smiles_by_recipe(
    smiles: Sequence[str], recipe: GraphRecipe, on_invalid: str = "raise"
) -> GraphCollection:
    """Return a collection of SMILES strings, read by a recipe."""
    check_choice("on_invalid", on_invalid, ("raise", "skip"))
    collected = Molecules(recipe).extend(map(smiles_parser(keep=True), smiles))
    _report_invalid(
        collected.invalid, len(smiles), lambda i: f"graph {i} {smiles[i][:60]!r}", on_invalid, ""
    )
    kept = collected.kept
    return collected.build({"smiles": [smiles[i] for i in kept], "row": kept})


def molecules_to_collection(
    molecules: Sequence[Any],
    *,
    hydrogens: bool = False,
    atom_label: AtomLabel = "element",
    bond_label: str = "order",
    standardize: bool | str | Sequence[str] = False,
    atom_attributes: AtomAttributes | None = None,
) -> GraphCollection:
    """Return a collection of RDKit molecules; node ``i`` is atom ``i`` of the molecule.

    Explicit hydrogens of a molecule are kept, also with ``hydrogens=False``, unless molecules are
    standardised.
    """
    recipe = GraphRecipe.of_molecules(
        "rdkit", atom_label, hydrogens, bond_label, standardize, atom_attributes
    )
    return molecules_by_recipe(molecules, recipe)


def molecules_by_recipe(molecules: Sequence[Any], recipe: GraphRecipe) -> GraphCollection:
    """Return a collection of RDKit molecules, read by a recipe."""
    collected = Molecules(recipe).extend(molecules)
    _report_invalid(collected.invalid, len(molecules), lambda i: f"graph {i}", "raise", "")
    if not recipe.hydrogens and not recipe.standardize:
        collected.recipe = replace(recipe, hydrogens=_hydrogens_in(molecules))
    return collected.build({"mol": list(molecules), "row": collected.kept})


def _hydrogens_in(molecules: Sequence[Any]) -> bool | None:
    """Whether hydrogens are atoms of the molecules: True, False, or None for some."""
    if all(molecule.GetNumHeavyAtoms() == molecule.GetNumAtoms() for molecule in molecules):
        return False
    try:
        implicit = any(m.GetNumAtoms(onlyExplicit=False) > m.GetNumAtoms() for m in molecules)
    except RuntimeError:  # never sanitised: the number of hydrogens is not known
        return None
    return None if implicit else True


def molecule_of(graph: Graph) -> Any:
    """The RDKit molecule behind a graph, its atoms numbered as the nodes; None if there is none."""
    chem = rdkit()
    with quiet():
        if "mol" in graph.data:
            molecule = graph.data["mol"]
        elif "smiles" in graph.data:
            molecule = smiles_parser()(graph.data["smiles"])
        else:
            return None
        if molecule is not None and molecule.GetNumAtoms() < graph.n_nodes:
            molecule = chem.AddHs(molecule)
    return molecule


# --- errors and warnings -------------------------------------------------------------------------


def check_choice(parameter: str, value: Any, choices: tuple[str, ...]) -> None:
    if value not in choices:
        known = ", ".join(map(repr, choices))
        raise ValueError(f"{parameter} must be one of {known}; got {value!r}.")


def _report_invalid(
    invalid: list[int], n_all: int, shown: Callable[[int], str], on_invalid: str, source: str,
    n_least: int = 1,
) -> None:  # fmt: skip
    if not invalid:
        return
    listed = first_few([shown(i) for i in invalid], _ROWS_IN_A_MESSAGE)
    found = f"{source}{len(invalid)} of {n_all} molecules cannot be read by RDKit: {listed}."
    if on_invalid == "raise":
        raise GraphDataError(
            f"{found} Correct or remove them, or leave them out with on_invalid='skip'."
        )
    if n_all - len(invalid) < n_least:
        raise GraphDataError(f"{found} None is left.")
    warnings.warn(f"{found} They were left out.", InvalidMoleculesWarning, stacklevel=3)


def _report_missing(
    missing: list[int], table: Table, column: str | None, on_missing: str, too_few: bool
) -> None:
    listed = first_few([table.place(row) for row in missing], _ROWS_IN_A_MESSAGE)
    found = f"{table.source}: the target {column!r} is missing in {len(missing)} rows: {listed}."
    if on_missing == "raise":
        raise GraphDataError(
            f"{found} Fill or remove them, leave them out with on_missing='skip', or pass "
            "target=None."
        )
    if too_few:
        raise GraphDataError(f"{found} None is left.")
    warnings.warn(f"{found} They were left out.", MissingTargetsWarning, stacklevel=4)
