"""Options that several commands share, each described once, and DATA and MODEL that they name."""

from __future__ import annotations

import difflib
import os
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from treelens.cli.console import Output

if TYPE_CHECKING:
    from treelens.chem.molecule_table import MoleculeTable
    from treelens.chem.predicted_rows import NamedModel
    from treelens.estimators.model_files import AnyModel
    from treelens.estimators.profile import Profile
    from treelens.graphs.tables import Table
    from treelens.models.fitted import HasModel

_DEEPEST = 20  # of the patterns of a Gaussian process
_DATA_HELP = (
    "Molecules: a table with a SMILES column (.csv, .tsv, .smi, .xlsx, .parquet) or .sdf. "
    "Graphs: a TU folder or .zip, or a name of 'treelens datasets list'. - is a table on standard "
    "input{}."
)


def option(text: str, *names: str, default: str | bool = True, **settings: Any) -> Any:
    """Return an option with its help; ``default`` is what the help shows as its default."""
    return typer.Option(*names, help=text, show_default=default, **settings)


def column(text: str, *names: str, default: str | bool = True, several: str = "") -> Any:
    """Return an option that names a column, or several."""
    return option(text, *names, default=default, metavar=f"COLUMN{several}")


def argument(name: str, text: str) -> Any:
    """Return an argument that is called so in the help."""
    return typer.Argument(metavar=name, show_default=False, help=text)


Text = str | None
Data = Annotated[str, argument("DATA", _DATA_HELP.format("; one SMILES will do"))]
TrainingSource = Annotated[str, argument("DATA", _DATA_HELP.format(""))]
ModelPath = Annotated[Path, argument("MODEL", "A file that 'treelens fit' wrote.")]
Truth = Annotated[Text, column("Column with the true class or number.", "--target")]
Endpoint = Annotated[
    Text,
    option(
        "One endpoint of a MODEL of several.", "--endpoint", metavar="NAME", default="all of them"
    ),
]
Smiles = Annotated[Text, column("Column of SMILES.", "--smiles", default="smiles, structure or so")]
Sheet = Annotated[
    Text,
    option(
        "Sheet of an Excel workbook.",
        "--sheet",
        metavar="NAME",
        default="the first with a column of SMILES",
    ),
]
Ids = Annotated[
    Text,
    column(
        "Columns (a,b) that name the rows, repeated in predictions; all, or none.",
        "--id",
        default="the first called id, name, compound or so",
        several="S",
    ),
]
ViewFiles = Annotated[
    list[Path] | None,
    option(
        "A table with a row for each id (.csv, .parquet; or .npy, a row for each row of DATA), "
        "such as an embedding: a view of its own. May be given again.",
        "--view",
        metavar="FILE",
        default="none",
    ),
]
ProfileFile = Annotated[
    Path | None,
    option(
        'What is wanted, a line for each endpoint in TOML: LogD = "1 to 3"; HLM = "< 30".',
        "--profile",
        metavar="FILE",
        default="none",
    ),
]
Minimize = Annotated[
    bool,
    option(
        "Small values are wanted; of two classes the other one.",
        "--minimize",
    ),
]
POSITIVE = "the second of two, or the first if the second negates it"
Wanted = Annotated[Text, option("The class to look for.", metavar="CLASS", default=POSITIVE)]
Out = Annotated[Path, option("The file to write.", "--out", "-o")]
CsvOut = Annotated[
    Path | None, option("Write the table: .csv, .xlsx with drawings, .sdf.", "--out", "-o")
]
Seed = Annotated[int, option("Of random splits.", min=0)]
MaxAtoms = Annotated[
    int, option("Molecules with more atoms count as unreadable.", metavar="N", min=1)
]
Jobs = Annotated[int, option("Threads; -1: one for each processor.")]


