"""Options that several commands share, each described once, and their values as parameters."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from treelens.kernels.table import KERNELS

if TYPE_CHECKING:
    from treelens.cli.console import Output
    from treelens.graphs.molecule_table import MoleculeTable

FRAGMENTS_SHOWN = 5
_DEEPEST = 20  # of the patterns of a Gaussian process


def option(*names: str, default: str | bool = True, **settings: Any) -> Any:
    """Return an option; ``default`` is what the help shows as its default."""
    return typer.Option(*names, show_default=default, **settings)


def _checked_jobs(jobs: int) -> int:
    if jobs == 0:
        raise typer.BadParameter("0: expected a number of threads, or -1 for all processors.")
    return jobs


def _checked_threshold(threshold: str) -> str:
    from treelens.models.thresholds import parse_threshold

    try:
        parse_threshold(threshold)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    return threshold


# --- data and models ----------------------------------------------------------------------------

_DATA_HELP = (
    "Molecules: a table with a SMILES column (.csv, .tsv, .smi, .xlsx, .parquet) or .sdf. "
    "Graphs: a TU folder or .zip, or the name of a known data set ('treelens datasets list'). "
    "Also - for a table on standard input{}."
)
Data = Annotated[str, typer.Argument(
    metavar="DATA", show_default=False, help=_DATA_HELP.format(", or one SMILES"),
)]  # fmt: skip
TrainingSource = Annotated[str, typer.Argument(
    metavar="DATA", show_default=False, help=_DATA_HELP.format(""),
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
Duplicates = Annotated[Literal["merge", "first", "keep", "error"], option(
    "--duplicates",
    help="Rows of the same molecule (and covariates): merge (the mean of numbers, the class of "
    "most rows), first (the first row of each), keep, or error.",
)]  # fmt: skip
Noise = Annotated[str | None, option(
    "--noise", metavar="COLUMN",
    help="Column with the standard deviation of each measured number, in its units.",
)]  # fmt: skip
Missing = Annotated[Literal["skip", "error"], option(
    "--missing", help="Rows without a label: skip them, with a count, or error.",
)]  # fmt: skip
Qualifier = Annotated[str | None, option(
    "--qualifier", metavar="COLUMN", default="what stands beside the numbers, such as >10",
    help="The column with the qualifiers of the target: =, >, <, >=, <= or ~. Values with > or < "
    "are used as limits.",
)]  # fmt: skip
TargetTransform = Annotated[Literal["log10", "ln"] | None, option(
    "--transform", default="none",
    help="Learn numbers on another scale. Predictions come in the units of the table.",
)]  # fmt: skip
Covariates = Annotated[str | None, option(
    "--covariates", metavar="COLUMNS", default="none",
    help="Columns to learn from beside the graphs (assay, temperature), with commas between.",
)]  # fmt: skip
Descriptors = Annotated[Literal["auto", "yes", "no", "rdkit"], option(
    "--descriptors",
    help="Descriptors of molecules (logP, TPSA, ...) beside the graphs; auto: where they help on "
    "held-out graphs; rdkit: all of RDKit's, as covariates.",
)]  # fmt: skip

# --- learning -----------------------------------------------------------------------------------

Method = Annotated[Literal["evidence", "svc"], option(
    "--method",
    help="evidence: a Gaussian process with weights learned by marginal likelihood; svc: a "
    "support vector machine (classes only) with settings chosen by cross-validation.",
)]  # fmt: skip
Task = Annotated[Literal["auto", "classification", "regression"], option(
    "--task", help="auto: regression where the target has many different numbers.",
)]  # fmt: skip
Weights = Annotated[Literal["auto", "uniform", "depths", "branches"], option(
    "--weights",
    help="With evidence, what is learned: uniform (nothing), depths (one weight for each), "
    "branches (of the tree of patterns), or auto: chosen on held-out graphs.",
)]  # fmt: skip
Kernel = Annotated[str, option(
    "--kernel",
    help="With svc, the kernel: auto (wwl or tanimoto-rbf, by cross-validation), "
    f"{', '.join(KERNELS)}; or several with commas.",
)]  # fmt: skip
Threshold = Annotated[str, option(
    "--threshold", callback=_checked_threshold,
    help="Probability from which on the rarer of two classes is predicted: a number (0.5), "
    "recall=0.9, precision=0.8, cost=10 (a miss costs ten false alarms), or auto: by Matthews' "
    "correlation where that class is below 25 %, else 0.5. Chosen by leave-one-out.",
)]  # fmt: skip
Depth = Annotated[str, option(
    "--depth",
    help="Largest pattern depth: a number, or auto (chosen, up to 4; svc: the best of 1 to 6). "
    "Of svc also several with commas.",
)]  # fmt: skip
WeightRadius = Annotated[str, option(
    "--weight-radius",
    help="With svc, how far weights may move from 1: auto, 0 (uniform weights), 4, or 0,1,4.",
)]  # fmt: skip
Scoring = Annotated[Literal["auto", "accuracy", "balanced_accuracy", "roc_auc"], option(
    "--scoring",
    help="With svc, what to choose by; auto: accuracy, or with a rare class one of the others.",
)]  # fmt: skip
Seed = Annotated[int, option("--seed", help="For the splits and the learner.", min=0)]
Jobs = Annotated[int, option(
    "--jobs", callback=_checked_jobs,
    help="Threads; -1: all processors. Another number may change the last digits.",
)]  # fmt: skip
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
Minimize = Annotated[bool, option(
    "--minimize", help="Small values are wanted; of two classes the first.",
)]  # fmt: skip
Wanted = Annotated[str | None, option(
    "--wanted", metavar="CLASS", default="the second of two",
    help="Of a model of classes, the class that is looked for.",
)]  # fmt: skip
CsvOut = Annotated[Path | None, option("--out", "-o", help="Write the table to this CSV file.")]


@dataclass(frozen=True)
class Training:
    """Options of ``fit`` and ``evaluate``: the training table and the learner."""

    target: Target = None
    smiles: Smiles = None
    atom_label: AtomLabel = None
    bond_label: BondLabel = None
    hydrogens: Hydrogens = None
    standardize: Standardize = False
    standardize_steps: StandardizeSteps = None
    task: Task = "auto"
    transform: TargetTransform = None
    qualifier: Qualifier = None
    covariates: Covariates = None
    descriptors: Descriptors = "auto"
    threshold: Threshold = "auto"
    depth: Depth = "auto"
    max_invalid: MaxInvalid = 0.1
    missing: Missing = "skip"
    duplicates: Duplicates = "merge"
    noise: Noise = None
    seed: Seed = 0
    jobs: Jobs = -1

    def read(
        self, output: Output, source: str, names: str | None = None, svc: bool = False
    ) -> list[MoleculeTable]:
        """Return one table to learn from for each target; molecules are read once."""
        from treelens.cli.data import read_data
        from treelens.graphs.tables import several_columns

        base = read_data(
            source, smiles=self.smiles, names=names, target=self.target,
            covariates=split_columns(self.covariates, "--covariates"),
            descriptors="rdkit" if self.descriptors == "rdkit" else None,
            max_invalid=self.max_invalid, atom_label=self.atom_label, hydrogens=self.hydrogens,
            bond_label=self.bond_label,
            standardize=split_columns(self.standardize_steps, "--standardize-steps")
            or self.standardize or None,
        )  # fmt: skip
        output.note(*base.notes)
        targets: list[str | None] = [None]
        if self.target is not None and base.table is not None:
            targets = [*several_columns(base.table.columns, self.target, "target", base.source)]
        if len(targets) > 1 and self.qualifier is not None:
            raise ValueError("--qualifier is for one --target: fit the others by themselves.")
        tables = []
        for name in targets:
            table = base.with_target(
                name, task=None if svc and self.task == "auto" else self.task,
                transform=self.transform, duplicates=self.duplicates, qualifier=self.qualifier,
                on_missing="raise" if self.missing == "error" else "skip", noise=self.noise,
            )  # fmt: skip
            for note in table.notes[len(base.notes) :]:
                output.note(f"{name}: {note}" if len(targets) > 1 else note)
            tables.append(table)
        return tables

    def gp_settings(self, weights: str = "auto") -> dict[str, Any]:
        """Return parameters of ``GraphRegressor`` and ``GraphClassifier``."""
        depth: int | str = self.depth
        if depth != "auto":
            if not self.depth.isdecimal() or int(self.depth) > _DEEPEST:
                raise ValueError(
                    f"--depth {depth}: expected auto, or one whole number from 0 to {_DEEPEST}. "
                    "(Several, to choose from by cross-validation, are for --method svc.)"
                )
            depth = int(self.depth)
        descriptors = {"auto": "auto", "yes": True}.get(self.descriptors, False)
        return {"depth": depth, "weights": weights, "descriptors": descriptors,
                "random_state": self.seed, "n_jobs": self.jobs}  # fmt: skip

    def svc_settings(
        self, kernel: str = "auto", weight_radius: str = "auto", scoring: str = "auto"
    ) -> dict[str, Any]:
        """Return parameters of ``GraphSVC``."""
        names = [name.strip() for name in kernel.split(",")]
        if unknown := set(names) - {"auto", *KERNELS}:
            raise ValueError(f"--kernel {unknown.pop()}: expected auto, {', '.join(KERNELS)}.")
        return {
            "kernel": "auto" if names == ["auto"] else names,
            "depth": _numbers(self.depth, "--depth", int),
            "weight_radius": _numbers(weight_radius, "--weight-radius", float),
            "scoring": scoring, "random_state": self.seed, "n_jobs": self.jobs,
        }  # fmt: skip


def split_columns(text: str | None, option: str) -> list[str]:
    """Return the names of an option with commas between, each once."""
    names = [name.strip() for name in (text or "").split(",") if name.strip()]
    if text is not None and not names:
        raise ValueError(f"{option} is empty: expected names with commas between.")
    return list(dict.fromkeys(names))


def _numbers(text: str, option: str, kind: Any) -> Any:
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
