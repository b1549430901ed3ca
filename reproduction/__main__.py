"""``python -m reproduction NAME``: make the missing rows of an experiment, then fill the pages."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from reproduction.blocks import refresh
from reproduction.data import StudyOptions
from reproduction.tables import TABLES, draw_figures, tables_from


class Experiment(NamedTuple):
    """What an experiment is, the function that makes its rows, and the page that shows them."""

    about: str
    module: str
    page: str
    function: str = "run"


EXPERIMENTS = {
    "compare": Experiment(
        "treelens, its fixed choices and rivals, by --part", "compare", "molecules"
    ),
    "expansion": Experiment(
        "nine endpoints of ExpansionRx: panels, single models, rivals", "expansion", "admet"
    ),
    # of the paper
    "table1": Experiment("the paper's Table 1: statistics of the data sets", "published", "paper"),
    "table2": Experiment("its Table 2: accuracy of every kernel, nested CV", "table2", "paper"),
    "synthetic": Experiment(
        "its study of graphs with a planted pattern", "synthetic_study", "paper"
    ),
    "patterns": Experiment("its learned patterns of MUTAG and PTC_MR", "pattern_study", "paper"),
    "runtime": Experiment("its Table 3 and figure of running times", "runtime", "paper"),
    "bounds": Experiment("its stability and generalisation bounds, measured", "bounds", "paper"),
    "figures": Experiment("its explaining figures, drawn again", "figures", "paper"),
    # molecules and attributes
    "censored": Experiment(
        "limits in the place of values, on data censored by us", "censored", "molecules"
    ),
    "attributes": Experiment(
        "continuous attributes of nodes, ours and other kernels", "attributes", "graphs"
    ),
    # explanations
    "fidelity": Experiment(
        "deletion and insertion of atoms by explanation", "fidelity", "explanations"
    ),
    "toxicophores": Experiment(
        "atom contributions against known toxicophores",
        "fidelity",
        "explanations",
        "run_toxicophores",
    ),
    "atoms": Experiment(
        "ibenchmark: atom contributions where the atoms that matter are known",
        "fidelity",
        "explanations",
        "run_atoms",
    ),
    "fragments": Experiment(
        "fragments against toxicophores, Crippen, refits", "fragments", "explanations"
    ),
    # decisions
    "campaign": Experiment(
        "how soon suggestions find the best molecules", "decisions", "decisions", "run_campaigns"
    ),
    "advice": Experiment(
        "predicted differences of held-out matched pairs", "decisions", "decisions", "run_advice"
    ),
    # speed and defaults
    "cost": Experiment("time and memory of a fit, ours and others", "cost", "speed"),
    "growth": Experiment("the same for 500 to 160,000 molecules", "cost", "speed", "run_growth"),
    "landmarks": Experiment(
        "the default through 2,000 landmarks beside exact fits", "compare", "speed", "run_landmarks"
    ),
    "intervals": Experiment(
        "coverage of 90 % intervals on random and scaffold folds",
        "error_bars",
        "molecules",
        "run_intervals",
    ),
    "domain": Experiment(
        "does the applicability domain order the errors", "error_bars", "decisions", "run_domain"
    ),
}
# What fills no page: module, function, what it does.
TOOLS = {
    "check": ("check", "run", "make a --sample of rows again and say what moved"),
    "tune": ("compare", "run_tuning", "choose settings of forests and boosting, by --part"),
    "freeze": ("frozen", "freeze", "write the state of src/ whose defaults are published"),
}
# Experiments that "all" makes: those of the paper, quick ones first.
PAPER = ("table1", "figures", "synthetic", "patterns", "runtime", "bounds", "table2")


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line, run one experiment and fill the pages."""
    parser = _parser()
    chosen = parser.parse_args(arguments)
    options = StudyOptions(
        chosen.out,
        chosen.sets,
        chosen.methods,
        chosen.repeats,
        chosen.jobs,
        chosen.quick,
        chosen.part,
        chosen.seconds,
        chosen.worker,
        chosen.sample,
        chosen.seed,
    )
    try:
        if chosen.repeats is not None and chosen.repeats < 1:
            raise ValueError(f"--repeats must be at least 1, got {chosen.repeats}.")
        run(chosen.name, options, rows=not chosen.page_only)
    except (ValueError, OSError, ImportError) as error:
        parser.exit(1, f"error: {error}\n")


