"""What all commands share: where output goes, how errors end, and the exit codes."""

from __future__ import annotations

import inspect
import json
import os
import re
import shlex
import shutil
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import is_dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from treelens import __version__
from treelens.json_values import plain

if TYPE_CHECKING:
    import pandas as pd

    from treelens.array_checks import Columns

OK, FAILED, BAD_INPUT, STOPPED = 0, 1, 2, 130
EXIT_CODES = (
    "Exit codes: 0 done; 1 failed (no room, no permission, no network, a missing package); 2 the "
    "command or its input is wrong; 130 stopped by Ctrl-C."
)
# Without a terminal there is no width to fit; wide enough that tables need not fold.
_WIDTH_OF_A_FILE = 200
_MOST_LISTED = 40
# Control characters can move the cursor, change the title or hide text; signs that turn the reading
# direction can make a text look like another; lone surrogates cannot be printed at all.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
_SHARES = ("accuracy", "balanced_accuracy", "recall", "precision", "coverage")  # scores in percent
_LONG_TITLES = {"coverage": "within 90 % interval", "balanced_accuracy": "balanced accuracy"}
# Parameters of the library, which its messages name, and the options they are here.
_SAME_NAME = (
    "smiles",
    "sheet",
    "target",
    "task",
    "transform",
    "covariates",
    "limits",
    "qualifier",
    "unit",
    "duplicates",
    "wanted",
    "training",
    "noise",
    "threshold",
    "kernel",
)
_PARAMETERS = {
    "names": "--id",
    "max_invalid": "--max-invalid",
    "max_atoms": "--max-atoms",
    "n_jobs": "--jobs",
    "unit_column": "--unit-column",
    "on_missing": "--missing",
    **{name: f"--{name}" for name in _SAME_NAME},
}
_PARAMETER = re.compile(rf"\b({'|'.join(_PARAMETERS)})=(?:'([^']*)'|\"([^\"]*)\"|([\w.+-]+))")


