"""The command ``treelens``: puts the commands together."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated

import typer

from treelens import __version__
from treelens.cli import datasets
from treelens.cli.console import EXIT_CODES, STOPPED
from treelens.cli.decisions import advise_cli, suggest_cli
from treelens.cli.demo import demo_cli
from treelens.cli.doctor import doctor_cli
from treelens.cli.evaluate import evaluate_cli
from treelens.cli.explain import explain_cli, fragments_cli, info_cli, patterns_cli
from treelens.cli.fit import fit_cli
from treelens.cli.predict import predict_cli
from treelens.cli.serve import serve_cli

app = typer.Typer(
    name="treelens",
    no_args_is_help=True,
    pretty_exceptions_enable=False,  # a traceback with --debug is Python's own
    rich_markup_mode=None,  # plain help: it fits a narrow terminal
    add_completion=False,
    epilog=EXIT_CODES,
)
COMMANDS: dict[str, Callable[..., None]] = {
    "fit": fit_cli,
    "predict": predict_cli,
    "explain": explain_cli,
    "info": info_cli,
    "patterns": patterns_cli,
    "fragments": fragments_cli,
    "evaluate": evaluate_cli,
    "suggest": suggest_cli,
    "advise": advise_cli,
    "serve": serve_cli,
    "doctor": doctor_cli,
    "demo": demo_cli,
}
for _name, _function in COMMANDS.items():
    app.command(_name, epilog=EXIT_CODES)(_function)
app.add_typer(datasets.app)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"treelens {__version__}")
        raise typer.Exit


@app.callback()
def treelens(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Learn from graphs to predict numbers or classes, and see which subtree patterns matter."""


def main() -> None:
    """The entry point."""
    try:
        app()
    except KeyboardInterrupt:  # before a command began
        sys.exit(STOPPED)


if __name__ == "__main__":
    main()
