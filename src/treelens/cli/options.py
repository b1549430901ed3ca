"""Options that several commands share, each described once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from treelens.cli.console import InputError
from treelens.kernels.table import KERNELS

METHODS = ("evidence", "svc")
SCORINGS = ("auto", "accuracy", "balanced_accuracy", "roc_auc")
WEIGHTS = ("auto", "uniform", "depths", "branches")
DESCRIPTORS = ("auto", "yes", "no", "rdkit")
DEEPEST = 20  # of the patterns of a Gaussian process

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="Molecules: a table with a SMILES column (.csv, .tsv, .smi, .xlsx, .parquet) or .sdf. "
        "Graphs: a TU folder or .zip, or the name of a known data set ('treelens datasets list'). "
        "Also one SMILES, or - for a table on standard input.",
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
Truth = Annotated[
    str | None,
    typer.Option("--target", help="A column with the true class or number.", metavar="COLUMN"),
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
        help="The columns that name the rows, with commas between; they are repeated in the "
        "predictions. all: every column; none.",
        show_default="the first called id, name, compound or so",
        metavar="COLUMN",
    ),
]
AtomLabel = Annotated[
    str | None,
    typer.Option(
        "--atom-label",
        help="What atoms are labelled by, with + between: element, charge, aromatic, "
        "hydrogens, ring, degree, isotope, chirality.",
        show_default="element",
        metavar="LABEL",
    ),
]
BondLabel = Annotated[
    str | None,
    typer.Option(
        "--bond-label",
        help="What bonds are labelled by: order, or order+stereo (E and Z).",
        show_default="order",
        metavar="LABEL",
    ),
]
Standardize = Annotated[
    bool,
    typer.Option(
        "--standardize",
        help="Standardise molecules first: the largest fragment, uncharged, the canonical "
        "tautomer. The model does the same with new molecules.",
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
        show_default="no",
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
        help="Columns to learn from beside the graphs (assay, temperature), with commas between.",
        show_default="none",
    ),
]
Descriptors = Annotated[
    str,
    typer.Option(
        "--descriptors",
        help="Descriptors of molecules (logP, TPSA, ...) beside the graphs: yes, no, auto (where "
        "they help on held-out graphs), or rdkit (all of RDKit's, as covariates).",
    ),
]
Units = Annotated[
    str | None,
    typer.Option(
        "--units",
        help="The unit of the target, to be shown.",
        show_default="what its name has in brackets",
    ),
]
Method = Annotated[
    str,
    typer.Option(
        "--method",
        help="evidence: a Gaussian process with weights learned by marginal likelihood; svc: a "
        "support vector machine (classes only) with settings chosen by cross-validation.",
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
        help="With evidence, what is learned: uniform (nothing), depths (one weight for each), "
        "branches (of the tree of patterns), or auto: chosen on held-out graphs.",
        show_default="auto",
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
        help="Probability from which on the rarer of two classes is predicted: a number (0.5), "
        "recall=0.9, precision=0.8, cost=10 (a miss costs ten false alarms), or auto: by Matthews' "
        "correlation where that class is below 25 %, else 0.5. Chosen by leave-one-out.",
    ),
]
Depth = Annotated[
    str,
    typer.Option(
        "--depth",
        help="Largest pattern depth: a number, or auto (chosen, up to 4; svc: the best of 1 to 6). "
        "Of svc also several with commas.",
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
    """Raise unless the value of an option is one of those known."""
    if value not in choices:
        raise InputError(f"{option} {value}: expected one of {', '.join(choices)}.")


def recipe_options(
    atom_label: str | None, hydrogens: bool | None, bond_label: str | None, standardize: bool,
    steps: str | None,
) -> dict[str, Any]:  # fmt: skip
    """Options about molecules as parameters of ``treelens.read_table``."""
    asked = [step.strip() for step in steps.split(",")] if steps else (standardize or None)
    return {"atom_label": atom_label, "hydrogens": hydrogens, "bond_label": bond_label,
            "standardize": asked}  # fmt: skip


def process_settings(
    depth: str, weights: str | None, descriptors: str, seed: int, jobs: int
) -> dict[str, Any]:
    """Options as parameters of ``GraphRegressor`` and ``GraphClassifier``."""
    check_choice("--descriptors", descriptors, DESCRIPTORS)
    known = {"auto": "auto", "yes": True, "no": False, "rdkit": False}
    settings: dict[str, Any] = {"random_state": seed, "n_jobs": checked_jobs(jobs),
                                "descriptors": known[descriptors]}  # fmt: skip
    if depth != "auto":
        if not depth.isdecimal() or int(depth) > DEEPEST:
            raise InputError(
                f"--depth {depth}: expected auto, or one whole number from 0 to {DEEPEST}. "
                "(Several, to choose from by cross-validation, are for --method svc.)"
            )
        settings["depth"] = int(depth)
    if weights is not None:
        check_choice("--weights", weights, WEIGHTS)
        settings["weights"] = weights
    return settings


def svc_settings(
    kernel: str | None, depth: str, weight_radius: str | None, scoring: str | None, seed: int,
    jobs: int,
) -> dict[str, Any]:  # fmt: skip
    """Options as parameters of ``GraphSVC``."""
    check_choice("--scoring", scoring or "auto", SCORINGS)
    names = (kernel or "auto").split(",")
    for name in names:
        check_choice("--kernel", name.strip(), ("auto", *KERNELS))
    return {
        "kernel": "auto" if names == ["auto"] else [name.strip() for name in names],
        "depth": parsed_numbers(depth, "--depth", int),
        "weight_radius": parsed_numbers(weight_radius or "auto", "--weight-radius", float),
        "scoring": scoring or "auto",
        "random_state": seed,
        "n_jobs": checked_jobs(jobs),
    }


def checked_jobs(jobs: int) -> int:
    if jobs == 0:
        raise InputError("--jobs 0: expected a number of threads, or -1 for all processors.")
    return jobs


def check_threshold(threshold: str) -> None:
    from treelens.models.thresholds import parse_threshold

    try:
        parse_threshold(threshold)
    except ValueError as error:
        raise InputError(f"--threshold {threshold}: {error}") from None


def column_list(text: str | None, option: str) -> list[str]:
    """Columns from an option with commas between."""
    names = [name.strip() for name in (text or "").split(",") if name.strip()]
    if text is not None and not names:
        raise InputError(f"{option} names no column.")
    return list(dict.fromkeys(names))


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
