"""A table of molecules in blocks that fit into memory."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from treelens.chem.atoms import AtomAttributes, AtomLabel
from treelens.chem.parsing import MAX_ATOMS
from treelens.chem.recipe import MoleculeRecipe
from treelens.chem.table_reader import rows_of_table
from treelens.errors import (
    GraphDataError,
    InvalidMoleculesWarning,
    MissingTargetsWarning,
    check_choice,
)
from treelens.graphs.blocks import Block, check_block_size
from treelens.graphs.table_ranges import TableRange, table_ranges
from treelens.graphs.tables import STREAMED_ENDINGS, Table, inner_suffix, read_table_blocks
from treelens.targets import Targets


@dataclass(frozen=True)
class SmilesBlocks:
    """A table of molecules, read ``block_size`` rows at a time.

    Whoever works on a part reads it from the file, on a cluster the workers: they need the file at
    the same path. A packed file, or one that is not in UTF-8, is read here and sent.

    Parameters
    ----------
    path : str or Path
        ``.csv``, ``.tsv``, ``.txt`` or ``.smi``, each also with ``.gz``.
    block_size : int
        Rows in memory at a time.
    smiles, target, on_invalid, on_missing, hydrogens, atom_label, bond_label, standardize
        As in :func:`treelens.read_smiles`, as are ``atom_attributes`` and ``max_atoms``.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "drinks.csv")
    >>> _ = path.write_text("smiles,label\\nCCO,1\\nO,0\\nCC,0\\n")
    >>> blocks = [part.load() for part in SmilesBlocks(path, block_size=2)]
    >>> [block.y.tolist() for block in blocks], blocks[1].graphs.graph_data["row"].tolist()
    ([[1, 0], [0]], [2])
    """

    path: str | Path
    smiles: str = "smiles"
    target: str | None = "label"
    block_size: int = 5000
    on_invalid: str = "raise"
    hydrogens: bool = False
    atom_label: AtomLabel = "element"
    bond_label: str = "order"
    standardize: bool | str | Sequence[str] = False
    on_missing: str = "raise"
    atom_attributes: AtomAttributes | None = None
    max_atoms: int = MAX_ATOMS
    _recipe: MoleculeRecipe = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_choice("on_invalid", self.on_invalid, ("raise", "skip"))
        check_choice("on_missing", self.on_missing, ("raise", "skip"))
        recipe = MoleculeRecipe.of(
            "smiles",
            self.atom_label,
            self.hydrogens,
            self.bond_label,
            self.standardize,
            self.atom_attributes,
            self.max_atoms,
        )
        object.__setattr__(self, "_recipe", recipe)

    def __iter__(self) -> Iterator[TablePart]:
        check_block_size(self.block_size)
        path = Path(self.path).expanduser()
        if inner_suffix(path) not in STREAMED_ENDINGS:
            raise GraphDataError(f"{path} cannot be read in blocks: .csv, .tsv, .txt and .smi can.")
        ranges = table_ranges(path, self.block_size)
        found = read_table_blocks(path, self.block_size) if ranges is None else ranges
        return (TablePart(self, rows) for rows in found)


@dataclass(frozen=True)
class TablePart:
    """Some rows of a table of molecules: where they stand in the file, or their text."""

    blocks: SmilesBlocks
    rows: TableRange | Table

    def load(self) -> Block:
        """Parse the rows; warnings name them by their number in the whole file."""
        asked = self.blocks
        table = self.rows.read() if isinstance(self.rows, TableRange) else self.rows
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", InvalidMoleculesWarning)
            warnings.simplefilter("always", MissingTargetsWarning)
            read = rows_of_table(table, None, asked._recipe, asked.smiles, "none")
            graphs, y = read.labelled(asked.target, asked.on_invalid, asked.on_missing, True)
        known = None if y is None else Targets(y)
        return Block(
            graphs, known, tuple(w.message for w in caught if isinstance(w.message, Warning))
        )
