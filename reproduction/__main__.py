"""``python -m reproduction``: make the rows, tables and pages of a study again."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from reproduction import (
    active,
    classes,
    cost,
    curves,
    device,
    domain,
    evidence_pages,
    fidelity,
    hiv,
    landmarks,
    moleculeace,
    numbers,
    options,
    panel,
    rare,
    scaffolds,
    toxicophores,
    trees,
)
from reproduction.data import StudyOptions
from reproduction.paper import TARGETS, reproduce

# Studies of weights learned by evidence; the others are the paper's experiments and ours on them.
STUDIES = {
    "regression": numbers,
    "scaffolds": scaffolds,
    "moleculeace": moleculeace,
    "evidence": classes,
    "options": options,
    "curves": curves,
    "active": active,
    "toxicophores": toxicophores,
    "domain": domain,
    "fidelity": fidelity,
    "rare": rare,
    "panel": panel,
    "trees": trees,
    "device": device,
    "landmarks": landmarks,
    "hiv": hiv,
    "cost": cost,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line and run one study."""
    parser = _parser()
    chosen = parser.parse_args(arguments)
    try:
        if chosen.study in TARGETS:
            _run_experiment(chosen)
        else:
            _run_study(chosen)
    except (ValueError, OSError, ImportError) as error:
        parser.exit(1, f"error: {error}\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m reproduction", description=__doc__)
    parser.add_argument("study", choices=[*TARGETS, *STUDIES, "pages"])
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder of the results")
    parser.add_argument("--datasets", "--sets", nargs="+", help="all by default")
    parser.add_argument("--methods", nargs="+", metavar="METHOD", help="all by default")
    parser.add_argument("--repetitions", "--repeats", type=int, help="of splits or of ten folds")
    parser.add_argument("--jobs", type=int, help="processes or threads")
    paper = parser.add_argument_group("experiments of the paper")
    paper.add_argument("--quick", action="store_true", help="a small part of it, in minutes")
    paper.add_argument("--tables-only", action="store_true", help="make no rows, only the tables")
    paper.add_argument("--seed", type=int)
    evidence = parser.add_argument_group("studies of evidence")
    evidence.add_argument("--data", type=Path, help="folder of MoleculeACE's tables")
    evidence.add_argument("--device", default="cpu", help="where weights are learned: cpu or cuda")
    return parser


def _run_experiment(chosen: argparse.Namespace) -> None:
    reproduce(
        chosen.study, chosen.out, chosen.quick, tables_only=chosen.tables_only,
        datasets=chosen.datasets, methods=chosen.methods, repetitions=chosen.repetitions,
        n_jobs=chosen.jobs, seed=chosen.seed,
    )  # fmt: skip


def _run_study(chosen: argparse.Namespace) -> None:
    if chosen.study != "pages":
        STUDIES[chosen.study].run(
            StudyOptions(
                chosen.out, chosen.datasets, chosen.methods, chosen.repetitions, chosen.data,
                -1 if chosen.jobs is None else chosen.jobs, chosen.device,
            )
        )  # fmt: skip
    evidence_pages.write_all(chosen.out)


if __name__ == "__main__":
    main()