@dataclass(frozen=True)
class Training:
    """Options of ``fit`` and ``evaluate``: the training table and the learner."""

    target: Annotated[
        list[str] | None,
        column(
            "Column (SDF: property) to learn; several (a,b, or the option again) are learned "
            "together, with gaps.",
            default="label, else value, target, y, class or activity",
        ),
    ] = None
    targets: Annotated[
        Literal["all"] | None,
        option("all: learn every column of numbers together.", default="none"),
    ] = None
    smiles: Smiles = None
    sheet: Sheet = None
    atom_label: Annotated[
        Text,
        option(
            "Labels of atoms, with + between: element, charge, aromatic, hydrogens, ring, degree, "
            "isotope, chirality.",
            metavar="LABEL",
            default="element",
        ),
    ] = None
    bond_label: Annotated[
        Text,
        option(
            "Labels of bonds: order, or order+stereo (E, Z).",
            metavar="LABEL",
            default="order",
        ),
    ] = None
    hydrogens: Annotated[bool | None, option("Whether hydrogens are nodes.", default="no")] = None
    standardize: Annotated[
        bool,
        option(
            "Largest fragment, uncharged, canonical tautomer; of new molecules, too.",
            "--standardize",
        ),
    ] = False
    standardize_steps: Annotated[
        Text,
        option(
            "Some of that alone: fragment, uncharge, tautomer.",
            metavar="STEPS",
        ),
    ] = None
    task: Annotated[
        Literal["auto", "classification", "regression"],
        option(
            "auto: regression where the target has many different numbers.",
        ),
    ] = "auto"
    transform: Annotated[
        Literal["auto", "none", "log10", "ln", "logit", "normal_scores"],
        option(
            "The scale to learn on; predictions are in the units of the table. logit: shares and "
            "percentages; normal_scores: by rank.",
            default="the one that fits clearly best",
        ),
    ] = "auto"
    unit: Annotated[
        Text,
        option(
            "Unit to learn in, such as nM; values in other units are converted.",
            metavar="UNIT",
            default="that of all rows",
        ),
    ] = None
    unit_column: Annotated[
        Text,
        column(
            "Column with the unit of each value, or none.",
            default="the one called units or so",
        ),
    ] = None
    qualifier: Annotated[
        Text,
        column(
            "Column with =, >, <, >=, <= or ~; values with > or < are limits. Of several targets "
            "a pattern: '{} modifier'.",
            default="what stands in the cells, such as >10",
        ),
    ] = None
    limits: Annotated[
        Literal["auto"] | None,
        option(
            "Values that many rows share at an end of the range are limits.",
            default="those with < or > alone",
        ),
    ] = None
    covariates: Annotated[
        Text,
        column(
            "Columns to learn from beside structure, such as assay,temperature.",
            several="S",
        ),
    ] = None
    descriptors: Annotated[
        Literal["auto", "compact", "fast", "all", "no"],
        option(
            "logP, TPSA and others beside structure: 21 of them (auto, compact), those of RDKit "
            "that cost little time (fast), or all of RDKit's.",
        ),
    ] = "auto"
    threshold: Annotated[
        str,
        option(
            "Probability from which on the rarer of two classes is predicted: 0.5, recall=0.9, "
            "precision=0.8, cost=10 (of a miss, in false alarms), or auto: 0.5, and below a share "
            "of 25 % the best Matthews correlation.",
        ),
    ] = "auto"
    depth: Annotated[
        str,
        option(
            "Bonds from the centre of a pattern to its end: a number, or auto; svc: also several.",
        ),
    ] = "auto"
    max_invalid: Annotated[
        float,
        option(
            "Share of rows that may be unreadable; they are left out.",
            min=0.0,
            max=1.0,
        ),
    ] = 0.1
    max_atoms: MaxAtoms = 5000
    missing: Annotated[Literal["skip", "error"], option("Rows without a target.")] = "skip"
    duplicates: Annotated[
        Literal["merge", "first", "keep", "error"],
        option(
            "Rows of the same molecule (and covariates); merge: the mean, the class of most.",
        ),
    ] = "merge"
    noise: Annotated[
        Text, column("Column with standard deviations of the numbers, or cells (12 ± 3).")
    ] = None
    seed: Seed = 0
    jobs: Jobs = -1

    def read(
        self, output: Output, source: str, names: str | None = None, svc: bool = False
    ) -> MoleculeTable:
        """Return the table to learn from, with one target or several."""
        from treelens.chem.endpoint_table import endpoint_columns, with_endpoints

        if self.target and self.targets:
            raise ValueError("Give --target or --targets, not both.")
        given = ",".join(self.target) if self.target else None
        steps = split_columns(self.standardize_steps, "--standardize-steps")
        base = read_data(
            source,
            target=given,
            smiles=self.smiles,
            sheet=self.sheet,
            names=names,
            covariates=split_columns(self.covariates, "--covariates"),
            max_invalid=self.max_invalid,
            max_atoms=self.max_atoms,
            atom_label=self.atom_label,
            hydrogens=self.hydrogens,
            bond_label=self.bond_label,
            standardize=steps or self.standardize or None,
        )
        output.note(*base.notes)
        columns = endpoint_columns(base, self.targets or given)
        reading: dict[str, Any] = {
            "task": None if svc and self.task == "auto" else self.task,
            "transform": self.transform,
            "unit": self.unit,
            "unit_column": self.unit_column,
            "duplicates": self.duplicates,
            "qualifier": self.qualifier,
            "noise": self.noise,
            "limits": self.limits,
        }
        if len(columns) > 1 or self.targets:
            self._check_one_target(svc)
            table = with_endpoints(base, columns, **reading)
        else:
            name = columns[0] if columns else None
            reading["on_missing"] = "raise" if self.missing == "error" else "skip"
            table = base.with_target(name, **reading)
        output.note(*table.notes[len(base.notes) :])
        known = () if table.targets is None else table.targets.columns or ()
        numbers = table.task == "regression" or (known and not any(x.has_classes for x in known))
        if self.threshold != "auto" and numbers:
            raise ValueError(f"--threshold is for classes, and {table.target_name!r} has numbers.")
        return table

    def _check_one_target(self, svc: bool) -> None:
        """Raise where an option is given that several targets do not have."""
        if svc:
            raise ValueError("--method svc learns one --target: fit the others by themselves.")
        check_one_target(
            {
                "--covariates": self.covariates,
                "--missing": None if self.missing == "skip" else self.missing,
            }
        )

    def gp_settings(self, weights: str = "auto") -> dict[str, Any]:
        """Return parameters of ``GraphRegressor`` and ``GraphClassifier``."""
        depths = _numbers(self.depth, "--depth", int)
        if depths != "auto" and (len(depths) > 1 or depths[0] > _DEEPEST):
            raise ValueError(
                f"--depth {self.depth}: expected auto, or one whole number from 0 to {_DEEPEST}; "
                "several are for --method svc."
            )
        return {
            "depth": depths if depths == "auto" else depths[0],
            "weights": weights,
            "descriptors": False if self.descriptors == "no" else self.descriptors,
            "random_state": self.seed,
            "n_jobs": self.jobs,
        }

    def svc_settings(
        self, kernel: str = "auto", weight_radius: str = "auto", scoring: str = "auto"
    ) -> dict[str, Any]:
        """Return parameters of ``GraphSVC``."""
        return {
            "kernel": "auto" if kernel == "auto" else split_columns(kernel, "--kernel"),
            "depth": _numbers(self.depth, "--depth", int),
            "weight_radius": _numbers(weight_radius, "--weight-radius", float),
            "scoring": scoring,
            "random_state": self.seed,
            "n_jobs": self.jobs,
        }


