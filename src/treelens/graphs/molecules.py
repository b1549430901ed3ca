"""Molecules in: SMILES, SDF, tables of either, and RDKit molecules."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from treelens.graphs.collection import Graph, GraphCollection
from treelens.graphs.errors import GraphDataError, InvalidMoleculesWarning
from treelens.graphs.integers import is_integer, is_number
from treelens.graphs.labels import encode_labels
from treelens.graphs.opening import read_bytes
from treelens.graphs.recipe import GraphRecipe, label_name
from treelens.graphs.tables import Table, inner_suffix, read_table

_MISSING = frozenset({"", "na", "n/a", "nan", "null", "none"})
_ROWS_IN_A_MESSAGE = 20
_MOST_ATOMS_IN_A_MATRIX = 500  # RDKit's matrix of bonds is dense: 2 MB; of 16,000 atoms, 2 GB


def _element_and_charge(atom: Any) -> str:
    charge = atom.GetFormalCharge()
    return atom.GetSymbol() + (f"{charge:+d}" if charge else "")


def _element_and_aromaticity(atom: Any) -> str:
    symbol = atom.GetSymbol()
    return symbol.lower() if atom.GetIsAromatic() else symbol


def _fine_key(atom: Any) -> int:
    """Element, charge, aromaticity, hydrogens and ring membership of an atom in one number."""
    return (
        atom.GetAtomicNum() << 12
        | (atom.GetFormalCharge() + 16 & 31) << 7
        | min(atom.GetTotalNumHs(), 31) << 2
        | atom.GetIsAromatic() << 1
        | atom.IsInRing()
    )


def _fine_name(key: int, symbol: Callable[[int], str]) -> str:
    """``"CH3"``, ``"N+1"``, ``"cH"`` in an aromatic ring, ``"CH2@"`` in another ring."""
    number, charge = key >> 12, (key >> 7 & 31) - 16
    hydrogens, is_aromatic, in_ring = key >> 2 & 31, key & 2, key & 1
    name = symbol(number).lower() if is_aromatic else symbol(number)
    name += "" if not hydrogens else "H" if hydrogens == 1 else f"H{hydrogens}"
    return name + (f"{charge:+d}" if charge else "") + ("@" if in_ring and not is_aromatic else "")


# None: the element alone, which is gathered by its number and named at the end (faster).
ATOM_LABELS: Mapping[str, Callable[[Any], str] | None] = {
    "element": None,
    "element+charge": _element_and_charge,
    "element+aromatic": _element_and_aromaticity,
}

AtomLabel = str | Callable[[Any], Any]
_BOND_SYMBOLS = {1.0: "-", 1.5: ":", 2.0: "=", 3.0: "#", 4.0: "$"}


def read_smiles(
    path: str | Path,
    smiles: str = "smiles",
    target: str | None = "label",
    *,
    names: str | None = None,
    on_invalid: str = "raise",
    hydrogens: bool = False,
    atom_label: AtomLabel = "element",
) -> tuple[GraphCollection, np.ndarray | Any]:  # Any: None, but only where no target is asked for
    """Read molecules and their classes from a file.

    Atoms become nodes, in the order in which RDKit numbers them when it parses the SMILES; bonds
    become edges with the labels ``-``, ``=``, ``#`` and ``:`` (aromatic).

    Parameters
    ----------
    path : str or Path
        A table with a header (``.csv``, ``.tsv``, ``.txt``; comma, tab or semicolon), a ``.smi``
        file without one (its columns are ``smiles`` and ``name``), each also with ``.gz``;
        ``.parquet``; or ``.sdf``, where ``target`` and ``names`` are properties of the records.
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
    hydrogens : bool, default=False
        Whether to add the hydrogens as nodes, after the heavy atoms.
    atom_label : {"element", "element+charge", "element+aromatic"} or callable, default="element"
        What the label of a node says: ``"N"``; ``"N+1"``; ``"n"`` in an aromatic ring. A function
        takes an RDKit atom and returns its label; a model file keeps its name only.

    Returns
    -------
    graphs : GraphCollection
        ``graphs.graph_data["row"]`` holds the row each molecule stood on, counted from 0 without
        the header; ``graphs.graph_data["smiles"]`` the SMILES as given (``"mol"``, an RDKit
        molecule, for ``.sdf``). ``graphs.recipe`` says how they were read: a fitted model reads
        SMILES and molecules alike, and refuses graphs that were read in another way.
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
    path = Path(path).expanduser()
    is_sdf = inner_suffix(path) in (".sdf", ".sd")
    if is_sdf:
        mols, table = _read_sdf(path, [x for x in (target, names) if x], keep_h=hydrogens)
        data = {"mol": mols}
    else:
        table = read_table(path)
        data = {"smiles": table.column(smiles, "smiles")}
    read = molecules_of_table(
        table, data, target, names, on_invalid=on_invalid, hydrogens=hydrogens,
        atom_label=atom_label,
    )  # fmt: skip
    assert read is not None, "only parts of a table may be empty"
    return read


