"""Options that several commands share, each described once, and their values as parameters."""

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
DESCRIPTORS = {"auto": "auto", "yes": True, "no": False, "rdkit": False}  # as a parameter
FRAGMENTS_SHOWN = 5
DEEPEST = 20  # of the patterns of a Gaussian process


def option(*names: str, default: str | bool = True, **settings: Any) -> Any:
    """Return an option; ``default`` is what the help shows as its default."""
    return typer.Option(*names, show_default=default, **settings)


# --- data ---------------------------------------------------------------------------------------

Data = Annotated[str, typer.Argument(
    metavar="DATA", show_default=False,
    help="Molecules: a table with a SMILES column (.csv, .tsv, .smi, .xlsx, .parquet) or .sdf. "
    "Graphs: a TU folder or .zip, or the name of a known data set ('treelens datasets list'). "
    "Also one SMILES, or - for a table on standard input.",
)]  # fmt: skip
ModelPath = Annotated[Path, typer.Argument(
    metavar="MODEL", show_default=False, help="A file that 'treelens fit' wrote.",
)]  # fmt: skip
Target = Annotated[str | None, option(
    "--target", metavar="COLUMN", default="label, else value, target, y, class or activity",
    help="The column (SDF: property) with the class or the number. 'fit' takes several, with "
    "commas between: one model each.",
)]  # fmt: skip
Truth = Annotated[str | None, option(
    "--target", metavar="COLUMN", help="A column with the true class or number.",
)]  # fmt: skip
Smiles = Annotated[str | None, option(
    "--smiles", metavar="COLUMN", default="the one called smiles, structure or so",
    help="The column with the SMILES.",
)]  # fmt: skip
Ids = Annotated[str | None, option(
    "--id", metavar="COLUMN", default="the first called id, name, compound or so",
    help="The columns that name the rows, with commas between; they are repeated in the "
    "predictions. all: every column; none.",
)]  # fmt: skip
AtomLabel = Annotated[str | None, option(
    "--atom-label", metavar="LABEL", default="element",
    help="What atoms are labelled by, with + between: element, charge, aromatic, hydrogens, ring, "
    "degree, isotope, chirality.",
)]  # fmt: skip
BondLabel = Annotated[str | None, option(
    "--bond-label", metavar="LABEL", default="order",
    help="What bonds are labelled by: order, or order+stereo (E and Z).",
)]  # fmt: skip
Standardize = Annotated[bool, option(
    "--standardize",
    help="Standardise molecules first: the largest fragment, uncharged, the canonical tautomer. "
    "The model does the same with new molecules.",
)]  # fmt: skip
StandardizeSteps = Annotated[str | None, option(
    "--standardize-steps", metavar="STEPS",
    help="Only some of that, with commas between: fragment, uncharge, tautomer.",
)]  # fmt: skip
Hydrogens = Annotated[bool | None, option(
    "--hydrogens/--no-hydrogens", default="no", help="Whether hydrogens are nodes.",
)]  # fmt: skip
MaxInvalid = Annotated[float, option(
    "--max-invalid", min=0.0, max=1.0,
    help="Largest share of rows without a readable molecule; they are left out.",
)]  # fmt: skip
Duplicates = Annotated[str, option(
    "--duplicates",
    help="Rows of the same molecule (and covariates): merge (the mean of numbers, the class of "
    "most rows), first (the first row of each), keep, or error.",
)]  # fmt: skip
Noise = Annotated[
    str | None,
    option(
        "--noise",
        help="Column with the standard deviation of each measured number, in its units.",
    ),
]
Missing = Annotated[str, option(
    "--missing", help="Rows without a label: skip them, with a count, or error.",
)]  # fmt: skip
Qualifier = Annotated[str | None, option(
    "--qualifier", metavar="COLUMN", default="what stands beside the numbers, such as >10",
    help="The column with the qualifiers of the target: =, >, <, >=, <= or ~. Values with > or < "
    "are used as limits.",
)]  # fmt: skip
TargetTransform = Annotated[str | None, option(
    "--transform", metavar="SCALE", default="none",
    help="Learn numbers on another scale: log10 or ln. Predictions come in the units of the table.",
)]  # fmt: skip
Covariates = Annotated[str | None, option(
    "--covariates", default="none",
    help="Columns to learn from beside the graphs (assay, temperature), with commas between.",
)]  # fmt: skip
Descriptors = Annotated[str, option(
    "--descriptors",
    help="Descriptors of molecules (logP, TPSA, ...) beside the graphs: yes, no, auto (where they "
    "help on held-out graphs), or rdkit (all of RDKit's, as covariates).",
)]  # fmt: skip