def check_one_target(given: dict[str, Any]) -> None:
    """Raise where an option has a value that several targets do not take."""
    for option, value in given.items():
        if value is not None:
            raise ValueError(f"{option} is for one --target: leave it out.")


def split_columns(text: str | None, option: str) -> list[str]:
    """Return the names of an option with commas between, each once."""
    names = [name.strip() for name in (text or "").split(",") if name.strip()]
    if text is not None and not names:
        raise ValueError(f"{option} is empty: expected names with commas between.")
    return list(dict.fromkeys(names))


def _numbers(text: str, option: str, kind: type) -> Any:
    """Return ``"auto"``, or a list of numbers of at least 0."""
    if text == "auto":
        return text
    try:
        numbers = [kind(part) for part in text.split(",")]
    except ValueError:
        numbers = [-1]
    if not all(0 <= number < float("inf") for number in numbers):
        what = "whole numbers" if kind is int else "numbers"
        raise ValueError(f"{option} {text}: expected auto, or {what} of at least 0, such as 1,2,3.")
    return numbers


# --- DATA -----------------------------------------------------------------------------------------


def kind_of(source: str) -> str:
    """Return what a source is: "table", "sdf", "tu", "name", "stdin" or "smiles"."""
    from treelens.graphs.tables import SDF_ENDINGS, TABLE_ENDINGS, inner_suffix, is_sdf

    if source == "-":
        return "stdin"
    path = Path(source).expanduser()
    suffix = inner_suffix(path)
    there = os.path.exists(path)  # a long SMILES is no name of a file, which Path.exists() raises
    if os.path.isdir(path) or suffix == ".zip" or path.name.endswith("_A.txt"):
        kind = "tu"
    else:
        kind = "sdf" if is_sdf(path) else "table" if suffix in TABLE_ENDINGS else ""
    if there and kind:
        return kind
    from treelens.chem.parsing import quiet, smiles_parser
    from treelens.graphs.datasets import DATASETS

    if source in DATASETS:
        return "name"
    if there:
        raise ValueError(
            f"{source} has an unknown ending: expected a table ({', '.join(TABLE_ENDINGS)}), "
            f"{SDF_ENDINGS[0]}, or a TU folder or .zip."
        )
    with suppress(ImportError), quiet():  # RDKit need not be here
        molecule = smiles_parser()(source)
        if molecule is not None and molecule.GetNumAtoms() > 0:
            return "smiles"
    beside = path.parent.iterdir() if os.path.isdir(path.parent) else ()
    close = difflib.get_close_matches(path.name, [*DATASETS, *(file.name for file in beside)])
    hint = (
        f"Did you mean {' or '.join(close)}?"
        if close
        else ("'treelens datasets list' shows the known data sets.")
    )
    raise ValueError(
        f"{source} is neither a file or folder that exists, nor a known data set, nor a SMILES. "
        f"{hint}"
    )


