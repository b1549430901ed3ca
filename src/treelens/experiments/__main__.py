"""``python -m treelens.experiments``: the reproduction without the rest of the command line."""

from __future__ import annotations

import argparse

from treelens.experiments.methods import TABLE2_METHODS
from treelens.experiments.table2 import DATASETS, run_table2


def main() -> None:
    """Parse the command line and run one experiment."""
    parser = argparse.ArgumentParser(prog="python -m treelens.experiments", description=__doc__)
    parser.add_argument("experiment", choices=["table2"])
    parser.add_argument("--out", default="results")
    parser.add_argument("--datasets", nargs="+", default=list(DATASETS))
    parser.add_argument("--methods", nargs="+", default=list(TABLE2_METHODS))
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    run_table2(
        options.out,
        datasets=options.datasets,
        methods=options.methods,
        repetitions=options.repetitions,
        n_jobs=options.jobs,
        seed=options.seed,
    )


if __name__ == "__main__":
    main()
