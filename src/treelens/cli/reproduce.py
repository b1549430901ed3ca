"""``treelens reproduce``: run the published experiments again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from treelens.cli import options
from treelens.cli.console import Output, command


def reproduce_cli(
    target: Annotated[str, typer.Argument(metavar="WHAT", help="Which table or figure, or all.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder for the results.")] = Path(
        "results"
    ),
    quick: Annotated[bool, typer.Option("--quick", help="A small part of it, in minutes.")] = False,
    datasets: Annotated[
        str | None, typer.Option("--datasets", help="Of table2, formulations or molecules: A,B.")
    ] = None,
    methods: Annotated[str | None, typer.Option("--methods", help="Of table2: A,B.")] = None,
    jobs: Annotated[
        int | None, typer.Option("--jobs", help="Processes, for table2, formulations, molecules.")
    ] = None,
    as_json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Run an experiment of the paper again, and write its tables and figures."""
    with command(as_json, debug) as output:
        try:
            from treelens.experiments.__main__ import reproduce
        except ImportError as error:
            raise ImportError(
                f"This installation of treelens cannot run the experiments ({error})."
            ) from error
        written = reproduce(
            target, out, quick=quick, n_jobs=jobs, datasets=_listed(datasets),
            methods=_listed(methods),
        )  # fmt: skip
        output.finish({"target": target, "out": str(out), "written": written}, _show)


def _listed(text: str | None) -> list[str] | None:
    return None if text is None else [part.strip() for part in text.split(",") if part.strip()]


def _show(output: Output, result: dict[str, Any]) -> None:
    output.line(f"Results: {result['out']}")