def files_behind(source: str) -> Iterator[Path]:
    """Yield the files on this machine that reading a source may read."""
    path = Path(source).expanduser()
    if os.path.isdir(path) or path.name.endswith("_A.txt"):
        folder = path if os.path.isdir(path) else path.parent
        yield from chain(folder.glob("*.txt"), folder.glob("*/*.txt"))
    elif os.path.exists(path):
        yield path
    else:
        from treelens.graphs.datasets import list_datasets

        for row in list_datasets():
            if row["name"] == source and row["path"]:
                yield from files_behind(str(row["path"]))


def read_data(
    source: str, *, model: HasModel | None = None, target: str | None = None, **reading: Any
) -> MoleculeTable:
    """Return the graphs of any source, of a table without targets (``target``: for a note).

    ``reading`` are parameters of ``read_table``.
    """
    from treelens.chem.table_reader import read_table

    kind = kind_of(source)
    if kind in ("tu", "name"):
        given = {"target": target, "id": reading.get("names")}
        given |= {name: reading.get(name) for name in ("smiles", "sheet")}
        unused = [f"--{option}" for option, value in given.items() if value is not None]
        read = _read_graphs(source, kind, model, reading)
        if unused:
            read.notes.append(f"not used, as {source} is no table: {', '.join(unused)}.")
        return read
    place = source_table(source) if kind in ("stdin", "smiles") else source
    return read_table(place, model=model, **{"max_invalid": 1.0, **reading})


def input_blocks(text_format: str | None, block_size: int) -> Iterator[Table]:
    """Yield the rows on standard input, some at a time; "csv", "smi" or what the first line says.

    Lines are UTF-8, or else Latin-1; UTF-16 is known by its mark.
    """
    from treelens.graphs.tables import blocks_of_lines, decoded_lines

    lines = decoded_lines(sys.stdin.buffer)
    first = next((line for line in lines if line.strip()), None)
    if first is None:
        raise ValueError("Standard input is empty: expected a table, or one SMILES a line.")
    if text_format is None:
        text_format = "csv" if _begins_table(first) else "smi"
    place = Path("standard input" if text_format == "csv" else "standard input.smi")
    for table in blocks_of_lines(place, chain([first], lines), block_size):
        yield table._replace(source="standard input")


def _begins_table(line: str) -> bool:
    return any(sign in line.casefold() for sign in ("smiles", "structure", ",", "\0"))


def source_table(source: str) -> Table:
    """Return the table on standard input (with a header or one SMILES a line), or of a SMILES."""
    from treelens.graphs.tables import Table, table_of_bytes

    if source != "-":
        return Table("the command line", ["smiles"], [[source]], None)
    data = sys.stdin.buffer.read()
    if not data.strip(b"\xef\xbb\xbf \t\r\n"):
        raise ValueError("Standard input is empty: expected a table, or one SMILES a line.")
    first = data.splitlines()[0].decode("utf-8", "replace")
    place = "standard input" if _begins_table(first) else "standard input.smi"
    return table_of_bytes(Path(place), data)._replace(source="standard input")


