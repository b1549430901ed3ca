"""DATA and MODEL on the command line: what they are, and how they are read."""

from __future__ import annotations

import difflib
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand

from treelens.cli.console import InputError, Output

if TYPE_CHECKING:
    from treelens.estimators.files import AnyModel
    from treelens.graphs.molecule_table import MoleculeTable
    from treelens.graphs.tables import Table

MODEL_ENDING = ".treelens"
_HEADERS = ("smiles", "structure")  # in the first line of a table on standard input


def kind_of(source: str) -> str:
    """What a source is: "table", "sdf", "tu", "name", "stdin" or "smiles"."""
    from treelens.graphs.datasets import DATASETS
    from treelens.graphs.sdf import is_sdf
    from treelens.graphs.tables import TABLE_ENDINGS, inner_suffix

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
    if not kind and is_a_model(source):
        raise InputError(
            f"{source} is in the place of the data, but is {_as_a_model(source)}. Models come "
            "first, the data last."
        )
    if not path.exists() and _is_smiles(source):
        return "smiles"
    raise InputError(_what_is_missing(source, path))


def _is_smiles(text: str) -> bool:
    try:
        from rdkit import rdBase

        from treelens.graphs.gathering import smiles_parser
    except ImportError:
        return False
    with rdBase.BlockLogs():
        molecule = smiles_parser()(text)
    return molecule is not None and molecule.GetNumAtoms() > 0


def _what_is_missing(source: str, path: Path) -> str:
    from treelens.graphs.datasets import DATASETS
    from treelens.graphs.sdf import SDF_ENDINGS
    from treelens.graphs.tables import TABLE_ENDINGS

    if path.exists():
        return (
            f"{source} has an unknown ending: expected a table ({', '.join(TABLE_ENDINGS)}), "
            f"{SDF_ENDINGS[0]}, or a TU folder or .zip."
        )
    names = {name.casefold(): name for name in DATASETS}
    if path.parent.is_dir():
        names.update({p.name.casefold(): str(path.parent / p.name) for p in path.parent.iterdir()})
    close = difflib.get_close_matches(path.name.casefold(), names, n=3)
    hint = f" Did you mean {' or '.join(names[match] for match in close)}?" if close else ""
    return (
        f"{source} is neither a file or folder that exists, nor a known data set, nor a SMILES."
        f"{hint} 'treelens datasets list' shows the known data sets."
    )


def files_behind(source: str) -> Iterator[Path]:
    """The files on this machine that reading a source would read."""
    from treelens.graphs.datasets import list_datasets
    from treelens.graphs.tudataset import OPTIONAL_PARTS, REQUIRED_PARTS

    path = Path(source).expanduser()
    found = [path]
    if path.is_dir():
        found = [*path.glob("*_A.txt"), *path.glob("*/*_A.txt")]
    elif not path.exists():
        for row in list_datasets():
            if row["name"] == source and row["path"]:
                yield from files_behind(str(row["path"]))
        return
    for file in found:
        if file.name.endswith("_A.txt"):
            stem = file.name.removesuffix("A.txt")
            yield from (file.with_name(f"{stem}{p}.txt") for p in REQUIRED_PARTS + OPTIONAL_PARTS)
        else:
            yield file


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
    """Graphs of any source, of a table without targets (``target`` is only for a note)."""
    from treelens.graphs.table_reader import (
        check_unreadable,
        covariate_names,
        read_table,
        rows_of_table,
    )

    kind = kind_of(source)
    if kind in ("table", "sdf"):
        return read_table(
            source, smiles=smiles, names=names, covariates=covariates, descriptors=descriptors,
            max_invalid=max_invalid, model=model, **recipe,
        )  # fmt: skip
    beside = covariate_names(covariates, descriptors, model)
    if kind in ("stdin", "smiles"):
        own = _recipe("smiles", model, recipe)
        read = rows_of_table(source_table(source), None, own, smiles, names, beside, _record(model))
        check_unreadable(read, "skip", max_invalid)
        return read
    if covariates:
        raise InputError(f"--covariates: {source} is no table, and has no columns.")
    not_used = {"target": target, "smiles": smiles, "id": names}
    return replace(_read_graphs(source, kind, model, not_used, recipe), covariates=beside)


