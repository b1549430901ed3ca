"""Graphs from molecules: SMILES, SDF files, tables of SMILES, and RDKit molecules."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from treelens.graphs.atoms import AtomAttributes, AtomLabel
from treelens.graphs.chem import quiet, rdkit, smiles_parser, unreadable_rows
from treelens.graphs.collection import Graph, GraphCollection
from treelens.graphs.errors import (
    GraphDataError,
    InvalidMoleculesWarning,
    MissingTargetsWarning,
    check_choice,
    first_few,
)
from treelens.graphs.gathering import Molecules
from treelens.graphs.recipe import GraphRecipe
from treelens.graphs.tables import Table, is_sdf, read_sdf, read_text_table
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
    return molecules_of_table(
        table, data, target, names, on_invalid=on_invalid, on_missing=on_missing, recipe=recipe
    )


def molecules_of_table(
    table: Table,
    data: Mapping[str, Sequence[Any]],
    target: str | None,
    names: str | None = None,
    *,
    recipe: GraphRecipe,
    on_invalid: str | None,
    on_missing: str = "raise",
    may_be_empty: bool = False,
) -> tuple[GraphCollection, np.ndarray | None]:
    """Return the molecules in ``data`` ("smiles" or "mol", aligned with the rows) and targets."""
    targets = None if target is None else table.column(target, "target")
    graph_names = None if names is None else table.column(names, "names")
    smiles = data.get("smiles")
    molecules = data["mol"] if smiles is None else map(smiles_parser(keep=True), smiles)
    collected = Molecules(recipe).extend(molecules)
    kept = collected.kept
    if collected.invalid:
        listed = unreadable_rows(table.place, smiles, collected.invalid)
        found = (
            f"{table.source}: {len(collected.invalid)} of {len(table.rows)} molecules cannot be "
            f"read by RDKit: {listed}."
        )
        none_left = not kept and not may_be_empty
        _leave_out(found, "on_invalid", on_invalid, none_left, InvalidMoleculesWarning)
    if not kept and may_be_empty:
        return smiles_by_recipe(["C"], recipe)[:0], None if targets is None else as_target([])
    graphs = collected.build(
        {key: [values[i] for i in kept] for key, values in data.items()}
        | {"row": [table.first_row + i for i in kept]},
        None if graph_names is None else [graph_names[i] for i in kept],
    )
    if targets is None:
        return graphs, None
    missing = [i for i in kept if is_missing(targets[i])]
    if missing:
        listed = first_few([table.place(row) for row in missing], _ROWS_IN_A_MESSAGE)
        found = (
            f"{table.source}: the target {target!r} is missing in {len(missing)} rows: {listed}."
        )
        none_left = len(missing) == len(kept) and not may_be_empty
        _leave_out(found, "on_missing", on_missing, none_left, MissingTargetsWarning)
        have = [k for k, i in enumerate(kept) if not is_missing(targets[i])]
        graphs, kept = graphs[have], [kept[k] for k in have]
    return graphs, as_target([targets[i] for i in kept])


def _leave_out(
    found: str, option: str, choice: str | None, none_left: bool, category: type[Warning]
) -> None:
    """Raise an error about rows, or warn that they were left out; None: there is no option."""
    if choice != "skip":
        skip = "" if choice is None else f", or leave them out with {option}='skip'"
        raise GraphDataError(f"{found} Correct or remove them{skip}.")
    if none_left:
        raise GraphDataError(f"{found} None is left.")
    warnings.warn(f"{found} They were left out.", category, stacklevel=4)


def smiles_to_collection(
    smiles: Sequence[str], *, on_invalid: str = "raise", **settings: Any
) -> GraphCollection:
    """Return a collection of SMILES strings.

    ``settings`` are hydrogens, atom_label, bond_label, standardize and atom_attributes, as in
    :func:`read_smiles`.

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
    check_choice("on_invalid", on_invalid, ("raise", "skip"))
    return smiles_by_recipe(smiles, GraphRecipe.of_molecules("smiles", **settings), on_invalid)


def smiles_by_recipe(
    smiles: Sequence[str], recipe: GraphRecipe, on_invalid: str | None = None
) -> GraphCollection:
    """Return a collection of SMILES strings, read by a recipe; by default all must be readable."""
    collected = Molecules(recipe).extend(map(smiles_parser(keep=True), smiles))
    kept = collected.kept
    if collected.invalid:
        listed = unreadable_rows("graph {}".format, smiles, collected.invalid)
        found = f"{len(collected.invalid)} of {len(smiles)} molecules cannot be read by RDKit: "
        found = f"{found}{listed}."
        _leave_out(found, "on_invalid", on_invalid, not kept, InvalidMoleculesWarning)
    return collected.build({"smiles": [smiles[i] for i in kept], "row": kept})


def molecules_to_collection(molecules: Sequence[Any], **settings: Any) -> GraphCollection:
    """Return a collection of RDKit molecules; node ``i`` is atom ``i`` of the molecule.

    ``settings`` are those of :func:`smiles_to_collection`. Explicit hydrogens of a molecule are
    kept, also with ``hydrogens=False``, unless molecules are standardised.
    """
    return molecules_by_recipe(molecules, GraphRecipe.of_molecules("rdkit", **settings))


def molecules_by_recipe(molecules: Sequence[Any], recipe: GraphRecipe) -> GraphCollection:
    """Return a collection of RDKit molecules, read by a recipe."""
    collected = Molecules(recipe).extend(molecules)
    if collected.invalid:
        raise GraphDataError(
            f"{len(collected.invalid)} of {len(molecules)} molecules have no atoms or cannot be "
            f"standardised, the first is graph {collected.invalid[0]}. Correct or remove them."
        )
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


def made_smiles(graphs: GraphCollection) -> dict[str, list[Any]]:
    """SMILES of the standard forms (``standard_smiles``), or of the molecules of an SDF."""
    known = graphs.graph_data
    name = "standard_smiles" if "standardized" in known else "smiles"
    if name == "smiles" and "mol" not in known:
        return {}
    if "smiles" in known:
        return {name: list(known["smiles"])}
    return {name: [rdkit().MolToSmiles(molecule) for molecule in known["mol"]]}
