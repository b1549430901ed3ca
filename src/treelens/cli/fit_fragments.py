"""The first few fragments that move a model's predictions, as ``treelens fit`` prints them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from treelens.cli.console import Output

if TYPE_CHECKING:
    from treelens.cli.data import GraphData
    from treelens.estimators.files import AnyModel

USUALLY_SHOWN = 5
# Every class of several is explained by itself, and past so many graphs (those that weights are
# learned from) fitting grows more slowly than explaining all of them: both would show in the time.
_MOST_CLASSES, _MOST_GRAPHS = 2, 3000
_LONGEST_NAME = 60


def first_fragments(model: AnyModel, data: GraphData, asked: int | None) -> dict[str, Any]:
    """The fragments that move predictions of the training graphs most, as plain data.

    ``asked`` is None where nothing was said: then a few, unless finding them would take long.
    """
    too_long = None if asked is not None else _too_long(data)
    n_shown = USUALLY_SHOWN if asked is None else asked
    if too_long or not n_shown:
        return {"fragments": [], "no_fragments_for": too_long}
    table = model.fragments(data.graphs, n_fragments=n_shown, smarts=False)
    return {
        "fragments": [{"rank": k, **row} for k, row in table.to_dict("index").items()],
        "no_fragments_for": None,
        "left_out": table.attrs["left_out"],
        "toward": table.attrs["toward"],
    }


def _too_long(data: GraphData) -> str | None:
    import numpy as np

    assert data.y is not None
    n_classes = 0 if data.task == "regression" else len(np.unique(data.y))
    if n_classes > _MOST_CLASSES:
        return f"{n_classes} classes"
    return f"{len(data.graphs):,} graphs" if len(data.graphs) > _MOST_GRAPHS else None


def show_fragments(output: Output, result: dict[str, Any]) -> None:
    """A line for each, or a word on how to have them."""
    if result["no_fragments_for"]:
        output.line(
            f"The fragments behind predictions take a while with {result['no_fragments_for']}: "
            f"--fragments {USUALLY_SHOWN} prints the first ones, 'treelens fragments' all."
        )
    if result["fragments"]:
        rows = [
            [_named(row), f"{row['effect']:+.3f} ± {row['error']:.3f}", row["support"]]
            for row in result["fragments"]
        ]
        toward = "" if result["toward"] is None else f" for {result['toward']}"
        title = "Fragments that move predictions most"
        output.table(["fragment", f"effect{toward} ± error", "graphs"], rows, title)


def _named(row: dict[str, Any]) -> str:
    """A name that fits into a line, and of several classes the one that the row is about."""
    name = row["name"] or row["pattern"]
    short = name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"
    return f"{short}, for {row['class_label']}" if "class_label" in row else short