def source_table(source: str) -> Table:
    """The table on standard input (with a header, or one SMILES a line), or of one SMILES."""
    from treelens.graphs.tables import Table, table_of_bytes

    if source != "-":
        return Table("the command line", ["smiles"], [[source]], None)
    data = sys.stdin.buffer.read()
    if not data.strip():
        raise InputError("Standard input is empty: expected a table, or one SMILES a line.")
    first = data.splitlines()[0].decode("utf-8", "replace")
    has_header = any(name in first.casefold() for name in _HEADERS)
    place = "standard input.csv" if has_header or "," in first else "standard input.smi"
    return table_of_bytes(Path(place), data)._replace(source="standard input")


def _recipe(reader: str, model: Any, recipe: dict[str, Any]) -> Any:
    from treelens.graphs.table_reader import recipe_for

    names = ("atom_label", "hydrogens", "bond_label", "standardize")
    known = None if model is None else model.recipe_
    return recipe_for(reader, known, *(recipe.get(name) for name in names))


def _record(model: Any) -> Any:
    return None if model is None or model.recipe_ is None else model.recipe_.table


def _read_graphs(
    source: str, kind: str, model: Any, not_used: dict[str, Any], recipe: dict[str, Any]
) -> MoleculeTable:
    """TU files and known data sets, which bring their classes along."""
    import numpy as np

    from treelens.graphs.datasets import dataset_info, load_by_recipe
    from treelens.graphs.errors import InvalidMoleculesWarning
    from treelens.graphs.molecule_notes import about_rdkit_warnings
    from treelens.graphs.molecule_table import MoleculeTable
    from treelens.graphs.rdkit_log import heard
    from treelens.graphs.tudataset import read_tudataset

    notes = [
        f"--{option} {value} is not used: the classes of {source} are known."
        for option, value in not_used.items() if value is not None
    ]  # fmt: skip
    info = dataset_info(source) if kind == "name" else None
    chosen = [name for name, value in recipe.items() if value is not None]
    if chosen and (info is None or info.kind != "smiles"):
        option = chosen[0].replace("_", "-")
        raise InputError(f"--{option} is for molecules, and {source} has graphs with labels.")
    if info is None:
        graphs, y = read_tudataset(source)
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InvalidMoleculesWarning)
            graphs, y = load_by_recipe(source, _recipe("smiles", model, recipe))
    rows = np.array(graphs.graph_data.get("row", np.arange(len(graphs))), dtype=np.int64)
    n_rows = len(graphs) if info is None else info.n_graphs
    notes += about_rdkit_warnings(heard())
    unreadable = np.setdiff1d(np.arange(n_rows), rows)
    return MoleculeTable(source, graphs, y, rows, n_rows, notes=notes, unreadable=unreadable)


def read_for_model(
    output: Output, source: str, model: Any, target: str | None, smiles: str | None
) -> MoleculeTable:
    """The rows that a fitted model should explain, repeated molecules merged as in ``fit``."""
    from sklearn.base import is_regressor

    table = read_data(source, smiles=smiles, target=target, model=model)
    if target is not None and table.table is not None:
        task = "regression" if is_regressor(model) else "classification"
        transform = getattr(_record(model), "transform", None)
        table = table.with_target(target, task=task, transform=transform, learn=False)
    elif is_regressor(model):
        table = replace(table, y=None)
    output.note(*table.notes)
    return table


# --- models -------------------------------------------------------------------------------------


def is_a_model(source: str) -> bool:
    """By the content of a file, whatever it is called; by the name where there is no such file."""
    from treelens.storage.archive import is_model_file

    exists = Path(source).expanduser().exists()
    return is_model_file(source) if exists else source.endswith(MODEL_ENDING)


def _as_a_model(source: str) -> str:
    exists = Path(source).expanduser().exists()
    return "a model" if exists else "called like a model, and there is no such file"


def load_model(path: Path, jobs: int = -1) -> AnyModel:
    """The model of a command that takes data too, which may be in its place."""
    from treelens.estimators.files import load
    from treelens.storage.archive import OtherFileError

    try:
        model = load(path)
    except OtherFileError as error:
        raise InputError(f"{error} If these are the data, they come after the model.") from error
    model.n_jobs = jobs
    return model


class ModelsThenData(TyperCommand):
    """A command with arguments MODEL... DATA whose error names DATA where only a model stands."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        found = self.make_parser(ctx).parse_args(list(args))[0]
        data, models = found.get("data"), found.get("models")
        has_models = isinstance(models, (list, tuple)) or found.get("help")
        if isinstance(data, str) and not has_models and is_a_model(data):
            raise typer.BadParameter(
                f"it is missing. {data} is {_as_a_model(data)}; the molecules to predict come "
                "after it.", ctx, param_hint="DATA",
            )  # fmt: skip
        return super().parse_args(ctx, args)
