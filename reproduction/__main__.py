"""``python -m reproduction``: make a study's rows and page."""

from __future__ import annotations

import argparse
from pathlib import Path

from reproduction import classes, moleculeace, numbers, options, pages
from reproduction.data import StudyOptions

STUDIES = {
    "regression": numbers,
    "moleculeace": moleculeace,
    "evidence": classes,
    "options": options,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m reproduction", description=__doc__)
    parser.add_argument("study", choices=[*STUDIES, "pages"])
    parser.add_argument("--out", type=Path, default=Path("docs/results"), help="folder of rows")
    parser.add_argument("--sets", nargs="*", help="data sets; all by default")
    parser.add_argument("--methods", nargs="*", help="methods; all by default")
    parser.add_argument("--repeats", type=int, help="splits or repetitions of ten folds")
    parser.add_argument("--data", type=Path, help="folder of MoleculeACE's tables")
    parser.add_argument("--jobs", type=int, default=-1, help="threads")
    parser.add_argument("--device", default="cpu", help="where weights are learned: cpu or cuda")
    chosen = parser.parse_args()
    if chosen.study != "pages":
        STUDIES[chosen.study].run(
            StudyOptions(
                chosen.out,
                chosen.sets,
                chosen.methods,
                chosen.repeats,
                chosen.data,
                chosen.jobs,
                chosen.device,
            )
        )
    pages.write_all(chosen.out)


if __name__ == "__main__":
    main()
