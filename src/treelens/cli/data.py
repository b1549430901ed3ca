"""DATA and MODEL on the command line: what they are, and how they are read."""

from __future__ import annotations

import difflib
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from treelens.cli.console import Output

if TYPE_CHECKING:
    from treelens.estimators.files import AnyModel
    from treelens.estimators.named_models import NamedModel
    from treelens.graphs.molecule_table import MoleculeTable
    from treelens.graphs.tables import Table


def kind_of(source: str) -> str:
    """Return what a source is: "table", "sdf", "tu", "name", "stdin" or "smiles"."""
    from treelens.graphs.datasets import DATASETS
    from treelens.graphs.tables import SDF_ENDINGS, TABLE_ENDINGS, inner_suffix, is_sdf

    if source == "-":
        return "stdin"
    path = Path(source).expanduser()
    suffix = inner_suffix(path)
    if path.is_dir() or suffix == ".zip" or path.name.endswith("_A.txt"):
        kind = "tu"
    else:
        kind = "sdf" if is_sdf(path) else "table" if suffix in TABLE_ENDINGS else ""
    if path.exists() and kind:
        return kind
    if source in DATASETS:
        return "name"
    if path.exists():
        raise ValueError(
            f"{source} has an unknown ending: expected a table ({', '.join(TABLE_ENDINGS)}), "
            f"{SDF_ENDINGS[0]}, or a TU folder or .zip."
        )
    if is_smiles(source):
        return "smiles"
    names = {name.casefold(): name for name in DATASETS}
    if path.parent.is_dir():
        names.update({p.name.casefold(): str(path.parent / p.name) for p in path.parent.iterdir()})
    close = difflib.get_close_matches(path.name.casefold(), names, n=3)
    hint = f" Did you mean {' or '.join(names[match] for match in close)}?" if close else ""
    raise ValueError(
        f"{source} is neither a file or folder that exists, nor a known data set, nor a SMILES."
        f"{hint} 'treelens datasets list' shows the known data sets."
    )


def is_smiles(text: str) -> bool:
    """Whether RDKit is here and reads a text as a molecule."""
    try:
        from rdkit import rdBase

        from treelens.graphs.chem import smiles_parser
    except ImportError:
        return False
    with rdBase.BlockLogs():
        molecule = smiles_parser()(text)
    return molecule is not None and molecule.GetNumAtoms() > 0


def files_behind(source: str) -> Iterator[Path]:
    """Yield the files on this machine that reading a source would read."""
    from treelens.graphs.datasets import list_datasets
    from treelens.graphs.tudataset import OPTIONAL_PARTS, REQUIRED_PARTS

    path = Path(source).expanduser()
    if path.is_dir() or path.name.endswith("_A.txt"):
        for file in [*path.glob("*_A.txt"), *path.glob("*/*_A.txt")] if path.is_dir() else [path]:
            stem = file.name.removesuffix("A.txt")
            yield from (file.with_name(f"{stem}{p}.txt") for p in REQUIRED_PARTS + OPTIONAL_PARTS)
    elif path.exists():
        yield path
    else:
        for row in list_datasets():
            if row["name"] == source and row["path"]:
                yield from files_behind(str(row["path"]))


# --- reading ------------------------------------------------------------------------------------


def read_data(
    source: str,
    *,
    smiles: str | None = None,
    names: str | None = None,
    covariates: Sequence[str] = (),
    descriptors: str | None = None,
    max_invalid: float = 1.0,
    model: Any = None,
    target: str | None = None,
    **recipe: Any,
) -> MoleculeTable:
    """Return the graphs of any source, of a table without targets (``target``: for a note)."""
    from treelens.graphs.table_reader import (
        check_unreadable,
        covariate_names,
        read_table,
        recipe_for,
        rows_of_table,
    )

    kind = kind_of(source)
    if kind in ("table", "sdf"):
        return read_table(
            source, smiles=smiles, names=names, covariates=covariates, descriptors=descriptors,
            max_invalid=max_invalid, model=model, **recipe,
        )  # fmt: skip
    beside = covariate_names(covariates, descriptors, model)
    options = (recipe.get(x) for x in ("atom_label", "hydrogens", "bond_label", "standardize"))
    own = recipe_for("smiles", None if model is None else model.recipe_, *options)
    if kind in ("stdin", "smiles"):
        read = rows_of_table(source_table(source), None, own, smiles, names, beside, record(model))
        check_unreadable(read, "skip", max_invalid)
        return read
    if covariates:
        raise ValueError(f"--covariates: {source} is no table, and has no columns.")
    chosen = [name.replace("_", "-") for name, value in recipe.items() if value is not None]
    read = _read_graphs(source, kind, own, chosen)
    read.notes.extend(
        f"--{option} {value} is not used: the classes of {source} are known."
        for option, value in {"target": target, "smiles": smiles, "id": names}.items()
        if value is not None
    )
    return replace(read, covariates=beside)