class Output:
    """Results, as JSON or for people, on standard output; all else on standard error."""

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json
        self.notes: list[str] = []

    def note(self, *texts: str) -> None:
        """Print messages that are not the result, each once."""
        for text in map(with_options, texts):
            if text not in self.notes:
                self.notes.append(text)
                typer.echo(_wrapped(visible(f"Note: {text}")), err=True)

    def warn(self, message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        """Note a warning for the user; those for developers are left out."""
        if issubclass(category, UserWarning):
            self.note(str(message))

    def progress(self, text: str) -> None:
        """Print what is going on."""
        typer.echo(_one_line(text), err=True)

    def finish(
        self,
        result: dict[str, Any],
        show: Callable[[Output, dict[str, Any]], None],
        out: Path | None = None,
        title: str = "The table",
        table: pd.DataFrame | Columns | None = None,
        index: bool = False,
    ) -> None:
        """Print the result, as JSON or for people, and the file it is in; write a table first."""
        if out is not None and table is not None:
            from treelens.chem.exports import write_table

            write_table(table, out, index=index)
        result = result if out is None else {**result, "out": str(out)}
        if self.as_json:
            typer.echo(json.dumps(plain({**result, "notes": self.notes}, other=str), indent=2))
            return
        show(self, result)
        if out is not None:
            self.line(f"{title}: {out}")

    def line(self, text: str = "") -> None:
        # Not by typer: it would write UTF-8 to a console whose encoding is ASCII.
        sys.stdout.write(f"{_one_line(text)}\n")
        sys.stdout.flush()

    def table(
        self,
        columns: Sequence[str],
        rows: Iterable[Sequence[Any]],
        title: str = "",
        cut: Sequence[str] = (),
    ) -> None:
        """Print a table; numbers stand to the right, and columns to ``cut`` end where lines do."""
        from rich import box
        from rich.table import Table
        from rich.text import Text

        rows = [list(row) for row in rows]
        table = Table(box=box.SIMPLE_HEAD, collapse_padding=bool(cut) and len(columns) > 6)
        for position, name in enumerate(columns):
            numeric = all(isinstance(row[position], (int, float)) for row in rows)
            side: Any = "right" if numeric else "left"
            end: Any = "ellipsis" if name in cut else "fold"
            whole = bool(cut) and name not in cut  # these keep their width
            table.add_column(_one_line(name), justify=side, overflow=end, no_wrap=whole)
        for row in rows:
            table.add_row(*(Text(_one_line(cell_text(x)), no_wrap=bool(cut)) for x in row))
        if title:
            self.line(title)
        self._console().print(table)

    def facts(self, facts: Mapping[str, Any], title: str = "") -> None:
        """Print names and values that there are, one a line; names stand under a title."""
        known = {name: value for name, value in facts.items() if value not in (None, "", [], {})}
        if known and title:
            self.line(title)
        width, start = max(map(len, known), default=0), "  " if title else ""
        for name, value in known.items():
            if isinstance(value, Mapping):
                value = [f"{key}: {cell_text(each)}" for key, each in value.items()]
            if isinstance(value, (list, tuple)):
                more = f", and {len(value) - _MOST_LISTED} more" * (len(value) > _MOST_LISTED)
                value = ", ".join(map(str, value[:_MOST_LISTED])) + more
            self.line(f"{start}{name:{width}}  {cell_text(value)}")
        if known and title:
            self.line()

    def _console(self) -> Any:
        from rich.console import Console

        width = None if sys.stdout.isatty() else _WIDTH_OF_A_FILE
        return Console(file=sys.stdout, width=width, markup=False, highlight=False, emoji=False)


def cell_text(value: object) -> str:
    """A value as tables show it; numbers with four digits."""
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


def with_options(text: str) -> str:
    """Return a message of the library with options in the place of parameters.

    Examples
    --------
    >>> with_options("Name another column with target=COLUMN, or use on_missing='skip'.")
    'Name another column with --target COLUMN, or use --missing skip.'
    >>> with_options("Use unit_column='Standard Units'.")
    "Use --unit-column 'Standard Units'."
    """

    def option(found: re.Match[str]) -> str:
        value = next((text for text in found.groups()[1:] if text is not None), "")
        return f"{_PARAMETERS[found[1]]} {shlex.quote(value)}"

    text = _PARAMETER.sub(option, text)
    return text.replace("atom_label and bond_label", "--atom-label and --bond-label")


def visible(text: str) -> str:
    """Return a text as it can be printed: what would act on a terminal shows as its code.

    Examples
    --------
    >>> print(visible("\\x1b[31mred"))
    \\x1b[31mred
    """
    return _UNSEEN.sub(lambda found: ascii(found.group())[1:-1], text)


def _wrapped(text: str) -> str:
    """Return a note with line ends between words, as wide as the terminal, if it goes to one."""
    if not sys.stderr.isatty():
        return text
    width = shutil.get_terminal_size().columns
    return textwrap.fill(text, width, subsequent_indent="  ", break_on_hyphens=False)


def _one_line(text: str) -> str:
    """Visible, and on one line: a name with a line end in it can forge no line of its own."""
    return visible(text).replace("\n", "\\n")


def shortened(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


def percent(share: float | None) -> str:
    """``"87.4 %"``."""
    return "" if share is None else f"{100 * share:.1f} %"


def score_title(name: str) -> str:
    """The title of a score: ``"RMSE"`` (rmse)."""
    from treelens.evaluation.metrics import CLASS_SCORES, NUMBER_SCORES

    return _LONG_TITLES.get(name) or {**CLASS_SCORES, **NUMBER_SCORES}[name][0]


def score_text(name: str, value: float | None) -> str:
    """A score as it is printed, by its name: ``"0.5"`` (RMSE), ``"87.4 %"`` (accuracy)."""
    if value is None or name in _SHARES:
        return percent(value)
    return f"{value:.4g}" if name in ("rmse", "mae") else f"{value:.3f}"


# --- commands -------------------------------------------------------------------------------------


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"treelens {__version__}")
        raise typer.Exit


def treelens(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Learn from graphs to predict numbers or classes, and see which subtree patterns matter."""


def _options_of_all(
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the result as JSON, and nothing else.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None: ...


def command(work: Callable[..., None]) -> Callable[..., None]:
    """Make a command of ``work(output, ...)``, with ``--json`` and ``--debug``.

    A parameter whose type is a dataclass stands for all its fields, one option each. An error
    becomes one message and an exit code.
    """
    groups: dict[str, Any] = {}
    parameters: list[inspect.Parameter] = []
    for parameter in list(_parameters(work))[1:]:
        if is_dataclass(parameter.annotation):
            groups[parameter.name] = parameter.annotation
            parameters += _parameters(parameter.annotation)
        else:
            parameters.append(parameter)
    parameters += _parameters(_options_of_all)

    @wraps(work)
    def run(as_json: bool, debug: bool, **given: Any) -> None:
        for name, kind in groups.items():
            given[name] = kind(**{x: given.pop(x) for x in inspect.signature(kind).parameters})
        output = Output(as_json)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("default")
                warnings.showwarning = output.warn
                work(output, **given)
                sys.stdout.flush()
        except typer.Exit:
            raise
        except KeyboardInterrupt:
            typer.echo("Stopped.", err=True)
            raise typer.Exit(STOPPED) from None
        except BrokenPipeError:  # the reader, such as head, has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(OK) from None
        except Exception as error:
            if debug:
                raise
            message, code = _explained(error)
            typer.echo(visible(f"Error: {message}"), err=True)
            if as_json:
                typer.echo(json.dumps({"error": message, "exit_code": code, "notes": output.notes}))
            raise typer.Exit(code) from error

    keywords = [x.replace(kind=inspect.Parameter.KEYWORD_ONLY) for x in parameters]
    run.__signature__ = inspect.Signature(keywords)  # type: ignore[attr-defined]
    run.__annotations__ = {x.name: x.annotation for x in keywords}
    return run


def _parameters(function: Any) -> Iterable[inspect.Parameter]:
    return inspect.signature(function, eval_str=True).parameters.values()


def _explained(error: Exception) -> tuple[str, int]:
    """Return one message for a person, and the exit code."""
    if isinstance(error, ValueError):  # data, model files, parameters
        return with_options(str(error)), BAD_INPUT
    if isinstance(error, OSError):
        named = f"{error.filename}: " if error.filename else ""
        return f"{named}{error.strerror or error}", FAILED
    if isinstance(error, ImportError):
        return str(error), FAILED
    if isinstance(error, MemoryError):
        return "There is not enough memory for this. Use fewer graphs, or a smaller depth.", FAILED
    name = type(error).__name__
    return f"Internal error: {name}: {error}. Please report it with the output of --debug.", FAILED


def show_next_steps(output: Output, result: dict[str, Any]) -> None:
    """Print the file of the model, and the commands that take it."""
    if "model" not in result:
        return
    model, suffix = shlex.quote(result["model"]), Path(result["data"]["source"]).suffix or ".csv"
    output.line(f"Model: {result['model']}")
    output.line(f"Next: treelens predict {model} new{suffix} --out predictions.csv")
    output.line(f"      treelens explain {model} new{suffix} --out report.html")