def molecules_of_table(
    table: Table,
    data: Mapping[str, Sequence[Any]],
    target: str | None,
    names: str | None = None,
    *,
    on_invalid: str,
    hydrogens: bool,
    atom_label: AtomLabel,
    may_be_empty: bool = False,
) -> tuple[GraphCollection, np.ndarray | None] | None:
    """The molecules in ``data`` ("smiles" or "mol", aligned with the rows) and their targets.

    None when all were left out and ``may_be_empty`` allows that.
    """
    targets = None if target is None else table.column(target, "target")
    graph_names = None if names is None else table.column(names, "names")
    smiles = data.get("smiles")
    molecules = data["mol"] if smiles is None else map(_parse_smiles(), smiles)

    def shown(row: int) -> str:
        return table.place(row) + ("" if smiles is None else f" {smiles[row][:60]!r}")

    reader = "sdf" if smiles is None else "smiles"
    collected = _Molecules(atom_label, hydrogens, reader).extend(molecules)
    n_least = 0 if may_be_empty else 1
    _report_invalid(
        collected.invalid, len(table.rows), shown, on_invalid, f"{table.source}: ", n_least
    )
    kept = collected.kept
    if not kept and may_be_empty:
        return None
    y = None if targets is None else _as_target([targets[i] for i in kept], table, kept, target)
    rows = [table.first_row + i for i in kept]
    graphs = collected.build(
        {key: [values[i] for i in kept] for key, values in data.items()} | {"row": rows},
        None if graph_names is None else [graph_names[i] for i in kept],
    )
    return graphs, y


def smiles_to_collection(
    smiles: Sequence[str],
    *,
    on_invalid: str = "raise",
    hydrogens: bool = False,
    atom_label: AtomLabel = "element",
) -> GraphCollection:
    """Turn SMILES strings into a collection; see :func:`read_smiles` for the parameters.

    Examples
    --------
    >>> smiles_to_collection(["CCO", "c1ccccc1"])
    GraphCollection(2 graphs, 9 nodes, 8 edges, 2 node labels, 2 edge labels)
    """
    check_choice("on_invalid", on_invalid, ("raise", "skip"))
    collected = _Molecules(atom_label, hydrogens, "smiles").extend(map(_parse_smiles(), smiles))
    _report_invalid(
        collected.invalid, len(smiles), lambda i: f"graph {i} {smiles[i][:60]!r}", on_invalid, ""
    )
    kept = collected.kept
    return collected.build({"smiles": [smiles[i] for i in kept], "row": kept})