# --- models -------------------------------------------------------------------------------------

Method = Annotated[str, option(
    "--method",
    help="evidence: a Gaussian process with weights learned by marginal likelihood; svc: a "
    "support vector machine (classes only) with settings chosen by cross-validation.",
)]  # fmt: skip
Task = Annotated[str, option(
    "--task",
    help="classification, regression, or auto: regression where the target has many different "
    "numbers.",
)]  # fmt: skip
Weights = Annotated[str | None, option(
    "--weights", default="auto",
    help="With evidence, what is learned: uniform (nothing), depths (one weight for each), "
    "branches (of the tree of patterns), or auto: chosen on held-out graphs.",
)]  # fmt: skip
Kernel = Annotated[str | None, option(
    "--kernel", default="auto",
    help="With svc, the kernel: auto (wwl or tanimoto-rbf, by cross-validation), "
    f"{', '.join(KERNELS)}; or several with commas.",
)]  # fmt: skip
Threshold = Annotated[str, option(
    "--threshold",
    help="Probability from which on the rarer of two classes is predicted: a number (0.5), "
    "recall=0.9, precision=0.8, cost=10 (a miss costs ten false alarms), or auto: by Matthews' "
    "correlation where that class is below 25 %, else 0.5. Chosen by leave-one-out.",
)]  # fmt: skip
Depth = Annotated[str, option(
    "--depth",
    help="Largest pattern depth: a number, or auto (chosen, up to 4; svc: the best of 1 to 6). "
    "Of svc also several with commas.",
)]  # fmt: skip
WeightRadius = Annotated[str | None, option(
    "--weight-radius", default="auto",
    help="With svc, how far weights may move from 1: auto, 0 (uniform weights), 4, or 0,1,4.",
)]  # fmt: skip
Scoring = Annotated[str | None, option(
    "--scoring", default="auto",
    help="With svc, what to choose by: accuracy, balanced_accuracy or roc_auc; auto: accuracy, or "
    "with a rare class one of the others.",
)]  # fmt: skip
Seed = Annotated[int, option("--seed", help="For the splits and the learner.", min=0)]
Jobs = Annotated[
    int, option("--jobs", help="Threads; -1: all processors. Results do not depend on it.")
]
Top = Annotated[int, option("--top", help="How many patterns to print.", min=0)]
Fragments = Annotated[int | None, option(
    "--fragments", min=0, help="How many of the fragments with the largest effects to print.",
    default=f"{FRAGMENTS_SHOWN}; none of more than two classes or 3,000 graphs, where finding "
    "them takes a while",
)]  # fmt: skip
TrainingData = Annotated[bool, option(
    "--training-data/--no-training-data",
    help="Whether the model keeps names and SMILES of its training molecules, to show them "
    "beside predictions; pattern counts and values stay in the file in any case.",
)]  # fmt: skip
Json = Annotated[bool, option("--json", help="Print the result as JSON, and nothing else.")]
Debug = Annotated[bool, option("--debug", help="Show the traceback of an error.")]

# --- checks -------------------------------------------------------------------------------------


def check_choice(option: str, value: str, choices: Sequence[str]) -> None:
    """Raise unless the value of an option is one of those known."""
    if value not in choices:
        raise InputError(f"{option} {value}: expected one of {', '.join(choices)}.")


def recipe_options(
    atom_label: str | None, hydrogens: bool | None, bond_label: str | None, standardize: bool,
    steps: str | None,
) -> dict[str, Any]:  # fmt: skip
    """Options about molecules as parameters of ``treelens.read_table``."""
    chosen = [step.strip() for step in steps.split(",")] if steps else (standardize or None)
    return {"atom_label": atom_label, "hydrogens": hydrogens, "bond_label": bond_label,
            "standardize": chosen}  # fmt: skip


def process_settings(
    depth: str, weights: str | None, descriptors: str, seed: int, jobs: int
) -> dict[str, Any]:
    """Options as parameters of ``GraphRegressor`` and ``GraphClassifier``."""
    check_choice("--descriptors", descriptors, list(DESCRIPTORS))
    settings: dict[str, Any] = {"random_state": seed, "n_jobs": checked_jobs(jobs),
                                "descriptors": DESCRIPTORS[descriptors]}  # fmt: skip
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
