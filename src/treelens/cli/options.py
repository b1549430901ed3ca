"""Options that several commands share, each described once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from treelens.cli.console import InputError
from treelens.kernels.table import KERNELS

METHODS = ("evidence", "svc")
TASKS = ("auto", "classification", "regression")
ABOUT_MISSING = ("skip", "error")
WEIGHTS = ("branches", "depths", "uniform")
# What "auto" is with evidence, and the deepest patterns that it takes.
USUAL_DEPTH, DEEPEST = 4, 20

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="Molecules: a table with a SMILES column (.csv, .tsv, .smi, .xlsx, .parquet) or .sdf. "
        "Graphs: a TU folder or .zip, or the name of a known data set ('treelens datasets list').",
        show_default=False,
    ),
]
ModelPath = Annotated[
    Path,
    typer.Argument(metavar="MODEL", help="A file that 'treelens fit' wrote.", show_default=False),
]
Target = Annotated[
    str | None,
    typer.Option(
        "--target",
        help="The column (SDF: property) with the class or the number. 'fit' takes several, with "
        "commas between: one model each.",
        show_default="label, else value, target, y, class or activity",
        metavar="COLUMN",
    ),
]
Smiles = Annotated[
    str | None,
    typer.Option(
        "--smiles",
        help="The column with the SMILES; found by itself if it is called so, or structure.",
        metavar="COLUMN",
    ),
]
Ids = Annotated[
    str | None,
    typer.Option(
        "--id",
        help="The columns that name the rows, with commas between; they stand in the predictions. "
        "all: every column; none.",
        show_default="the first called id, name, compound or so",
        metavar="COLUMN",
    ),
]
AtomLabel = Annotated[
    str | None,
    typer.Option(
        "--atom-label",
        help="What the label of an atom says, with + between: element, charge, aromatic, "
        "hydrogens, ring, degree, isotope, chirality.",
        show_default="element; with a MODEL, as it was fitted",
        metavar="LABEL",
    ),
]
BondLabel = Annotated[
    str | None,
    typer.Option(
        "--bond-label",
        help="What the label of a bond says: order, or order+stereo (E and Z).",
        show_default="order",
        metavar="LABEL",
    ),
]
Standardize = Annotated[
    bool,
    typer.Option(
        "--standardize",
        help="First bring molecules into one form: the largest fragment, uncharged, the canonical "
        "tautomer. The model keeps it for new molecules.",
    ),
]
StandardizeSteps = Annotated[
    str | None,
    typer.Option(
        "--standardize-steps",
        help="Only some of that, with commas between: fragment, uncharge, tautomer.",
        metavar="STEPS",
    ),
]
Hydrogens = Annotated[
    bool | None,
    typer.Option(
        "--hydrogens/--no-hydrogens",
        help="Whether hydrogens are nodes.",
        show_default="no; with a MODEL, as it was fitted",
    ),
]
MaxInvalid = Annotated[
    float,
    typer.Option(
        "--max-invalid",
        help="Largest share of rows without a readable molecule; they are left out.",
        min=0.0,
        max=1.0,
    ),
]
Duplicates = Annotated[
    str,
    typer.Option(
        "--duplicates",
        help="Rows of the same molecule (and covariates): merge (the mean of numbers, the class of "
        "most rows), first (the first row of each), keep, or error.",
    ),
]
Missing = Annotated[
    str,
    typer.Option("--missing", help="Rows without a label: skip them, with a count, or error."),
]
TargetTransform = Annotated[
    str | None,
    typer.Option(
        "--transform",
        help="Learn numbers on another scale: log10 or ln. Predictions come in the units of the "
        "table.",
        show_default="none",
        metavar="SCALE",
    ),
]
Covariates = Annotated[
    str | None,
    typer.Option(
        "--covariates",
        help="Columns that stand beside the graphs (assay, temperature), with commas between: they "
        "get a kernel of their own.",
        show_default="none",
    ),
]
Descriptors = Annotated[
    str | None,
    typer.Option(
        "--descriptors",
        help="rdkit: RDKit's descriptors of the molecules as covariates.",
        show_default="none",
    ),
]
Units = Annotated[
    str | None,
    typer.Option(
        "--units",
        help="Of the target, to be shown.",
        show_default="what its name has in brackets",
    ),
]
Method = Annotated[
    str,
    typer.Option(
        "--method",
        help="evidence: a Gaussian process whose weights the evidence decides; svc: a support "
        "vector machine (classes only), its settings by cross-validation.",
    ),
]
Task = Annotated[
    str,
    typer.Option(
        "--task",
        help="classification, regression, or auto: regression where the target holds many "
        "different numbers.",
    ),
]
Weights = Annotated[
    str | None,
    typer.Option(
        "--weights",
        help="With evidence, what is learned: branches (of the tree of patterns), depths (one "
        "weight for each), uniform (nothing).",
        show_default="branches",
    ),
]
Kernel = Annotated[
    str | None,
    typer.Option(
        "--kernel",
        help="With svc, the kernel: auto (wwl or tanimoto-rbf, by "
        f"cross-validation), {', '.join(KERNELS)}; or several with commas.",
        show_default="auto",
    ),
]  # fmt: skip
Threshold = Annotated[
    str,
    typer.Option(
        "--threshold",
        help="How probable the rarer of two classes must be to be named: a number such as 0.5, "
        "recall=0.9, precision=0.8, cost=10 (a miss costs ten false alarms), or auto: by Matthews' "
        "correlation where that class is below 25 %, else 0.5. Chosen on left-out predictions.",
    ),
]
Depth = Annotated[
    str,
    typer.Option(
        "--depth",
        help="Largest pattern depth: a number, or auto (evidence: 4; svc: the best of 1 to 6). Of "
        "svc also several with commas.",
    ),
]
WeightRadius = Annotated[
    str | None,
    typer.Option(
        "--weight-radius",
        help="With svc, how far weights may move from 1: auto, 0 (uniform weights), 4, or 0,1,4.",
        show_default="auto",
    ),
]
EdgeLabels = Annotated[
    bool | None,
    typer.Option(
        "--edge-labels/--no-edge-labels",
        help="With svc, whether patterns tell edge labels (bonds) apart.",
        show_default="where there are any",
    ),
]
Scoring = Annotated[
    str | None,
    typer.Option(
        "--scoring",
        help="With svc, what to choose by: accuracy, balanced_accuracy or roc_auc; auto: accuracy, "
        "or with a rare class one of the others.",
        show_default="auto",
    ),
]
Seed = Annotated[int, typer.Option("--seed", help="For the splits and the learner.", min=0)]
Jobs = Annotated[
    int, typer.Option("--jobs", help="Threads; -1: all processors. Results do not depend on it.")
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON, and nothing else.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


def check_choice(option: str, value: str, choices: Sequence[str]) -> None:
    """A value of an option that has only so many."""
    if value not in choices:
        raise InputError(f"{option} {value}: expected one of {', '.join(choices)}.")


def check_threshold(threshold: str) -> None:
    from treelens.models.thresholds import parse_threshold

    try:
        parse_threshold(threshold)
    except ValueError as error:
        raise InputError(f"--threshold {threshold}: {error}") from None


def check_jobs(jobs: int) -> None:
    if jobs == 0:
        raise InputError("--jobs 0: expected a number of threads, or -1 for all processors.")


def parsed_depth(text: str) -> int:
    """The one depth that a Gaussian process has."""
    if text == "auto":
        return USUAL_DEPTH
    if not text.isdecimal() or int(text) > DEEPEST:
        raise InputError(
            f"--depth {text}: expected auto, or one whole number from 0 to {DEEPEST}. (Several, to "
            "choose from by cross-validation, are for --method svc.)"
        )
    return int(text)


def parsed_kernels(text: str) -> str | list[str]:
    """``"auto"``, or a list of kernel names."""
    if text == "auto":
        return text
    names = [name.strip() for name in text.split(",")]
    unknown = [name for name in names if name not in KERNELS]
    if unknown:
        raise InputError(
            f"--kernel {unknown[0]}: there is no such kernel. Use auto, or of {', '.join(KERNELS)}."
        )
    return names


def parsed_numbers(text: str, option: str, kind: Any) -> Any:
    """``"auto"``, or a list of numbers of at least 0."""
    if text == "auto":
        return text
    try:
        numbers = [kind(part) for part in text.split(",")]
    except ValueError:
        numbers = [-1]
    if not all(0 <= number < float("inf") for number in numbers):
        what = "whole numbers" if kind is int else "numbers"
        raise InputError(f"{option} {text}: expected auto, or {what} of at least 0, such as 1,2,3.")
    return numbers