def molecules_to_collection(
    molecules: Sequence[Any], *, hydrogens: bool = False, atom_label: AtomLabel = "element"
) -> GraphCollection:
    """Turn RDKit molecules into a collection; node ``i`` is atom ``i`` of the molecule.

    Hydrogens that are atoms of a molecule stay, whatever ``hydrogens`` says.
    """
    collected = _Molecules(atom_label, hydrogens, "rdkit").extend(molecules)
    _report_invalid(collected.invalid, len(molecules), lambda i: f"graph {i}", "raise", "")
    if not hydrogens:
        collected.recipe = replace(collected.recipe, hydrogens=_hydrogens_in(molecules))
    return collected.build({"mol": list(molecules), "row": collected.kept})


def _hydrogens_in(molecules: Sequence[Any]) -> bool | None:
    """Whether hydrogens are atoms of the molecules: True, False, or None for some."""
    if all(molecule.GetNumHeavyAtoms() == molecule.GetNumAtoms() for molecule in molecules):
        return False
    try:
        implicit = any(m.GetNumAtoms(onlyExplicit=False) > m.GetNumAtoms() for m in molecules)
    except RuntimeError:  # never sanitised: nobody knows how many there should be
        return None
    return None if implicit else True


def reread(graphs: GraphCollection, hydrogens: bool, atom_label: AtomLabel) -> GraphCollection:
    """The molecules behind a collection that was read from SMILES, read in another way."""
    molecules = map(_parse_smiles(), graphs.graph_data["smiles"])
    collected = _Molecules(atom_label, hydrogens, "smiles").extend(molecules)
    return collected.build(graphs.graph_data, graphs.names)


def molecule_of(graph: Graph) -> Any:
    """The RDKit molecule behind a graph, its atoms numbered as the nodes; None if there is none."""
    chem = _rdkit()
    if "mol" in graph.data:
        molecule = graph.data["mol"]
    elif "smiles" in graph.data:
        molecule = _parse_smiles()(graph.data["smiles"])
    else:
        return None
    if molecule is not None and molecule.GetNumAtoms() < graph.n_nodes:
        molecule = chem.AddHs(molecule)
    return molecule


# --- from molecules to arrays ---------------------------------------------------------------


