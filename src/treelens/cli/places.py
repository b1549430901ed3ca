"""MODEL and DATA on the command line: one missing, or in the place of the other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand

from treelens.cli.console import InputError

MODEL_ENDING = ".treelens"


def is_a_model(source: str) -> bool:
    """By what a file holds, whatever it is called; by the name where there is no such file."""
    from treelens.storage.archive import is_model_file

    return source.endswith(MODEL_ENDING) or is_model_file(source)


def refuse_model_as_data(source: str) -> None:
    """Models come first: one in the place of the data is an error that says so.

    What is called like a table or an SDF is opened once, when it is read, and not here.
    """
    from treelens.graphs.sdf import SDF_ENDINGS
    from treelens.graphs.tables import TABLE_ENDINGS, inner_suffix

    path = Path(source).expanduser()
    if inner_suffix(path) not in (*TABLE_ENDINGS, *SDF_ENDINGS) and is_a_model(source):
        what = "is a model" if path.exists() else "called like a model"
        raise InputError(
            f"{source} is in the place of the data, but {what}. Models come first and the data "
            "last (MODEL... DATA): a table, an SDF, a TU folder or .zip, or the name of a known "
            "data set."
        )


class ModelsThenData(TyperCommand):
    """A command with arguments MODEL... DATA that says when DATA is missing.

    The last word is taken for DATA, so that of a model alone a parser would miss the MODEL.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        found = self.make_parser(ctx).parse_args(list(args))[0]
        data, models = found.get("data"), found.get("models")
        has_models = isinstance(models, (list, tuple)) or found.get("help")
        if isinstance(data, str) and not has_models and is_a_model(data):
            raise typer.BadParameter(
                f"it is missing. {data} is a model; what it should predict comes after it.",
                ctx, param_hint="DATA",
            )  # fmt: skip
        return super().parse_args(ctx, args)