def source_table(source: str) -> Table:
    """Return the table on standard input (with a header or one SMILES a line), or of a SMILES."""
    from treelens.graphs.tables import Table, table_of_bytes

    if source != "-":
        return Table("the command line", ["smiles"], [[source]], None)
    data = sys.stdin.buffer.read()
    if not data.strip():
        raise ValueError("Standard input is empty: expected a table, or one SMILES a line.")
    first = data.splitlines()[0].decode("utf-8", "replace").casefold()
    is_table = any(sign in first for sign in ("smiles", "structure", ","))
    place = "standard input.csv" if is_table else "standard input.smi"
    return table_of_bytes(Path(place), data)._replace(source="standard input")


def record(model: Any) -> Any:
    """Return the record of the table that a model was fitted to, or None."""
    return None if model is None or model.recipe_ is None else model.recipe_.table


def _read_graphs(source: str, kind: str, recipe: Any, chosen: list[str]) -> MoleculeTable:
    """Return TU files and known data sets, which bring their classes along."""
    import numpy as np

    from treelens.graphs.datasets import dataset_info, load_dataset
    from treelens.graphs.errors import InvalidMoleculesWarning
    from treelens.graphs.molecule_table import MoleculeTable
    from treelens.graphs.tudataset import read_tudataset

    info = dataset_info(source) if kind == "name" else None
    if chosen and (info is None or info.kind != "smiles"):
        raise ValueError(f"--{chosen[0]} is for molecules, and {source} has graphs with labels.")
    if info is None:
        graphs, y = read_tudataset(source)
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InvalidMoleculesWarning)
            graphs, y = load_dataset(source, recipe=recipe)
    rows = np.array(graphs.graph_data.get("row", np.arange(len(graphs))), dtype=np.int64)
    n_rows = len(graphs) if info is None else info.n_graphs
    unreadable = np.setdiff1d(np.arange(n_rows), rows)
    return MoleculeTable(source, graphs, y, rows, n_rows, unreadable=unreadable)


def read_for_model(
    output: Output, source: str, model: Any, target: str | None, smiles: str | None
) -> MoleculeTable:
    """Return the rows that a fitted model should explain, repeated molecules merged as in fit."""
    from sklearn.base import is_regressor

    table = read_data(source, smiles=smiles, target=target, model=model)
    if target is not None and table.table is not None:
        task = "regression" if is_regressor(model) else "classification"
        transform = getattr(record(model), "transform", None)
        table = table.with_target(target, task=task, transform=transform, learn=False)
    elif is_regressor(model):
        table = replace(table, y=None)
    output.note(*table.notes)
    return table


# --- models -------------------------------------------------------------------------------------


def load_model(path: Path, jobs: int = -1) -> AnyModel:
    """Return the model of a file, which will use so many threads."""
    from treelens.estimators.files import load

    model = load(path)
    model.n_jobs = jobs
    return model


def load_models(paths: Sequence[Path], jobs: int) -> list[NamedModel]:
    """Return the models of files, or raise where they cannot stand side by side."""
    from treelens.estimators.named_models import name_models

    return name_models(paths, [load_model(path, jobs) for path in paths])


def noun_of(recipe: Any) -> str:
    """Return what graphs are called, by their recipe or by that as plain data."""
    from treelens.graphs.recipe import MOLECULE_READERS

    reader = recipe["reader"] if isinstance(recipe, dict) else getattr(recipe, "reader", None)
    return "molecules" if reader in MOLECULE_READERS else "graphs"