def run(name: str, options: StudyOptions, rows: bool = True) -> list[Path]:
    """Make the missing rows of an experiment (of all of the paper's), then fill the pages."""
    if name in TOOLS:
        module, function, _ = TOOLS[name]
        getattr(_module(module), function)(options)
        return []
    names = PAPER if name == "all" else ([name] if name in EXPERIMENTS else [])
    options.out.mkdir(parents=True, exist_ok=True)  # before hours of work, not after
    for experiment in (EXPERIMENTS[each] for each in names if rows):
        getattr(_module(experiment.module), experiment.function)(options)
    return publish(options.out)


def publish(out: Path) -> list[Path]:
    """Draw the figures and fill the pages of a folder; without pages, write all its tables."""
    table = tables_from(out)
    written = draw_figures(out)
    if pages := pages_of(out):
        return written + refresh(pages, table)
    found = {name: table(name) for name in TABLES}
    parts = [f"## {name}\n\n{text}\n" for name, text in found.items() if text]
    path = out / "tables.md"
    path.write_text("\n".join(["# Tables\n", *parts]), encoding="utf-8")
    return [*written, path]


def pages_of(out: Path) -> list[Path]:
    """Return the pages of a folder of results, with the README of a repository above it."""
    pages = sorted(path for path in out.glob("*.md") if path.name != "tables.md")
    readme = out.resolve().parents[1] / "README.md"
    return [*pages, *([readme] if pages and readme.exists() else [])]


def _worker(text: str) -> tuple[int, int]:
    """Return which worker of how many."""
    worker, n_workers = map(int, text.split("/"))
    if not 0 <= worker < n_workers:
        raise ValueError("the first worker is 0")
    return worker, n_workers


def _module(name: str) -> Any:
    return importlib.import_module(f"reproduction.{name}")


def _parser() -> argparse.ArgumentParser:
    width = max(map(len, EXPERIMENTS)) + 2
    lines = [f"  {name:<{width}}{each.about}" for name, each in EXPERIMENTS.items()]
    lines += [f"  {name:<{width}}{about}" for name, (_, _, about) in TOOLS.items()]
    lines.append(f"  {'all':<{width}}the experiments of the paper, one after the other")
    lines.append(f"  {'pages':<{width}}fill the tables of all pages and draw their figures")
    parser = argparse.ArgumentParser(
        prog="python -m reproduction",
        description=__doc__,
        epilog="experiments:\n" + "\n".join(lines),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "name",
        choices=[*EXPERIMENTS, *TOOLS, "all", "pages"],
        metavar="NAME",
        help="an experiment (below)",
    )
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder of the results")
    parser.add_argument("--sets", "--datasets", nargs="+", help="all by default")
    parser.add_argument("--methods", nargs="+", metavar="METHOD", help="all by default")
    parser.add_argument("--repeats", "--repetitions", type=int, help="of splits or of ten folds")
    parser.add_argument(
        "--part",
        help="of compare: tdc, errica, moleculeace, numbers, classes, table2, attributes; else all",
    )
    parser.add_argument("--seconds", type=float, help="of compare: begin no row after so many")
    parser.add_argument(
        "--worker",
        type=_worker,
        default=(0, 1),
        metavar="K/N",
        help="of compare: the rows of every N-th split",
    )
    parser.add_argument("--sample", type=int, help="of check: how many rows, 20 by default")
    parser.add_argument("--seed", type=int, default=0, help="of check: which rows")
    parser.add_argument("--jobs", type=int, default=-1, help="processes or threads")
    parser.add_argument("--quick", action="store_true", help="a small part of it, in minutes")
    parser.add_argument("--page-only", action="store_true", help="make no rows, only the pages")
    return parser


if __name__ == "__main__":
    main()