def _read_graphs(
    source: str, kind: str, model: HasModel | None, reading: dict[str, Any]
) -> MoleculeTable:
    """Return TU files and known data sets, which bring their classes along."""
    import numpy as np

    from treelens.chem.molecule_table import MoleculeTable
    from treelens.chem.table_reader import covariate_names, recipe_for
    from treelens.errors import InvalidMoleculesWarning
    from treelens.graphs.datasets import dataset_info, load_dataset
    from treelens.graphs.tudataset import read_tudataset
    from treelens.targets import Targets

    if reading.get("covariates"):
        raise ValueError(f"--covariates: {source} is no table, and has no columns.")
    info = dataset_info(source) if kind == "name" else None
    chosen = {x: reading.get(x) for x in ("atom_label", "hydrogens", "bond_label", "standardize")}
    given = [name.replace("_", "-") for name, value in chosen.items() if value is not None]
    if given and (info is None or info.kind != "smiles"):
        raise ValueError(f"--{given[0]} is for molecules, and {source} has graphs with labels.")
    if info is None:
        graphs, y = read_tudataset(source)
    else:
        recipe = recipe_for("smiles", None if model is None else model.recipe_, *chosen.values())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InvalidMoleculesWarning)
            graphs, y = load_dataset(source, recipe=recipe)
    rows = np.array(graphs.graph_data.get("row", np.arange(len(graphs))), dtype=np.int64)
    n_rows = len(graphs) if info is None else info.n_graphs
    return MoleculeTable(
        source,
        graphs,
        Targets(y),
        rows,
        n_rows,
        unreadable=np.setdiff1d(np.arange(n_rows), rows),
        covariates=covariate_names((), reading.get("descriptors"), model),
    )


def read_for_model(
    output: Output,
    source: str,
    model: HasModel,
    target: str | None = None,
    learn: bool = False,
    **reading: Any,
) -> MoleculeTable:
    """Return rows as a fitted model reads them, repeated molecules merged as in fit.

    ``learn``: those that it learned from, whose target it knows. ``reading`` are parameters of
    ``read_table``.
    """
    from sklearn.base import is_regressor

    from treelens.models.domain import about_depth

    table = read_data(source, model=model, target=target, **reading)
    known = model.model_.training.record
    if (learn or target is not None) and table.table is not None:
        table = table.with_target(
            target or known.name,
            task="regression" if is_regressor(model) else "classification",
            transform=None if known.chosen else known.transform,
            unit=known.unit,
            unit_column=None if known.unit else "none",
            learn=learn,
        )
    elif is_regressor(model):
        table = replace(table, targets=None)
    output.note(*table.notes, *about_depth(model.model_))
    return table


# --- MODEL ----------------------------------------------------------------------------------------


def load_model(
    path: Path, jobs: int = -1, reads: Sequence[str] = (), writes: Iterable[Path | None] = ()
) -> AnyModel:
    """Return the model of a file, which will use so many threads.

    Raises an error first if a source cannot be read, or one of the files to write would replace
    the model or a source.
    """
    from treelens.estimators.model_files import load
    from treelens.storage.files import checked_target

    for source in reads:
        kind_of(source)
    given = [out for out in writes if out is not None]
    for out in given:
        checked_target(out, reads=chain([path], *map(files_behind, reads)))
    if len(set(given)) < len(given):
        raise ValueError(f"{given[0]} is named twice: each output needs a file of its own.")
    model = load(path)
    model.n_jobs = jobs
    return model


def tables_for(named: NamedModel, views: Sequence[Path]) -> dict[str, Path] | None:
    """Return the files of a model's tables by name; None where it has none."""
    wanted = [name for name, _ in named.model.model_.keyed_tables]
    given = {path.name.split(".")[0]: path for path in views}
    if len(views) == len(wanted) == 1:
        given = {wanted[0]: views[0]}
    if missing := [name for name in wanted if name not in given]:
        raise ValueError(
            f"{named.path} was fitted with the table {missing[0]!r}: give --view FILE with rows "
            f"for the new ids{'' if len(wanted) == 1 else ', called as before'}."
        )
    if views and not wanted:
        raise ValueError(f"--view: {named.path} was fitted without a table. Leave it out.")
    return {name: given[name] for name in wanted} or None


def load_models(paths: Sequence[Path], jobs: int, profile: Path | None = None) -> list[NamedModel]:
    """Return the models of files, or raise where they cannot stand side by side."""
    from treelens.chem.predicted_rows import name_models, with_profile

    found = name_models(paths, [load_model(path, jobs) for path in paths])
    return found if profile is None else with_profile(found, profile)


def read_profile(path: Path | None) -> Profile | None:
    """Return the profile in a file, if there is one."""
    from treelens.estimators.profile import Profile

    return None if path is None else Profile.read(path)
