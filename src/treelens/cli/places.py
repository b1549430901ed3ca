"""MODEL and DATA on the command line: one missing, or in the place of the other."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand

from treelens.cli.console import InputError

if TYPE_CHECKING:
    from treelens.estimators.files import AnyModel

MODEL_ENDING = ".treelens"


def is_a_model(source: str) -> bool:
    """By what a file holds, whatever it is called; by the name where there is no such file."""
    from treelens.storage.archive import is_model_file

    if Path(source).expanduser().exists():
        return is_model_file(source)
    return source.endswith(MODEL_ENDING)


def _as_a_model(source: str) -> str:
    """Words about what :func:`is_a_model`."""
    if Path(source).expanduser().exists():
        return "is a model"
    return "is called like a model, and there is no such file"


def refuse_model_as_data(source: str, advice: str = "") -> None:
    """A model in the place of the data is an error that says so, with advice for the command.

    What is called like a table or an SDF is opened once, when it is read, and not here: that it is
    a model is told there.
    """
    from treelens.graphs.sdf import SDF_ENDINGS
    from treelens.graphs.tables import TABLE_ENDINGS, inner_suffix

    path = Path(source).expanduser()
    if inner_suffix(path) not in (*TABLE_ENDINGS, *SDF_ENDINGS) and is_a_model(source):
        raise InputError(
            f"{source} is in the place of the data, but {_as_a_model(source)}. {advice}Expected a "
            "table, an SDF, a TU folder or .zip, or the name of a known data set."
        )


def refuse_model_after_models(source: str) -> None:
    """The same for a command that takes models too."""
    refuse_model_as_data(source, "Models come first and the data last (MODEL... DATA). ")


def load_before_data(path: Path) -> AnyModel:
    """The model of a command that takes data too: they may be in its place."""
    from treelens.estimators.files import load
    from treelens.storage.archive import OtherFileError

    try:
        return load(path)
    except OtherFileError as error:
        raise InputError(f"{error} If these are the data, they come after the model.") from error


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
                f"it is missing. {data} {_as_a_model(data)}; what a model should predict comes "
                "after it.", ctx, param_hint="DATA",
            )  # fmt: skip
        return super().parse_args(ctx, args)