class _Molecules:
    """Gathers the atoms and bonds of many molecules, to build the collection at once."""

    def __init__(self, atom_label: AtomLabel, hydrogens: bool, reader: str) -> None:
        check_atom_label(atom_label)
        self.chem = _rdkit()
        own = None if isinstance(atom_label, str) else atom_label
        label = ATOM_LABELS[atom_label] if isinstance(atom_label, str) else own
        self.atom_label = label or self.chem.Atom.GetAtomicNum
        self.labels_are_numbers = label is None
        self.hydrogens = hydrogens
        self.recipe = GraphRecipe(
            reader, label_name(atom_label), hydrogens, "order", atom_function=own
        )
        self.kept: list[int] = []
        self.invalid: list[int] = []
        self.sizes: list[int] = []
        self.atoms: list[Any] = []
        self.fine_keys: list[int] = []
        # Bonds as flat positions in the (n_atoms, n_atoms) matrix of their molecule.
        self.bonds: list[np.ndarray] = []
        self.bond_orders: list[np.ndarray] = []

    def extend(self, molecules: Iterable[Any]) -> _Molecules:
        from rdkit import rdBase

        with rdBase.BlockLogs():
            for position, molecule in enumerate(molecules):
                if molecule is None or molecule.GetNumAtoms() == 0:
                    self.invalid.append(position)
                else:
                    self.kept.append(position)
                    self._add(self.chem.AddHs(molecule) if self.hydrogens else molecule)
        return self

    def _add(self, molecule: Any) -> None:
        n_atoms, label = molecule.GetNumAtoms(), self.atom_label
        self.sizes.append(n_atoms)
        # Both ways below are RDKit's fast ones: iterating over GetAtoms() takes about twice as
        # long, asking bond by bond several times.
        atoms = list(map(molecule.GetAtomWithIdx, range(n_atoms)))
        self.atoms += map(label, atoms)
        self.fine_keys += map(_fine_key, atoms)
        bonds, orders = self._bonds_of(molecule, n_atoms)
        self.bonds.append(bonds)
        self.bond_orders.append(orders)

    def _bonds_of(self, molecule: Any, n_atoms: int) -> tuple[np.ndarray, np.ndarray]:
        if n_atoms <= _MOST_ATOMS_IN_A_MATRIX:
            orders = self.chem.GetAdjacencyMatrix(molecule, useBO=True, force=True).ravel()
            bonds = orders.nonzero()[0]
            # dative and zero-order bonds stand in the matrix on one side only, or not at all
            if len(bonds) == 2 * molecule.GetNumBonds():
                return bonds, orders[bonds]
        return _bonds_one_by_one(molecule)

    def build(self, graph_data: Mapping[str, Any], names: Any = None) -> GraphCollection:
        if not self.sizes:
            raise GraphDataError("There is no molecule to read: expected at least one.")
        sizes = np.array(self.sizes)
        n_arcs = [len(bonds) for bonds in self.bonds]
        start, end = np.divmod(np.concatenate(self.bonds), np.repeat(sizes, n_arcs))
        start += np.repeat(np.cumsum(sizes) - sizes, n_arcs)
        # The arcs stand in canonical order already, each once: no need of build_collection.
        degrees = np.bincount(start, minlength=len(self.atoms))
        node_codes, node_alphabet = encode_labels(self._atom_names())
        edge_codes, edge_alphabet = encode_labels(_bond_names(np.concatenate(self.bond_orders)))
        return GraphCollection(
            np.concatenate([[0], np.cumsum(sizes)]), np.concatenate([[0], np.cumsum(degrees)]),
            end, node_codes, node_alphabet, edge_codes, edge_alphabet, names, graph_data,
            recipe=self.recipe, **self._fine_labels(),
        )  # fmt: skip

    def _fine_labels(self) -> dict[str, Any]:
        """Fine labels imply the usual ones; those of a function of the user's they may not."""
        if self.recipe.atom_function is not None:
            return {}
        keys, codes = np.unique(np.array(self.fine_keys), return_inverse=True)
        symbol = self.chem.GetPeriodicTable().GetElementSymbol
        names = tuple(_fine_name(key, symbol) for key in keys.tolist())
        return {"fine_codes": codes, "fine_alphabet": names}

    def _atom_names(self) -> Sequence[str]:
        if not self.labels_are_numbers:
            return self.atoms
        numbers = np.array(self.atoms)
        name = self.chem.GetPeriodicTable().GetElementSymbol
        return np.array([name(z) for z in range(numbers.max() + 1)], dtype=object)[numbers]


def _bond_names(orders: np.ndarray) -> np.ndarray:
    half_orders = np.rint(2 * orders).astype(np.intp)
    names = [
        _BOND_SYMBOLS.get(half / 2, f"order {half / 2:g}")
        for half in range(half_orders.max(initial=0) + 1)
    ]
    return np.array(names, dtype=object)[half_orders]


def _bonds_one_by_one(molecule: Any) -> tuple[np.ndarray, np.ndarray]:
    """Both directions of every bond, as positions in the matrix, ascending, and the orders.

    A dative bond counts as a single one; a bond of order zero is kept, with that order.
    """
    n_atoms = molecule.GetNumAtoms()
    order_at = {}
    for bond in molecule.GetBonds():
        u, v, order = bond.GetBeginAtomIdx(), bond.GetEndAtomIdx(), bond.GetBondTypeAsDouble()
        order_at[u * n_atoms + v] = order_at[v * n_atoms + u] = order
    positions = sorted(order_at)
    return np.array(positions, dtype=np.int64), np.array([order_at[p] for p in positions])


def _rdkit() -> Any:
    try:
        from rdkit import Chem
    except ImportError as error:
        raise ImportError("Reading molecules needs RDKit: pip install 'treelens[chem]'.") from error
    return Chem


