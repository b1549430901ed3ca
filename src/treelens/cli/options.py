"""Options that several commands share, each described once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from treelens.cli.console import InputError

FORM_NAMES = (
    "exponential", "metric", "tanimoto", "tanimoto-exponential", "assignment", "subtree", "linear",
    "subtree-cosine",
)  # fmt: skip

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="Molecules: a table with a SMILES column (.csv, .tsv, .smi, .parquet) or .sdf. "
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
    typer.Option("--target", help="The column (SDF: property) with the class.", metavar="COLUMN"),
]
Smiles = Annotated[
    str | None,
    typer.Option("--smiles", help="The column with the SMILES; found by itself if it is called so.",
                 metavar="COLUMN"),
]  # fmt: skip
AtomLabel = Annotated[
    str | None,
    typer.Option(
        "--atom-label",
        help="What the label of an atom says: element, element+charge or element+aromatic.",
        show_default="element; with a MODEL, as it was fitted",
        metavar="LABEL",
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
DropDuplicates = Annotated[
    bool,
    typer.Option("--drop-duplicates", help="Keep one row of each molecule (the same SMILES)."),
]
Form = Annotated[
    str,
    typer.Option(
        "--form", "--kernel",
        help="Kernel form: auto (exponential or tanimoto-exponential, by cross-validation), "
        f"{', '.join(FORM_NAMES)}; or several with commas.",
    ),
]  # fmt: skip
Depth = Annotated[
    str, typer.Option("--depth", help="Largest pattern depth: auto (1 to 6), 3, or 1,2,3.")
]
Radius = Annotated[
    str,
    typer.Option(
        "--radius",
        help="How far weights may move from 1: auto, 0 (uniform weights), 4, or 0,1,4.",
    ),
]
EdgeLabels = Annotated[
    bool | None,
    typer.Option(
        "--edge-labels/--no-edge-labels",
        help="Whether patterns tell edge labels (bonds) apart.",
        show_default="where there are any",
    ),
]
Scoring = Annotated[
    str,
    typer.Option(
        "--scoring",
        help="What to choose by: accuracy, balanced_accuracy or roc_auc; auto: accuracy, or with "
        "a rare class one of the others.",
    ),
]
Seed = Annotated[int, typer.Option("--seed", help="For the splits and the learner.", min=0)]
Jobs = Annotated[
    int, typer.Option("--jobs", help="Threads; -1: all processors. Results do not depend on it.")
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON, and nothing else.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


def parsed_forms(text: str) -> str | list[str]:
    """``"auto"``, or a list of form names."""
    if text == "auto":
        return text
    names = [name.strip() for name in text.split(",")]
    unknown = [name for name in names if name not in FORM_NAMES]
    if unknown:
        raise InputError(
            f"--form {unknown[0]}: there is no such kernel form. Use auto, or of "
            f"{', '.join(FORM_NAMES)}."
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