def _parse_smiles() -> Callable[[str], Any]:
    parse = _rdkit().MolFromSmiles

    def parsed(smiles: str) -> Any:
        try:
            return parse(smiles)
        except UnicodeEncodeError:  # half a surrogate pair is no text: no molecule either
            return None

    return parsed


def check_atom_label(atom_label: Any) -> None:
    """A name that is known, or a function."""
    if not callable(atom_label):
        check_choice("atom_label", atom_label, tuple(ATOM_LABELS))


def check_choice(parameter: str, value: Any, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(
            f"{parameter} must be one of {', '.join(map(repr, choices))}; got {value!r}."
        )


# --- what files add -------------------------------------------------------------------------


def _read_sdf(path: Path, properties: list[str], keep_h: bool) -> tuple[list[Any], Table]:
    """The molecules of an SDF (None where one is unreadable) and their properties as a table."""
    from rdkit import rdBase

    chem = _rdkit()
    data = read_bytes(path)
    if not data.strip():
        raise GraphDataError(f"{path} is empty: expected at least one SDF record.")
    text = data.decode("utf-8-sig", errors="replace")
    supplier = chem.SDMolSupplier()
    with rdBase.BlockLogs():
        supplier.SetData(text, removeHs=not keep_h)
        molecules = list(supplier)
    ends = [n for n, line in enumerate(text.splitlines(), 1) if line.startswith("$$$$")]
    lines = [1, *(end + 1 for end in ends)][: len(molecules)]
    known: dict[str, None] = {}
    for molecule in molecules:
        known.update(dict.fromkeys(molecule.GetPropNames() if molecule is not None else ()))
    columns = list(known)
    rows = [
        [
            molecule.GetProp(name) if molecule is not None and molecule.HasProp(name) else ""
            for name in columns
        ]
        for molecule in molecules
    ]
    return molecules, Table(str(path), columns, rows, lines)


def _report_invalid(
    invalid: list[int],
    n_all: int,
    shown: Callable[[int], str],
    on_invalid: str,
    source: str,
    n_least: int = 1,
) -> None:
    if not invalid:
        return
    listed = ", ".join(shown(i) for i in invalid[:_ROWS_IN_A_MESSAGE])
    more = len(invalid) - _ROWS_IN_A_MESSAGE
    listed += f" and {more} more" if more > 0 else ""
    found = f"{source}{len(invalid)} of {n_all} molecules cannot be read by RDKit: {listed}."
    if on_invalid == "raise":
        raise GraphDataError(
            f"{found} Correct or remove them, or leave them out with on_invalid='skip' where "
            "molecules are read (read_smiles, smiles_to_collection)."
        )
    if n_all - len(invalid) < n_least:
        raise GraphDataError(f"{found} None is left.")
    warnings.warn(f"{found} They were left out.", InvalidMoleculesWarning, stacklevel=3)


def _as_target(values: list[str], table: Table, rows: list[int], column: str | None) -> np.ndarray:
    """Integers, else floats, else strings; a missing value is an error."""
    missing = [row for row, x in zip(rows, values, strict=True) if x.lower() in _MISSING]
    if missing:
        listed = ", ".join(table.place(row) for row in missing[:_ROWS_IN_A_MESSAGE])
        raise GraphDataError(
            f"{table.source}: the target {column!r} is missing in {len(missing)} rows: {listed}. "
            "Fill or remove them, or pass target=None."
        )
    if all(map(is_integer, values)):
        return np.array([int(x) for x in values], dtype=np.int64)
    if not all(map(is_number, values)):
        return np.array(values, dtype=str)
    numbers = np.array([float(x) for x in values], dtype=np.float64)
    whole = np.isfinite(numbers).all() and (numbers == np.round(numbers)).all()
    return numbers.astype(np.int64) if whole and abs(numbers).max() < 2**53 else numbers
